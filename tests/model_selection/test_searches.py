"""The rules inside scikit-learn's searches."""

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import check_scoring
from sklearn.model_selection import GridSearchCV, HalvingGridSearchCV, HalvingRandomSearchCV, RandomizedSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skfairdp.accounting import PrivacyLedger
from skfairdp.exceptions import BudgetExceededError, SensitiveFeaturesNotRoutedError
from skfairdp.metrics import make_leakage_scorer, tpr_gap_scorer
from skfairdp.model_selection import DistanceToOptimum, ParetoFront, RelaxationThreshold, pareto_front
from skfairdp.preprocessing import LaplacePrivatizer

RULES = [RelaxationThreshold(0.05), DistanceToOptimum(), ParetoFront()]
SCORING = {"accuracy": "accuracy", "tpr_gap": tpr_gap_scorer}


class Mixture(ClassifierMixin, BaseEstimator):
    """Looks at a fair column, and at an unfair one as much as ``use`` says."""

    def __init__(self, use=1.0):
        self.use = use

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return (X[:, 0] + self.use * X[:, 1] > 0).astype(int)


@pytest.fixture(autouse=True)
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    n = 1200
    group = rng.integers(0, 2, n)
    y = rng.integers(0, 2, n)
    fair = (2 * y - 1) + rng.normal(size=n)
    unfair = (2 * y - 1) * 0.7 + 1.5 * (2 * group - 1) + rng.normal(size=n)
    return np.column_stack([fair, unfair]), y, group


@pytest.mark.parametrize(("rule", "n_jobs"), [*((rule, 1) for rule in RULES), (RULES[0], 2)])
def test_grid_search(rule, n_jobs, data):
    X, y, group = data
    search = GridSearchCV(Mixture(), {"use": [0.0, 0.1, 0.3, 1.0]}, scoring=SCORING, refit=rule, cv=3, n_jobs=n_jobs)
    search.fit(X, y, sensitive_features=group)
    assert search.best_index_ == rule(search.cv_results_)
    assert search.best_params_ == search.cv_results_["params"][search.best_index_]
    assert search.best_estimator_.use == search.best_params_["use"]
    assert search.best_params_["use"] < 1.0
    explained = rule.explain(search.cv_results_)
    assert (explained["tpr_gap"] >= 0).all()
    assert search.best_index_ in pareto_front(search.cv_results_, ["accuracy", "tpr_gap"]).index


def test_a_larger_threshold_is_never_less_fair(data):
    X, y, group = data
    search = GridSearchCV(Mixture(), {"use": np.linspace(0, 1, 11)}, scoring=SCORING, refit=False, cv=3)
    results = search.fit(X, y, sensitive_features=group).cv_results_
    gaps = [-results["mean_test_tpr_gap"][RelaxationThreshold(t)(results)] for t in (0, 0.01, 0.02, 0.05, 0.5)]
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[-1] < gaps[0]


def test_randomized_search(data):
    X, y, group = data
    search = RandomizedSearchCV(
        Mixture(), {"use": [0.0, 0.1, 1.0, 2.0]}, n_iter=3, scoring=SCORING, refit=RULES[0], cv=3, random_state=0
    )
    search.fit(X, y, sensitive_features=group)
    assert search.best_index_ == RULES[0](search.cv_results_)


@pytest.mark.parametrize("kind", [HalvingGridSearchCV, HalvingRandomSearchCV])
def test_halving_searches(kind, data):
    X, y, group = data
    scoring = check_scoring(Mixture(), {"score": "accuracy", **SCORING})
    candidates = {"use": [0.0, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 3.0, 4.0]}
    extra = {} if kind is HalvingGridSearchCV else {"n_candidates": 9}
    search = kind(
        Mixture(),
        candidates,
        scoring=scoring,
        refit=RULES[0],
        cv=3,
        min_resources=100,
        random_state=0,
        factor=2,
        **extra,
    )
    search.fit(X, y, sensitive_features=group)
    last = search.cv_results_["iter"] == search.cv_results_["iter"].max()
    assert not last.all()
    for rule in RULES:
        assert last[rule(search.cv_results_)]
        model = rule.refit(search, X, y)
        assert model.use == search.cv_results_["params"][rule(search.cv_results_)]["use"]
        assert model.predict(X).shape == y.shape


