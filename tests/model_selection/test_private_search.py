"""PrivateSearchCV: what it charges, what it shows, and what it refuses."""

import math
import pickle
import threading
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy.stats import uniform
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from skfairdp import (
    FairPrivateClassifier,
    PATEClassifier,
    PrivacyLedger,
    PrivateScaler,
    PrivateSearchCV,
    PublicScaler,
    audit_epsilon,
    pipeline_guarantee,
)
from skfairdp.accounting import PrivacyGuarantee, selection_budget
from skfairdp.dp import ReleaseMixin, charge, paying
from skfairdp.exceptions import BudgetExceededError
from skfairdp.mechanisms import bounded_sums, selection_mechanism
from skfairdp.model_selection import _private_trials
from skfairdp.pipeline import make_private_pipeline
from skfairdp.random import noise_stream, random_stream

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 3))
Y = (X[:, 0] > 0).astype(int)
PUBLIC = RNG.normal(size=(100, 3))
CUTS = {"cut": [-3.0, 0.0, 3.0]}

fits: list = []  # what every fit of Cut was given


@pytest.fixture(autouse=True)
def no_fits():
    fits.clear()


class Cut(ReleaseMixin, ClassifierMixin, BaseEstimator):
    """Says whether the first column is above a cut; releases a noisy sum of its labels, at a pure price."""

    _protects_fitted_rows = True

    def __init__(self, cut=0.0, epsilon=1.0, random_state=None, spend=1.0, warn=False, fail=False):
        self.cut = cut
        self.epsilon = epsilon
        self.random_state = random_state
        self.spend = spend
        self.warn = warn
        self.fail = fail

    def fit(self, X, y, *, sample_weight=None, sensitive_features=None):
        fits.append({"params": self.get_params(), "n": len(y), "groups": sensitive_features, "weight": sample_weight})
        self.classes_, self.n_features_in_ = np.array([0, 1]), np.shape(X)[1]
        mechanism = bounded_sums(1, self.epsilon * self.spend)
        stream = noise_stream(self.random_state)
        self._freeze(mechanism, stream)
        sums = self._release(np.asarray(y, dtype=float).reshape(-1, 1))
        self.noisy_ = float(sums[0, 0])
        if self.warn:
            warnings.warn(f"fitted with {self.cut}", UserWarning, stacklevel=2)
        if self.fail:
            raise ValueError("nothing was learned.")
        return self

    def predict(self, X):
        return (np.asarray(X)[:, 0] > self.cut).astype(int)


def search(estimator=None, candidates=None, **params):
    return PrivateSearchCV(estimator or Cut(), candidates or CUTS, **{"epsilon": 4.0, "random_state": 0, **params})


def pate(**params):
    return PATEClassifier(LogisticRegression(), **{"n_teachers": 20, "n_queries": 50, "labels": "soft", **params})


# -- what it does -----------------------------------------------------------------------------------------------------


def test_the_best_candidate_is_found():
    found = [search(random_state=seed, expected_trials=20).fit(X, Y).best_params_["cut"] for seed in range(15)]
    assert found.count(0.0) >= 11  # an honest search finds it less often once in a thousand runs of this test
    fitted = search().fit(X, Y)
    assert fitted.best_estimator_.cut == fitted.best_params_["cut"]
    assert fitted.classes_.tolist() == [0, 1]
    assert np.array_equal(fitted.predict(X), fitted.best_estimator_.predict(X))


def test_scores_are_noisy_counts_of_rows_that_were_not_trained_on():
    fitted = search(candidates={"cut": [0.0]}, validation_fraction=0.25).fit(X, Y)
    assert {one["n"] for one in fits} == {300}
    assert fitted.best_score_ * 100 == round(fitted.best_score_ * 100)
    scores = {search(candidates={"cut": [0.0]}, epsilon=0.5, random_state=s).fit(X, Y).best_score_ for s in range(9)}
    assert len(scores) > 4  # every one would be 1 without noise


