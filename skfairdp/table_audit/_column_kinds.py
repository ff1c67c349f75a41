"""What is in a column: numbers, categories, dates, or names of the rows that no model should learn from."""

import re

import numpy as np
import pandas as pd

from skfairdp.table_audit._column_names import names_rows

MISSING = "(missing)"  # the category of rows that have no value
IDENTIFIER = "nearly every row has a value of its own (an identifier or free text)"
ROW_NUMBERS = "numbers of the rows"
GIVEN_NUMBERS = "whole numbers that are given out rather than measured (an identifier)"
DATES = "dates and times"
_HUGE = 1e100  # the square of a larger number overflows, so that it has no variance to scale by
_DATE = re.compile(r"\s*(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4})([T ]\d{1,2}:\d{2}.*)?\s*")


def is_numeric(column: pd.Series) -> bool:
    """Whether a column holds numbers that can be ordered; true and false count as such."""
    return pd.api.types.is_numeric_dtype(column.dtype) and not pd.api.types.is_complex_dtype(column.dtype)


def reason_to_drop(column: pd.Series) -> str | None:
    """Return why a column is no feature, or None if it is one."""
    present = column.dropna()
    if present.empty:
        return "no value at all"
    if pd.api.types.is_datetime64_any_dtype(column.dtype) or pd.api.types.is_timedelta64_dtype(column.dtype):
        return DATES
    try:
        n_distinct = present.nunique()
    except TypeError:
        return "values that are neither numbers nor labels"
    if n_distinct == 1 and len(present) == len(column):
        return "the same value in every row"
    if is_numeric(column):
        whole = pd.api.types.is_integer_dtype(column.dtype) and n_distinct == len(column)
        if whole and present.max() - present.min() == len(column) - 1:
            return ROW_NUMBERS
        if n_distinct > 50 and n_distinct > 0.9 * len(present):
            named = names_rows(str(column.name)) and n_distinct > 0.98 * len(present) and _whole(present)
            return GIVEN_NUMBERS if named or given_out(present) else None
        return None
    sample = present.head(200).astype(str)
    if all(_DATE.fullmatch(value) for value in sample):
        return DATES
    if n_distinct > 50 and n_distinct > len(present) / 2:
        return IDENTIFIER
    return None


def _whole(column: pd.Series) -> bool:
    values = column.to_numpy(dtype=np.float64)
    return bool(len(values) > 1 and np.isfinite(values).all() and (values == np.floor(values)).all())


def given_out(column: pd.Series) -> bool:
    """Whether whole numbers are names of the rows: given out one by one, and not counted or measured.

    Measured values meet by chance. Of n independent values in a range of R whole numbers, whatever their distribution,
    at least n (n - 1) / 2 R pairs are expected to be equal (the uniform distribution has the fewest). Where 25 or more
    are expected and not even a tenth of them are there (which has a chance below 1e-8), somebody saw to it that values
    differ. Numbers that are spread too widely to meet are taken for names if all have the same eight or more digits,
    as telephone numbers and account numbers have.
    """
    if not _whole(column):
        return False
    values = np.sort(column.to_numpy(dtype=np.float64))
    if np.abs(values).max() > 2**53:  # floats this large are whole anyway, and cannot tell neighbours apart
        return pd.api.types.is_integer_dtype(column.dtype)
    quarter = len(values) // 4
    for part in (values, values[quarter : len(values) - quarter]):  # one outlier must not hide a dense range
        n, n_range = len(part), part[-1] - part[0] + 1
        expected = n * (n - 1) / (2 * n_range)
        _, counts = np.unique(part, return_counts=True)
        equal = (counts * (counts - 1) // 2).sum()
        if expected >= 25 and equal < expected / 10:
            return True
    n_digits = np.floor(np.log10(np.maximum(values[[0, -1]], 1)))
    return bool(n_digits[0] == n_digits[1] >= 7 and (np.diff(values) > 0).mean() > 0.98)


def as_numbers(column: pd.Series, name: str, notes: list[str]) -> pd.Series:
    """Return floats; what overflows is missing, with a note."""
    values = column.to_numpy(dtype=np.float64, na_value=np.nan).copy()
    beyond = np.abs(values) > _HUGE
    if beyond.any():
        values[beyond] = np.nan
        notes.append(
            f"{number_of_rows(int(beyond.sum()))} of {name!r} with infinity or numbers beyond 1e100: taken as missing."
        )
    return pd.Series(values, index=column.index)


def as_text(column: pd.Series) -> pd.Series:
    """Return categories as text; a missing value is one of them."""
    texts = column.astype(object).map(str, na_action="ignore")
    return texts.where(column.notna(), MISSING).astype(object)


def number_of_rows(n: int) -> str:
    """Write a number of rows for people."""
    return f"{n:,} row{'s' * (n != 1)}"
