"""Real numbers as fixed-point bits, saturating and never overflowing.

Two codes of ``1 + n_integer_bits + n_fraction_bits`` bits, most significant first:

* ``"sign-magnitude"``: a sign (1 for negative), then the magnitude rounded to the nearest multiple of
  ``2**-n_fraction_bits``. A small negative number keeps its sign, so that every code is reachable.
* ``"offset"``: the value is ``sum_k w_k (b_k - 1/2)`` with ``w_k = 2**(n_integer_bits - k)``. Linear in the
  bits, so that an unbiased or shrunken estimate of each bit gives one of the value.
"""

import numpy as np

CODES = ("sign-magnitude", "offset")

#: A double holds this many bits exactly.
MOST_BITS = 53


def check_bit_counts(n_integer_bits: int, n_fraction_bits: int) -> int:
    """Return the bits of a code, sign included, or say which count is out of range."""
    for name, count in (("n_integer_bits", n_integer_bits), ("n_fraction_bits", n_fraction_bits)):
        if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 0:
            raise ValueError(f"{name} must be a whole number of bits, 0 or more; got {count!r}.")
    magnitude = int(n_integer_bits) + int(n_fraction_bits)
    if not 1 <= magnitude < MOST_BITS:
        raise ValueError(
            f"n_integer_bits + n_fraction_bits must be from 1 to {MOST_BITS - 1}; got {n_integer_bits} + "
            f"{n_fraction_bits}."
        )
    return 1 + magnitude


def bit_names(n_integer_bits: int, n_fraction_bits: int) -> list[str]:
    """Names in code order; ``int2`` weighs ``2**2``, ``frac1`` weighs ``2**-1``.

    Examples
    --------
    >>> from skfairdp.mechanisms import bit_names
    >>> bit_names(2, 1)
    ['sign', 'int1', 'int0', 'frac1']
    """
    check_bit_counts(n_integer_bits, n_fraction_bits)
    whole = [f"int{k}" for k in reversed(range(n_integer_bits))]
    return ["sign", *whole, *(f"frac{k}" for k in range(1, n_fraction_bits + 1))]


def bit_weights(n_integer_bits: int, n_fraction_bits: int) -> np.ndarray:
    """Weights in code order: ``2**n_integer_bits`` for the leading bit, then half of the one before."""
    n_bits = check_bit_counts(n_integer_bits, n_fraction_bits)
    return 2.0 ** (n_integer_bits - np.arange(n_bits))


def encode_bits(values: np.ndarray, n_integer_bits: int, n_fraction_bits: int, *, code: str) -> np.ndarray:
    """Write each value as bits.

    Parameters
    ----------
    values : ndarray of float of shape (n_samples, n_features)
        Numbers beyond the range saturate, infinities included.
    n_integer_bits, n_fraction_bits : int
    code : {"sign-magnitude", "offset"}

    Returns
    -------
    ndarray of uint8 of shape (n_samples, n_features * n_bits)

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp.mechanisms import encode_bits
    >>> encode_bits(np.array([[-2.5], [99.0]]), 2, 1, code="sign-magnitude")
    array([[1, 1, 0, 1],
           [0, 1, 1, 1]], dtype=uint8)
    """
    n_bits = check_bit_counts(n_integer_bits, n_fraction_bits)
    _check_code(code)
    values = np.ascontiguousarray(values, dtype=np.float64)
    half = 1 << (n_bits - 1)
    # The clipping comes before the cast, because a float beyond the integer range casts to anything.
    with np.errstate(over="ignore"):
        steps = values * 2.0**n_fraction_bits
    word = np.dtype(f"u{next(size for size in (1, 2, 4, 8) if 8 * size >= n_bits)}")
    if code == "offset":
        np.floor(steps, out=steps)
        np.clip(steps, -half, half - 1, out=steps)
        steps += half
        codes = steps.astype(word)
    else:
        np.abs(steps, out=steps)
        np.rint(steps, out=steps)
        np.minimum(steps, half - 1, out=steps)
        codes = steps.astype(word)
        codes += (values < 0).astype(word) << word.type(n_bits - 1)
    n_samples, n_features = values.shape
    octets = codes.astype(word.newbyteorder(">")).view(np.uint8).reshape(n_samples, n_features, word.itemsize)
    unpacked = np.unpackbits(octets, axis=-1)
    return unpacked[..., 8 * word.itemsize - n_bits :].reshape(n_samples, n_features * n_bits)


def decode_bits(bits: np.ndarray, n_integer_bits: int, n_fraction_bits: int, *, code: str) -> np.ndarray:
    """Read values from bits, or from independent estimates of bits.

    Both codes are linear in each bit given the others, so independent unbiased
    estimates of the bits give an unbiased estimate of the value.

    Parameters
    ----------
    bits : ndarray of shape (n_samples, n_features * n_bits)
    n_integer_bits, n_fraction_bits : int
    code : {"sign-magnitude", "offset"}

    Returns
    -------
    ndarray of float64 of shape (n_samples, n_features)
    """
    n_bits = check_bit_counts(n_integer_bits, n_fraction_bits)
    _check_code(code)
    cells = np.asarray(bits, dtype=np.float64).reshape(len(bits), -1, n_bits)
    weights = bit_weights(n_integer_bits, n_fraction_bits)
    if code == "offset":
        return (cells - 0.5) @ weights
    return (1 - 2 * cells[..., 0]) * (cells[..., 1:] @ weights[1:])


def _check_code(code: str) -> None:
    if code not in CODES:
        raise ValueError(f"code must be one of {CODES}; got {code!r}.")
