r"""What the votes of PATE cost when the teachers agree: bounds that look at the votes.

If nearly all teachers agree, the noisy argmax hardly ever changes, and the privacy loss on *these* votes is
far below the worst case (Papernot et al., 2018, Theorem 6). The number so found depends on private data: it is
a diagnostic, and publishing it is a release of its own.
"""

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr, logsumexp

from skfairdp._validation import check_votes
from skfairdp.accounting._gnmax import _check_scale
from skfairdp.accounting._renyi import DEFAULT_ORDERS, check_orders, renyi_epsilon

_BLOCK = 1 << 20  # queries times orders that are held at once


def gnmax_data_dependent_rdp(votes: ArrayLike, noise_scale: float, orders: ArrayLike = DEFAULT_ORDERS) -> np.ndarray:
    """Compute the Renyi divergence of hard labels on these votes, all queries together.

    Parameters
    ----------
    votes : array-like of shape (n_queries, n_classes)
        The counts of each query before noise.
    noise_scale : float
        Standard deviation of the noise on each count.
    orders : array-like
        Renyi orders, all above 1.

    Returns
    -------
    ndarray of the shape of ``orders``
        Never more than ``n_queries * order / noise_scale**2``.

    Notes
    -----
    **Privacy.** The result is computed from private votes and is itself private. It bounds the divergence from
    these votes to those of a neighbour, for hard labels only: soft labels have no such gap.

    References
    ----------
    Papernot et al., "Scalable private learning with PATE", 2018, Theorem 6 and Proposition 7.

    Examples
    --------
    >>> from skfairdp.accounting import gnmax_data_dependent_rdp
    >>> rdp = gnmax_data_dependent_rdp([[150, 0], [80, 70]], 20.0, [10.0])
    >>> bool(rdp < 2 * 10.0 / 20.0**2)  # only the first query is clear enough to cost less
    True
    """
    orders, noise_scale = check_orders(orders), _check_scale("noise_scale", noise_scale)
    return _summed(_log_miss(check_votes(votes, least_classes=2), noise_scale), noise_scale, orders)


def gnmax_data_dependent_epsilon(
    votes: ArrayLike, noise_scale: float, delta: float, orders: ArrayLike = DEFAULT_ORDERS
) -> float:
    """Compute the epsilon of hard labels on these votes, a diagnostic that must not be published.

    Parameters
    ----------
    votes : array-like of shape (n_queries, n_classes)
        The counts of each query before noise.
    noise_scale : float
        Standard deviation of the noise on each count.
    delta : float
        In (0, 1).
    orders : array-like
        Renyi orders, all above 1.

    Returns
    -------
    float

    Examples
    --------
    150 teachers that agree on 200 queries, where the worst case is 4.377:

    >>> from skfairdp.accounting import gnmax_data_dependent_epsilon
    >>> round(gnmax_data_dependent_epsilon([[150, 0]] * 200, 20.0, 1e-5), 3)
    0.294
    """
    return renyi_epsilon(gnmax_data_dependent_rdp(votes, noise_scale, orders), delta, orders)


