"""Scorers inside scikit-learn: they get the groups, or refuse with a sentence."""

import copy
import functools
import inspect
import pickle
import pydoc

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import check_scoring, make_scorer
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV, cross_val_score, cross_validate
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import skfairdp.metrics._scorers as scorers
from skfairdp.exceptions import BudgetExceededError, SensitiveFeaturesNotRoutedError
from skfairdp.metrics import (
    accuracy_gap,
    accuracy_gap_scorer,
    demographic_parity_gap,
    grms,
    grms_scorer,
    make_code_length_scorer,
    make_fairness_scorer,
    make_leakage_scorer,
    tpr_gap,
    tpr_gap_scorer,
    worst_group_accuracy,
    worst_group_accuracy_scorer,
)
from skfairdp.model_selection import route_sensitive_features

READY = {
    tpr_gap_scorer: (tpr_gap, -1),
    grms_scorer: (grms, -1),
    accuracy_gap_scorer: (accuracy_gap, -1),
    worst_group_accuracy_scorer: (worst_group_accuracy, 1),
}
SCORINGS = {
    "one": tpr_gap_scorer,
    "several": {"accuracy": "accuracy", "gap": tpr_gap_scorer},
    "one in a dict": {"gap": tpr_gap_scorer},
    "made": make_fairness_scorer(demographic_parity_gap, greater_is_better=False),
    "a probe": make_leakage_scorer(representation="output"),
}
GRID = {"C": [0.01, 1.0]}


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.fixture
def no_routing():
    with sklearn.config_context(enable_metadata_routing=False):
        yield


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    n = 300
    groups = rng.choice(["a", "b", "c"], n)
    X = rng.normal(size=(n, 4)) + (groups == "a")[:, None]
    y = (X[:, 0] + 0.5 * rng.normal(size=n) > 0.5).astype(int)
    return X, y, groups


def search(scoring, **kwargs):
    refit = "gap" if isinstance(scoring, dict) else True
    return GridSearchCV(LogisticRegression(), GRID, scoring=scoring, cv=3, refit=refit, **kwargs)


# --- with routing --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scorer", READY, ids=repr)
def test_a_ready_scorer_is_the_metric_on_held_out_rows(scorer, data, routing):
    X, y, groups = data
    metric, sign = READY[scorer]
    model = LogisticRegression().fit(X[:200], y[:200])
    value = sign * metric(y[200:], model.predict(X[200:]), sensitive_features=groups[200:])
    assert scorer(model, X[200:], y[200:], sensitive_features=groups[200:]) == value
    assert isinstance(scorer, type(make_scorer(metric)))
    result = cross_validate(model, X, y, scoring=scorer, params={"sensitive_features": groups}, return_indices=True)
    for k, (train, test) in enumerate(zip(result["indices"]["train"], result["indices"]["test"])):
        predicted = clone(model).fit(X[train], y[train]).predict(X[test])
        assert result["test_score"][k] == sign * metric(y[test], predicted, sensitive_features=groups[test])


