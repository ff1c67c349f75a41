"""Displays: what they compute, what they draw, and what they refuse."""

import itertools
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import LineCollection, PathCollection
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression

from skfairdp import FairPrivateClassifier, RelaxationThreshold
from skfairdp.datasets import make_biased_classification
from skfairdp.exceptions import UndefinedGroupMetricWarning
from skfairdp.inspection import (
    GroupRatesDisplay,
    LeakageDisplay,
    PrivacyCurveDisplay,
    RepresentationDisplay,
    TradeoffDisplay,
)
from skfairdp.inspection._display_style import _PLACES, _box_when_moved


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


CANDIDATES = pd.DataFrame(
    {
        "method": ["a", "b", "c", "d"],
        "accuracy": [0.90, 0.895, 0.86, 0.80],
        "tpr_gap": [0.20, 0.05, 0.10, 0.01],
        "leakage": [0.8, 0.7, 0.6, 0.5],
    }
)
SEARCH = {
    "mean_test_accuracy": np.array([0.90, 0.895, 0.86, np.nan]),
    "mean_test_tpr_gap": np.array([-0.20, -0.05, -0.10, -0.01]),
    "mean_test_leakage": np.array([-0.8, -0.7, -0.6, -0.5]),
    "param_privatizer__epsilon": np.ma.array([8.0, 4.0, 2.0, 1.0]),
    "params": [{}] * 4,
}


def test_tradeoff_of_a_table_marks_front_band_and_choice():
    display = TradeoffDisplay.from_table(CANDIDATES, colour="leakage", label="method", rule=RelaxationThreshold(0.01))
    assert display.front.tolist() == [True, True, False, True]
    assert display.chosen == 1
    assert display.band == pytest.approx((0.89, 0.90))
    legend = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert legend == ["relaxation band", "Pareto front", "chosen"]
    assert {text.get_text() for text in display.ax_.texts} == {"a", "b", "c", "d"}
    assert "smaller is fairer" in display.ax_.get_ylabel()


@pytest.mark.parametrize("colour", [None, "leakage", "param_privatizer__epsilon"])
def test_tradeoff_shows_gaps_and_leakage_as_positive(colour):
    display = TradeoffDisplay.from_cv_results(SEARCH, colour=colour, rule=RelaxationThreshold(0.01))
    assert display.fairness.value.tolist() == [0.20, 0.05, 0.10, 0.01]
    assert display.shown.tolist() == [True, True, True, False]
    assert display.front.tolist() == [True, True, False, False]
    if colour is not None:
        assert display.colour.value.min() > 0


def test_tradeoff_shows_intervals_and_privacy():
    table = CANDIDATES.assign(
        lower=CANDIDATES["tpr_gap"] / 2, upper=CANDIDATES["tpr_gap"] * 2, epsilon=[8.0, *[np.inf] * 3]
    )
    display = TradeoffDisplay.from_table(table, interval=("lower", "upper"), epsilon="epsilon")
    lines = next(c for c in display.ax_.collections if isinstance(c, LineCollection)).get_segments()
    np.testing.assert_allclose(lines[0], [[0.90, 0.10], [0.90, 0.40]])
    drawn = {c.get_label(): len(c.get_offsets()) for c in display.ax_.collections if isinstance(c, PathCollection)}
    assert drawn == {"finite epsilon": 1, "no privacy": 3}


def test_tradeoff_labels_do_not_hide_each_other():
    crowd = pd.DataFrame(
        {
            "method": ["unconstrained", "federate", "noise", "pate\x1b", "a name that is far too long to be shown"],
            "accuracy": [0.850, 0.851, 0.849, 0.850, 0.80],
            "tpr_gap": [0.050, 0.051, 0.049, 0.0505, 0.0],
        }
    )
    texts = TradeoffDisplay.from_table(crowd, label="method").ax_.texts
    assert [text.get_text() for text in texts][3:] == ["pate�", "a name that is far too …"]
    for one, other in itertools.combinations([text.get_window_extent() for text in texts], 2):
        assert not one.overlaps(other)


