"""The pair that loses most: as far apart as the sensitivity, and nothing random is farther."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skfairdp.epsilon_audit import worst_case_pair, worst_case_pairs
from skfairdp.epsilon_audit._worst_case_pairs import pair_differing_in_column
from skfairdp.mechanisms import l1_sensitivity, l2_sensitivity, normalise
from skfairdp.preprocessing import GaussianPrivatizer, LaplacePrivatizer, OMEEncoder

ROWS = np.random.default_rng(0).normal(size=(500, 5))


@pytest.mark.parametrize("norm", ["l1", "l2", "minmax", "clip"])
@pytest.mark.parametrize("clip_norm", [1.0, 2.5])
@pytest.mark.parametrize("d", [2, 5, 8])
def test_laplace_pairs_attain_the_sensitivity(norm, clip_norm, d):
    privatizer = LaplacePrivatizer(epsilon=1.0, norm=norm, radius=clip_norm)
    x, x_prime = normalise(np.array(worst_case_pair(privatizer, d)), norm, clip_norm)
    assert np.abs(x - x_prime).sum() == pytest.approx(l1_sensitivity(norm, d, clip_norm))


def test_gaussian_pairs_attain_the_sensitivity():
    privatizer = GaussianPrivatizer(epsilon=1.0, radius=3.0).fit(ROWS)
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
    with pytest.raises(ValueError, match="n_features"):
        worst_case_pair(LaplacePrivatizer())
    with pytest.raises(ValueError, match="n_features"):
        worst_case_pair(LaplacePrivatizer(), 0)
    with pytest.raises(ValueError, match="minmax"):
        worst_case_pair(LaplacePrivatizer(norm="minmax"), 1)


def test_the_pairs_are_those_of_the_fitted_release():
    """After ``set_params`` the object still releases what it was fitted for, and the auditor must attack that."""
    release = LaplacePrivatizer(epsilon=1.0, norm="l2", radius=2.0).fit(ROWS)
    before = worst_case_pair(release)
    release.set_params(norm="l1", radius=1.0)
    np.testing.assert_array_equal(worst_case_pair(release), before)
    assert np.abs(before[0] - before[1]).sum() == pytest.approx(l1_sensitivity("l2", 5, 2.0))
    # the control: an unfitted one asks the parameters it has
    unfitted = worst_case_pair(LaplacePrivatizer(norm="l1", radius=1.0), 5)
    assert np.abs(unfitted[0] - unfitted[1]).sum() == pytest.approx(2.0)


@pytest.mark.parametrize(
    "estimator", [LaplacePrivatizer(norm="clip"), GaussianPrivatizer()], ids=["laplace", "gaussian"]
)
def test_several_pairs_of_a_fitted_or_unfitted_privatizer(estimator):
    pairs = worst_case_pairs(estimator, 6, random_state=1)
    assert len(pairs) == 4
    fitted = clone(estimator).fit(ROWS[:, [0, 0, 1, 2, 3, 4]])
    np.testing.assert_array_equal(worst_case_pairs(fitted, random_state=1), pairs)
    assert not np.array_equal(worst_case_pairs(fitted, random_state=2), pairs)
    with pytest.raises(ValueError, match="n_features"):
        worst_case_pairs(fitted, 5)


def test_unfitted_privatizer_is_left_alone():
    estimator = LaplacePrivatizer(norm="minmax", calibration="published")
    worst_case_pairs(estimator, 4)  # warnings are errors here
    assert not hasattr(estimator, "n_features_in_")


class Mechanism:
    """Knows its pairs, and draws one of them from a stream that it is lent."""

    def worst_case_pairs(self, stream=None):
        last = 7.0 if stream is None else stream.generator.random()
        return [(np.zeros(2), np.ones(2)), (np.zeros(2), np.array([0.0, last]))]


class Holder:
    n_features_in_ = 2
    mechanism_ = Mechanism()

    def _worst_case_pair(self, n_features):
        return [5.0] * n_features, [6.0] * n_features


def test_the_mechanism_of_a_fitted_estimator_is_asked_first():
    pairs = worst_case_pairs(Holder(), random_state=3)
    assert pairs[0][1].tolist() == [1.0, 1.0]
    assert 0 < pairs[1][1][1] < 1, "the random pair comes from random_state"
    np.testing.assert_array_equal(worst_case_pairs(Holder(), random_state=3), pairs)
    np.testing.assert_array_equal(worst_case_pairs(Mechanism(), random_state=3), pairs)


def test_pairs_behind_a_model_are_no_inputs():
    """A mechanism that works on representations speaks of those; the estimator's own answer is used, or none."""

    class Wider(Holder):
        n_features_in_ = 3

    class Model(Holder):
        def predict(self, X):
            return X

    for estimator in (Wider(), Model()):
        assert worst_case_pair(estimator)[0].tolist() == [5.0] * estimator.n_features_in_
    Model._worst_case_pair = None
    with pytest.raises(TypeError, match="are not known"):
        worst_case_pairs(Model())


def test_an_estimator_of_your_own_may_know_several_pairs():
    class Mine:
        def worst_case_pairs(self):
            return [([0.0], [1.0]), ([0.0], [2.0])]

    assert [pair[1].tolist() for pair in worst_case_pairs(Mine())] == [[1.0], [2.0]]


def test_a_pair_is_turned_to_another_coordinate():
    pairs = [(np.ones(3), -np.ones(3)), (np.array([1.0, 5.0, 2.0]), np.array([-1.0, 5.0, 2.0]))]
    assert [row.tolist() for row in pair_differing_in_column(pairs, 2)] == [[2.0, 5.0, 1.0], [2.0, 5.0, -1.0]]
    assert pair_differing_in_column(pairs[:1], 2) is None
    assert pair_differing_in_column(pairs, 3) is None
    assert pair_differing_in_column([("a", "b")], 0) is None
