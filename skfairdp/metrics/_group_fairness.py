"""Gaps between groups, each read from one count table."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from skfairdp._validation import warn_user
from skfairdp.exceptions import UndefinedGroupMetricWarning
from skfairdp.metrics._group_table import (
    RATES,
    GroupTable,
    accuracy_rates,
    class_gaps,
    combine_gaps,
    group_table,
    largest_difference,
    positive_class,
)

_AVERAGES = ("auto", "binary", "max", "mean", "rms", None)

#: Metrics that are a gap of each class: the rates in which it is measured.
CLASS_METRICS = {
    "tpr_gap": ("tpr",),
    "grms": ("tpr",),
    "demographic_parity_gap": ("selection_rate",),
    "equalized_odds_gap": ("tpr", "fpr"),
}


def tpr_gap(
    y_true: Any,
    y_pred: Any,
    *,
    sensitive_features: Any,
    sample_weight: Any = None,
    pos_label: Any = None,
    labels: Any = None,
    average: str | None = "auto",
) -> "float | pd.Series":
    """Difference in true positive rate between groups (equal opportunity); 0 is fair.

    The gap of class c is the largest difference, between any two groups, of
    P(predicted c | true c).

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True class labels.
    y_pred : array-like of shape (n_samples,)
        Predicted class labels.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
        The group of each row. Several columns are crossed: a group is a combination that occurs.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative weights of the rows.
    pos_label : label, optional
        The class whose gap is taken; by default, with two classes, the larger label.
    labels : array-like, optional
        All class labels, where a class may have no row; by default those that occur.
    average : {"auto", "binary", "max", "mean", "rms"} or None, default="auto"
        How the gaps of the classes become one number. ``"binary"``: the gap of the positive class alone;
        ``"max"``: the largest; ``"mean"``; ``"rms"``: root mean square, which is :func:`grms`.
        ``"auto"`` is ``"binary"`` with two classes or a ``pos_label``, else ``"max"``.
        None returns the gaps of all classes.

    Returns
    -------
    float or pandas.Series
        The gap, between 0 and 1; with ``average=None`` a Series indexed by class.

    Warns
    -----
    UndefinedGroupMetricWarning
        A group lacks the class: its rate is undefined and left out of the gap. The gap is nan if fewer
        than two groups remain, and so with a single group.

    Notes
    -----
    **Fairness.** Maheshwari et al. write the gap of two groups as a signed difference, and report its size.
    Here it is never negative, which is what more than two groups need; the sign can be read off
    :func:`group_rates`. An absent class is nan here, while fairlearn counts its rate as 0.

    References
    ----------
    .. [1] G. Maheshwari, P. Denis, M. Keller, A. Bellet, "Fair NLP Models with Differentially Private Text
       Encoders", Findings of EMNLP 2022, section 5.
    .. [2] M. Hardt, E. Price, N. Srebro, "Equality of Opportunity in Supervised Learning", NeurIPS 2016.

    Examples
    --------
    >>> from skfairdp.metrics import tpr_gap
    >>> y_true = [1, 1, 1, 1, 0, 0]
    >>> y_pred = [1, 1, 1, 0, 0, 1]
    >>> tpr_gap(y_true, y_pred, sensitive_features=["a", "a", "b", "b", "a", "b"])
    0.5
    """
    return _class_gap("tpr_gap", y_true, y_pred, sensitive_features, sample_weight, labels, average, pos_label)


def grms(y_true: Any, y_pred: Any, *, sensitive_features: Any, sample_weight: Any = None, labels: Any = None) -> float:
    """Root mean square, over classes, of the gaps in true positive rate; 0 is fair.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True class labels.
    y_pred : array-like of shape (n_samples,)
        Predicted class labels.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
        The group of each row. Several columns are crossed: a group is a combination that occurs.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative weights of the rows.
    labels : array-like, optional
        All class labels, where a class may have no row; by default those that occur.

    Returns
    -------
    float
        Between 0 and 1.

    Warns
    -----
    UndefinedGroupMetricWarning
        A group lacks a class, and is left out of its gap; a class with fewer than two groups is left out of
        the mean. The result is nan if no class remains.

    Notes
    -----
    **Fairness.** With two classes this is not the gap of the positive class but the root mean square of the
    gaps of both, that is of the gaps in true positive and in true negative rate; :func:`tpr_gap` gives the former.

    References
    ----------
    .. [1] A. Romanov et al., "What's in a Name? Reducing Bias in Bios without Access to Protected Attributes",
       NAACL 2019.
    .. [2] G. Maheshwari, P. Denis, M. Keller, A. Bellet, "Fair NLP Models with Differentially Private Text
       Encoders", Findings of EMNLP 2022, Eq. 5.

    Examples
    --------
    >>> from skfairdp.metrics import grms
    >>> y_true = ["nurse", "nurse", "pilot", "pilot"]
    >>> y_pred = ["nurse", "pilot", "pilot", "pilot"]
    >>> round(grms(y_true, y_pred, sensitive_features=["f", "m", "f", "m"]), 3)
    0.707
    """
    return _class_gap("grms", y_true, y_pred, sensitive_features, sample_weight, labels, "rms")


def accuracy_gap(y_true: Any, y_pred: Any, *, sensitive_features: Any, sample_weight: Any = None) -> float:
    """Difference in accuracy between the best and the worst served group; 0 is fair.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True class labels.
    y_pred : array-like of shape (n_samples,)
        Predicted class labels.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
        The group of each row. Several columns are crossed: a group is a combination that occurs.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative weights of the rows.

    Returns
    -------
    float
        Between 0 and 1; nan, with a warning, if fewer than two groups have rows.

    Warns
    -----
    UndefinedGroupMetricWarning
        A group has no row (or no weight), or there is only one group.

    Examples
    --------
    >>> from skfairdp.metrics import accuracy_gap
    >>> accuracy_gap([0, 1, 0, 1], [0, 1, 0, 0], sensitive_features=["a", "a", "b", "b"])
    0.5
    """
    table = group_table(y_true, y_pred, sensitive_features=sensitive_features, sample_weight=sample_weight)
    rates = accuracy_rates(table.counts)
    warn_undefined("accuracy_gap", table, "accuracy", rates[:, None], [None])
    return float(largest_difference(rates, axis=-1))


def demographic_parity_gap(
    y_true: Any,
    y_pred: Any,
    *,
    sensitive_features: Any,
    sample_weight: Any = None,
    pos_label: Any = None,
    labels: Any = None,
    average: str | None = "auto",
) -> "float | pd.Series":
    """Difference in selection rate between groups (demographic parity); 0 is fair.

    The gap of class c is the largest difference, between any two groups, of P(predicted c).

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
        The class whose gap is taken; by default, with two classes, the larger label.
    labels : array-like, optional
        All class labels, where a class may have no row; by default those that occur.
    average : {"auto", "binary", "max", "mean", "rms"} or None, default="auto"
        As in :func:`tpr_gap`.

    Returns
    -------
    float or pandas.Series
        The gap, between 0 and 1; with ``average=None`` a Series indexed by class.

    Warns
    -----
    UndefinedGroupMetricWarning
        A group has no row (or no weight), or there is only one group.

    Examples
    --------
    >>> from skfairdp.metrics import demographic_parity_gap
    >>> demographic_parity_gap([0, 1, 0, 1], [1, 1, 0, 1], sensitive_features=["a", "a", "b", "b"])
    0.5
    """
    name = "demographic_parity_gap"
    return _class_gap(name, y_true, y_pred, sensitive_features, sample_weight, labels, average, pos_label)


def equalized_odds_gap(
    y_true: Any,
    y_pred: Any,
    *,
    sensitive_features: Any,
    sample_weight: Any = None,
    pos_label: Any = None,
    labels: Any = None,
    average: str | None = "auto",
    agg: str = "worst_case",
) -> "float | pd.Series":
    """Difference in true or false positive rate between groups, whichever is larger; 0 is fair.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True class labels.
    y_pred : array-like of shape (n_samples,)
        Predicted class labels.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
        The group of each row. Several columns are crossed: a group is a combination that occurs.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative weights of the rows.
    pos_label : label, optional
        The class whose gap is taken; by default, with two classes, the larger label.
    labels : array-like, optional
        All class labels, where a class may have no row; by default those that occur.
    average : {"auto", "binary", "max", "mean", "rms"} or None, default="auto"
        As in :func:`tpr_gap`.
    agg : {"worst_case", "mean"}, default="worst_case"
        Take the larger of the two gaps of a class, or their mean.

    Returns
    -------
    float or pandas.Series
        The gap, between 0 and 1; with ``average=None`` a Series indexed by class.

    Warns
    -----
    UndefinedGroupMetricWarning
        A group lacks the class, or holds nothing else; it is left out of that gap.

    Examples
    --------
    >>> from skfairdp.metrics import equalized_odds_gap
    >>> y_true, y_pred = [1, 0, 0, 1, 0, 0], [1, 0, 0, 1, 1, 0]
    >>> equalized_odds_gap(y_true, y_pred, sensitive_features=["a", "a", "a", "b", "b", "b"])
    0.5
    """
    if agg not in ("worst_case", "mean"):
        raise ValueError(f"agg must be 'worst_case' or 'mean'; got {agg!r}.")
    name, agg = "equalized_odds_gap", "max" if agg == "worst_case" else agg
    return _class_gap(name, y_true, y_pred, sensitive_features, sample_weight, labels, average, pos_label, agg)


def worst_group_accuracy(y_true: Any, y_pred: Any, *, sensitive_features: Any, sample_weight: Any = None) -> float:
    """Accuracy of the group that is served worst; larger is better.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True class labels.
    y_pred : array-like of shape (n_samples,)
        Predicted class labels.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
        The group of each row. Several columns are crossed: a group is a combination that occurs.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative weights of the rows.

    Returns
    -------
    float
        Between 0 and 1.

    Warns
    -----
    UndefinedGroupMetricWarning
        A group has no row (or no weight), and is left out.

    Examples
    --------
    >>> from skfairdp.metrics import worst_group_accuracy
    >>> worst_group_accuracy([0, 1, 0, 1], [0, 1, 0, 0], sensitive_features=["a", "a", "b", "b"])
    0.5
    """
    table = group_table(y_true, y_pred, sensitive_features=sensitive_features, sample_weight=sample_weight)
    rates = accuracy_rates(table.counts)
    warn_undefined("worst_group_accuracy", table, "accuracy", rates[:, None], [None], least=1)
    return float(np.nanmin(rates))  # check_sensitive_features and the weights leave at least one group with rows


def resolve_average(classes: tuple[Any, ...], average: str | None, pos_label: Any) -> "tuple[str | None, int | None]":
    """Settle ``average="auto"``, and find the positive class where it is needed."""
    if average not in _AVERAGES:
        raise ValueError(f"average must be one of {_AVERAGES}; got {average!r}.")
    if average == "auto":
        average = "binary" if len(classes) <= 2 or pos_label is not None else "max"
    if average != "binary":
        if pos_label is not None:
            raise ValueError(f"pos_label={pos_label!r} has no meaning with average={average!r}; leave one of them out.")
        return average, None
    if len(classes) > 2 and pos_label is None:
        raise ValueError(f"pos_label must be given with average='binary' and {len(classes)} classes.")
    return average, positive_class(classes, pos_label)


def _class_gap(
    metric: str,
    y_true: Any,
    y_pred: Any,
    sensitive_features: Any,
    sample_weight: Any,
    labels: Any,
    average: str | None,
    pos_label: Any = None,
    agg: str = "max",
) -> Any:
    """Reduce the gaps of the classes, and say what was undefined among those that were used."""
    table = group_table(
        y_true, y_pred, sensitive_features=sensitive_features, sample_weight=sample_weight, labels=labels
    )
    return gap_of_table(metric, table, average, pos_label, agg)


def gap_of_table(metric: str, table: GroupTable, average: str | None, pos_label: Any = None, agg: str = "max") -> Any:
    """Compute a gap of :data:`CLASS_METRICS` from counts."""
    average, position = resolve_average(table.classes, average, pos_label)
    used = range(len(table.classes)) if position is None else [position]
    for rate in CLASS_METRICS[metric]:
        values = RATES[rate][2](table.counts)[:, used]
        warn_undefined(metric, table, rate, values, [table.classes[k] for k in used])
    gaps = class_gaps(table.counts, *CLASS_METRICS[metric], agg=agg)
    if average is None:
        return pd.Series(gaps, index=pd.Index(list(table.classes), name="class"), name=metric)
    return float(combine_gaps(gaps, average, position))


def warn_undefined(
    metric: str,
    table: GroupTable,
    rate: str,
    rates: np.ndarray,
    classes: Sequence[Any],
    least: int = 2,
) -> None:
    """Warn by name of every rate that is 0 of 0, ``rates[group, class]``, and of gaps with too few groups."""
    undefined = np.isnan(rates)
    defined = (~undefined).sum(axis=0)
    if not undefined.any() and defined.min() >= least:
        return
    words, reason, _ = RATES[rate]
    problems = [
        f"the {words}{_of_class(classes[c])} is undefined in group {table.groups[g]!r} ({reason})"
        for c, g in np.argwhere(undefined.T)
    ]
    if len(problems) > 5:
        problems = [*problems[:5], f"{len(problems) - 5} more like these"]
    problems += [
        f"fewer than {least} groups have the {words}{_of_class(classes[c])}, so that there is no gap (nan)"
        for c in np.flatnonzero(defined < least)[:5]
    ]
    consequence = "" if not undefined.any() else " Undefined rates are left out."
    warn_user(f"{metric}: {'; '.join(problems)}.{consequence}", UndefinedGroupMetricWarning)


def _of_class(label: Any) -> str:
    return "" if label is None else f" of class {label!r}"