@pytest.mark.parametrize("n_jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("columns", [1, 2])
def test_grid_search_with_several_metrics(n_jobs, columns, data, routing):
    X, y, groups = data
    if columns == 2:
        groups = pd.DataFrame({"first": groups, "second": np.arange(len(y)) % 2})
    scoring = {"accuracy": "accuracy", "gap": accuracy_gap_scorer, "worst": worst_group_accuracy_scorer}
    found = search(scoring, n_jobs=n_jobs).fit(X, y, sensitive_features=groups)
    assert np.isfinite(found.cv_results_["mean_test_gap"]).all()
    assert (found.cv_results_["mean_test_gap"] <= 0).all()
    assert (found.cv_results_["mean_test_worst"] <= found.cv_results_["mean_test_accuracy"]).all()
    assert found.best_index_ == found.cv_results_["mean_test_gap"].argmax()
    assert found.score(X, y, sensitive_features=groups) == accuracy_gap_scorer(
        found.best_estimator_, X, y, sensitive_features=groups
    )


def test_other_searches_and_helpers(data, routing):
    X, y, groups = data
    randomized = RandomizedSearchCV(LogisticRegression(), GRID, n_iter=2, scoring=tpr_gap_scorer, cv=3)
    assert np.isfinite(randomized.fit(X, y, sensitive_features=groups).best_score_)
    scores = cross_val_score(
        LogisticRegression(), X, y, scoring=grms_scorer, params={"sensitive_features": pd.Series(groups)}
    )
    assert np.isfinite(scores).all()
    many = check_scoring(LogisticRegression(), {"score": "accuracy", "gap": tpr_gap_scorer})
    model = LogisticRegression().fit(X, y)
    assert set(many(model, X, y, sensitive_features=groups)) == {"score", "gap"}


def test_sample_weight_can_be_requested_on_a_copy(data, routing):
    X, y, groups = data
    weight = np.random.default_rng(1).random(len(y))
    scorer = copy.deepcopy(tpr_gap_scorer).set_score_request(sample_weight=True)
    model = LogisticRegression().set_fit_request(sample_weight=False)
    metadata = {"sensitive_features": groups, "sample_weight": weight}
    weighted = cross_val_score(model, X, y, scoring=scorer, params=metadata)
    plain = cross_val_score(model, X, y, scoring=tpr_gap_scorer, params={"sensitive_features": groups})
    assert not np.allclose(weighted, plain)
    direct = scorer(model.fit(X, y), X, y, sensitive_features=groups, sample_weight=weight)
    assert direct == -tpr_gap(y, model.predict(X), sensitive_features=groups, sample_weight=weight)


@pytest.mark.parametrize("scorer", [tpr_gap_scorer, make_leakage_scorer(representation="output", probe="majority")])
def test_an_alias_can_be_requested(scorer, data, routing):
    X, y, groups = data
    aliased = copy.deepcopy(scorer).set_score_request(sensitive_features="sex")
    scores = cross_val_score(LogisticRegression(), X, y, scoring=aliased, params={"sex": groups})
    expected = cross_val_score(LogisticRegression(), X, y, scoring=scorer, params={"sensitive_features": groups})
    np.testing.assert_array_equal(scores, expected)  # the original still asks under the plain name
    assert np.isfinite(scores).all()


class FailsSometimes(ClassifierMixin, BaseEstimator):
    def __init__(self, fail=False):
        self.fail = fail

    def fit(self, X, y):
        if self.fail:
            raise ValueError("planned")
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.where(X[:, 0] > 0.5, self.classes_[1], self.classes_[0])


@pytest.mark.filterwarnings("ignore:One or more of the test scores are non-finite")
@pytest.mark.parametrize("scoring", [tpr_gap_scorer, {"gap": tpr_gap_scorer}], ids=["one", "dict"])
def test_a_fit_that_fails_is_still_scikit_learns_business(scoring, data, routing):
    X, y, groups = data
    found = GridSearchCV(FailsSometimes(), {"fail": [True, False]}, scoring=scoring, cv=3, refit=False)
    with pytest.warns(FitFailedWarning, match="3 fits failed out of a total of 6"):
        found.fit(X, y, sensitive_features=groups)
    name = "gap" if isinstance(scoring, dict) else "score"
    assert np.isnan(found.cv_results_[f"mean_test_{name}"]).tolist() == [True, False]


class CountsPredictions(FailsSometimes):
    n_calls = 0

    def predict(self, X):
        CountsPredictions.n_calls += 1
        return super().predict(X)


def test_scorers_that_read_predictions_share_one_call(data, routing, monkeypatch):
    """A call of a private model is a release: a fairness scorer beside the accuracy adds none."""
    X, y, groups = data
    probe = make_leakage_scorer(representation=lambda model, rows: rows, probe="majority")
    scoring = {"accuracy": "accuracy", "gap": tpr_gap_scorer, "worst": worst_group_accuracy_scorer, "probe": probe}
    # The control: a scorer that scikit-learn does not know asks for predictions of its own.
    stranger = {"stranger": lambda model, rows, labels: float((model.predict(rows) == labels).mean())}
    for extra, calls_per_fold in (({}, 1), (stranger, 2)):
        monkeypatch.setattr(CountsPredictions, "n_calls", 0)
        params = {"sensitive_features": groups}
        cross_validate(CountsPredictions(), X, y, scoring={**scoring, **extra}, cv=3, params=params)
        assert CountsPredictions.n_calls == 3 * calls_per_fold


# --- without the groups: a sentence --------------------------------------------------------------------------------

SWITCH_ON = r"sklearn\.set_config\(enable_metadata_routing=True\) before the search, and then search\.fit\(X, y, sens"
PASS_ON = r"search\.fit\(X, y, sensitive_features=\.\.\.\), or to cross_validate through params={'sensitive_features'"


@pytest.mark.parametrize("scoring", SCORINGS.values(), ids=SCORINGS)
@pytest.mark.parametrize(("enabled", "sentence"), [(False, SWITCH_ON), (True, PASS_ON)], ids=["off", "on"])
def test_search_without_groups_says_what_is_missing(scoring, enabled, sentence, data):
    X, y, _ = data
    with sklearn.config_context(enable_metadata_routing=enabled):
        with pytest.raises(SensitiveFeaturesNotRoutedError, match=sentence):
            search(scoring, error_score="raise").fit(X, y)
        with pytest.warns(UserWarning, match=sentence) as caught:
            result = cross_validate(LogisticRegression(), X, y, scoring=scoring, cv=3)
    assert all("Scoring failed" in str(warning.message) for warning in caught)
    assert np.isnan(result["test_gap" if isinstance(scoring, dict) else "test_score"]).all()
    assert np.isfinite(result.get("test_accuracy", 0)).all()


def test_scorer_refuses_before_it_asks_for_predictions(data, monkeypatch):
    X, y, _ = data
    monkeypatch.setattr(CountsPredictions, "n_calls", 0)
    with pytest.raises(SensitiveFeaturesNotRoutedError):
        tpr_gap_scorer(CountsPredictions().fit(X, y), X, y)
    assert CountsPredictions.n_calls == 0


# --- plain objects -------------------------------------------------------------------------------------------------

EVERY_SCORER = [*READY, make_leakage_scorer(cv=3), make_fairness_scorer(tpr_gap, greater_is_better=False)]


@pytest.mark.parametrize("scorer", EVERY_SCORER, ids=repr)
def test_scorer_can_be_inspected_without_routing(scorer, no_routing):
    assert "held-out rows" in pydoc.render_doc(scorer)
    assert inspect.getmodule(scorer) is scorers
    assert functools.wraps(scorer)(lambda: None).__module__ == scorers.__name__
    assert isinstance(scorer, type(scorer))
    assert scorer.__class__ is type(scorer)
    assert not isinstance(scorer, type(check_scoring(LogisticRegression(), ["accuracy"])))
    assert vars(copy.copy(scorer)) == vars(scorer)


def test_a_direct_call_needs_no_routing(data, no_routing):
    X, y, groups = data
    model = LogisticRegression().fit(X, y)
    value = tpr_gap_scorer(model, X, y, sensitive_features=groups)
    assert value == -tpr_gap(y, model.predict(X), sensitive_features=groups)
    with pytest.raises(RuntimeError, match="tpr_gap_scorer"):
        tpr_gap_scorer(model, X, y)
    with pytest.raises(ValueError, match="tpr_gap_scorer"):
        tpr_gap_scorer(model, X, y)


@pytest.mark.parametrize("enabled", [False, True])
def test_copies_pickles_and_representations(enabled, data):
    X, y, groups = data
    model = LogisticRegression().fit(X, y)
    with sklearn.config_context(enable_metadata_routing=enabled):
        for scorer in EVERY_SCORER:
            for other in (copy.deepcopy(scorer), copy.copy(scorer), pickle.loads(pickle.dumps(scorer))):
                assert type(other) is type(scorer)
                assert repr(other) == repr(scorer)
        other = pickle.loads(pickle.dumps(tpr_gap_scorer))
        assert other(model, X, y, sensitive_features=groups) == tpr_gap_scorer(model, X, y, sensitive_features=groups)
        holder = clone(search(tpr_gap_scorer))
        assert "scoring=tpr_gap_scorer" in repr(holder)
        assert "tpr_gap_scorer" in holder._repr_html_()


def test_make_fairness_scorer(data, routing):
    X, y, groups = data
    model = LogisticRegression().fit(X, y)
    scorer = make_fairness_scorer(tpr_gap, greater_is_better=False, pos_label=0)
    assert scorer(model, X, y, sensitive_features=groups) == -tpr_gap(
        y, model.predict(X), sensitive_features=groups, pos_label=0
    )
    assert "tpr_gap" in repr(scorer)
    with pytest.raises(TypeError, match="metric must be a function"):
        make_fairness_scorer("tpr_gap", greater_is_better=False)
    with pytest.raises(TypeError, match="greater_is_better must be True or False"):
        make_fairness_scorer(tpr_gap, greater_is_better="no")


# --- probes --------------------------------------------------------------------------------------------------------


class Recorder:
    """Stands for the probe: remembers what it was given, and answers with the share of the first column above 0."""

    def __init__(self):
        self.calls = []

    def __call__(self, H, sensitive_features, **params):
        self.calls.append((np.asarray(H), np.asarray(sensitive_features), params))
        return 0.75


@pytest.fixture
def probe(monkeypatch):

    recorder = Recorder()
    for name in ("leakage_score", "online_code_length"):
        recorder_like = functools.wraps(getattr(scorers, name))(lambda *given, **params: recorder(*given, **params))
        monkeypatch.setattr(scorers, name, recorder_like)
    return recorder


@pytest.mark.parametrize(("factory", "sign"), [(make_leakage_scorer, -1), (make_code_length_scorer, 1)])
def test_probes_see_the_representation_of_held_out_rows(factory, sign, data, probe, routing):
    X, y, groups = data
    pipeline = make_pipeline(StandardScaler(), PCA(2), LogisticRegression())
    result = cross_validate(
        pipeline,
        X,
        y,
        scoring={"accuracy": "accuracy", "probe": factory(random_state=7)},
        params={"sensitive_features": groups},
        return_indices=True,
        return_estimator=True,
    )
    assert (result["test_probe"] == sign * 0.75).all()
    for test, fitted, (H, S, params) in zip(result["indices"]["test"], result["estimator"], probe.calls):
        np.testing.assert_allclose(H, fitted[:-1].transform(X[test]))
        assert (groups[test] == S).all()
        assert params == {"random_state": 7}


def test_where_the_representation_is_taken(data):
    X, y, _ = data
    scaler = StandardScaler().fit(X)
    scaled = scaler.transform(X)
    model = LogisticRegression().fit(X, y)
    flat = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    nested = make_pipeline(StandardScaler(), make_pipeline(PCA(2), LogisticRegression())).fit(X, y)
    only_transformers = make_pipeline(StandardScaler(), PCA(2)).fit(X)
    of = scorers.representation_of
    np.testing.assert_allclose(of(scaler, X), scaled)
    np.testing.assert_allclose(of(flat, X), scaled)
    np.testing.assert_allclose(of(only_transformers, X), only_transformers.transform(X))
    np.testing.assert_allclose(of(nested, X), nested[1][0].transform(scaled))
    np.testing.assert_allclose(
        of(search("accuracy").fit(X, y), X, "output"), of(search("accuracy").fit(X, y).best_estimator_, X, "output")
    )
    np.testing.assert_allclose(of(model, X, "output"), model.predict_proba(X))
    np.testing.assert_allclose(of(model, X, lambda estimator, rows: rows[:, :1]), X[:, :1])
    from sklearn.svm import LinearSVC

    assert of(LinearSVC().fit(X, y), X, "output").shape == (len(X), 1)
    in_search = GridSearchCV(flat, {"logisticregression__C": [1.0]}, cv=3).fit(X, y)
    np.testing.assert_allclose(of(in_search, X), in_search.best_estimator_[:-1].transform(X))


def refusing(error):
    def representation(estimator, rows):
        raise error

    return make_leakage_scorer(representation=representation)


REFUSALS = {
    "no representation": (make_leakage_scorer(), TypeError, r"has no transform\. Use representation='output'"),
    "budget": (refusing(BudgetExceededError("nothing left")), BudgetExceededError, "nothing left"),
}


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize(("scorer", "error", "sentence"), REFUSALS.values(), ids=REFUSALS)
def test_a_probe_that_refuses_stops_the_search_or_warns(scorer, error, sentence, several, data, routing):
    X, y, groups = data
    scoring = {"accuracy": "accuracy", "leakage": scorer} if several else scorer
    params = {"sensitive_features": groups}
    with pytest.raises(error, match=sentence):
        cross_validate(LogisticRegression(), X, y, scoring=scoring, params=params, error_score="raise")
    with pytest.warns(UserWarning, match=sentence):
        result = cross_validate(LogisticRegression(), X, y, scoring=scoring, params=params)
    assert np.isnan(result["test_leakage" if several else "test_score"]).all()


def test_bad_representation_is_named(data):
    X, y, _ = data
    with pytest.raises(ValueError, match="representation must be 'transform', 'output' or a function; got 'hidden'"):
        make_leakage_scorer(representation="hidden")
    with pytest.raises(TypeError, match="needs predict_proba or decision_function; StandardScaler has neither"):
        scorers.representation_of(StandardScaler().fit(X), X, "output")
    with pytest.raises(TypeError, match="representation"):
        scorers.representation_of(make_pipeline(LogisticRegression()).fit(X, y), X)


# --- route_sensitive_features --------------------------------------------------------------------------------------


class NeedsGroups(TransformerMixin, BaseEstimator):
    def __init__(self, strength=1.0):
        self.strength = strength

    def fit(self, X, y=None, *, sensitive_features=None):
        self.seen_ = None if sensitive_features is None else sorted(set(np.asarray(sensitive_features).tolist()))
        return self

    def transform(self, X):
        return X


class FairClassifier(LogisticRegression):
    def fit(self, X, y, *, sensitive_features=None):
        self.seen_ = sensitive_features is not None
        return super().fit(X, y)

    def score(self, X, y, sample_weight=None, *, sensitive_features=None):
        predicted = self.predict(X)
        return worst_group_accuracy(y, predicted, sensitive_features=sensitive_features, sample_weight=sample_weight)


def test_every_step_that_can_take_groups_gets_them(data, routing):
    X, y, groups = data
    pipeline = Pipeline(
        [
            ("columns", ColumnTransformer([("fair", NeedsGroups(), [0, 1]), ("plain", StandardScaler(), [2, 3])])),
            ("union", FeatureUnion([("fair", NeedsGroups()), ("plain", PCA(2))])),
            ("fair", NeedsGroups()),
            ("model", FairClassifier()),
        ]
    )
    assert route_sensitive_features(pipeline) is pipeline
    fitted = clone(pipeline).fit(X, y, sensitive_features=groups)
    assert fitted["columns"].named_transformers_["fair"].seen_ == ["a", "b", "c"]
    assert fitted["union"].transformer_list[0][1].seen_ == ["a", "b", "c"]
    assert fitted["fair"].seen_ == ["a", "b", "c"]
    assert fitted["model"].seen_
    assert fitted.score(X, y, sensitive_features=groups) > 0.6


def test_estimators_inside_searches_and_grids(data, routing):
    X, y, groups = data
    pipeline = Pipeline([("step", NeedsGroups()), ("model", LogisticRegression())])
    grid = {"step": [NeedsGroups(), NeedsGroups(2.0)], "model__C": [1.0]}
    found = route_sensitive_features(GridSearchCV(pipeline, grid, scoring=accuracy_gap_scorer, cv=3))
    found.fit(X, y, sensitive_features=groups)
    assert np.isfinite(found.cv_results_["mean_test_score"]).all()
    assert grid["step"][1].get_metadata_routing().fit.requests == {"sensitive_features": True}


def test_earlier_requests_are_kept(data, routing):
    alias = NeedsGroups().set_fit_request(sensitive_features="sex")
    refused = NeedsGroups().set_fit_request(sensitive_features=False)
    route_sensitive_features(make_pipeline(alias, refused, NeedsGroups()))
    assert alias.get_metadata_routing().fit.requests["sensitive_features"] == "sex"
    assert refused.get_metadata_routing().fit.requests["sensitive_features"] is False


def test_nothing_to_route_is_no_error(data, routing):
    X, y, groups = data
    pipeline = route_sensitive_features(make_pipeline(StandardScaler(), LogisticRegression()))
    scores = cross_val_score(pipeline, X, y, scoring=tpr_gap_scorer, params={"sensitive_features": groups})
    assert np.isfinite(scores).all()


def test_routing_off_or_no_estimator_is_named(no_routing):
    with pytest.raises(SensitiveFeaturesNotRoutedError, match=r"set_config\(enable_metadata_routing=True\)"):
        route_sensitive_features(make_pipeline(NeedsGroups()))
    with (
        sklearn.config_context(enable_metadata_routing=True),
        pytest.raises(TypeError, match="estimator must be an estimator"),
    ):
        route_sensitive_features("pipeline")


def test_without_the_helper_the_groups_do_not_arrive(data, routing):
    """The control: what the helper is for."""
    X, y, groups = data
    with pytest.raises(ValueError, match="sensitive_features"):
        make_pipeline(NeedsGroups(), LogisticRegression()).fit(X, y, sensitive_features=groups)


@pytest.mark.parametrize("make", [make_leakage_scorer, make_code_length_scorer])
def test_wrong_parameter_is_refused_at_construction(make):
    with pytest.raises(TypeError, match="has no parameter 'max_rows'; it has"):
        make(max_rows=10)
