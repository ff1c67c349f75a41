"""Fixed-point bits: exact on the grid, saturating, and every code reachable."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from skfairdp.mechanisms import bit_names, bit_weights, decode_bits, encode_bits

CODES = ["sign-magnitude", "offset"]
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
def test_codes_agree_with_a_slow_version(values, size):
    for code, slow in (("sign-magnitude", slow_sign_magnitude), ("offset", slow_offset)):
        expected = [[bit for value in row for bit in slow(value, *size)] for row in values.tolist()]
        np.testing.assert_array_equal(encode_bits(values, *size, code=code), expected)


@pytest.mark.parametrize("code", CODES)
@given(values=arrays(np.float64, (3, 2), elements=st.floats(-3e3, 3e3)), size=sizes)
def test_decoding_is_within_half_a_step_and_saturates(code, values, size):
    n_integer_bits, n_fraction_bits = size
    step = 2.0**-n_fraction_bits
    back = decode_bits(encode_bits(values, *size, code=code), *size, code=code)
    limit = 2.0**n_integer_bits - (step if code == "sign-magnitude" else step / 2)
    np.testing.assert_array_less(np.abs(back - np.clip(values, -limit, limit)), step / 2 * (1 + 1e-9) + 1e-300)
    assert (np.abs(back) <= limit).all()


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("size", [(0, 1), (4, 5), (20, 32)])
def test_huge_numbers_saturate(code, size):
    values = np.array([[np.inf, 1e308, 1e19], [-np.inf, -1e308, -1e19]])
    back = decode_bits(encode_bits(values, *size, code=code), *size, code=code)
    top = 2.0 ** size[0] - 2.0 ** -size[1] / (1 if code == "sign-magnitude" else 2)
    np.testing.assert_array_equal(back, [[top] * 3, [-top] * 3])


@pytest.mark.parametrize("code", CODES)
def test_every_code_is_reachable(code):
    """Otherwise the loss over all codes would not be attained; 'minus zero' is what a small negative number becomes."""
    values = np.linspace(-9, 9, 4001)[:, None]
    assert len(np.unique(encode_bits(values, 2, 1, code=code), axis=0)) == 16


def test_signs():
    values = np.array([[-0.01, 0.0, -0.0, 0.01, -5.0]])
    assert encode_bits(values, 2, 1, code="sign-magnitude").reshape(5, 4)[:, 0].tolist() == [1, 0, 0, 0, 1]
    assert encode_bits(values, 2, 1, code="offset").reshape(5, 4)[:, 0].tolist() == [0, 1, 1, 1, 0]


def test_memory_order_and_precision_of_the_input_do_not_matter():
    values = np.random.default_rng(0).normal(size=(7, 5)).astype(np.float32)
    for code in CODES:
        bits = encode_bits(values, 4, 5, code=code)
        np.testing.assert_array_equal(bits, encode_bits(np.asfortranarray(values), 4, 5, code=code))
        np.testing.assert_array_equal(bits, encode_bits(values.astype(np.float64), 4, 5, code=code))


def test_names_and_weights_tell_the_same():
    names, weights = bit_names(4, 5), bit_weights(4, 5)
    assert names == ["sign", "int3", "int2", "int1", "int0", "frac1", "frac2", "frac3", "frac4", "frac5"]
    assert weights[0] == 16
    for name, weight in zip(names[1:], weights[1:]):
        assert weight == 2.0 ** (int(name[3:]) if name.startswith("int") else -int(name[4:]))


@pytest.mark.parametrize("size", [(-1, 5), (2.5, 5), (4, "5"), (True, 1)])
def test_a_fractional_or_negative_number_of_bits_is_refused(size):
    with pytest.raises(ValueError, match="must be a whole number of bits, 0 or more"):
        encode_bits(np.zeros((1, 1)), *size, code="offset")


@pytest.mark.parametrize("size", [(0, 0), (30, 30)])
def test_too_few_and_too_many_bits_are_refused(size):
    with pytest.raises(ValueError, match=r"n_integer_bits . n_fraction_bits must be from 1 to 52"):
        bit_weights(*size)


def test_an_unknown_code_is_refused():
    for function in (encode_bits, decode_bits):
        with pytest.raises(ValueError, match=r"code must be one of .* got 'gray'"):
            function(np.zeros((1, 2)), 1, 0, code="gray")
