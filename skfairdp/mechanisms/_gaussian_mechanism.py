r"""The Gaussian mechanism: rows are normalised and get rounded normal noise, with a rigorous (epsilon, delta).

**From rows to integers and back.** A row becomes integers in a ball of radius N (:func:`normalise_to_grid`), rounded
normal noise of scale ``sigma = 2 N / mu`` is added, and the sum is scaled back, which is post-processing. ``mu`` is the
largest that the analytic Gaussian mechanism (Balle and Wang 2018) allows at an epsilon and a delta from which the error
bounds of the noise tables have been taken off first.

**The noise.** Adding :math:`\mathrm{round}(G)` to an integer :math:`z`, with :math:`G` normal of standard deviation
:math:`\sigma`, is the same as rounding :math:`z + G`. So what is released is a function of the continuous
Gaussian mechanism's output, and its exact privacy profile is a rigorous bound, without any analysis of a
discrete one.

**Scales up to 2304** have a table of :math:`2^{16}` cells for :math:`|k| \le K = 32767`. The probabilities

.. math::

    p_k = \int_{k - 1/2}^{k + 1/2} \varphi_\sigma
        = h \varphi(z) \sum_{n \ge 0} \frac{(h/2)^{2n}}{(2n+1)!} He_{2n}(z),
    \qquad h = 1/\sigma,\ z = k / \sigma,

are computed in 80-digit decimals and *rounded up* to integers over :math:`2^{160}`, at least 1 each; the
centre cell takes what remains. So the table's :math:`\hat p_k` satisfies, with :math:`\eta = 2^{-58}` and
:math:`\tau = 2^{-90}`, both checked on the integers when a table is built,

* :math:`\hat p_k \ge (1 - \eta) p_k` for :math:`|k| \le K`, even where :math:`p_k` is below :math:`2^{-160}`,
* :math:`\hat p_k \le (1 + \eta) p_k` for :math:`|k| \le 11 \sigma`, and
  :math:`\hat P(|X| > 11 \sigma) \le \tau`.

Consequence: let the continuous mechanism on vectors of length D be :math:`(\varepsilon_0, \delta_0)`-DP, and
let neighbours differ by at most :math:`K - 11 \sigma` in each coordinate. For any set of outputs, split off
those farther than :math:`11 \sigma` from x in some coordinate (probability at most :math:`D \tau`). On the
rest :math:`\hat P_x \le (1 + \eta)^D P_x`, and :math:`P_{x'} \le (1 - \eta)^{-D} \hat P_{x'}`, because
those outputs lie within K of x'. The table's mechanism is therefore
:math:`(\varepsilon_0 + 2 D \eta',\ (1 + 2 D \eta) \delta_0 + D \tau)`-DP with :math:`\eta' = -\ln(1 - \eta)`; no
factor :math:`e^\varepsilon` appears.

**Larger scales** are sums :math:`m X_1 + X_2` of two such variables of the same scale :math:`\sigma_0`,
repeated where needed. Let :math:`a` be the density of :math:`m G_1 + V`, V uniform on :math:`[-m/2, m/2]`, and
:math:`b` that of :math:`G_2` plus a uniform variable on :math:`[-1/2, 1/2]`. Then
:math:`P(m X_1 + X_2 = k) = \sum_j m\,a(mj)\,b(k - mj)`, while
:math:`\int a(y) b(k - y) dy = P(\mathrm{round}(m G_1 + G_2 + V) = k)`. By Poisson's summation formula they
differ by Fourier coefficients of size :math:`\exp(-2 \pi^2 \sigma_0^2 / (m^2 + 1))` and smaller; with
:math:`\sigma_0 \ge 16 m` that is below :math:`e^{-4000}`. So the sum is, up to that, a function of the
continuous mechanism with :math:`\sigma = \sigma_0 \sqrt{m^2 + 1}` again: V does not depend on the data. Here the
total variation between table and truth, at most :math:`2^{-140}` per draw, is what the release accounts for.
"""

