"""The one table that every group metric is read from, and the rates and gaps that are read from it.

Rates and gaps take ``counts[..., group, true class, predicted class]``; the leading axes are free, so that a
thousand bootstrap tables are judged by the same line of code as the one that was observed. A rate of 0 out of 0
is nan, and nan takes no part in a gap.
"""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from skfairdp._validation import check_sensitive_features

# A table with more cells than this comes from something that is no class label (a score, an identifier).
_MOST_CELLS = 50_000_000
# Integers within a range of this size are counted directly; all other labels are looked up by hashing.
_DIRECT_RANGE = 100_000


@dataclass(frozen=True)
class GroupTable:
    """Counts of rows by group, true class and predicted class.

    Attributes
    ----------
    counts : ndarray of shape (n_groups, n_classes, n_classes)
        ``counts[g, t, p]`` rows of group ``g`` and true class ``t`` were predicted to be ``p``;
        int64, or sums of the sample weights.
    groups : tuple
        Group labels, sorted; tuples where several columns were crossed.
    names : tuple of str
        Names of the sensitive columns.
    classes : tuple
        Class labels, sorted, or in the order in which the caller listed them.
    rows : ndarray of shape (n_groups, n_classes, n_classes)
        The number of rows in each cell; ``counts`` itself if there are no weights.
    squared : ndarray or None
        With sample weights: the sum of squared weights in each cell, else None.
    """

    counts: np.ndarray
    groups: tuple[Any, ...]
    names: tuple[str, ...]
    classes: tuple[Any, ...]
    rows: np.ndarray
    squared: np.ndarray | None = None

    def index(self) -> pd.Index:
        """Return the groups as the index of a pandas table, with one level for each sensitive column."""
        if len(self.names) > 1:
            return pd.MultiIndex.from_arrays([list(level) for level in zip(*self.groups)], names=list(self.names))
        return pd.Index(list(self.groups), name=self.names[0], tupleize_cols=False)  # a tuple is one label


def group_table(
    y_true: Any, y_pred: Any, *, sensitive_features: Any, sample_weight: Any = None, labels: Any = None
) -> GroupTable:
    """Count rows by group, true class and predicted class, in one pass.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,)
        Class labels of any kind that has an order.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns), or dict of columns
        Several columns are crossed. A category that a pandas categorical declares and that has no
        row becomes an empty group.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative weights.
    labels : array-like, optional
        All class labels; needed where a class may have no row at all.

    Returns
    -------
    GroupTable
    """
    rows = read_rows(
        y_true, {"y_pred": y_pred}, sensitive_features=sensitive_features, sample_weight=sample_weight, labels=labels
    )
    counts, numbers, squared = rows.count("y_pred")
    about = (rows.groups, rows.names, rows.classes)
    table = counts[0]
    if squared is None:  # one and the same array, by which others see that there are no weights
        return GroupTable(table, *about, rows=table)
    return GroupTable(table, *about, rows=numbers[0], squared=squared[0])


@dataclass(frozen=True)
class Rows:
    """Rows as integers: what tables are counted from.

    Attributes
    ----------
    group : ndarray of shape (n_samples,)
        Place of the row's group in ``groups``.
    groups : tuple
        Group labels.
    names : tuple of str
        Names of the sensitive columns.
    true : ndarray of shape (n_samples,)
        Place of the row's true class in ``classes``.
    predicted : dict of str to ndarray
        Place of the predicted class, for every column of predictions.
    classes : tuple
        Class labels.
    weight : ndarray or None
        Weights of the rows.
    stratum : ndarray or None
        Place of the row's stratum in ``strata``; None without control features.
    strata : tuple
        Labels of the strata.
    """

    group: np.ndarray
    groups: tuple[Any, ...]
    names: tuple[str, ...]
    true: np.ndarray
    predicted: dict[str, np.ndarray]
    classes: tuple[Any, ...]
    weight: np.ndarray | None = None
    stratum: np.ndarray | None = None
    strata: tuple[Any, ...] = (None,)

    def count(self, prediction: str, chosen: "np.ndarray | None" = None) -> tuple[np.ndarray, np.ndarray, Any]:
        """Count rows, or only the chosen ones, ``[stratum, group, true class, predicted class]``.

        Returns the sums of weights, the numbers of rows, and the sums of squared weights (None without weights).
        """
        shape = (len(self.strata), len(self.groups), len(self.classes), len(self.classes))
        check_number_of_cells(shape)
        group = self.group if self.stratum is None else self.stratum * shape[1] + self.group
        cells = (group * shape[2] + self.true) * shape[3] + self.predicted[prediction]
        weight = self.weight
        if chosen is not None:
            cells, weight = cells[chosen], None if weight is None else weight[chosen]
        size = int(np.prod(shape))
        rows = np.bincount(cells, minlength=size).reshape(shape)
        if weight is None:
            return rows, rows, None
        counts = np.bincount(cells, weights=weight, minlength=size).reshape(shape)
        return counts, rows, np.bincount(cells, weights=weight**2, minlength=size).reshape(shape)