@pytest.mark.parametrize("fairness", ["equal_opportunity", "demographic_parity"])
def test_tradeoff_of_an_estimator_shows_its_curve(fairness):
    data = make_biased_classification(n_samples=2000, label_bias=0.3, random_state=0)
    clf = FairPrivateClassifier(LogisticRegression(), fairness=fairness, random_state=0)
    clf.fit(data.data, data.target, sensitive_features=data.sensitive_features)
    display = TradeoffDisplay.from_estimator(clf)
    gaps = clf.tradeoff_[display.fairness.name]
    assert np.array_equal(display.fairness.value, gaps)
    assert clf.tradeoff_["strength"][display.chosen] == clf.strength_
    assert (display.interval[0] <= gaps).all()
    plain = FairPrivateClassifier(LogisticRegression(), fairness=None).fit(data.data, data.target)
    with pytest.raises(ValueError, match="no trade-off to draw"):
        TradeoffDisplay.from_estimator(plain)


def test_displays_draw_where_they_are_told():
    _, (first, second, third) = plt.subplots(1, 3)
    assert TradeoffDisplay.from_table(CANDIDATES, ax=first).ax_ is first
    assert PrivacyCurveDisplay.from_table(_runs(), ax=second).figure_ is second.figure
    assert GroupRatesDisplay.from_predictions([0, 1], [0, 1], sensitive_features=["f"] * 2, ax=third).ax_ is third


def test_tradeoff_names_a_metric_that_is_not_there():
    with pytest.raises(KeyError, match="'grms'"):
        TradeoffDisplay.from_table(CANDIDATES, fairness="grms")


def _runs():
    return pd.DataFrame(
        {
            "name": ["x", "x", "x", "y"],
            "epsilon": [1.0, 1.0, np.inf, 2.0],
            "accuracy": [0.6, 0.8, 0.9, 0.7],
            "leakage": [0.5, 0.5, 0.8, 0.6],
        }
    )


def test_privacy_curve_averages_runs_and_shows_infinity():
    display = PrivacyCurveDisplay.from_table(_runs(), method="name", majority=0.5)
    row = display.table.query("method == 'x' and epsilon == 1").iloc[0]
    assert row["accuracy"] == pytest.approx(0.7)
    assert row["accuracy_std"] == pytest.approx(np.std([0.6, 0.8], ddof=1))
    assert [tick.get_text() for tick in display.ax_.get_xticklabels()] == ["1", "2", "no noise"]
    with pytest.raises(ValueError, match="'epsilons'"):
        PrivacyCurveDisplay.from_table(_runs(), epsilon="epsilons")


def test_group_rates_shows_every_group_with_its_interval():
    rng = np.random.default_rng(0)
    X, z = rng.normal(size=(200, 3)), rng.choice(["f", "m"], 200)
    y = np.where(X[:, 0] > 0, "yes", "no")
    model = LogisticRegression().fit(X, y)
    display = GroupRatesDisplay.from_estimator(model, X, y, sensitive_features=pd.Series(z, name="sex"))
    assert display.pos_label == "yes"
    assert len(display.ax_.containers) == 2 * 4
    expected = np.mean((model.predict(X) == y)[z == "f"])
    shown = display.ax_.containers[0].lines[0].get_ydata()[0]
    assert shown == pytest.approx(expected)
    assert display.ax_.get_legend().get_title().get_text() == "sex"


def test_group_rates_of_several_columns_and_of_another_class():
    frame = pd.DataFrame({"sex": list("fmfm"), "age": [1, 1, 2, 2]})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedGroupMetricWarning)
        display = GroupRatesDisplay.from_predictions(
            [0, 1, 1, 0], [0, 1, 0, 0], sensitive_features=frame, rates=("accuracy", "tpr"), pos_label=0
        )
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert labels == ["f x 1", "f x 2", "m x 1", "m x 2"]


