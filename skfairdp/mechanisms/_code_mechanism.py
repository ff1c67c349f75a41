"""Learned codes: release one of K codes, drawn in integers.

An encoder gives a distribution s over K codes; the mechanism releases one code c with

    P(c | x) = (1 + (e^epsilon - 1) s_c(x)) / (K - 1 + e^epsilon).

Every value lies in [1, e^epsilon] / (K - 1 + e^epsilon), so the ratio of two records is at most
e^epsilon whatever the encoder does. One-hot s is k-ary randomised response, K = 2 is Warner's.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal, localcontext
from functools import lru_cache

import numpy as np

from skfairdp._validation import check_count, check_epsilon
from skfairdp.dp import Mechanism, check_columns
from skfairdp.random import RandomStream, random_stream

# All weights of a row sum to this power of two, so that one shifted word is an exact uniform draw.
_TOTAL_BITS = 63
_TOTAL = 1 << _TOTAL_BITS
_DIGITS = Context(prec=80)


@dataclass(frozen=True)
class CodeMechanism(Mechanism):
    """Release one of K codes, drawn by integer weights; made by :func:`code_mechanism`.

    Code c of a row gets a weight between ``floors[c]`` and ``ceilings[c]``, and the weights of a row sum to ``2**63``.
    A code whose ceiling is 0 is never released.

    Attributes
    ----------
    floors, ceilings : tuple of int
        Least and largest weight of each code.
    epsilon : float
        The largest ``ln(ceilings[c] / floors[c])``, the exact worst case, rounded up to a float.

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp.mechanisms import code_mechanism
    >>> from skfairdp.random import random_stream
    >>> mechanism = code_mechanism(4, 30.0)
    >>> mechanism.release(np.eye(4), random_stream(0))  # at such an epsilon the named code nearly always leaves
    array([0, 1, 2, 3])
    """

    floors: tuple[int, ...]
    ceilings: tuple[int, ...]
    epsilon: float
    name = "codes"

    @property
    def n_codes(self) -> int:
        """Number of codes, K."""
        return len(self.floors)

    @property
    def floor(self) -> int:
        """The least weight of a code that is released at all."""
        return min(floor for floor, ceiling in zip(self.floors, self.ceilings) if ceiling > 0)

    @property
    def spread(self) -> int:
        """What the floors leave of ``2**63``, for each row to give to its codes."""
        return _TOTAL - sum(self.floors)

    def check(self, s: np.ndarray) -> None:
        """Check the shape; values cannot fail.

        Parameters
        ----------
        s : ndarray of shape (n_samples, n_codes)
            How strongly each record names each code.
        """
        check_columns(s, self.n_codes)

    def draw(self, s: np.ndarray, stream: RandomStream) -> np.ndarray:
        """Draw one code per row.

        The floor of the running sums, ``F_c = floor(B (s_1 + ... + s_c))`` with ``F_K = B``, rises from 0 to the
        spread B whatever the rounding errors, so that the weights ``A_c + F_c - F_{c-1}`` sum to 2**63 for every input.
        What exceeds a code's ceiling goes to other codes, from the first on. A 63-bit word then picks the code,
        without rejection.

        Parameters
        ----------
        s : ndarray of shape (n_samples, n_codes)
            The encoder's distribution over codes: how the spread is given away. A row that is no distribution (nan,
            infinite, negative, all zero) is taken as uniform: an error would tell which record it was.
        stream : RandomStream
            Where the random words come from.

        Returns
        -------
        ndarray of shape (n_samples,)
            Codes, from 0 to ``n_codes - 1``.
        """
        risen = self._rise(s)
        word = stream.uint64(len(risen)) >> np.uint64(1)
        codes = np.zeros(len(risen), dtype=np.intp)
        below = 0
        for c in range(self.n_codes - 1):
            below += self.floors[c]
            codes += word >= risen[:, c] + np.uint64(below)
        return codes

    def _rise(self, s: np.ndarray) -> np.ndarray:
        """Running sums of what each row gives to its codes; they end at the spread."""
        spread = np.uint64(self.spread)
        # float(spread) may have been rounded up; the minimum keeps F_c <= B, and the product is monotone in F.
        risen = np.minimum(np.floor(_cumulative_probabilities(s) * float(self.spread)).astype(np.uint64), spread)
        risen[:, -1] = spread
        room = np.array([high - low for low, high in zip(self.floors, self.ceilings)], dtype=np.uint64)
        if (room >= spread).all():
            return risen
        given = np.minimum(np.diff(risen, axis=1, prepend=np.uint64(0)), room)
        left = spread - given.sum(axis=1, dtype=np.uint64)
        for c in range(self.n_codes):
            more = np.minimum(left, room[c] - given[:, c])
            given[:, c] += more
            left -= more
        return np.cumsum(given, axis=1, dtype=np.uint64)

    def log_likelihood_ratio(self, y: np.ndarray, x: np.ndarray, x_prime: np.ndarray) -> np.ndarray:
        """Compute ``log P(y | x) - log P(y | x_prime)`` from the weights that codes are drawn with.

        Parameters
        ----------
        y : ndarray of shape (n_samples,)
            Released codes.
        x, x_prime : ndarray of shape (1, n_codes) or (n_samples, n_codes)
            Two distributions over codes.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        codes = np.asarray(y).reshape(-1).astype(np.intp)
        first, second = (self._log_weights(s)[np.arange(len(codes)) if len(s) > 1 else 0, codes] for s in (x, x_prime))
        return first - second

    def _log_weights(self, s: np.ndarray) -> np.ndarray:
        given = np.diff(self._rise(s), axis=1, prepend=np.uint64(0))
        with np.errstate(divide="ignore"):  # a code that is never released has no weight
            return np.log(given.astype(np.float64) + np.array(self.floors, dtype=np.float64))

    def worst_case_pairs(self, stream: RandomStream | None = None) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return records that name different codes for certain: the first and the last one, and two at random.

        Parameters
        ----------
        stream : RandomStream or None, default=None
            Draws the random ones among the pairs; without it they are always the same.
        """
        named = [c for c in range(self.n_codes) if self.ceilings[c] > 0]
        pairs = [(named[0], named[-1])]
        if len(named) > 2:
            generator = (stream or random_stream(0)).generator
            pairs += [(named[-1], named[1]), tuple(generator.choice(named, 2, replace=False))]
        eye = np.eye(self.n_codes)
        return [(eye[a], eye[b]) for a, b in pairs]


@lru_cache(maxsize=256)
def integer_weights(
    shares: tuple[float | Decimal, ...], epsilon: float
) -> tuple[tuple[int, ...], tuple[int, ...], float]:
    """Turn the least probabilities of codes into integers whose exact epsilon does not exceed ``epsilon``.

    Parameters
    ----------
    shares : tuple of float or Decimal
        The least probability of each code; 0 for one that is never released.
    epsilon : float
        The epsilon that must not be exceeded.

    Returns
    -------
    floors, ceilings : tuple of int
        Out of ``2**63``; a ceiling is at most ``e^epsilon`` times its floor.
    exact : float
        The largest ``ln(ceiling / floor)``, rounded up to a float.
    """
    with localcontext(_DIGITS):
        largest_ratio = _largest_ratio(epsilon)
        floors = tuple(int((Decimal(share) * _TOTAL).to_integral_value(rounding=ROUND_CEILING)) for share in shares)
        spread = _TOTAL - sum(floors)
        ceilings = tuple(floor + max(0, min(int(floor * largest_ratio) - floor, spread)) for floor in floors)
    if spread < 0 or sum(ceilings) < _TOTAL:
        raise ValueError(
            f"epsilon is too small to be drawn in {_TOTAL_BITS}-bit integers with {len(floors)} codes: got {epsilon!r}."
        )
    return floors, ceilings, _exact_epsilon(floors, ceilings)


@lru_cache(maxsize=256)
def response_floor(n_codes: int, epsilon: float) -> Decimal:
    """Compute the least probability of a code in randomised response, ``1 / (n_codes - 1 + e^epsilon)``."""
    with localcontext(_DIGITS):
        return 1 / (n_codes - 1 + _largest_ratio(epsilon))


def _largest_ratio(epsilon: float) -> Decimal:
    # exp is right to the last of 80 digits; taking a little off keeps it below the true value.
    return Decimal(min(epsilon, 64.0)).exp() * (1 - Decimal(10) ** -70)


def _exact_epsilon(floors: Sequence[int], ceilings: Sequence[int]) -> float:
    with localcontext(_DIGITS):
        exact = max((Decimal(high) / low).ln() for low, high in zip(floors, ceilings) if high > 0)
    rounded = float(exact)
    return math.nextafter(rounded, math.inf) if Decimal(rounded) < exact else rounded


@lru_cache(maxsize=64)
def code_mechanism(n_codes: int, epsilon: float) -> CodeMechanism:
    """Choose the integers whose exact epsilon is the largest that does not exceed ``epsilon``.

    With T = 2**63 the floor A is the least integer with ``T / A - (K - 1) <= e^epsilon``, and the
    spread is B = T - K A. The largest ratio of two reachable weights is (A + B) / A = T / A - (K - 1).

    Parameters
    ----------
    n_codes : int
        Number of codes, at least 2.
    epsilon : float
        The epsilon that must not be exceeded; finite.

    Returns
    -------
    CodeMechanism

    Examples
    --------
    >>> from skfairdp.mechanisms import code_mechanism
    >>> mechanism = code_mechanism(8, 4.0)
    >>> 8 * mechanism.floor + mechanism.spread == 2**63, mechanism.epsilon
    (True, 4.0)
    """
    epsilon = check_epsilon(epsilon, allow_inf=False)
    n_codes = check_count(n_codes, "n_codes", 2)
    return CodeMechanism(*integer_weights((response_floor(n_codes, epsilon),) * n_codes, epsilon))


def code_probabilities(s: np.ndarray, epsilon: float) -> np.ndarray:
    """Compute the probability of each code, in closed form.

    Parameters
    ----------
    s : ndarray of shape (n_samples, n_codes)
        The encoder's distribution over codes; rows that are no distribution are taken as uniform.
    epsilon : float
        Greater than 0; infinity gives ``s``.

    Returns
    -------
    ndarray of shape (n_samples, n_codes)

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp.mechanisms import code_probabilities
    >>> code_probabilities(np.array([[1.0, 0.0]]), 1.0).round(6)
    array([[0.731059, 0.268941]])
    """
    epsilon = check_epsilon(epsilon)
    cumulative = _cumulative_probabilities(s)
    share = np.diff(cumulative, axis=1, prepend=0.0)
    # Numerator and denominator are divided by e^epsilon, which may overflow.
    low = math.exp(-epsilon)
    return (low + (1.0 - low) * share) / (1.0 + (cumulative.shape[1] - 1) * low)


def draw_codes(s: np.ndarray, epsilon: float, stream: RandomStream) -> np.ndarray:
    """Draw one code per row; pure local differential privacy, proved in integers.

    Parameters
    ----------
    s : ndarray of shape (n_samples, n_codes)
        The encoder's distribution over codes. A row that is no distribution (nan, infinite, negative, all zero)
        is taken as uniform: an error would tell which record it was.
    epsilon : float
        Finite; see `code_mechanism` for the exact epsilon that is spent.
    stream : RandomStream
        Where the random words come from.

    Returns
    -------
    ndarray of shape (n_samples,)
        Codes, from 0 to ``n_codes - 1``.

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp.random import random_stream
    >>> from skfairdp.mechanisms import draw_codes
    >>> s = np.tile([0.0, 1.0], (10_000, 1))
    >>> codes = draw_codes(s, epsilon=2.0, stream=random_stream(0))
    >>> bool(abs(codes.mean() - 0.880797) < 0.01)
    True
    """
    s = _check_code_probabilities(s)
    return code_mechanism(s.shape[1], float(epsilon)).release(s, stream)


def _check_code_probabilities(s: np.ndarray) -> np.ndarray:
    s = np.asarray(s, dtype=np.float64)
    if s.ndim != 2 or s.shape[1] < 2:
        raise ValueError(f"s must have shape (n_samples, n_codes) with at least 2 codes; got shape {s.shape}.")
    return s


def _cumulative_probabilities(s: np.ndarray) -> np.ndarray:
    """Running sums of each row, scaled to end at exactly 1; monotone in floating point."""
    s = _check_code_probabilities(s)
    largest = s.max(axis=1, initial=0.0)
    with np.errstate(invalid="ignore"):
        sound = np.isfinite(s).all(axis=1) & (s.min(axis=1, initial=0.0) >= 0) & (largest > 0)
    # Dividing by the largest entry first keeps the sum from overflowing.
    share = np.where(sound[:, None], s, 1.0) / np.where(sound, largest, 1.0)[:, None]
    cumulative = np.cumsum(share, axis=1)
    cumulative /= cumulative[:, -1:].copy()
    return cumulative