def check_number_of_cells(shape: tuple[int, ...]) -> None:
    """Refuse a table of ``[strata, groups, classes, classes]`` that no memory holds, before it is made."""
    if np.prod(shape, dtype=float) > _MOST_CELLS:
        within = "" if shape[0] == 1 else f" and {shape[0]} strata of control_features"
        raise ValueError(
            f"y_true and y_pred must hold class labels, and sensitive_features groups: {shape[2]} distinct labels "
            f"in {shape[1]} groups{within} are too many to count."
        )


def read_rows(
    y_true: Any,
    predictions: dict[str, Any],
    *,
    sensitive_features: Any,
    sample_weight: Any = None,
    labels: Any = None,
    control_features: Any = None,
) -> Rows:
    """Check the columns and turn labels and groups into integers; ``predictions`` by the name of their argument."""
    columns = {name: _label_column(values, name) for name, values in {"y_true": y_true, **predictions}.items()}
    n = len(columns["y_true"])
    for name, column in columns.items():
        if len(column) != n:
            raise ValueError(f"{name} must have one label per row of y_true: {n} expected, {len(column)} given.")
    if n == 0:
        raise ValueError("y_true is empty; give at least one row.")
    sensitive = check_sensitive_features(sensitive_features, n)
    crossed = sensitive.intersection()
    group, groups = _with_empty_groups(crossed.indices[:, 0], crossed.labels[0], sensitive_features)
    indices, classes = _encode_classes(columns, labels)
    weight = None if sample_weight is None else check_weight(sample_weight, n)
    true = indices.pop("y_true")
    if control_features is None:
        return Rows(group, groups, sensitive.names, true, indices, classes, weight)
    control = check_sensitive_features(control_features, n, name="control_features", intersection=True)
    return Rows(
        group, groups, sensitive.names, true, indices, classes, weight, control.indices[:, 0], control.labels[0]
    )


def positive_class(classes: tuple[Any, ...], pos_label: Any = None) -> int:
    """Return the position of the positive class: the larger label unless the caller names one."""
    if pos_label is not None:
        if pos_label not in classes:
            raise ValueError(f"pos_label must be one of the labels {_some_labels(classes)}; got {pos_label!r}.")
        return classes.index(pos_label)
    if len(classes) == 1:
        raise ValueError(
            f"pos_label cannot be guessed: {classes[0]!r} is the only label, and it may be the positive class or the "
            "other one. Give both labels through labels=[...]."
        )
    return max(range(len(classes)), key=classes.__getitem__)


def _label_column(values: Any, name: str) -> Any:
    """Return labels as a one-dimensional NumPy or pandas array."""
    if values is None:
        raise ValueError(f"{name} is missing: give one class label per row.")
    if isinstance(values, str | bytes) or np.isscalar(values):
        raise TypeError(f"{name} must hold one class label per row; got the single value {values!r}.")
    if isinstance(values, pd.Series | pd.Index):
        return values.to_numpy() if isinstance(values.dtype, np.dtype) else values.array
    if isinstance(values, pd.api.extensions.ExtensionArray):
        return values
    if hasattr(values, "to_numpy"):  # data frames, polars
        values = values.to_numpy()
    elif not isinstance(values, np.ndarray):
        values = list(values) if isinstance(values, Iterable) else values
        array = np.asarray(values)
        # A list of different kinds would be turned into text, and 1 into "1".
        values = np.array(values, dtype=object) if array.dtype.kind in "US" else array
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise ValueError(f"{name} must have shape (n_samples,); got shape {values.shape}.")
    return values


def _encode_classes(columns: dict[str, Any], labels: Any) -> tuple[dict[str, np.ndarray], tuple[Any, ...]]:
    """Code all columns by the same classes."""
    wanted = None if labels is None else check_labels(labels)
    indexed = _direct_indices(columns) or {name: _factorize_labels(column, name) for name, column in columns.items()}
    classes = wanted or union_of_labels([label for _, found in indexed.values() for label in found])
    position = {label: k for k, label in enumerate(classes)}
    positions = {}
    for name, (indices, found) in indexed.items():
        unknown = [label for label in found if label is not None and label not in position]
        if unknown:
            raise ValueError(f"{name} holds labels that labels does not list: {_some_labels(unknown)}.")
        lookup = np.array([-1 if label is None else position[label] for label in found], dtype=np.intp)
        # Most binary labels are their own position already.
        positions[name] = indices if np.array_equal(lookup, np.arange(len(lookup))) else lookup[indices]
    return positions, classes


