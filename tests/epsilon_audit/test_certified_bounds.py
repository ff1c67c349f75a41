"""Counts to epsilon: the bounds cover, the chosen event is a good one."""

import numpy as np
import pytest
from scipy.stats import beta

from skfairdp.epsilon_audit._certified_bounds import (
    Event,
    certified_epsilon,
    choose_event,
    largest_certifiable,
)


def test_the_cap_is_what_the_number_of_trials_allows():
    for n, cap in ((10**4, 7.905), (10**5, 10.208), (10**6, 12.510)):
        assert largest_certifiable(n, 0.05, 0.0) == pytest.approx(cap, abs=0.01)
        assert largest_certifiable(n, 0.05, 0.0) == pytest.approx(np.log(n / 3.689), abs=1e-3)


def test_certified_epsilon_falls_with_delta():
    assert certified_epsilon(np.array(10), np.array(50), 100, 0.05, 0.0) == 0
    assert certified_epsilon(np.array(3), np.array(0), 1000, 0.05, 0.5) == 0
    pure = certified_epsilon(np.array(900), np.array(10), 1000, 0.05, 0.0)
    assert certified_epsilon(np.array(900), np.array(10), 1000, 0.05, 0.1) < pure


@pytest.mark.parametrize(
    ("k_more", "k_less", "n", "delta"), [(900, 10, 1000, 0.0), (37, 2, 50, 0.01), (400, 90, 500, 0.0)]
)
def test_each_proportion_takes_half_of_alpha(k_more, k_less, n, delta):
    alpha = 0.05
    at_least = beta.ppf(alpha / 2, k_more, n - k_more + 1)
    at_most = beta.ppf(1 - alpha / 2, k_less + 1, n - k_less)
    found = certified_epsilon(np.array(k_more), np.array(k_less), n, alpha, delta)
    assert found == pytest.approx(np.log((at_least - delta) / at_most), rel=1e-9)


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
