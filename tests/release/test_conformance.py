"""Every estimator that releases checks, then spends, then draws, and draws in no other way."""

import copy
import math
import pickle
from dataclasses import FrozenInstanceError, fields, is_dataclass

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import check_is_fitted, validate_data

from skfairdp import (
    FairPrivateClassifier,
    FederateClassifier,
    GaussianPrivatizer,
    LaplacePrivatizer,
    OMEEncoder,
    PATEClassifier,
    PrivacyLedger,
    PrivateScaler,
    PrivateSearchCV,
)
from skfairdp.accounting import compose
from skfairdp.adversarial import FederateEncoder
from skfairdp.dp import ReleaseMixin, _open_ledgers, _release
from skfairdp.exceptions import BudgetExceededError
from skfairdp.mechanisms import Mechanism, laplace_mechanism
from skfairdp.random import RandomStream, noise_stream

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3))
Y = (X[:, 0] > 0).astype(int)
PUBLIC = RNG.normal(size=(40, 3))

pytestmark = [
    pytest.mark.filterwarnings("ignore::skfairdp.exceptions.MissingSensitiveFeaturesWarning"),
    # Three teachers under this much noise teach nothing, which a warning says.
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


class Case:
    """How an estimator is fitted, and what of it releases.

    ``rows`` says which call releases rows that are given; for the others ``fit`` itself is the release.
    """

    def __init__(self, name, make, rows=None, later=None):
        self.name, self.make, self.rows, self.later = name, make, rows, later or {}

    def fit(self, estimator, X=X):
        if isinstance(estimator, PATEClassifier | PrivateSearchCV):
            return estimator.fit(X, Y[: len(X)], public=PUBLIC)
        return estimator.fit(X, Y[: len(X)])

    def release(self, estimator, X=X):
        """Release once, whatever the estimator calls it; returns what came out."""
        if self.rows is None:
            fitted = self.fit(estimator, X)
            fitted = getattr(fitted, "best_estimator_", fitted)
            return fitted.student_targets_ if isinstance(fitted, PATEClassifier) else fitted.center_
        return getattr(estimator, self.rows)(X)

    def ready(self, **params):
        """An estimator that can release at once."""
        estimator = self.make().set_params(**params)
        return estimator if self.rows is None else self.fit(estimator)


def federate(**params):
    return FederateClassifier(epsilon=2.0, adversary_weight=0, max_epochs=1, **params)


def fair_private(**params):
    return FairPrivateClassifier(LogisticRegression(), epsilon=2.0, **params)


class EncoderHalf(Case):
    """What ``split`` cuts off for the device: it comes fitted, and its ``fit`` and its clone are itself."""

    def fit(self, estimator, X=X):
        return estimator

    def ready(self, **params):
        return federate().set_params(**params).fit(X, Y).split()[0]


CASES = [
    Case("laplace", lambda: LaplacePrivatizer(2.0), "transform", {"epsilon": 900.0, "norm": "l2", "radius": 9.0}),
    Case("gaussian", lambda: GaussianPrivatizer(2.0), "transform", {"epsilon": 900.0, "radius": 9.0}),
    Case("bits", lambda: OMEEncoder(2.0, standardize=(0, 1)), "transform", {"epsilon": 900.0, "protocol": "sue"}),
    Case("federate", federate, "transform", {"epsilon": 900.0, "norm": "l2", "calibration": "published"}),
    Case("federate, predicting", federate, "predict_proba", {"epsilon": 900.0}),
    Case("codes", lambda: federate(channel="codes"), "transform", {"epsilon": 900.0, "channel": "laplace"}),
    EncoderHalf("federate, encoder half", FederateEncoder, "transform"),
    Case("answers", fair_private, "predict", {"epsilon": 900.0, "max_gap": 0.5}),
    Case("answers, probabilities", fair_private, "predict_proba", {"epsilon": 900.0, "fairness": None}),
    Case("pate, soft", lambda: PATEClassifier(LogisticRegression(), n_teachers=3, epsilon=2.0)),
    Case("pate, hard", lambda: PATEClassifier(LogisticRegression(), n_teachers=3, epsilon=2.0, labels="hard")),
    Case(
        "pate, confident",
        lambda: PATEClassifier(LogisticRegression(), n_teachers=3, epsilon=9.0, labels="confident", threshold=-99.0),
    ),
    Case(
        "search",
        lambda: PrivateSearchCV(
            PATEClassifier(LogisticRegression(), n_queries=10), {"n_teachers": [2, 3]}, epsilon=9.0, expected_trials=2
        ),
    ),
    Case("scaler", lambda: PrivateScaler(2.0, bounds=(-5, 5))),
]
OF_ROWS = [case for case in CASES if case.rows]


def every(cases):
    return pytest.mark.parametrize("case", cases, ids=lambda case: case.name)


@pytest.fixture(scope="module")
def ready():
    """One estimator per case that can release at once, shared by the tests that do not change it."""
    made = {}

    def estimator_of(case):
        if case.name not in made:
            made[case.name] = case.ready()
        return made[case.name]

    return estimator_of


@pytest.fixture(scope="module")
def released(ready):
    """The shared estimator of a case after one release, and what a ledger recorded of it."""
    made = {}

    def release_of(case):
        if case.name not in made:
            with PrivacyLedger(delta=0.5) as ledger:
                case.release(ready(case))
            made[case.name] = ready(case), ledger.entries
        return made[case.name]

    return release_of


@pytest.fixture
def diary(monkeypatch):
    """What a release does, in order: ``"spend"``, ``"draw"``, and ``"word"`` for every random word of noise."""
    written = []
    true_charge = _release.charge

    def charge(guarantee, **words):
        if not _open_ledgers.is_paid():  # the trials of a search are paid for by the search
            written.append("spend")
        true_charge(guarantee, **words)

    monkeypatch.setattr(_release, "charge", charge)
    for kind in mechanisms():
        true_draw = kind.draw
        monkeypatch.setattr(kind, "draw", lambda *a, f=true_draw: written.append("draw") or f(*a))
    true_words = RandomStream._words

    def words(self, n, dtype):
        if getattr(self, "watched", False):
            written.append("word")
        return true_words(self, n, dtype)

    monkeypatch.setattr(RandomStream, "_words", words)
    return written


def kinds(kind):
    """A class and all that inherit from it."""
    return {kind}.union(*(kinds(child) for child in kind.__subclasses__()))


def mechanisms(kind=Mechanism):
    """Every mechanism that draws by itself."""
    found = [kind] if "draw" in vars(kind) and kind is not Mechanism else []
    return found + [one for child in kind.__subclasses__() for one in mechanisms(child)]


def follows_the_order(case, diary):
    """Release once, then once against a ledger that refuses, and say whether the order was kept."""
    estimator = case.ready()
    if case.rows:
        estimator._frozen.stream.watched = True
    diary.clear()
    case.release(estimator)
    if [entry for entry in diary if entry != "word"][:2] != ["spend", "draw"] or diary.count("spend") != 1:
        return False
    if "word" in diary and diary.index("word") < diary.index("spend"):
        return False
    diary.clear()
    with PrivacyLedger(budget=1e-6), pytest.raises(BudgetExceededError):
        case.release(estimator)
    return diary == ["spend"]


@every(CASES)
def test_the_price_is_paid_before_the_first_random_word(case, diary):
    assert follows_the_order(case, diary)


class DrawsFirst(ReleaseMixin, TransformerMixin, BaseEstimator):
    """A planted fault: it looks right from outside, and draws before it spends."""

    def fit(self, X, y=None):
        X = validate_data(self, X)
        self._freeze(laplace_mechanism(2.0, "l1", X.shape[1]), noise_stream(None))
        return self

    def transform(self, X):
        check_is_fitted(self)
        X = validate_data(self, X, reset=False)
        released = self.mechanism_.release(X, self._frozen.stream)
        _release.charge(self.privacy_, source="DrawsFirst")
        return released


class DrawsByItself(DrawsFirst):
    """A planted fault: it spends before it draws, but has taken its noise earlier, without the mechanism."""

    def transform(self, X):
        noise = self._frozen.stream.uint64(X.size)
        _release.charge(self.privacy_, source="DrawsByItself")
        self.mechanism_.release(X, self._frozen.stream)
        return X + noise.reshape(X.shape) / 2.0**64


@pytest.mark.parametrize("kind", [DrawsFirst, DrawsByItself])
def test_the_order_is_not_kept_by_a_planted_estimator(kind, diary):
    assert not follows_the_order(Case("planted", kind, "transform"), diary)


def test_no_releasing_estimator_is_left_out():
    # Subclasses that a test has made do not count, nor do bases of ours.
    ours = {kind for kind in kinds(ReleaseMixin) if kind.__module__.startswith("skfairdp.")}
    ours -= {base for kind in ours for base in kind.__mro__[1:]}
    assert ours == {type(case.make()) for case in CASES}


BAD_ROWS = {
    "nan": np.full((5, 3), np.nan),
    "infinity": np.full((5, 3), np.inf),
    "another width": np.ones((5, 7)),
    "text": np.full((5, 3), "a"),
    "no rows": np.ones((0, 3)),
    "one dimension": np.ones(3),
}


@every(CASES)
def test_rows_that_are_refused_cost_nothing(case, ready):
    for fault, rows in BAD_ROWS.items():
        if fault == "another width" and case.rows is None:
            continue  # fit takes any width
        with PrivacyLedger() as ledger:
            with pytest.raises((ValueError, TypeError)):
                case.release(ready(case), rows)
            assert len(ledger) == 0, fault


@every(CASES)
def test_the_receipt_is_that_of_the_mechanism(case, released):
    estimator, entries = released(case)
    event = estimator.mechanism_.event
    (found,) = entries.itertuples()
    assert (found.epsilon, found.delta) == (event.epsilon, event.delta)
    assert (estimator.privacy_.epsilon, estimator.privacy_.delta) == (event.epsilon, event.delta)
    assert estimator.privacy_.gaussian_mu == event.gaussian_mu
    assert estimator.mechanism_.guarantee().epsilon == event.epsilon


@every(CASES)
def test_the_mechanism_is_frozen(case, released):
    mechanism = released(case)[0].mechanism_
    assert isinstance(mechanism, Mechanism)
    assert is_dataclass(mechanism)
    with pytest.raises(FrozenInstanceError):
        setattr(mechanism, fields(mechanism)[0].name, None)


@every(OF_ROWS)
def test_parameters_that_change_after_fit_change_nothing(case):
    given, changed = case.ready(random_state=0), case.ready(random_state=0)
    changed.set_params(**case.later)
    assert np.array_equal(case.release(given), case.release(changed))
    assert given.privacy_.epsilon == changed.privacy_.epsilon
    pairs = [estimator.mechanism_.worst_case_pairs() for estimator in (given, changed)]
    assert all(np.array_equal(a, b) for one, other in zip(*pairs) for a, b in zip(one, other))


@every(OF_ROWS)
def test_rows_do_not_show_through_other_rows(case, ready):
    estimator = ready(case)
    first, second = X.copy(), X.copy()
    second[7] = 50.0
    values = [estimator._values(rows) for rows in (first, second)]
    others = np.arange(len(X)) != 7
    assert np.array_equal(np.asarray(values[0])[others], np.asarray(values[1])[others])


# How a second estimator comes from a first; the last one changes the first, so it is tried last.
COPIES = {
    "clone": lambda case, e: case.fit(clone(e)) if case.rows else clone(e),
    "deepcopy": lambda case, e: copy.deepcopy(e),
    "pickle": lambda case, e: pickle.loads(pickle.dumps(e)),
    "refit": lambda case, e: case.fit(e) if case.rows else e,
}


def words_of_release(case, estimator):
    """Release once; returns the start of every batch of random words that the mechanism drew."""
    drawn = []
    true_words, true_release = RandomStream._words, ReleaseMixin._release

    def words(self, n, dtype):
        batch = true_words(self, n, dtype)
        if batch.nbytes >= 16:  # shorter ones may well be the same by chance
            drawn.append(batch.tobytes()[:64])
        return batch

    def release(self, values, receipt=None):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(RandomStream, "_words", words)
            return true_release(self, values, receipt)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ReleaseMixin, "_release", release)
        case.release(estimator)
    return set(drawn)


@every(CASES)
@pytest.mark.parametrize(
    "source", [None, np.random.default_rng, np.random.RandomState], ids=["None", "Generator", "RandomState"]
)
def test_every_copy_draws_fresh_noise(case, source):
    """The attack: the difference of two releases with the same noise is the difference of the rows."""
    estimator = case.ready(random_state=None if source is None else source(0))
    before = words_of_release(case, estimator)
    assert before
    for how, copied in COPIES.items():
        words = words_of_release(case, copied(case, estimator))
        assert words, how
        assert not before & words, how
        before |= words


@every(CASES)
def test_copies_from_one_seed_cost_infinity_together(case):
    estimator = case.ready(random_state=0)
    case.release(estimator)
    receipt = estimator.privacy_
    for how, copied in COPIES.items():
        other = copied(case, estimator)
        if other is estimator and case.rows and isinstance(case, EncoderHalf):
            continue  # it is the same object, whose stream goes on
        with PrivacyLedger(delta=0.5) as ledger:
            ledger.charge(receipt)
            assert math.isfinite(ledger.total().epsilon)
            case.release(other)
            assert ledger.total().epsilon == math.inf, how
        assert compose([receipt, other.privacy_]).epsilon == math.inf, how
