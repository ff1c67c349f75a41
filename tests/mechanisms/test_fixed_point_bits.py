"""Fixed-point bits: exact on the grid, saturating, and every row of bits reachable."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.integrate import quad

from skfairdp.mechanisms import (
    bit_names,
    bit_weights,
    decode_bits,
    encode_bits,
    posterior_estimate,
    posterior_means,
)

BIT_FORMATS = ["sign-magnitude", "offset"]
sizes = st.tuples(st.integers(0, 12), st.integers(0, 12)).filter(lambda size: sum(size) > 0)


def slow_sign_magnitude(value, n_integer_bits, n_fraction_bits):
    """One number at a time, with Python's integers."""
    magnitude = min(round(abs(value) * 2**n_fraction_bits), 2 ** (n_integer_bits + n_fraction_bits) - 1)
    return [int(value < 0), *map(int, format(magnitude, f"0{n_integer_bits + n_fraction_bits}b"))]


def slow_offset(value, n_integer_bits, n_fraction_bits):
    n_bits = 1 + n_integer_bits + n_fraction_bits
    step = int(value * 2**n_fraction_bits // 1) + 2 ** (n_bits - 1)
    return list(map(int, format(min(max(step, 0), 2**n_bits - 1), f"0{n_bits}b")))


@given(
    values=arrays(np.float64, st.tuples(st.integers(1, 4), st.integers(1, 3)), elements=st.floats(-1e6, 1e6)),
    size=sizes,
)
def test_bits_agree_with_a_slow_version(values, size):
    for bit_format, slow in (("sign-magnitude", slow_sign_magnitude), ("offset", slow_offset)):
        expected = [[bit for value in row for bit in slow(value, *size)] for row in values.tolist()]
        np.testing.assert_array_equal(encode_bits(values, *size, bit_format=bit_format), expected)


@pytest.mark.parametrize("bit_format", BIT_FORMATS)
@given(values=arrays(np.float64, (3, 2), elements=st.floats(-3e3, 3e3)), size=sizes)
def test_decoding_is_within_half_a_step_and_saturates(bit_format, values, size):
    n_integer_bits, n_fraction_bits = size
    step = 2.0**-n_fraction_bits
    back = decode_bits(encode_bits(values, *size, bit_format=bit_format), *size, bit_format=bit_format)
    limit = 2.0**n_integer_bits - (step if bit_format == "sign-magnitude" else step / 2)
    np.testing.assert_array_less(np.abs(back - np.clip(values, -limit, limit)), step / 2 * (1 + 1e-9) + 1e-300)
    assert (np.abs(back) <= limit).all()


@pytest.mark.parametrize("bit_format", BIT_FORMATS)
@pytest.mark.parametrize("size", [(0, 1), (4, 5), (20, 32)])
def test_huge_numbers_saturate(bit_format, size):
    values = np.array([[np.inf, 1e308, 1e19], [-np.inf, -1e308, -1e19]])
    back = decode_bits(encode_bits(values, *size, bit_format=bit_format), *size, bit_format=bit_format)
    top = 2.0 ** size[0] - 2.0 ** -size[1] / (1 if bit_format == "sign-magnitude" else 2)
    np.testing.assert_array_equal(back, [[top] * 3, [-top] * 3])


@pytest.mark.parametrize("bit_format", BIT_FORMATS)
def test_every_row_of_bits_is_reachable(bit_format):
    """Otherwise the loss would not be attained; a small negative number becomes minus zero."""
    values = np.linspace(-9, 9, 4001)[:, None]
    assert len(np.unique(encode_bits(values, 2, 1, bit_format=bit_format), axis=0)) == 16


def test_signs():
    values = np.array([[-0.01, 0.0, -0.0, 0.01, -5.0]])
    assert encode_bits(values, 2, 1, bit_format="sign-magnitude").reshape(5, 4)[:, 0].tolist() == [1, 0, 0, 0, 1]
    assert encode_bits(values, 2, 1, bit_format="offset").reshape(5, 4)[:, 0].tolist() == [0, 1, 1, 1, 0]


def test_memory_order_and_precision_of_the_input_do_not_matter():
    values = np.random.default_rng(0).normal(size=(7, 5)).astype(np.float32)
    for bit_format in BIT_FORMATS:
        bits = encode_bits(values, 4, 5, bit_format=bit_format)
        np.testing.assert_array_equal(bits, encode_bits(np.asfortranarray(values), 4, 5, bit_format=bit_format))
        np.testing.assert_array_equal(bits, encode_bits(values.astype(np.float64), 4, 5, bit_format=bit_format))


def test_names_and_weights_tell_the_same():
    names, weights = bit_names(4, 5), bit_weights(4, 5)
    assert names == ["sign", "int3", "int2", "int1", "int0", "frac1", "frac2", "frac3", "frac4", "frac5"]
    assert weights[0] == 16
    for name, weight in zip(names[1:], weights[1:]):
        assert weight == 2.0 ** (int(name[3:]) if name.startswith("int") else -int(name[4:]))


@pytest.mark.parametrize("size", [(-1, 5), (2.5, 5), (4, "5"), (True, 1)])
def test_a_fractional_or_negative_number_of_bits_is_refused(size):
    with pytest.raises(ValueError, match="must be a whole number of bits, 0 or more"):
        encode_bits(np.zeros((1, 1)), *size, bit_format="offset")


@pytest.mark.parametrize("size", [(0, 0), (30, 30)])
def test_too_few_and_too_many_bits_are_refused(size):
    with pytest.raises(ValueError, match=r"n_integer_bits . n_fraction_bits must be from 1 to 52"):
        bit_weights(*size)


def test_unknown_bit_format_is_refused():
    for function in (encode_bits, decode_bits):
        with pytest.raises(ValueError, match="bit_format"):
            function(np.zeros((1, 2)), 1, 0, bit_format="gray")


# Posterior means


def slow_posterior_mean(reading, gains, n_integer_bits, density):
    """Bayes' rule by numerical integration over each cell."""
    n_cells = 2 ** len(gains)
    edges = np.linspace(-(2.0**n_integer_bits), 2.0**n_integer_bits, n_cells + 1)
    top = mass = 0.0
    for cell in range(n_cells):
        likelihood = 1.0
        for k, gain in enumerate(gains):
            shift = len(gains) - 1 - k
            likelihood *= (1 + gain) / 2 if (cell >> shift) & 1 == (reading >> shift) & 1 else (1 - gain) / 2
        low, high = edges[cell], edges[cell + 1]
        if density is not None:
            low, high = (-np.inf if cell == 0 else low), (np.inf if cell == n_cells - 1 else high)
        weigh = density or (lambda x: 1.0)
        mass += likelihood * quad(weigh, low, high)[0]
        top += likelihood * quad(lambda x, weigh=weigh: x * weigh(x), low, high)[0]
    return top / mass


@pytest.mark.parametrize("gains", [[0.9], [0.7, 0.2], [0.99, 0.5, 0.0]])
@pytest.mark.parametrize("prior", ["uniform", "normal"])
def test_posterior_means_follow_from_bayes(gains, prior):
    density = None if prior == "uniform" else (lambda x: math.exp(-x * x / 2))
    expected = [slow_posterior_mean(reading, gains, 1, density) for reading in range(2 ** len(gains))]
    np.testing.assert_allclose(posterior_means(gains, 1, prior), expected, atol=1e-7)


def test_a_uniform_posterior_is_linear_in_the_bits():
    gains = np.array([[0.9, 0.5, 0.1], [0.3, 0.0, 0.0]])
    bits = np.random.default_rng(0).integers(0, 2, size=(40, 6)).astype(np.int8)
    linear = ((bits.reshape(40, 2, 3) - 0.5) * gains) @ bit_weights(1, 1)
    np.testing.assert_allclose(posterior_estimate(bits, gains, 1, "uniform"), linear, atol=1e-14)


def test_all_of_many_bits_are_estimated():
    gains = np.full((1, 20), 1.0)
    bits = np.ones((1, 20), dtype=np.int8)
    assert posterior_estimate(bits, gains, 0, "uniform")[0, 0] == pytest.approx(1 - 2.0**-20, rel=1e-12)


def test_an_unknown_prior_is_refused():
    with pytest.raises(ValueError, match="prior"):
        posterior_means([0.5], 1, "cauchy")
