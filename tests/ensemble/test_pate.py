"""PATEClassifier: what it releases, what it keeps to itself, and what it refuses."""

import gc
import math
import pickle
import types

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import estimator_checks

from skfairdp import PATEClassifier, PrivacyLedger
from skfairdp.ensemble._students import solve_students, warn_if_nothing_was_learned
from skfairdp.exceptions import BudgetExceededError, PrivacyLeakWarning

TREE = DecisionTreeClassifier(max_depth=3)
#: For tests whose few rows and much noise leave nothing to learn, which a warning says.
NOTHING_LEARNED = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def table(n=600, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    y = np.digitize(X[:, 0] + 0.3 * X[:, 1], np.linspace(-0.5, 0.5, n_classes - 1) if n_classes > 2 else [0.0])
    return X, y


def fitted(X=None, y=None, public=None, **parameters):
    if X is None:
        X, y = table()
    public = table(120, seed=9)[0] if public is None else public
    settings = {"estimator": TREE, "n_teachers": 20, "epsilon": 8.0, "n_queries": 80, "random_state": 0}
    if "noise_scale" in parameters:  # which replaces epsilon
        del settings["epsilon"]
    return PATEClassifier(**{**settings, **parameters}).fit(X, y, public=public)


@pytest.mark.parametrize("labels", ["soft", "hard"])
def test_without_noise_the_student_learns_clean_votes(labels):
    public = table(80, seed=9)[0]
    settings = {"public": public, "labels": labels, "scale": "public", "student_regularization": 0.1}
    pate = fitted(epsilon=math.inf, **settings)
    votes = pate.teacher_votes(public)
    targets = votes / 20 if labels == "soft" else np.eye(2)[votes.argmax(axis=1)]
    scaled = (public - public.mean(axis=0)) / public.std(axis=0)
    theta = solve_students(scaled, targets[None], 0.1)[0]
    np.testing.assert_allclose(pate.student_[-1].theta_, theta, atol=1e-8)
    assert pate.privacy_.epsilon == math.inf
    assert pate.noise_scale_ == 0
    noisy = fitted(**settings)
    assert np.abs(noisy.student_[-1].theta_ - theta).max() > 1e-3


def test_predictions_are_the_students_and_cost_nothing():
    pate = fitted()
    X, y = table(500, seed=3)
    with PrivacyLedger() as ledger:
        assert pate.score(X, y) > 0.85
        np.testing.assert_array_equal(pate.predict_proba(X), pate.student_.predict_proba(X))
        np.testing.assert_array_equal(pate.predict(X), pate.student_.predict(X))
    assert len(ledger) == 0


def test_every_fit_is_charged_before_noise_is_drawn():
    X, y = table()
    public = table(120, seed=9)[0]
    pate = PATEClassifier(TREE, n_teachers=20, epsilon=1.0, random_state=0)
    with PrivacyLedger() as ledger:
        pate.fit(X, y, public=public).fit(X, y, public=public)
    assert len(ledger) == 2
    unfitted = clone(pate)
    with PrivacyLedger(0.5, 1e-5), pytest.raises(BudgetExceededError):
        unfitted.fit(X, y, public=public)
    assert not hasattr(unfitted, "student_")
    with pytest.raises(sklearn.exceptions.NotFittedError):
        unfitted.predict(X)


@NOTHING_LEARNED
def test_the_guarantee_says_whom_it_covers():
    privacy = fitted(epsilon=1.0).privacy_
    assert privacy.epsilon == 1.0
    assert privacy.delta == 1e-5
    assert "differ in one record" in privacy.neighbours
    scope = " ".join(privacy.does_not_cover)
    assert "public rows" in scope
    assert "class labels occur" in scope
    assert privacy.reproducible
    known = fitted(epsilon=1.0, classes=[0, 1], random_state=None).privacy_
    assert "class labels occur" not in " ".join(known.does_not_cover)
    assert not known.reproducible


def test_sets_rows_aside_without_public_rows():
    X, y = table()
    with pytest.warns(PrivacyLeakWarning, match="150 of the 600 rows of X are set aside as public") as caught:
        pate = PATEClassifier(TREE, n_teachers=20, epsilon=8.0, random_state=0).fit(X, y)
    assert caught[0].filename == __file__  # the line that called fit
    assert any("150 of the 600 rows" in line for line in pate.privacy_.does_not_cover)
    assert pate.score(X, y) > 0.85
    np.testing.assert_allclose(pate.student_[0].mean_, X[pate.query_indices_].mean(axis=0))


def test_labels_of_rows_set_aside_are_not_used():
    X, y = table()
    with pytest.warns(PrivacyLeakWarning):
        first = PATEClassifier(TREE, n_teachers=20, epsilon=8.0, random_state=0).fit(X, y)
    y[first.query_indices_] = 1 - y[first.query_indices_]
    with pytest.warns(PrivacyLeakWarning):
        second = PATEClassifier(TREE, n_teachers=20, epsilon=8.0, random_state=0).fit(X, y)
    np.testing.assert_array_equal(first.student_targets_, second.student_targets_)


def test_a_seed_reproduces_and_none_does_not():
    first, again = fitted(), fitted()
    np.testing.assert_array_equal(first.student_targets_, again.student_targets_)
    one, two = fitted(random_state=None), fitted(random_state=None)
    assert not np.array_equal(one.student_targets_, two.student_targets_)


@NOTHING_LEARNED
@pytest.mark.parametrize("estimator", [None, GaussianNB(), TREE])
@pytest.mark.parametrize("labels", ["soft", "hard", "confident"])
def test_teachers_with_missing_classes_or_few_rows(estimator, labels):
    X, y = table(30, n_classes=3)
    parameters = {"estimator": estimator, "labels": labels, "epsilon": 50.0}
    parameters |= {"max_epochs": 5} if estimator is None else {}
    parameters |= {"threshold": 0.0} if labels == "confident" else {}
    for n_teachers in (1, 7, 29, 30, 100):
        pate = fitted(X, y, n_teachers=n_teachers, **parameters)
        votes = pate.teacher_votes(X)
        assert pate.n_voting_ == min(30, n_teachers)
        assert (votes.sum(axis=1) == pate.n_voting_).all()  # teachers without rows abstain
        assert pate.predict_proba(X).shape == (30, 3)
    assert (votes == votes[0]).all()  # one row each: constant votes


def test_no_record_is_with_two_teachers():
    """One record changes one vote, because one teacher alone has seen it; and no record is wasted."""
    seen = []

    class Remembering(DecisionTreeClassifier):
        def fit(self, X, y, **rest):
            seen.append(np.asarray(X)[:, 0].tolist())
            return super().fit(X, y, **rest)

    X, y = table(600)
    fitted(X, y, estimator=Remembering(max_depth=3), n_teachers=12, scale=None)
    rehearsed, *trained = seen  # public rows come first, to see whether the estimator works
    assert not set(rehearsed) & set(X[:, 0].tolist())
    assert len(trained) == 12
    assert sorted(value for rows in trained for value in rows) == sorted(X[:, 0].tolist())


def test_one_class_costs_nothing():
    X, _ = table(30)
    for labels in ("soft", "hard", "confident"):
        pate = fitted(X, np.full(30, "only"), labels=labels)
        assert (pate.predict(X) == "only").all()
        np.testing.assert_array_equal(pate.predict_proba(X), np.ones((30, 1)))
        assert pate.privacy_.epsilon == 0


def test_classes_can_be_fixed_beforehand():
    X, y = table()
    pate = fitted(X, y, classes=[2, 1, 0])
    assert pate.classes_.tolist() == [0, 1, 2]
    assert pate.predict_proba(X).shape == (600, 3)
    with pytest.raises(ValueError, match=r"y must hold the labels named in classes, \[0, 5\]; it also holds \[1\]"):
        fitted(X, y, classes=[0, 5])


@pytest.mark.slow
def test_parallel_teachers_equal_sequential_ones():
    forest = DecisionTreeClassifier(max_features=1, max_depth=2)
    one, two = fitted(estimator=forest), fitted(estimator=forest, n_jobs=2)
    np.testing.assert_array_equal(one.student_targets_, two.student_targets_)


def test_teachers_have_seeds_of_their_own():
    X, y = table()
    pate = fitted(X, y, estimator=make_pipeline(FunctionTransformer(), DecisionTreeClassifier()))
    seeds = {model[-1].random_state for model in pate._private.teachers.models}
    assert len(seeds) == 20


@pytest.mark.parametrize("student", ["network", LogisticRegression(), KNeighborsClassifier(3)])
@pytest.mark.parametrize("labels", ["soft", "hard"])
def test_other_students(student, labels):
    X, y = table(500, seed=3)
    if labels == "soft" and isinstance(student, KNeighborsClassifier):
        with pytest.raises(ValueError, match=r"student must accept sample_weight.*KNeighborsClassifier"):
            fitted(student=student, labels=labels)
        return
    pate = fitted(student=student, labels=labels, epsilon=20.0)
    assert pate.score(X, y) > 0.8
    np.testing.assert_allclose(pate.predict_proba(X).sum(axis=1), 1)


def test_classifier_learns_soft_labels_by_weight():
    pate = fitted(student=LogisticRegression(C=1.0, tol=1e-10, max_iter=1000), scale=None, epsilon=math.inf)
    targets = pate.student_targets_
    rows = table(120, seed=9)[0][pate.query_indices_]
    expected = LogisticRegression(C=1.0, tol=1e-10, max_iter=1000).fit(
        np.repeat(rows, 2, axis=0), np.tile([0, 1], 80), sample_weight=targets.ravel()
    )
    np.testing.assert_allclose(pate.student_[-1].coef_, expected.coef_, atol=1e-6)


@NOTHING_LEARNED
def test_a_student_that_saw_one_class_is_constant():
    X, y = table(30)
    pate = fitted(X, y, estimator=None, n_teachers=1, labels="hard", epsilon=math.inf, max_epochs=1, classes=[0, 1, 7],
                  student=LogisticRegression(), public=np.zeros((3, 4)))  # fmt: skip
    assert pate.predict_proba(X).shape == (30, 3)
    assert len(np.unique(pate.predict(X))) == 1


def test_a_student_without_probabilities_offers_none():
    from sklearn.svm import LinearSVC

    pate = fitted(student=LinearSVC())
    assert not hasattr(pate, "predict_proba")
    assert set(pate.predict(table()[0])) <= {0, 1}


def test_confident_labels_stop_at_the_limit():
    X, y = table(2000)
    public = table(400, seed=9)[0]
    pate = fitted(
        X, y, public, labels="confident", n_queries=50, noise_scale=1.0, threshold=17.0, threshold_noise_scale=1.0
    )
    assert len(pate.query_indices_) == 50
    agreement = pate.teacher_votes(public).max(axis=1)
    assert agreement[pate.query_indices_].mean() > agreement.mean() + 0.5
    private = pate._private
    assert private.mechanism.n_asked == 400
    assert private.mechanism.n_answered == 50
    with pytest.raises(ValueError, match=r"no query passed threshold=1000 .* The budget is spent"):
        fitted(X, y, public, labels="confident", threshold=1000.0)


def test_data_dependent_privacy_is_not_publishable():
    X, y = table(5000)
    hard = fitted(X, y, n_teachers=100, labels="hard", noise_scale=12.0)
    cost = hard.data_dependent_privacy()
    assert cost.epsilon < 0.5 * hard.privacy_.epsilon
    assert cost.data_independent_epsilon == hard.privacy_.epsilon
    assert not cost.publishable
    confident = fitted(X, y, n_teachers=100, labels="confident", noise_scale=12.0, threshold_noise_scale=12.0)
    assert confident.data_dependent_privacy().epsilon < confident.privacy_.epsilon
    with pytest.raises(ValueError, match="labels='hard' and labels='confident' only"):
        fitted(X, y).data_dependent_privacy()
    assert fitted(X, y, labels="hard", epsilon=math.inf).data_dependent_privacy().epsilon == math.inf


def _arrays(root):
    """Walk through everything that can be reached, and give the arrays."""
    seen, waiting = set(), [root]
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen or isinstance(thing, types.ModuleType | type | types.FunctionType):
            continue
        seen.add(id(thing))
        if isinstance(thing, np.ndarray) and thing.dtype != object:
            yield thing
        waiting.extend(gc.get_referents(thing))


def _holds(root, row):
    width = len(row)
    for array in _arrays(root):
        flat = np.asarray(array, dtype=float).reshape(-1) if array.dtype.kind in "fiu" else np.zeros(0)
        for start in np.flatnonzero(np.isclose(flat, row[0], rtol=1e-6)):
            if (
                np.allclose(flat[start : start + width], row[: len(flat) - start], rtol=1e-6)
                and start + width <= flat.size
            ):
                return True
    return False


@NOTHING_LEARNED
@pytest.mark.parametrize("scale", ["public", None])
@pytest.mark.parametrize("estimator", [KNeighborsClassifier(1), None])
def test_no_private_row_survives_in_a_pickle(scale, estimator):
    X, y = table(60)
    epochs = {"max_epochs": 2} if estimator is None else {}
    pate = fitted(X, y, estimator=estimator, scale=scale, n_teachers=5, **epochs)
    scaled = X if scale is None else (X - pate.student_[0].mean_) / pate.student_[0].scale_
    if estimator is not None:  # the search finds what is there: teachers that remember their rows
        assert _holds(pate.__dict__, scaled[7])
        assert scaled[7].tobytes() in pickle.dumps(pate._private.teachers)
    for thing in (pate, pate.student_):
        data = pickle.dumps(thing)
        copy = pickle.loads(data)
        for row in (*X, *scaled):
            assert row.tobytes() not in data
            assert row.astype(np.float32).tobytes() not in data
        for i in (0, 7, 31):
            assert not _holds(copy.__dict__, X[i])
            assert not _holds(copy.__dict__, scaled[i])
    copy = pickle.loads(pickle.dumps(pate))
    np.testing.assert_array_equal(copy.predict(X), pate.predict(X))
    with pytest.raises(ValueError, match="the teachers are gone"):
        copy.teacher_votes(X)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("scale", ["public", None])
def test_frames_in_and_a_student_that_knows_the_columns(frame, scale):
    X, y = table()
    names = ["a", "b", "c", "d"]
    rows = frame({name: X[:, j] for j, name in enumerate(names)})
    pate = fitted(rows, y, public=rows[:100], scale=scale)
    assert pate.feature_names_in_.tolist() == names
    np.testing.assert_array_equal(pate.predict(rows), pate.student_.predict(rows))
    with pytest.raises(ValueError, match="public must be rows with the features of X"):
        fitted(rows, y, public=frame(dict.fromkeys("wxyz", X[:9, 0])))


def test_pipeline_and_grid_search_route_public_rows():
    X, y = table()
    public = table(120, seed=9)[0]
    with sklearn.config_context(enable_metadata_routing=True):
        pate = PATEClassifier(TREE, n_teachers=10, epsilon=8.0, random_state=0).set_fit_request(public=True)
        pipeline = make_pipeline(FunctionTransformer(), pate, transform_input=["public"])
        search = GridSearchCV(pipeline, {"pateclassifier__labels": ["soft", "hard"]}, cv=2)
        search.fit(X, y, public=public)
    assert search.best_score_ > 0.8
    assert search.best_estimator_[-1].query_indices_.max() > 100  # of the public rows, all of them


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"epsilon": 0.0}, "epsilon must be a number greater than 0"),
        ({"delta": 0.0}, "delta must be a probability"),
        ({"delta": 1e-300}, "delta"),
        ({"noise_scale": 1e-4}, "noise_scale must be 0 or a number from"),
        ({"epsilon": 1e-9, "delta": 1e-12}, r"epsilon and delta need noise|delta"),
        ({"labels": "loud"}, "The 'labels' parameter"),
        ({"n_teachers": 0}, "The 'n_teachers' parameter"),
        ({"student": "forest"}, "The 'student' parameter"),
        (
            {"hidden_sizes": (8, 0), "student": "network"},
            r"hidden_sizes\[1\] must be a whole number of at least 1; got 0",
        ),
        ({"student": LogisticRegression(), "postprocess": "affine"}, "postprocess='affine' gives negative weights"),
        ({"labels": "confident", "threshold_noise_scale": 0.5}, "threshold_noise_scale"),
        ({"student_regularization": 0.0}, "The 'student_regularization' parameter"),
    ],
)
def test_bad_parameters_are_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        fitted(**parameters)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"threshold": 5.0}, "threshold"),
        ({"labels": "hard", "threshold_noise_scale": 5.0}, "threshold_noise_scale"),
        ({"labels": "confident", "postprocess": "simplex"}, "postprocess"),
        ({"epsilon": 8.0, "noise_scale": 5.0}, "epsilon"),
        ({"public_fraction": 0.5}, "public_fraction"),
        (
            {"student": LogisticRegression(), "student_regularization": 0.5},
            "student_regularization",
        ),
        ({"max_epochs": 5}, "max_epochs"),
        ({"hidden_sizes": (9,)}, "hidden_sizes"),
    ],
)
def test_refuses_parameters_that_do_nothing(parameters, message):
    with PrivacyLedger() as ledger:
        with pytest.raises(ValueError, match=message):
            fitted(**parameters)
        assert len(ledger) == 0


