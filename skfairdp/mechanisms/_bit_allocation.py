"""How to divide a budget over the bits of numbers in fixed point.

Each bit in the offset format passes symmetric randomised response with a budget of its
own; the budgets of all bits of a record add up to epsilon. What is best depends on
the estimate that is made of the noisy bits:

* *unbiased*: a bit of weight ``w`` adds ``w**2 / (4 sinh(e/2)**2)`` to the squared error. This is convex in
  ``e``, so every bit gets something, nearly in proportion to ``w**(2/3)``.
* *posterior mean* (uniform prior): the bit removes ``w**2 / 4 * tanh(e/2)**2`` from the prior variance. This is
  S-shaped in ``e``: a small budget buys next to nothing, so few bits get much and the others nothing.
"""

import math

import numpy as np

from skfairdp._validation import check_epsilon
from skfairdp.mechanisms._bit_mechanism import (
    LARGEST_LOGIT,
    BitMechanism,
    bit_mechanism_from_logits,
    largest_within,
    logits_loss,
)

#: The budget where ``tanh(e/2)**2`` turns from convex to concave: ``tanh(e/2) = 1 / sqrt(3)``.
_INFLECTION = 2 * math.atanh(1 / math.sqrt(3))


def unbiased_error(weights: np.ndarray, bit_epsilon: np.ndarray) -> float:
    """Compute the mean squared error of the unbiased estimate, ``sum w**2 / (4 sinh(e/2)**2)``.

    Parameters
    ----------
    weights : array-like
        Weights of the bits.
    bit_epsilon : array-like of the same shape
        Budget of each bit.

    Returns
    -------
    float

    Examples
    --------
    >>> from skfairdp.mechanisms import unbiased_error
    >>> round(unbiased_error([1.0], [1.0]), 6)
    0.920674
    """
    weights, bit_epsilon = np.asarray(weights, float), np.asarray(bit_epsilon, float)
    with np.errstate(divide="ignore", over="ignore"):
        return float((weights**2 / (4 * np.sinh(bit_epsilon / 2) ** 2)).sum())


def posterior_error(weights: np.ndarray, bit_epsilon: np.ndarray) -> float:
    """Compute the mean squared error of the posterior mean under a uniform prior, ``sum w**2 / 4 (1 - tanh(e/2)**2)``.

    Parameters
    ----------
    weights : array-like
        Weights of the bits.
    bit_epsilon : array-like of the same shape
        Budget of each bit.

    Returns
    -------
    float

    Examples
    --------
    >>> from skfairdp.mechanisms import posterior_error
    >>> round(posterior_error([1.0], [1.0]), 6)
    0.196612
    """
    weights, bit_epsilon = np.asarray(weights, float), np.asarray(bit_epsilon, float)
    return float((weights**2 / 4 * (1 - np.tanh(bit_epsilon / 2) ** 2)).sum())


def allocate_unbiased(epsilon: float, n_features: int, weights: np.ndarray) -> np.ndarray:
    """Divide a budget so that the unbiased estimate has the least squared error.

    Solves ``w**2 cosh(e/2) / (4 sinh(e/2)**3) = nu`` for each weight, with the ``nu``
    that spends the budget.

    Parameters
    ----------
    epsilon : float
        Budget of one record.
    n_features : int
        Values per record; each gets the same share.
    weights : array of shape (n_bits,)
        Weights of the bits of one value.

    Returns
    -------
    ndarray of shape (n_features, n_bits)

    Examples
    --------
    >>> from skfairdp.mechanisms import allocate_unbiased, bit_weights
    >>> allocate_unbiased(50.0, 50, bit_weights(4, 5))[0].round(5)
    array([0.37371, 0.23543, 0.14831, 0.09343, 0.05886, 0.03708, 0.02336,
           0.01471, 0.00927, 0.00584])
    """
    share = check_epsilon(epsilon, allow_inf=False) / n_features
    weights = np.asarray(weights, dtype=np.float64)
    if share >= LARGEST_LOGIT * len(weights):  # every bit is as sure as the integers allow
        return np.full((n_features, len(weights)), share / len(weights))
    low, high = -3.0, 3.0  # of log nu; widened until the share lies between
    while _unbiased_budgets(low, weights).sum() < share:
        low -= 4
    while _unbiased_budgets(high, weights).sum() > share:
        high += 4
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if _unbiased_budgets(middle, weights).sum() > share else (low, middle)
    budgets = _unbiased_budgets(high, weights)
    return np.tile(budgets * (share / budgets.sum()), (n_features, 1))


def _unbiased_budgets(log_nu: float, weights: np.ndarray) -> np.ndarray:
    """Solve ``s**3 = a (1 + s)``, ``s = sinh(e/2)**2``, ``a = (w**2 / (4 nu))**2``, for ``e``."""
    a = np.exp(2 * (2 * np.log(weights) - math.log(4) - log_nu))
    s = np.sqrt(a) + np.cbrt(a)  # above the root, so that Newton's steps go down to it on a convex function
    for _ in range(12):
        s -= (s**3 - a * s - a) / (3 * s**2 - a)
    return 2 * np.arcsinh(np.sqrt(s))


