"""Learned codes: release one of K codes, drawn in integers.

An encoder gives a distribution s over K codes; the mechanism releases one code c with

    P(c | x) = (1 + (e^epsilon - 1) s_c(x)) / (K - 1 + e^epsilon).

Every value lies in [1, e^epsilon] / (K - 1 + e^epsilon), so the ratio of two records is at most
e^epsilon whatever the encoder does. One-hot s is k-ary randomised response, K = 2 is Warner's.
"""

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal, localcontext
from functools import lru_cache

import numpy as np

from skfairdp._validation import check_count, check_epsilon
from skfairdp.mechanisms._mechanism import Mechanism, check_columns
from skfairdp.random import RandomStream, random_stream

# All weights of a row sum to this power of two, so that one shifted word is an exact uniform draw.
_TOTAL_BITS = 63
_TOTAL = 1 << _TOTAL_BITS
_DIGITS = Context(prec=80)


@dataclass(frozen=True)
class CodeMechanism(Mechanism):
    """Release one of K codes, drawn by integer weights; made by :func:`code_mechanism`.

    Code c of a row gets the weight ``floor + m_c``, where the ``m_c`` are non-negative integers that
    sum to ``spread``; ``n_codes * floor + spread`` is always ``2**63``.

    Attributes
    ----------
    n_codes : int
        Number of codes, K.
    floor, spread : int
        Every weight lies in ``[floor, floor + spread]``.
    epsilon : float
        ``ln((floor + spread) / floor)``, the exact worst case, rounded up to a float.
    """

    n_codes: int
    floor: int
    spread: int
    epsilon: float
    name = "codes"

    def check(self, s: np.ndarray) -> None:
        """Check the shape; values cannot fail."""
        check_columns(s, self.n_codes)

    def release(self, s: np.ndarray, stream: RandomStream) -> np.ndarray:
        """Draw one code per row.

        The floor of the running sums, ``F_c = floor(B (s_1 + ... + s_c))`` with ``F_K = B``, rises from 0 to
        B whatever the rounding errors, so the weights ``A + F_c - F_{c-1}`` lie in [A, A + B] and sum to
        2**63 for every input. A 63-bit word then picks the code, without rejection.

        Parameters
        ----------
        s : ndarray of shape (n_samples, n_codes)
            The encoder's distribution over codes. A row that is no distribution (nan, infinite, negative, all zero)
            is taken as uniform: an error would tell which record it was.
        stream : RandomStream
            Where the random words come from.

        Returns
        -------
        ndarray of shape (n_samples,)
            Codes, from 0 to ``n_codes - 1``.
        """
        self.check(s)
        cumulative = _cumulative_probabilities(s)
        word = stream.uint64(len(cumulative)) >> np.uint64(1)
        codes = np.zeros(len(cumulative), dtype=np.intp)
        for c in range(self.n_codes - 1):
            codes += word >= self._rise(cumulative[:, c]) + np.uint64((c + 1) * self.floor)
        return codes

    def _rise(self, cumulative: np.ndarray) -> np.ndarray:
        # float(spread) may have been rounded up; the clip keeps F_c <= B, and the product is monotone in F.
        rise = np.floor(cumulative * float(self.spread))
        return np.minimum(rise.astype(np.uint64), np.uint64(self.spread))

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
        cumulative = _cumulative_probabilities(s)
        risen = self._rise(cumulative)
        risen[:, -1] = self.spread
        return np.log(np.diff(risen, axis=1, prepend=np.uint64(0)).astype(np.float64) + self.floor)

    def worst_case_pairs(self, stream: RandomStream | None = None) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return records that name different codes for certain: the first and the last one, and two at random."""
        pairs = [(0, self.n_codes - 1)]
        if self.n_codes > 2:
            generator = (stream or random_stream(0)).generator
            pairs += [(self.n_codes - 1, 1), tuple(generator.choice(self.n_codes, 2, replace=False))]
        eye = np.eye(self.n_codes)
        return [(eye[a], eye[b]) for a, b in pairs]


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
    with localcontext(_DIGITS):
        # exp is right to the last of 80 digits; taking a little off keeps it below the true value.
        largest_ratio = Decimal(min(epsilon, 64.0)).exp() * (1 - Decimal(10) ** -70)
        floor = int((_TOTAL / (n_codes - 1 + largest_ratio)).to_integral_value(rounding=ROUND_CEILING))
        spread = _TOTAL - n_codes * floor
        if spread < 0:
            raise ValueError(
                f"epsilon is too small to be drawn in {_TOTAL_BITS}-bit integers with {n_codes} codes: got {epsilon!r}."
            )
        exact = (Decimal(floor + spread) / floor).ln()
    rounded = float(exact)
    if Decimal(rounded) < exact:
        rounded = math.nextafter(rounded, math.inf)
    return CodeMechanism(n_codes, floor, spread, rounded)


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
