"""Counts to epsilon: the bounds cover, the chosen event is a good one."""

import numpy as np
import pytest
from scipy.stats import beta, binom

from skfairdp.auditing._bounds import (
    Event,
    certified_epsilon,
    choose_event,
    largest_certifiable,
    proportion_bounds,
)


def error_rate(bounds_of, n, alpha):
    """Worst probability, over a grid of true proportions, that a lower or an upper bound is wrong."""
    k = np.arange(n + 1)
    lower, upper = bounds_of(k, n, alpha)
    worst = 0.0
    for p in np.linspace(0.001, 0.999, 333):
        mass = binom.pmf(k, n, p)
        worst = max(worst, mass[lower > p].sum(), mass[upper < p].sum())
    return worst


def wald(k, n, alpha):
    p = k / n
    half = 1.96 * np.sqrt(p * (1 - p) / n)
    return p - half, p + half


@pytest.mark.parametrize("n", [20, 75])
def test_proportion_bounds_are_wrong_no_more_often_than_allowed(n):
    assert error_rate(proportion_bounds, n, 0.025) <= 0.025
    assert error_rate(wald, n, 0.025) > 0.025, "the planted bound, the normal approximation, must fail here"


def test_proportion_bounds_agree_with_beta_quantiles():
    k, n, alpha = np.array([1, 7, 499]), 500, 0.025
    lower, upper = proportion_bounds(k, n, alpha)
    np.testing.assert_allclose(lower, beta.ppf(alpha, k, n - k + 1), rtol=1e-9)
    np.testing.assert_allclose(upper, beta.ppf(1 - alpha, k + 1, n - k), rtol=1e-9)
    lower, upper = proportion_bounds(np.array([0, n]), n, alpha)
    assert (lower[0], upper[1]) == (0.0, 1.0)


def test_the_cap_is_what_the_number_of_trials_allows():
    for n, cap in ((10**4, 7.905), (10**5, 10.208), (10**6, 12.510)):
        assert largest_certifiable(n, 0.05, 0.0) == pytest.approx(cap, abs=0.01)
        assert largest_certifiable(n, 0.05, 0.0) == pytest.approx(np.log(n / 3.689), abs=1e-3)


def test_certified_epsilon_is_never_negative_and_delta_lowers_it():
    assert certified_epsilon(np.array(10), np.array(50), 100, 0.05, 0.0) == 0
    assert certified_epsilon(np.array(3), np.array(0), 1000, 0.05, 0.5) == 0
    pure = certified_epsilon(np.array(900), np.array(10), 1000, 0.05, 0.0)
    assert certified_epsilon(np.array(900), np.array(10), 1000, 0.05, 0.1) < pure


def test_ties_with_the_threshold_belong_to_the_event():
    scores = np.array([0.0, 1.0, 1.0, 2.0])
    assert Event(1.0, above=True, favours_x=True).count(scores) == 3
    assert Event(1.0, above=False, favours_x=True).count(scores) == 3


@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.parametrize("sign", [1, -1])
def test_the_chosen_event_is_the_best_in_either_direction(swap, sign):
    """Half of the scores of one input stand at 3, none of the other: that atom is the event to find."""
    rng = np.random.default_rng(0)
    one, other = rng.normal(size=1000), rng.normal(size=1000)
    one[:500] = 3.0
    pair = (sign * other, sign * one) if swap else (sign * one, sign * other)
    event, bound = choose_event(*pair, 0.05, 0.0)
    assert event.favours_x is not swap
    assert event.above is (sign > 0)
    assert bound > 3
    assert event.count(sign * one) >= 500


def test_many_distinct_scores_keep_the_atoms_and_the_tails():
    rng = np.random.default_rng(0)
    one, other = rng.random(50_000), rng.random(50_000)
    one[:100] = 0.5
    one[100:200] = 2.0
    event, _ = choose_event(one, other, 0.05, 0.0)
    assert event.above
    assert event.count(one) == pytest.approx(100, abs=20)
    assert event.count(other) < 20
