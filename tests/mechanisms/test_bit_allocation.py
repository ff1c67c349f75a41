"""Budgets over bits: the tables of errors, optimality, and the integers that carry them."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from skfairdp.mechanisms import (
    allocate_posterior,
    allocate_unbiased,
    allocated_bit_mechanism,
    bit_weights,
    posterior_error,
    sue_mechanism,
    unbiased_error,
)

WEIGHTS = bit_weights(0, 9)  # ten bits on [-1, 1)


def mean_posterior_error(division):
    return np.mean([posterior_error(WEIGHTS, row) for row in division])


def posterior_gain(division, weights):
    return (np.asarray(weights) ** 2 / 4 * np.tanh(np.asarray(division) / 2) ** 2).sum()


# The table for 50 features of ten bits on [-1, 1)


@pytest.mark.parametrize(
    ("epsilon", "equal", "best"), [(1, 3.33e5, 47896.8), (8, 5208.22, 748.279), (50, 133.222, 19.0483)]
)
def test_unbiased_errors(epsilon, equal, best):
    assert unbiased_error(WEIGHTS, np.full(10, epsilon / 500)) == pytest.approx(
        equal, rel=1.1e-3 if epsilon == 1 else 1e-5
    )
    assert unbiased_error(WEIGHTS, allocate_unbiased(epsilon, 50, WEIGHTS)[0]) == pytest.approx(best, rel=3e-6)


@pytest.mark.parametrize(("epsilon", "error", "sampled"), [(1, 968.749, 1), (8, 27.2578, 1), (50, 4.08468, 6)])
def test_unbiased_errors_with_sampled_features(epsilon, error, sampled):
    """Spending epsilon on s of 50 features and scaling by 50/s; the second moment of the values is 1/3."""
    errors = [
        50 / s * (unbiased_error(WEIGHTS, allocate_unbiased(epsilon, s, WEIGHTS)[0]) + 1 / 3) - 1 / 3
        for s in range(1, 51)
    ]
    assert min(errors) == pytest.approx(error, rel=2e-6)
    assert np.argmin(errors) + 1 == sampled


@pytest.mark.parametrize(
    ("epsilon", "equal", "best", "n", "share"),
    [(1, 0.333333, 0.332265, 1, 1.0), (8, 0.333312, 0.321733, 4, 2.0), (50, 0.332501, 0.260510, 23, 2.1739)],
)
def test_posterior_errors(epsilon, equal, best, n, share):
    division = allocate_posterior(epsilon, 50, WEIGHTS)
    assert mean_posterior_error(np.full((50, 10), epsilon / 500)) == pytest.approx(equal, abs=1e-6)
    assert mean_posterior_error(division) == pytest.approx(best, abs=1e-6)
    assert (division > 0).sum() == (division[:, 0] > 0).sum() == n
    assert division.max() == pytest.approx(share, abs=5e-5)


def test_shares_of_the_unbiased_division():
    shares = [0.37371, 0.23543, 0.14831, 0.09343, 0.05886, 0.03708, 0.02336, 0.01471, 0.00927, 0.00584]
    division = allocate_unbiased(50.0, 50, WEIGHTS)
    np.testing.assert_allclose(division, np.tile(shares, (50, 1)), atol=5e-6)
    rule = WEIGHTS ** (2 / 3)
    np.testing.assert_allclose(division[0], rule / rule.sum(), rtol=2e-3)


def test_one_bit_by_hand():
    assert sue_mechanism(1.0, 1).p[0] == pytest.approx(0.731059, abs=5e-7)
    assert posterior_error([1.0], [1.0]) == pytest.approx(0.196612, abs=5e-7)
    assert unbiased_error([1.0], [1.0]) == pytest.approx(0.920674, abs=5e-7)


def test_a_served_bit_gets_about_the_root_of_sinh_x_is_2x():
    """With many features the best share tends to 2.177319, where the gain per budget is largest."""
    root = 2.177319
    assert math.sinh(root) == pytest.approx(2 * root, rel=1e-6)
    division = allocate_posterior(1000.0, 5000, WEIGHTS[:2])
    assert division.max() == pytest.approx(root, rel=2e-3)


# Optimality


@given(epsilon=st.floats(0.01, 300), n_features=st.integers(1, 8), n_bits=st.integers(2, 12))
@settings(max_examples=60, deadline=None)
def test_the_unbiased_division_satisfies_its_condition(epsilon, n_features, n_bits):
    assume(epsilon < 40 * n_features * n_bits)  # beyond, 64-bit thresholds treat all bits alike
    weights = bit_weights(3, n_bits - 1)
    division = allocate_unbiased(epsilon, n_features, weights)
    assert division.sum() == pytest.approx(epsilon, rel=1e-12)
    half = division[0] / 2
    slopes = np.log(weights**2 / 4) + np.log(np.cosh(half)) - 3 * np.log(np.sinh(half))
    assert np.ptp(slopes) < 1e-8


def test_no_other_division_has_a_smaller_unbiased_error():
    rng = np.random.default_rng(0)
    division = allocate_unbiased(20.0, 1, WEIGHTS)[0]
    best = unbiased_error(WEIGHTS, division)
    for _ in range(200):
        other = division * np.exp(rng.normal(scale=0.1, size=10))
        assert unbiased_error(WEIGHTS, other * (20.0 / other.sum())) > best


def best_gain_on_a_grid(epsilon, n_features, weights, n_steps=240):
    """Dynamic programming over every bit of every feature, each getting a multiple of epsilon / n_steps."""
    budgets = np.arange(n_steps + 1) * epsilon / n_steps
    best = np.zeros(n_steps + 1)
    for weight in np.repeat(weights, n_features):
        gain = weight**2 / 4 * np.tanh(budgets / 2) ** 2
        best = np.array([(best[: j + 1] + gain[j::-1]).max() for j in range(n_steps + 1)])
    return best[-1]


@pytest.mark.parametrize(("n_features", "n_bits"), [(1, 2), (1, 3), (2, 3), (3, 2)])
def test_no_other_division_has_a_smaller_posterior_error(n_features, n_bits):
    weights = bit_weights(0, n_bits - 1)
    for epsilon in [0.3, 2.0, 4.4, 4.9, 5.5, 9.0, 15.0, 40.0]:
        division = allocate_posterior(epsilon, n_features, weights)
        assert division.sum() == pytest.approx(epsilon, rel=1e-9)
        grid = best_gain_on_a_grid(epsilon, n_features, weights)
        assert posterior_gain(division, weights) >= grid * (1 - 1e-9)
        # A division that this test rejects: the same for every bit (with a large budget all bits are nearly sure).
        assert epsilon > 10 or posterior_gain(np.full(division.shape, epsilon / division.size), weights) < grid * 0.999


def test_more_budget_never_harms():
    epsilons = np.geomspace(0.01, 1e5, 30)
    for error, allocate in ((posterior_error, allocate_posterior), (unbiased_error, allocate_unbiased)):
        errors = [sum(error(WEIGHTS, row) for row in allocate(epsilon, 3, WEIGHTS)) for epsilon in epsilons]
        assert (np.diff(errors) <= 1e-12).all()


# The mechanism


@given(share=st.floats(1e-4, 100), n_features=st.integers(1, 20), posterior=st.booleans())
@settings(max_examples=25, deadline=None)
def test_allocated_bits_spend_epsilon_and_no_more(share, n_features, posterior):
    epsilon = share * n_features  # a larger share would meet the end of 64-bit thresholds
    division = (allocate_posterior if posterior else allocate_unbiased)(epsilon, n_features, WEIGHTS)
    mechanism = allocated_bit_mechanism(division, epsilon)
    assert epsilon * (1 - 1e-8) < mechanism.epsilon <= epsilon
    np.testing.assert_allclose(mechanism.bit_epsilon, division.ravel(), rtol=1e-6, atol=1e-15)


def test_a_bit_without_budget_is_a_fair_coin():
    mechanism = allocated_bit_mechanism(np.array([1.0, 0.0]), 1.0)
    assert mechanism.one_to_one[1] == mechanism.zero_to_one[1] == 2**63
    assert mechanism.bit_epsilon[1] == 0


def test_too_large_budgets_are_cut_to_epsilon():
    assert 2 - 1e-12 < allocated_bit_mechanism(np.array([3.0, 5.0]), 2.0).epsilon <= 2


@pytest.mark.parametrize("allocate", [allocate_posterior, allocate_unbiased])
@pytest.mark.parametrize("epsilon", [0.0, -2.0, math.nan, math.inf])
def test_bad_epsilon_is_refused(allocate, epsilon):
    with pytest.raises(ValueError, match="epsilon"):
        allocate(epsilon, 3, WEIGHTS)


@pytest.mark.parametrize("budgets", [[-1.0, 1.0], [math.nan], [math.inf]])
def test_budgets_must_be_finite(budgets):
    with pytest.raises(ValueError, match="bit_epsilon"):
        allocated_bit_mechanism(np.array(budgets), 1.0)
