"""Turn a table as it comes into features, target and groups, say what was done to it, and divide its rows."""

import re
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skfairdp._validation import check_choice

MISSING = "(missing)"  # the category of rows that have no value
MAX_CLASSES = 50  # a target with more values is a number or a text, not a class
MAX_GROUPS = 20  # the same for one sensitive column
MIN_ROWS = 50  # with fewer, the test rows say nothing
MIN_CLASS_ROWS = 10  # rows of each class, so that every fold and the test rows have some
MAX_CATEGORIES = 25  # of one column; all rarer categories become one
_HUGE = 1e100  # the square of a larger number overflows, so that it has no variance to scale by
_DATE = re.compile(r"\s*(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4})([T ]\d{1,2}:\d{2}.*)?\s*")


@dataclass(frozen=True)
class PreparedTable:
    """What is left of a table.

    Attributes
    ----------
    X : DataFrame
        Features: float columns, and text columns without missing values.
    y : ndarray
        Class labels.
    sensitive : DataFrame
        Sensitive columns.
    raw : DataFrame
        The same rows as they came, for models that know their own columns.
    classes : tuple
        Class labels, sorted.
    pos_label : object
        The positive class; None with more than two classes.
    target : str
        Name of the target column.
    notes : tuple of str
        What was left out or filled in, one sentence each.
    """

    X: pd.DataFrame
    y: np.ndarray
    sensitive: pd.DataFrame
    raw: pd.DataFrame
    classes: tuple[Any, ...]
    pos_label: Any
    target: str
    notes: tuple[str, ...]

    @property
    def fairness(self) -> str:
        """The fairness metric that fits the number of classes."""
        return "tpr_gap" if len(self.classes) == 2 else "grms"

    def preprocessor(self) -> ColumnTransformer:
        """Return an unfitted transformer of ``X`` into numbers; it learns from training rows only."""
        numeric = [name for name in self.X if pd.api.types.is_numeric_dtype(self.X[name])]
        categorical = [name for name in self.X if name not in numeric]
        imputer = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
        encoder = OneHotEncoder(
            handle_unknown="infrequent_if_exist", max_categories=MAX_CATEGORIES, sparse_output=False
        )
        return ColumnTransformer(
            [("numbers", make_pipeline(imputer, StandardScaler()), numeric), ("categories", encoder, categorical)],
            verbose_feature_names_out=False,
        )


def prepare_table(
    frame: Any, target: Any, sensitive: Any, *, pos_label: Any = None, keep_sensitive: bool = False
) -> PreparedTable:
    """Check the roles of the columns, drop what cannot be used, and note it."""
    frame = _check_frame(frame)
    target, names = _check_roles(frame, target, sensitive)
    notes: list[str] = []
    known = frame[[target, *names]].notna().all(axis=1).to_numpy()
    if len(frame) and not known.any():
        raise ValueError(f"every row lacks a value in {target!r} or {', '.join(map(repr, names))}.")
    if not known.all():
        notes.append(f"{_number_of_rows(int((~known).sum()))} without target or sensitive value left out.")
        frame = frame[known]
    frame = frame.reset_index(drop=True)
    if len(frame) < MIN_ROWS:
        raise ValueError(
            f"the table has {_number_of_rows(len(frame))} to work with; an audit needs at least {MIN_ROWS}."
        )
    y, classes = _target_classes(frame[target], target)
    positive = _positive_class(classes, pos_label)
    for name in names:
        _check_groups(frame[name], name, notes)
    features = [name for name in frame if name != target and (keep_sensitive or name not in names)]
    if not keep_sensitive:
        notes.append(f"Not used as a feature: {', '.join(map(repr, names))} (sensitive).")
    X = _feature_columns(frame[features], notes)
    if X.shape[1] == 0:
        raise ValueError("no column is left to predict from: " + " ".join(notes))
    return PreparedTable(X, y, frame[names], frame, classes, positive, target, tuple(notes))


