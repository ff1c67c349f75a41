r"""What the votes of PATE cost.

When one private record changes, one teacher changes its vote, and the vector of counts moves by
:math:`\sqrt 2` in the L2 norm. Noise :math:`N(0, \sigma^2)` on every count therefore is a Gaussian release with
:math:`\mu = \sqrt 2/\sigma`, and m of them, adaptively chosen, are one with
:math:`\mu = \sqrt{2m}/\sigma`: exact for soft labels, and an upper bound for the noisy argmax.

If nearly all teachers agree, the noisy argmax hardly ever changes, and the privacy loss on *these* votes is
far below the worst case (Papernot et al., 2018, Theorem 6). The functions named ``data_dependent`` compute that bound.
It depends on private data: it is a diagnostic, and publishing it is a release of its own.
"""

import math
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr, logsumexp

from skfairdp._validation import check_count, check_delta, check_votes
from skfairdp.dp._composition import ReleaseEvent
from skfairdp.dp._gaussian_accounting import gaussian_epsilon, gaussian_sigma
from skfairdp.dp._guarantee import PrivacyGuarantee
from skfairdp.dp._renyi_accounting import DEFAULT_ORDERS, check_orders, renyi_epsilon

# -- bounds that hold for all votes -----------------------------------------------------------------------------------


VOTE_SENSITIVITY = math.sqrt(2)
REPLACE_ONE = "two private data sets of the same size that differ in one record, which one teacher holds"
VOTES_COVER = "the private rows that the teachers were trained on; all answers, and any student trained on them"
VOTES_DO_NOT_COVER = (
    "the public rows that were asked about",
    "the number of records, and whether a table was refused as malformed (nan, infinity, unknown labels)",
    "anything that was fitted on the private rows together (scaling, feature selection, early stopping)",
    "a person with records in several teachers' parts, who pays for each of these teachers",
)


def gnmax_mu(n_queries: int, noise_scale: float, *, sensitivity: float = VOTE_SENSITIVITY) -> float:
    """Compute the ``mu`` of noisy vote counts: ``sensitivity * sqrt(n_queries) / noise_scale``.

    Parameters
    ----------
    n_queries : int
        How many vectors of counts are released.
    noise_scale : float
        Standard deviation of the noise on each count; 0 gives ``inf``.
    sensitivity : float, default=sqrt(2)
        How far one record can move the counts of one query in the L2 norm.

    Returns
    -------
    float

    Examples
    --------
    >>> from skfairdp.accounting import gnmax_mu
    >>> round(gnmax_mu(200, 50.0), 6)
    0.4
    """
    n_queries = check_count(n_queries, "n_queries", 0)
    noise_scale = _check_scale("noise_scale", noise_scale)
    if n_queries == 0:
        return 0.0
    return math.inf if noise_scale == 0 else sensitivity * math.sqrt(n_queries) / noise_scale


def gnmax_noise_scale(epsilon: float, delta: float, n_queries: int, *, sensitivity: float = VOTE_SENSITIVITY) -> float:
    """Compute the least noise on vote counts that keeps ``n_queries`` releases within (epsilon, delta).

    Parameters
    ----------
    epsilon : float
        Greater than 0; ``inf`` needs no noise.
    delta : float
        In (0, 1).
    n_queries : int
        How many vectors of counts are released.
    sensitivity : float, default=sqrt(2)
        How far one record can move the counts of one query in the L2 norm.

    Returns
    -------
    float
        The standard deviation of the noise on each count, never too small.

    Examples
    --------
    >>> from skfairdp.accounting import gnmax_noise_scale
    >>> round(gnmax_noise_scale(1.0, 1e-5, 200), 6)
    74.612633
    """
    n_queries = check_count(n_queries, "n_queries", 0)
    scale = gaussian_sigma(epsilon, delta, sensitivity * math.sqrt(max(n_queries, 1)))
    return scale if n_queries > 0 else 0.0


