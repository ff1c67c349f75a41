"""The fairness analysis: right against slow versions, inside its bounds, and clear about what it refuses."""

import copy
import math
from itertools import permutations

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from skfairdp import PATEClassifier, pate_fairness
from skfairdp.ensemble._pate_fairness import draw_targets
from skfairdp.ensemble._students import solve_students, student_probabilities
from skfairdp.mechanisms import vote_mechanism
from skfairdp.random import random_stream


def data(n=2000, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.choice(["few", "many"], size=n, p=[0.25, 0.75])
    X = rng.normal(size=(n, 3)) * np.where(z == "few", 2.0, 1.0)[:, None]
    score = X[:, 0] + 0.5 * X[:, 1] * (z == "few") + rng.normal(size=n)
    return X, np.digitize(score, [0.0] if n_classes == 2 else [-0.7, 0.7]), z


@pytest.fixture(scope="module")
def ensembles():
    """Fitted ensembles with two and three classes, and their public rows."""
    made = {}
    for n_classes in (2, 3):
        X, y, z = data(n_classes=n_classes)
        settings = {"n_teachers": 30, "n_queries": 200, "epsilon": 8.0, "student_regularization": 0.1}
        pate = PATEClassifier(DecisionTreeClassifier(max_depth=3), **settings, random_state=0)
        pate.fit(X[:1700], y[:1700], public=X[1700:])
        made[n_classes] = pate, X[1700:], y[1700:], z[1700:]
    return made


@pytest.mark.parametrize("labels", ["soft", "hard"])
def test_tables_agree_with_a_slow_version(ensembles, labels):
    pate, X, y, z = ensembles[2]
    found = pate_fairness(pate, X, sensitive_features=z, y=y, n_repeats=40, labels=labels, random_state=1)
    # The same noise, one student and one row at a time.
    noise = random_stream(1).spawn(3)[0].generator.standard_normal((40, 200, 2))
    queries, votes = pate._scaled(pate._private.queries), pate._private.votes
    own = pate.teacher_votes(X)

    def targets(counts):
        if labels == "hard":
            return np.eye(2)[counts.argmax(axis=1)]
        shares = counts / 30
        return shares + (1 - shares.sum(axis=1, keepdims=True)) / 2

    scaled = pate.student_[0].transform(X)
    thetas = [solve_students(queries, targets(votes + found.noise_scale * one)[None], 0.1)[0] for one in noise]
    clean = solve_students(queries, targets(votes)[None], 0.1)[0]
    truth = own / 30 if labels == "soft" else np.eye(2)[own.argmax(axis=1)]

    def loss(theta, goal):
        return -(goal * np.log(student_probabilities(theta[None], scaled)[0])).sum(axis=1)

    risk = np.mean([loss(theta, truth) - loss(clean, truth) for theta in thetas], axis=0)
    np.testing.assert_allclose(found.rows["risk"], risk, atol=1e-7)
    by_group = {g: risk[z == g].mean() for g in ("few", "many")}
    assert found.groups["risk"].to_dict() == pytest.approx(by_group)
    assert found.gap == pytest.approx(abs(by_group["few"] - by_group["many"]))
    moved = np.mean([np.linalg.norm(theta - clean) for theta in thetas])
    assert found.sensitivity["mean"] == pytest.approx(moved)
    right = np.mean([student_probabilities(t[None], scaled)[0].argmax(axis=1) == y for t in thetas])
    assert found.performance.loc["accuracy", "private"] == pytest.approx(right)
    entropy = np.mean([loss(theta, np.eye(2)[y]).mean() for theta in thetas])
    assert found.performance.loc["cross_entropy", "private"] == pytest.approx(entropy)
    rho = spearmanr(found.rows["norm"], risk)[0]
    assert found.correlations.loc[("norm", "risk"), "rho"] == pytest.approx(rho)
    np.testing.assert_allclose(found.groups["accuracy"].to_numpy() @ found.groups["count"] / len(y), right)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("labels", ["hard", "affine", "clip", "simplex"])
@pytest.mark.parametrize(
    ("noise_scale", "regularization"),
    [
        (1.0, 0.01),
        (100.0, 1.0),
        pytest.param(1.0, 1.0, marks=pytest.mark.slow),
        pytest.param(100.0, 0.01, marks=pytest.mark.slow),
    ],
)
def test_sensitivity_and_risk_stay_below_their_bounds(ensembles, n_classes, labels, noise_scale, regularization):
    pate, X, _, z = ensembles[n_classes]
    pate = copy.copy(pate).set_params(postprocess="auto" if labels == "hard" else labels)
    pate._private = ensembles[n_classes][0]._private  # which a copy leaves out
    kind, labels = labels, "hard" if labels == "hard" else "soft"
    found = pate_fairness(
        pate,
        X,
        sensitive_features=z,
        labels=labels,
        noise_scale=noise_scale,
        regularization=regularization,
        n_repeats=60,
        random_state=0,
    )
    moved = found.sensitivity
    assert moved["mean"] - 4 * moved["standard_error"] <= moved["bound"]
    assert moved["mean_square"] * 0.9 <= moved["square_bound"]
    rows = found.rows
    assert (rows["risk"] - 4 * rows["standard_error"] <= rows["risk_bound"]).all()
    assert (rows["risk"] <= rows["risk_bound_measured"] + 1e-12).all()
    bins = found.norm_bins
    assert (bins["sensitivity"] - 4 * bins["standard_error"] <= bins["bound"]).all()
    # A bound that is half of what it should be is caught where the penalty rules the curvature of the objective.
    if noise_scale == 100.0 and regularization == 1.0 and n_classes == 2 and kind in ("hard", "affine"):
        assert moved["mean"] > 0.5 * moved["bound"]


def test_without_noise_nothing_is_lost(ensembles):
    pate, X, y, z = ensembles[2]
    found = pate_fairness(pate, X, sensitive_features=z, y=y, epsilon=math.inf, n_repeats=3)
    assert found.gap == 0
    assert found.label_gap == 0
    assert np.abs(found.rows["risk"]).max() < 1e-9
    assert (found.rows["flipping_probability"] == 0).all()
    assert found.sensitivity["mean"] < 1e-9
    assert found.performance.loc["accuracy", "private"] == pytest.approx(found.performance.loc["accuracy", "clean"])


def test_compares_budgets_and_labels_on_the_same_votes(ensembles):
    pate, X, _, z = ensembles[2]
    made = pate_fairness(pate, X, sensitive_features=z, n_repeats=5)
    assert (made.labels, made.epsilon, made.noise_scale) == ("soft", 8.0, pate.noise_scale_)
    hard = pate_fairness(pate, X, sensitive_features=z, labels="hard", n_repeats=5)
    assert hard.epsilon == 8.0
    assert hard.noise_scale < made.noise_scale
    tight = pate_fairness(pate, X, sensitive_features=z, epsilon=1.0, n_repeats=5)
    assert tight.noise_scale == pytest.approx(74.612633, rel=1e-6)
    given = pate_fairness(pate, X, sensitive_features=z, noise_scale=50.0, n_repeats=5)
    assert given.epsilon == pytest.approx(1.554982, abs=1e-6)
    assert not made.publishable
    assert "publishable=False" in repr(made)


def test_auto_keeps_noise_centred_for_the_logistic_student(ensembles):
    X = ensembles[2][1]
    rows, labels, _ = data()
    noisy = {"n_teachers": 30, "noise_scale": 60.0, "random_state": 0}
    pate = PATEClassifier(DecisionTreeClassifier(max_depth=3), **noisy).fit(rows[:1700], labels[:1700], public=X)
    assert np.abs(pate.student_targets_).max() > 1.25
    pate.set_params(student=LogisticRegression()).fit(rows[:1700], labels[:1700], public=X)
    assert pate.student_targets_.min() == 0.0  # weights of rows are not negative
    assert pate.student_targets_.max() == 1.0


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("n_classes", [2, 3])
def test_analyses_what_the_defaults_chose(n_classes):
    X, y, z = data(n_classes=n_classes)
    groups = np.where(X[:, 2] > 1, "third", z)
    pate = PATEClassifier(random_state=0, max_epochs=5).fit(X[:1500], y[:1500], public=X[1500:])
    found = pate_fairness(pate, X[1500:], sensitive_features=groups[1500:], y=y[1500:], n_repeats=5, random_state=0)
    assert (found.n_teachers, found.n_queries, found.labels) == (pate.n_teachers_, 500, "soft")
    assert found.regularization == pate.student_regularization_
    assert list(found.groups.index) == ["few", "many", "third"]
    assert np.isfinite(found.groups["risk"]).all()
    hard = pate_fairness(pate, X[1500:], sensitive_features=groups[1500:], labels="hard", n_repeats=5)
    assert (hard.n_queries, hard.epsilon) == (500, 1.0)


def test_soft_labels_move_the_student_less(ensembles):
    pate, X, _, z = ensembles[2]
    settings = {"sensitive_features": z, "noise_scale": 15.0, "random_state": 0}
    soft = pate_fairness(pate, X, labels="soft", **settings)
    hard = pate_fairness(pate, X, labels="hard", **settings)
    assert soft.sensitivity["mean"] < hard.sensitivity["mean"]
    assert soft.sensitivity["bias"] < 0.5 * hard.sensitivity["bias"]
    assert soft.gap < hard.gap


def test_confident_labels_leave_rows_out():
    votes = np.array([[30, 0], [16, 14], [0, 30], [29, 1]])
    plan = vote_mechanism("confident", epsilon=1.0, delta=1e-5, noise_scale=0.01, n_asked=4, n_answered=2, n_classes=2,
                      n_voting=30, threshold=20.0, threshold_noise_scale=0.01)  # fmt: skip
    clean, private = draw_targets(votes, plan, 3, "affine", random_stream(0))
    expected = np.array([[2.0, 0.0], [0.0, 0.0], [0.0, 2.0], [0.0, 0.0]])  # two answers, of weight 4 / 2 each
    np.testing.assert_array_equal(clean, expected)
    np.testing.assert_array_equal(private, np.stack([expected] * 3))


@pytest.mark.parametrize("student", ["network", LogisticRegression()])
@pytest.mark.parametrize("labels", ["soft", "hard", "confident"])
def test_other_students_and_confident_labels(student, labels):
    X, y, z = data(900)
    epochs = {"max_epochs": 8} if student == "network" else {}
    pate = PATEClassifier(
        DecisionTreeClassifier(max_depth=3), n_teachers=15, labels=labels, epsilon=20.0, student=student,
        random_state=0, **epochs,
    ).fit(X[:700], y[:700], public=X[700:])  # fmt: skip
    found = pate_fairness(pate, X[700:], sensitive_features=z[700:], y=y[700:], n_repeats=6, random_state=0)
    assert np.isfinite(found.groups.to_numpy(dtype=float)).all()
    assert found.norm_bins.empty
    assert math.isnan(found.sensitivity["bound"])
    assert math.isnan(found.sensitivity["mean"]) == (student != "network")
    still = pate_fairness(pate, X[700:], sensitive_features=z[700:], noise_scale=0.0, n_repeats=3, random_state=0)
    if labels != "confident":
        # A network differs from its clean twin by nothing but the noise.
        assert np.abs(still.rows["risk"]).max() < 1e-6


def test_a_logistic_student_with_confident_labels(ensembles):
    pate, X, _, z = ensembles[2]
    found = pate_fairness(pate, X, sensitive_features=z, labels="confident", n_repeats=10, random_state=0)
    assert found.labels == "confident"
    assert found.sensitivity["mean"] > 0
    assert math.isnan(found.sensitivity["bound"])


def test_groups_may_be_crossed_and_are_named(ensembles):
    pate, X, y, z = ensembles[2]
    both = {"size": z, "half": np.arange(len(z)) % 2}
    found = pate_fairness(pate, X, sensitive_features=both, y=y, n_repeats=3)
    assert found.groups.index.name == "size x half"
    assert ("few", 0) in found.groups.index.tolist()
    assert found.groups["count"].sum() == len(z)


def test_gap_is_between_the_groups_that_are_furthest_apart(ensembles):
    """Of three groups, whose names are given in all orders, so that the extreme ones stand in every place."""
    pate, X, y, z = ensembles[2]
    third = np.where(np.abs(X[:, 0]) < 0.5, "close", z)
    for names in permutations(("a", "b", "c")):
        called = dict(zip(("close", "few", "many"), names))
        groups = np.array([called[name] for name in third])
        found = pate_fairness(pate, X, sensitive_features=groups, y=y, n_repeats=20, random_state=1)
        for gap, risk in ((found.gap, found.groups["risk"]), (found.label_gap, found.groups["label_risk"])):
            assert len(risk) == 3
            assert gap == pytest.approx(risk.max() - risk.min())
            assert gap > 1.01 * np.diff(np.sort(risk)).max()  # a gap between neighbours would be another number


def test_bad_requests_are_named(ensembles):
    pate, X, y, z = ensembles[2]
    with pytest.raises(TypeError, match="pate must be a fitted PATEClassifier; got LogisticRegression"):
        pate_fairness(LogisticRegression(), X, sensitive_features=z)
    with pytest.raises(ValueError, match="teachers are gone"):
        pate_fairness(copy.deepcopy(pate), X, sensitive_features=z)
    for parameters, message in (
        ({"n_repeats": 0}, "n_repeats must be a whole number of at least 1"),
        ({"labels": "loud"}, "labels must be 'soft', 'hard' or 'confident'"),
        ({"epsilon": 1.0, "noise_scale": 1.0}, "not both"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"regularization": 0.0}, "regularization"),
        ({"y": y[:5]}, "y must have one label per row of X_public, 300; got 5"),
        ({"y": y + 7}, "^y "),
        ({"sensitive_features": z[:5]}, "one row per sample"),
        ({"sensitive_features": np.zeros(300)}, "sensitive_features"),
    ):
        with pytest.raises(ValueError, match=message):
            pate_fairness(pate, X, **{"sensitive_features": z, **parameters})
    rows, labels, _ = data(300)
    mute = PATEClassifier(
        DecisionTreeClassifier(), n_teachers=5, epsilon=50.0, student=LinearSVC(), labels="hard", random_state=0
    )
    mute.fit(rows, labels, public=X)
    with pytest.raises(ValueError, match="must have predict_proba"):
        pate_fairness(mute, X, sensitive_features=z)
    own = PATEClassifier(DecisionTreeClassifier(), n_teachers=5, epsilon=50.0, student=LogisticRegression())
    with pytest.raises(ValueError, match="regularization"):
        pate_fairness(own.fit(rows, labels, public=X), X, sensitive_features=z, regularization=0.5)
    one = PATEClassifier(DecisionTreeClassifier(), n_teachers=5, random_state=0).fit(rows, 0 * labels, public=X)
    with pytest.raises(ValueError, match="at least two classes"):
        pate_fairness(one, X, sensitive_features=z)
