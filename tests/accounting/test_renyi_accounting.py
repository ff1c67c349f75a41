"""Renyi accounting: known values, the reference accountant, and the order of the bounds."""

import math

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent
from dp_accounting.rdp import RdpAccountant
from hypothesis import given, settings
from hypothesis import strategies as st

from skfairdp.accounting import gaussian_epsilon, gaussian_rdp, pure_rdp, renyi_delta, renyi_epsilon, renyi_epsilons


@pytest.mark.parametrize(
    ("noise_scale", "improved", "classic"),
    [(20, 4.728387, 5.298526), (50, 1.692734, 1.999410), (100, 0.794315, 0.979705)],
)
def test_two_hundred_votes(noise_scale, improved, classic):
    rdp = gaussian_rdp(20 / noise_scale)
    assert renyi_epsilon(rdp, 1e-5) == pytest.approx(improved, abs=5e-5)
    assert renyi_epsilon(rdp, 1e-5, conversion="classic") == pytest.approx(classic, abs=1e-4)


@pytest.mark.parametrize("mu", [0.05, 0.4, 3.0])
def test_agrees_with_dp_accounting(mu):
    orders = [1.5, 2, 4, 8, 16, 32, 64, 128]
    accountant = RdpAccountant(orders)
    accountant.compose(GaussianDpEvent(1 / mu))
    assert renyi_epsilon(gaussian_rdp(mu, orders), 1e-6, orders) == pytest.approx(accountant.get_epsilon(1e-6))
    assert renyi_delta(gaussian_rdp(mu, orders), 1.0, orders) == pytest.approx(accountant.get_delta(1.0), rel=0.2)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("order", [1.3, 2.0, 17.0])
def test_pure_divergence_is_that_of_randomised_response(epsilon, order):
    p = math.exp(epsilon) / (1 + math.exp(epsilon))
    moment = p**order * (1 - p) ** (1 - order) + (1 - p) ** order * p ** (1 - order)
    assert pure_rdp(epsilon, [order])[0] == pytest.approx(math.log(moment) / (order - 1), rel=1e-12)


def test_pure_divergence_at_the_ends():
    np.testing.assert_allclose(pure_rdp(1e-9, [2.0, 10.0]), [1e-18, 5e-18], rtol=1e-9)  # order * epsilon^2 / 2
    assert pure_rdp(800.0, [2.0])[0] == pytest.approx(800, rel=1e-6)
    assert np.isinf(pure_rdp(math.inf, [2.0]))
    assert pure_rdp(0.0, [2.0]) == 0


@settings(max_examples=50, deadline=None)
@given(st.floats(0.01, 5), st.floats(-12, -1))
def test_bounds_lie_in_order(mu, log10_delta):
    delta = 10.0**log10_delta
    rdp = gaussian_rdp(mu)
    improved = renyi_epsilon(rdp, delta)
    assert gaussian_epsilon(delta, mu) <= improved * (1 + 1e-9)
    assert improved <= renyi_epsilon(rdp, delta, conversion="classic")
    assert renyi_delta(rdp, improved) <= delta * (1 + 1e-6) or improved == 0


@pytest.mark.parametrize("mu", [0.05, 0.4, 3.0])
@pytest.mark.parametrize("conversion", ["improved", "classic"])
def test_least_order_is_the_answer(mu, conversion):
    rdp = gaussian_rdp(mu)
    bounds = renyi_epsilons(rdp, 1e-5, conversion=conversion)
    assert (bounds >= gaussian_epsilon(1e-5, mu)).all()
    assert bounds.min() == renyi_epsilon(rdp, 1e-5, conversion=conversion)
    too_little = renyi_epsilons(rdp / 4, 1e-5, conversion=conversion)  # the planted fault: twice the noise is claimed
    assert (too_little < gaussian_epsilon(1e-5, mu)).any()


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: gaussian_rdp(1.0, [1.0]), "orders"),
        (lambda: gaussian_rdp(1.0, []), "orders"),
        (lambda: renyi_epsilon([1.0, 2.0], 1e-5, [2.0]), "rdp"),
        (lambda: renyi_epsilon([math.nan], 1e-5, [2.0]), "rdp"),
        (lambda: renyi_epsilon([1.0], 1e-5, [2.0], conversion="old"), "conversion"),
        (lambda: renyi_epsilon([1.0], 2.0, [2.0]), "delta"),
    ],
)
def test_bad_arguments_are_named(call, name):
    with pytest.raises(ValueError, match=name):
        call()