import math
from dataclasses import dataclass, replace
from decimal import Context, Decimal, localcontext
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from skfairdp._validation import check_delta, check_epsilon
from skfairdp.dp import ReleaseEvent, gaussian_mu
from skfairdp.mechanisms._alias_table import BLOCK, WHOLE, AliasTable
from skfairdp.mechanisms._normalise import check_clip_norm, inner_radius, l2_sensitivity, shape_of
from skfairdp.mechanisms._row_noise import RowNoise, check_scale
from skfairdp.random import RandomStream

# -- integer noise ----------------------------------------------------------------------------------------------------


#: The largest scale that one table serves; it reaches 14 standard deviations out.
TABLE_SCALE = 2304.0
TABLE_REACH = 32767
#: Bounds that every table is checked against: relative error within 11 standard deviations, mass beyond.
ETA, TAU = 2.0**-58, 2.0**-90
#: Bound on the total variation between a table and the rounded normal distribution, checked as well.
TOTAL_VARIATION = 2.0**-140

_DIGITS = 80
_FACTOR = 128  # of a sum; the table scale is then at least 16 times it
LEAST_SCALE, GREATEST_SCALE = 16.0, 2.0**40


def rounded_gaussian(size: int | tuple[int, ...], scale: float, stream: RandomStream) -> np.ndarray:
    """Draw independent normal noise, rounded to integers.

    Parameters
    ----------
    size : int or tuple of int
        The shape of the result; every entry gets noise of its own.
    scale : float
        The standard deviation before rounding; in [16, 2**40]. Above 2304 the noise is dithered before it is
        rounded, see the notes.
    stream : RandomStream
        Where the random bits come from; a seeded stream takes the same steps as a secure one.

    Returns
    -------
    ndarray of int64

    Notes
    -----
    **Privacy.** Added to integers, the noise gives a function of what the continuous Gaussian mechanism of this
    scale would release (above 2304: plus uniform noise that does not depend on the data, then rounded).

    Examples
    --------
    >>> from skfairdp.random import random_stream
    >>> from skfairdp.mechanisms import rounded_gaussian
    >>> noise = rounded_gaussian((1000, 50), 2304.0, random_stream(0))
    >>> noise.shape, round(float(noise.std()) / 2304, 2)
    ((1000, 50), 1.0)
    """
    out = np.empty(size, dtype=np.int64)
    scale = check_scale(scale, LEAST_SCALE, GREATEST_SCALE)
    noise = GaussianNoise(scale)
    if scale > TABLE_SCALE:
        noise = GaussianNoise.at_least(scale)
        noise = replace(noise, table_scale=scale / scale_of_level_sum(noise.factor, noise.levels))
    noise.fill(out.reshape(-1), stream)
    return out


@dataclass(frozen=True)
class GaussianNoise:
    """Noise of one scale: a table, or a sum over one table.

    Attributes
    ----------
    table_scale : float
        The scale of the table.
    factor, levels : int
        The sum is ``X_1`` for one level, and ``factor * (sum of one level less) + X`` for more.

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp.mechanisms import GaussianNoise
    >>> from skfairdp.random import random_stream
    >>> noise, out = GaussianNoise(100.0), np.empty(100_000)
    >>> noise.fill(out, random_stream(0))
    >>> round(noise.scale), round(out.std())
    (100, 100)
    """

    table_scale: float
    factor: int = 1
    levels: int = 1

    @property
    def scale(self) -> float:
        """The standard deviation before rounding."""
        return self.table_scale * scale_of_level_sum(self.factor, self.levels)

    @classmethod
    def by_levels(cls, scale: float) -> "GaussianNoise":
        """Choose the least number of levels of the largest factor whose scale is at least ``scale``.

        Parameters
        ----------
        scale : float
            The least standard deviation.
        """
        levels = 2
        while TABLE_SCALE * scale_of_level_sum(_FACTOR, levels) < scale:
            levels += 1
        return cls(TABLE_SCALE, _FACTOR, levels)

    @classmethod
    def at_least(cls, scale: float) -> "GaussianNoise":
        """Choose the least sum over the largest table whose scale is at least ``scale``, and above ``TABLE_SCALE``.

        Parameters
        ----------
        scale : float
            The least standard deviation.
        """
        levels, factor = cls.by_levels(scale).levels, 2
        while TABLE_SCALE * scale_of_level_sum(factor, levels) < scale:
            factor += 1
        return cls(TABLE_SCALE, factor, levels)

    def fill(self, out: np.ndarray, stream: RandomStream) -> None:
        """Fill a contiguous one-dimensional int64 or float64 array with independent noise.

        Parameters
        ----------
        out : ndarray of shape (n,)
            What is overwritten.
        stream : RandomStream
            Where the random bits come from.
        """
        table = gaussian_table(self.table_scale)
        for start in range(0, out.size, BLOCK):
            part = out[start : start + BLOCK]
            table.fill(part, stream)
            for _ in range(self.levels - 1):
                fresh = np.empty_like(part)
                table.fill(fresh, stream)
                part *= self.factor
                part += fresh


