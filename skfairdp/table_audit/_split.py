"""Divide rows so that every part has its share of each class and group, however small."""

import numpy as np


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


def folds(
    y: np.ndarray, groups: np.ndarray, n_splits: int, generator: np.random.Generator
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return ``n_splits`` pairs of training and validation rows; each row is validated once."""
    part = np.empty(len(y), dtype=np.intp)
    part[_in_strata_order(y, groups, generator)] = np.arange(len(y)) % n_splits
    return [(np.flatnonzero(part != k), np.flatnonzero(part == k)) for k in range(n_splits)]
