"""How well one column alone tells a label, learned on one half of the rows and judged on the other."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from sklearn.tree import DecisionTreeClassifier

from skfairdp.table_audit._column_kinds import is_numeric

MAX_RANGES = 64  # of a number
MAX_VALUES = 300  # categories of a column that are told apart; the rarer ones share a place
PURE = 0.99  # share of one label from which on a value is taken to name it
_LEAST_PURE_ROWS = 15  # rows that bear it out
_PAIRS_AT_ONCE = 1_000_000  # of values, for columns that are judged together


@dataclass(frozen=True)
class ToldAlone:
    """How well one column tells a label, on rows that it has not been learned from.

    Attributes
    ----------
    balanced : float
        Balanced accuracy of the best guess: the mean, over the labels, of the share of its rows that are recognised.
    lower : float
        ``balanced`` less two standard errors.
    auc : float
        Area under the ROC curve of each label against the others, averaged.
    sure : float
        Of the rows of the label of which this is most: the share whose value practically never comes with another
        label. Only labels of at most half of all rows count: nothing else names the common one.
    n_labels : int
        Number of labels, so that guessing has a balanced accuracy of ``1 / n_labels``.
    """

    balanced: float
    lower: float
    auc: float
    sure: float
    n_labels: int

    @property
    def certainty(self) -> float:
        """Balanced accuracy on a scale from guessing, 0, to a copy, 1."""
        return (self.n_labels * self.balanced - 1) / (self.n_labels - 1)

    @property
    def certainty_lower(self) -> float:
        """The same of ``lower``."""
        return (self.n_labels * self.lower - 1) / (self.n_labels - 1)


def value_indices(column: pd.Series) -> np.ndarray:
    """Number the values of a column; many numbers are cut into ranges, and missing values have a number too."""
    if is_numeric(column):
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
        present = np.sort(values)  # missing values come last
        present = present[: np.count_nonzero(~np.isnan(values))]
        new = np.append(True, np.diff(present) > 0)[: len(present)]
        n_ranges = min(MAX_RANGES, max(8, len(values) // 20))
        if np.count_nonzero(new) > n_ranges:
            edges = np.unique(present[len(present) * np.arange(1, n_ranges) // n_ranges])
        else:
            edges = present[new]
        return np.where(np.isnan(values), len(edges) + 1, np.searchsorted(edges, values))
    indices, found = pd.factorize(column)
    if len(found) > MAX_VALUES:
        counts = np.bincount(indices[indices >= 0], minlength=len(found))
        rank = np.empty(len(found), dtype=np.intp)
        rank[np.argsort(-counts, kind="stable")] = np.arange(len(found))
        indices = np.where(indices < 0, indices, np.minimum(rank[indices], MAX_VALUES))
    return indices + 1


def told_alone(columns: list[np.ndarray], labels: np.ndarray, first_half: np.ndarray) -> list[ToldAlone]:
    """Say how well each column tells the labels; each half of the rows is judged by the other.

    Parameters
    ----------
    columns : list of ndarray of int
        The value of each row in each column, numbered from 0 on.
    labels : ndarray of int
        The label of each row, numbered from 0 on.
    first_half : ndarray of bool
        Rows of the first half.

    Returns
    -------
    list of ToldAlone
    """
    n_labels = int(labels.max()) + 1
    sizes = [int(column.max()) + 1 for column in columns]
    by_size = np.argsort(sizes, kind="stable")
    told: list[ToldAlone | None] = [None] * len(columns)
    start = 0
    while start < len(columns):  # columns of about the same number of values together, as many as memory likes
        stop = start + 1
        while stop < len(columns) and (stop + 1 - start) * sizes[by_size[stop]] ** 2 <= _PAIRS_AT_ONCE:
            stop += 1
        together = by_size[start:stop]
        n_values = sizes[together[-1]]
        halves = []
        for part in (first_half, ~first_half):
            cells = np.stack([columns[place][part] for place in together]) * n_labels + labels[part]
            cells += np.arange(len(together))[:, None] * (n_values * n_labels)
            counts = np.bincount(cells.ravel(), minlength=len(together) * n_values * n_labels)
            halves.append(counts.reshape(len(together), n_values, n_labels))
        for place, one in zip(together, _summaries([(halves[0], halves[1]), (halves[1], halves[0])], labels)):
            told[place] = one
        start = stop
    return [one for one in told if one is not None]


def told_by_thresholds(values: np.ndarray, labels: np.ndarray, first_half: np.ndarray) -> ToldAlone:
    """Say the same of numbers, with thresholds that fit the labels: finer than ranges that know nothing of them."""
    n_labels = int(labels.max()) + 1
    judged = []
    for learned in (first_half, ~first_half):
        tree = DecisionTreeClassifier(
            max_leaf_nodes=max(8, 2 * n_labels), min_samples_leaf=2, class_weight="balanced", random_state=0
        )
        cells = tree.fit(values[learned, None], labels[learned]).apply(values[:, None]) * n_labels + labels
        n_cells = tree.tree_.node_count * n_labels
        parts = [np.bincount(cells[part], minlength=n_cells).reshape(1, -1, n_labels) for part in (learned, ~learned)]
        judged.append((parts[0], parts[1]))
    return _summaries(judged, labels)[0]


def _summaries(halves: list[tuple[np.ndarray, np.ndarray]], labels: np.ndarray) -> list[ToldAlone]:
    recalls, aucs, sure = (np.mean(parts, axis=0) for parts in zip(*(_judged(*half) for half in halves)))
    n_rows = np.bincount(labels)
    spread = (recalls * n_rows + 1) / (n_rows + 2)  # no label is known without doubt from a few rows
    error = np.sqrt((spread * (1 - spread) / np.maximum(n_rows, 1)).sum(axis=1)) / len(n_rows)
    balanced = recalls.mean(axis=1)
    figures = np.column_stack([balanced, balanced - 2 * error, aucs.mean(axis=1), sure.max(axis=1)])
    return [ToldAlone(*row, n_labels=len(n_rows)) for row in figures.tolist()]


def _judged(learned: np.ndarray, unseen: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return, for each column and label, the share recognised, the area under the curve and the share that is sure.

    Both are numbers of rows by column, value and label. A value is taken for the label of which it holds the largest
    share, which is the best guess for the balanced accuracy.
    """
    n_labels = learned.shape[2]
    of_label = learned.sum(axis=1, keepdims=True)
    share = (of_label + 1) / (of_label.sum(axis=2, keepdims=True) + n_labels)
    n_learned = learned.sum(axis=2)
    likelihood = (learned + share) / (n_learned[..., None] + 1) / share
    n_rows = np.maximum(unseen.sum(axis=1), 1)
    guess = likelihood.argmax(axis=2)[..., None] == np.arange(n_labels)
    recalls = (unseen * guess).sum(axis=1) / n_rows

    commonest = learned.argmax(axis=2)[..., None] == np.arange(n_labels)
    pure = (n_learned >= 10) & (learned.max(axis=2) >= PURE * n_learned)
    names = commonest & pure[..., None] & (share <= 0.5)
    right = (unseen * names).sum(axis=1)
    named = (unseen.sum(axis=2)[..., None] * names).sum(axis=1)
    sure = np.where((right >= PURE * named) & (named >= _LEAST_PURE_ROWS), right / n_rows, 0.0)

    aucs = np.empty(n_rows.shape)
    rest = unseen.sum(axis=2)[..., None] - unseen
    for label in range(n_labels):
        mine, others, rank = (part[..., label] for part in (unseen, rest, likelihood))
        higher = (rank[:, :, None] > rank[:, None, :]) + 0.5 * (rank[:, :, None] == rank[:, None, :])
        won = np.einsum("cv,cvw,cw->c", mine, higher, others, optimize=True)
        pairs = mine.sum(axis=1) * others.sum(axis=1)
        aucs[:, label] = np.where(pairs > 0, won / np.maximum(pairs, 1), 0.5)
    return recalls, aucs, sure
