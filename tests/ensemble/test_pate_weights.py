"""Weights of rows and classes: they reach the teacher that holds the row, and nobody else."""

import numpy as np
import pytest
import sklearn
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from skfairdp import PATEClassifier
from skfairdp.ensemble._teachers import weigh_rows

TREE = DecisionTreeClassifier(max_depth=3)
TEACHERS = pytest.mark.parametrize("estimator", [None, TREE, make_pipeline(StandardScaler(), LogisticRegression())])


def table(n=600, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, (X[:, 0] > 0).astype(int)


def fit(X, y, estimator=TREE, sample_weight=None, **parameters):
    settings = {"n_teachers": 20, "epsilon": 20.0, "n_queries": 80, "random_state": 0}
    pate = PATEClassifier(estimator, **{**settings, **parameters})
    return pate.fit(X, y, public=table(120, 9)[0], sample_weight=sample_weight)


@TEACHERS
def test_rows_of_weight_zero_teach_nothing(estimator):
    X, y = table()
    wrong = np.arange(600) % 3 == 0
    y_wrong = np.where(wrong, 1 - y, y)
    rows = table(300, 3)[0]
    right = fit(X, y, estimator, (~wrong).astype(float)).teacher_votes(rows)
    np.testing.assert_array_equal(fit(X, y_wrong, estimator, (~wrong).astype(float)).teacher_votes(rows), right)
    assert (fit(X, y_wrong, estimator).teacher_votes(rows) != right).any()


@TEACHERS
def test_equal_weights_change_nothing(estimator):
    X, y = table()
    rows = table(300, 3)[0]
    plain = fit(X, y, estimator).teacher_votes(rows)
    np.testing.assert_array_equal(fit(X, y, estimator, np.ones(600)).teacher_votes(rows), plain)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_weights_are_passed_whatever_their_values():
    """One weight that becomes 1.1 must not decide how the other teachers are trained."""
    given = []

    class Noting(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            given.append(sample_weight)
            return super().fit(X, y, sample_weight)

    X = np.random.default_rng(0).normal(size=(60, 2))
    y = (X[:, 0] > 0).astype(int)
    model = PATEClassifier(Noting(), n_teachers=4, epsilon=8.0)
    for weight, passed in ((np.ones(60), True), (np.r_[1.1, np.ones(59)], True), (None, False)):
        given.clear()
        model.fit(X, y, public=X + 0.5, sample_weight=weight)
        assert len(given) >= 4
        assert all((one is not None) == passed for one in given)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 1.0, 1: 5.0}])
@TEACHERS
def test_replacing_a_weighted_record_changes_one_vote(estimator, class_weight):
    """The neighbour's record has other features, another label and another weight; also none, or no rival."""
    rng = np.random.default_rng(0)
    X, y, rows = rng.normal(size=(120, 3)), rng.integers(0, 2, 120), rng.normal(size=(60, 3))
    weight = rng.integers(0, 3, 120).astype(float)
    weight[17] = 2.0
    before = fit(X, y, estimator, weight, class_weight=class_weight, classes=[0, 1]).teacher_votes(rows)
    for other in (0.0, 1e6):
        X_other, y_other, weight_other = X.copy(), y.copy(), weight.copy()
        X_other[17], y_other[17], weight_other[17] = rows[0], 1 - y[17], other
        moved = fit(X_other, y_other, estimator, weight_other, class_weight=class_weight, classes=[0, 1])
        assert np.abs(moved.teacher_votes(rows) - before).max() <= 1


def test_balance_over_all_rows_would_change_many_weights():
    """The planted fault: frequencies of all rows together let one label reach every teacher."""
    y = np.repeat([0, 1], [30, 10])
    parts = np.array_split(np.random.default_rng(0).permutation(40), 5)
    changed = y.copy()
    changed[parts[2][0]] = 1 - changed[parts[2][0]]
    own, other = (weigh_rows(labels, parts, None, "balanced") for labels in (y, changed))
    assert set(np.flatnonzero(own != other)) <= set(parts[2])
    together, other = (weigh_rows(labels, [np.arange(40)], None, "balanced") for labels in (y, changed))
    assert (together != other).all()


