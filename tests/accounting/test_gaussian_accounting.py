"""The Gaussian profile: published digits, high-precision truth, and the safe side of every inversion."""

import math

import mpmath
import numpy as np
import pytest
from dp_accounting import GaussianDpEvent
from dp_accounting.pld import PLDAccountant
from hypothesis import given, settings
from hypothesis import strategies as st

from skfairdp.accounting import (
    gaussian_delta,
    gaussian_epsilon,
    gaussian_log_delta,
    gaussian_mu,
    gaussian_sigma,
)

SIGMAS = {
    0.1: (30.749566, 36.304690, 54.206296),
    0.5: (7.031827, 8.057618, 11.436240),
    1: (3.730632, 4.224679, 5.867778),
    2: (1.993812, 2.230476, 3.025794),
    4: (1.081162, 1.193519, 1.575316),
    8: (0.600229, 0.652935, 0.833989),
    16: (0.344177, 0.368612, 0.453238),
    50: (0.149761, 0.156593, 0.180294),
}


def true_log_delta(epsilon, mu):
    """Fifty digits more than the difference of the two terms loses."""
    with mpmath.workdps(120):
        e, m = mpmath.mpf(epsilon), mpmath.mpf(mu)

        def below(z):  # Phi(z), by erfc so that tails keep their digits
            return mpmath.erfc(-z / mpmath.sqrt(2)) / 2

        return float(mpmath.log(below(m / 2 - e / m) - mpmath.exp(e) * below(-m / 2 - e / m)))


@pytest.mark.parametrize("epsilon", SIGMAS)
def test_sigma_to_all_digits(epsilon):
    found = [gaussian_sigma(float(epsilon), delta) for delta in (1e-5, 1e-6, 1e-10)]
    np.testing.assert_allclose(found, SIGMAS[epsilon], atol=6e-7)


def test_epsilon_to_all_digits():
    mus = (0.01, 0.1, 0.2, 0.4, 1.0, 2.0, 5.0)
    expected = (0.027219, 0.340669, 0.725522, 1.554982, 4.377178, 9.997256, 33.103732)
    np.testing.assert_allclose([gaussian_epsilon(1e-5, mu) for mu in mus], expected, atol=6e-7)


@pytest.mark.parametrize(("epsilon", "sigma", "delta"), [(16.0, 0.302800, 3.36e-4), (50.0, 0.096896, 0.586)])
def test_classic_calibration_is_convicted(epsilon, sigma, delta):
    assert gaussian_delta(epsilon, 1 / sigma) == pytest.approx(delta, rel=2e-3)


GRID = [(e, m) for e in (0.0, 1e-6, 0.1, 1.0, 30.0, 1e3) for m in (1e-6, 1e-3, 0.1, 1.0, 10.0, 60.0)]


@pytest.mark.parametrize(("epsilon", "mu"), [(e, m) for e, m in GRID if e / m < 1e5])
def test_log_delta_against_high_precision(epsilon, mu):
    truth = true_log_delta(epsilon, mu)
    assert gaussian_log_delta(epsilon, mu) == pytest.approx(truth, rel=1e-7, abs=1e-7)


@settings(max_examples=60, deadline=None)
@given(
    epsilon=st.floats(0, 100).filter(lambda e: e == 0 or e > 1e-6),
    log10_delta=st.floats(-60, -0.01),
)
def test_inversions_never_overstate(epsilon, log10_delta):
    delta = 10.0**log10_delta
    mu = gaussian_mu(epsilon, delta)
    truth = true_log_delta(epsilon, mu)
    assert truth <= math.log(delta)
    assert truth == pytest.approx(math.log(delta), abs=1e-6)  # and nothing is given away
    back = gaussian_epsilon(delta, mu)
    assert back <= epsilon * (1 + 1e-9) + 1e-9
    assert true_log_delta(back, mu) <= math.log(delta)


def test_an_inversion_from_the_wrong_side_would_be_found():
    mu = gaussian_mu(1.0, 1e-5) * (1 + 1e-9)
    assert true_log_delta(1.0, mu) > math.log(1e-5)


def test_extremes():
    assert gaussian_mu(math.inf, 1e-5) == math.inf
    assert gaussian_sigma(math.inf, 1e-5) == 0
    assert gaussian_epsilon(1e-5, 0.0) == 0
    assert gaussian_epsilon(0.0, 1.0) == math.inf
    assert gaussian_epsilon(1e-5, math.inf) == math.inf
    assert gaussian_epsilon(0.9, 0.1) == 0
    np.testing.assert_array_equal(gaussian_delta([1.0, 0.0, math.inf], [0.0, 0.0, 1.0]), 0)
    np.testing.assert_array_equal(gaussian_delta([5.0, -math.inf], [math.inf, 1.0]), 1)
    assert gaussian_delta(-1.0, 0.0) == pytest.approx(1 - math.exp(-1))
    assert gaussian_delta(0.0, 0.7) == pytest.approx(math.erf(0.7 / math.sqrt(8)))
    assert gaussian_mu(1e5, 1e-300) > 100
    assert gaussian_sigma(1e-3, 1e-300) > 1e4


def test_negative_epsilon_is_the_mirror_of_a_positive_one():
    # Swapping the two hypotheses: delta(-e) = 1 - e^{-e} (1 - delta(e)).
    for mu in (0.3, 2.0, 7.0):
        assert gaussian_delta(-1.3, mu) == pytest.approx(1 - math.exp(-1.3) * (1 - gaussian_delta(1.3, mu)), rel=1e-12)


@pytest.mark.parametrize(("mu", "count"), [(0.4, 1), (1.0, 1), (0.1, 100)])
def test_agrees_with_dp_accounting(mu, count):
    accountant = PLDAccountant(value_discretization_interval=1e-4)
    accountant.compose(GaussianDpEvent(1 / mu), count)
    assert gaussian_epsilon(1e-5, mu * math.sqrt(count)) == pytest.approx(accountant.get_epsilon(1e-5), abs=2e-4)


def test_shapes():
    assert gaussian_log_delta(np.zeros((2, 1)), np.ones(3)).shape == (2, 3)
    assert isinstance(gaussian_log_delta(1.0, 1.0), float)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: gaussian_mu(-1.0, 1e-5), "epsilon"),
        (lambda: gaussian_mu(1.0, 0.0), "delta"),
        (lambda: gaussian_mu(1.0, 1.0), "delta"),
        (lambda: gaussian_epsilon(1e-5, -1.0), "mu"),
        (lambda: gaussian_epsilon(1e-5, math.nan), "mu"),
        (lambda: gaussian_epsilon(1e-5, "one"), "mu"),
        (lambda: gaussian_sigma(1.0, 1e-5, 0.0), "sensitivity"),
        (lambda: gaussian_sigma(0.0, 1e-5), "epsilon"),
        (lambda: gaussian_sigma(-1.0, 1e-5), "epsilon"),
        (lambda: gaussian_log_delta(math.nan, 1.0), "epsilon"),
        (lambda: gaussian_log_delta(1.0, -1.0), "mu"),
    ],
)
def test_bad_arguments_are_named(call, name):
    with pytest.raises((ValueError, TypeError), match=name):
        call()
