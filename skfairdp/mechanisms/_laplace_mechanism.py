r"""The Laplace mechanism: rows are normalised and get discrete Laplace noise, exact in the arithmetic that runs.

**From rows to integers and back.** A row becomes integers :math:`Z` whose L1 sensitivity is :math:`\Delta N`, discrete
Laplace noise of scale :math:`s = \Delta N / \varepsilon` is added, and the sum is multiplied by ``clip_norm / N``,
which is post-processing. The grid ``N`` is the least power of two for which :math:`s \ge 512`: rounding to the grid
then adds less than one part in a million to the variance of the noise.

**The noise.** The discrete Laplace distribution of scale :math:`s` has
:math:`P(X = k) = \frac{1 - t}{1 + t} t^{|k|}` with :math:`t = e^{-1/s}`, so that shifting
an integer vector by at most :math:`\Delta` in L1 changes the probability of no outcome by
more than :math:`e^{\Delta / s}`. Floating-point Laplace noise promises the same and does not keep
it: which low-order bits a sum can have depends on what the noise was added to (Mironov 2012).

**How it is drawn.** Write :math:`X = mQ + R` with :math:`0 \le R < m` where :math:`X \ge 0`, and
:math:`X = mQ + (m - 1 - R)` where :math:`X < 0`. Then :math:`R` is a truncated geometric variable
independent of :math:`Q`, whatever the sign, and :math:`Q` falls off by :math:`t^m` per step. With
:math:`m` the least power of two that brings :math:`s / m` below 1024, :math:`Q` has a table of
:math:`2^{14}` cells (:math:`m = 1`, and :math:`R = 0`, for scales below 1024). Its outermost cells mean
"this far or farther". A geometric variable has no memory, so the distance from there is geometric again; it is drawn
from a table of its own, whose last cell means "draw again".

**Exactness.** Probabilities are computed in 80-digit decimals and rounded to integers over
:math:`2^{160}`; every count is at least :math:`2^{101}`, so each table's probabilities have a relative error
of at most :math:`\eta = 2^{-100}`. An outcome is drawn through one cell of the main table, at most three digits,
and perhaps a run of "draw again" cells and one last cell of the tail; the runs of two outcomes that differ by
:math:`d` have lengths that differ by at most :math:`d / (15 s) + 1`, and equal runs cancel. Hence the log ratio of
their probabilities is at most :math:`d / s + \eta (12 + d / (15 s))`; :func:`laplace_scale` keeps a reserve for it.
"""

import math
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from skfairdp._validation import check_epsilon, check_option
from skfairdp.mechanisms._alias_table import BLOCK, WHOLE, AliasTable
from skfairdp.mechanisms._normalise import (
    FINEST_GRID,
    check_clip_norm,
    check_norm,
    inner_radius,
    l1_sensitivity,
    shape_of,
)
from skfairdp.mechanisms._row_noise import RowNoise, check_scale
from skfairdp.random import RandomStream

# -- integer noise ----------------------------------------------------------------------------------------------------


_DIGITS = 80
_CELLS = 1 << 14
_LEAST_COUNT = 1 << 101  # so that rounding a probability to an integer moves it by less than 2**-100 of itself
_REACH = 32  # a table ends no later than 32 scales out, where its counts are still large
LEAST_SCALE = 2.0**-4
GREATEST_SCALE = 2.0**44  # 160-bit tails then stay below 2**53, where float64 still counts in ones


def discrete_laplace(size: int | tuple[int, ...], scale: float, stream: RandomStream) -> np.ndarray:
    """Draw independent discrete Laplace noise.

    Parameters
    ----------
    size : int or tuple of int
        The shape of the result; every entry gets noise of its own.
    scale : float
        Probabilities fall by a factor of e every ``scale`` integers; in [2**-4, 2**44].
    stream : RandomStream
        Where the random bits come from; a seeded stream takes the same steps as a secure one.

    Returns
    -------
    ndarray of int64

    Examples
    --------
    >>> from skfairdp.random import random_stream
    >>> from skfairdp.mechanisms import discrete_laplace
    >>> noise = discrete_laplace((1000, 50), 700.0, random_stream(0))
    >>> noise.shape, round(float(abs(noise).mean()) / 700, 2)
    ((1000, 50), 1.0)
    """
    out = np.empty(size, dtype=np.int64)
    laplace_tables(scale).fill(out.reshape(-1), stream)
    return out


