"""Drawing releases: whatever goes in is repeated row by row, whatever comes out becomes one array.

One call with many equal rows is as many independent releases, which is what makes an audit fast.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from skfairdp.random import random_stream

#: Values per call; keeps a block of inputs small enough for the cache and for wide outputs.
_VALUES_PER_CALL = 400_000


def release_function(release: Any) -> Callable[[Any], Any]:
    """Find what an object releases: its ``transform``, its ``predict_proba``, or what it returns when called.

    A mechanism, which has a method ``release(X, stream)``, draws from the operating system.
    """
    for method in ("transform", "predict_proba"):
        if callable(getattr(release, method, None)):
            return getattr(release, method)
    if is_mechanism(release):
        stream = random_stream(None)
        return lambda X: release.release(X, stream)
    if callable(release):
        return release
    raise TypeError(
        "release must be a fitted transformer, a classifier with transform or predict_proba, a mechanism, or a "
        f"function of rows; got {release!r} of type {type(release).__name__}."
    )


def is_mechanism(release: Any) -> bool:
    """Whether this is the mechanism itself, which draws from a stream it is given, rather than an estimator."""
    return all(callable(getattr(release, name, None)) for name in ("release", "log_likelihood_ratio"))


def read_record(x: Any, name: str) -> Any:
    """Return one record: a string (a document), or the values of one row as an array."""
    if isinstance(x, str):
        return x
    if x is None:
        raise ValueError(f"{name} is missing: give both x and x_prime, or neither (the worst case is then used).")
    row = x.to_numpy() if hasattr(x, "to_numpy") else x.toarray() if sparse.issparse(x) else np.asarray(x)
    if row.ndim == 2 and row.shape[0] == 1:
        row = row[0]
    row = np.atleast_1d(row)
    if row.ndim != 1 or row.size == 0:
        raise ValueError(f"{name} must be one record (a row of values, or a document); got shape {row.shape}.")
    return row


def check_different(x: Any, x_prime: Any) -> None:
    """Refuse a pair that cannot show anything."""
    if isinstance(x, str) != isinstance(x_prime, str):
        raise ValueError("x and x_prime must both be documents, or both be rows of values.")
    if not isinstance(x, str) and x.shape != x_prime.shape:
        raise ValueError(f"x and x_prime must have equally many values; got {x.size} and {x_prime.size}.")
    if isinstance(x, str):
        same = x == x_prime
    else:
        same = all(a == b or (a != a and b != b) for a, b in zip(x.tolist(), x_prime.tolist()))
    if same:
        raise ValueError("x and x_prime are equal: no release can tell them apart. Give two different records.")


class Draws:
    """Independent releases of one record.

    Parameters
    ----------
    function : callable
        Rows in, one output per row.
    record : str or ndarray of shape (n_features,)
    rows_per_call : int or None
    columns : list of str or None
        The feature names that the release was fitted with.
    """

    def __init__(
        self,
        function: Callable[[Any], Any],
        record: Any,
        rows_per_call: int | None = None,
        columns: list[str] | None = None,
    ):
        self._function = function
        self._record = record
        size = len(record.split()) + 1 if isinstance(record, str) else record.size
        self.rows_per_call = rows_per_call or max(1, _VALUES_PER_CALL // size)
        self._columns = columns

    def blocks(self, n: int) -> Iterator[np.ndarray]:
        """Yield ``n`` releases in blocks, as arrays of shape (rows, n_values), or (rows,) of strings."""
        while n > 0:
            rows = min(n, self.rows_per_call)
            yield read_outputs(self._function(self._inputs(rows)), rows)
            n -= rows

    def take(self, n: int) -> np.ndarray:
        """Return ``n`` releases in one array."""
        return np.concatenate(list(self.blocks(n)))

    def _inputs(self, rows: int) -> Any:
        if isinstance(self._record, str):
            return [self._record] * rows
        tiled = np.repeat(self._record[np.newaxis], rows, axis=0)
        return tiled if self._columns is None else pd.DataFrame(tiled, columns=self._columns)


def _is_tokens(row: Any) -> bool:
    return isinstance(row, list | tuple) and all(isinstance(token, str) for token in row)


def read_outputs(outputs: Any, rows: int) -> np.ndarray:
    """Turn what a release returned into float64 rows, or into one string for each row."""
    if sparse.issparse(outputs):
        outputs = outputs.toarray()
    elif hasattr(outputs, "to_numpy"):
        outputs = outputs.to_numpy()
    elif isinstance(outputs, list) and outputs and all(_is_tokens(row) for row in outputs):
        outputs = [" ".join(row) for row in outputs]
    array = np.asarray(outputs)
    if array.ndim == 0 or len(array) != rows:
        shape = array.shape
        raise ValueError(f"release must return one output per row: {rows} rows were given, shape {shape} came back.")
    array = array.reshape(rows, -1)
    if array.dtype.kind == "c":
        array = np.concatenate([array.real, array.imag], axis=1)
    if array.dtype.kind in "biuf":
        return array.astype(np.float64, copy=False)
    if array.dtype.kind == "O" and all(isinstance(value, int | float | np.number) for value in array[0]):
        return array.astype(np.float64)
    if array.shape[1] == 1:
        return array[:, 0].astype(str)
    # several categories in a row: each becomes a token that tells its column
    return np.array([" ".join(f"{j}={value}" for j, value in enumerate(row)) for row in array.tolist()], dtype=str)
