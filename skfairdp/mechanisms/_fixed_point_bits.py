"""Rows as randomised bits: standardise, write in fixed point, randomise every bit; and read estimates back.

Numbers saturate and never overflow. There are two formats of ``1 + n_integer_bits + n_fraction_bits`` bits, most
significant first:

* ``"sign-magnitude"``: a sign (1 for negative), then the magnitude rounded to the nearest multiple of
  ``2**-n_fraction_bits``. A small negative number keeps its sign, so that all rows of bits occur.
* ``"offset"``: the value is ``sum_k w_k (b_k - 1/2)`` with ``w_k = 2**(n_integer_bits - k)``. Linear in the
  bits, so that an unbiased or shrunken estimate of each bit gives one of the value.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from skfairdp._validation import check_option
from skfairdp.dp import Mechanism, check_columns, equality_ratio
from skfairdp.mechanisms._bit_mechanism import BLOCK_BITS, BitMechanism, pairs_of_bits
from skfairdp.random import RandomStream

# -- numbers as bits, and back ----------------------------------------------------------------------------------------


BIT_FORMATS = ("sign-magnitude", "offset")

#: A double holds this many bits exactly.
MOST_BITS = 53


def check_bit_counts(n_integer_bits: int, n_fraction_bits: int) -> int:
    """Return the number of bits of a value, sign included, or say which count is out of range."""
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
    """Names of the bits of a value in their order; ``int2`` weighs ``2**2``, ``frac1`` weighs ``2**-1``.

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
    """Return the weights of the bits of a value: ``2**n_integer_bits`` for the first, then half of the one before.

    Parameters
    ----------
    n_integer_bits, n_fraction_bits : int
        Bits before and after the binary point; a sign comes on top.

    Returns
    -------
    ndarray of shape (1 + n_integer_bits + n_fraction_bits,)

    Examples
    --------
    >>> from skfairdp.mechanisms import bit_weights
    >>> bit_weights(2, 1)
    array([4. , 2. , 1. , 0.5])
    """
    n_bits = check_bit_counts(n_integer_bits, n_fraction_bits)
    return 2.0 ** (n_integer_bits - np.arange(n_bits))


def encode_bits(values: np.ndarray, n_integer_bits: int, n_fraction_bits: int, *, bit_format: str) -> np.ndarray:
    """Write each value as bits.

    Parameters
    ----------
    values : ndarray of float of shape (n_samples, n_features)
        Numbers beyond the range saturate, infinities included.
    n_integer_bits, n_fraction_bits : int
        Bits before and after the binary point; a sign comes on top.
    bit_format : {"sign-magnitude", "offset"}
        How numbers are written, see the notes.

    Returns
    -------
    ndarray of uint8 of shape (n_samples, n_features * n_bits)

    Notes
    -----
    ``"sign-magnitude"`` is a sign (1 for negative), then the magnitude rounded to the nearest step. ``"offset"`` counts
    steps up from the least number, so that the value is a weighted sum of its bits.

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp.mechanisms import encode_bits
    >>> encode_bits(np.array([[-2.5], [99.0]]), 2, 1, bit_format="sign-magnitude")
    array([[1, 1, 0, 1],
           [0, 1, 1, 1]], dtype=uint8)
    """
    n_bits = check_bit_counts(n_integer_bits, n_fraction_bits)
    check_option(bit_format, "bit_format", BIT_FORMATS)
    values = np.ascontiguousarray(values, dtype=np.float64)
    half = 1 << (n_bits - 1)
    # The clipping comes before the cast, because a float beyond the integer range casts to anything.
    with np.errstate(over="ignore"):
        steps = values * 2.0**n_fraction_bits
    word = np.dtype(f"u{next(size for size in (1, 2, 4, 8) if 8 * size >= n_bits)}")
    if bit_format == "offset":
        numbers = (np.clip(np.floor(steps), -half, half - 1) + half).astype(word)
    else:
        numbers = np.minimum(np.rint(np.abs(steps)), half - 1).astype(word)
        numbers += (values < 0).astype(word) << word.type(n_bits - 1)
    n_samples, n_features = values.shape
    octets = numbers.astype(word.newbyteorder(">")).view(np.uint8).reshape(n_samples, n_features, word.itemsize)
    unpacked = np.unpackbits(octets, axis=-1)
    return unpacked[..., 8 * word.itemsize - n_bits :].reshape(n_samples, n_features * n_bits)


