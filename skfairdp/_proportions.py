"""How sure a proportion is that was counted."""

from typing import Any

import numpy as np
from scipy.special import betaincinv


def proportion_bounds(successes: Any, trials: Any, alpha: float) -> tuple[np.ndarray, np.ndarray]:
    """One-sided Clopper-Pearson bounds of a proportion, each of which is wrong with probability at most ``alpha``.

    Together they are the exact interval of level ``1 - 2 * alpha``.

    Parameters
    ----------
    successes : array-like
        Successes, k.
    trials : array-like
        Trials, n. Without any the bounds are 0 and 1.
    alpha : float
        Error probability of each bound.

    Returns
    -------
    lower, upper : ndarray of float
    """
    k, n = np.asarray(successes, dtype=float), np.asarray(trials, dtype=float)
    # The bounds are quantiles of Beta(k, n - k + 1) and Beta(k + 1, n - k); at k = 0 and k = n one is fixed.
    lower = np.where(k > 0, betaincinv(np.maximum(k, 1), n - k + 1, alpha), 0.0)
    upper = np.where(k < n, betaincinv(k + 1, np.maximum(n - k, 1), 1 - alpha), 1.0)
    return lower, upper
