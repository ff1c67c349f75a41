"""The verdicts: nothing against what is exact, and every fault of the published systems convicted."""

import warnings

import numpy as np
import pytest

from skfairdp.adversarial import FederateClassifier
from skfairdp.datasets import make_biased_classification
from skfairdp.epsilon_audit import audit_epsilon, worst_case_pair
from skfairdp.exceptions import OverclaimedPrivacyWarning
from skfairdp.preprocessing import GaussianPrivatizer, LaplacePrivatizer, OMEEncoder, WordDropout
from tests.epsilon_audit._releases import DPNRAsPrinted, DPNRPublicCode, FederatePublicCode, FloatLaplace

ROWS = np.random.default_rng(0).normal(size=(200, 4))
#: One false alarm in ten thousand, so that a test does not hang on its seed.
SURE = 0.9999
WIDE = np.random.default_rng(0).normal(size=(2, 50))

# few bits, so that the loss of each is seen in 20,000 trials
FEW_BITS = {"n_integer_bits": 0, "n_fraction_bits": 1, "standardize": False}

EXACT = {
    "laplace-l1": LaplacePrivatizer(epsilon=1.0, random_state=0),
    "laplace-l2": LaplacePrivatizer(epsilon=1.0, norm="l2", random_state=0),
    "laplace-minmax": LaplacePrivatizer(epsilon=1.0, norm="minmax", random_state=0),
    "laplace-clip": LaplacePrivatizer(epsilon=1.0, norm="clip", radius=0.5, random_state=0),
    "gaussian": GaussianPrivatizer(epsilon=1.0, delta=1e-3, random_state=0),
    "bits-ome": OMEEncoder(epsilon=1.0, random_state=0, **FEW_BITS),
    "bits-oue": OMEEncoder(epsilon=1.0, protocol="oue", random_state=0, **FEW_BITS),
    "bits-sue": OMEEncoder(epsilon=1.0, protocol="sue", random_state=0, **FEW_BITS),
    "bits-optimal": OMEEncoder(epsilon=1.0, protocol="optimal", random_state=0, **FEW_BITS),
}


def published(estimator, rows):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OverclaimedPrivacyWarning)
        return estimator.fit(rows)


#: Trained scores of a mechanism of each kind; the full suite trains them for all.
KINDS = ["laplace-l1", "gaussian", "bits-ome"]


@pytest.mark.parametrize(
    ("name", "score"),
    [
        *((name, "likelihood") for name in EXACT),
        *((name, "trained") for name in KINDS),
        *(pytest.param(name, "trained", marks=pytest.mark.slow) for name in EXACT if name not in KINDS),
    ],
)
def test_nothing_is_found_against_an_exact_mechanism(name, score):
    release = EXACT[name].fit(ROWS[:, :2])
    audit = audit_epsilon(release, n_trials=20_000, confidence_level=SURE, score=score, random_state=0)
    assert audit.claimed_epsilon == pytest.approx(1.0)
    assert not audit.contradicts, str(audit)
    assert audit.epsilon_lower > 0.3, "an attack that finds nothing at all would say nothing"


@pytest.mark.parametrize("score", ["likelihood", "trained"])
def test_the_worst_case_comes_close_to_epsilon(score):
    release = LaplacePrivatizer(epsilon=1.0, random_state=1).fit(ROWS)
    audit = audit_epsilon(release, n_trials=100_000, confidence_level=SURE, score=score, random_state=0)
    assert 0.9 < audit.epsilon_lower <= 1.0


def test_worst_case_of_bits_and_gaussian_comes_close():
    bit = OMEEncoder(epsilon=1.0, protocol="sue", random_state=0, **FEW_BITS).fit(ROWS[:, :1])
    assert 0.9 < audit_epsilon(bit, n_trials=200_000, confidence_level=SURE, random_state=0).epsilon_lower <= 1.0
    gaussian = GaussianPrivatizer(epsilon=1.0, delta=0.1, random_state=0).fit(ROWS)
    assert 0.8 < audit_epsilon(gaussian, n_trials=200_000, confidence_level=SURE, random_state=0).epsilon_lower <= 1.0


@pytest.mark.parametrize("score", ["likelihood", "trained"])
def test_ten_per_cent_too_little_noise_is_convicted(score):
    """The scale of epsilon = 1/0.9 under the claim of 1; the same audit lets the right scale pass."""
    short = LaplacePrivatizer(epsilon=1 / 0.9, random_state=0).fit(ROWS)
    right = LaplacePrivatizer(epsilon=1.0, random_state=0).fit(ROWS)
    assert short.noise_scale_ == pytest.approx(0.9 * right.noise_scale_)
    arguments = {"claimed": 1.0, "n_trials": 100_000, "confidence_level": SURE, "score": score, "random_state": 0}
    assert audit_epsilon(short, **arguments).contradicts
    assert not audit_epsilon(right, **arguments).contradicts


