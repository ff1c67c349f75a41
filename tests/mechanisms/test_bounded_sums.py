"""Noisy sums of columns and of their squares: no pair of neighbouring data sets is told apart by more than epsilon."""

import itertools
import math

import numpy as np
import pytest

from skfairdp.mechanisms import bounded_sums
from skfairdp.random import random_stream


@pytest.mark.parametrize("n_features", [1, 3])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_no_two_records_differ_by_more_than_epsilon(epsilon, n_features):
    """The sum and the sum of squares move together: most from 1 to -1/2, more than from 1 to -1 or from 1 to 0."""
    mechanism = bounded_sums(n_features, epsilon)
    values = np.linspace(-1, 1, 41)
    losses = {}
    for a, b in itertools.product(values, values):
        x, x_prime = np.full((1, n_features), a), np.full((1, n_features), b)
        # An outcome so far out that it lies beyond the sums of both: there the loss is largest.
        y = np.where(a > b, 1, -1) * np.stack([np.full(n_features, 50.0), np.full(n_features, 50.0 * np.sign(a + b))])
        losses[a, b] = abs(mechanism.log_likelihood_ratio(y, x, x_prime)[0])
    assert max(losses.values()) <= epsilon * (1 + 1e-9)
    assert max(losses.values()) > 0.7 * epsilon
    assert max(losses, key=losses.get) in [(1.0, -0.5), (-0.5, 1.0), (-1.0, 0.5), (0.5, -1.0)]


def test_noise_has_the_scale_of_the_loss():
    """What is drawn is what the likelihood ratio speaks of."""
    mechanism = bounded_sums(2, 1.0)
    drawn = np.array([mechanism.release(np.zeros((5, 2)), random_stream(seed)) for seed in range(500)]).ravel()
    per_unit = mechanism.log_likelihood_ratio(np.full((2, 2), 50.0), np.ones((1, 2)), np.zeros((1, 2)))[0] / 4
    assert np.abs(drawn).mean() == pytest.approx(1 / per_unit, rel=0.1)
    assert np.array_equal(bounded_sums(2, math.inf).release(np.ones((5, 2)), random_stream(0)), np.full((2, 2), 5.0))
