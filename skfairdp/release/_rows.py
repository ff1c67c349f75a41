"""Does a function keep rows apart? A guarantee for each row is void if rows can be seen through other rows."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

_BATCH_SIZES = (2, 3, 16, 67, 1000)


def find_mixed_rows(
    function: Callable[[Any], Any],
    make_rows: Callable[[int], Sequence[Any] | np.ndarray],
    batch_sizes: Sequence[int] = _BATCH_SIZES,
) -> int | None:
    """Look for a batch in which changing one row changes what comes out for another.

    Parameters
    ----------
    function : callable
        Rows in, one output per row.
    make_rows : callable
        Takes a number and returns as many made-up rows, others in every call; never rows of people.
    batch_sizes : sequence of int
        How many rows are given at once.

    Returns
    -------
    int or None
        The size of a batch whose rows are mixed; ``None`` if there is none among those tried. Outputs of the
        unchanged rows must be equal to the last bit.

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp.release import find_mixed_rows
    >>> rows = np.random.default_rng(0)
    >>> find_mixed_rows(np.tanh, lambda n: rows.normal(size=(n, 3))) is None
    True
    >>> find_mixed_rows(lambda X: X - X.mean(axis=0), lambda n: rows.normal(size=(n, 3)))
    2
    """
    for size in batch_sizes:
        rows = make_rows(size)
        before = np.asarray(function(rows))
        for changed in (0, size // 2, size - 1):
            others = np.arange(size) != changed
            for other in _other_rows(make_rows(1)):
                after = np.asarray(function(_replace(rows, changed, other)))
                if not _same(before[others], after[others]):
                    return size
    return None


def _other_rows(row: Any) -> list[Any]:
    """Return the row, and one that is far from all others, which shows in a maximum as well as in a mean."""
    return [row] if isinstance(row, list) else [row, 1000 * row]


def _replace(rows: Any, place: int, row: Any) -> Any:
    if isinstance(rows, list):
        return [*rows[:place], row[0], *rows[place + 1 :]]
    changed = rows.copy()
    if hasattr(rows, "iloc"):
        changed.iloc[place] = row.iloc[0]
    else:
        changed[place] = row[0]
    return changed


def _same(first: np.ndarray, second: np.ndarray) -> bool:
    return first.shape == second.shape and np.array_equal(first, second, equal_nan=first.dtype.kind == "f")