def scale_of_level_sum(factor: int, levels: int) -> float:
    """Compute the scale of a sum of several levels, in units of the table's scale."""
    return math.sqrt(sum(factor ** (2 * level) for level in range(levels)))


@lru_cache(maxsize=12)
def gaussian_table(scale: float) -> AliasTable:
    """Make the table of a scale, and check its error bounds on the integers."""
    masses = _rounded_normal_masses(scale)
    # Products are rounded to the digits of the context, and most counts have more than a caller's usual 28.
    with localcontext(Context(prec=_DIGITS)):
        exact = [mass * WHOLE for mass in masses]
        half = [max(1, math.ceil(count)) for count in exact[1:]]
        half += [1] * (TABLE_REACH - len(half))
        centre = WHOLE - 2 * sum(half)
        near = math.floor(11 * scale)
        beyond = 2 * sum(half[near:]) / WHOLE
        relative = max(1 / min(half[:near]), abs(float(centre / exact[0] - 1)))
        # The other cells only gain, and what they gain comes from the centre (and less than 2**-148 from beyond).
        moved = float(abs(exact[0] - centre) / WHOLE)
    if relative > ETA or beyond > TAU or moved > TOTAL_VARIATION:
        raise ArithmeticError("a noise table misses its error bounds; this is a bug, no noise was drawn.")
    return AliasTable(half[::-1] + [centre] + half, first=-TABLE_REACH)


def _rounded_normal_masses(scale: float) -> list[Decimal]:
    """Compute P(round(G) = k) for k = 0, 1, ... until a probability is lost below 2**-160."""
    with localcontext(Context(prec=_DIGITS)):
        h = 1 / Decimal(scale)
        # phi(z_k) by recurrence: the ratio of neighbours itself falls by a constant factor.
        density = h / (2 * _decimal_pi()).sqrt()
        step, fall = (-h * h / 2).exp(), (-h * h).exp()
        average = _cell_average(h)
        masses = []
        for k in range(TABLE_REACH + 1):
            square, factor = (k * h) ** 2, Decimal(0)
            for coefficient in average:
                factor = factor * square + coefficient
            mass = density * factor
            if mass * WHOLE < Decimal("0.5"):  # so z stays below 16
                break
            masses.append(mass)
            density *= step
            step *= fall
        return masses


def _cell_average(h: Decimal) -> list[Decimal]:
    """Expand the mean of the normal density over a cell of width h around z, relative to its value at z.

    Returns the coefficients of a polynomial in z**2, highest first: the series of Hermite polynomials in the module's
    docstring, cut where ``|He_2n(z)| <= (z**2 + 2n)**n`` makes the next term negligible for z up to 16.
    """
    terms, weight = [Decimal(1)], Decimal(1)
    while weight * (256 + 2 * len(terms)) ** len(terms) > Decimal("1e-55"):
        n = len(terms)
        weight *= h * h / 4 / (2 * n * (2 * n + 1))
        terms.append(weight)
    coefficients = [Decimal(0)] * len(terms)
    for n, weight in enumerate(terms):
        for j in range(n + 1):
            he = (-1) ** j * math.factorial(2 * n) // (2**j * math.factorial(j) * math.factorial(2 * n - 2 * j))
            coefficients[n - j] += weight * he
    return coefficients[::-1]


def _decimal_pi() -> Decimal:
    """Compute pi by Machin's formula in the current precision."""

    def arctan_of_inverse(x: int) -> Decimal:
        power, total, n = Decimal(1) / x, Decimal(1) / x, 1
        while abs(power) > Decimal(10) ** -(_DIGITS + 5):
            power /= -x * x
            n += 2
            total += power / n
        return total

    return 4 * (4 * arctan_of_inverse(5) - arctan_of_inverse(239))