def _direct_indices(columns: dict[str, Any]) -> "dict[str, tuple[np.ndarray, list]] | None":
    """Code integers of a small range by subtracting the least; labels that do not occur are None."""
    if not all(isinstance(column, np.ndarray) and column.dtype.kind in "biu" for column in columns.values()):
        return None
    low = min(int(column.min()) for column in columns.values())
    high = max(int(column.max()) for column in columns.values())
    if high - low >= _DIRECT_RANGE or max(abs(low), abs(high)) > 2**62:
        return None
    indexed = {}
    plain = bool if all(column.dtype.kind == "b" for column in columns.values()) else int
    for name, column in columns.items():
        indices = column.astype(np.intp, copy=False)
        indices = indices - low if low else indices
        occurs = np.bincount(indices, minlength=high - low + 1) > 0
        indexed[name] = (indices, [plain(low + k) if present else None for k, present in enumerate(occurs)])
    return indexed


def _factorize_labels(column: Any, name: str) -> tuple[np.ndarray, list[Any]]:
    try:
        indices, uniques = pd.factorize(column)
    except TypeError as error:
        raise TypeError(f"{name} must hold class labels that can be hashed ({error}).") from None
    missing = np.flatnonzero(indices < 0)
    if missing.size:
        raise ValueError(
            f"{name} has missing values: {missing.size} of {len(indices)} rows, first at row {missing[0]}."
        )
    found = [label.item() if isinstance(label, np.generic) else label for label in uniques]
    odd = next((label for label in found if isinstance(label, float) and not label.is_integer()), None)
    if odd is not None:
        raise ValueError(f"{name} must hold class labels, not scores; got {odd!r}.")
    return indices, found


def check_labels(labels: Any) -> tuple[Any, ...]:
    """Return the class labels that the caller lists, each once."""
    column = _label_column(labels, "labels")
    indices, found = _factorize_labels(column, "labels")
    if len(found) != len(indices) or not found:
        raise ValueError(f"labels must list every class once; got {_some_labels(list(labels))}.")
    return tuple(found)


def union_of_labels(labels: list) -> tuple[Any, ...]:
    """Return the labels that occur, sorted."""
    found = {label for label in labels if label is not None}
    if len(found) == 1:  # 0 and 1, or -1 and 1, are a pair even if a fold holds only one of them
        (only,) = found
        if isinstance(only, int | float) and only in (-1, 0, 1):
            found = {-1, 1} if only == -1 else {False, True} if isinstance(only, bool) else {0, 1}
    try:
        return tuple(sorted(found))
    except TypeError:
        kinds = sorted({type(label).__name__ for label in found})
        raise TypeError(
            f"y_true and y_pred must hold labels of one kind; got {' and '.join(kinds)}. Convert one of them."
        ) from None


def _with_empty_groups(
    indices: np.ndarray, groups: tuple[Hashable, ...], sensitive_features: Any
) -> tuple[np.ndarray, tuple[Hashable, ...]]:
    """Add the categories that a single pandas categorical column declares and that have no row."""
    column = sensitive_features
    if isinstance(column, pd.DataFrame) and column.shape[1] == 1:
        column = column.iloc[:, 0]
    dtype = getattr(column, "dtype", None)
    if not isinstance(dtype, pd.CategoricalDtype):
        return indices, groups
    empty = [category for category in dtype.categories.tolist() if category not in set(groups)]
    if not empty:
        return indices, groups
    try:
        declared = tuple(sorted([*groups, *empty]))
    except TypeError:
        declared = (*groups, *empty)
    return np.array([declared.index(group) for group in groups])[indices], declared


def check_weight(sample_weight: Any, n: int) -> np.ndarray:
    try:
        weight = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"sample_weight must hold one number per row ({error}).") from None
    if weight.shape != (n,):
        raise ValueError(f"sample_weight must have shape ({n},), one number per row; got shape {weight.shape}.")
    bad = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0)))
    if bad.size:
        raise ValueError(f"sample_weight must be finite and not negative; got {weight[bad[0]]} at row {bad[0]}.")
    if not weight.any():
        raise ValueError("sample_weight is zero in every row; at least one row must count.")
    return weight


def _some_labels(labels: Any, most: int = 10) -> str:
    """Write a list of labels, shortened if it is long."""
    listed = ", ".join(repr(label) for label in list(labels)[:most])
    return f"[{listed}{', ...' if len(labels) > most else ''}]"