def test_group_rates_compares_models():
    y, sex = [1, 0, 1, 0], pd.Series(["f", "f", "m", "m"], name="model")  # a column may be called so
    predicted = {"plain": [1, 0, 0, 0], "fair": [1, 0, 1, 0]}
    display = GroupRatesDisplay.from_predictions(y, predicted, sensitive_features=sex, rates=("accuracy", "tpr"))
    assert display.names == ("model",)
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["plain", "fair"]
    ticks = [text.get_text() for text in display.ax_.get_yticklabels()]
    assert ticks == ["accuracy", "f", "m", "true positive rate", "f", "m"]
    plain, fair = (container.lines[0] for container in display.ax_.containers)
    assert plain.get_xdata().tolist() == [1.0, 0.5, 1.0, 0.0]
    assert fair.get_xdata().tolist() == [1.0, 1.0, 1.0, 1.0]
    assert np.round(plain.get_ydata().astype(float)).tolist() == [1, 2, 4, 5]  # each on the line of its group


def test_leakage_marks_the_chosen_and_guessing():
    rng = np.random.default_rng(0)
    z = np.repeat([0, 1, 1], 60)
    views = {"told": rng.normal(size=(180, 2)) + 4 * z[:, None], "hidden": rng.normal(size=(180, 2))}
    display = LeakageDisplay.from_representations(
        views, sensitive_features=z, chosen="told", probe="linear", random_state=0
    )
    told, hidden = display.ax_.patches
    assert told.get_width() == display.table["accuracy"][0] > 0.9
    assert told.get_facecolor() != hidden.get_facecolor()
    assert "guessing 67%" in [text.get_text() for text in display.ax_.texts]
    with pytest.raises(ValueError, match="representations"):
        LeakageDisplay.from_representations({}, sensitive_features=z)


def test_group_rates_refuses_what_it_does_not_know():
    arguments = ([0, 1], [0, 1])
    with pytest.raises(ValueError, match="rates"):
        GroupRatesDisplay.from_predictions(*arguments, sensitive_features=["f", "f"], rates=("precision",))
    with pytest.raises(ValueError, match="pos_label"):
        GroupRatesDisplay.from_predictions(*arguments, sensitive_features=["f", "f"], pos_label=2)


@pytest.mark.parametrize("method", ["pca", "tsne", PCA(2)])
def test_representation_views_show_the_same_rows(method):
    rng = np.random.default_rng(0)
    views = {"before": rng.normal(size=(120, 5)), "after": rng.normal(size=(120, 3))}
    z = rng.choice(["f", "m"], 120)
    display = RepresentationDisplay.from_representations(
        views, sensitive_features=z, method=method, max_points=50, random_state=0
    )
    assert [ax.get_title() for ax in display.axes_] == ["before", "after"]
    assert all(points.shape == (50, 2) for points in display.points.values())
    assert len(display.group_indices) == 50


def test_one_or_two_dimensions_are_not_reduced():
    H = np.arange(6.0).reshape(6, 1)
    display = RepresentationDisplay.from_representations(H, sensitive_features=[0, 1] * 3, random_state=0)
    np.testing.assert_array_equal(display.points[""], np.column_stack([H, np.zeros(6)]))


def test_representation_refuses_bad_input():
    H = np.zeros((4, 2))
    with pytest.raises(ValueError, match="same rows"):
        RepresentationDisplay.from_representations({"a": H, "b": H[:2]}, sensitive_features=[0, 1, 0, 1])
    with pytest.raises(ValueError, match="is empty"):
        RepresentationDisplay.from_representations({}, sensitive_features=[])
    with pytest.raises(ValueError, match="method"):
        RepresentationDisplay.from_representations(np.zeros((4, 3)), sensitive_features=[0, 1, 0, 1], method="umap")
    with pytest.raises(ValueError, match="one for each panel"):
        RepresentationDisplay.from_representations(H, sensitive_features=[0, 1, 0, 1], ax=plt.subplots(1, 2)[1])


@pytest.mark.parametrize("dpi", [72, 150])
def test_boxes_of_labels_are_those_of_matplotlib(dpi):
    """The place of a label is chosen by boxes that are computed; matplotlib draws it there."""
    figure, ax = plt.subplots(dpi=dpi)
    figure.draw_without_rendering()
    note = ax.annotate("jogging", (0.4, 0.6), xytext=(0, 0), textcoords="offset points", va="bottom")
    box = note.get_window_extent()
    for place in _PLACES:
        note.set(position=place[:2], ha=place[2], va=place[3])
        computed = _box_when_moved(box, place, dpi / 72)
        np.testing.assert_allclose(computed.get_points(), note.get_window_extent().get_points())
