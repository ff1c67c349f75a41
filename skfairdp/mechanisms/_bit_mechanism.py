"""Randomised response on bits, with integer probabilities: the mechanism, and the protocols SUE, OUE and OME.

A 1 stays 1 with probability ``p``, a 0 becomes 1 with probability ``q``; every bit of a record has a pair of its own.
Both are counts out of ``2**64``, compared with uniform words, so the privacy loss is known from the integers that are
really used.

The published rates of the protocols come from one-hot encodings, where two inputs differ in two bits. Of dense
fixed-point bits every one may differ, so the losses of all bits add.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from skfairdp._validation import check_epsilon
from skfairdp.dp import Mechanism
from skfairdp.random import RandomStream, random_stream

# -- the mechanism ----------------------------------------------------------------------------------------------------


#: Probabilities are counts out of this.
TWO_64 = 1 << 64

#: Logits beyond this are rounded to the nearest probability that is neither 0 nor 1.
LARGEST_LOGIT = 50.0

# So many bits, their random bytes and their limits stay in the cache together.
BLOCK_BITS = 1 << 18

# A loss is a handful of correctly rounded operations; this pushes the result to the safe side of them all.
_ROUND_UP = 1.0 + 2.0**-50


@dataclass(frozen=True)
class BitMechanism(Mechanism):
    """Independent randomised response on each bit; made by :func:`sue_mechanism`, :func:`oue_mechanism` and others.

    Parameters
    ----------
    one_to_one, zero_to_one : ndarray of uint64 of shape (n_bits,)
        ``2**64`` times the probabilities that a 1 stays 1 and that a 0 becomes 1. Never 0:
        an outcome that one input cannot give would cost an infinite epsilon.

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp.mechanisms import BitMechanism, oue_mechanism
    >>> from skfairdp.random import random_stream
    >>> mechanism = oue_mechanism(2.0, n_bits=4)
    >>> isinstance(mechanism, BitMechanism), mechanism.release(np.eye(4, dtype=np.uint8), random_stream(0)).shape
    (True, (4, 4))
    """

    one_to_one: np.ndarray
    zero_to_one: np.ndarray
    name = "randomised response"

    def __post_init__(self) -> None:
        for name in ("one_to_one", "zero_to_one"):
            counts = getattr(self, name)
            if counts.dtype != np.uint64 or counts.ndim != 1 or not counts.all():
                raise ValueError(f"{name} must hold counts from 1 to 2**64 - 1 in a one-dimensional uint64 array.")
        if self.one_to_one.shape != self.zero_to_one.shape:
            raise ValueError(
                "one_to_one and zero_to_one must have one count per bit each; got shapes "
                f"{self.one_to_one.shape} and {self.zero_to_one.shape}."
            )

    @property
    def n_bits(self) -> int:
        """Number of bits."""
        return len(self.one_to_one)

    @property
    def p(self) -> np.ndarray:
        """Probability that a 1 stays 1."""
        return self.one_to_one / 2.0**64

    @property
    def q(self) -> np.ndarray:
        """Probability that a 0 becomes 1."""
        return self.zero_to_one / 2.0**64

    @cached_property
    def gain(self) -> np.ndarray:
        """``p - q``, from the integers: what is left of the difference of two bits."""
        p, q = self.one_to_one, self.zero_to_one
        return np.where(p >= q, 1.0, -1.0) * ((np.maximum(p, q) - np.minimum(p, q)) / 2.0**64)

    @cached_property
    def log_ratios(self) -> np.ndarray:
        """Array of shape (2, n_bits): ``log((1 - p) / (1 - q))`` and ``log(p / q)``, of the outputs 0 and 1."""
        return self._per_pair(lambda p, q: (_log_ratio(TWO_64 - p, TWO_64 - q), _log_ratio(p, q)))

    @cached_property
    def bit_epsilon(self) -> np.ndarray:
        """The exact loss of each bit (rounded up in the last digits)."""
        return self._per_pair(lambda p, q: (bit_loss(p, q),))[0]

    @cached_property
    def epsilon(self) -> float:  # type: ignore[override]
        """The exact loss of all bits together.

        Bits are randomised independently and any two rows of bits are neighbours, so the losses add.
        """
        return _summed_loss(Counter(zip(self.one_to_one.tolist(), self.zero_to_one.tolist())))

    def check(self, bits: np.ndarray) -> None:
        """Check shape and type, and that bits are bits.

        Parameters
        ----------
        bits : ndarray of shape (n_samples, n_bits)
            Zeros and ones, of one byte each.
        """
        if bits.ndim != 2 or bits.shape[1] != self.n_bits or bits.dtype.itemsize != 1:
            raise ValueError(
                f"bits must be a one-byte matrix with {self.n_bits} columns; got shape {bits.shape} of {bits.dtype}."
            )
        if bits.size and bits.view(np.uint8).max() > 1:
            raise ValueError(f"bits must be zeros and ones; got {bits.view(np.uint8).max()}.")

    def draw(self, bits: np.ndarray, stream: RandomStream) -> np.ndarray:
        """Randomise each bit with the probabilities of its column, see :func:`randomised_response`.

        Parameters
        ----------
        bits : ndarray of shape (n_samples, n_bits)
            Zeros and ones, of one byte each.
        stream : RandomStream
            Where the random bits come from.
        """
        bits = np.ascontiguousarray(bits)
        noisy = np.empty(bits.shape, dtype=np.uint8)
        step = max(1, BLOCK_BITS // self.n_bits)
        for start in range(0, len(bits), step):
            noisy[start : start + step] = _randomise_block(bits[start : start + step], self, stream)
        return noisy

    def worst_bits(self) -> np.ndarray:
        """Return the row of bits whose likelihood ratio with its complement reaches ``epsilon``."""
        of_zero, of_one = self.log_ratios
        # (1 in, 1 out) gains log p/q, (1 in, 0 out) gains log (1-p)/(1-q); a 0 gains the negatives.
        return (np.maximum(of_zero, of_one) >= -np.minimum(of_zero, of_one)).astype(np.uint8)

    def worst_case_pairs(self, stream: RandomStream | None = None) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return rows that differ in all bits (the worst of all, and one at random), in the first, and in the last.

        Parameters
        ----------
        stream : RandomStream or None, default=None
            Draws the random ones among the pairs; without it they are always the same.
        """
        return pairs_of_bits(self.worst_bits(), 1, stream)

    def log_likelihood_ratio(self, y: np.ndarray, x: np.ndarray, x_prime: np.ndarray) -> np.ndarray:
        """Return ``log P(y | x) - log P(y | x_prime)`` for each row of bits.

        Parameters
        ----------
        y : ndarray of shape (n_samples, n_bits)
            Released bits.
        x, x_prime : ndarray of shape (n_bits,) or (n_samples, n_bits)
            The bits of two records.
        """
        of_zero, of_one = self.log_ratios
        change = x.astype(np.float64) - x_prime.astype(np.float64)
        return (change * np.where(y != 0, of_one, of_zero)).sum(axis=-1)

    def _per_pair(self, function: Callable[[int, int], tuple[float, ...]]) -> np.ndarray:
        """Evaluate a function of the integers once for each pair that occurs."""
        pairs = np.stack([self.one_to_one, self.zero_to_one], axis=1)
        unique, inverse = np.unique(pairs, axis=0, return_inverse=True)
        values = np.array([function(int(p), int(q)) for p, q in unique])
        return values[inverse.ravel()].T


