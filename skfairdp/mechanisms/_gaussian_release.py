"""Normalise and add Gaussian noise: a rigorous (epsilon, delta) for what the code computes.

A row becomes integers in a ball of radius N (see ``_normalise``), rounded normal noise of scale
``sigma = 2 N / mu`` is added (see ``_gaussian``), and the sum is scaled back, which is post-processing. ``mu`` is the
largest that the analytic Gaussian mechanism (Balle and Wang 2018) allows at an epsilon and a delta from which the error
bounds of the noise tables have been taken off first.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from skfairdp._validation import check_delta, check_epsilon
from skfairdp.accounting import ReleaseEvent, gaussian_mu
from skfairdp.mechanisms._gaussian import (
    ETA,
    GREATEST_SCALE,
    TABLE_REACH,
    TABLE_SCALE,
    TAU,
    TOTAL_VARIATION,
    GaussianNoise,
)
from skfairdp.mechanisms._normalise import check_clip_norm, inner_radius, l2_sensitivity, shape_of
from skfairdp.mechanisms._row_noise import NoiseSource, RowNoise
from skfairdp.random import RandomStream

_LARGEST_MU = 768.0
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
    epsilon, delta : float
        The worst-case loss of one release, and the probability with which it may be exceeded.
    mu : float
        What to compose several releases by: slightly more than the largest sensitivity over noise scale that
        (epsilon, delta) allows, so that it pays for the errors of the tables in every release.
    noise : GaussianNoise or None
        The integer noise.
    sampling_error : float
        Bound on the total variation between the noise of a row and that of ``mu``, where sums of tables are used.
    """

    epsilon: float
    delta: float
    mu: float
    noise: GaussianNoise | None
    sampling_error: float = 0.0
    name = "gaussian"

    @property
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

    def _source(self) -> NoiseSource:
        assert self.noise is not None
        return self.noise

    def _log_density(self, noise: np.ndarray) -> np.ndarray:
        return -np.square(noise).sum(axis=1) / (2 * self.noise_scale**2)


def gaussian_mechanism(epsilon: float, delta: float, n_features: int, *, clip_norm: float = 1.0) -> GaussianMechanism:
    """Choose grid and noise; the guard on every argument stands here.

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
    return _radius(table_scale, mu), GaussianNoise(table_scale)


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
    return _radius(noise.scale, mu), noise


def _radius(scale: float, mu: float) -> int:
    """Round the grid radius down, so that ``2 N / scale`` does not exceed mu."""
    return math.floor(scale * mu / 2 * (1 - 2.0**-46))
