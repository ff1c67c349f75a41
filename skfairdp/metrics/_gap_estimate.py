"""Gaps between groups as estimates: corrected for the noise that makes a largest difference large, with intervals."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from skfairdp._validation import check_number
from skfairdp.metrics._group_fairness import CLASS_METRICS, resolve_average
from skfairdp.metrics._group_table import RATE_PARTS, RATES, Rows, combine_gaps, largest_difference, read_rows
from skfairdp.metrics._intervals import Interval, check_confidence_level
from skfairdp.metrics._judged_rates import JudgedRate, judge_rates
from skfairdp.metrics._simultaneous_bounds import (
    Family,
    gap_lower,
    gap_upper,
    normal_multiplier,
    pair_lower,
    permutation_p_value,
    range_multiplier,
    range_p_value,
    ratio_ends,
    simulated_bias,
)
from skfairdp.random import random_stream

_METRICS = sorted([*CLASS_METRICS, "accuracy_gap"])
# With fewer rows one of them moves the rate by more than ten points, and the interval of a single rate is
# fifty points wide: nothing that could be said of such a group is worth a headline.
MIN_ROWS = 10
# Of the error of each end of a change, the part that goes to telling which groups may be at the ends of the gap.
_SHARE_FOR_ENDS = 0.2


@dataclass(frozen=True)
class GapEstimate:
    """A largest difference (or smallest ratio) between groups, with what can be said about the true one.

    Attributes
    ----------
    measured : float
        As measured, over all groups that have the rate, as :func:`tpr_gap` and its like give it.
    value : float
        Corrected for bias, over the groups with enough rows; always between ``lower`` and ``upper``.
    lower : float
        Lower end of the confidence interval; 0 exactly if ``p_value`` exceeds 1 - confidence_level.
    upper : float
        Upper end.
    p_value : float
        Of the hypothesis that all groups have the same rates.
    highest : object
        The group with the highest rate, None where there is nothing to compare.
    lowest : object
        The group with the lowest rate; another one than ``highest``, also in a tie.
    too_few : tuple
        Groups with too few rows to say anything. They decide none of the figures but ``measured``.
    rate : str or None
        The rate in which ``highest`` and ``lowest`` differ most.
    label : object
        The class of that rate.
    partly_too_few : tuple of (group, rate, class)
        Rates in which a group has too few rows, though it is judged in others.
    missing_strata : tuple of (stratum, group)
        With control features: strata that are left out because a group has no row there.

    Examples
    --------
    >>> from skfairdp.metrics import estimate_gap
    >>> y_true, groups = [1] * 400, ["a", "b"] * 200
    >>> gap = estimate_gap("tpr_gap", y_true, [1, 1, 1, 0] * 100, sensitive_features=groups)
    >>> print(f"{gap.value:.2f}, {gap.lower:.2f} to {gap.upper:.2f}; {gap.lowest} is behind {gap.highest}")
    0.50, 0.43 to 0.57; b is behind a
    """

    measured: float
    value: float
    lower: float
    upper: float
    p_value: float
    highest: Any = None
    lowest: Any = None
    too_few: tuple[Any, ...] = ()
    rate: str | None = None
    label: Any = None
    partly_too_few: tuple[tuple[Any, str, Any], ...] = ()
    missing_strata: tuple[tuple[Any, Any], ...] = ()


@dataclass(frozen=True)
class _Metric:
    """What a metric is made of: rates of classes, and how their gaps become one number."""

    rates: tuple[str, ...]
    positions: tuple[int, ...]
    average: str

    def combine(self, gaps: np.ndarray) -> np.ndarray:
        """Reduce ``gaps[..., class and rate]``; nan takes no part."""
        by_class = gaps.reshape(*gaps.shape[:-1], len(self.positions), len(self.rates))
        return combine_gaps(combine_gaps(by_class, "max"), self.average, 0)

    def measured(self, counts: np.ndarray) -> float:
        """Return the metric as it stands in the table."""
        gaps = []
        for position in self.positions:
            for rate in self.rates:
                values = RATES[rate][2](counts)
                gaps.append(largest_difference(values if rate == "accuracy" else values[:, position], axis=-1))
        return float(self.combine(np.array(gaps)))

    def of_rates(self, rates: list[np.ndarray], comparable: list[bool]) -> np.ndarray:
        """Return the metric of drawn rates, one array ``[draw, group]`` for each rate that can be compared."""
        gaps = np.full((len(rates[0]), len(comparable)), np.nan)
        for place, values in zip(np.flatnonzero(comparable), rates):
            gaps[:, place] = values.max(axis=1) - values.min(axis=1)
        return self.combine(gaps)

    def bias(self, families: list[Family], comparable: list[bool], generator: np.random.Generator) -> float:
        """Return by how much the metric of measured rates exceeds the true one: never by less than nothing."""
        return max(0.0, simulated_bias(families, lambda drawn: self.of_rates(drawn, comparable), generator))


def estimate_gap(
    metric: str,
    y_true: Any,
    y_pred: Any,
    *,
    sensitive_features: Any,
    sample_weight: Any = None,
    pos_label: Any = None,
    labels: Any = None,
    average: str = "auto",
    control_features: Any = None,
    min_rows: float = MIN_ROWS,
    confidence_level: float = 0.95,
    random_state: Any = None,
) -> GapEstimate:
    """Estimate the true gap between groups: corrected for bias, with an interval and a p-value.

    Noise alone makes the rates of groups differ, and the more groups there are, the larger is the largest
    difference: eight groups of 200 rows whose true rates are all one half differ by ten points on average. This
    function says what is left when the noise is taken away.

    Parameters
    ----------
    metric : {"tpr_gap", "grms", "accuracy_gap", "demographic_parity_gap", "equalized_odds_gap"}
        Name of the metric.
    y_true : array-like of shape (n_samples,)
        True class labels.
    y_pred : array-like of shape (n_samples,)
        Predicted class labels.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
        The group of each row. Several columns are crossed: a group is a combination that occurs.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative weights of the rows. Intervals count effective rows, (sum of weights)² / sum of squared weights.
    pos_label : label, optional
        As in :func:`tpr_gap`; not used by ``"grms"`` and ``"accuracy_gap"``.
    labels : array-like, optional
        All class labels, where a class may have no row; by default those that occur.
    average : {"auto", "binary", "max", "mean", "rms"}, default="auto"
        As in :func:`tpr_gap`; not used by ``"grms"`` and ``"accuracy_gap"``.
    control_features : array-like of shape (n_samples,) or (n_samples, n_columns), optional
        Compare within strata of these columns: the rate of a group is the average of its rates in the strata,
        with the same weight of a stratum (its share of all rows) for every group.
    min_rows : float, default=10
        A group needs so many (effective) rows in the denominator of a rate to be judged by it.
    confidence_level : float, default=0.95
        Level of the interval.
    random_state : int, Generator, SeedSequence, RandomState or None, default=None
        Seed of the simulated bias and of the permutations. None is a fixed seed: the same rows give the same figures.

    Returns
    -------
    GapEstimate
        With nan for what cannot be said, as with a single group.

    See Also
    --------
    estimate_gap_change : Is one model fairer than another on the same rows?
    estimate_selection_ratio : The four-fifths rule.

    Notes
    -----
    **Fairness.** ``upper`` is the largest of the pairs' upper bounds without a correction, because the pair of groups
    that truly differ most is one pair; ``lower`` is the largest of their lower bounds, widened so that all hold at
    once (Tukey's studentised range). The bounds of a pair are of Newcombe's kind, and keep their level for small
    counts. For equalised odds and for averages over classes the bounds of all rates are combined in the same way; they
    then cover the true gap more often than they promise. A small group widens the interval: that its true rate may be
    far away is a fact about the data. ``value`` subtracts what a gap of these sizes would exceed the true one by, if
    the true rates were the measured ones shrunken towards their mean.
    The p-value is that of the largest studentised difference among permutations of rows (exact), or the level at
    which ``lower`` leaves 0, whichever is larger; so that the two never contradict each other.

    References
    ----------
    .. [1] R. Newcombe, "Interval Estimation for the Difference between Independent Proportions", Statistics in
       Medicine 1998.
    .. [2] A. Agresti, M. Bini, B. Bertaccini, E. Ryu, "Simultaneous Confidence Intervals for Comparing Binomial
       Parameters", Biometrics 2008.

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp.metrics import estimate_gap
    >>> rng = np.random.default_rng(0)
    >>> groups, y_pred = np.repeat(np.arange(8), 200), rng.integers(0, 2, 1600)  # eight groups, treated alike
    >>> gap = estimate_gap("demographic_parity_gap", y_pred, y_pred, sensitive_features=groups)
    >>> print(f"measured {gap.measured:.2f}, estimated {gap.value:.2f}, lower end {gap.lower:.2f}")
    measured 0.09, estimated 0.00, lower end 0.00
    """
    _check_settings(metric, average, min_rows, confidence_level)
    rows = read_rows(
        y_true,
        {"y_pred": y_pred},
        sensitive_features=sensitive_features,
        sample_weight=sample_weight,
        labels=labels,
        control_features=control_features,
    )
    parts = _metric_of(metric, rows.classes, average, pos_label)
    table = rows.count("y_pred")
    (judged,) = judge_rates(rows, [table], parts.rates, parts.positions, min_rows)
    generator = gap_generator(random_state)
    about = _about_groups(rows, judged)
    families = [rate.family() for rate in judged if rate.comparable]
    comparable = [rate.comparable for rate in judged]
    within = parts.of_rates([values[None] for values, _, _ in families], comparable)[0] if families else np.nan
    measured = parts.measured(table[0][0]) if control_features is None else float(within)
    if not families:
        return GapEstimate(measured, np.nan, np.nan, np.nan, np.nan, **about)
    tail = 1 - confidence_level
    p_value = max(
        permutation_p_value([rate.strata_family() for rate in judged if rate.comparable], generator),
        range_p_value(families),
    )
    lower, upper = _ends(parts, families, comparable, confidence_level)
    lower = 0.0 if p_value > tail else lower
    bias = parts.bias(families, comparable, generator)
    value = float(np.clip(within - bias, lower, upper))
    return GapEstimate(measured, value, lower, upper, p_value, **about)


def _ends(parts: _Metric, families: list[Family], comparable: list[bool], level: float) -> tuple[float, float]:
    """Return the ends of the interval of the combined gap."""
    single = normal_multiplier((1 - level) / 2)
    joint = range_multiplier(level, tuple(len(values) for values, _, _ in families))
    ends = np.full((2, len(comparable)), np.nan)
    for place, family in zip(np.flatnonzero(comparable), families):
        values, sizes, offsets = family
        ends[:, place] = gap_lower(values, sizes, joint, offsets), gap_upper(values, sizes, single, offsets)
    lower, upper = parts.combine(ends)
    return float(lower), float(min(upper, 1.0))


def estimate_gap_change(
    metric: str,
    y_true: Any,
    y_pred: Any,
    y_pred_reference: Any,
    *,
    sensitive_features: Any,
    sample_weight: Any = None,
    pos_label: Any = None,
    labels: Any = None,
    average: str = "auto",
    control_features: Any = None,
    min_rows: float = MIN_ROWS,
    confidence_level: float = 0.95,
    random_state: Any = None,
) -> Interval:
    """Estimate by how much the gap of one model differs from that of another on the same rows.

    Where both models err on the same rows, the difference of their gaps is known far better than either gap.

    Parameters
    ----------
    metric : {"tpr_gap", "grms", "accuracy_gap", "demographic_parity_gap", "equalized_odds_gap"}
        Name of the metric.
    y_true : array-like of shape (n_samples,)
        True class labels.
    y_pred : array-like of shape (n_samples,)
        Class labels predicted by the model that is judged.
    y_pred_reference : array-like of shape (n_samples,)
        Class labels predicted by the model that it is compared with.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
        The group of each row. Several columns are crossed: a group is a combination that occurs.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative weights of the rows.
    pos_label : label, optional
        As in :func:`estimate_gap`.
    labels : array-like, optional
        All class labels, where a class may have no row; by default those that occur.
    average : {"auto", "binary", "max", "mean", "rms"}, default="auto"
        As in :func:`estimate_gap`.
    control_features : array-like of shape (n_samples,) or (n_samples, n_columns), optional
        As in :func:`estimate_gap`.
    min_rows : float, default=10
        As in :func:`estimate_gap`.
    confidence_level : float, default=0.95
        Level of the interval.
    random_state : int, Generator, SeedSequence, RandomState or None, default=None
        As in :func:`estimate_gap`.

    Returns
    -------
    Interval
        Gap of ``y_pred`` minus gap of ``y_pred_reference``, each corrected for bias: negative is fairer than the
        reference. All three are nan if fewer than two groups have enough rows.

    Notes
    -----
    **Fairness.** Let a and b be the groups at the ends of the first model's true gap. The second model's gap is at
    least what *it* has between a and b, in either direction; so the change is at most the change between a and b,
    whose error is that of paired rows. The groups a and b are among those that are not surely in between; the upper
    end is the largest bound of any such pair, or the difference of bounds of the two gaps if that is less, and the
    lower end is the same with the models exchanged. For a root mean square over classes, classes are weighed by their
    measured gaps.

    References
    ----------
    .. [1] A. Agresti, Y. Min, "Simple Improved Confidence Intervals for Comparing Matched Proportions", Statistics in
       Medicine 2005.

    Examples
    --------
    >>> from skfairdp.metrics import estimate_gap_change
    >>> y_true, groups = [1] * 400, ["a", "b"] * 200
    >>> unfair, fairer = [1, 1, 1, 0] * 100, [1, 1, 1, 0, 1, 1, 1, 1] * 50
    >>> change = estimate_gap_change("tpr_gap", y_true, fairer, unfair, sensitive_features=groups)
    >>> print(f"{change.value:.2f}, between {change.lower:.2f} and {change.upper:.2f}")
    -0.25, between -0.31 and -0.19
    """
    _check_settings(metric, average, min_rows, confidence_level)
    rows = read_rows(
        y_true,
        {"y_pred": y_pred, "y_pred_reference": y_pred_reference},
        sensitive_features=sensitive_features,
        sample_weight=sample_weight,
        labels=labels,
        control_features=control_features,
    )
    parts = _metric_of(metric, rows.classes, average, pos_label)
    tables = [rows.count(name) for name in rows.predicted]
    judged = judge_rates(rows, tables, parts.rates, parts.positions, min_rows)
    comparable = [rate.comparable for rate in judged[0]]
    if not any(comparable):
        return Interval(np.nan, np.nan, np.nan)
    # Rows on which the models agree: what one counts and the other does not is the rest.
    agree = rows.count("y_pred", rows.predicted["y_pred"] == rows.predicted["y_pred_reference"])
    changes = _paired_changes(parts, judged, [table[0] for table in tables], agree[0])
    upper = _change_upper(parts, judged, changes, confidence_level)
    lower = -_change_upper(parts, judged[::-1], [change.turned() for change in changes], confidence_level)
    # The same draws for both models: what they have in common cancels.
    seed = int(gap_generator(random_state).integers(2**32))
    values = []
    for model in judged:
        families = [rate.family() for rate in model if rate.comparable]
        gap = parts.of_rates([family[0][None] for family in families], comparable)[0]
        values.append(max(0.0, gap - parts.bias(families, comparable, np.random.default_rng(seed))))
    lower, upper = max(lower, -1.0), min(upper, 1.0)
    return Interval(float(np.clip(values[0] - values[1], lower, upper)), lower, upper)


class _PairedChange(NamedTuple):
    """Difference and sum of two models' rates in every group, with their variances."""

    difference: np.ndarray
    variance: np.ndarray
    total: np.ndarray
    total_variance: np.ndarray

    def turned(self) -> "_PairedChange":
        """Return the same with the models exchanged."""
        return self._replace(difference=-self.difference)

    def upper(self, opposed: np.ndarray, multiplier: float) -> np.ndarray:
        """Return upper ends of the change of every pair; ``opposed`` are pairs that the second model turns round."""
        change = self.difference[:, None] - self.difference
        change += multiplier * np.sqrt(self.variance[:, None] + self.variance)
        turned = self.total[:, None] - self.total
        turned += multiplier * np.sqrt(self.total_variance[:, None] + self.total_variance)
        return np.where(opposed, turned, change)


def _paired_changes(
    parts: _Metric, judged: list[list[JudgedRate]], tables: list[np.ndarray], agree: np.ndarray
) -> list[_PairedChange]:
    """Return, for each rate, how the two models differ in every judged group, from paired rows."""
    changes = []
    for place, (one, other) in enumerate(zip(*judged)):
        position = parts.positions[place // len(parts.rates)]
        cell = np.ix_(one.strata, one.groups)
        # Hits of each model and of both, as shares of the denominator, which both models have in common.
        counted = [RATE_PARTS[one.rate](counts) for counts in (*tables, agree)]
        hits, trials = [part[0] for part in counted], counted[0][1]
        if one.rate != "accuracy":
            hits, trials = [part[..., position] for part in hits], trials[..., position]
        first, second, both = (part[cell] / trials[cell] for part in hits)
        n = one.sizes_by_stratum
        # Agresti and Min add half a row to each of the four cells, so that no variance is 0.
        differing = (np.maximum(first + second - 2 * both, 0.0) * n + 1) / (n + 2)
        variance = (differing - ((first - second) * n / (n + 2)) ** 2) / (n + 2)
        smooth = [(share * n + 1) / (n + 2) for share in (first, second)]
        # The sum and the difference of two numbers have variances that add up to twice those of the numbers.
        of_sum = np.maximum(2 * sum(p * (1 - p) for p in smooth) / (n + 2) - variance, 0.0)
        variance, of_sum = ((one.weights[:, None] ** 2 * part).sum(axis=0) for part in (variance, of_sum))
        changes.append(_PairedChange(one.values - other.values, variance, one.values + other.values, of_sum))
    return changes


def _change_upper(parts: _Metric, models: list[list[JudgedRate]], changes: list[_PairedChange], level: float) -> float:
    """Return an upper end of the change of the combined gap, first model minus second."""
    first, second = models
    tail = (1 - level) / 2
    single = normal_multiplier(tail * (1 - _SHARE_FOR_ENDS))
    comparable = [rate.comparable for rate in first]
    sizes = tuple(len(rate.groups) for rate in first if rate.comparable)
    joint = range_multiplier(1 - tail * _SHARE_FOR_ENDS / 2, sizes)
    bounds, lower, upper, gaps = np.full((4, len(first)), np.nan)
    for place in np.flatnonzero(comparable):
        values, n, _ = first[place].family()
        below = pair_lower(values, n, joint)
        # Not the highest group if another one is surely above; not the lowest if one is surely below.
        not_highest, not_lowest = np.any(below > 0, axis=0), np.any(below > 0, axis=1)
        pairs = ~np.logical_or.outer(not_highest, not_lowest) & ~np.eye(len(values), dtype=bool)
        below_second = pair_lower(second[place].values, second[place].sizes, joint)
        lower[place], upper[place] = max(0.0, below.max()), -below.min()
        # The bounds of each gap by itself hold whenever the groups at its ends are found: they cost nothing more.
        apart = upper[place] - max(0.0, below_second.max())
        bounds[place] = min(apart, changes[place].upper(below_second.T > 0, single)[pairs].max())
        gaps[place] = values.max() - values.min()
    shape = (4, len(parts.positions), len(parts.rates))
    bounds, lower, upper, gaps = np.stack([bounds, lower, upper, gaps]).reshape(shape)

    def of_largest(bounds: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
        """Bound the change of a largest gap: that of any gap that may be the largest one."""
        floor = combine_gaps(lower, "max")
        return combine_gaps(np.where(upper >= floor[..., None], bounds, np.nan), "max")

    by_class = of_largest(bounds, lower, upper)
    class_gaps, class_lower, class_upper = (combine_gaps(ends, "max") for ends in (gaps, lower, upper))
    if parts.average == "binary":
        return float(by_class[0])
    if parts.average == "max":
        return float(of_largest(by_class, class_lower, class_upper))
    known = ~np.isnan(by_class)
    weights = np.where(known, 1.0, 0.0)
    if parts.average == "rms" and np.nansum(class_gaps) > 0:
        weights = np.where(known, class_gaps, 0.0)
        weights *= known.sum() / np.sqrt(known.sum() * (weights**2).sum())
    return float((weights * np.where(known, by_class, 0.0)).sum() / known.sum())


def estimate_selection_ratio(
    y_true: Any,
    y_pred: Any,
    *,
    sensitive_features: Any,
    sample_weight: Any = None,
    pos_label: Any = None,
    labels: Any = None,
    control_features: Any = None,
    min_rows: float = MIN_ROWS,
    confidence_level: float = 0.95,
    random_state: Any = None,
) -> GapEstimate:
    """Estimate the smallest ratio of selection rates between two groups, for the four-fifths rule; 1 is fair.

    The rule asks whether the group that is selected least is selected at least four fifths as often as the one that
    is selected most.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True class labels; they only tell which classes there are.
    y_pred : array-like of shape (n_samples,)
        Predicted class labels.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
        The group of each row. Several columns are crossed: a group is a combination that occurs.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative weights of the rows.
    pos_label : label, optional
        The class that is good to be selected for; by default, with two classes, the larger label.
    labels : array-like, optional
        All class labels, where a class may have no row; by default those that occur.
    control_features : array-like of shape (n_samples,) or (n_samples, n_columns), optional
        As in :func:`estimate_gap`.
    min_rows : float, default=10
        As in :func:`estimate_gap`.
    confidence_level : float, default=0.95
        Level of the interval.
    random_state : int, Generator, SeedSequence, RandomState or None, default=None
        As in :func:`estimate_gap`.

    Returns
    -------
    GapEstimate
        ``value``, ``lower`` and ``upper`` are ratios between 0 and 1; ``upper`` is 1 exactly if ``p_value`` exceeds
        1 - confidence_level. All are nan if nobody is selected.

    Notes
    -----
    **Fairness.** The interval is made as that of :func:`estimate_gap`, with Donner and Zou's bounds for the ratio of a
    pair. The rule is broken beyond doubt if ``upper`` is below 0.8, and kept beyond doubt if ``lower`` is not.

    References
    ----------
    .. [1] A. Donner, G. Y. Zou, "Closed-form Confidence Intervals for Functions of the Normal Mean and Standard
       Deviation", Statistical Methods in Medical Research 2012.
    .. [2] Uniform Guidelines on Employee Selection Procedures, 29 CFR 1607.4 (D).

    Examples
    --------
    >>> from skfairdp.metrics import estimate_selection_ratio
    >>> hired = [1] * 60 + [0] * 40 + [1] * 30 + [0] * 70
    >>> ratio = estimate_selection_ratio(hired, hired, sensitive_features=["m"] * 100 + ["f"] * 100)
    >>> print(f"{ratio.value:.1f}, between {ratio.lower:.2f} and {ratio.upper:.2f}")
    0.5, between 0.35 and 0.70
    """
    _check_settings("demographic_parity_gap", "binary", min_rows, confidence_level)
    rows = read_rows(
        y_true,
        {"y_pred": y_pred},
        sensitive_features=sensitive_features,
        sample_weight=sample_weight,
        labels=labels,
        control_features=control_features,
    )
    parts = _metric_of("demographic_parity_gap", rows.classes, "binary", pos_label)
    table = rows.count("y_pred")
    ((judged,),) = judge_rates(rows, [table], parts.rates, parts.positions, min_rows)
    about = _about_groups(rows, [judged])
    everybody = RATES["selection_rate"][2](table[0][0])[:, parts.positions[0]]
    everybody = judged.values if control_features is not None else everybody[~np.isnan(everybody)]
    measured = float(_smallest_ratio(everybody[None])[0]) if len(everybody) > 1 else np.nan
    if not judged.comparable or not judged.values.any():
        return GapEstimate(measured, np.nan, np.nan, np.nan, np.nan, **about)
    values, sizes, _ = family = judged.family()
    generator = gap_generator(random_state)
    p_value = max(permutation_p_value([judged.strata_family()], generator), range_p_value([family]))
    apart = ~np.eye(len(values), dtype=bool)
    lower = float(ratio_ends(values, sizes, normal_multiplier((1 - confidence_level) / 2))[0][apart].min())
    joint = range_multiplier(confidence_level, (len(values),))
    upper = float(min(1.0, ratio_ends(values, sizes, joint)[1][apart].min()))
    upper = 1.0 if p_value > 1 - confidence_level else upper
    bias = simulated_bias([family], lambda drawn: _smallest_ratio(drawn[0]), generator)
    value = float(np.clip(_smallest_ratio(values[None])[0] - bias, lower, upper))
    return GapEstimate(measured, value, lower, upper, p_value, **about)


def _smallest_ratio(rates: np.ndarray) -> np.ndarray:
    """Return the smallest over the largest rate of each row; nan where all are 0."""
    highest = rates.max(axis=1)
    return np.divide(rates.min(axis=1), highest, out=np.full(len(rates), np.nan), where=highest > 0)


def _check_settings(metric: str, average: Any, min_rows: Any, confidence_level: Any) -> None:
    if metric not in _METRICS:
        raise ValueError(f"metric must be one of {_METRICS}; got {metric!r}.")
    if average is None:
        raise ValueError("average must reduce the classes to one number here; got None.")
    check_number(min_rows, "min_rows", "a number of at least 1", lambda n: 1 <= n < np.inf)
    check_confidence_level(confidence_level)


def _metric_of(metric: str, classes: tuple[Any, ...], average: str, pos_label: Any) -> _Metric:
    """Say which rates of which classes a metric compares, and how they are averaged."""
    if metric == "accuracy_gap":
        return _Metric(("accuracy",), (0,), "binary")
    if metric == "grms":
        return _Metric(CLASS_METRICS[metric], tuple(range(len(classes))), "rms")
    how, position = resolve_average(classes, average, pos_label)
    positions = tuple(range(len(classes))) if position is None else (position,)
    return _Metric(CLASS_METRICS[metric], positions, str(how))


def _about_groups(rows: Rows, judged: list[JudgedRate]) -> dict[str, Any]:
    """Name the groups at the two ends, and what was left out."""
    in_any = np.zeros(len(rows.groups), dtype=bool)
    for rate in judged:
        in_any[rate.groups] = True
    about: dict[str, Any] = {
        "too_few": tuple(group for group, there in zip(rows.groups, in_any) if not there),
        "partly_too_few": tuple(
            (rows.groups[g], rate.rate, rate.label)
            for rate in judged
            for g in np.flatnonzero(in_any)
            if g not in rate.groups
        ),
        "missing_strata": tuple(
            dict.fromkeys((rows.strata[s], rows.groups[g]) for rate in judged for s, g in rate.lacking)
        ),
    }
    compared = [rate for rate in judged if rate.comparable]
    if compared:
        widest = max(compared, key=lambda rate: rate.values.max() - rate.values.min())
        # In a tie the first group is the highest and the last one the lowest: never the same one.
        lowest = len(widest.values) - 1 - int(np.argmin(widest.values[::-1]))
        about["highest"] = rows.groups[widest.groups[int(np.argmax(widest.values))]]
        about["lowest"] = rows.groups[widest.groups[lowest]]
        about["rate"], about["label"] = widest.rate, widest.label
    return about


def gap_generator(random_state: Any) -> np.random.Generator:
    """Return a source of draws; without a seed always the same one, since these draws protect nobody."""
    return random_stream(0 if random_state is None else random_state).generator
