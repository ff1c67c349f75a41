"""From counts to a certified epsilon, and from scores to the event that is worth counting.

A release is (epsilon, delta)-private for the neighbours x and x' when every event S satisfies
``P(S) <= exp(epsilon) Q(S) + delta`` and the same with P and Q exchanged, where P and Q are the laws of the
release at x and x'. One event whose probabilities are known well enough therefore bounds epsilon from below.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from skfairdp.metrics import proportion_bounds

#: The choice of an event compares bounds at a confidence this much stricter than the one that is certified. Without
#: it, rare events that were frequent by luck win the choice and fail the count.
_CHOICE_STRICTNESS = 100
#: How many thresholds, at most, the choice of an event looks at in each direction.
_MAX_THRESHOLDS = 3000
#: Of these, as many are compared by their exact bounds, which are slow; the others are left out by a quick estimate.
_SHORTLIST = 24
#: Bounds that differ by less than this count as equal; the rarer event is then taken.
_NEARLY = 0.02


def certified_epsilon(k_more: np.ndarray, k_less: np.ndarray, n: int, alpha: float, delta: float) -> np.ndarray:
    """Lower bound on epsilon from the counts of one event, ``ln((p_lower - delta) / q_upper)``, at least 0.

    Parameters
    ----------
    k_more, k_less : ndarray of int
        How often the event happened in ``n`` releases of the input that favours it, and of the other one.
    n : int
        Releases of each input.
    alpha : float
        The probability with which the bound may be wrong; half of it goes to each proportion.
    delta : float
        The delta at which epsilon is bounded.

    Returns
    -------
    ndarray of float
    """
    p_lower, _ = proportion_bounds(k_more, n, alpha / 2)
    _, q_upper = proportion_bounds(k_less, n, alpha / 2)
    surplus = p_lower - delta
    with np.errstate(divide="ignore"):
        bound = np.log(np.maximum(surplus, 0.0)) - np.log(q_upper)
    return np.maximum(bound, 0.0)


def largest_certifiable(n: int, alpha: float, delta: float) -> float:
    """What ``n`` releases of each input could certify at most: the event always happens, or never.

    Close to ``ln(n / ln(2 / alpha))``, that is ``ln(n / 3.689)`` at 95 % confidence.
    """
    return float(certified_epsilon(np.array(n), np.array(0), n, alpha, delta))


@dataclass(frozen=True)
class Event:
    """An event ``score >= threshold`` (or ``<=``) and the input that is expected to favour it.

    Attributes
    ----------
    threshold : float
        An observed score; ties with it belong to the event.
    above : bool
        ``score >= threshold`` if true, ``score <= threshold`` otherwise.
    favours_x : bool
        Whether x (rather than x') makes the event more frequent.
    """

    threshold: float
    above: bool
    favours_x: bool

    def count(self, scores: np.ndarray) -> int:
        """How many of the scores lie in the event."""
        inside = scores >= self.threshold if self.above else scores <= self.threshold
        return int(np.count_nonzero(inside))

    def __str__(self) -> str:
        return f"score {'>=' if self.above else '<='} {self.threshold:.6g}"


def choose_event(scores_x: np.ndarray, scores_x_prime: np.ndarray, alpha: float, delta: float) -> tuple[Event, float]:
    """Pick the event with the largest bound; the bound is optimistic, because the event was chosen for it.

    Every observed score may be a threshold, so that atoms (ties) are kept whole; if there are very many,
    the tails, where the bound changes fastest, and the heaviest atoms are kept.

    Parameters
    ----------
    scores_x, scores_x_prime : ndarray of shape (n,)
        Scores of releases of x and of x', equally many.
    alpha, delta : float
        As in :func:`certified_epsilon`.

    Returns
    -------
    event : Event
    bound : float
        For comparing scores with each other, not for certifying.
    """
    n = len(scores_x)
    ordered = np.sort(scores_x), np.sort(scores_x_prime)
    values, weights = np.unique(np.concatenate([scores_x, scores_x_prime]), return_counts=True)
    values = _thin_thresholds(values, weights)
    best, best_bound = Event(float(values[0]), True, True), -1.0
    for above in (True, False):
        below = [np.searchsorted(scores, values, side="left" if above else "right") for scores in ordered]
        k_x, k_x_prime = (n - k for k in below) if above else below
        for favours_x, k_more, k_less in ((True, k_x, k_x_prime), (False, k_x_prime, k_x)):
            promising = _most_promising(k_more, k_less, n, alpha / _CHOICE_STRICTNESS, delta)
            bounds = certified_epsilon(k_more[promising], k_less[promising], n, alpha / _CHOICE_STRICTNESS, delta)
            # of nearly equal bounds the rarest event: what was not seen in few trials is the more likely to stay unseen
            nearly = promising[bounds >= bounds.max() - _NEARLY]
            i = nearly[np.argmin(k_more[nearly])]
            if bounds.max() > best_bound:
                best, best_bound = Event(float(values[i]), above, favours_x), float(bounds.max())
    return best, best_bound


def _most_promising(k_more: np.ndarray, k_less: np.ndarray, n: int, alpha: float, delta: float) -> np.ndarray:
    """Indices of the largest bounds, in order, as Wilson and Hilferty's formula for Poisson counts estimates them."""
    if len(k_more) <= _SHORTLIST:
        return np.arange(len(k_more))
    z = ndtri(1 - alpha / 2)
    more, less = np.maximum(k_more, 1.0), k_less + 1.0
    at_least = more * np.maximum(1 - 1 / (9 * more) - z / (3 * np.sqrt(more)), 0) ** 3
    at_most = less * (1 - 1 / (9 * less) + z / (3 * np.sqrt(less))) ** 3
    promise = np.maximum(at_least - n * delta, 0) / np.minimum(at_most, n)
    top = np.argpartition(-promise, _SHORTLIST)[:_SHORTLIST]
    nearly = np.flatnonzero(promise >= np.exp(-_NEARLY) * promise.max())
    return np.unique(np.append(top, nearly[np.argmin(k_more[nearly])]))


def _thin_thresholds(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Keep at most ``_MAX_THRESHOLDS`` sorted values: both tails, an even sample, and the heaviest atoms."""
    m = len(values)
    if m <= _MAX_THRESHOLDS:
        return values
    share = _MAX_THRESHOLDS // 4
    from_the_end = np.unique(np.geomspace(1, m, share).astype(int)) - 1
    even = np.linspace(0, m - 1, share).astype(int)
    heavy = np.argpartition(weights, m - share)[m - share :]
    return values[np.unique(np.concatenate([from_the_end, m - 1 - from_the_end, even, heavy]))]
