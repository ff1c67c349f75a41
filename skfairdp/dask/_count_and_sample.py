"""What is computed from all partitions without noise: count tables, and samples of rows for an attacker."""

from functools import partial
from typing import Any

import numpy as np

from skfairdp._validation import check_count
from skfairdp.dask._collections import blocks_of_collection, import_dask, is_frame
from skfairdp.metrics import GroupCounts
from skfairdp.random import RandomState, random_stream

#: Counts that are merged by one task.
_MERGED_AT_ONCE = 16


def group_counts(
    y_true: Any, y_pred: Any, *, sensitive_features: Any, sample_weight: Any = None, labels: Any = None
) -> GroupCounts:
    """Count the rows of Dask collections by group, true class and predicted class.

    Each worker counts its own partitions, and only counts travel.

    Parameters
    ----------
    y_true, y_pred : dask Series or Array of shape (n_samples,)
        Class labels.
    sensitive_features : dask Series, DataFrame or Array of shape (n_samples,) or (n_samples, n_columns)
        The group of each row.
    sample_weight : dask Series or Array of shape (n_samples,), optional
        Weights of the rows.
    labels : array-like, optional
        All class labels; needed where a class may have no row at all.

    Returns
    -------
    GroupCounts
        Its ``rates()`` and ``gap()`` judge the whole table.

    Notes
    -----
    **Privacy.** Counts are exact, and no release. A task that runs twice counts the same rows and is merged once.

    Examples
    --------
    >>> import dask.array as da
    >>> from skfairdp.dask import group_counts
    >>> y_true, y_pred = da.from_array([1, 1, 0, 1], chunks=2), da.from_array([1, 0, 0, 1], chunks=2)
    >>> sex = da.from_array([0, 0, 1, 1], chunks=2)
    >>> group_counts(y_true, y_pred, sensitive_features=sex).gap("tpr_gap")
    0.5
    """
    dask = import_dask()
    given = [y_true, y_pred, sensitive_features, *([] if sample_weight is None else [sample_weight])]
    count, merge = partial(_count_block, labels), dask.delayed(_merge_counts, pure=False)
    if all(hasattr(values, "map_partitions") for values in given):
        from dask.dataframe import map_partitions  # columns of one file are read together

        counted = list(map_partitions(count, *given, meta=("counts", object), enforce_metadata=False).to_delayed())
    else:
        blocks = [blocks_of_collection(values) for values in given]
        if len({len(found) for found in blocks}) > 1:
            raise ValueError(
                "y_true, y_pred, sensitive_features and sample_weight must have the same blocks; got "
                f"{', '.join(str(len(found)) for found in blocks)} of them. Call rechunk first."
            )
        counted = [dask.delayed(count, pure=False)(*parts) for parts in zip(*blocks)]
    while len(counted) > 1:
        counted = [merge(counted[i : i + _MERGED_AT_ONCE]) for i in range(0, len(counted), _MERGED_AT_ONCE)]
    return counted[0].compute()


def _count_block(labels: Any, y_true: Any, y_pred: Any, groups: Any, weight: Any = None) -> GroupCounts:
    counts = GroupCounts(labels)
    if len(y_true):  # filters leave empty partitions
        counts.update(y_true, y_pred, sensitive_features=groups, sample_weight=weight)
    return counts


def _merge_counts(parts: list[GroupCounts]) -> GroupCounts:
    total = GroupCounts(parts[0]._labels)
    for part in parts:
        total.merge(part)
    return total


def sample_rows(data: Any, n: int, *, random_state: RandomState = None) -> Any:
    """Draw rows of a Dask collection without replacement, each as likely as any other.

    An attacker of :func:`~skfairdp.metrics.leakage_score` needs some ten thousand rows, and not all.

    Parameters
    ----------
    data : dask.dataframe.DataFrame or dask.array.Array of two dimensions
        The rows, with whatever is needed beside them.
    n : int
        How many; all if there are fewer.
    random_state : int, Generator, SeedSequence, RandomState or None, default=None
        Seed of the sample.

    Returns
    -------
    pandas.DataFrame or ndarray
        In the order of ``data``.

    Notes
    -----
    **Privacy.** The rows come as they are; this is no release. A task that runs twice takes the same rows.

    Examples
    --------
    >>> import dask.array as da
    >>> from skfairdp.dask import sample_rows
    >>> sample_rows(da.ones((1000, 3), chunks=(100, 3)), 50).shape
    (50, 3)
    """
    dask = import_dask()
    frame = is_frame(data)
    n = check_count(n, "n")
    blocks = blocks_of_collection(data)
    lengths = dask.compute(*(dask.delayed(len)(block) for block in blocks))
    generator = random_stream(random_state).generator
    shares = generator.multivariate_hypergeometric(lengths, min(n, sum(lengths)), method="marginals")
    take = dask.delayed(_take_rows, pure=False)
    places = [np.sort(generator.choice(length, share, replace=False)) for length, share in zip(lengths, shares)]
    parts = dask.compute(*(take(block, chosen) for block, chosen in zip(blocks, places) if len(chosen)))
    if frame:
        import pandas as pd

        return pd.concat(parts)
    return np.concatenate(parts)


def _take_rows(block: Any, places: np.ndarray) -> Any:
    return block.iloc[places] if hasattr(block, "iloc") else np.asarray(block)[places]