def test_refit_needs_a_fitted_search(data):
    with pytest.raises(ValueError, match="search"):
        RULES[0].refit(GridSearchCV(Mixture(), {}), *data[:2])


def test_three_axes_with_a_probe(data):
    X, y, group = data
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    probe = make_leakage_scorer(probe=LogisticRegression(), cv=3, random_state=0)
    rule = RelaxationThreshold(0.02, privacy="leakage")
    search = GridSearchCV(
        pipeline, {"logisticregression__C": [0.001, 1.0]}, scoring={**SCORING, "leakage": probe}, refit=rule, cv=3
    )
    search.fit(X, y, sensitive_features=group)
    explained = rule.explain(search.cv_results_)
    assert explained["leakage"].between(0.5, 1.0).all()
    assert explained["chosen"].sum() == 1


# --- a score that nobody has ---------------------------------------------------------------------------------------

nan_is_recorded = pytest.mark.filterwarnings(
    "ignore:Scoring failed", "ignore:One or more of the test scores are non-finite"
)
SWITCH_ON = r"sklearn\.set_config\(enable_metadata_routing=True\) before the search, and then search\.fit\(X, y, sens"


@nan_is_recorded
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: type(rule).__name__)
def test_a_rule_says_how_to_switch_routing_on(rule, n_jobs, data):
    X, y, _ = data
    search = GridSearchCV(Mixture(), {"use": [0.0, 1.0]}, scoring=SCORING, refit=rule, cv=3, n_jobs=n_jobs)
    with (
        sklearn.config_context(enable_metadata_routing=False),
        pytest.raises(SensitiveFeaturesNotRoutedError, match=f"mean_test_tpr_gap has no finite number.*{SWITCH_ON}"),
    ):
        search.fit(X, y)


@nan_is_recorded
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: type(rule).__name__)
def test_rule_says_where_to_pass_missing_groups(rule, data):
    X, y, _ = data
    with pytest.raises(ValueError, match=r"pass them to the search, search\.fit\(X, y, sensitive_features=") as caught:
        GridSearchCV(Mixture(), {"use": [0.0, 1.0]}, scoring=SCORING, refit=rule, cv=3).fit(X, y)
    assert "set_config" not in str(caught.value)


@nan_is_recorded
@pytest.mark.parametrize("rule", [RelaxationThreshold(privacy="leakage"), DistanceToOptimum(privacy="leakage")])
def test_a_probe_that_never_worked_is_not_overlooked(rule, data):
    """Privacy only breaks ties between relaxed candidates; one that was never measured would break none."""
    X, y, group = data
    scoring = {**SCORING, "leakage": make_leakage_scorer()}  # Mixture has no transform
    search = GridSearchCV(Mixture(), {"use": [0.0, 1.0]}, scoring=scoring, refit=rule, cv=3)
    with pytest.raises(ValueError, match="mean_test_leakage"):
        search.fit(X, y, sensitive_features=group)


@nan_is_recorded
@pytest.mark.filterwarnings("ignore:\\n*. fits failed")
@pytest.mark.parametrize(
    ("budget", "error", "sentence"),
    [
        (1000.0, ValueError, "mean_test_accuracy has no finite number.*the budget of a PrivacyLedger may be spent"),
        (4000.0, BudgetExceededError, "budget"),
    ],
    ids=["pays for one fit", "pays for one candidate"],
)
def test_search_beyond_its_budget_is_an_error(budget, error, sentence, data):
    """Two folds, each with a fit and one call of predict: a candidate costs four releases, its refit a fifth."""
    X, y, group = data
    pipeline = make_pipeline(LaplacePrivatizer(1000.0), LogisticRegression())
    grid = {"logisticregression__C": [0.1, 1.0]}
    search = GridSearchCV(pipeline, grid, scoring=SCORING, refit=RULES[0], cv=2)
    with PrivacyLedger(budget=budget) as ledger, pytest.raises(error, match=sentence):
        search.fit(X, y, sensitive_features=group)
    assert ledger.total().epsilon == budget