class LaplaceNoise:
    """The tables of one scale; ``fill`` draws from them."""

    def __init__(self, scale: float):
        self.scale = check_scale(scale, LEAST_SCALE, GREATEST_SCALE)
        self._step = 1
        while self.scale / self._step >= 1024:
            self._step *= 2
        self._main = self._two_sided()
        self._top, self._bottom = self._main.first + len(self._main.counts) - 1, self._main.first
        self._digits = self._lower_digits()

    def fill(self, out: np.ndarray, stream: RandomStream) -> None:
        """Fill a contiguous one-dimensional int64 or float64 array with independent noise."""
        for start in range(0, out.size, BLOCK):
            self._fill_block(out[start : start + BLOCK], stream)

    def _fill_block(self, out: np.ndarray, stream: RandomStream) -> None:
        self._main.fill(out, stream)
        far = np.flatnonzero((out == self._top) | (out == self._bottom))
        if far.size:
            beyond = self._geometric(far.size, stream).astype(out.dtype)
            out[far] += np.where(out[far] == self._top, beyond, -beyond)
        if self._step > 1:
            rest = np.zeros(out.shape, dtype=out.dtype)
            digit = np.empty_like(rest)
            for weight, table in self._digits:
                table.fill(digit, stream)
                rest += weight * digit
            np.subtract(self._step - 1, rest, out=rest, where=out < 0)
            out *= self._step
            out += rest

    def _geometric(self, n: int, stream: RandomStream) -> np.ndarray:
        """Draw geometric variables of the main table's ratio, without an upper end."""
        total = np.zeros(n, dtype=np.int64)
        going = np.arange(n)
        last = len(self._tail.counts) - 1
        while going.size:
            steps = np.empty(going.size, dtype=np.int64)
            self._tail.fill(steps, stream)
            total[going] += steps
            going = going[steps == last]
        return total

    def _ratio(self, steps: int) -> Decimal:
        return (Decimal(-steps) / Decimal(self.scale)).exp()

    def _cells(self, most: int) -> int:
        return min(most, math.floor(_REACH * self.scale / self._step))

    def _two_sided(self) -> AliasTable:
        """Make the table of Q: ratio t**m outwards, from 0 upwards and from -1 downwards."""
        half = self._cells(_CELLS // 2)
        with localcontext(Context(prec=_DIGITS)):
            t, step = self._ratio(1), self._ratio(self._step)
            outer = 1 / (1 + t)  # P(Q >= 0)
            up = _geometric_masses(outer, step, half)
            down = _geometric_masses(outer * t, step, half)
            return AliasTable(_to_counts(down[::-1] + up), first=-half)

    @cached_property
    def _tail(self) -> AliasTable:
        with localcontext(Context(prec=_DIGITS)):
            masses = _geometric_masses(Decimal(1), self._ratio(self._step), self._cells(_CELLS))
            return AliasTable(_to_counts(masses))

    def _lower_digits(self) -> list[tuple[int, AliasTable]]:
        """Make the tables of R: its digits to the base 2**14 are independent, each geometric and cut off."""
        digits, weight = [], 1
        while weight < self._step:
            base = min(_CELLS, self._step // weight)
            with localcontext(Context(prec=_DIGITS)):
                ratio = self._ratio(weight)
                head = (1 - ratio) / (1 - ratio**base)
                masses = [head]
                for _ in range(base - 1):
                    masses.append(masses[-1] * ratio)
                digits.append((weight, AliasTable(_to_counts(masses))))
            weight *= base
        return digits


@lru_cache(maxsize=32)
def laplace_tables(scale: float) -> LaplaceNoise:
    """Return the tables that Laplace noise of a scale is drawn from, built once."""
    return LaplaceNoise(scale)


def laplace_scale(sensitivity: float, epsilon: float, n_changed: int) -> float:
    """Compute the integer noise scale that epsilon needs, tables' rounding included.

    Parameters
    ----------
    sensitivity : float
        L1 sensitivity of the integer vectors.
    epsilon : float
        Finite and greater than 0.
    n_changed : int
        How many coordinates may differ between neighbours.

    Returns
    -------
    float

    Notes
    -----
    The loss is at most ``sensitivity/s (1 + eta/15) + 12 eta n_changed`` with ``eta = 2**-100``. Making s larger by
    ``2**-48`` than ``sensitivity/epsilon`` leaves ``epsilon 2**-49`` for the small terms and for the rounding of s
    itself, which is enough while ``12 n_changed <= epsilon 2**50``.
    """
    epsilon = check_epsilon(epsilon, allow_inf=False)
    if 12 * n_changed > epsilon * 2.0**50:
        raise ValueError(
            f"epsilon must be at least {12 * n_changed * 2.0**-50:.3g} for {n_changed} coordinates, so that the "
            f"rounding of the noise tables stays below it; got {epsilon!r}."
        )
    return sensitivity / epsilon * (1 + 2.0**-48)


def _geometric_masses(total: Decimal, ratio: Decimal, n: int) -> list[Decimal]:
    """Split a mass into ``n`` cells falling by ``ratio``; the last takes all that lies beyond."""
    masses, left = [], total
    for _ in range(n - 1):
        masses.append(left * (1 - ratio))
        left *= ratio
    return masses + [left]


def _to_counts(masses: list[Decimal]) -> list[int]:
    """Round probabilities to integers over 2**160, and check that none moved by more than 2**-100 of itself."""
    counts = [int((mass * WHOLE).to_integral_value()) for mass in masses]
    largest = max(range(len(counts)), key=counts.__getitem__)
    excess = sum(counts) - WHOLE
    counts[largest] -= excess
    if min(counts) < _LEAST_COUNT or abs(excess) << 100 > counts[largest]:
        raise ArithmeticError("a probability lost more than 2**-100 of itself in rounding; no noise was drawn.")
    return counts


# -- the mechanism: rows in, noisy rows out ---------------------------------------------------------------------------


CALIBRATIONS = ("exact", "published")
_LEAST_GRID_SCALE = 512


@dataclass(frozen=True)
class LaplaceMechanism(RowNoise):
    """Normalised rows plus discrete Laplace noise; made by :func:`laplace_mechanism`.

    Attributes
    ----------
    norm : {"l1", "l2", "minmax", "clip"}
        The normalisation.
    n_features : int
        The number of columns.
    clip_norm : float
        Radius, or interval length, of the normalised rows.
    grid : int
        The integer radius that rows are rounded to; 0 when there is no noise.
    unit : float
        What one integer step is worth in the output.
    epsilon : float
        The exact worst-case loss of one release.
    scale : float
        The scale of the integer noise.
    published_epsilon : float or None
        What a paper claims for this noise, where that is less.

    Examples
    --------
    >>> from skfairdp.mechanisms import laplace_mechanism
    >>> mechanism = laplace_mechanism(8.0, "l2", 4, calibration="published")
    >>> mechanism.published_epsilon, mechanism.epsilon  # what the paper claims, and what its noise costs
    (8.0, 16.0)
    """

    epsilon: float
    scale: float
    published_epsilon: float | None = None
    name = "laplace"

    @property
    def noise_scale(self) -> float:
        """Scale of the noise in the units of the output."""
        return self.scale * self.unit

    @property
    def sensitivity(self) -> float:
        """The largest L1 distance between two normalised rows."""
        return l1_sensitivity(self.norm, self.n_features, self.clip_norm)

    def _fill(self, out: np.ndarray, stream: RandomStream) -> None:
        laplace_tables(self.scale).fill(out, stream)

    def _log_density(self, noise: np.ndarray) -> np.ndarray:
        return -np.abs(noise).sum(axis=1) / self.noise_scale


def exact_laplace_epsilon(norm: str, n_features: int, epsilon: float) -> float:
    """Compute what a published calibration of Laplace noise really costs.

    Parameters
    ----------
    norm : {"l1", "l2", "minmax"}
        ``"l1"`` with Lap(2/epsilon) is Equation 3 of FEDERATE, and holds. ``"l2"`` with Lap(2/epsilon) is its public
        code: two unit vectors of opposite sign are ``2 sqrt(D)`` apart in L1, not 2. ``"minmax"`` with Lap(1/epsilon)
        is DPNR as printed: every coordinate can move by 1 at once, so the sensitivity is D, not 1.
    n_features : int
        The number of columns D.
    epsilon : float
        The published epsilon.

    Returns
    -------
    float
        ``epsilon``, ``epsilon sqrt(D)`` or ``epsilon D``; each is attained.

    Examples
    --------
    >>> from skfairdp.mechanisms import exact_laplace_epsilon
    >>> round(exact_laplace_epsilon("l2", 300, 8.0), 6), exact_laplace_epsilon("minmax", 768, 1.0)
    (138.564065, 768.0)
    """
    epsilon = check_epsilon(epsilon)
    factor = {"l1": 1.0, "l2": math.sqrt(n_features), "minmax": float(n_features)}.get(check_norm(norm))
    if factor is None:
        raise ValueError(f"calibration='published' knows norm='l1', 'l2' and 'minmax'; nobody published norm={norm!r}.")
    return epsilon * factor


def laplace_mechanism(
    epsilon: float, norm: str, n_features: int, *, clip_norm: float = 1.0, calibration: str = "exact"
) -> LaplaceMechanism:
    """Make a Laplace mechanism: choose grid and noise scale for an epsilon, and check every argument.

    Parameters
    ----------
    epsilon : float
        Greater than 0; ``inf`` means no noise.
    norm : {"l1", "l2", "minmax", "clip"}
        The normalisation.
    n_features : int
        The number of columns.
    clip_norm : float, default=1.0
        Radius, or interval length, of the normalised rows.
    calibration : {"exact", "published"}, default="exact"
        Whether ``epsilon`` is the exact loss or the one that a paper claims.

    Returns
    -------
    LaplaceMechanism

    Examples
    --------
    >>> from skfairdp.mechanisms import laplace_mechanism
    >>> mechanism = laplace_mechanism(8.0, "l1", 4)
    >>> mechanism.guarantee().epsilon, round(mechanism.noise_scale, 6)
    (8.0, 0.25)
    """
    epsilon, radius = check_epsilon(epsilon), check_clip_norm(clip_norm)
    claimed = epsilon
    if check_option(calibration, "calibration", CALIBRATIONS) == "published":
        epsilon = exact_laplace_epsilon(norm, n_features, epsilon)
    sensitivity = l1_sensitivity(norm, n_features)
    published = claimed if epsilon != claimed else None
    if math.isinf(epsilon):
        return LaplaceMechanism(norm, n_features, radius, 0, 0.0, epsilon, 0.0, published)
    grid = 1
    if norm == "l2":  # rounding widens an L2 sphere by sqrt(D/4) steps, which must be small against the radius
        grid = 1 << math.ceil(math.log2(max(1024, 8 * math.sqrt(n_features))))
    while sensitivity * grid < _LEAST_GRID_SCALE * epsilon and grid < FINEST_GRID[norm]:
        grid *= 2
    integer_sensitivity = sensitivity * grid
    # On the finest grid the noise stays at 512 steps, more than such an epsilon asks for.
    spent = min(epsilon, integer_sensitivity / _LEAST_GRID_SCALE)
    scale = laplace_scale(integer_sensitivity, spent, min(n_features, math.ceil(integer_sensitivity)))
    if scale > GREATEST_SCALE:
        raise ValueError(
            f"epsilon must be at least {integer_sensitivity / GREATEST_SCALE:.3g} for norm={norm!r} and {n_features} "
            f"features; got {epsilon!r}."
        )
    unit = radius / (inner_radius(grid, n_features) if norm == "l2" else grid)
    return LaplaceMechanism(norm, n_features, radius, grid, unit, epsilon, scale, published)


def laplace_release(
    X: Any,
    *,
    epsilon: float,
    norm: str = "l1",
    clip_norm: float = 1.0,
    calibration: str = "exact",
    stream: RandomStream,
) -> np.ndarray:
    """Normalise each row and add Laplace noise, independent for every entry.

    Parameters
    ----------
    X : ndarray or sparse CSR matrix of shape (n_samples, n_features)
        The rows. One with a nan or an infinity is treated as the zero vector.
    epsilon : float
        Greater than 0; ``inf`` returns the normalised rows as they are.
    norm : {"l1", "l2", "minmax", "clip"}, default="l1"
        The normalisation, see :func:`normalise`.
    clip_norm : float, default=1.0
        Radius, or interval length, of the normalised rows.
    calibration : {"exact", "published"}, default="exact"
        Whether ``epsilon`` is the exact loss or the one that a paper claims, see :func:`exact_laplace_epsilon`.
    stream : RandomStream
        Where the random bits come from.

    Returns
    -------
    ndarray of shape (n_samples, n_features), float64

    Notes
    -----
    **Privacy.** One release is pure epsilon-DP for any two rows: they become integer vectors whose L1 distance is
    at most the integer sensitivity, and the discrete Laplace noise has independent coordinates. Running time is
    not covered.

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp.random import random_stream
    >>> from skfairdp.mechanisms import laplace_release
    >>> X = np.tile([3.0, -1.0], (20000, 1))
    >>> laplace_release(X, epsilon=8.0, stream=random_stream(0)).mean(axis=0).round(2)
    array([ 0.75, -0.25])
    """
    _, n_features = shape_of(X)
    mechanism = laplace_mechanism(epsilon, norm, n_features, clip_norm=clip_norm, calibration=calibration)
    return mechanism.release(X, stream)
