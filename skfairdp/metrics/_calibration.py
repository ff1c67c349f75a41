"""Do scores mean the same in every group? Observed rates beside mean scores, and the gap between groups."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from skfairdp._validation import check_count, check_number
from skfairdp.metrics._gap_estimate import MIN_ROWS, GapEstimate, gap_generator
from skfairdp.metrics._group_table import largest_difference, positive_class, read_rows
from skfairdp.metrics._intervals import binomial_interval, check_confidence_level
from skfairdp.metrics._simultaneous_bounds import gap_interval, range_p_value, simulated_bias

# A variance of residuals is steadied by so many rows of the binomial one: few rows may lie close together by chance.
_STEADYING_ROWS = 10


@dataclass(frozen=True)
class _ScoredRows:
    """Rows with a group, an outcome of 0 or 1, a score and a weight."""

    group: np.ndarray
    groups: tuple[Any, ...]
    outcome: np.ndarray
    scores: np.ndarray
    weight: np.ndarray

    def sums(self, values: np.ndarray, cells: "np.ndarray | None" = None, size: int | None = None) -> np.ndarray:
        """Return the sum of values in every group, or in every cell."""
        return np.bincount(
            self.group if cells is None else cells, weights=values, minlength=len(self.groups) if size is None else size
        )


def calibration_by_group(
    y_true: Any,
    scores: Any,
    *,
    sensitive_features: Any,
    sample_weight: Any = None,
    pos_label: Any = None,
    n_bins: int = 10,
    confidence_level: float = 0.95,
) -> pd.DataFrame:
    """Mean score and observed rate of every group, in bins of the score and in all.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True class labels.
    scores : array-like of shape (n_samples,)
        Scores between 0 and 1, meant as probabilities of the positive class.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
        The group of each row. Several columns are crossed: a group is a combination that occurs.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative weights of the rows.
    pos_label : label, optional
        The class that the scores are about; by default, with two classes, the larger label.
    n_bins : int, default=10
        Number of bins of equal width between 0 and 1.
    confidence_level : float, default=0.95
        Level of the interval of each observed rate by itself.

    Returns
    -------
    pandas.DataFrame
        One row for each group and bin that has rows, and one for each group with the bin ``"all"``: ``group``, ``bin``
        (such as ``"0.3-0.4"``), ``n``, ``mean_score``, ``observed``, and ``lower`` and ``upper`` ends of Wilson's
        interval of the observed rate (with weights: of the effective number of rows).

    Examples
    --------
    >>> from skfairdp.metrics import calibration_by_group
    >>> y_true, scores = [0, 0, 0, 1, 0, 1, 1, 1], [0.3, 0.3, 0.3, 0.3, 0.7, 0.7, 0.7, 0.7]
    >>> table = calibration_by_group(y_true, scores, sensitive_features=["a", "b"] * 4, n_bins=2)
    >>> table[table["bin"] == "all"][["group", "n", "mean_score", "observed"]]
      group  n  mean_score  observed
    2     a  4         0.5      0.25
    5     b  4         0.5      0.75
    """
    check_count(n_bins, "n_bins")
    check_confidence_level(confidence_level)
    rows = _scored_rows(y_true, scores, sensitive_features, sample_weight, pos_label)
    edges = np.linspace(0, 1, n_bins + 1)
    # The last bin of every group is "all"; a score on an edge belongs to the bin above it, and 1 to the last one.
    binned = np.clip(np.searchsorted(edges, rows.scores, side="right") - 1, 0, n_bins - 1)
    width = n_bins + 1
    cells = np.concatenate([rows.group * width + binned, rows.group * width + n_bins])
    twice = _ScoredRows(cells, rows.groups, *(np.tile(v, 2) for v in (rows.outcome, rows.scores, rows.weight)))
    size = len(rows.groups) * width
    n = np.bincount(cells, minlength=size)
    total = twice.sums(twice.weight, cells, size)
    used = np.flatnonzero(total > 0)
    squared = twice.sums(twice.weight**2, cells, size)[used]
    observed = twice.sums(twice.weight * twice.outcome, cells, size)[used] / total[used]
    effective = total[used] ** 2 / squared
    lower, upper = binomial_interval(observed * effective, effective, confidence_level, "wilson")
    names = [*(f"{low:g}-{high:g}" for low, high in zip(edges.round(6), edges.round(6)[1:])), "all"]
    group = pd.Series([rows.groups[k] for k in used // width], dtype=object).infer_objects()
    return pd.DataFrame(
        {
            "group": group,
            "bin": [names[k] for k in used % width],
            "n": n[used],
            "mean_score": twice.sums(twice.weight * twice.scores, cells, size)[used] / total[used],
            "observed": observed,
            "lower": np.minimum(lower, observed),
            "upper": np.maximum(upper, observed),
        }
    )


def calibration_gap(
    y_true: Any, scores: Any, *, sensitive_features: Any, sample_weight: Any = None, pos_label: Any = None
) -> float:
    """Difference between groups in how far scores are off: observed rate minus mean score; 0 is fair.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True class labels.
    scores : array-like of shape (n_samples,)
        Scores between 0 and 1, meant as probabilities of the positive class.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
        The group of each row. Several columns are crossed: a group is a combination that occurs.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative weights of the rows.
    pos_label : label, optional
        The class that the scores are about; by default, with two classes, the larger label.

    Returns
    -------
    float
        The largest difference between two groups; nan with fewer than two groups that have rows.

    Notes
    -----
    **Fairness.** It says whether scores are too high for one group and too low for another, and so whether one
    threshold asks more of one of them. It does not see errors of opposite sign within a group that cancel:
    :func:`calibration_by_group` shows them bin by bin.

    Examples
    --------
    >>> from skfairdp.metrics import calibration_gap
    >>> float(calibration_gap([0, 0, 1, 1], [0.5, 0.5, 0.5, 0.5], sensitive_features=["a", "a", "b", "b"]))
    1.0
    """
    rows = _scored_rows(y_true, scores, sensitive_features, sample_weight, pos_label)
    residuals, _, _ = _residuals(rows)
    return float(largest_difference(residuals, axis=-1))


def estimate_calibration_gap(
    y_true: Any,
    scores: Any,
    *,
    sensitive_features: Any,
    sample_weight: Any = None,
    pos_label: Any = None,
    min_rows: float = MIN_ROWS,
    confidence_level: float = 0.95,
    random_state: Any = None,
) -> GapEstimate:
    """Estimate the true :func:`calibration_gap`: corrected for bias, with an interval and a p-value.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True class labels.
    scores : array-like of shape (n_samples,)
        Scores between 0 and 1, meant as probabilities of the positive class.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
        The group of each row. Several columns are crossed: a group is a combination that occurs.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative weights of the rows.
    pos_label : label, optional
        The class that the scores are about; by default, with two classes, the larger label.
    min_rows : float, default=10
        A group needs so many (effective) rows to be judged.
    confidence_level : float, default=0.95
        Level of the interval.
    random_state : int, Generator, SeedSequence, RandomState or None, default=None
        Seed of the simulated bias; None is a fixed seed.

    Returns
    -------
    GapEstimate
        ``highest`` is the group whose outcomes exceed its scores most: its scores are too low.

    Notes
    -----
    **Fairness.** As in :func:`estimate_gap`. The more the scores explain, the better an observed rate minus a mean
    score is known: the effective number of rows is the one whose binomial variance is that of outcome minus score.

    Examples
    --------
    >>> from skfairdp.metrics import estimate_calibration_gap
    >>> y_true, groups = [1, 0, 0, 0, 1, 1, 0, 0] * 50, (["a"] * 4 + ["b"] * 4) * 50
    >>> gap = estimate_calibration_gap(y_true, [0.375] * 400, sensitive_features=groups)
    >>> print(f"{gap.value:.2f}, {gap.lower:.2f} to {gap.upper:.2f}; scores are too low for {gap.highest}")
    0.25, 0.16 to 0.34; scores are too low for b
    """
    check_number(min_rows, "min_rows", "a number of at least 1", lambda n: 1 <= n < np.inf)
    check_confidence_level(confidence_level)
    rows = _scored_rows(y_true, scores, sensitive_features, sample_weight, pos_label)
    residuals, kish, _ = _residuals(rows)
    measured = float(largest_difference(residuals, axis=-1))
    judged = kish >= min_rows
    too_few = tuple(group for group, enough in zip(rows.groups, judged) if not enough)
    if judged.sum() < 2:
        return GapEstimate(measured, np.nan, np.nan, np.nan, np.nan, too_few=too_few)
    observed, sizes, mean_scores = (part[judged] for part in _binomial_equivalent(rows))
    family = observed, sizes, mean_scores
    p_value = range_p_value([family])
    lower, upper = gap_interval(observed, sizes, confidence_level, mean_scores)
    lower = 0.0 if p_value > 1 - confidence_level else lower
    bias = simulated_bias(
        [family], lambda drawn: drawn[0].max(axis=1) - drawn[0].min(axis=1), gap_generator(random_state)
    )
    values = observed - mean_scores
    value = float(np.clip(values.max() - values.min() - max(0.0, bias), lower, upper))
    named = [group for group, enough in zip(rows.groups, judged) if enough]
    lowest = len(values) - 1 - int(np.argmin(values[::-1]))  # in a tie another one than the highest
    return GapEstimate(
        measured, value, lower, upper, p_value, named[int(np.argmax(values))], named[lowest], too_few, "calibration"
    )


def _residuals(rows: _ScoredRows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return observed rate minus mean score, the effective number of rows, and the weight of every group."""
    total, squared = rows.sums(rows.weight), rows.sums(rows.weight**2)
    known = total > 0
    residuals = np.full(len(total), np.nan)
    np.divide(rows.sums(rows.weight * (rows.outcome - rows.scores)), total, out=residuals, where=known)
    return residuals, np.divide(total**2, squared, out=np.zeros(len(total)), where=squared > 0), total


