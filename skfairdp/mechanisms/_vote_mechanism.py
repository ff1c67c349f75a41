r"""Noisy votes: noise on vote counts, labels made of them, what they cost, and how much noise a price needs.

One teacher that changes its vote moves two counts by one: :math:`\sqrt 2` in L2. Counts are integers, so on a grid of
:math:`1/N` the noise is an integer too (:func:`rounded_gaussian`), and m noisy count vectors together are one Gaussian
mechanism with :math:`\mu = \sqrt{2m} / \sigma`, up to the error bounds of the noise tables, for which
:func:`vote_slack` says what to take off an (epsilon, delta) beforehand.

The noisy majority of two classes needs no noise on counts at all: it is the first class with probability
:math:`\Phi(d / (\sqrt 2 \sigma))` for the margin d, and is drawn as that by :func:`binary_labels`. This matters where
it is priced below the counts: labels from noise on a grid have ties, whose probabilities are not those of the proof.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from typing import Any

import numpy as np
from scipy.special import log_ndtr, logsumexp, ndtr

from skfairdp._validation import check_epsilon, check_option, check_votes
from skfairdp.dp import (
    DEFAULT_ORDERS,
    REPLACE_ONE,
    VOTES_COVER,
    VOTES_DO_NOT_COVER,
    Mechanism,
    PrivacyGuarantee,
    ReleaseEvent,
    binary_vote_rdp,
    confident_gnmax_mu,
    gaussian_epsilon,
    gaussian_mu,
    gnmax_mu,
    gnmax_noise_scale,
    renyi_epsilon,
    renyi_epsilons,
)
from skfairdp.mechanisms._gaussian_mechanism import (
    ETA,
    TABLE_SCALE,
    TAU,
    TOTAL_VARIATION,
    GaussianNoise,
    rounded_gaussian,
)
from skfairdp.random import RandomStream

# -- noisy counts, and labels made of them ----------------------------------------------------------------------------


POSTPROCESSES = ("affine", "simplex", "clip", "none")

# The table reaches 7,423 steps beyond eleven standard deviations; neighbouring counts are one vote, N steps, apart.
_FINEST = 4096
LEAST_NOISE_SCALE, GREATEST_NOISE_SCALE = 0.01, 2.0**24

# Of sums over the one table that every scale can share: the grid has so many steps to a vote, or more.
_STEPS_PER_VOTE = 2**20

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
    >>> from skfairdp.random import random_stream
    >>> from skfairdp.mechanisms import noisy_votes
    >>> noisy = noisy_votes(np.tile([100, 50], (10000, 1)), 20.0, random_stream(0))
    >>> noisy.mean(axis=0).round(), noisy.std(axis=0).round()
    (array([100.,  50.]), array([20., 20.]))
    """
    counts, sigma = check_votes(votes, whole=True), _check_scale("noise_scale", noise_scale)
    if sigma == 0:
        return counts
    if one_table:
        grid = _vote_grid(sigma)
        drawn = rounded_gaussian(counts.shape, sigma * grid, stream)
    else:
        noise = GaussianNoise.by_levels(_STEPS_PER_VOTE * sigma)
        grid = math.floor(noise.scale / sigma)
        drawn = np.empty(counts.shape, dtype=np.int64)
        noise.fill(drawn.reshape(-1), stream)
    return (counts.astype(np.int64) * grid + drawn) / grid


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
    >>> from skfairdp.random import random_stream
    >>> from skfairdp.mechanisms import binary_labels
    >>> float(binary_labels(np.tile([90, 60], (100000, 1)), 50.0, random_stream(0)).mean().round(1))  # 0.336
    0.3
    """
    counts, sigma = check_votes(votes, whole=True), _check_scale("noise_scale", noise_scale)
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
    """Bound what the rounding of :func:`binary_labels` adds to epsilon, and to delta as a share of delta.

    Parameters
    ----------
    n_labels : int
        How many labels are drawn.

    Returns
    -------
    float

    Examples
    --------
    >>> from skfairdp.mechanisms._vote_mechanism import binary_slack
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
    >>> from skfairdp.mechanisms._vote_mechanism import vote_slack
    >>> epsilon, delta = vote_slack(400, 50.0, 1.0)
    >>> epsilon < 1e-14, delta < 1e-14
    (True, True)
    """
    if noise_scale == 0:
        return 0.0, 0.0
    if one_table and noise_scale * _vote_grid(noise_scale) <= TABLE_SCALE:
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
    check_option(postprocess, "postprocess", POSTPROCESSES)
    shares = np.asarray(noisy, dtype=float) / n_teachers
    if postprocess == "none":
        return shares
    if postprocess == "simplex":
        return _nearest_probabilities(shares)
    shares = _recentre_shares(shares)
    return shares if postprocess == "affine" else _recentre_shares(np.clip(shares, -0.25, 1.25))


def _recentre_shares(shares: np.ndarray) -> np.ndarray:
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
        return log_ndtr((counts - counts[:, ::-1]) / (math.sqrt(2) * noise_scale))
    nodes, weights = normal_quadrature()
    found = np.empty(counts.shape)
    for a in range(n_classes):
        leads = (counts[:, a : a + 1] - np.delete(counts, a, axis=1)) / noise_scale
        found[:, a] = logsumexp(log_ndtr(leads[:, :, None] + nodes).sum(axis=1), b=weights, axis=1)
    return found


@cache
def normal_quadrature() -> tuple[np.ndarray, np.ndarray]:
    """Return 128 nodes and weights of Gauss-Hermite quadrature for expectations over a standard normal variable."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(128)
    return nodes, weights / math.sqrt(2 * math.pi)


