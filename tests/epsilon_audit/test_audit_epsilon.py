"""The auditor: false alarms, claims, scores, and what it says."""

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skfairdp.accounting import PrivacyGuarantee, PrivacyLedger
from skfairdp.epsilon_audit import EpsilonAudit, audit_epsilon
from skfairdp.exceptions import BudgetExceededError
from skfairdp.preprocessing import LaplacePrivatizer
from tests.epsilon_audit._releases import LaplaceNoise, RandomisedResponse

E1 = np.array([1.0, 0.0, 0.0])


def as_score(outputs):
    return outputs[:, 0]


def point_estimate(audit):
    return math.log(max(audit.count_more, 1) / max(audit.count_less, 1))


def test_honest_release_is_rarely_contradicted():
    """200 audits of epsilon = 1 at 95 %: at most 10 alarms; the ratio of the counts themselves raises many more."""
    audits = [
        audit_epsilon(
            RandomisedResponse(1.0, 4, seed), [0], [2], n_trials=2000, score=as_score, claimed=1.0, random_state=seed
        )
        for seed in range(200)
    ]
    assert sum(audit.epsilon_lower > 1.0 for audit in audits) <= 10
    assert sum(point_estimate(audit) > 1.0 for audit in audits) > 40


def test_the_same_holds_with_trained_distinguishers():
    """12 audits of Laplace noise at epsilon = 1 (nominal: 0.6 alarms); all convict where half of it is missing."""

    def alarms(scale, n_audits):
        return sum(
            audit_epsilon(
                LaplaceNoise(scale, seed, tells_ratio=False),
                E1[:1],
                -E1[:1],
                n_trials=1500,
                claimed=1.0,
                random_state=seed,
            ).contradicts
            for seed in range(n_audits)
        )

    assert alarms(2.0, 12) <= 1
    assert alarms(1.0, 4) == 4


class LeaksAtFirst:
    """Tells everything in the first ``n_leaks`` releases of each input, and nothing afterwards."""

    def __init__(self, n_leaks):
        self.left = {0.0: n_leaks, 1.0: n_leaks}
        self.rng = np.random.default_rng(0)

    def __call__(self, X):
        code = X[0, 0]
        leaking = np.arange(len(X)) < self.left[code]
        self.left[code] -= len(X)
        return np.where(leaking, 10 * code, self.rng.normal(size=len(X)))


@pytest.mark.parametrize("score", [as_score, "trained"])
def test_what_is_counted_was_never_looked_at_before(score):
    """The trials that train and choose are half of all (and one to see the shape); only the other half is counted."""
    first_half = audit_epsilon(LeaksAtFirst(1001), [0.0], [1.0], n_trials=2000, score=score, random_state=0)
    assert first_half.epsilon_lower < 0.1
    throughout = audit_epsilon(LeaksAtFirst(2001), [0.0], [1.0], n_trials=2000, score=score, random_state=0)
    assert throughout.epsilon_lower > 5


@pytest.mark.parametrize("score", ["likelihood", "trained", "all"])
def test_the_bound_comes_close_to_the_truth(score):
    audit = audit_epsilon(LaplaceNoise(2.0, 0), E1, -E1, score=score, claimed=1.0, random_state=0)
    assert 0.85 < audit.epsilon_lower <= 1.0
    assert not audit.contradicts
    assert audit.contradicts is (audit.epsilon_lower > audit.claimed_epsilon)


def test_more_trials_see_more():
    bounds = [
        audit_epsilon(LaplaceNoise(2.0, 0), E1, -E1, n_trials=n, random_state=0).epsilon_lower
        for n in (500, 20_000, 500_000)
    ]
    assert bounds == sorted(bounds)
    assert 0.98 < bounds[-1] <= 1


