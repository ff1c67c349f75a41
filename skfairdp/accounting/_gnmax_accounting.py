r"""What the votes of PATE cost.

When one private record changes, one teacher changes its vote, and the vector of counts moves by
:math:`\sqrt 2` in the L2 norm. Noise :math:`N(0, \sigma^2)` on every count therefore is a Gaussian release with
:math:`\mu = \sqrt 2/\sigma`, and m of them, adaptively chosen, are one with
:math:`\mu = \sqrt{2m}/\sigma`: exact for soft labels, and an upper bound for the noisy argmax.
"""

import math
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr

from skfairdp._validation import check_count, check_delta
from skfairdp.accounting._events import ReleaseEvent
from skfairdp.accounting._gaussian import gaussian_epsilon, gaussian_mu
from skfairdp.accounting._guarantee import PrivacyGuarantee
from skfairdp.accounting._renyi import DEFAULT_ORDERS, check_orders, renyi_epsilon

VOTE_SENSITIVITY = math.sqrt(2)
REPLACE_ONE = "two private data sets of the same size that differ in one record, which one teacher holds"
VOTES_COVER = "the private rows that the teachers were trained on; all answers, and any student trained on them"
VOTES_DO_NOT_COVER = (
    "the public rows that were asked about",
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
        At least 0; ``inf`` needs no noise.
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
    mu = gaussian_mu(epsilon, delta)
    if math.isinf(mu) or n_queries == 0:
        return 0.0
    scale = sensitivity * math.sqrt(n_queries) / mu
    while gnmax_mu(n_queries, scale, sensitivity=sensitivity) > mu:
        scale = math.nextafter(scale, math.inf)
    return scale


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
    mu = gnmax_mu(n_queries, noise_scale)
    delta = check_delta(delta)
    epsilon = gaussian_epsilon(delta, mu)
    if labels == "hard" and n_classes == 2 and n_teachers is not None and 0 < mu < math.inf:
        rdp = n_queries * binary_vote_rdp(n_teachers, noise_scale)
        epsilon = min(epsilon, renyi_epsilon(rdp, delta))
    return _vote_guarantee(epsilon, delta, mu, f"noisy votes, {labels} labels", n_queries, neighbours)


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
    delta = check_delta(delta)
    epsilon = gaussian_epsilon(delta, mu)
    return _vote_guarantee(epsilon, delta, mu, "noisy votes, confident labels", n_answered, neighbours)


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
    :math:`\Phi(d/(\sqrt 2\sigma))`, and a neighbour's margin differs by 2. The maximum over the n + 1 margins is
    therefore exact. It does not hold for more than two classes.

    Examples
    --------
    >>> from skfairdp.accounting import binary_vote_rdp
    >>> ratio = binary_vote_rdp(150, 50.0, [2.0]) / (2.0 / 50**2)
    >>> ratio.round(3)
    array([0.637])
    """
    orders = check_orders(orders)
    n_teachers = check_count(n_teachers, "n_teachers", 0)
    noise_scale = _check_scale("noise_scale", noise_scale)
    if n_teachers < 1:
        raise ValueError(f"n_teachers must be at least 1; got {n_teachers!r}.")
    if noise_scale == 0:
        return np.full_like(orders, math.inf)
    # d and d + 2 for every margin d; the opposite step is the same pair seen from the other class.
    margins = np.arange(-n_teachers, n_teachers - 1, 2)
    t, u = (margins / (math.sqrt(2) * noise_scale), (margins + 2) / (math.sqrt(2) * noise_scale))
    worst = np.full(orders.size, -math.inf)
    for p, p_neighbour, q, q_neighbour in ((t, u, -t, -u), (u, t, -u, -t)):
        ratio_p = log_ndtr(p) - log_ndtr(p_neighbour)
        ratio_q = log_ndtr(q) - log_ndtr(q_neighbour)
        powers = orders.reshape(-1, 1) - 1
        moments = np.logaddexp(log_ndtr(p) + powers * ratio_p, log_ndtr(q) + powers * ratio_q)
        worst = np.maximum(worst, moments.max(axis=1))
    return np.maximum(worst.reshape(orders.shape), 0.0) / (orders - 1)


def _vote_guarantee(
    epsilon: float, delta: float, mu: float, mechanism: str, releases: int, neighbours: str
) -> PrivacyGuarantee:
    return PrivacyGuarantee.of(
        ReleaseEvent(epsilon, 0.0 if mu == 0 or math.isinf(mu) else delta, gaussian_mu=mu),
        mechanism=mechanism,
        neighbours=neighbours,
        releases=max(releases, 1),
        covers=VOTES_COVER,
        does_not_cover=VOTES_DO_NOT_COVER,
    )


def _check_scale(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= float(value) < math.inf:
        raise ValueError(f"{name} must be a finite number of at least 0; got {value!r}.")
    return float(value)