def _check_scale(name: str, value: float) -> float:
    scale = float(value)
    if scale != 0 and not LEAST_NOISE_SCALE <= scale <= GREATEST_NOISE_SCALE:
        raise ValueError(
            f"{name} must be 0 or a number from {LEAST_NOISE_SCALE:g} to {GREATEST_NOISE_SCALE:g}; got {value!r}."
        )
    return scale


def _vote_grid(noise_scale: float) -> int:
    """Return the power of two N that makes ``N * noise_scale`` as large as one noise table allows."""
    return int(min(_FINEST, 2 ** max(0, math.floor(math.log2(TABLE_SCALE / noise_scale)))))


# -- the mechanism, and how much noise it needs -----------------------------------------------------------------------


# The slack of the noise may take this share of delta; where it would take more, tables of another kind are used.
_SHARE = 1e-6
# Halvings of the bisection for hard labels. It starts 40 % below the noise that counts need, so that the scale found is
# at most 0.4 / 2**24 of it too large.
_HALVINGS = 24


@dataclass(frozen=True)
class VoteMechanism(Mechanism):
    """Noisy votes on a fixed number of queries, all in one release; made by :func:`vote_mechanism`.

    Attributes
    ----------
    labels : {"soft", "hard", "confident"}
        What is released.
    n_classes, n_voting : int
        Classes, and teachers that vote.
    n_asked, n_answered : int
        Queries, and the most of them that are answered.
    noise_scale : float
        Standard deviation of the noise on a count; 0 for none.
    epsilon : float
        Privacy loss of all labels together: exact for soft labels, an upper bound for the others.
    delta : float
        The probability that goes with it; 0 without noise.
    mu : float or None
        Of the Gaussian mechanism that bounds the loss; ``None`` where the loss is below it.
    one_table : bool
        Of :func:`~skfairdp.mechanisms.noisy_votes`.
    threshold, threshold_noise_scale : float
        Of the confident aggregation.

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp.mechanisms import vote_mechanism
    >>> from skfairdp.random import random_stream
    >>> budget = {"epsilon": 8.0, "delta": 1e-5, "noise_scale": None}
    >>> mechanism = vote_mechanism("hard", **budget, n_asked=2, n_answered=2, n_classes=2, n_voting=100)
    >>> mechanism.release(np.array([[95, 5], [10, 90]]), random_stream(0))
    (array([0, 1]), array([0, 1]))
    """

    labels: str
    n_classes: int
    n_voting: int
    n_asked: int
    n_answered: int
    noise_scale: float
    epsilon: float
    delta: float
    mu: float | None
    one_table: bool = False
    threshold: float = 0.0
    threshold_noise_scale: float = 0.0

    @property
    def name(self) -> str:  # type: ignore[override]
        """The kind of labels."""
        if not self.noise_scale:
            return f"noisy votes, {self.labels} labels, no noise"
        return f"noisy votes, {self.labels} labels" + ("" if self.labels == "soft" else " (an upper bound)")

    @cached_property
    def event(self) -> ReleaseEvent:
        """All labels together."""
        return ReleaseEvent(self.epsilon, self.delta, gaussian_mu=self.mu)

    def guarantee(self, **words: Any) -> PrivacyGuarantee:
        """Write the receipt; ``does_not_cover`` adds to what no vote covers.

        Parameters
        ----------
        **words : dict
            Fields of the receipt, see :meth:`Mechanism.guarantee`.
        """
        more = words.pop("does_not_cover", ())
        scope = {
            "neighbours": REPLACE_ONE,
            "releases": max(self.n_answered, 1),
            "covers": VOTES_COVER,
            "does_not_cover": (*VOTES_DO_NOT_COVER, *more),
        }
        return super().guarantee(**{**scope, **words})

    def check(self, votes: np.ndarray) -> None:
        """Check that these are votes on no more queries than were paid for.

        Parameters
        ----------
        votes : ndarray of shape (n_queries, n_classes)
            How many teachers vote for each class.
        """
        check_votes(votes, whole=True)
        if votes.shape[1] != self.n_classes or len(votes) > self.n_asked:
            raise ValueError(
                f"votes must be counts on at most {self.n_asked} queries of {self.n_classes} classes; got shape "
                f"{votes.shape}."
            )

    def draw(self, votes: np.ndarray, stream: RandomStream) -> tuple[np.ndarray, np.ndarray]:
        """Draw what is released.

        Parameters
        ----------
        votes : ndarray of shape (n_asked, n_classes)
            Counts, in the order in which the queries are asked.
        stream : RandomStream
            Where the noise comes from.

        Returns
        -------
        answered : ndarray of int
            Which queries were answered.
        released : ndarray of shape (n_answered,) or (n_answered, n_classes)
            A class each, or noisy counts for soft labels.
        """
        answered = np.arange(len(votes))
        if self.labels == "confident":
            largest = votes.max(axis=1, keepdims=True)
            noisy = noisy_votes(largest, self.threshold_noise_scale, stream, one_table=self.one_table)
            # Answering stops at a number that was fixed beforehand: how many would pass depends on private rows.
            answered = np.flatnonzero(noisy[:, 0] >= self.threshold)[: self.n_answered]
            votes = votes[answered]
        if self.labels == "hard" and self.n_classes == 2:
            return answered, binary_labels(votes, self.noise_scale, stream)
        noisy = noisy_votes(votes, self.noise_scale, stream, one_table=self.one_table)
        return answered, noisy if self.labels == "soft" else hard_labels(noisy)

    def log_likelihood_ratio(self, y: tuple[np.ndarray, np.ndarray], x: np.ndarray, x_prime: np.ndarray) -> np.ndarray:
        """Compute ``log p(y | x) - log p(y | x_prime)`` of every query; their sum is that of the release.

        Parameters
        ----------
        y : tuple of (answered, released)
            What :meth:`release` returned.
        x, x_prime : ndarray of shape (n_asked, n_classes)
            Two tables of votes.

        Returns
        -------
        ndarray of shape (n_asked,)
            With the continuous density of the noise, of which the grid is an approximation.
        """
        first, second = (self._log_likelihood(*y, votes) for votes in (x, x_prime))
        with np.errstate(invalid="ignore"):
            return np.where(first == second, 0.0, first - second)

    def _log_likelihood(self, answered: np.ndarray, released: np.ndarray, votes: np.ndarray) -> np.ndarray:
        found = np.zeros(len(votes))
        if self.labels == "soft":
            if self.noise_scale == 0:
                return np.where((released == votes).all(axis=1), 0.0, -np.inf)
            return -np.square(released - votes).sum(axis=1) / (2 * self.noise_scale**2)
        if self.labels == "confident":
            passed = np.isin(np.arange(len(votes)), answered)
            # Nothing is asked once the last answer was given.
            asked = int(answered[-1]) + 1 if len(answered) == self.n_answered else len(votes)
            found[:asked] += self._log_passing(votes.max(axis=1), passed)[:asked]
        answers = answer_log_probabilities(votes[answered], self.noise_scale)
        found[answered] += answers[np.arange(len(answered)), released]
        return found

    def _log_passing(self, largest: np.ndarray, passed: np.ndarray) -> np.ndarray:
        if self.threshold_noise_scale == 0:
            return np.where((largest >= self.threshold) == passed, 0.0, -np.inf)
        above = (largest - self.threshold) / self.threshold_noise_scale
        return np.where(passed, log_ndtr(above), log_ndtr(-above))

    def worst_case_pairs(self, stream: RandomStream | None = None) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return votes that differ by one teacher on every query: nearly tied votes, and unanimous ones.

        Parameters
        ----------
        stream : RandomStream or None, default=None
            Not needed: the pairs are always the same.
        """
        if self.n_classes == 1:
            raise ValueError("with one class there is no other vote that a teacher could give.")
        pairs = []
        for most in dict.fromkeys(((self.n_voting + 1) // 2, self.n_voting)):
            first, second = np.zeros((2, self.n_asked, self.n_classes), dtype=np.int64)
            first[:, 0], first[:, -1] = most, self.n_voting - most
            second[:, 0], second[:, -1] = most - 1, self.n_voting - most + 1
            pairs.append((first, second))
        return pairs


def vote_mechanism(
    labels: str,
    *,
    epsilon: float,
    delta: float,
    noise_scale: float | None,
    n_asked: int,
    n_answered: int,
    n_classes: int,
    n_voting: int,
    threshold: float | None = None,
    threshold_noise_scale: float | None = None,
) -> VoteMechanism:
    """Solve the noise from a target, or the target from the noise, without looking at a vote.

    Parameters
    ----------
    labels : {"soft", "hard", "confident"}
        What is going to be released.
    epsilon, delta : float
        The target; epsilon is ignored when ``noise_scale`` is given.
    noise_scale : float or None
        Standard deviation of the noise on a count.
    n_asked, n_answered : int
        Queries, and the most of them that are answered.
    n_classes, n_voting : int
        Classes, and teachers that vote.
    threshold, threshold_noise_scale : float or None
        Of confident labels: votes that the noisy largest count must reach (``None``: two thirds of the
        teachers), and its noise (``None``: as much privacy for the questions as for the answers).

    Returns
    -------
    VoteMechanism

    Examples
    --------
    >>> from skfairdp.mechanisms import vote_mechanism
    >>> mechanism = vote_mechanism(
    ...     "soft", epsilon=1.0, delta=1e-5, noise_scale=None, n_asked=200, n_answered=200, n_classes=2, n_voting=150
    ... )
    >>> round(mechanism.noise_scale, 3), mechanism.guarantee().epsilon
    (74.613, 1.0)
    """
    if noise_scale is None:
        epsilon = check_epsilon(epsilon)
    else:
        noise_scale = _check_scale("noise_scale", noise_scale)
    noiseless = VoteMechanism(labels, n_classes, n_voting, n_answered, n_answered, 0.0, math.inf, 0.0, None)
    confident = labels == "confident"
    if confident:
        if threshold_noise_scale is not None:
            threshold_noise_scale = _check_scale("threshold_noise_scale", threshold_noise_scale)
        least = 2 * n_voting / 3 if threshold is None else float(threshold)
        noiseless = replace(noiseless, n_asked=n_asked, threshold=least if n_classes > 1 else -math.inf)
    if n_classes == 1:
        return replace(noiseless, epsilon=0.0)  # every answer is known beforehand
    if noise_scale is None and math.isinf(epsilon):
        return noiseless
    if labels == "hard" and n_classes == 2 and noise_scale != 0:
        return _binary_majority_price(noiseless, epsilon, delta, noise_scale)
    given = None
    if noise_scale is not None:
        asking = threshold_noise_scale if confident else 0.0
        if asking is None:  # the questions get as much of mu**2 as the answers
            asking = math.sqrt(n_asked / (2 * n_answered)) * noise_scale
        if noise_scale == 0 or (confident and asking == 0):
            return replace(noiseless, threshold_noise_scale=asking, noise_scale=noise_scale)
        given = (asking, noise_scale)

    def scales(epsilon: float, delta: float) -> tuple[float, float]:
        if confident:
            return _confident_scales(epsilon, delta, n_asked, n_answered, threshold_noise_scale)
        return 0.0, _in_range(gnmax_noise_scale(epsilon, delta, n_answered))

    return _with_noise(noiseless, epsilon, delta, given, scales)


def _with_noise(
    noiseless: VoteMechanism,
    epsilon: float,
    delta: float,
    given: tuple[float, float] | None,
    scales_for: Callable[[float, float], tuple[float, float]],
) -> VoteMechanism:
    """Give a mechanism without noise the scales that were given, or those that ``scales_for(epsilon, delta)`` finds.

    Scales are pairs: of the noise on the largest count of confident labels, and of that on all counts.
    """
    asking, sigma = given or scales_for(epsilon, delta)
    values = [(noiseless.n_answered * noiseless.n_classes, sigma)]
    if noiseless.labels == "confident":
        values.insert(0, (noiseless.n_asked, asking))
    if given is None:
        one_table, off_epsilon, off_delta = _vote_table_slack(values, epsilon, delta)
        asking, sigma = scales_for(epsilon - off_epsilon, delta - off_delta)
        spent = epsilon
    else:
        mu = gnmax_mu(noiseless.n_answered, sigma)
        if noiseless.labels == "confident":
            mu = confident_gnmax_mu(noiseless.n_asked, noiseless.n_answered, asking, sigma)
        # The slack grows with epsilon, which it is part of: 0.1 more than the price without it is certainly enough.
        one_table, off_epsilon, off_delta = _vote_table_slack(values, gaussian_epsilon(delta, mu) + 0.1, delta)
        spent = gaussian_epsilon(delta - off_delta, mu) + off_epsilon
    return replace(
        noiseless,
        noise_scale=sigma,
        threshold_noise_scale=asking,
        epsilon=spent,
        delta=delta,
        # The largest mu that (epsilon, delta) allows: a trace above that of the noise, which pays for its rounding.
        mu=gaussian_mu(spent, delta),
        one_table=one_table,
    )


def _confident_scales(
    epsilon: float, delta: float, n_asked: int, n_answered: int, threshold_noise_scale: float | None
) -> tuple[float, float]:
    """Divide the budget between questions and answers."""
    whole = gaussian_mu(epsilon, delta)
    asking = whole / math.sqrt(2)
    if threshold_noise_scale is not None:
        asking = math.inf if threshold_noise_scale == 0 else math.sqrt(n_asked) / threshold_noise_scale
    if not asking < whole:
        raise ValueError(
            f"threshold_noise_scale={threshold_noise_scale!r} is too small: asking {n_asked} questions with it costs "
            f"more than epsilon={epsilon:g} at delta={delta:g} allows; the least is {math.sqrt(n_asked) / whole:.4g}."
        )
    up = 1 + 1e-12  # rounding must not make mu larger than it may be
    answers = math.sqrt(whole**2 - asking**2)
    return _in_range(math.sqrt(n_asked) / asking * up), _in_range(math.sqrt(2 * n_answered) / answers * up)


def _binary_majority_price(
    noiseless: VoteMechanism, epsilon: float, delta: float, noise_scale: float | None
) -> VoteMechanism:
    """Price the noisy majority of two classes by the lesser of two bounds that do not look at the votes."""
    n_queries, n_voting = noiseless.n_answered, noiseless.n_voting
    off = binary_slack(n_queries)
    inner = delta * (1 - 2 * off)
    if noise_scale is not None:
        by_counts = gaussian_epsilon(inner, gnmax_mu(n_queries, noise_scale))
        by_labels = renyi_epsilon(n_queries * binary_vote_rdp(n_voting, noise_scale), inner)
        epsilon, gaussian = min(by_counts, by_labels) + off, by_counts <= by_labels
    elif epsilon > off:
        noise_scale, gaussian = _binary_noise_scale(n_queries, n_voting, epsilon - off, inner)
    else:
        raise ValueError(f"epsilon must be above {off:.2g} for {n_queries} queries; got {epsilon!r}.")
    mu = gaussian_mu(epsilon, delta) if gaussian else None
    return replace(noiseless, noise_scale=noise_scale, epsilon=epsilon, delta=delta, mu=mu)


@lru_cache(maxsize=64)
def _binary_noise_scale(n_queries: int, n_voting: int, epsilon: float, delta: float) -> tuple[float, bool]:
    """Find the least noise by bisection, always returning a scale whose own price was checked."""
    high = _in_range(gnmax_noise_scale(epsilon, delta, n_queries))
    # Any set of orders proves a bound; those near the best one prove nearly the best.
    rdp = n_queries * binary_vote_rdp(n_voting, 0.8 * high)
    orders = np.asarray(DEFAULT_ORDERS)
    best = int(renyi_epsilons(rdp, delta, orders).argmin())
    chosen = orders[max(0, best - 40) : best + 41]
    low, gaussian = 0.6 * high, True
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        loss = renyi_epsilon(n_queries * binary_vote_rdp(n_voting, middle, chosen), delta, chosen)
        if loss <= epsilon and middle >= LEAST_NOISE_SCALE:
            high, gaussian = middle, False
        else:
            low = middle
    return high, gaussian


def _vote_table_slack(values: list[tuple[int, float]], epsilon: float, delta: float) -> tuple[bool, float, float]:
    """Say which tables the noise of votes is drawn from, and what their rounding takes off epsilon and delta."""
    for one_table in (False, True):
        parts = [vote_slack(n, sigma, epsilon, one_table=one_table) for n, sigma in values]
        off_epsilon, off_delta = (math.fsum(column) for column in zip(*parts))
        if off_delta <= _SHARE * delta and off_epsilon < epsilon:
            return one_table, off_epsilon, off_delta
    raise ValueError(
        f"delta={delta!r} is too small for {sum(n for n, _ in values)} noisy counts at epsilon={epsilon:.3g}: "
        f"the rounding of the noise alone needs {off_delta / _SHARE:.2g}; raise delta or ask fewer queries."
    )


def _in_range(noise_scale: float) -> float:
    if noise_scale > GREATEST_NOISE_SCALE:
        raise ValueError(
            f"epsilon and delta need noise of scale {noise_scale:.3g} on vote counts, more than "
            f"{GREATEST_NOISE_SCALE:.3g}; raise epsilon or ask fewer queries (n_queries)."
        )
    return max(noise_scale, LEAST_NOISE_SCALE)