def test_number_of_teachers_fits_the_table():
    public = table(120, seed=9)[0]
    for n_rows, expected in ((2, 1), (30, 10), (300, 20), (600, 20)):
        pate = fitted(*table(n_rows), public=public, n_teachers="auto", epsilon=math.inf, classes=[0, 1])
        assert pate.n_voting_ == pate.n_teachers_ == expected
    # A teacher with one row knows one answer, and all of them together know no more.
    X, y = table(60)
    test = table(500, seed=3)
    assert fitted(X, y, n_teachers="auto", epsilon=50.0).score(*test) > 0.75


@NOTHING_LEARNED
def test_what_is_chosen_does_not_depend_on_rows():
    auto = {"n_teachers": "auto", "n_queries": "auto", "epsilon": 1.0, "classes": [0, 1], "random_state": 1}
    X, y = table()
    other, seldom = np.random.default_rng(1).standard_cauchy(X.shape), (np.arange(len(y)) < 60).astype(int)
    chosen = [
        (pate.n_teachers_, pate.n_queries_, pate.labels_, pate.student_regularization_, pate.noise_scale_)
        for pate in (fitted(X, y, **auto), fitted(other, seldom, public=-table(120, seed=9)[0], **auto))
    ]
    assert chosen[0] == chosen[1]
    assert chosen[0][:3] == (87, 120, "soft")