def gnmax_guarantee(
    n_queries: int,
    noise_scale: float,
    delta: float,
    *,
    labels: str = "soft",
    n_classes: int | None = None,
    n_teachers: int | None = None,
    neighbours: str = REPLACE_ONE,
) -> PrivacyGuarantee:
    """Price noisy votes exactly, without looking at the votes.

    Parameters
    ----------
    n_queries : int
        How many queries are answered.
    noise_scale : float
        Standard deviation of the noise on each count.
    delta : float
        In (0, 1).
    labels : {"soft", "hard"}, default="soft"
        Whether the noisy counts are released or only the class with the most.
    n_classes, n_teachers : int, optional
        With two classes and a known number of voting teachers, hard labels are cheaper than
        soft ones, and are priced by :func:`binary_vote_rdp` where that is less.
    neighbours : str
        The relation that the partition of the private rows supports.

    Returns
    -------
    PrivacyGuarantee

    Examples
    --------
    >>> from skfairdp.accounting import gnmax_guarantee
    >>> round(gnmax_guarantee(200, 50.0, 1e-5).epsilon, 6)
    1.554982
    >>> round(gnmax_guarantee(200, 50.0, 1e-5, labels="hard", n_classes=2, n_teachers=150).epsilon, 3)
    1.323
    """
    if labels not in ("soft", "hard"):
        raise ValueError(f"labels must be 'soft' or 'hard'; got {labels!r}.")
    mu, by_labels = gnmax_mu(n_queries, noise_scale), math.inf
    if labels == "hard" and n_classes == 2 and n_teachers is not None and 0 < mu < math.inf:
        by_labels = renyi_epsilon(n_queries * binary_vote_rdp(n_teachers, noise_scale), delta)
    return _vote_guarantee(mu, delta, labels, n_queries, neighbours, by_labels)


def confident_gnmax_mu(n_asked: int, n_answered: int, threshold_scale: float, noise_scale: float) -> float:
    r"""Compute the ``mu`` of Confident-GNMax: :math:`\sqrt{M/\sigma_1^2 + 2m/\sigma_2^2}`.

    Parameters
    ----------
    n_asked : int
        For how many queries the largest count, noised, was compared with the threshold; it moves by at most 1.
    n_answered : int
        The most queries that are answered. It must be a limit that is fixed beforehand and at which
        answering stops: how many pass the threshold depends on the private rows.
    threshold_scale, noise_scale : float
        Standard deviations of the noise on the largest count and on the counts.

    Returns
    -------
    float

    Examples
    --------
    >>> from skfairdp.accounting import confident_gnmax_mu
    >>> round(confident_gnmax_mu(1000, 200, 150.0, 40.0), 6)
    0.542627
    """
    n_asked, n_answered = check_count(n_asked, "n_asked", 0), check_count(n_answered, "n_answered", 0)
    if n_answered > n_asked:
        raise ValueError(f"n_answered must not exceed n_asked={n_asked}; got {n_answered!r}.")
    asking = gnmax_mu(n_asked, _check_scale("threshold_scale", threshold_scale), sensitivity=1.0)
    return math.hypot(asking, gnmax_mu(n_answered, noise_scale))


def confident_gnmax_guarantee(
    n_asked: int,
    n_answered: int,
    threshold_scale: float,
    noise_scale: float,
    delta: float,
    *,
    neighbours: str = REPLACE_ONE,
) -> PrivacyGuarantee:
    """Price Confident-GNMax exactly, without looking at the votes.

    Parameters
    ----------
    n_asked, n_answered, threshold_scale, noise_scale
        As in :func:`confident_gnmax_mu`.
    delta : float
        In (0, 1).
    neighbours : str
        The relation that the partition of the private rows supports.

    Returns
    -------
    PrivacyGuarantee

    Examples
    --------
    >>> from skfairdp.accounting import confident_gnmax_guarantee
    >>> round(confident_gnmax_guarantee(1000, 200, 150.0, 40.0, 1e-5).epsilon, 6)
    2.184069
    """
    mu = confident_gnmax_mu(n_asked, n_answered, threshold_scale, noise_scale)
    return _vote_guarantee(mu, delta, "confident", n_answered, neighbours)


