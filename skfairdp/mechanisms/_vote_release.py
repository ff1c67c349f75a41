"""What the released labels cost, how much noise that needs, and drawing them."""

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import log_ndtr

from skfairdp._validation import check_votes
from skfairdp.accounting import (
    DEFAULT_ORDERS,
    REPLACE_ONE,
    VOTES_COVER,
    VOTES_DO_NOT_COVER,
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
from skfairdp.mechanisms._mechanism import Mechanism
from skfairdp.mechanisms._votes import (
    GREATEST_NOISE_SCALE,
    LEAST_NOISE_SCALE,
    answer_log_probabilities,
    binary_labels,
    binary_slack,
    hard_labels,
    noisy_votes,
    vote_slack,
)
from skfairdp.random import RandomStream, SeedIdentity

# The slack of the noise may take this share of delta; where it would take more, tables of another kind are used.
_SHARE = 1e-6
_STEPS = 24  # of the bisection for hard labels, which starts 40 % below the noise that counts need


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

    @property
    def event(self) -> ReleaseEvent:
        """All labels together."""
        return ReleaseEvent(self.epsilon, self.delta, gaussian_mu=self.mu)

    def guarantee(self, *, seed: SeedIdentity | None = None, **words: Any) -> PrivacyGuarantee:
        """Write the receipt; ``does_not_cover`` adds to what no vote covers."""
        more = words.pop("does_not_cover", ())
        scope = {
            "neighbours": REPLACE_ONE,
            "releases": max(self.n_answered, 1),
            "covers": VOTES_COVER,
            "does_not_cover": (*VOTES_DO_NOT_COVER, *more),
        }
        return super().guarantee(seed=seed, **{**scope, **words})

    def check(self, votes: np.ndarray) -> None:
        """Check that these are votes on no more queries than were paid for."""
        check_votes(votes, whole=True)
        if votes.shape[1] != self.n_classes or len(votes) > self.n_asked:
            raise ValueError(
                f"votes must be counts on at most {self.n_asked} queries of {self.n_classes} classes; got shape "
                f"{votes.shape}."
            )

    def release(self, votes: np.ndarray, stream: RandomStream) -> tuple[np.ndarray, np.ndarray]:
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
        self.check(votes)
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
        """Return votes that differ by one teacher on every query: nearly tied votes, and unanimous ones."""
        if self.n_classes == 1:
            raise ValueError("one class: there is no other vote that a teacher could give.")
        pairs = []
        for most in dict.fromkeys(((self.n_voting + 1) // 2, self.n_voting)):
            counts = np.zeros(self.n_classes, dtype=np.int64)
            counts[0], counts[-1] = most, self.n_voting - most
            moved = counts.copy()
            moved[0] -= 1
            moved[-1] += 1
            pairs.append((np.tile(counts, (self.n_asked, 1)), np.tile(moved, (self.n_asked, 1))))
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
    """
    if noise_scale is not None:
        _check_scale("noise_scale", noise_scale)
    silent = VoteMechanism(labels, n_classes, n_voting, n_answered, n_answered, 0.0, math.inf, 0.0, None)
    if labels == "confident":
        least = 2 * n_voting / 3 if threshold is None else float(threshold)
        silent = replace(silent, n_asked=n_asked, threshold=least)
        return _confident(silent, epsilon, delta, noise_scale, threshold_noise_scale)
    if n_classes == 1:
        return replace(silent, epsilon=0.0)  # every answer is known beforehand
    if (noise_scale is None and math.isinf(epsilon)) or noise_scale == 0:
        return silent
    if labels == "hard" and n_classes == 2:
        return _binary(silent, epsilon, delta, noise_scale)
    values = n_answered * n_classes
    if noise_scale is None:
        guess = _in_range(gnmax_noise_scale(epsilon, delta, n_answered))
        one_table, off_epsilon, off_delta = _slack([(values, guess)], epsilon, delta)
        sigma = _in_range(gnmax_noise_scale(epsilon - off_epsilon, delta - off_delta, n_answered))
        spent = epsilon
    else:
        sigma = float(noise_scale)
        exact = gnmax_mu(n_answered, sigma)
        one_table, off_epsilon, off_delta = _slack([(values, sigma)], gaussian_epsilon(delta, exact) + 0.1, delta)
        spent = gaussian_epsilon(delta - off_delta, exact) + off_epsilon
    # The largest mu that (epsilon, delta) allows: a trace above that of the noise, which leaves room for its rounding.
    mu = gaussian_mu(spent, delta)
    return replace(silent, noise_scale=sigma, epsilon=spent, delta=delta, mu=mu, one_table=one_table)


def _confident(
    silent: VoteMechanism,
    epsilon: float,
    delta: float,
    noise_scale: float | None,
    threshold_noise_scale: float | None,
) -> VoteMechanism:
    """Give a mechanism without noise the noise of questions and answers."""
    if threshold_noise_scale is not None:
        _check_scale("threshold_noise_scale", threshold_noise_scale)
    n_asked, n_answered, n_classes = silent.n_asked, silent.n_answered, silent.n_classes
    if n_classes == 1:
        return replace(silent, epsilon=0.0, threshold=-math.inf)
    # Where nothing else is said, the questions get as much of mu**2 as the answers.
    balance = math.sqrt(n_asked / (2 * n_answered))
    if noise_scale is not None:
        sigma = float(noise_scale)
        asking = balance * sigma if threshold_noise_scale is None else float(threshold_noise_scale)
        if sigma == 0 or asking == 0:
            return replace(silent, noise_scale=sigma, threshold_noise_scale=asking)
    elif math.isinf(epsilon):
        return silent
    else:
        asking, sigma = _confident_scales(epsilon, delta, n_asked, n_answered, threshold_noise_scale)
    values = [(n_asked, asking), (n_answered * n_classes, sigma)]
    if noise_scale is None:
        one_table, off_epsilon, off_delta = _slack(values, epsilon, delta)
        asking, sigma = _confident_scales(
            epsilon - off_epsilon, delta - off_delta, n_asked, n_answered, threshold_noise_scale
        )
        spent = epsilon
    else:
        exact = confident_gnmax_mu(n_asked, n_answered, asking, sigma)
        one_table, off_epsilon, off_delta = _slack(values, gaussian_epsilon(delta, exact) + 0.1, delta)
        spent = gaussian_epsilon(delta - off_delta, exact) + off_epsilon
    return replace(
        silent,
        noise_scale=sigma,
        threshold_noise_scale=asking,
        epsilon=spent,
        delta=delta,
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


def _binary(silent: VoteMechanism, epsilon: float, delta: float, noise_scale: float | None) -> VoteMechanism:
    """Price the noisy majority of two classes by the lesser of two bounds that do not look at the votes."""
    n_queries, n_voting = silent.n_answered, silent.n_voting
    off = binary_slack(n_queries)
    inner = delta * (1 - 2 * off)
    if noise_scale is not None:
        sigma = float(noise_scale)
        loss, gaussian = _binary_epsilon(n_queries, n_voting, sigma, inner)
        spent = loss + off
    else:
        if epsilon <= off:
            raise ValueError(f"epsilon must be above {off:.2g} for {n_queries} queries; got {epsilon!r}.")
        sigma, gaussian = _binary_noise_scale(n_queries, n_voting, epsilon - off, inner)
        spent = epsilon
    mu = gaussian_mu(spent, delta) if gaussian else None
    return replace(silent, noise_scale=sigma, epsilon=spent, delta=delta, mu=mu)


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
    for _ in range(_STEPS):
        middle = (low + high) / 2
        loss = renyi_epsilon(n_queries * binary_vote_rdp(n_voting, middle, chosen), delta, chosen)
        if loss <= epsilon and middle >= LEAST_NOISE_SCALE:
            high, gaussian = middle, False
        else:
            low = middle
    return high, gaussian


def _binary_epsilon(n_queries: int, n_voting: int, noise_scale: float, delta: float) -> tuple[float, bool]:
    """Return the lesser bound, and whether it is the one of noisy counts."""
    by_counts = gaussian_epsilon(delta, gnmax_mu(n_queries, noise_scale))
    by_labels = renyi_epsilon(n_queries * binary_vote_rdp(n_voting, noise_scale), delta)
    return min(by_counts, by_labels), by_counts <= by_labels


def _slack(values: list[tuple[int, float]], epsilon: float, delta: float) -> tuple[bool, float, float]:
    """Say which tables to draw from, and what their rounding takes off epsilon and delta."""
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


def _check_scale(name: str, value: float) -> None:
    if value != 0 and not LEAST_NOISE_SCALE <= value <= GREATEST_NOISE_SCALE:
        raise ValueError(
            f"{name} must be 0 or a number from {LEAST_NOISE_SCALE:g} to {GREATEST_NOISE_SCALE:g}; got {value!r}."
        )