@NOTHING_LEARNED
def test_attributes_tell_what_was_chosen():
    given = fitted(student_regularization=0.5)
    assert (given.n_teachers_, given.n_queries_, given.student_regularization_) == (20, 80, 0.5)
    few = fitted(n_queries="auto", labels="confident", threshold=0.0, public=table(300, seed=9)[0])
    assert few.n_queries_ == 200  # right one by one or not at all
    priced = fitted(n_queries="auto", noise_scale=30.0, public=table(300, seed=9)[0])
    assert priced.n_queries_ == 200  # every query adds to the price
    assert fitted(n_queries="auto", public=table(300, seed=9)[0]).n_queries_ == 300
    blunt = fitted(student=KNeighborsClassifier(3))
    assert (blunt.labels_, blunt.student_regularization_) == ("hard", None)
    assert fitted(student=LogisticRegression()).labels_ == "soft"


@pytest.mark.filterwarnings("ignore::skfairdp.exceptions.PrivacyLeakWarning")
@pytest.mark.parametrize("n_classes", [2, 4])
def test_defaults_at_the_same_price_beat_fixed_numbers(n_classes):
    (X, y), (X_test, y_test) = table(9000, n_classes), table(2000, n_classes, seed=3)
    rng = np.random.default_rng(1)  # columns that say nothing give noise room
    X, X_test = (np.column_stack([rows, rng.normal(size=(len(rows), 16))]) for rows in (X, X_test))
    chosen = PATEClassifier(TREE, random_state=0).fit(X, y)
    fixed = {"n_teachers": 150, "n_queries": 200, "student_regularization": 0.1}
    before = PATEClassifier(TREE, **fixed, random_state=0).fit(X, y)
    assert chosen.privacy_.epsilon == before.privacy_.epsilon == 1.0
    assert chosen.score(X_test, y_test) > before.score(X_test, y_test)