def test_delta_is_taken_off():
    """One-coordinate Laplace at epsilon = 1 is (0.5, 0.2212)-private: nothing above 0.5 at that delta."""
    delta = 1 - math.exp((0.5 - 1) / 2)
    audit = audit_epsilon(LaplaceNoise(2.0, 0), E1, -E1, n_trials=100_000, delta=delta, claimed=0.5, random_state=0)
    assert 0.35 < audit.epsilon_lower <= 0.5
    smaller = audit_epsilon(
        LaplaceNoise(2.0, 0), E1, -E1, n_trials=100_000, delta=delta / 2, claimed=0.5, random_state=0
    )
    assert smaller.contradicts, "the planted claim, half of that delta, must be convicted"


def test_a_release_without_noise_is_found_at_once():
    audit = audit_epsilon(lambda X: X, [0.0], [1.0], n_trials=1000, claimed=5.0, random_state=0)
    assert audit.epsilon_lower == pytest.approx(audit.cap)
    assert "epsilon_lower=4.9" in repr(audit)
    assert not audit.contradicts, "1000 trials cannot reach 5, and the sentence says so"
    assert "beyond the reach" in str(audit)


def test_documents_go_in_and_out():
    rng = np.random.default_rng(0)

    def mask(documents):
        return [" ".join(w if rng.random() < 0.5 else "*" for w in d.split()) for d in documents]

    audit = audit_epsilon(mask, "my cat sleeps", "my dog sleeps", n_trials=2000, random_state=0)
    assert audit.epsilon_lower > 4, "a word that is not masked gives itself away"


def test_rows_that_share_noise_are_audited_one_by_one():
    """Noise shared by a whole call shows only when the rows of a call are many; a call per row is honest."""
    rng = np.random.default_rng(0)

    def noisy(X):
        return np.round(X + rng.laplace(0, 2.0), 2)

    audit = audit_epsilon(noisy, [1.0], [-1.0], n_trials=4000, rows_per_call=1, score=as_score, random_state=0)
    assert 0.7 < audit.epsilon_lower <= 1


class Noisy(TransformerMixin, BaseEstimator):
    """A transformer with a receipt, for the ways in which a claim is found."""

    def fit(self, X, y=None):
        self.rng_ = np.random.default_rng(0)
        self.privacy_ = PrivacyGuarantee(4.0, 1e-3, mechanism="laplace", published_epsilon=0.5)
        self.feature_names_in_ = np.array(["a"], dtype=object)
        self.n_features_in_ = 1
        return self

    def transform(self, X):
        return np.round(X["a"].to_numpy() + self.rng_.laplace(0, 2.0, len(X)), 2)

    def _worst_case_pair(self, n_features):
        return [1.0] * n_features, [-1.0] * n_features


def test_the_claim_comes_from_the_release_unless_given():
    release = Noisy().fit(None)
    own = audit_epsilon(release, random_state=0)
    assert (own.claimed_epsilon, own.delta, own.contradicts) == (4.0, 1e-3, False)
    published = audit_epsilon(release, claimed="published", random_state=0)
    assert (published.claimed_epsilon, published.delta, published.contradicts) == (0.5, 1e-3, True)
    given = audit_epsilon(release, claimed=PrivacyGuarantee(0.6, mechanism="laplace"), random_state=0)
    assert (given.claimed_epsilon, given.delta, given.contradicts) == (0.6, 0.0, True)


def test_a_smaller_delta_than_the_claimed_one_is_refused():
    with pytest.raises(ValueError, match="delta"):
        audit_epsilon(Noisy().fit(None), delta=1e-6, random_state=0)


def test_without_a_claim_nothing_is_contradicted():
    audit = audit_epsilon(LaplaceNoise(2.0, 0), E1, -E1, n_trials=1000, random_state=0)
    assert audit.claimed_epsilon is None
    assert not audit.contradicts
    assert "nothing was claimed" in str(audit)


def test_the_distinguishers_are_reproducible():
    bounds = {
        audit_epsilon(LaplaceNoise(2.0, 0, tells_ratio=False), E1, -E1, n_trials=2000, random_state=3).epsilon_lower
        for _ in range(2)
    }
    assert len(bounds) == 1


