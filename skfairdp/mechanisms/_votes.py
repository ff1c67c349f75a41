r"""Noise on vote counts, and what may be done with the noisy counts afterwards.

One teacher that changes its vote moves two counts by one: :math:`\sqrt 2` in L2. Counts are integers, so on a grid of
:math:`1/N` the noise is an integer too (see ``_gaussian``), and m noisy count vectors together are one Gaussian
mechanism with :math:`\mu = \sqrt{2m} / \sigma`, up to the error bounds of the noise tables, for which
:func:`vote_slack` says what to take off an (epsilon, delta) beforehand.

The noisy majority of two classes needs no noise on counts at all: it is the first class with probability
:math:`\Phi(d / (\sqrt 2 \sigma))` for the margin d, and is drawn as that by :func:`binary_labels`. This matters where
it is priced below the counts: labels from noise on a grid have ties, whose probabilities are not those of the proof.
"""

import math
from functools import cache
from typing import Any

import numpy as np
from scipy.special import log_ndtr, logsumexp, ndtr

from skfairdp._rng import RandomStream
from skfairdp._validation import check_votes
from skfairdp.mechanisms._gaussian import (
    ETA,
    TABLE_SCALE,
    TAU,
    TOTAL_VARIATION,
    GaussianNoise,
    rounded_gaussian,
    spread,
)

POSTPROCESSES = ("affine", "simplex", "clip", "none")

# The table reaches 7,423 steps beyond eleven standard deviations; neighbouring counts are one vote, N steps, apart.
_FINEST = 4096
LEAST_NOISE_SCALE, GREATEST_NOISE_SCALE = 0.01, 2.0**24

# Sums over the one table that every scale can share: the grid has 2**20 steps or more to a vote.
_FACTOR, _STEPS = 128, 2**20

# A vote is overturned with at least this probability, so that 64 random bits resolve both outcomes to 1 part in 2**43.
_LEAST_FLIP = 2.0**-20
_BINARY_ERROR = 2.0**-41


def noisy_votes(votes: np.ndarray, noise_scale: float, stream: RandomStream, *, one_table: bool = False) -> np.ndarray:
    """Add independent Gaussian noise to every vote count.

    Parameters
    ----------
    votes : ndarray of shape (n_samples, n_classes)
        Whole numbers.
    noise_scale : float
        Standard deviation; 0 returns the counts, else at least 0.01. The noise is never less, and by at most one
        part in a million more.
    stream : RandomStream
        Where the random bits come from.
    one_table : bool, default=False
        Draw from a table made for this scale, which takes most of a second, instead of sums over a table that all
        scales share. For an epsilon above about 60, where the slack of sums is too large.

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
    counts, sigma = check_votes(votes, whole=True), _check_noise_scale(noise_scale)
    if sigma == 0:
        return counts
    if one_table:
        grid = _grid(sigma)
        return (counts * grid + rounded_gaussian(counts.shape, sigma * grid, stream)) / grid
    noise = _shared_noise(sigma)
    grid = math.floor(noise.scale / sigma)
    drawn = np.empty(counts.size, dtype=np.int64)
    noise.fill(drawn, stream)
    return (counts.astype(np.int64) * grid + drawn.reshape(counts.shape)) / grid


def binary_labels(votes: np.ndarray, noise_scale: float, stream: RandomStream) -> np.ndarray:
    r"""Draw the noisy majority of two classes: the first with probability :math:`\Phi((n_0 - n_1)/(\sqrt 2\sigma))`.

    Parameters
    ----------
    votes : ndarray of shape (n_samples, 2)
        Whole numbers.
    noise_scale : float
        Standard deviation of the noise that each count would have; 0 returns the majority, the first class for a tie.
    stream : RandomStream
        Where the random bits come from.

    Returns
    -------
    ndarray of shape (n_samples,), int

    Notes
    -----
    **Privacy.** The distribution is that of the larger of two noisy counts, so that its Renyi divergence between
    neighbouring counts is known exactly. Probabilities below 2**-20 are raised to it, which brings neighbours closer
    together and so costs nothing. Each label's probabilities have a relative error of at most 2**-42, which
    adds ``n_samples * 2**-41`` to epsilon.

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp._rng import random_stream
    >>> from skfairdp.mechanisms import binary_labels
    >>> float(binary_labels(np.tile([90, 60], (100000, 1)), 50.0, random_stream(0)).mean().round(1))  # 0.336
    0.3
    """
    counts, sigma = check_votes(votes, whole=True), _check_noise_scale(noise_scale)
    if counts.shape[1] != 2:
        raise ValueError(f"votes must have two classes; got {counts.shape[1]}.")
    margin = counts[:, 0] - counts[:, 1]
    winner = (margin < 0).astype(np.intp)
    if sigma == 0:
        return winner
    # The smaller of the two probabilities, because a float near 1 has no digits left for what is missing to 1.
    flip = np.maximum(ndtr(-np.abs(margin) / (math.sqrt(2) * sigma)), _LEAST_FLIP)
    limit = np.floor(flip * 2.0**64).astype(np.uint64)
    return winner ^ (stream.uint64(len(counts)) < limit)


def binary_slack(n_labels: int) -> float:
    """Return what the rounding of :func:`binary_labels` adds to epsilon, and to delta as a share of it.

    Parameters
    ----------
    n_labels : int
        How many labels are drawn.

    Returns
    -------
    float

    Examples
    --------
    >>> from skfairdp.mechanisms import binary_slack
    >>> binary_slack(200) < 1e-10
    True
    """
    return n_labels * _BINARY_ERROR


def vote_slack(n_values: int, noise_scale: float, epsilon: float, *, one_table: bool = False) -> tuple[float, float]:
    """Compute what the rounding of the noise tables adds to the (epsilon, delta) of the continuous mechanism.

    Parameters
    ----------
    n_values : int
        How many noisy counts are released in all.
    noise_scale : float
        Standard deviation of the noise on a count.
    epsilon : float
        The epsilon of the continuous mechanism.
    one_table : bool, default=False
        As in :func:`noisy_votes`.

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
    if one_table and noise_scale * _grid(noise_scale) <= TABLE_SCALE:
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


