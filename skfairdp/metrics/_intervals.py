"""Confidence intervals from a count table: exact binomial ones, and a bootstrap that never sees a row again.

Resampling n rows with replacement and counting them gives a multinomial draw on the cells of the table. So the
bootstrap draws tables; its cost depends on the number of cells and not on the number of rows.
"""

from collections.abc import Callable
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from scipy import stats
from scipy.special import betaincinv

from skfairdp._validation import check_count
from skfairdp.metrics._group_fairness import CLASS_METRICS, resolve_average
from skfairdp.metrics._group_table import (
    GroupTable,
    accuracy_rates,
    class_gaps,
    combine_gaps,
    group_table,
    largest_difference,
)
from skfairdp.random import random_stream

# Draws are made in blocks of about this many cells, so that many classes do not fill the memory.
_BLOCK_CELLS = 4_000_000
_METRICS = sorted([*CLASS_METRICS, "accuracy_gap", "worst_group_accuracy"])


class Interval(NamedTuple):
    """A value and the ends of its confidence interval.

    Attributes
    ----------
    value : float
        The estimate.
    lower : float
        Lower end.
    upper : float
        Upper end.

    Examples
    --------
    >>> from skfairdp.metrics import Interval
    >>> value, lower, upper = Interval(0.3, 0.2, 0.4)
    >>> lower < value < upper
    True
    """

    value: float
    lower: float
    upper: float


def check_confidence_level(confidence_level: Any) -> None:
    """Refuse what is no number in (0, 1)."""
    if isinstance(confidence_level, bool) or not isinstance(confidence_level, Real):
        raise TypeError(f"confidence_level must be a number between 0 and 1; got {confidence_level!r}.")
    if not 0 < float(confidence_level) < 1:
        raise ValueError(f"confidence_level must lie between 0 and 1; got {confidence_level!r}.")


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