def _rate_or_nan(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    return np.divide(part, whole, out=np.full(np.shape(whole), np.nan), where=whole > 0)


def accuracy_parts(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the correct rows and all rows of each group, ``[..., group]``."""
    return np.trace(counts, axis1=-2, axis2=-1), counts.sum(axis=(-2, -1))


def true_positives(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the true positives and the positives of each group and class."""
    return np.diagonal(counts, axis1=-2, axis2=-1), counts.sum(axis=-1)


def false_positives(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the false positives and the negatives of each group and class.

    Both are sums over the other classes rather than differences from a total: with weights, a difference
    of two equal sums need not be zero.
    """
    others = 1 - np.eye(counts.shape[-1], dtype=counts.dtype)
    return (counts * others).sum(axis=-2), counts.sum(axis=-1) @ others


def selected(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows predicted to be of a class and all rows, of each group and class."""
    total = counts.sum(axis=(-2, -1))
    return counts.sum(axis=-2), np.broadcast_to(total[..., None], counts.shape[:-1])


def correctly_selected(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the true positives and all predicted positives of each group and class."""
    return np.diagonal(counts, axis1=-2, axis2=-1), counts.sum(axis=-2)


# rate -> function of the counts that returns its numerator and denominator
RATE_PARTS: dict[str, Callable] = {
    "accuracy": accuracy_parts,
    "tpr": true_positives,
    "fpr": false_positives,
    "selection_rate": selected,
    "ppv": correctly_selected,
}


def accuracy_rates(counts: np.ndarray) -> np.ndarray:
    """Return the share of correct rows of each group, ``[..., group]``."""
    return _rate_or_nan(*accuracy_parts(counts))


def true_positive_rates(counts: np.ndarray) -> np.ndarray:
    """Return P(predicted c | true c) of each group and class, ``[..., group, class]``."""
    return _rate_or_nan(*true_positives(counts))


def false_positive_rates(counts: np.ndarray) -> np.ndarray:
    """Return P(predicted c | true class is not c) of each group and class, ``[..., group, class]``."""
    return _rate_or_nan(*false_positives(counts))


def selection_rates(counts: np.ndarray) -> np.ndarray:
    """Return P(predicted c) of each group and class, ``[..., group, class]``."""
    return _rate_or_nan(*selected(counts))


def positive_predictive_values(counts: np.ndarray) -> np.ndarray:
    """Return P(true c | predicted c) of each group and class, ``[..., group, class]``."""
    return _rate_or_nan(*correctly_selected(counts))


# rate -> (words for it, why it can be undefined, function of the counts)
RATES: dict[str, tuple[str, str, Callable]] = {
    "accuracy": ("accuracy", "it has no row", accuracy_rates),
    "tpr": ("true positive rate", "it has no row of that class", true_positive_rates),
    "fpr": ("false positive rate", "it has no row of any other class", false_positive_rates),
    "selection_rate": ("selection rate", "it has no row", selection_rates),
    "ppv": ("positive predictive value", "no row of it is predicted to be of that class", positive_predictive_values),
}


def largest_difference(rates: np.ndarray, axis: int) -> np.ndarray:
    """Return the largest difference between two groups; nan where fewer than two have the rate."""
    defined = ~np.isnan(rates)
    highest = np.where(defined, rates, -np.inf).max(axis=axis)
    lowest = np.where(defined, rates, np.inf).min(axis=axis)
    return np.subtract(highest, lowest, out=np.full(highest.shape, np.nan), where=defined.sum(axis=axis) >= 2)


def tpr_gaps(counts: np.ndarray) -> np.ndarray:
    """Return the gap in true positive rate of each class, ``[..., class]``."""
    return class_gaps(counts, "tpr")


def class_gaps(counts: np.ndarray, *rates: str, agg: str = "max") -> np.ndarray:
    """Return the largest, or the mean, of the gaps of each class in some of the ``RATES``, ``[..., class]``."""
    gaps = [largest_difference(RATES[rate][2](counts), axis=-2) for rate in rates]
    return combine_gaps(np.stack(gaps, axis=-1), agg)


def combine_gaps(per_class: np.ndarray, average: str, position: int | None = None) -> np.ndarray:
    """Reduce the last axis to one number, over the entries that are defined."""
    if average == "binary":
        return per_class[..., position]
    defined = ~np.isnan(per_class)
    if average == "max":
        value = np.where(defined, per_class, -np.inf).max(axis=-1)
    else:
        powers = per_class**2 if average == "rms" else per_class
        value = np.where(defined, powers, 0.0).sum(axis=-1) / np.maximum(defined.sum(axis=-1), 1)
        value = np.sqrt(value) if average == "rms" else value
    return np.where(defined.any(axis=-1), value, np.nan)