def _check_frame(frame: Any) -> pd.DataFrame:
    """Return the table as pandas with text column names, each once."""
    if hasattr(frame, "to_pandas") and not isinstance(frame, pd.DataFrame):
        frame = frame.to_pandas()
    if not isinstance(frame, pd.DataFrame):
        raise TypeError(f"frame must be a pandas or polars DataFrame; got {type(frame).__name__}.")
    frame = frame.set_axis([str(column) for column in frame.columns], axis=1)
    twice = sorted(set(frame.columns[frame.columns.duplicated()]))
    if twice:
        raise ValueError(f"the table has two columns of the same name: {', '.join(map(repr, twice))}.")
    if frame.shape[1] < 3:
        raise ValueError(
            f"the table has {frame.shape[1]} column{'s' * (frame.shape[1] != 1)} "
            f"({', '.join(map(repr, frame.columns)) or 'none'}); an audit needs at least three: target, sensitive, "
            "and something to predict from. Is the separator right?"
        )
    return frame


def _check_roles(frame: pd.DataFrame, target: Any, sensitive: Any) -> tuple[str, list[str]]:
    """Check the names of target and sensitive columns."""
    known = list(frame.columns)
    target = check_choice(str(target), known, "column")
    given = [sensitive] if isinstance(sensitive, str) else list(sensitive)
    if not given:
        raise ValueError("sensitive must name at least one column.")
    names = [check_choice(str(name), known, "column") for name in given]
    if len(set(names)) < len(names):
        raise ValueError(f"sensitive names a column twice: {names}.")
    if target in names:
        raise ValueError(f"column {target!r} cannot be the target and sensitive at once.")
    return target, names


def _number_of_rows(n: int) -> str:
    return f"{n:,} row{'s' * (n != 1)}"


def _target_classes(column: pd.Series, name: str) -> tuple[np.ndarray, tuple[Any, ...]]:
    if not (pd.api.types.is_numeric_dtype(column.dtype) or pd.api.types.is_bool_dtype(column.dtype)):
        column = column.astype(object).map(str)  # a class is a name; text and numbers in one column have no order
    class_indices, found = pd.factorize(column, sort=True)
    labels = [label.item() if isinstance(label, np.generic) else label for label in found]
    if len(labels) < 2:
        raise ValueError(f"the target {name!r} is constant: every row is {labels[0]!r}.")
    if len(labels) > MAX_CLASSES:
        raise ValueError(
            f"the target {name!r} has {len(labels):,} different values; an audit knows up to {MAX_CLASSES} classes. "
            "Cut a number into classes first."
        )
    counts = np.bincount(class_indices)
    if counts.min() < MIN_CLASS_ROWS:
        rare = labels[int(counts.argmin())]
        raise ValueError(
            f"class {rare!r} of the target {name!r} has {_number_of_rows(int(counts.min()))}; each class needs at "
            f"least {MIN_CLASS_ROWS}. Merge rare classes or drop their rows."
        )
    values = np.array(labels, dtype=object if isinstance(labels[0], str) else None)
    return values[class_indices], tuple(labels)


def _positive_class(classes: tuple[Any, ...], pos_label: Any) -> Any:
    if len(classes) > 2:
        if pos_label is not None:
            raise ValueError(f"pos_label={pos_label!r} has no meaning with {len(classes)} classes; leave it out.")
        return None
    if pos_label is None:
        return classes[-1]
    for label in classes:
        if label == pos_label or str(label) == str(pos_label):
            return label
    raise ValueError(f"pos_label must be one of the classes {list(classes)}; got {pos_label!r}.")


def _check_groups(column: pd.Series, name: str, notes: list[str]) -> None:
    if column.dtype == object and not column.map(lambda value: isinstance(value, Hashable)).all():
        raise ValueError(f"the sensitive column {name!r} holds values that are no labels (lists or dicts).")
    counts = column.value_counts()
    counts = counts[counts > 0]
    if len(counts) < 2:
        raise ValueError(f"the sensitive column {name!r} has one group only: every row is {counts.index[0]!r}.")
    if len(counts) > MAX_GROUPS:
        raise ValueError(
            f"the sensitive column {name!r} has {len(counts):,} different values; an audit knows up to {MAX_GROUPS} "
            "groups. Cut a number into ranges, or merge groups, first."
        )
    for label, count in counts[counts < 4 * MIN_CLASS_ROWS].items():
        notes.append(
            f"Group {label!r} of {name!r} has {_number_of_rows(int(count))} only; what is said of it is uncertain."
        )