class TwoColumns(Cut):
    """Its predictions have shape (n, 1): compared with n labels, one of them would count n times."""

    def predict(self, X):
        return super().predict(X).reshape(-1, 1)


class LooksAround(Cut):
    """Predicts by the rank of a row in its batch."""

    def predict(self, X):
        seen.append(len(X))
        return (np.asarray(X)[:, 0] > np.median(np.asarray(X)[:, 0])).astype(int)


seen: list = []


def test_students_see_one_record_and_return_one_label():
    """A noisy count of right answers changes by one at most only if a record reaches one prediction."""
    with pytest.raises(ValueError, match="TwoColumns"):
        search(TwoColumns(), {"cut": [0.0]}).fit(X, Y)
    seen.clear()
    search(LooksAround(), {"cut": [0.0]}, expected_trials=1.1).fit(X, Y)
    assert set(seen) == {1}


def test_candidates_from_distributions_and_from_several_grids():
    fitted = search(candidates=[{"cut": uniform(-0.1, 0.2)}, {"cut": [0.0]}]).fit(X, Y)
    assert -0.1 <= fitted.best_params_["cut"] <= 0.1


@pytest.mark.parametrize("labels", ["soft", "hard", "confident"])
def test_pate(labels):
    given = {"threshold": 5.0} if labels == "confident" else {}
    one = search(pate(labels=labels, **given), {"n_teachers": [10, 20]}, epsilon=20.0, expected_trials=2)
    with PrivacyLedger(delta=1e-5) as ledger:
        one.fit(X, Y, public=PUBLIC)
    assert (ledger.total().epsilon, ledger.total().delta, len(ledger)) == (20.0, 1e-5, 1)
    budget, inner = one.mechanism_.budget, one.best_estimator_.mechanism_
    assert inner.epsilon == pytest.approx(budget.epsilon if labels == "hard" else budget.gaussian_epsilon)
    assert inner.delta == pytest.approx(budget.delta)
    assert one.predict_proba(X).shape == (400, 2)
    assert one.score(X, Y) > 0.6


@pytest.mark.filterwarnings("ignore::skfairdp.exceptions.SmallGroupWarning")
def test_answers_of_the_winner_can_be_made_fair():
    """Two promises to different people: the training rows of the search, and whoever is answered."""
    one = search(pate(), {"n_teachers": [10, 20]}, epsilon=20.0, expected_trials=2).fit(X[:300], Y[:300], public=PUBLIC)
    fair = FairPrivateClassifier(one, epsilon=4.0, cv="prefit", random_state=0)
    fair.fit(X[300:], Y[300:], sensitive_features=X[300:, 1] > 0)
    assert fair.training_privacy_.epsilon == 20.0
    assert fair.privacy_.epsilon == pytest.approx(4.0)


def test_public_validation_costs_nothing_and_takes_any_scorer():
    public = (X[:50], Y[:50])
    one = search(candidates={"cut": [-1.0, 0.0]}, scoring="roc_auc", expected_trials=30)
    with PrivacyLedger() as ledger:
        one.set_params(scoring="balanced_accuracy").fit(X[50:], Y[50:], public_validation=public)
    assert {single["n"] for single in fits} == {350}
    assert (one.best_score_, one.best_params_) == (1.0, {"cut": 0.0})
    assert ledger.total().epsilon == 4.0
    with pytest.raises(ValueError, match="validation_fraction"):
        search(validation_fraction=0.5).fit(X, Y, public_validation=public)
    with pytest.raises(ValueError, match="public_validation"):
        search().fit(X, Y, public_validation=X)


def test_groups_and_weights_reach_the_estimator_row_by_row():
    groups, weight = np.arange(400), np.linspace(1, 2, 400)
    search().fit(X, Y, sensitive_features=groups, sample_weight=weight)
    for one in fits:
        assert one["n"] == len(one["groups"]) == len(one["weight"]) == 320
        assert np.array_equal(one["weight"], weight[one["groups"]])
    with pytest.raises(ValueError, match="PATEClassifier"):
        search(pate(), {"n_teachers": [10]}).fit(X, Y, public=PUBLIC, sensitive_features=groups)