def test_dpnr_as_printed_is_convicted():
    """Exact epsilon D = 50 under a claim of 1: by its own likelihood ratio, and by trained scores alone."""
    release = published(LaplacePrivatizer(epsilon=1.0, norm="minmax", calibration="published", random_state=0), WIDE)
    assert release.privacy_.epsilon == pytest.approx(50.0)
    for score in ("likelihood", "trained"):
        audit = audit_epsilon(release, claimed="published", score=score, random_state=0)
        assert audit.contradicts
        assert audit.epsilon_lower > 4
    x, x_prime = worst_case_pair(release)
    assert audit_epsilon(DPNRAsPrinted(1.0, 0), x, x_prime, claimed=1.0, random_state=0).epsilon_lower > 4


@pytest.mark.parametrize("epsilon", [1.0, 0.05])
def test_dpnr_public_code_is_convicted(epsilon):
    """One noise value for all coordinates: any two rows are told apart, by an attack that knows nothing."""
    audit = audit_epsilon(DPNRPublicCode(epsilon, 0), WIDE[0], WIDE[1], claimed=epsilon, random_state=0)
    assert audit.contradicts
    assert audit.epsilon_lower > 7.8, "everything that 20,000 trials can certify"


@pytest.mark.parametrize("score", ["likelihood", "trained", "all"])
def test_shared_noise_is_convicted_despite_its_ratio(score):
    """The rows are dyadic, so that adding is exact and nothing but the sharing can give them away."""

    class Shared(LaplacePrivatizer):
        def transform(self, X):
            return X + (super().transform(X)[:, :1] - X[:, :1])

    release = Shared(epsilon=1.0, random_state=0).fit(ROWS)
    x, x_prime = np.array([0.5, 0.25, 0.25, 0.0]), np.array([0.25, 0.5, 0.0, 0.25])
    assert audit_epsilon(release, x, x_prime, score=score, random_state=0).contradicts
    honest = LaplacePrivatizer(epsilon=1.0, random_state=0).fit(ROWS)
    assert not audit_epsilon(honest, x, x_prime, confidence_level=SURE, score=score, random_state=0).contradicts


def test_federate_public_code_is_convicted():
    """L2 normalisation with Lap(2/epsilon), D = 50: exact epsilon 7.07 under a claim of 1."""
    release = published(LaplacePrivatizer(epsilon=1.0, norm="l2", calibration="published", random_state=0), WIDE)
    assert release.privacy_.epsilon == pytest.approx(7.071068)
    x, x_prime = worst_case_pair(release)
    for one in (release, FederatePublicCode(1.0, 0), FederatePublicCode(1.0, 0, tells_ratio=False)):
        audit = audit_epsilon(one, x, x_prime, claimed=1.0, random_state=0)
        assert audit.contradicts
        assert audit.epsilon_lower > 1.5
        assert audit.epsilon_lower < 7.071068


@pytest.mark.parametrize("score", ["likelihood", "trained"])
def test_ome_with_factor_100_is_convicted(score):
    encoder = OMEEncoder(epsilon=1.0, randomization_factor=100, calibration="published", random_state=0)
    release = published(encoder, WIDE)
    assert release.privacy_.epsilon == pytest.approx(3451.390307)
    audit = audit_epsilon(release, claimed="published", score=score, n_trials=5000, random_state=0)
    assert audit.contradicts
    assert audit.epsilon_lower > 0.99 * audit.cap


@pytest.mark.parametrize("tells_ratio", [True, False])
def test_floating_point_laplace_is_convicted(tells_ratio):
    """The right scale for epsilon = 1, in double precision: the unrounded score, or the lowest bits, give it away."""
    release = FloatLaplace(2.0, 0, tells_ratio=tells_ratio)
    audit = audit_epsilon(release, [1.0], [-1.0], claimed=1.0, random_state=0)
    assert audit.contradicts
    assert audit.epsilon_lower > 3.5


def test_the_lowest_bits_of_our_laplace_say_nothing():
    release = LaplacePrivatizer(epsilon=1.0, random_state=0).fit(ROWS[:, :1])
    audit = audit_epsilon(release, n_trials=100_000, confidence_level=SURE, score="all", random_state=0)
    assert 0.85 < audit.epsilon_lower <= 1.0


@pytest.mark.parametrize("channel", ["codes", "laplace"])
def test_a_trained_classifier_keeps_its_claim_from_end_to_end(channel):
    """Two far rows, by trained scores alone: close to epsilon, not above; half of it is convicted."""
    data = make_biased_classification(1000, random_state=0)
    model = FederateClassifier(epsilon=2.0, channel=channel, max_epochs=5, random_state=0)
    model.fit(data.data, data.target, sensitive_features=data.sensitive_features)
    order = np.argsort(np.asarray(data.data).sum(axis=1))
    x, x_prime = 10 * np.asarray(data.data)[order[[0, -1]]]
    audit = audit_epsilon(model, x, x_prime, confidence_level=SURE, random_state=0)
    assert audit.claimed_epsilon == pytest.approx(2.0)
    assert 1.4 < audit.epsilon_lower <= 2.0
    assert audit_epsilon(model, x, x_prime, claimed=1.0, random_state=0).contradicts


def test_masked_words_alone_are_not_private():
    """Word dropout amplifies a mechanism behind it; a word that stays can be read, and the auditor reads it."""
    release = WordDropout(rate=0.9, random_state=0).fit([])
    audit = audit_epsilon(release, "she sings in a choir", "he sings in a choir", n_trials=4000, random_state=0)
    assert audit.claimed_epsilon is None
    assert audit.epsilon_lower > 3