def decode_bits(bits: np.ndarray, n_integer_bits: int, n_fraction_bits: int, *, bit_format: str) -> np.ndarray:
    """Read values from bits, or from independent estimates of bits.

    Both formats are linear in each bit given the others, so independent unbiased
    estimates of the bits give an unbiased estimate of the value.

    Parameters
    ----------
    bits : ndarray of shape (n_samples, n_features * n_bits)
        Zeros and ones, or estimates of them.
    n_integer_bits, n_fraction_bits : int
        Bits before and after the binary point; a sign comes on top.
    bit_format : {"sign-magnitude", "offset"}
        How numbers are written, see :func:`encode_bits`.

    Returns
    -------
    ndarray of float64 of shape (n_samples, n_features)

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp.mechanisms import decode_bits
    >>> decode_bits(np.array([[1, 1, 0, 1]]), 2, 1, bit_format="sign-magnitude")
    array([[-2.5]])
    """
    n_bits = check_bit_counts(n_integer_bits, n_fraction_bits)
    check_option(bit_format, "bit_format", BIT_FORMATS)
    cells = np.asarray(bits, dtype=np.float64).reshape(len(bits), -1, n_bits)
    weights = bit_weights(n_integer_bits, n_fraction_bits)
    if bit_format == "offset":
        return (cells - 0.5) @ weights
    return (1 - 2 * cells[..., 0]) * (cells[..., 1:] @ weights[1:])