# -- the mechanism: rows in, noisy rows out ---------------------------------------------------------------------------


# A larger mu would need a table with fewer than 42 steps to a standard deviation; noise is then more than asked for.
_LARGEST_MU = 768.0
# A sum over eight tables reaches far beyond the greatest scale that is allowed.
_MOST_LEVELS = 8

# All in all, n noisy entries from one table lose 2 n ETA of epsilon, and 2 n ETA + n TAU / delta of delta as a share of
# it, beyond what their mu says. By the derivatives of the profile a relative growth c of mu pays for this if
# c >= 2 n ETA R / mu + 2 n ETA + n TAU / delta, where R <= 2 / mu is a Mills ratio. Since k releases of D features have
# n = k D and mu**2 = k mu_1**2, with D / mu_1**2 <= 144**2 on a table, it does for 2**32 entries at a delta of 1e-9.
_MU_RESERVE = 2.0**-24


@dataclass(frozen=True)
class GaussianMechanism(RowNoise):
    """Normalised rows plus rounded Gaussian noise; made by :func:`gaussian_mechanism`.

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
    epsilon, delta : float
        The worst-case loss of one release, and the probability with which it may be exceeded.
    mu : float
        What to compose several releases by: slightly more than the largest sensitivity over noise scale that
        (epsilon, delta) allows, so that it pays for the errors of the tables in every release.
    noise : GaussianNoise or None
        The integer noise.
    sampling_error : float
        Bound on the total variation between the noise of a row and that of ``mu``, where sums of tables are used.

    Examples
    --------
    >>> from skfairdp.mechanisms import gaussian_mechanism
    >>> receipt = gaussian_mechanism(8.0, 1e-5, 64).guarantee()
    >>> receipt.epsilon, receipt.delta
    (8.0, 1e-05)
    """

    epsilon: float
    delta: float
    mu: float
    noise: GaussianNoise | None
    sampling_error: float = 0.0
    name = "gaussian"

    @cached_property
    def event(self) -> ReleaseEvent:
        """A Gaussian with ``mu``, and the (epsilon, delta) that is proved for it."""
        if self.noise is None:
            return ReleaseEvent(math.inf)
        return ReleaseEvent(self.epsilon, self.delta, gaussian_mu=self.mu, sampling_error=self.sampling_error)

    @property
    def noise_scale(self) -> float:
        """Standard deviation of the noise in the units of the output."""
        return 0.0 if self.noise is None else self.noise.scale * self.unit

    @property
    def sensitivity(self) -> float:
        """The largest L2 distance between two normalised rows."""
        return l2_sensitivity(self.norm, self.n_features, self.clip_norm)

    def _fill(self, out: np.ndarray, stream: RandomStream) -> None:
        assert self.noise is not None
        self.noise.fill(out, stream)

    def _log_density(self, noise: np.ndarray) -> np.ndarray:
        return -np.square(noise).sum(axis=1) / (2 * self.noise_scale**2)


def gaussian_mechanism(epsilon: float, delta: float, n_features: int, *, clip_norm: float = 1.0) -> GaussianMechanism:
    """Make a Gaussian mechanism: choose grid and noise for an epsilon and a delta, and check every argument.

    Parameters
    ----------
    epsilon : float
        Greater than 0; ``inf`` means no noise.
    delta : float
        In (0, 1).
    n_features : int
        The number of columns.
    clip_norm : float, default=1.0
        The L2 radius of the normalised rows.

    Returns
    -------
    GaussianMechanism

    Examples
    --------
    >>> from skfairdp.mechanisms import gaussian_mechanism
    >>> round(gaussian_mechanism(8.0, 1e-5, 64).noise_scale, 2)  # 0.600229 times the sensitivity 2
    1.2
    """
    epsilon, delta, radius = check_epsilon(epsilon), check_delta(delta), check_clip_norm(clip_norm)
    if math.isinf(epsilon):
        return GaussianMechanism("l2", n_features, radius, 0, 0.0, math.inf, 0.0, math.inf, None)
    # A grid this fine loses less than one part in a hundred to the rounding of rows.
    enough = max(512, math.ceil(8 * math.sqrt(n_features)))
    grid, noise = _plan_table(epsilon, delta, n_features)
    if grid < enough:
        grid, noise = _plan_sum(epsilon, delta, n_features, enough)
    unit = radius / inner_radius(grid, n_features)
    mu = gaussian_mu(epsilon, delta) * (1 + _MU_RESERVE)
    sampling_error = n_features * noise.levels * TOTAL_VARIATION if noise.levels > 1 else 0.0
    return GaussianMechanism("l2", n_features, radius, grid, unit, epsilon, delta, mu, noise, sampling_error)