def binary_vote_rdp(n_teachers: int, noise_scale: float, orders: ArrayLike = DEFAULT_ORDERS) -> np.ndarray:
    r"""Compute the Renyi divergence of one noisy majority of two classes, in the worst case over all votes.

    Parameters
    ----------
    n_teachers : int
        How many teachers vote; every teacher does.
    noise_scale : float
        Standard deviation of the noise on each count.
    orders : array-like
        Renyi orders, all above 1.

    Returns
    -------
    ndarray of the shape of ``orders``
        About 0.64 of the ``order / noise_scale**2`` that the counts themselves would cost.

    Notes
    -----
    The label depends on the margin d of the counts alone: it is the first class with probability
    :math:`\Phi(d/(\sqrt 2\sigma))`, and a neighbour's margin differs by at most 2. The bound is the maximum over all
    margins, even and odd, because teachers may abstain. It does not hold for more than two classes.

    Examples
    --------
    >>> from skfairdp.accounting import binary_vote_rdp
    >>> ratio = binary_vote_rdp(150, 50.0, [2.0]) / (2.0 / 50**2)
    >>> ratio.round(3)
    array([0.637])
    """
    orders = check_orders(orders)
    n_teachers = check_count(n_teachers, "n_teachers")
    noise_scale = _check_scale("noise_scale", noise_scale)
    if noise_scale == 0:
        return np.full_like(orders, math.inf)
    # d and d + 2 for every margin d; the opposite step is the same pair seen from the other class. Margins may be odd
    # or even, because a teacher abstains whose rows weigh nothing.
    margins = np.arange(-n_teachers, n_teachers - 1)
    t, u = (margins / (math.sqrt(2) * noise_scale), (margins + 2) / (math.sqrt(2) * noise_scale))
    powers = orders.reshape(-1, 1) - 1
    worst = np.zeros(orders.size)
    for here, there in ((t, u), (u, t)):
        first = log_ndtr(here) + powers * (log_ndtr(here) - log_ndtr(there))
        second = log_ndtr(-here) + powers * (log_ndtr(-here) - log_ndtr(-there))
        worst = np.maximum(worst, np.logaddexp(first, second).max(axis=1))
    return worst.reshape(orders.shape) / (orders - 1)


def _vote_guarantee(
    mu: float, delta: float, labels: str, releases: int, neighbours: str, by_labels: float = math.inf
) -> PrivacyGuarantee:
    """Write the receipt of noisy counts, whose labels may have a lesser epsilon."""
    epsilon = min(gaussian_epsilon(check_delta(delta), mu), by_labels)
    return PrivacyGuarantee.of(
        ReleaseEvent(epsilon, 0.0 if mu == 0 or math.isinf(mu) else delta, gaussian_mu=mu),
        mechanism=f"noisy votes, {labels} labels",
        neighbours=neighbours,
        releases=max(releases, 1),
        covers=VOTES_COVER,
        does_not_cover=VOTES_DO_NOT_COVER,
    )


def _check_scale(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= float(value) < math.inf:
        raise ValueError(f"{name} must be a finite number of at least 0; got {value!r}.")
    return float(value)


# -- bounds that look at the votes ------------------------------------------------------------------------------------


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
    return _rdp_summed_over_queries(_log_miss(check_votes(votes, least_classes=2), noise_scale), noise_scale, orders)


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
    asking = _rdp_summed_over_queries(
        np.minimum(log_ndtr(above), log_ndtr(-above)), math.sqrt(2) * threshold_scale, orders
    )
    return asking + _rdp_summed_over_queries(_log_miss(counts[passed], noise_scale), noise_scale, orders)


def _log_miss(counts: np.ndarray, noise_scale: float) -> np.ndarray:
    """Bound the log probability that noise overturns the majority, by a union over the other classes."""
    if noise_scale == 0 or len(counts) == 0:
        return np.full(len(counts), -math.inf)
    winner = counts.argmax(axis=1)
    rows = np.arange(len(counts))
    tails = log_ndtr((counts - counts[rows, winner][:, None]) / (math.sqrt(2) * noise_scale))
    tails[rows, winner] = -math.inf
    return np.minimum(logsumexp(tails, axis=1), math.log1p(-1 / counts.shape[1]))


def _rdp_summed_over_queries(log_q: np.ndarray, noise_scale: float, orders: np.ndarray) -> np.ndarray:
    """Sum the bound over all queries; equal queries are computed once."""
    if noise_scale == 0:
        return np.full_like(orders, math.inf) if len(log_q) else np.zeros_like(orders)
    distinct, times = np.unique(log_q, return_counts=True)
    usable = _theorem_6_applies(distinct, noise_scale)
    total = float(times[~usable].sum()) * orders.ravel() / noise_scale**2
    distinct, times = distinct[usable], times[usable]
    step = max(_BLOCK // orders.size, 1)
    for start in range(0, len(distinct), step):
        block = slice(start, start + step)
        total += times[block] @ _gap_rdp(distinct[block], noise_scale, orders.ravel())
    return total.reshape(orders.shape)


def _theorem_6_applies(log_q: np.ndarray, noise_scale: float) -> np.ndarray:
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
