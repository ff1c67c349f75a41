r"""Noise on vote counts, and what may be done with the noisy counts afterwards.

One teacher that changes its vote moves two counts by one: :math:`\sqrt 2` in L2. Counts are integers, so on a grid of
:math:`1/N` the noise is an integer too (see ``_gaussian``), and m noisy count vectors together are one Gaussian
mechanism with :math:`\mu = \sqrt{2m} / \sigma`, up to the error bounds of the noise tables, for which
:func:`vote_slack` says what to take off an (epsilon, delta) beforehand.
"""

import math
from typing import Any

import numpy as np

from skfairdp._rng import RandomStream
from skfairdp.mechanisms._gaussian import ETA, TABLE_SCALE, TAU, TOTAL_VARIATION, rounded_gaussian

POSTPROCESSES = ("affine", "simplex", "clip", "none")

# The table reaches 7,423 steps beyond eleven standard deviations; neighbouring counts are one vote, N steps, apart.
_FINEST = 4096
LEAST_NOISE_SCALE = 0.01


def noisy_votes(votes: np.ndarray, noise_scale: float, stream: RandomStream) -> np.ndarray:
    """Add independent Gaussian noise to every vote count.

    Parameters
    ----------
    votes : ndarray of shape (n_samples, n_classes)
        Whole numbers.
    noise_scale : float
        Standard deviation; 0 returns the counts, else at least 0.01.
    stream : RandomStream
        Where the random bits come from.

    Returns
    -------
    ndarray of shape (n_samples, n_classes), float64

    Notes
    -----
    **Privacy.** For counts that change by one vote between neighbouring data sets, n released rows are together a
    Gaussian mechanism with ``mu = sqrt(2 n) / noise_scale``; see :func:`vote_slack` for the rounding.

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp._rng import random_stream
    >>> from skfairdp.mechanisms import noisy_votes
    >>> noisy = noisy_votes(np.tile([100, 50], (10000, 1)), 20.0, random_stream(0))
    >>> noisy.mean(axis=0).round(), noisy.std(axis=0).round()
    (array([100.,  50.]), array([20., 20.]))
    """
    counts = np.asarray(votes, dtype=float)
    if counts.ndim != 2 or not np.array_equal(counts, np.rint(counts)):
        raise ValueError("votes must have shape (n_samples, n_classes) and hold whole numbers.")
    sigma = float(noise_scale)
    if sigma == 0:
        return counts
    if not LEAST_NOISE_SCALE <= sigma < math.inf:
        raise ValueError(f"noise_scale must be 0 or a finite number from {LEAST_NOISE_SCALE:g} on; got {noise_scale!r}.")
    grid = _grid(sigma)
    return (counts * grid + rounded_gaussian(counts.shape, sigma * grid, stream)) / grid


def vote_slack(n_values: int, noise_scale: float, epsilon: float) -> tuple[float, float]:
    """Compute what the rounding of the noise tables adds to the (epsilon, delta) of the continuous mechanism.

    Parameters
    ----------
    n_values : int
        How many noisy counts are released in all.
    noise_scale : float
        Standard deviation of the noise on a count.
    epsilon : float
        The epsilon of the continuous mechanism.

    Returns
    -------
    epsilon, delta : float
        Add them. Both are far below anything that matters, and are counted all the same.

    Examples
    --------
    >>> from skfairdp.mechanisms import vote_slack
    >>> epsilon, delta = vote_slack(400, 50.0, 1.0)
    >>> epsilon < 1e-14, delta < 1e-14
    (True, True)
    """
    if noise_scale == 0:
        return 0.0, 0.0
    if noise_scale * _grid(noise_scale) <= TABLE_SCALE:
        return 2.02 * n_values * ETA, n_values * (TAU + 2 * ETA)
    draws_per_value = 8  # levels of a sum, at most
    return 0.0, n_values * draws_per_value * TOTAL_VARIATION * (1 + math.exp(min(epsilon, 700.0)))


def hard_labels(noisy: np.ndarray) -> np.ndarray:
    """Return the winning class of each row: GNMax.

    Parameters
    ----------
    noisy : ndarray of shape (n_samples, n_classes)
        Noisy counts.

    Returns
    -------
    ndarray of shape (n_samples,), int
        The first of tied classes.

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp.mechanisms import hard_labels
    >>> hard_labels(np.array([[3.0, 7.0]]))
    array([1])
    """
    return np.asarray(noisy).argmax(axis=-1)


def soft_labels(noisy: Any, n_teachers: int, postprocess: str = "affine") -> np.ndarray:
    """Turn noisy counts into soft labels.

    Parameters
    ----------
    noisy : ndarray of shape (..., n_classes)
        Noisy counts.
    n_teachers : int
        Number of teachers.
    postprocess : {"affine", "simplex", "clip", "none"}
        ``"none"``: counts over teachers as printed in Definition 5 of the PATE fairness paper; they may be negative and
        need not sum to one. ``"affine"``: moved by one constant per row, so that they sum to one and the noise keeps
        mean zero; the student's loss is then convex. ``"simplex"``: the nearest probabilities. ``"clip"``: the affine
        ones cut to [-0.25, 1.25] and moved again to sum to one.

    Returns
    -------
    ndarray of shape (..., n_classes)

    Notes
    -----
    **Privacy.** Post-processing: no choice here costs anything.

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp.mechanisms import soft_labels
    >>> noisy = np.array([[120.0, -10.0]])
    >>> soft_labels(noisy, 100, "none"), soft_labels(noisy, 100, "affine"), soft_labels(noisy, 100, "simplex")
    (array([[ 1.2, -0.1]]), array([[ 1.15, -0.15]]), array([[1., 0.]]))
    """
    if postprocess not in POSTPROCESSES:
        raise ValueError(f"postprocess must be one of {POSTPROCESSES}; got {postprocess!r}.")
    shares = np.asarray(noisy, dtype=float) / n_teachers
    if postprocess == "none":
        return shares
    if postprocess == "simplex":
        return _nearest_probabilities(shares)
    shares = _recentre(shares)
    return shares if postprocess == "affine" else _recentre(np.clip(shares, -0.25, 1.25))


def _recentre(shares: np.ndarray) -> np.ndarray:
    return shares + (1 - shares.sum(axis=-1, keepdims=True)) / shares.shape[-1]


def _nearest_probabilities(shares: np.ndarray) -> np.ndarray:
    """Project onto the simplex: subtract one number from all, and cut at zero."""
    falling = -np.sort(-shares, axis=-1)
    excess = np.cumsum(falling, axis=-1) - 1
    ranks = np.arange(1, shares.shape[-1] + 1)
    kept = (falling * ranks > excess).sum(axis=-1, keepdims=True)
    return np.maximum(shares - np.take_along_axis(excess, kept - 1, axis=-1) / kept, 0.0)


def _grid(noise_scale: float) -> int:
    """Return the power of two N that makes ``N * noise_scale`` as large as one noise table allows."""
    return int(min(_FINEST, 2 ** max(0, math.floor(math.log2(TABLE_SCALE / noise_scale)))))
