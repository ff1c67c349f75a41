r"""Normalise and add Laplace noise: a release of any epsilon, exact in the arithmetic that computes it.

A row becomes integers :math:`Z` whose L1 sensitivity is :math:`\Delta N` in integers, discrete Laplace noise of scale
:math:`s = \Delta N / \varepsilon` is added, and the sum is multiplied by ``clip_norm / N``, which is
post-processing. The grid ``N`` is the least power of two for which :math:`s \ge 512`: rounding to the grid then
adds less than one part in a million to the variance of the noise.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from skfairdp._validation import check_epsilon
from skfairdp.accounting import PrivacyGuarantee, ReleaseEvent
from skfairdp.mechanisms._laplace import GREATEST_SCALE, laplace_noise, laplace_scale
from skfairdp.mechanisms._normalise import (
    FINEST_GRID,
    check_clip_norm,
    check_norm,
    inner_radius,
    l1_sensitivity,
    shape_of,
)
from skfairdp.mechanisms._row_noise import NoiseSource, RowNoise
from skfairdp.random import RandomStream, SeedIdentity

CALIBRATIONS = ("exact", "published")
_LEAST_GRID_SCALE = 512


@dataclass(frozen=True)
class LaplaceMechanism(RowNoise):
    """Normalised rows plus discrete Laplace noise; made by :func:`laplace_mechanism`.

    Attributes
    ----------
    epsilon : float
        The exact worst-case loss of one release.
    published_epsilon : float or None
        What a paper claims for this noise, where that is less.
    scale : float
        The scale of the integer noise.
    """

    epsilon: float
    published_epsilon: float | None
    scale: float
    name = "laplace"

    @property
    def event(self) -> ReleaseEvent:
        """A pure loss of epsilon."""
        return ReleaseEvent(self.epsilon)

    def guarantee(self, *, seed: SeedIdentity | None = None, **words: Any) -> PrivacyGuarantee:
        """Write the receipt, with the published epsilon beside the exact one."""
        return super().guarantee(seed=seed, **{"published_epsilon": self.published_epsilon, **words})

    @property
    def noise_scale(self) -> float:
        """Scale of the noise in the units of the output."""
        return self.scale * self.unit

    @property
    def sensitivity(self) -> float:
        """The largest L1 distance between two normalised rows."""
        return l1_sensitivity(self.norm, self.n_features, self.clip_norm)

    def _source(self) -> NoiseSource:
        return laplace_noise(self.scale)

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
    """Choose grid and noise scale; the guard on every argument stands here.

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
    if calibration not in CALIBRATIONS:
        raise ValueError(f"calibration must be one of {CALIBRATIONS}; got {calibration!r}.")
    if calibration == "published":
        epsilon = exact_laplace_epsilon(norm, n_features, epsilon)
    sensitivity = l1_sensitivity(norm, n_features)
    published = claimed if epsilon != claimed else None
    if math.isinf(epsilon):
        return LaplaceMechanism(norm, n_features, radius, 0, 0.0, epsilon, published, 0.0)
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
    return LaplaceMechanism(norm, n_features, radius, grid, unit, epsilon, published, scale)


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