def test_named_columns():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    one = search(pate(), {"n_teachers": [10]}, epsilon=60.0, expected_trials=1.5).fit(frame, Y, public=frame[:50] + 1)
    assert one.feature_names_in_.tolist() == ["a", "b", "c"]
    with pytest.raises(ValueError, match="feature names"):
        one.predict(frame.rename(columns={"a": "z"}))


# -- what it costs ----------------------------------------------------------------------------------------------------


def test_it_is_charged_once_and_trials_are_not():
    with PrivacyLedger(budget=4.0) as ledger:
        one = search().fit(X, Y)
    assert (len(ledger), ledger.total().epsilon) == (1, 4.0)
    assert ledger.entries["source"].tolist() == ["PrivateSearchCV"]
    assert (
        one.privacy_.epsilon
        == one.best_estimator_.privacy_.epsilon
        == pipeline_guarantee(one, rows="fitted").epsilon
        == 4.0
    )
    assert pipeline_guarantee(one, rows="new").epsilon == math.inf


def test_a_grid_search_is_charged_for_every_fit():
    """The control: the same estimator and candidates, and no private selection."""
    with PrivacyLedger() as ledger:
        sklearn.model_selection.GridSearchCV(Cut(epsilon=4.0), CUTS, cv=3).fit(X, Y)
    assert ledger.total().epsilon == (3 * 3 + 1) * 4.0


@pytest.mark.parametrize("eta", [-0.5, 0.0, 2.0])
def test_every_trial_spends_its_share(eta):
    search(eta=eta, expected_trials=5).fit(X, Y)
    assert [one["params"]["epsilon"] for one in fits] == pytest.approx([4.0 / (2 + eta)] * len(fits))


def test_without_noise_it_protects_nobody():
    one = search(epsilon=math.inf).fit(X, Y)
    assert one.privacy_.epsilon == math.inf
    assert one.best_score_ <= 1


def test_a_budget_that_does_not_pay_stops_it_before_any_draw():
    one = search()
    with PrivacyLedger(budget=3.9) as ledger, pytest.raises(BudgetExceededError):
        one.fit(X, Y)
    assert len(ledger) == 0
    assert len(fits) == 1  # the rehearsal, which ended before its release
    assert not hasattr(one, "best_estimator_")


def test_rows_that_an_estimator_refuses_cost_nothing():
    with PrivacyLedger() as ledger, pytest.raises(ValueError, match="labels"):
        search(pate(labels="no such labels"), {"n_teachers": [5]}).fit(X, Y, public=PUBLIC)
    with ledger, pytest.raises(ValueError, match="public"):
        search(pate(), {"n_teachers": [5]}).fit(X, Y, public=X)
    assert len(ledger) == 0


def test_an_error_after_the_first_draw_is_paid_for():
    with PrivacyLedger() as ledger, pytest.raises(ValueError, match="nothing was learned"):
        search(Cut(fail=True)).fit(X, Y)
    assert ledger.total().epsilon == 4.0


def test_a_step_that_learns_in_clear_costs_infinity():
    def price(*steps, candidates=None):
        with PrivacyLedger() as ledger:
            one = search(make_pipeline(*steps), candidates or {"cut__cut": [0.0]}).fit(X, Y)
        assert one.privacy_.epsilon == ledger.total().epsilon
        assert len(ledger) == 1
        return one.privacy_.epsilon

    assert price(PublicScaler(bounds=(-5, 5)), Cut()) == 4.0
    assert price(StandardScaler(), Cut()) == math.inf
    assert price(FunctionTransformer(np.tanh), Cut()) == 4.0
    assert price(FunctionTransformer(lambda rows: rows - rows.mean(axis=0)), Cut()) == math.inf
    # One candidate that breaks the guarantee is enough, also where a trial never draws it.
    mixed = {"publicscaler": [PublicScaler(bounds=(-5, 5))] * 50 + [StandardScaler()]}
    assert price(PublicScaler(bounds=(-5, 5)), Cut(), candidates=mixed) == math.inf