# -- the mechanism: rows in, noisy bits out ---------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class FixedPointBits(Mechanism):
    """Fixed-point bits of standardised rows, each randomised with probabilities of its own.

    Attributes
    ----------
    mean, scale : ndarray of shape (n_features,)
        What is subtracted, and what the difference is divided by.
    n_integer_bits, n_fraction_bits : int
        Bits before and after the binary point.
    bit_format : {"offset", "sign-magnitude"}
        How numbers are written.
    bit_mechanism : BitMechanism or None
        What randomises the bits of a row; ``None`` releases them as they are.
    protocol : str
        The name of the protocol, for the receipt.
    published_epsilon : float or None
        What a paper claims for these probabilities.

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp.mechanisms import FixedPointBits, sue_mechanism
    >>> mechanism = FixedPointBits(np.zeros(1), np.ones(1), 2, 3, "offset", sue_mechanism(4.0, 5))
    >>> mechanism.epsilon, mechanism.decode(mechanism.encode(np.array([[0.5]])))
    (4.0, array([[0.5625]]))
    """

    mean: np.ndarray
    scale: np.ndarray
    n_integer_bits: int
    n_fraction_bits: int
    bit_format: str
    bit_mechanism: BitMechanism | None
    protocol: str = "bits"
    published_epsilon: float | None = None

    @property
    def name(self) -> str:  # type: ignore[override]
        """The protocol."""
        return f"{self.protocol} randomised response"

    @property
    def n_features(self) -> int:
        """The number of columns."""
        return len(self.mean)

    @property
    def n_bits(self) -> int:
        """Bits per feature, sign included."""
        return 1 + self.n_integer_bits + self.n_fraction_bits

    @property
    def epsilon(self) -> float:  # type: ignore[override]
        """The losses of all bits, added."""
        return math.inf if self.bit_mechanism is None else self.bit_mechanism.epsilon

    def check(self, X: np.ndarray) -> None:
        """Check the number of columns and that values are numbers: a nan has no bits.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
            The rows.
        """
        check_columns(X, self.n_features)
        if not np.isfinite(X).all():
            raise ValueError("X must hold finite numbers; got nan or infinity.")

    def encode(self, X: np.ndarray) -> np.ndarray:
        """Return the clean bits of each row.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
            The rows.
        """
        with np.errstate(over="ignore"):  # what overflows saturates
            values = (X - self.mean) / self.scale
        return encode_bits(values, self.n_integer_bits, self.n_fraction_bits, bit_format=self.bit_format)

    def decode(self, bits: np.ndarray) -> np.ndarray:
        """Return the values that bits, or estimates of them, stand for.

        Parameters
        ----------
        bits : ndarray of shape (n_samples, n_features * n_bits)
            Zeros and ones, or numbers between them.
        """
        values = decode_bits(bits, self.n_integer_bits, self.n_fraction_bits, bit_format=self.bit_format)
        return values * self.scale + self.mean

    def draw(self, X: np.ndarray, stream: RandomStream) -> np.ndarray:
        """Write each row in bits and randomise them.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
            The rows.
        stream : RandomStream
            Where the random bits come from.

        Returns
        -------
        ndarray of int8 of shape (n_samples, n_features * n_bits)
            Zeros and ones; signed, so that differences of bits do not wrap round.
        """
        bits = np.empty((len(X), self.n_features * self.n_bits), dtype=np.int8)
        step, randomise = max(1, BLOCK_BITS // bits.shape[1]), self.bit_mechanism
        for start in range(0, len(X), step):
            block = self.encode(X[start : start + step])
            bits[start : start + step] = block if randomise is None else randomise.draw(block, stream)
        return bits

    def log_likelihood_ratio(self, y: np.ndarray, x: np.ndarray, x_prime: np.ndarray) -> np.ndarray:
        """Return ``log P(y | x) - log P(y | x_prime)``, exactly.

        Parameters
        ----------
        y : ndarray of shape (n_samples, n_features * n_bits)
            Released bits.
        x, x_prime : ndarray of shape (1, n_features) or (n_samples, n_features)
            Two records.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        ratio = equality_ratio if self.bit_mechanism is None else self.bit_mechanism.log_likelihood_ratio
        return ratio(y, self.encode(x), self.encode(x_prime))

    def worst_case_pairs(self, stream: RandomStream | None = None) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return records that differ in every bit, and records that differ in one feature alone.

        Parameters
        ----------
        stream : RandomStream or None, default=None
            Draws the random ones among the pairs; without it they are always the same.
        """
        randomise = self.bit_mechanism
        worst = np.ones(self.n_features * self.n_bits, np.uint8) if randomise is None else randomise.worst_bits()
        return [self._records(*pair) for pair in pairs_of_bits(worst, self.n_bits, stream)]

    def _records(self, first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return two records with these bits."""
        bits = np.stack([first, second])
        values = decode_bits(bits, self.n_integer_bits, self.n_fraction_bits, bit_format=self.bit_format)
        if self.bit_format == "sign-magnitude":  # a negative number that rounds to 0
            negative = bits[:, :: self.n_bits] == 1
            values[negative & (values == 0)] = -(2.0 ** -(self.n_fraction_bits + 2))
        one, other = values * self.scale + self.mean
        return one, other


# -- estimates from noisy bits ----------------------------------------------------------------------------------------


PRIORS = ("uniform", "normal")

# A table has an entry for every reading of the leading bits; bits after these are taken to be uniform in their cell.
_MOST_LEADING = 12


def posterior_estimate(bits: np.ndarray, gains: np.ndarray, n_integer_bits: int, prior: str) -> np.ndarray:
    """Estimate values by their posterior means.

    Parameters
    ----------
    bits : ndarray of shape (n_samples, n_features * n_bits)
        Noisy offset bits.
    gains : ndarray of shape (n_features, n_bits)
        ``p - q`` of symmetric randomised response on each bit.
    n_integer_bits : int
        Bits before the binary point; the values span ``[-2**n_integer_bits, 2**n_integer_bits)``.
    prior : {"uniform", "normal"}
        As in :func:`posterior_means`.

    Returns
    -------
    ndarray of shape (n_samples, n_features)

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp.mechanisms import posterior_estimate
    >>> posterior_estimate(np.array([[1, 0]]), np.array([[0.8, 0.0]]), 0, "uniform")
    array([[0.4]])
    """
    n_features, n_bits = gains.shape
    n_served = int((gains > 0).any(axis=0).sum())
    n_leading = min(n_served, _MOST_LEADING)
    cells = bits.reshape(len(bits), n_features, n_bits)
    readings = cells[..., :n_leading] @ (1 << np.arange(n_leading)[::-1])
    kinds, kind = np.unique(gains[:, :n_leading], axis=0, return_inverse=True)
    tables = np.array([posterior_means(row, n_integer_bits, prior) for row in kinds])
    values = tables[kind.ravel(), readings]
    if n_served > n_leading:
        weights = 2.0 ** (n_integer_bits - np.arange(n_leading, n_bits))
        values = values + ((cells[..., n_leading:] - 0.5) * gains[:, n_leading:]) @ weights
    return values


def posterior_means(gains: np.ndarray, n_integer_bits: int, prior: str) -> np.ndarray:
    """Compute the posterior mean of a value for every noisy reading of its leading offset bits.

    Parameters
    ----------
    gains : array of shape (n_leading,)
        ``p - q`` of symmetric randomised response on each leading bit. The bits
        after them are taken to tell nothing.
    n_integer_bits : int
        The values span ``[-2**n_integer_bits, 2**n_integer_bits)``.
    prior : {"uniform", "normal"}
        The distribution of the value before any bit was seen: uniform on the span, or standard normal; the mass
        of the normal distribution beyond the span counts for the outermost bits.

    Returns
    -------
    ndarray of shape (2**n_leading,)
        Indexed by the noisy bits read as a binary number, most significant first.

    Examples
    --------
    >>> from skfairdp.mechanisms import posterior_means
    >>> posterior_means([1.0], 0, "uniform")
    array([-0.5,  0.5])
    >>> posterior_means([0.5], 0, "normal").round(6)  # half of sqrt(2 / pi)
    array([-0.398942,  0.398942])
    """
    gains = np.asarray(gains, dtype=np.float64)
    mass, moment = _prior_of_cells(len(gains), n_integer_bits, prior)
    shape = (2,) * len(gains)
    mass, moment = mass.reshape(shape), moment.reshape(shape)
    for k, gain in enumerate(gains):
        mass, moment = (_randomise_bit_of_table(cells, gain, k) for cells in (mass, moment))
    return np.divide(moment, mass, out=np.zeros(shape), where=mass > 0).ravel()


def _prior_of_cells(n_leading: int, n_integer_bits: int, prior: str) -> tuple[np.ndarray, np.ndarray]:
    """Prior mass, and mass times mean, of each cell of the leading bits."""
    n_cells = 1 << n_leading
    width = 2 * bit_weights(n_integer_bits, 1)[0] / n_cells
    edges = width * (np.arange(n_cells + 1) - n_cells / 2)
    if check_option(prior, "prior", PRIORS) == "uniform":
        return np.full(n_cells, 1 / n_cells), (edges[:-1] + edges[1:]) / 2 / n_cells
    edges[0], edges[-1] = -np.inf, np.inf
    # Of the two tails, the difference is taken in the one where nothing cancels.
    right = edges[:-1] >= 0
    low, high = np.where(right, -edges[1:], edges[:-1]), np.where(right, -edges[:-1], edges[1:])
    density = np.exp(-(edges**2) / 2) / np.sqrt(2 * np.pi)
    return ndtr(high) - ndtr(low), density[:-1] - density[1:]


def _randomise_bit_of_table(cells: np.ndarray, gain: float, axis: int) -> np.ndarray:
    """Send one bit of a table through randomised response."""
    keep, flip = (1 + gain) / 2, (1 - gain) / 2
    return keep * cells + flip * np.flip(cells, axis)