def answer_log_probabilities(votes: np.ndarray, noise_scale: float) -> np.ndarray:
    r"""Compute the log probability that each class has the largest noisy count.

    With :math:`\sigma` on every count, class a wins with probability
    :math:`\int \varphi(z) \prod_{j \ne a} \Phi(z + (n_a - n_j)/\sigma) dz`, by Gauss-Hermite quadrature.

    Parameters
    ----------
    votes : ndarray of shape (n_samples, n_classes)
        Counts.
    noise_scale : float
        Standard deviation; 0 makes the first of the largest classes certain.

    Returns
    -------
    ndarray of shape (n_samples, n_classes)

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp.mechanisms import answer_log_probabilities
    >>> float(np.exp(answer_log_probabilities(np.array([[150, 0, 0]]), 50.0))[0, 0].round(6))  # 1 - 0.031205
    0.968795
    """
    counts = np.asarray(votes, dtype=float)
    n_classes = counts.shape[1]
    if noise_scale == 0:
        return np.where(np.arange(n_classes) == counts.argmax(axis=1)[:, None], 0.0, -np.inf)
    if n_classes == 2:
        lead = (counts - counts[:, ::-1]) / (math.sqrt(2) * noise_scale)
        return log_ndtr(lead)
    nodes, weights = normal_quadrature()
    found = np.empty(counts.shape)
    for a in range(n_classes):
        leads = (counts[:, a : a + 1] - np.delete(counts, a, axis=1)) / noise_scale
        found[:, a] = logsumexp(log_ndtr(leads[:, :, None] + nodes).sum(axis=1), b=weights, axis=1)
    return found


@cache
def normal_quadrature() -> tuple[np.ndarray, np.ndarray]:
    """Return 128 nodes and weights for expectations over a standard normal variable."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(128)
    return nodes, weights / math.sqrt(2 * math.pi)


def _check_noise_scale(noise_scale: float) -> float:
    sigma = float(noise_scale)
    if sigma != 0 and not LEAST_NOISE_SCALE <= sigma <= GREATEST_NOISE_SCALE:
        raise ValueError(
            f"noise_scale must be 0 or a finite number from {LEAST_NOISE_SCALE:g} to {GREATEST_NOISE_SCALE:g}; "
            f"got {noise_scale!r}."
        )
    return sigma


def _shared_noise(noise_scale: float) -> GaussianNoise:
    """Return the least sum over the largest table that gives a fine grid; one table serves every noise scale."""
    levels = 2
    while TABLE_SCALE * spread(_FACTOR, levels) < _STEPS * noise_scale:
        levels += 1
    return GaussianNoise(TABLE_SCALE, _FACTOR, levels)


def _grid(noise_scale: float) -> int:
    """Return the power of two N that makes ``N * noise_scale`` as large as one noise table allows."""
    return int(min(_FINEST, 2 ** max(0, math.floor(math.log2(TABLE_SCALE / noise_scale)))))
