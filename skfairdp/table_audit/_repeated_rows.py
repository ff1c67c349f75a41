"""Rows that are there twice, and rows of one person."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from skfairdp.table_audit._column_kinds import is_numeric

_AT_ONCE = 8  # columns looked at before rows that are unlike all others are put aside


@dataclass(frozen=True)
class RepeatedRows:
    """How often rows are repeated.

    Attributes
    ----------
    copies : float
        Share of the rows that have come before, with the same target.
    contradictions : float
        Share of the rows that equal another row in everything but the target.
    first : ndarray of bool
        Rows that have not come before.
    """

    copies: float
    contradictions: float
    first: np.ndarray


def repeated_rows(columns: list[pd.Series], y: np.ndarray) -> RepeatedRows:
    """Compare all rows in all columns.

    Columns are looked at a few at a time, numbers first, and a row that is unlike every other so far is put aside, so
    that a wide or long table costs little.
    """
    columns = sorted(columns, key=lambda column: not is_numeric(column))
    rows, seen = np.arange(len(y)), np.zeros(len(y), dtype=np.uint64)
    for start in range(0, len(columns), _AT_ONCE):
        for column in columns[start : start + _AT_ONCE]:
            seen = seen * np.uint64(1_000_003) ^ _hashes(column.iloc[rows])
        alike = pd.Series(seen).duplicated(keep=False).to_numpy()
        rows, seen = rows[alike], seen[alike]
        if not len(rows):
            break
    found = pd.DataFrame({"row": seen, "y": pd.factorize(y[rows])[0]})
    again = found.duplicated().to_numpy()
    n_targets = found.groupby("row")["y"].transform("nunique").to_numpy()
    first = np.ones(len(y), dtype=bool)
    first[rows[again]] = False
    return RepeatedRows(float(again.sum() / len(y)), float((n_targets > 1).sum() / len(y)), first)


def alike_by_chance(columns: list[pd.Series], n_rows: int) -> float:
    """Return how many of ``n_rows`` rows are like a given one, if columns had nothing to do with each other."""
    expected = float(n_rows)
    for column in columns:
        try:
            counts = column.value_counts(dropna=False).to_numpy()
        except TypeError:  # lists or dicts
            continue
        expected *= (counts * (counts - 1)).sum() / (len(column) * (len(column) - 1))
    return expected


def _hashes(column: pd.Series) -> np.ndarray:
    values = column.to_numpy()
    try:
        return pd.util.hash_array(values)
    except TypeError:  # lists, mixed types
        return pd.util.hash_array(column.map(repr).to_numpy(dtype=object))


@dataclass(frozen=True)
class RowsOfOnePerson:
    """What speaks for a column that names persons.

    Attributes
    ----------
    n_values : int
        Different values.
    shared : float
        Share of the rows whose value another row has too.
    agreement : float
        Of neighbouring rows with one value, the share whose groups are the same.
    chance : float
        The same of any two rows.
    n_pairs : int
        Number of such neighbours.
    """

    n_values: int
    shared: float
    agreement: float
    chance: float
    n_pairs: int


def rows_of_one_person(column: pd.Series, groups: np.ndarray) -> RowsOfOnePerson:
    """Say how rows with the same value of a column agree in their groups."""
    indices, found = pd.factorize(column)
    known = indices >= 0
    indices, groups = indices[known], groups[known]
    counts = np.bincount(indices, minlength=len(found))
    order = np.argsort(indices, kind="stable")
    same_value = np.diff(indices[order]) == 0
    same_group = np.diff(groups[order]) == 0
    n_pairs = int(same_value.sum())
    agreement = float(same_group[same_value].mean()) if n_pairs else 0.0
    shares = np.bincount(groups) / max(len(groups), 1)
    shared = float(counts[counts > 1].sum() / max(len(column), 1))
    return RowsOfOnePerson(len(found), shared, agreement, float((shares**2).sum()), n_pairs)