def binomial_interval(
    successes: np.ndarray, trials: np.ndarray, confidence_level: float, method: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of Clopper-Pearson (``"exact"``) or Wilson intervals; nan where there is no trial.

    Clopper-Pearson covers the true rate with at least the level, whatever the rate; Wilson is shorter, and
    covers it with about the level on average.
    """
    k, n = np.asarray(successes, dtype=float), np.asarray(trials, dtype=float)
    known = n > 0
    n = np.where(known, n, 1.0)
    k = np.where(known, k, 0.0)
    tail = (1 - confidence_level) / 2
    if method == "exact":
        lower, upper = proportion_bounds(k, n, tail)
    else:
        z = stats.norm.ppf(1 - tail)
        p = k / n
        centre = (p + z**2 / (2 * n)) / (1 + z**2 / n)
        half = z * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
        # At k = 0 and k = n an end is exactly 0 or 1; the square root leaves it a rounding error away.
        lower = np.where(k > 0, np.maximum(centre - half, 0.0), 0.0)
        upper = np.where(k < n, np.minimum(centre + half, 1.0), 1.0)
    return np.where(known, lower, np.nan), np.where(known, upper, np.nan)


def bootstrap_statistic(
    table: GroupTable, statistic: Callable[[np.ndarray], np.ndarray], n_draws: int, random_state: Any
) -> np.ndarray:
    """Return ``statistic`` of ``n_draws`` resampled tables, stacked along the first axis."""
    generator = random_stream(random_state).generator
    rows = table.rows
    occupied = np.flatnonzero(rows)
    n = int(rows.sum())
    chances = rows.ravel()[occupied] / n
    block = max(1, min(n_draws, _BLOCK_CELLS // rows.size))
    results = []
    for start in range(0, n_draws, block):
        size = min(block, n_draws - start)
        drawn = np.asarray(generator.multinomial(n, chances, size=size))
        if table.squared is not None:
            drawn = _weigh_drawn_rows(drawn, table, occupied, generator)
        counts = np.zeros((size, rows.size), dtype=drawn.dtype)
        counts[:, occupied] = drawn
        results.append(statistic(counts.reshape(size, *rows.shape)))
    return np.concatenate(results)


def _weigh_drawn_rows(
    drawn: np.ndarray, table: GroupTable, occupied: np.ndarray, generator: np.random.Generator
) -> np.ndarray:
    """Turn drawn rows into drawn weight.

    The weight of k rows drawn from a cell has mean k m and variance k v, with m and v those of the weights in
    the cell. It is exact where they are all equal, and a normal approximation where they are not.
    """
    rows = table.rows.ravel()[occupied]
    mean = table.counts.ravel()[occupied] / rows
    variance = np.maximum(np.asarray(table.squared).ravel()[occupied] / rows - mean**2, 0.0)
    # mean**2 loses digits: below that size the weights of the cell are equal, and the variance is noise.
    deviation = np.sqrt(np.where(variance > 1e-12 * mean**2, variance, 0.0))
    total = drawn * mean + np.sqrt(drawn) * deviation * generator.standard_normal(drawn.shape)
    return np.where(drawn > 0, np.maximum(total, 0.0), 0.0)


def percentile_interval(draws: np.ndarray, confidence_level: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the percentile interval along the first axis, over the draws that are defined."""
    ordered = np.sort(draws, axis=0)  # nan comes last
    defined = (~np.isnan(draws)).sum(axis=0)
    tail = (1 - confidence_level) / 2
    ends = []
    for level in (tail, 1 - tail):
        place = level * np.maximum(defined - 1, 0)
        below = np.floor(place).astype(np.intp)
        above = np.minimum(below + 1, np.maximum(defined - 1, 0))
        low = np.take_along_axis(ordered, below[None], axis=0)[0]
        high = np.take_along_axis(ordered, above[None], axis=0)[0]
        ends.append(low + (place - below) * (high - low))
    return ends[0], ends[1]


def bootstrap_interval(
    metric: str,
    y_true: Any,
    y_pred: Any,
    *,
    sensitive_features: Any,
    sample_weight: Any = None,
    pos_label: Any = None,
    labels: Any = None,
    average: str = "auto",
    confidence_level: float = 0.95,
    n_draws: int = 1000,
    random_state: Any = None,
) -> Interval:
    """Bootstrap confidence interval of a group fairness metric; for gaps between two groups that differ.

    With more groups use :func:`estimate_gap`: there a percentile interval of a gap promises too much.

    Parameters
    ----------
    metric : {"tpr_gap", "grms", "accuracy_gap", "demographic_parity_gap", "equalized_odds_gap", \
            "worst_group_accuracy"}
        Name of the metric.
    y_true : array-like of shape (n_samples,)
        True class labels.
    y_pred : array-like of shape (n_samples,)
        Predicted class labels.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
        The group of each row. Several columns are crossed: a group is a combination that occurs.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative weights of the rows.
    pos_label : label, optional
        As in :func:`tpr_gap`; not used by ``"grms"``, ``"accuracy_gap"`` and ``"worst_group_accuracy"``.
    labels : array-like, optional
        All class labels, where a class may have no row; by default those that occur.
    average : {"auto", "binary", "max", "mean", "rms"}, default="auto"
        As in :func:`tpr_gap`; not used by ``"grms"``, ``"accuracy_gap"`` and ``"worst_group_accuracy"``.
    confidence_level : float, default=0.95
        Share of the draws between the two ends.
    n_draws : int, default=1000
        Number of resampled tables.
    random_state : int, Generator, SeedSequence, RandomState or None, default=None
        Seed of the draws.

    Returns
    -------
    Interval
        Named tuple ``(value, lower, upper)``, with ``lower <= value <= upper``.

    See Also
    --------
    estimate_gap : Corrected for bias, with an interval that holds for any number of groups.

    Notes
    -----
    **Fairness.** For two groups that differ the interval covers the true gap with about its level, and so for more
    groups as long as two of them clearly are the ends (``"worst_group_accuracy"``: one clearly is the worst). Otherwise
    it does not: the largest of several noisy differences is biased upwards, and resampling adds the bias again. Eight
    groups of 200 rows whose rates are spread over 16 points are covered in 80 % of samples, thirteen in 46 %; groups
    that do not differ at all, never.

    Percentile interval over rows resampled with replacement, drawn as multinomial count tables. A gap
    is a largest difference, so that noise alone makes it positive: with small groups the interval of a fair model
    holds 0 only if its measured gap is 0. Resampling adds noise to noise, and can move both percentiles past the
    measured value; the interval is then widened to hold it, and covers the true gap no less often.
    With weights that differ inside a cell of the table the draw of their sum is approximated by a normal one.

    Examples
    --------
    >>> from skfairdp.metrics import bootstrap_interval
    >>> y_true, y_pred = [1, 1, 1, 1] * 100, [1, 1, 1, 0] * 100
    >>> groups = ["a", "b", "a", "b"] * 100
    >>> value, lower, upper = bootstrap_interval("tpr_gap", y_true, y_pred, sensitive_features=groups, random_state=0)
    >>> print(value, 0.4 < lower < 0.5 < upper < 0.6)
    0.5 True
    """
    check_confidence_level(confidence_level)
    check_count(n_draws, "n_draws")
    if metric not in _METRICS:
        raise ValueError(f"metric must be one of {_METRICS}; got {metric!r}.")
    if average is None:
        raise ValueError("average must reduce the classes to one number here; got None.")
    table = group_table(
        y_true, y_pred, sensitive_features=sensitive_features, sample_weight=sample_weight, labels=labels
    )
    statistic = _statistic_of(metric, table.classes, average, pos_label)
    value = statistic(table.counts[None])
    lower, upper = percentile_interval(bootstrap_statistic(table, statistic, n_draws, random_state), confidence_level)
    estimate, low, high = float(value[0]), float(lower), float(upper)
    return Interval(estimate, min(low, estimate), max(high, estimate))  # an end that is nan stays so


def _statistic_of(metric: str, classes: tuple[Any, ...], average: str, pos_label: Any) -> Callable:
    """Return the function of the counts that computes a metric."""
    if metric == "accuracy_gap":
        return lambda counts: largest_difference(accuracy_rates(counts), axis=-1)
    if metric == "worst_group_accuracy":  # every table holds rows, so one rate is a number
        return lambda counts: np.nanmin(accuracy_rates(counts), axis=-1)
    how: Any = ("rms", None) if metric == "grms" else resolve_average(classes, average, pos_label)
    return lambda counts: combine_gaps(class_gaps(counts, *CLASS_METRICS[metric]), *how)