def test_what_an_audit_says():
    audit = audit_epsilon(LaplaceNoise(1.0, 0), E1, -E1, claimed=1.0, random_state=0)
    assert isinstance(audit, EpsilonAudit)
    assert "The claim of epsilon = 1 is false" in audit.verdict
    assert audit.verdict in str(audit)
    assert f"{audit.count_more} of 10000 releases of" in audit.event
    assert "score >=" in audit.event or "score <=" in audit.event
    page = audit._repr_html_()
    assert "&gt;=" in page or "&lt;=" in page
    assert "claim contradicted" in page
    with pytest.raises(AttributeError):
        audit.epsilon_lower = 0.0


def test_infinite_claims_are_never_contradicted():
    audit = audit_epsilon(lambda X: X, [0.0], [1.0], n_trials=1000, claimed=math.inf, random_state=0)
    assert not audit.contradicts
    assert "claims no protection" in str(audit)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_trials": 10}, "n_trials"),
        ({"n_trials": 1e4}, "n_trials"),
        ({"rows_per_call": 0}, "rows_per_call"),
        ({"confidence_level": 95}, "confidence_level"),
        ({"confidence_level": True}, "confidence_level"),
        ({"claimed": "printed"}, "claimed must be a PrivacyGuarantee, a number, or 'published'; got 'printed'"),
        ({"claimed": "published"}, "published_epsilon"),
        ({"claimed": -1.0}, "claimed"),
        ({"delta": 1.0}, "delta"),
        ({"score": "best"}, "score"),
        ({"score": "likelihood"}, "log_likelihood_ratio"),
        ({"score": lambda outputs: [1.0]}, "score"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    rng = np.random.default_rng(0)

    def release(X):
        return X + rng.normal(size=X.shape)

    with pytest.raises((ValueError, TypeError), match=message):
        audit_epsilon(release, [0.0], [1.0], **arguments)


def test_outputs_whose_shape_differs_are_named():
    with pytest.raises(ValueError, match="their shape alone tells them apart"):
        audit_epsilon(lambda X: X if X[0, 0] else np.c_[X, X], [0.0], [1.0])


def test_scores_that_are_nan_are_an_event_like_any_other():
    def score(outputs):
        return np.where(outputs[:, 0] > 0, np.nan, 0.0)

    audit = audit_epsilon(lambda X: X, [0.0], [1.0], score=score)
    assert audit.epsilon_lower == pytest.approx(audit.cap)


def test_outputs_that_the_release_cannot_score_convict_it():
    """A row of zeros that becomes nan is recognised, although its likelihood ratio is asked for finite rows only."""
    release = LaplaceNoise(2.0, 0)
    honest = release._ratio

    def ratio(y, x, x_prime):
        assert np.isfinite(y).all()
        return honest(y, E1, -E1)

    release.log_likelihood_ratio = ratio
    release.normalise = lambda X: np.where(X.any(axis=1, keepdims=True), X, np.nan)
    assert audit_epsilon(release, E1, 0 * E1, claimed=1.0, random_state=0).contradicts


def test_probabilities_of_a_classifier_are_a_release():
    class Classifier:
        def predict_proba(self, X):
            p = np.where(rng.random(len(X)) < 0.75, X[:, 0], 1 - X[:, 0])
            return np.c_[1 - p, p]

    rng = np.random.default_rng(0)
    audit = audit_epsilon(Classifier(), [0.0], [1.0], claimed=1.1, random_state=0)
    assert 0.95 < audit.epsilon_lower <= math.log(3)
    assert audit_epsilon(Classifier(), [0.0], [1.0], claimed=0.9, random_state=0).contradicts


@pytest.mark.parametrize("output", ["default", "pandas", "polars"])
def test_estimators_fitted_on_named_columns(output):
    frame = pd.DataFrame({"a": [0.0, 1.0], "b": [1.0, 2.0]})
    release = LaplacePrivatizer(epsilon=1.0, random_state=0).fit(frame).set_output(transform=output)
    assert 0.8 < audit_epsilon(release, confidence_level=0.9999, random_state=0).epsilon_lower <= 1


def test_the_claim_of_a_pipeline_is_that_of_its_private_step():
    scaler = StandardScaler(with_mean=False, with_std=False)
    release = make_pipeline(scaler, LaplacePrivatizer(epsilon=1.0, random_state=0)).fit(np.eye(2))
    audit = audit_epsilon(release, [1.0, 0.0], [-1.0, 0.0], confidence_level=0.9999, random_state=0)
    assert audit.claimed_epsilon == 1.0
    assert 0.6 < audit.epsilon_lower <= 1.0
    twice = make_pipeline(LaplacePrivatizer(random_state=0), LaplacePrivatizer(random_state=0)).fit(np.eye(2))
    assert audit_epsilon(twice, [1.0, 0.0], [-1.0, 0.0], n_trials=500, random_state=0).claimed_epsilon is None


def test_an_active_ledger_charges_an_audit_and_can_stop_it():
    release = LaplacePrivatizer(epsilon=1.0, random_state=0).fit(np.eye(2))
    with PrivacyLedger() as ledger:
        audit_epsilon(release, n_trials=1000)
    assert ledger.total().epsilon >= 4, "two inputs, each to choose and to certify"
    with PrivacyLedger(budget=2.0), pytest.raises(BudgetExceededError):
        audit_epsilon(release, n_trials=1000)


class OneBit:
    """Randomised response as a mechanism: it takes tables, and draws from a stream that it is given."""

    def __init__(self, keep, stream_keep=None):
        self.keep = keep
        self.drawn = keep if stream_keep is None else stream_keep

    def guarantee(self):
        return PrivacyGuarantee(math.log(self.keep / (1 - self.keep)), mechanism="randomised response")

    def release(self, X, stream):
        assert stream.secure
        return np.where(stream.generator.random(X.shape) < self.drawn, X, 1 - X)

    def log_likelihood_ratio(self, y, x, x_prime):
        assert x.shape == x_prime.shape == (1, 2)
        return ((np.abs(y - x_prime) - np.abs(y - x)) @ np.ones(2)) * math.log(self.keep / (1 - self.keep))

    def worst_case_pairs(self):
        return [(np.array([0, 1]), np.array([1, 1])), (np.array([1, 0]), np.array([1, 1]))]


def test_a_mechanism_is_audited_as_it_is():
    """With the claim that it makes itself; one that keeps more than it says is convicted."""
    audit = audit_epsilon(OneBit(0.75), confidence_level=0.9999, random_state=0)
    assert audit.claimed_epsilon == pytest.approx(math.log(3))
    assert 0.8 < audit.epsilon_lower <= math.log(3)
    assert audit.n_pairs == 2
    assert audit_epsilon(OneBit(0.75, 0.95), random_state=0).contradicts


def test_the_pair_that_was_counted_is_told():
    audit = audit_epsilon(LaplaceNoise(2.0, 0), E1, -E1, n_trials=1000, random_state=0)
    assert (audit.x.tolist(), audit.x_prime.tolist(), audit.n_pairs) == (E1.tolist(), (-E1).tolist(), 1)
    own = audit_epsilon(LaplacePrivatizer(random_state=0).fit(np.eye(3)), n_trials=1000, random_state=0)
    assert own.n_pairs >= 4
    assert np.abs(own.x - own.x_prime).sum() == pytest.approx(2.0)
    assert "pairs of inputs tried" in own._repr_html_()


def test_the_pair_that_shows_most_is_counted():
    """The fault shows between the second pair only; with the first one alone, nothing is found."""
    rng = np.random.default_rng(0)

    class Forgetful:
        privacy_ = PrivacyGuarantee(1.0, mechanism="laplace")

        def transform(self, X):
            noise = rng.laplace(0, 2.0, X.shape)
            noise[:, 1] = 0
            return np.round(X + noise, 2)

        def worst_case_pairs(self):
            return [(E1, -E1), (E1[[1, 0, 2]], -E1[[1, 0, 2]])]

    audit = audit_epsilon(Forgetful(), random_state=0)
    assert audit.contradicts
    assert audit.x.tolist() == [0, 1, 0]
    assert not audit_epsilon(Forgetful(), E1, -E1, confidence_level=0.9999, random_state=0).contradicts
