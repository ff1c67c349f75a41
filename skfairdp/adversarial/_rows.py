"""Rows as a weighted multiset: their order does not count, and a row twice is a row of weight two."""

import numpy as np


def merge_rows(
    x: np.ndarray, y: np.ndarray, groups: np.ndarray | None, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None, np.ndarray]:
    """Merge equal rows, add up their weights, and bring them into an order that depends on nothing but the rows.

    Training then sees the same table whether a row was given twice or with weight 2, and in whatever
    order the rows came. Rows are ordered by a hash, which is as good as shuffled.

    Parameters
    ----------
    x : ndarray of shape (n_samples, n_features)
        Floats of single precision, or integers.
    y : ndarray of shape (n_samples,)
        Class codes.
    groups : ndarray of shape (n_samples, n_columns) or None
        Group codes.
    weight : ndarray of shape (n_samples,)
        Positive weights.

    Returns
    -------
    x, y, groups, weight
        As given, without repetitions.
    """
    columns = [_words(x), y.astype(np.uint64)[:, None]]
    if groups is not None:
        columns.append(groups.astype(np.uint64))
    words = np.concatenate(columns, axis=1)
    salt = 0
    while True:
        key = _hash(words, salt)
        _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
        if len(first) == len(words) or np.array_equal(words, words[first[inverse]]):
            break
        salt += 1  # two different rows with one hash: take another
    total = np.bincount(inverse, weights=weight)
    return x[first], y[first], None if groups is None else groups[first], total


def _words(x: np.ndarray) -> np.ndarray:
    """One unsigned word per value; equal values give equal words, also for the two zeros."""
    if x.dtype == np.float32:
        return (x + np.float32(0.0)).view(np.uint32).astype(np.uint64)
    return x.astype(np.int64).view(np.uint64)


def _hash(words: np.ndarray, salt: int) -> np.ndarray:
    """Hash each row to 64 bits: a sum with random multipliers, then a mix of its bits."""
    multipliers = np.random.default_rng(salt).integers(0, 2**64, size=words.shape[1], dtype=np.uint64) | np.uint64(1)
    with np.errstate(over="ignore"):
        total = words @ multipliers
        return (total ^ (total >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
