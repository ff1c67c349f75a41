"""The figures of the PATE analysis: they show the numbers of the analysis, in axes of one's choice."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from skfairdp import PATEClassifier, pate_fairness
from skfairdp.inspection import BoundaryDisplay, FlippingDisplay, InputNormDisplay, PATESweepDisplay, SoftLabelDisplay


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def setting():
    rng = np.random.default_rng(0)
    X, z = rng.normal(size=(700, 3)), rng.choice(["f", "m"], 700)
    y = (X[:, 0] + 0.5 * rng.normal(size=700) > 0).astype(int)
    made = {}
    for k in (10, 30):
        made[k] = PATEClassifier(DecisionTreeClassifier(max_depth=2), n_teachers=k, epsilon=8.0, random_state=0)
        made[k].fit(X[:600], y[:600], public=X[600:])
    return made, X[600:], y[600:], z[600:]


def analyses(setting, settings, k=30, **common):
    pates, X, y, z = setting
    common = {"sensitive_features": z, "y": y, "n_repeats": 5, "random_state": 0, **common}
    return [pate_fairness(pates[one.pop("k", k)], X, **common, **one) for one in settings]


def _heights(ax, number=0):
    """What a line with error bars shows, which matplotlib keeps as objects."""
    return np.asarray(ax.containers[number].lines[0].get_ydata(), dtype=float)


def test_sweep_shows_sensitivity_risks_and_accuracy_in_order(setting):
    found = analyses(setting, [{"regularization": s} for s in (1.0, 0.01, 0.1)])
    display = PATESweepDisplay.from_analyses(found, parameter="regularization")
    by_strength = sorted(found, key=lambda one: one.regularization)
    assert display.table["regularization"].tolist() == [0.01, 0.1, 1.0]
    np.testing.assert_allclose(_heights(display.axes_[0]), [a.sensitivity["mean"] for a in by_strength])
    np.testing.assert_allclose(_heights(display.axes_[1], 1), [a.groups.loc["m", "risk"] for a in by_strength])
    accuracy = [a.performance.loc["accuracy", "private"] for a in by_strength]
    np.testing.assert_allclose(_heights(display.axes_[2]), accuracy)
    assert [t.get_text() for t in display.axes_[1].get_legend().get_texts()] == ["f", "m"]
    assert [t.get_text() for t in display.axes_[0].get_xticklabels()] == ["0.01", "0.1", "1"]


def test_sweep_over_teachers_without_true_labels(setting):
    found = analyses(setting, [{"k": 30}, {"k": 10}], y=None, noise_scale=5.0)
    display = PATESweepDisplay.from_analyses(found, parameter="n_teachers")
    assert display.table["n_teachers"].tolist() == [10, 30]
    assert display.table["accuracy"].isna().all()
    with pytest.raises(ValueError, match="parameter"):
        PATESweepDisplay.from_analyses(found, parameter="mood")
    with pytest.raises(ValueError, match="at least one PATEFairness"):
        PATESweepDisplay.from_analyses([])


def test_flipping_falls_with_the_number_of_teachers(setting):
    found = analyses(setting, [{"k": 30}, {"k": 10}], noise_scale=10.0)
    display = FlippingDisplay.from_analyses(found)
    assert display.flipping["n_teachers"].tolist() == [10, 30]
    assert display.flipping["mean"].is_monotonic_decreasing
    expected = found[1].rows["flipping_probability"].quantile([0.25, 0.75])
    np.testing.assert_allclose(display.flipping.loc[0, ["low", "high"]].astype(float), expected)
    np.testing.assert_allclose(display.rows["gradient_norm"], found[0].rows["gradient_norm"])


def test_input_norms_and_boundary(setting):
    (found,) = analyses(setting, [{"labels": "hard", "noise_scale": 5.0}])
    norms = InputNormDisplay.from_analysis(found)
    np.testing.assert_allclose(_heights(norms.axes_[0]), found.norm_bins["sensitivity"])
    np.testing.assert_allclose(norms.axes_[0].lines[-1].get_ydata(), found.norm_bins["bound"])
    shown = np.concatenate([c.get_offsets() for c in norms.axes_[1].collections])
    assert sorted(shown[:, 1]) == pytest.approx(sorted(found.rows["risk"]))
    boundary = BoundaryDisplay.from_analysis(found)
    rho = found.correlations.loc[("closeness", "flipping_probability"), "rho"]
    assert boundary.axes_[0].get_title() == f"Spearman's rho = {rho:.2f}"
    assert [t.get_text() for t in boundary.axes_[1].get_legend().get_texts()] == ["f", "m"]


def test_norms_need_a_logistic_student(setting):
    _, X, y, z = setting
    pate = PATEClassifier(DecisionTreeClassifier(), n_teachers=5, epsilon=50.0, student="network", random_state=0)
    pate.fit(X[::2], y[::2], public=X[1::2])
    found = pate_fairness(pate, X, sensitive_features=z, n_repeats=2)
    with pytest.raises(ValueError, match="logistic student"):
        InputNormDisplay.from_analysis(found)


def test_soft_against_hard_over_epsilon(setting):
    found = analyses(setting, [{"labels": kind, "epsilon": e} for e in (10.0, 1.0) for kind in ("hard", "soft")])
    display = SoftLabelDisplay.from_analyses(found)
    assert list(display.tables) == ["hard", "soft"]
    assert display.tables["soft"]["epsilon"].tolist() == [1.0, 10.0]
    labels = [t.get_text() for t in display.axes_[1].get_legend().get_texts()]
    assert labels == ["hard, f", "hard, m", "soft, f", "soft, m"]


def test_axes_may_be_given_one_or_one_for_each_panel(setting):
    (found,) = analyses(setting, [{}])
    figure, axes = plt.subplots(1, 2)
    display = BoundaryDisplay.from_analysis(found, ax=axes)
    assert display.figure_ is figure
    assert list(display.axes_) == list(axes)
    figure, ax = plt.subplots()
    divided = BoundaryDisplay.from_analysis(found, ax=ax)
    assert len(figure.axes) == 3
    assert divided.figure_ is figure
    with pytest.raises(ValueError, match="ax"):
        BoundaryDisplay.from_analysis(found, ax=plt.subplots(1, 3)[1])
    free = plt.figure().add_axes((0.1, 0.1, 0.8, 0.8))
    with pytest.raises(ValueError, match="made by subplots"):
        BoundaryDisplay.from_analysis(found, ax=free)