def test_a_scaler_in_front_of_the_search():
    with PrivacyLedger() as ledger:
        make_private_pipeline(StandardScaler(), search()).fit(X, Y)
    assert ledger.total().epsilon == math.inf
    with PrivacyLedger() as ledger:
        whole = make_pipeline(PrivateScaler(1.0, bounds=(-5, 5)), search()).fit(X, Y)
    assert ledger.total().epsilon == pipeline_guarantee(whole, rows="fitted").epsilon == 5.0


def test_public_rows_pass_the_steps_in_front():
    with sklearn.config_context(enable_metadata_routing=True):
        inner = search(pate(), {"n_teachers": [10]}, epsilon=20.0, expected_trials=1.5).set_fit_request(public=True)
        steps = [("scale", PublicScaler(bounds=(-5, 5)).set_fit_request(public=False)), ("search", inner)]
        whole = Pipeline(steps, transform_input=["public"]).fit(X, Y, public=PUBLIC)
    assert pipeline_guarantee(whole, rows="fitted").epsilon == 20.0


def test_without_public_rows_the_receipt_says_so():
    with pytest.warns(UserWarning, match="no public rows were given") as said:
        one = search(pate(), {"n_teachers": [10]}, epsilon=20.0, expected_trials=1.5).fit(X, Y)
    assert len(said) == 1
    assert any("each trial others" in sentence for sentence in one.privacy_.does_not_cover)


def test_releases_of_other_threads_are_charged():
    receipt = PrivacyGuarantee(1.0, mechanism="laplace")
    received: list = []
    with PrivacyLedger() as ledger, paying(received.append):
        charge(receipt, source="here")
        thread = threading.Thread(target=charge, args=(receipt,), kwargs={"source": "there"})
        thread.start()
        thread.join()
    assert received == [receipt]
    assert ledger.entries["source"].tolist() == ["there"]


# -- what it shows ----------------------------------------------------------------------------------------------------

KEPT = {"best_estimator_", "best_params_", "best_score_", "mechanism_", "privacy_", "n_features_in_", "_frozen"}


def test_nothing_but_the_winner_is_kept():
    one = search(expected_trials=30).fit(X, Y)
    for copy in (one, pickle.loads(pickle.dumps(one))):
        assert set(vars(copy)) - set(one.get_params(deep=False)) == KEPT
        assert np.array_equal(copy.predict(X), one.predict(X))
    assert not hasattr(one, "cv_results_")
    assert clone(one).get_params(deep=False).keys() == one.get_params(deep=False).keys()


@pytest.mark.filterwarnings("always::UserWarning")
def test_warnings_of_losers_are_not_shown(capsys):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        one = search(Cut(warn=True), expected_trials=30).fit(X, Y)
    assert len(fits) > 2
    assert [str(message.message) for message in said] == [f"fitted with {one.best_params_['cut']}"]
    assert capsys.readouterr() == ("", "")


def test_trials_draw_noise_of_their_own():
    search(Cut(random_state=7), expected_trials=30).fit(X, Y)
    seeds = [one["params"]["random_state"] for one in fits[1:]]
    assert len(set(seeds)) == len(seeds) > 1
    fits.clear()
    search(Cut(random_state=7), random_state=None).fit(X, Y)
    assert {one["params"]["random_state"] for one in fits} == {None}


def test_seeds_repeat_a_search_and_are_told():
    first, second = (search(epsilon=1.0).fit(X, Y) for _ in range(2))
    assert (first.best_score_, first.best_params_) == (second.best_score_, second.best_params_)
    assert first.privacy_.reproducible
    assert not search(random_state=None).fit(X, Y).privacy_.reproducible
    assert not search(random_state=np.random.default_rng(0)).fit(X, Y).privacy_.reproducible