def pairs_of_bits(worst: np.ndarray, width: int, stream: RandomStream | None) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return rows that differ in all bits (the worst, and one at random), in the first and in the last ``width``."""
    random = (stream or random_stream(0)).generator.integers(0, 2, len(worst), dtype=np.uint8)
    pairs = [(worst, 1 - worst), (random, 1 - random)]
    for start in dict.fromkeys((0, len(worst) - width)):
        flipped = worst.copy()
        flipped[start : start + width] ^= 1
        pairs.append((worst, flipped))
    return pairs


def bit_loss(one_to_one: int, zero_to_one: int) -> float:
    """Compute the exact privacy loss of one bit.

    ``L(p, q) = max(|log(p / q)|, |log((1 - p) / (1 - q))|)`` for ``p`` and ``q`` as
    counts out of ``2**64``, rounded up in the last digits.

    Examples
    --------
    >>> from skfairdp.mechanisms._bit_mechanism import bit_loss
    >>> round(bit_loss(3 * 2**62, 2**62), 6)  # keep with 3/4, flip with 1/4: log 3
    1.098612
    """
    p, q = int(one_to_one), int(zero_to_one)
    if not (0 < p < TWO_64 and 0 < q < TWO_64):
        return 0.0 if p == q else math.inf
    return max(abs(_log_ratio(p, q)), abs(_log_ratio(TWO_64 - p, TWO_64 - q))) * _ROUND_UP


def _log_ratio(a: int, b: int) -> float:
    """Return ``log(a / b)`` to full relative precision, also where the two are nearly equal."""
    return math.log1p((a - b) / b) if a >= b else -math.log1p((b - a) / a)


def _summed_loss(pairs: Counter[tuple[int, int]]) -> float:
    """Sum the losses of bits, given how often each pair of counts occurs; the same pairs give the same float."""
    return math.fsum(n * bit_loss(p, q) for (p, q), n in pairs.items()) * _ROUND_UP


def rounded_logistic_count(logit: float, *, up: bool) -> int:
    """Round ``2**64 / (1 + exp(-logit))`` up or down to a count from 1 to ``2**64 - 1``.

    Small and large logits keep their relative precision: the count is built from
    its distance to the nearest of 0, 1/2 and 1.
    """
    if abs(logit) < 1:
        distance = math.ldexp(math.tanh(logit / 2), 63)  # from one half
        count = (TWO_64 >> 1) + (math.ceil(distance) if up else math.floor(distance))
    else:
        tail = math.ldexp(math.exp(-abs(logit)) / (1 + math.exp(-abs(logit))), 64)
        if logit < 0:
            count = math.ceil(tail) if up else math.floor(tail)
        else:
            count = TWO_64 - (math.floor(tail) if up else math.ceil(tail))
    return min(max(count, 1), TWO_64 - 1)


def bit_counts(logit_p: float, logit_q: float) -> tuple[int, int]:
    """Counts of ``p`` and ``q`` given as logits, each rounded towards the other: the loss never grows."""
    up = logit_p < logit_q
    return rounded_logistic_count(logit_p, up=up), rounded_logistic_count(logit_q, up=not up)


def bit_mechanism_from_logits(logit_p: np.ndarray, logit_q: np.ndarray) -> BitMechanism:
    """Make a mechanism from the logits of ``p`` and ``q`` of each bit.

    Parameters
    ----------
    logit_p, logit_q : array of shape (n_bits,)
        ``log(p / (1 - p))`` and ``log(q / (1 - q))``.

    Returns
    -------
    BitMechanism
    """
    pairs = np.stack(np.broadcast_arrays(np.atleast_1d(logit_p), np.atleast_1d(logit_q)), axis=1).astype(np.float64)
    if np.isnan(pairs).any():
        raise ValueError("logit_p and logit_q must be numbers; got nan.")
    unique, inverse = np.unique(pairs, axis=0, return_inverse=True)
    counts = np.array([bit_counts(float(a), float(b)) for a, b in unique], dtype=np.uint64).reshape(-1, 2)
    counts = counts[inverse.ravel()]
    return BitMechanism(np.ascontiguousarray(counts[:, 0]), np.ascontiguousarray(counts[:, 1]))


def logits_loss(levels: Iterable[tuple[float, float, int]]) -> float:
    """Exact loss of ``count`` bits at each level ``(logit_p, logit_q, count)``."""
    pairs: Counter[tuple[int, int]] = Counter()
    for a, b, n in levels:
        pairs[bit_counts(a, b)] += n
    return _summed_loss(pairs)


def largest_within(loss: Callable[[float], float], epsilon: float, low: float, high: float) -> float:
    """Return the largest float in ``[low, high]`` whose loss is at most ``epsilon``, for a loss that grows."""
    if loss(high) <= epsilon:
        return high
    while low < (middle := low + (high - low) / 2) < high:
        low, high = (middle, high) if loss(middle) <= epsilon else (low, middle)
    return low


def randomised_response(bits: np.ndarray, mechanism: BitMechanism, stream: RandomStream) -> np.ndarray:
    """Randomise each bit of a matrix.

    Each bit is compared with a uniform 64-bit word of its own. Eight bits of the
    word decide unless they tie with the threshold, and only then the other 56 are
    drawn: the same distribution, for an eighth of the randomness.

    Parameters
    ----------
    bits : ndarray of shape (n_samples, n_bits)
        Zeros and ones of a one-byte type.
    mechanism : BitMechanism
        The probabilities of each column.
    stream : RandomStream
        Where the random bits come from.

    Returns
    -------
    ndarray of uint8 of shape (n_samples, n_bits)

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp.random import random_stream
    >>> from skfairdp.mechanisms import randomised_response, sue_mechanism
    >>> ones = np.ones((100_000, 1), dtype=np.uint8)
    >>> noisy = randomised_response(ones, sue_mechanism(1.0, n_bits=1), random_stream(0))
    >>> bool(abs(noisy.mean() - np.e / (1 + np.e)) < 0.01)
    True
    """
    return mechanism.release(np.asarray(bits), stream)


def _randomise_block(bits: np.ndarray, mechanism: BitMechanism, stream: RandomStream) -> np.ndarray:
    """Randomise one block."""
    top_p = (mechanism.one_to_one >> np.uint64(56)).astype(np.uint8)
    top_q = (mechanism.zero_to_one >> np.uint64(56)).astype(np.uint8)
    bits = bits.view(np.uint8)
    limits = bits * (top_p - top_q)  # arithmetic modulo 256: q + (p - q) is p again
    limits += top_q
    words = stream.uint64(-(-bits.size // 8)).view(np.uint8)[: bits.size].reshape(bits.shape)
    noisy = words < limits
    ties = np.flatnonzero(words == limits)
    if ties.size:
        columns = ties % mechanism.n_bits
        chosen = np.where(bits.ravel()[ties] != 0, mechanism.one_to_one[columns], mechanism.zero_to_one[columns])
        noisy.ravel()[ties] = (stream.uint64(ties.size) >> np.uint64(8)) < (chosen & np.uint64((1 << 56) - 1))
    return noisy.view(np.uint8)


def bernoulli(n: int, count: int, stream: RandomStream) -> np.ndarray:
    """Draw ``n`` independent booleans that are true with probability ``count / 2**64``."""
    if not 0 <= count <= TWO_64:
        raise ValueError(f"count must be an integer from 0 to 2**64; got {count!r}.")
    if count in (0, TWO_64):
        return np.full(n, count == TWO_64)
    chance = np.array([count], dtype=np.uint64)
    coin = BitMechanism(chance, chance)  # of a bit that is 1 with this probability, whatever it was
    return _randomise_block(np.zeros((n, 1), dtype=np.uint8), coin, stream).view(bool).ravel()


# -- the protocols SUE, OUE and OME -----------------------------------------------------------------------------------


#: Logits of ``p`` on even bits, of ``p`` on odd bits, and of ``q``.
_Logits = tuple[float, float, float]


def _sue_logits(x: float) -> _Logits:
    """Logits of symmetric unary encoding: ``p = E / (1 + E)``, ``q = 1 - p``, ``E = exp(x)``."""
    return x, x, -x


def _oue_logits(x: float) -> _Logits:
    """Logits of optimised unary encoding: ``p = 1/2``, ``q = 1 / (1 + E)``, ``E = exp(x)``."""
    return 0.0, 0.0, -x


def _ome_logits(x: float, log_factor: float) -> _Logits:
    """Logits of optimised multiple encoding, in its Equations 2 and 3.

    ``p = lam / (1 + lam)`` on even bits and ``1 / (1 + lam**3)`` on odd ones, ``q = 1 / (1 + lam * exp(x))``.
    """
    return log_factor, -3 * log_factor, -(log_factor + x)


def _protocol_loss(logits: _Logits, n_bits: int) -> float:
    """Exact loss of ``n_bits`` bits."""
    even, odd, q = logits
    return logits_loss([(even, q, -(-n_bits // 2)), (odd, q, n_bits // 2)])


def _protocol_mechanism(logits: _Logits, n_bits: int) -> BitMechanism:
    even, odd, q = logits
    return bit_mechanism_from_logits(np.where(np.arange(n_bits) % 2 == 0, even, odd), np.full(n_bits, q))


def _log_randomization_factor(randomization_factor: float) -> float:
    value = float(randomization_factor)
    if not (1 <= value < math.inf):
        raise ValueError(f"randomization_factor must be a finite number of at least 1; got {randomization_factor!r}.")
    return math.log(value)


def largest_randomization_factor(epsilon: float, n_bits: int) -> float:
    """Return the largest ``lam`` for which the printed OME really is ``epsilon``-private.

    For an even number of bits it is the root of
    ``lam**3 - lam**2 + lam = exp(2 * epsilon / n_bits)``; here it is found on the
    integers that the mechanism uses, so that it holds for them too.

    Parameters
    ----------
    epsilon : float
        Loss of the whole record.
    n_bits : int
        Bits of the whole record.

    Returns
    -------
    float

    Examples
    --------
    >>> from skfairdp.mechanisms import largest_randomization_factor
    >>> round(largest_randomization_factor(1.0, 500), 9)
    1.002000001
    """
    epsilon = check_epsilon(epsilon, allow_inf=False)
    x = epsilon / n_bits

    def loss(factor: float) -> float:
        return _protocol_loss(_ome_logits(x, math.log(factor)), n_bits)

    # Beyond exp(epsilon / n_bits) the loss exceeds epsilon (even bits: the root lies below it).
    return largest_within(loss, epsilon, 1.0, math.exp(min(2 * x + 1, LARGEST_LOGIT)))


def sue_mechanism(epsilon: float, n_bits: int) -> BitMechanism:
    """Return symmetric randomised response that spends ``epsilon / n_bits`` on each bit.

    Parameters
    ----------
    epsilon : float
        Loss of the whole record; never exceeded.
    n_bits : int
        Bits of the whole record.

    Returns
    -------
    BitMechanism

    Examples
    --------
    >>> from skfairdp.mechanisms import sue_mechanism
    >>> mechanism = sue_mechanism(2.0, n_bits=2)
    >>> mechanism.p.round(6), mechanism.q.round(6)
    (array([0.731059, 0.731059]), array([0.268941, 0.268941]))
    """
    return _spend_epsilon(_sue_logits, epsilon, n_bits)


def oue_mechanism(epsilon: float, n_bits: int) -> BitMechanism:
    """Return OUE (``p = 1/2``) with ``q`` lowered until the exact loss of the whole record is ``epsilon``.

    Parameters
    ----------
    epsilon : float
        Loss of the whole record; never exceeded.
    n_bits : int
        Bits of the whole record.

    Returns
    -------
    BitMechanism

    Examples
    --------
    >>> from skfairdp.mechanisms import oue_mechanism
    >>> mechanism = oue_mechanism(2.0, n_bits=2)
    >>> mechanism.p, mechanism.q.round(6)
    (array([0.5, 0.5]), array([0.18394, 0.18394]))
    """
    return _spend_epsilon(_oue_logits, epsilon, n_bits)


def _spend_epsilon(logits: Callable[[float], _Logits], epsilon: float, n_bits: int, least: float = 0.0) -> BitMechanism:
    """Return a protocol with the largest ``x`` that its exact loss allows."""
    epsilon = check_epsilon(epsilon, allow_inf=False)
    x = largest_within(lambda x: _protocol_loss(logits(x), n_bits), epsilon, least, least + LARGEST_LOGIT)
    return _protocol_mechanism(logits(x), n_bits)


def ome_mechanism(epsilon: float, n_bits: int, randomization_factor: float | None = None) -> BitMechanism:
    """Return OME with rates for which its loss really is ``epsilon``.

    Parameters
    ----------
    epsilon : float
        Loss of the whole record; never exceeded.
    n_bits : int
        Bits of the whole record.
    randomization_factor : float or None
        The factor ``lam`` of the paper. ``None`` takes the largest feasible one, with the
        printed ``q``. A smaller factor leaves some of epsilon unspent at the printed ``q``, so
        ``q`` is lowered until it is spent. A larger one is refused.

    Returns
    -------
    BitMechanism

    Examples
    --------
    >>> from skfairdp.mechanisms import ome_mechanism
    >>> mechanism = ome_mechanism(1.0, n_bits=4)
    >>> mechanism.p.round(3), mechanism.q.round(3)
    (array([0.556, 0.337, 0.556, 0.337]), array([0.383, 0.383, 0.383, 0.383]))
    """
    epsilon = check_epsilon(epsilon, allow_inf=False)
    x = epsilon / n_bits
    if randomization_factor is None:
        log_factor = math.log(largest_randomization_factor(epsilon, n_bits))
        return _protocol_mechanism(_ome_logits(x, log_factor), n_bits)
    log_factor = _log_randomization_factor(randomization_factor)
    spent = _protocol_loss(_ome_logits(x, log_factor), n_bits)
    if spent > epsilon:
        raise ValueError(
            f"randomization_factor={randomization_factor!r} costs an exact epsilon of {spent:.6g} on {n_bits} "
            f"bits, more than epsilon={epsilon!r}; the largest feasible factor is "
            f"{largest_randomization_factor(epsilon, n_bits)!r}. Lower it, raise epsilon, or reproduce the "
            "paper with calibration='published'."
        )
    if spent < epsilon * (1 - 1e-9):
        return _spend_epsilon(lambda x: _ome_logits(x, log_factor), epsilon, n_bits, least=x)
    return _protocol_mechanism(_ome_logits(x, log_factor), n_bits)


def published_bit_mechanism(
    protocol: str, epsilon: float, *, n_features: int, n_bits: int, randomization_factor: float = 100.0
) -> BitMechanism:
    """Return the rates as the OME paper prints them, whose loss is not the epsilon they are given.

    Parameters
    ----------
    protocol : {"ome", "oue", "sue"}
        The protocol.
    epsilon : float
        The claimed epsilon. SUE and OUE divide it by ``2 * n_features``, OME by ``n_bits``.
    n_features : int
        Real values per record.
    n_bits : int
        Bits of the whole record.
    randomization_factor : float, default=100.0
        The factor ``lam`` of OME.

    Returns
    -------
    BitMechanism

    Examples
    --------
    >>> from skfairdp.mechanisms import published_bit_mechanism
    >>> round(published_bit_mechanism("ome", 1.0, n_features=50, n_bits=500).epsilon, 2)
    3451.39
    """
    if protocol not in ("ome", "oue", "sue"):
        raise ValueError(f"protocol must be 'ome', 'oue' or 'sue' to have published rates; got {protocol!r}.")
    epsilon = check_epsilon(epsilon, allow_inf=False)
    if protocol == "ome":
        logits = _ome_logits(epsilon / n_bits, _log_randomization_factor(randomization_factor))
    else:
        logits = (_sue_logits if protocol == "sue" else _oue_logits)(epsilon / (2 * n_features))
    return _protocol_mechanism(logits, n_bits)
