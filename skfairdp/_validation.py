"""One function per question about an argument.

Each either answers or raises an error that names the argument, what was given
and what is allowed.
"""

import difflib
import math
import sys
import warnings
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
import pandas as pd

from skfairdp.exceptions import ContinuousSensitiveFeatureWarning

_MOST_VOTES = 2**20  # counts times the finest grid of the vote noise stay exact in float64
_MOST_NUMBERS = 20  # different numbers in a sensitive column; with more it is a measurement rather than a set of groups


def check_number(value: Any, name: str, allowed: str, is_allowed: Callable[[float], bool]) -> float:
    """Return ``value`` as a float if it is a number that is allowed, or say in words what is."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be {allowed}; got {value!r} of type {type(value).__name__}.")
    if not is_allowed(float(value)):
        raise ValueError(f"{name} must be {allowed}; got {value!r}.")
    return float(value)


def check_option(value: Any, name: str, options: Sequence[str]) -> str:
    """Return ``value`` if it is one of the options, or say which there are."""
    if value not in options:
        raise ValueError(f"{name} must be one of {options}; got {value!r}.")
    return value


def check_epsilon(epsilon: Any, *, name: str = "epsilon", allow_inf: bool = True, allow_zero: bool = False) -> float:
    """Return ``epsilon`` as a float, or say what is wrong with it."""
    lower = "0 or more" if allow_zero else "greater than 0"
    allowed = f"a number {lower}" + (" (infinity switches the noise off)" if allow_inf else " and finite")
    return check_number(
        epsilon, name, allowed, lambda e: (e > 0 or (e == 0 and allow_zero)) and (e < math.inf or allow_inf)
    )


def check_delta(delta: Any, *, name: str = "delta", allow_zero: bool = False) -> float:
    """Return ``delta`` as a float in (0, 1), or [0, 1) when zero is allowed."""
    allowed = f"a probability in {'[0, 1)' if allow_zero else '(0, 1)'}"
    return check_number(delta, name, allowed, lambda d: 0 < d < 1 or (d == 0 and allow_zero))


def check_count(value: Any, name: str, least: int = 1, most: int | None = None) -> int:
    """Return ``value`` as an int of at least ``least`` (and at most ``most``), or say what is wrong with it."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or value < least or (most is not None and value > most):
        end = "" if most is None else f" and at most {most}"
        raise ValueError(f"{name} must be a whole number of at least {least}{end}; got {value!r}.")
    return int(value)


def check_documents(X: Any, *, name: str = "X") -> list[str]:
    """Read documents of any one-dimensional container into a list of strings, or say what is wrong with them."""
    if isinstance(X, str | bytes) or not isinstance(X, Iterable):
        raise TypeError(f"{name} must be a collection of documents (strings); got a single {type(X).__name__}.")
    if getattr(X, "ndim", 1) != 1 or hasattr(X, "columns"):
        raise ValueError(
            f"{name} must be one-dimensional, one document per row; got a {type(X).__name__} of columns. "
            "Give one of them."
        )
    documents = list(X)
    if not documents:
        raise ValueError(f"{name} holds no document; give at least one.")
    for i, document in enumerate(documents):
        if not isinstance(document, str):
            raise TypeError(f"{name} must hold strings; row {i} holds {document!r} of type {type(document).__name__}.")
    return documents