def _binomial_equivalent(rows: _ScoredRows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return observed rates, the sizes whose binomial variance is that of the residuals, and mean scores."""
    residuals, n, total = _residuals(rows)
    safe, n = np.maximum(total, np.finfo(float).tiny), np.maximum(n, np.finfo(float).tiny)
    observed = rows.sums(rows.weight * rows.outcome) / safe
    mean_scores = rows.sums(rows.weight * rows.scores) / safe
    centred = rows.outcome - rows.scores - np.nan_to_num(residuals)[rows.group]
    per_row = rows.sums((rows.weight * centred) ** 2) / safe**2 * n
    smooth = (observed * n + 1) / (n + 2)
    binomial = smooth * (1 - smooth)
    steadied = (per_row * n + binomial * _STEADYING_ROWS) / (n + _STEADYING_ROWS)
    return np.clip(observed, 0.0, 1.0), n * binomial / steadied, mean_scores


def _scored_rows(y_true: Any, scores: Any, sensitive_features: Any, sample_weight: Any, pos_label: Any) -> _ScoredRows:
    rows = read_rows(y_true, {}, sensitive_features=sensitive_features, sample_weight=sample_weight)
    if len(rows.classes) > 2 and pos_label is None:
        raise ValueError(f"pos_label must be given with {len(rows.classes)} classes: which one are the scores about?")
    positive = positive_class(rows.classes, pos_label)
    n = len(rows.true)
    try:
        values = np.asarray(scores, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"scores must hold one number per row ({error}).") from None
    if values.shape != (n,):
        raise ValueError(f"scores must have shape ({n},), one number per row of y_true; got shape {values.shape}.")
    bad = np.flatnonzero(~((values >= 0) & (values <= 1)))
    if bad.size:
        raise ValueError(
            f"scores must lie between 0 and 1, as probabilities do; got {values[bad[0]]} at row {bad[0]}. "
            "Rescale or calibrate other scores first."
        )
    weight = np.ones(n) if rows.weight is None else rows.weight
    return _ScoredRows(rows.group, rows.groups, (rows.true == positive).astype(float), values, weight)
