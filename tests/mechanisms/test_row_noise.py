"""The farthest rows: at the sensitivity where that is promised, never beyond it, and different from each other."""

import numpy as np
import pytest

from skfairdp.mechanisms import farthest_pairs, l1_sensitivity, l2_sensitivity, normalise
from skfairdp.random import random_stream

NORMS = ["l1", "l2", "minmax", "clip"]
#: How many of the pairs, from the front, are at the largest distance.
AT_THE_LARGEST = {
    ("l1", "laplace"): 4,
    ("l2", "laplace"): 2,
    ("minmax", "laplace"): 3,
    ("clip", "laplace"): 2,
    ("l1", "gaussian"): 2,
    ("l2", "gaussian"): 4,
    ("minmax", "gaussian"): 3,
    ("clip", "gaussian"): 2,
}


def distance_and_sensitivity(pair, norm, noise, clip_norm):
    x, x_prime = normalise(np.array(pair), norm, clip_norm)
    if noise == "laplace":
        return np.abs(x - x_prime).sum(), l1_sensitivity(norm, x.size, clip_norm)
    return np.linalg.norm(x - x_prime), l2_sensitivity(norm, x.size, clip_norm)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("clip_norm", [1.0, 2.5])
@pytest.mark.parametrize("d", [3, 8, 51])
def test_pairs_attain_the_sensitivity_and_never_exceed_it(norm, noise, clip_norm, d):
    pairs = farthest_pairs(norm, d, noise=noise, clip_norm=clip_norm, stream=random_stream(0))
    n_farthest = AT_THE_LARGEST[norm, noise]
    for i, pair in enumerate(pairs):
        distance, sensitivity = distance_and_sensitivity(pair, norm, noise, clip_norm)
        if i < n_farthest:
            assert distance == pytest.approx(sensitivity)
        else:
            assert distance < 0.999 * sensitivity, "the table above is not too modest"


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("norm", NORMS)
def test_rows_are_normalised_already(norm, noise):
    for pair in farthest_pairs(norm, 7, noise=noise, clip_norm=2.0, stream=random_stream(1)):
        np.testing.assert_allclose(normalise(np.array(pair), norm, 2.0), np.array(pair), atol=1e-12)


@pytest.mark.parametrize("norm", NORMS)
def test_every_coordinate_moves_somewhere_and_the_last_one_far(norm):
    """The fault to see: with the first pair alone, most coordinates of an L1 row never move."""
    gaps = [np.abs(x - x_prime) for x, x_prime in farthest_pairs(norm, 9, stream=random_stream(0))]
    assert (np.array(gaps) > 0).any(axis=0).all()
    assert max(gap[-1] for gap in gaps) == pytest.approx(1.0 if norm == "minmax" else 2.0)
    if norm == "l1":
        assert np.count_nonzero(gaps[0]) == 1


def test_chance_comes_from_the_stream():
    def rows(seed):
        return np.array(farthest_pairs("l1", 20, stream=random_stream(seed)))

    np.testing.assert_array_equal(rows(3), rows(3))
    assert not np.array_equal(rows(3), rows(4))
    np.testing.assert_array_equal(np.array(farthest_pairs("l1", 20)), np.array(farthest_pairs("l1", 20)))


@pytest.mark.parametrize("norm", ["l1", "l2", "clip"])
def test_one_feature_has_one_pair(norm):
    assert [(x.tolist(), y.tolist()) for x, y in farthest_pairs(norm, 1)] == [([1.0], [-1.0])]


def test_minmax_pairs_are_never_constant():
    assert len(farthest_pairs("minmax", 2)) == 1
    for seed in range(50):
        for x, _ in farthest_pairs("minmax", 3, stream=random_stream(seed)):
            assert 0 < x.sum() < 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"norm": "l3"}, "norm"),
        ({"norm": "l1", "noise": "cauchy"}, "noise"),
        ({"norm": "l1", "clip_norm": 0.0}, "clip_norm"),
        ({"norm": "minmax", "n_features": 1}, "minmax"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        farthest_pairs(**{"n_features": 3, **arguments})