@NOTHING_LEARNED
def test_values_far_out_are_moved_in():
    public = table(400, seed=9)[0]
    public[0] = 1000.0
    pate = fitted(public=public)
    rows = np.vstack([public.mean(axis=0) + 1e6, public.mean(axis=0)])
    np.testing.assert_allclose(pate.student_[0].transform(rows), [[3.0] * 4, [0.0] * 4], atol=1e-9)
    unmoved = fitted(public=public, scale="public").student_[0].transform(rows)
    np.testing.assert_allclose(unmoved[0], 1e6 / public.std(axis=0))


@pytest.mark.parametrize("labels", ["soft", "hard"])
@pytest.mark.parametrize("student", ["logistic", "network", LogisticRegression()])
def test_warns_of_a_student_that_learned_nothing(labels, student):
    X, _ = table()
    lonely = np.repeat([0, 1], [590, 10])  # nine in ten teachers know nothing else
    with pytest.warns(ConvergenceWarning, match=r"says 0 about each of the 80 public rows.* for 20 teachers") as caught:
        fitted(X, lonely, labels=labels, student=student, epsilon=math.inf)
    assert caught[0].filename == __file__


def test_warns_of_a_student_no_better_than_a_constant():
    warn_if_nothing_was_learned(np.array([1, 0, 1]), np.eye(2)[[1, 0, 1]], np.array([0, 1]), None)  # right: silent
    made = fitted().mechanism_
    with pytest.warns(ConvergenceWarning, match=r"agrees with 50% of the noisy labels .* no more .* \(75%\)"):
        warn_if_nothing_was_learned(np.array([1, 0, 0, 0]), np.eye(2)[[1, 1, 1, 0]], np.array([0, 1]), made)
    answers = np.array(["a", "b", "a", "a"])
    with pytest.warns(ConvergenceWarning, match="agrees with 50%"):
        warn_if_nothing_was_learned(answers, np.eye(2)[[1, 1, 1, 0]][::-1], np.array(["a", "b"]), made)


class Told(PATEClassifier):
    """Claims a good score, so that scikit-learn's checks ask for one."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = False
        return tags


@pytest.mark.filterwarnings("ignore::skfairdp.exceptions.PrivacyLeakWarning")
@pytest.mark.parametrize(
    "parameters",
    [
        {"n_teachers": 20, "epsilon": 8.0},
        {"estimator": TREE, "n_teachers": 10, "epsilon": 8.0, "labels": "hard", "student": LogisticRegression()},
        {"n_teachers": 20, "epsilon": 30.0, "labels": "confident", "threshold": 1.0, "student": "network"},
    ],
    ids=["soft", "hard", "confident"],
)
def test_scores_well_where_noise_is_small(parameters):
    estimator_checks.check_classifiers_train("PATEClassifier", Told(**parameters))


def test_bad_rows_are_named():
    with pytest.raises(ValueError, match="public"):
        fitted(public=np.zeros((9, 3)))
    X, y = table()
    X[0, 0] = np.nan
    with pytest.raises(ValueError, match="Input X contains NaN"):
        fitted(X, y)