def confident_gnmax_data_dependent_rdp(
    votes: ArrayLike,
    answered: ArrayLike,
    threshold: float,
    threshold_scale: float,
    noise_scale: float,
    orders: ArrayLike = DEFAULT_ORDERS,
) -> np.ndarray:
    """Compute the Renyi divergence of Confident-GNMax on these votes, all queries together.

    Parameters
    ----------
    votes : array-like of shape (n_asked, n_classes)
        The counts of each query that was compared with the threshold.
    answered : array-like of bool of shape (n_asked,)
        Which queries passed and were answered.
    threshold : float
        What the noisy largest count had to reach.
    threshold_scale, noise_scale : float
        Standard deviations of the noise on the largest count and on the counts.
    orders : array-like
        Renyi orders, all above 1.

    Returns
    -------
    ndarray of the shape of ``orders``

    Notes
    -----
    **Privacy.** The result is computed from private votes and is itself private. The comparison has two
    outcomes, of which the likely one is taken for the majority of Theorem 6; its noise acts on one count that moves
    by 1, which is worth ``sqrt(2) * threshold_scale`` on a vector of counts.

    Examples
    --------
    Two queries were asked and one was answered; the worst case costs 0.036:

    >>> from skfairdp.accounting import confident_gnmax_data_dependent_rdp
    >>> votes, answered = [[150, 0], [80, 70]], [True, False]
    >>> confident_gnmax_data_dependent_rdp(votes, answered, 120.0, 30.0, 20.0, [10.0]).round(3)
    array([0.011])
    """
    orders, noise_scale = check_orders(orders), _check_scale("noise_scale", noise_scale)
    threshold_scale = _check_scale("threshold_scale", threshold_scale)
    counts = check_votes(votes, least_classes=2)
    passed = np.asarray(answered)
    if passed.dtype != bool or passed.shape != (len(counts),):
        raise ValueError(f"answered must hold one bool for each of {len(counts)} queries; got {answered!r}.")
    if threshold_scale == 0:
        return np.full_like(orders, math.inf) if len(counts) else np.zeros_like(orders)
    above = (counts.max(axis=1) - threshold) / threshold_scale
    asking = _summed(np.minimum(log_ndtr(above), log_ndtr(-above)), math.sqrt(2) * threshold_scale, orders)
    return asking + _summed(_log_miss(counts[passed], noise_scale), noise_scale, orders)


def _log_miss(counts: np.ndarray, noise_scale: float) -> np.ndarray:
    """Bound the log probability that noise overturns the majority, by a union over the other classes."""
    if noise_scale == 0 or len(counts) == 0:
        return np.full(len(counts), -math.inf)
    winner = counts.argmax(axis=1)
    rows = np.arange(len(counts))
    tails = log_ndtr((counts - counts[rows, winner][:, None]) / (math.sqrt(2) * noise_scale))
    tails[rows, winner] = -math.inf
    return np.minimum(logsumexp(tails, axis=1), math.log1p(-1 / counts.shape[1]))


def _summed(log_q: np.ndarray, noise_scale: float, orders: np.ndarray) -> np.ndarray:
    """Sum the bound over all queries; equal queries are computed once."""
    if noise_scale == 0:
        return np.full_like(orders, math.inf) if len(log_q) else np.zeros_like(orders)
    distinct, times = np.unique(log_q, return_counts=True)
    usable = _applies(distinct, noise_scale)
    total = float(times[~usable].sum()) * orders.ravel() / noise_scale**2
    distinct, times = distinct[usable], times[usable]
    step = max(_BLOCK // orders.size, 1)
    for start in range(0, len(distinct), step):
        block = slice(start, start + step)
        total += times[block] @ _gap_rdp(distinct[block], noise_scale, orders.ravel())
    return total.reshape(orders.shape)


def _applies(log_q: np.ndarray, noise_scale: float) -> np.ndarray:
    """Check the conditions of Theorem 6 that do not depend on the order."""
    with np.errstate(all="ignore"):  # a nan fails its comparison, as it should
        mu2 = noise_scale * np.sqrt(-log_q)
        mu1, e2 = mu2 + 1, mu2 / noise_scale**2
        limit = (mu2 - 1) * e2 - mu2 * (np.log1p(1 / (mu1 - 1)) + np.log1p(1 / (mu2 - 1)))
        return np.isfinite(log_q) & (mu2 > 1) & (-log_q > e2) & (log_q <= limit)


def _gap_rdp(log_q: np.ndarray, noise_scale: float, orders: np.ndarray) -> np.ndarray:
    """Apply Theorem 6 to releases of divergence ``order / noise_scale**2`` that miss with probability q."""
    mu2 = noise_scale * np.sqrt(-log_q)
    mu1 = mu2 + 1
    e1, e2 = mu1 / noise_scale**2, mu2 / noise_scale**2
    log_keep = np.log1p(-np.exp(log_q))
    log_a = log_keep - np.log1p(-np.exp((log_q + e2) * (mu2 - 1) / mu2))
    log_b = e1 - log_q / (mu1 - 1)
    power = orders[None, :] - 1
    first = log_keep[:, None] + power * log_a[:, None]
    second = log_q[:, None] + power * log_b[:, None]
    bound = np.maximum(np.logaddexp(first, second), 0.0) / power
    plain = orders / noise_scale**2
    return np.where(orders < mu1[:, None], np.minimum(bound, plain), plain)