def _feature_columns(frame: pd.DataFrame, notes: list[str]) -> pd.DataFrame:
    kept: dict[str, pd.Series] = {}
    dropped: dict[str, list[str]] = {}
    filled = []
    for name in frame:
        column = frame[name]
        reason = _reason_to_drop(column)
        if reason is not None:
            dropped.setdefault(reason, []).append(repr(name))
            continue
        if column.isna().any():
            filled.append(repr(name))
        kept[name] = _number(column, name, notes) if _is_numeric(column) else _text(column)
    notes += [f"Left out, {reason}: {', '.join(names)}." for reason, names in dropped.items()]
    if filled:
        notes.append(
            f"Missing values in {', '.join(filled)}: numbers get the median and a column that says so, categories a "
            "category of their own."
        )
    return pd.DataFrame(kept, index=frame.index)


def _is_numeric(column: pd.Series) -> bool:
    return pd.api.types.is_numeric_dtype(column.dtype) and not pd.api.types.is_complex_dtype(column.dtype)


def _reason_to_drop(column: pd.Series) -> str | None:
    present = column.dropna()
    if present.empty:
        return "no value at all"
    if pd.api.types.is_datetime64_any_dtype(column.dtype) or pd.api.types.is_timedelta64_dtype(column.dtype):
        return "dates and times"
    try:
        n_distinct = present.nunique()
    except TypeError:
        return "values that are neither numbers nor labels"
    if n_distinct == 1 and len(present) == len(column):
        return "the same value in every row"
    if _is_numeric(column):
        whole = pd.api.types.is_integer_dtype(column.dtype) and n_distinct == len(column)
        return "numbers of the rows" if whole and present.max() - present.min() == len(column) - 1 else None
    sample = present.head(200).astype(str)
    if all(_DATE.fullmatch(value) for value in sample):
        return "dates and times"
    if n_distinct > 50 and n_distinct > len(present) / 2:
        return "nearly every row has a value of its own (an identifier or free text)"
    return None


def _number(column: pd.Series, name: str, notes: list[str]) -> pd.Series:
    values = column.to_numpy(dtype=np.float64, na_value=np.nan).copy()
    beyond = np.abs(values) > _HUGE
    if beyond.any():
        values[beyond] = np.nan
        notes.append(
            f"{_number_of_rows(int(beyond.sum()))} of {name!r} with infinity or numbers beyond 1e100: taken as missing."
        )
    return pd.Series(values, index=column.index)


def _text(column: pd.Series) -> pd.Series:
    texts = column.astype(object).map(str, na_action="ignore")
    return texts.where(column.notna(), MISSING).astype(object)


def _in_strata_order(y: np.ndarray, groups: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Return the rows class by class, inside a class group by group, at random inside a group."""
    _, classes = np.unique(y, return_inverse=True)
    return np.lexsort((generator.permutation(len(y)), groups, classes))


def hold_out(
    y: np.ndarray, groups: np.ndarray, test_size: float, generator: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return training and test rows.

    Every k-th row of the ordered rows is taken, so that the test rows of each class, and of each group inside
    it, are the nearest whole number to their share: no stratum can be too small to divide.
    """
    order = _in_strata_order(y, groups, generator)
    places = np.floor(np.arange(1, len(y) + 1) * test_size + 1e-9)  # 0.29 * 100 is a little less than 29
    taken = np.diff(places, prepend=0.0) > 0
    return np.sort(order[~taken]), np.sort(order[taken])


def validation_folds(
    y: np.ndarray, groups: np.ndarray, n_splits: int, generator: np.random.Generator
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return ``n_splits`` pairs of training and validation rows; each row is validated once."""
    part = np.empty(len(y), dtype=np.intp)
    part[_in_strata_order(y, groups, generator)] = np.arange(len(y)) % n_splits
    return [(np.flatnonzero(part != k), np.flatnonzero(part == k)) for k in range(n_splits)]
