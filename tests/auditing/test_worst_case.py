"""The pair that loses most: as far apart as the sensitivity, and nothing random is farther."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skfairdp.auditing import worst_case_pair
from skfairdp.mechanisms import l1_sensitivity, l2_sensitivity, normalise
from skfairdp.preprocessing import GaussianPrivatizer, LaplacePrivatizer, OMEEncoder

ROWS = np.random.default_rng(0).normal(size=(500, 5))


@pytest.mark.parametrize("norm", ["l1", "l2", "minmax", "clip"])
@pytest.mark.parametrize("clip_norm", [1.0, 2.5])
@pytest.mark.parametrize("d", [2, 5, 8])
def test_laplace_pairs_attain_the_sensitivity(norm, clip_norm, d):
    privatizer = LaplacePrivatizer(epsilon=1.0, norm=norm, clip_norm=clip_norm)
    x, x_prime = normalise(np.array(worst_case_pair(privatizer, d)), norm, clip_norm)
    assert np.abs(x - x_prime).sum() == pytest.approx(l1_sensitivity(norm, d, clip_norm))


def test_gaussian_pairs_attain_the_sensitivity():
    privatizer = GaussianPrivatizer(epsilon=1.0, clip_norm=3.0).fit(ROWS)
    x, x_prime = normalise(np.array(worst_case_pair(privatizer)), "l2", 3.0)
    assert np.linalg.norm(x - x_prime) == pytest.approx(l2_sensitivity("l2", 5, 3.0))


@pytest.mark.parametrize("norm", ["l1", "l2", "minmax", "clip"])
def test_no_random_pair_is_worse(norm):
    """The loss of Laplace noise is the L1 distance of the normalised rows over its scale."""
    privatizer = LaplacePrivatizer(epsilon=1.0, norm=norm, random_state=0).fit(ROWS)

    def loss(x, x_prime):
        x, x_prime = normalise(np.array([x, x_prime]), norm)
        return np.abs(x - x_prime).sum() / privatizer.noise_scale_

    worst = loss(*worst_case_pair(privatizer))
    random = max(loss(x, x_prime) for x, x_prime in zip(5 * ROWS[:250], 5 * ROWS[250:]))
    # the rounding of L2 rows to a grid pays up to one per cent
    assert 0.985 < worst <= 1.0 + 1e-12
    assert random <= worst + 1e-12
    # the control: one coordinate that changes its sign is not the worst case of "l2" and "clip"
    one_coordinate = loss(np.eye(5)[0], -np.eye(5)[0])
    assert (one_coordinate > 0.985) == (norm in ("l1", "minmax"))


@pytest.mark.parametrize("protocol", ["ome", "oue", "sue", "optimal"])
def test_bits_lose_everything_they_may(protocol):
    """Some output of the pair has a likelihood ratio equal to epsilon: the one that favours x in every bit."""
    encoder = OMEEncoder(epsilon=3.0, protocol=protocol, n_integer_bits=2, n_fraction_bits=2, random_state=0).fit(ROWS)
    x, x_prime = worst_case_pair(encoder)
    p, q = encoder.keep_probability_, encoder.flip_probability_
    loud = np.abs(np.log(p / q)) > np.abs(np.log((1 - p) / (1 - q)))  # bits that lose more when they come out as 1
    outputs = np.vstack([np.ones(p.size), np.zeros(p.size), loud]).astype(int)
    epsilon = encoder.privacy_.epsilon
    assert np.abs(encoder.log_likelihood_ratio(outputs, x, x_prime)).max() == pytest.approx(epsilon, rel=1e-6)
    # the control: two ordinary rows lose less
    assert np.abs(encoder.log_likelihood_ratio(outputs, ROWS[0], ROWS[1])).max() < 0.9 * epsilon


def test_an_estimator_of_your_own_joins_by_a_method():
    class Mine:
        n_features_in_ = 2

        def _worst_case_pair(self, n_features):
            return [0.0] * n_features, [1.0] * n_features

    x, x_prime = worst_case_pair(Mine())
    assert x.tolist() == [0.0, 0.0]
    assert x_prime.tolist() == [1.0, 1.0]


def test_what_is_not_known_is_refused():
    for unknown in (StandardScaler(), make_pipeline(StandardScaler(), LaplacePrivatizer()), len):
        with pytest.raises(TypeError, match=r"worst-case neighbours of .* are not known. Give x and x_prime yourself"):
            worst_case_pair(unknown, 3)
    with pytest.raises(ValueError, match="n_features is missing: give it, or fit the estimator first"):
        worst_case_pair(LaplacePrivatizer())
    with pytest.raises(ValueError, match=r"n_features must be a whole number of at least 1; got 0"):
        worst_case_pair(LaplacePrivatizer(), 0)
    with pytest.raises(ValueError, match="at least 2 for norm='minmax'"):
        worst_case_pair(LaplacePrivatizer(norm="minmax"), 1)