@dataclass(frozen=True)
class SensitiveGroups:
    """Sensitive columns as integers.

    Attributes
    ----------
    indices : ndarray of shape (n_samples, n_columns)
        ``indices[i, j]`` is the place of row i in ``labels[j]``.
    labels : tuple of tuples
        The group labels of each column, sorted, so that row order does not matter.
    names : tuple of str
        The column names.
    """

    indices: np.ndarray
    labels: tuple[tuple[Hashable, ...], ...]
    names: tuple[str, ...]

    @property
    def n_columns(self) -> int:
        """Number of sensitive columns."""
        return len(self.names)

    @property
    def n_groups(self) -> tuple[int, ...]:
        """Number of groups of each column."""
        return tuple(len(labels) for labels in self.labels)

    def intersection(self) -> "SensitiveGroups":
        """Cross the columns: one column whose groups are the label tuples that occur."""
        if self.n_columns == 1:
            return self
        # Two columns at a time: the crossed code stays below n_samples * n_groups however many columns
        # there are, and one integer per row is found faster than one tuple per row.
        crossed = self.indices[:, 0]
        combinations = np.arange(self.n_groups[0])[:, None]
        for j in range(1, self.n_columns):
            found, crossed = _distinct_values(crossed * self.n_groups[j] + self.indices[:, j])
            combinations = np.column_stack([combinations[found // self.n_groups[j]], found % self.n_groups[j]])
        labels = tuple(tuple(self.labels[j][c] for j, c in enumerate(row)) for row in combinations)
        return SensitiveGroups(crossed.reshape(-1, 1), (labels,), (" x ".join(self.names),))


def check_sensitive_features(
    sensitive_features: Any,
    n_samples: int | None = None,
    *,
    name: str = "sensitive_features",
    intersection: bool = False,
    min_groups: int = 1,
) -> SensitiveGroups:
    """Read sensitive features of any common container into integers.

    Parameters
    ----------
    sensitive_features : list, ndarray, pandas or polars Series or DataFrame, dict of columns
        One column or several; labels may be anything hashable. A list of lists is read as
        rows of several columns, a list of tuples as one column whose labels are tuples.
    n_samples : int, optional
        The number of rows that must be there.
    name : str
        The argument's name, for error messages.
    intersection : bool
        Cross several columns into one.
    min_groups : int
        The least number of groups each resulting column must have.

    Returns
    -------
    SensitiveGroups
    """
    groups = _index_columns(_sensitive_columns(sensitive_features, name), name)
    if n_samples is not None and len(groups.indices) != n_samples:
        raise ValueError(f"{name} must have one row per sample: {n_samples} expected, {len(groups.indices)} given.")
    if intersection:
        groups = groups.intersection()
    for column, labels in zip(groups.names, groups.labels):
        if len(labels) < min_groups:
            raise ValueError(
                f"{name} must hold at least {min_groups} groups; column {column!r} holds {len(labels)}: {labels}."
            )
    return groups


def _sensitive_columns(values: Any, name: str) -> dict[str, Any]:
    """Split a container into named one-dimensional columns."""
    if values is None:
        raise ValueError(f"{name} is missing: give one value per row (a list, array, Series or DataFrame).")
    if isinstance(values, str | bytes) or np.isscalar(values):
        raise TypeError(f"{name} must hold one value per row; got the single value {values!r}.")
    columns: list[tuple[str, Any]]
    if isinstance(values, pd.DataFrame):
        columns = [(str(column), values.iloc[:, j]) for j, column in enumerate(values.columns)]
    elif isinstance(values, Mapping):
        columns = [(str(column), _object_column(list(v))) for column, v in values.items()]
    elif isinstance(values, pd.Series | pd.Index | pd.api.extensions.ExtensionArray):
        label = getattr(values, "name", None)
        return {name if label is None else str(label): pd.Series(values)}
    elif hasattr(values, "get_columns"):  # polars DataFrame
        columns = [(column.name, _object_column(column.to_list())) for column in values.get_columns()]
    elif type(values).__module__.split(".")[0] == "polars":  # polars Series
        return {values.name or name: _object_column(values.to_list())}
    elif isinstance(values, np.ndarray):
        return _sensitive_columns_of_array(values, name)
    else:
        items = list(values)
        if items and all(isinstance(item, list | np.ndarray) for item in items):
            if len({len(item) for item in items}) > 1:
                raise ValueError(f"{name} was given as rows of different lengths; every row needs the same columns.")
            rows = np.empty((len(items), len(items[0])), dtype=object)
            for i, item in enumerate(items):
                rows[i, :] = item
            return _sensitive_columns_of_array(rows, name)
        return {name: _object_column(items)}
    if not columns:
        raise ValueError(f"{name} has no column; give at least one.")
    named = dict(columns)
    if len(named) != len(columns):
        raise ValueError(f"{name} has two columns of the same name; names given: {[column for column, _ in columns]}.")
    return named


def _sensitive_columns_of_array(values: np.ndarray, name: str) -> dict[str, Any]:
    if values.ndim == 1:
        return {name: values}
    if values.ndim != 2 or values.shape[1] == 0:
        raise ValueError(f"{name} must have shape (n_samples,) or (n_samples, n_columns); got shape {values.shape}.")
    if values.shape[1] == 1:
        return {name: values[:, 0]}
    return {f"{name}_{j}": values[:, j] for j in range(values.shape[1])}


def _object_column(items: list[Any]) -> np.ndarray:
    """Make an object array of a list without looking into tuples."""
    return pd.Series(items, dtype=object).to_numpy()


def _index_columns(columns: dict[str, Any], name: str) -> SensitiveGroups:
    lengths = {column: len(values) for column, values in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"{name} has columns of different lengths: {lengths}.")
    if next(iter(lengths.values())) == 0:
        raise ValueError(f"{name} is empty; give one value per row.")
    indices, labels = zip(*(_index_column(values, column, name) for column, values in columns.items()))
    return SensitiveGroups(np.column_stack(indices), labels, tuple(columns))


def _index_column(values: Any, column: str, name: str) -> tuple[np.ndarray, tuple[Hashable, ...]]:
    """Code one column by its sorted labels."""
    try:
        positions, uniques = pd.factorize(values)
    except TypeError as error:
        raise TypeError(
            f"{name} must hold hashable labels; column {column!r} holds something else ({error})."
        ) from None
    missing = np.flatnonzero(positions < 0)
    if missing.size:
        raise ValueError(
            f"{name} has missing values: column {column!r}, {missing.size} of {len(positions)} rows, the first at row "
            f"{missing[0]}. Drop these rows, or give missing values a label of their own."
        )
    # NumPy scalars become the Python values that a person would write.
    found: list[Any] = [label.item() if isinstance(label, np.generic) else label for label in uniques]
    if len(found) > _MOST_NUMBERS and all(isinstance(label, Real) for label in found):
        warn_user(
            f"{name}: column {column!r} holds {len(found)} different numbers, and each of them is a group of its own. "
            f"Bin a measurement first, for instance pandas.qcut({column}, 4) or pandas.cut({column}, [0, 25, 40, 65, "
            "120]); numbers that are names of groups can be given as strings.",
            ContinuousSensitiveFeatureWarning,
        )
    try:
        order = sorted(range(len(found)), key=lambda k: found[k])
    except TypeError:  # labels of different types have no order of their own
        order = sorted(range(len(found)), key=lambda k: (type(found[k]).__name__, repr(found[k])))
    rank = np.empty(len(found), dtype=np.intp)
    rank[order] = np.arange(len(found))
    return rank[positions], tuple(found[k] for k in order)


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the first line outside skfairdp and scikit-learn, however deep the caller is.

    Parameters
    ----------
    message : str
        What to say.
    category : type
        Kind of warning.
    """
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in ("skfairdp", "sklearn"):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def _distinct_values(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the sorted values that occur and, for every row, the position of its value among them."""
    if values.max() > 4 * len(values) + 1024:
        found, positions = np.unique(values, return_inverse=True)
        return found, positions
    occurs = np.bincount(values) > 0
    return np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[values]


def check_votes(votes: Any, *, name: str = "votes", least_classes: int = 1, whole: bool = False) -> np.ndarray:
    """Return vote counts as a float array of shape (n_samples, n_classes), or say what is wrong with them.

    Parameters
    ----------
    votes : array-like
        One row of counts per query.
    name : str
        The argument's name, for error messages.
    least_classes : int
        The least number of classes.
    whole : bool
        Whether counts must be whole numbers that the noise tables can hold.

    Returns
    -------
    ndarray of float
    """
    counts = np.asarray(votes, dtype=float)
    if counts.ndim != 2 or counts.shape[1] < least_classes:
        more = f" with at least {least_classes} classes" if least_classes > 1 else ""
        raise ValueError(f"{name} must have shape (n_samples, n_classes){more}; got shape {counts.shape}.")
    if not (np.isfinite(counts) & (counts >= 0)).all():
        raise ValueError(f"{name} must hold vote counts: finite and not negative.")
    if whole and not (np.array_equal(counts, np.rint(counts)) and counts.max(initial=0) <= _MOST_VOTES):
        raise ValueError(f"{name} must hold whole numbers, at most 2**20.")
    return counts


def check_choice(name: str, known: Sequence[str], what: str) -> str:
    """Return ``name`` if it is one of the known names, else raise an error that suggests the nearest one.

    Parameters
    ----------
    name : str
        What was asked for.
    known : sequence of str
        What there is.
    what : str
        What a name stands for, for the error message: ``"column"``, ``"method"``.

    Returns
    -------
    str
    """
    if name in known:
        return name
    by_lower = {str(one).strip().lower(): str(one) for one in known}
    close = difflib.get_close_matches(name.strip().lower(), list(by_lower), n=1, cutoff=0.6)
    if close:
        raise ValueError(f"there is no {what} {name!r}. Did you mean {by_lower[close[0]]!r}?")
    listed = ", ".join(repr(one) for one in known[:20]) + (f" and {len(known) - 20} more" if len(known) > 20 else "")
    raise ValueError(f"there is no {what} {name!r}. There are: {listed}.")


def check_public_rows(X: Any, public: Any) -> None:
    """Refuse public rows that are the very object to protect, or a view of it.

    Parameters
    ----------
    X, public : array-like or sparse matrix
        The rows to protect, and those that may be known.
    """
    # A comparison of values would reveal by its error that a guess of the whole private table is right.
    arrays = isinstance(X, np.ndarray) and isinstance(public, np.ndarray)
    if public is X or (arrays and np.shares_memory(X, public)):
        raise ValueError("public holds the same rows as X, which are to be protected; give rows that are public.")