def allocate_posterior(epsilon: float, n_features: int, weights: np.ndarray) -> np.ndarray:
    """Divide a budget so that the posterior mean has the least squared error.

    The budget goes to the heaviest bits: the leading bit of few features, all leading
    bits and some of the second when there is more, and so on. For each number of bits
    the best division makes ``w**2 t (1 - t**2)``, ``t = tanh(e/2)``, equal; the number
    is the one with the largest gain. With leading bits alone this is
    ``argmax_n n tanh(epsilon / 2n)**2``, about ``epsilon / 2.177`` features.

    Parameters
    ----------
    epsilon : float
        Budget of one record.
    n_features : int
        Values per record.
    weights : array of shape (n_bits,)
        Weights of the bits of one value, heaviest first.

    Returns
    -------
    ndarray of shape (n_features, n_bits)
        The features served first come first; which ones they are must not depend on the data.

    Examples
    --------
    >>> from skfairdp.mechanisms import allocate_posterior, bit_weights
    >>> budgets = allocate_posterior(8.0, 50, bit_weights(4, 5))
    >>> budgets[budgets > 0]
    array([2., 2., 2., 2.])
    """
    epsilon = check_epsilon(epsilon, allow_inf=False)
    weights = np.asarray(weights, dtype=np.float64)
    best = (-math.inf, 0, np.zeros(0))
    for full in range(len(weights)):  # levels that every feature gets; the next is given to some
        gains, budgets = _posterior_levels(epsilon, n_features, weights[: full + 1])
        n = int(np.argmax(gains))
        if gains[n] == -math.inf:
            break  # more levels would need more budget still
        if gains[n] > best[0]:
            best = (float(gains[n]), n + 1, budgets[n])
    _, n, levels = best
    division = np.zeros((n_features, len(weights)))
    division[:, : len(levels) - 1] = levels[:-1]
    division[:n, len(levels) - 1] = levels[-1]
    return division


def _posterior_levels(epsilon: float, n_features: int, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Gain and budgets for 1, ..., n_features bits of the last level, all features having the levels before."""
    n = np.arange(1, n_features + 1)
    counts = np.full((n_features, len(weights)), n_features, dtype=np.float64)
    counts[:, -1] = n
    if len(weights) == 1:
        budgets = (epsilon / n)[:, None]
        return _posterior_gains(budgets, counts, weights), budgets
    # The last level may lie a little below the inflection, if the curvature of the others makes up for it.
    best, division = np.full(n_features, -math.inf), np.zeros(counts.shape)
    for low, high in ((_INFLECTION / 2, _INFLECTION), (_INFLECTION, 4 * LARGEST_LOGIT)):
        last = _bisect_last(epsilon, counts, weights, low, high)
        budgets = _posterior_budgets(last, weights)
        spent = (counts * budgets).sum(axis=1)
        gains = _posterior_gains(budgets, counts, weights)
        gains[spent > epsilon * (1 + 1e-9)] = -math.inf  # the budget does not reach so many bits
        better = gains > best
        best[better] = gains[better]
        division[better] = budgets[better] * np.minimum(1.0, epsilon / spent[better])[:, None]
    return best, division


def _bisect_last(epsilon: float, counts: np.ndarray, weights: np.ndarray, low: float, high: float) -> np.ndarray:
    """Find the budget of a bit of the last level, between low and high, at which all levels spend epsilon."""
    lows, highs = np.full(len(counts), low), np.full(len(counts), high)
    for _ in range(80):
        middle = (lows + highs) / 2
        above = (counts * _posterior_budgets(middle, weights)).sum(axis=1) > epsilon
        lows, highs = np.where(above, lows, middle), np.where(above, middle, highs)
    return lows


def _posterior_gains(budgets: np.ndarray, counts: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return (counts * weights**2 / 4 * np.tanh(budgets / 2) ** 2).sum(axis=1)


def _posterior_budgets(last: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Give earlier levels the budget that makes ``w**2 t (1 - t**2)`` equal, with the largest root ``t``."""
    slope = np.tanh(last / 2) / np.cosh(last / 2) ** 2
    c = slope[:, None] * weights[-1] ** 2 / weights[:-1] ** 2
    t = 2 / math.sqrt(3) * np.cos(np.arccos(np.clip(-1.5 * math.sqrt(3) * c, -1, 1)) / 3)
    # Near certainty 1 - t cancels; there t (1 - t) (1 + t) = c gives it directly.
    rest = np.where(c < 1e-4, c / (t * (1 + t)), 1 - t)
    return np.column_stack([np.log((2 - rest) / rest), last])


def allocated_bit_mechanism(bit_epsilon: np.ndarray, epsilon: float) -> BitMechanism:
    """Return symmetric randomised response with the given budgets; a budget of 0 is a fair coin.

    Parameters
    ----------
    bit_epsilon : array
        Budgets of all bits of a record. They are lowered together, in the last digits,
        until the exact loss of the integers used does not exceed ``epsilon``.
    epsilon : float
        The loss of a record that must not be exceeded.

    Returns
    -------
    BitMechanism

    Examples
    --------
    >>> from skfairdp.mechanisms import allocated_bit_mechanism
    >>> allocated_bit_mechanism([2.0, 0.0], 2.0).p.round(6)
    array([0.880797, 0.5     ])
    """
    epsilon = check_epsilon(epsilon, allow_inf=False)
    budgets = np.asarray(bit_epsilon, dtype=np.float64).ravel()
    if not (np.isfinite(budgets).all() and (budgets >= 0).all()):
        raise ValueError("bit_epsilon must hold finite budgets of 0 or more.")
    levels, counts = np.unique(budgets, return_counts=True)

    def loss(scale: float) -> float:
        return logits_loss((scale * x, -scale * x, int(n)) for x, n in zip(levels.tolist(), counts.tolist()))

    scale = largest_within(loss, epsilon, 0.0, 1.0)
    return bit_mechanism_from_logits(scale * budgets, -scale * budgets)