def gaussian_release(
    X: Any, *, epsilon: float, delta: float, clip_norm: float = 1.0, stream: RandomStream
) -> np.ndarray:
    """Normalise each row in L2 and add Gaussian noise, independent for every entry.

    Parameters
    ----------
    X : ndarray or sparse CSR matrix of shape (n_samples, n_features)
        The rows. One with a nan or an infinity is treated as the zero vector.
    epsilon : float
        Greater than 0; ``inf`` returns the normalised rows as they are.
    delta : float
        In (0, 1).
    clip_norm : float, default=1.0
        The L2 norm that every row is given.
    stream : RandomStream
        Where the random bits come from.

    Returns
    -------
    ndarray of shape (n_samples, n_features), float64

    Notes
    -----
    **Privacy.** One release is (epsilon, delta)-DP for any two rows, the rounding to the grid and the error
    of the noise tables included. Running time is not covered.

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp.random import random_stream
    >>> from skfairdp.mechanisms import gaussian_release
    >>> X = np.tile([3.0, -4.0], (20000, 1))
    >>> gaussian_release(X, epsilon=8.0, delta=1e-5, stream=random_stream(0)).mean(axis=0).round(1)
    array([ 0.6, -0.8])
    """
    _, n_features = shape_of(X)
    return gaussian_mechanism(epsilon, delta, n_features, clip_norm=clip_norm).release(X, stream)


def _plan_table(epsilon: float, delta: float, n_features: int) -> tuple[int, GaussianNoise]:
    """Use one table: neighbours must lie within its reach, 11 standard deviations left over."""
    spare_epsilon = epsilon - 3 * n_features * ETA
    spare_delta = delta * (1 - 4 * n_features * ETA) - n_features * TAU
    if spare_epsilon <= 0 or spare_delta <= 0:
        raise ValueError(
            f"epsilon must be above {3 * n_features * ETA:.2g} and delta above {n_features * TAU:.2g} for {n_features} "
            f"features; got epsilon={epsilon!r}, delta={delta!r}."
        )
    mu = min(gaussian_mu(spare_epsilon, spare_delta), _LARGEST_MU)
    table_scale, most = TABLE_SCALE, 3.0
    while mu > most:  # few different tables, so that they are made once
        most *= 2
        table_scale = float(math.floor(TABLE_REACH / (11 + most)))
    return _grid_radius(table_scale, mu), GaussianNoise(table_scale)


def _plan_sum(epsilon: float, delta: float, n_features: int, enough: int) -> tuple[int, GaussianNoise]:
    """Add levels until the noise is wide enough for a fine grid; the tables' total variation comes off delta."""
    log_slack = math.log1p(math.exp(-epsilon)) + epsilon + math.log(n_features * _MOST_LEVELS * TOTAL_VARIATION)
    if log_slack > math.log(delta) - 1:
        raise ValueError(
            f"{n_features} features are too many for delta={delta!r} at epsilon={epsilon!r}; "
            "reduce the number of features or raise delta."
        )
    mu = gaussian_mu(epsilon, delta - math.exp(log_slack))
    scale = 2 * enough / mu * (1 + 1e-9)
    if scale > GREATEST_SCALE:
        raise ValueError(
            f"epsilon={epsilon!r} and delta={delta!r} need noise {1 / mu:.2g} times as large as the rows; "
            "raise epsilon or delta."
        )
    noise = GaussianNoise.at_least(scale)
    return _grid_radius(noise.scale, mu), noise


def _grid_radius(scale: float, mu: float) -> int:
    """Round the grid radius down, so that ``2 N / scale`` does not exceed mu."""
    return math.floor(scale * mu / 2 * (1 - 2.0**-46))
