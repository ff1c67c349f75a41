"""Bounds of a proportion: wrong no more often than they say, whatever the proportion."""

import numpy as np
import pytest
from scipy.stats import beta, binom

from skfairdp.metrics import proportion_bounds


def error_rate(bounds_of, n, alpha):
    """Worst probability, over a grid of true proportions, that a lower or an upper bound is wrong."""
    k = np.arange(n + 1)
    lower, upper = bounds_of(k, n, alpha)
    worst = 0.0
    for p in np.linspace(0.001, 0.999, 333):
        mass = binom.pmf(k, n, p)
        worst = max(worst, mass[lower > p].sum(), mass[upper < p].sum())
    return worst


def too_tight(k, n, alpha):
    """The planted fault: both bounds share one alpha, where each needs its own."""
    return proportion_bounds(k, n, 2 * alpha)


@pytest.mark.parametrize("n", [1, 20, 75])
def test_each_bound_is_wrong_with_probability_at_most_alpha(n):
    assert error_rate(proportion_bounds, n, 0.025) <= 0.025
    assert error_rate(too_tight, n, 0.025) > 0.025


def test_the_bounds_are_beta_quantiles_and_fixed_at_the_ends():
    k, n = np.array([1, 7, 499]), np.array([2, 500, 500])
    lower, upper = proportion_bounds(k, n, 0.01)
    np.testing.assert_allclose(lower, beta.ppf(0.01, k, n - k + 1), rtol=1e-9)
    np.testing.assert_allclose(upper, beta.ppf(0.99, k + 1, n - k), rtol=1e-9)
    lower, upper = proportion_bounds([0, 9, 0], [9, 9, 0], 0.01)
    assert (lower[0], upper[1]) == (0.0, 1.0)
    assert (lower[2], upper[2]) == (0.0, 1.0), "no trial, no knowledge"