def test_balanced_parts_have_equal_classes():
    y, weight = np.array([0, 0, 0, 1, 2, 2]), np.array([1.0, 2.0, 0.0, 1.0, 4.0, 1.0])
    found = weigh_rows(y, [np.array([0, 1, 2, 3]), np.array([4, 5])], weight, "balanced")
    np.testing.assert_allclose(found, [2 / 3, 4 / 3, 0, 2, 4, 1])
    assert weigh_rows(y, [np.arange(6)], None, None) is None


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@TEACHERS
def test_class_weight_moves_the_votes(estimator):
    X, y = table()
    noisy = np.where(np.random.default_rng(1).random(600) < 0.3, 1 - y, y)
    rows = table(300, 3)[0]
    share = [
        fit(X, noisy, estimator, class_weight=weight).teacher_votes(rows)[:, 1].mean()
        for weight in ({0: 20.0, 1: 1.0}, None, {0: 1.0, 1: 20.0})
    ]
    assert share[0] < share[1] - 1
    assert share[2] > share[1] + 1


def test_teacher_whose_rows_weigh_nothing_abstains():
    X, y = table(60)
    weight = np.zeros(60)
    weight[:10] = 1.0
    pate = fit(X, y, sample_weight=weight, n_teachers=30)
    assert pate.n_voting_ == 30  # the number of teachers must not tell about weights
    assert (pate.teacher_votes(X).sum(axis=1) <= 10).all()


def test_labels_of_weight_zero_are_no_classes():
    X, y = table(60)
    y[:5] = 7
    weight = np.ones(60)
    weight[:5] = 0
    assert fit(X, y, sample_weight=weight, n_teachers=5).classes_.tolist() == [0, 1]
    assert fit(X, y, sample_weight=weight, n_teachers=5, classes=[0, 1]).classes_.tolist() == [0, 1]


def test_weights_are_routed():
    X, y = table()
    with sklearn.config_context(enable_metadata_routing=True):
        pate = PATEClassifier(TREE, n_teachers=10, epsilon=20.0, random_state=0)
        pate.set_fit_request(public=True, sample_weight=True).set_score_request(sample_weight=False)
        search = GridSearchCV(pate, {"class_weight": [None, "balanced"]}, cv=2)
        search.fit(X, y, public=table(120, 9)[0], sample_weight=np.arange(600) % 4)
    assert search.best_score_ > 0.8


def test_refuses_bad_weights():
    X, y = table()
    for weight, message in (
        (np.zeros(600), "zero"),
        (-np.ones(600), "Negative values"),
        (np.ones(5), "sample_weight"),
    ):
        with pytest.raises(ValueError, match=message):
            fit(X, y, sample_weight=weight)
    for given in ({"sample_weight": np.ones(600)}, {"class_weight": "balanced"}):
        for teacher in (KNeighborsClassifier(), make_pipeline(StandardScaler(), KNeighborsClassifier())):
            with pytest.raises(ValueError, match="estimator"):
                fit(X, y, teacher, **given)
    with pytest.raises(ValueError, match="class_weight"):
        fit(X, y, class_weight="fair")


class FailsOnRareClasses(LogisticRegression):
    """Raises where a class has fewer than three rows, as cross-validated calibration does."""

    def fit(self, X, y, sample_weight=None):
        if np.bincount(y).min() < 3:
            raise ValueError("too few rows of a class")
        return super().fit(X, y, sample_weight)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_teacher_that_fails_abstains():
    """Whether a teacher fails depends on its rows: an error would reveal them, and no epsilon holds for it."""
    X, y = table(100)
    whole = fit(X, y, FailsOnRareClasses(), n_teachers=5, classes=[0, 1]).teacher_votes(X)
    assert (whole.sum(axis=1) == 5).all()
    rare = np.where(np.arange(100) < 7, 1, 0)
    failed = fit(X, rare, FailsOnRareClasses(), n_teachers=5, classes=[0, 1]).teacher_votes(X)
    assert (failed.sum(axis=1) < 5).all()


def test_errors_that_do_not_depend_on_the_rows_are_raised():
    class Broken(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            raise TypeError("this estimator never works")

    X, y = table(100)
    with pytest.raises(TypeError, match="never works"):
        fit(X, y, Broken(), n_teachers=5)