# -- an audit of the score --------------------------------------------------------------------------------------------


def score_release(trials):
    """Score a model on rows of which one is given: it is answered right, or wrong."""
    model, stream = Cut().fit(X, Y), random_stream(0)

    def release(rows):
        found = []
        for row in np.asarray(rows):
            trials.validation = (np.array([[row[0]], [1.0], [-1.0]]), np.array([1, 1, 0]))
            found.append([float(trials._score(model, stream))])
        return np.array(found)

    return release


@pytest.mark.parametrize("planted", [False, True])
def test_an_audit_finds_scores_without_noise(planted, monkeypatch):
    budget = selection_budget(2.0, 0.0, selection_mechanism(2.0, 0.0, expected_trials=5.0).trials)
    trials = _private_trials.Trials(Cut(), "", CUTS, budget, (X, Y), {}, (X, Y), None)
    if planted:
        monkeypatch.setattr(_private_trials, "discrete_laplace", lambda n, scale, stream: np.zeros(n, dtype=int))
    audit = audit_epsilon(
        score_release(trials), [-1.0], [1.0], claimed=budget.epsilon, n_trials=4000, random_state=0, score="trained"
    )
    assert audit.contradicts == planted
    assert audit.epsilon_lower > 0.7


# -- what it refuses --------------------------------------------------------------------------------------------------


class Silent(Cut):
    def fit(self, X, y):
        self.classes_ = np.array([0, 1])
        return self


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PrivateSearchCV(Cut(), {}), "holds no candidates"),
        (lambda: PrivateSearchCV(Cut(), []), "holds no candidates"),
        (lambda: search(candidates={"cut": []}), r"\['cut'\] holds no candidates"),
        (lambda: search(candidates={"epsilon": [1.0]}), "epsilon"),
        (lambda: search(candidates={"random_state": [1]}), "random_state"),
        (lambda: search(candidates={"no_such": [1]}), "no_such"),
        (lambda: search(pate(), {"n_teachers": [0]}), "n_teachers"),
        (lambda: search(epsilon=0.0), "epsilon"),
        (lambda: search(epsilon=-1.0), "epsilon"),
        (lambda: search(epsilon=1e-3), "epsilon"),
        (lambda: search(delta=1.0), "delta"),
        (lambda: search(pate(), {"n_teachers": [5]}, delta=0.0), "delta"),
        (lambda: search(expected_trials=1.0), "expected_trials"),
        (lambda: search(eta=-1.0), "eta"),
        (lambda: search(scoring="roc_auc"), "scoring"),
        (lambda: search(scoring=lambda model, X, y: 1.0), "scoring"),
        (lambda: search(LogisticRegression(), {"C": [1.0]}), "LogisticRegression"),
        (lambda: search(make_pipeline(LogisticRegression()), {"logisticregression__C": [1.0]}), "has no receipt"),
        (
            lambda: search(FairPrivateClassifier(pate()), {"epsilon": [1.0]}),
            r"FairPrivateClassifier\(search, cv='prefit'",
        ),
        (lambda: search(make_pipeline(PrivateScaler(bounds=(-5, 5)), Cut()), {"cut__cut": [1.0]}), "several private"),
        (lambda: search(Silent()), "no receipt of what it spent"),
        (lambda: search(Cut(spend=2.0)), "spends more than a trial may"),
    ],
)
def test_bad_input_is_named(make, message):
    with PrivacyLedger() as ledger, pytest.raises(ValueError, match=message):
        make().fit(X, Y)
    assert len(ledger) == ("spends more" in message)  # all others are found before anything is drawn


@pytest.mark.parametrize("candidates", [{"cut": 0.0}, {"cut": "abc"}, "abc", [1, 2]])
def test_candidates_of_the_wrong_kind(candidates):
    with pytest.raises(TypeError, match="param_distributions"):
        search(candidates=candidates).fit(X, Y)
