"""Counts by group that are added up block by block: a table of any size is judged in one pass."""

from collections.abc import Hashable
from typing import Any

import numpy as np
import pandas as pd

from skfairdp._validation import check_choice
from skfairdp.metrics._group_fairness import CLASS_METRICS, gap_of_table
from skfairdp.metrics._group_rates import rates_of_table
from skfairdp.metrics._group_table import GroupTable, check_labels, check_number_of_cells, group_table, union_of_labels


class GroupCounts:
    """Counts of rows by group, true class and predicted class, which can be updated and merged.

    What it holds depends on the number of groups and classes, and not on the number of rows. Updates and merges in any
    order give the table of all rows together, so that blocks of a file, or workers of a cluster, count each their own.

    Parameters
    ----------
    labels : array-like, optional
        All class labels; needed where a class may have no row at all.

    Attributes
    ----------
    n_rows : int
        The rows counted so far.

    See Also
    --------
    group_rates : The same table from arrays.
    skfairdp.dask.group_counts : The counts of a Dask collection.

    Notes
    -----
    **Privacy.** Counts are exact, and no release: whoever sees those of a small group learns about its members.

    Examples
    --------
    >>> from skfairdp.metrics import GroupCounts
    >>> counts = GroupCounts()
    >>> _ = counts.update([1, 1, 0], [1, 0, 0], sensitive_features={"sex": ["f", "m", "f"]})
    >>> elsewhere = GroupCounts().update([1, 0, 1], [1, 1, 1], sensitive_features={"sex": ["m", "m", "f"]})
    >>> _ = counts.merge(elsewhere)
    >>> counts.rates()[["count", "tpr_1"]]
         count  tpr_1
    sex
    f        3    1.0
    m        3    0.5
    >>> counts.gap("tpr_gap")
    0.5
    """

    def __init__(self, labels: Any = None):
        self._labels = None if labels is None else check_labels(labels)
        self._names: tuple[str, ...] | None = None
        self._weighted = False
        self._groups: dict[Hashable, None] = {}  # in the order in which they came
        # (group, true class, predicted class) -> sum of weights, rows, sum of squared weights
        self._cells: dict[tuple[Any, Any, Any], np.ndarray] = {}

    @property
    def n_rows(self) -> int:
        """The rows counted so far."""
        return sum(int(rows) for _, rows, _ in self._cells.values())

    def update(self, y_true: Any, y_pred: Any, *, sensitive_features: Any, sample_weight: Any = None) -> "GroupCounts":
        """Count another block of rows.

        Parameters
        ----------
        y_true, y_pred : array-like of shape (n_samples,)
            Class labels.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
            The group of each row, under the same names in every block.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows, in all blocks or in none.

        Returns
        -------
        GroupCounts
            This object.
        """
        table = group_table(
            y_true, y_pred, sensitive_features=sensitive_features, sample_weight=sample_weight, labels=self._labels
        )
        block = GroupCounts()
        block._names, block._weighted = table.names, table.squared is not None
        block._groups = dict.fromkeys(table.groups)
        squared = table.rows if table.squared is None else table.squared
        for g, t, p in np.argwhere(table.rows):
            key = table.groups[g], table.classes[t], table.classes[p]
            block._cells[key] = np.array([table.counts[g, t, p], table.rows[g, t, p], squared[g, t, p]])
        block._labels = self._labels
        return self.merge(block)

    def merge(self, other: "GroupCounts") -> "GroupCounts":
        """Add what another object has counted, of other rows.

        Parameters
        ----------
        other : GroupCounts
            It stays as it is. Its sensitive columns must have the same names, and its labels be the same.

        Returns
        -------
        GroupCounts
            This object.
        """
        if not isinstance(other, GroupCounts):
            raise TypeError(f"other must be a GroupCounts; got {type(other).__name__}.")
        if other._labels != self._labels:
            raise ValueError(f"labels must be the same in both; got {self._labels} and {other._labels}.")
        if other._names is None:  # it has seen no row
            return self
        if self._names is None:
            self._names, self._weighted = other._names, other._weighted
        if other._names != self._names:
            raise ValueError(
                f"sensitive_features must have the same names in all blocks; got {self._names} and {other._names}."
            )
        if other._weighted != self._weighted:
            raise ValueError("sample_weight must be given for all blocks or for none.")
        self._groups.update(other._groups)
        for key, values in other._cells.items():
            known = self._cells.get(key)
            self._cells[key] = values.copy() if known is None else known + values
        return self

    def table(self) -> GroupTable:
        """Return the counts as arrays.

        Returns
        -------
        GroupTable
            As if all rows had been counted at once.
        """
        if self._names is None:
            raise ValueError("no row has been counted yet; call update or merge first.")
        try:
            groups: tuple[Any, ...] = tuple(sorted(self._groups))
        except TypeError:  # labels of several kinds have no order
            groups = tuple(self._groups)
        classes = self._labels or union_of_labels([label for _, *pair in self._cells for label in pair])
        shape = (len(groups), len(classes), len(classes))
        check_number_of_cells((1, *shape))
        places = {group: g for g, group in enumerate(groups)}, {label: c for c, label in enumerate(classes)}
        sums = np.zeros((3, *shape), dtype=np.float64 if self._weighted else np.int64)
        for (group, true, predicted), values in self._cells.items():
            sums[:, places[0][group], places[1][true], places[1][predicted]] = values
        counts, about = sums[0], (groups, self._names, classes)
        if not self._weighted:  # one and the same array, by which others see that there are no weights
            return GroupTable(counts, *about, rows=counts)
        return GroupTable(counts, *about, rows=sums[1].astype(np.int64), squared=sums[2])

    def rates(
        self,
        *,
        interval: str | None = None,
        confidence_level: float = 0.95,
        n_draws: int = 1000,
        random_state: Any = None,
        form: str = "wide",
    ) -> pd.DataFrame:
        """Return the table that :func:`group_rates` makes of all rows together.

        Parameters
        ----------
        interval : {"exact", "wilson", "bootstrap"} or None, default=None
            Kind of confidence intervals.
        confidence_level : float, default=0.95
            Level of each interval.
        n_draws : int, default=1000
            Number of bootstrap draws.
        random_state : int, Generator, SeedSequence, RandomState or None, default=None
            Seed of the bootstrap.
        form : {"wide", "long"}, default="wide"
            One row per group, or one row per group, rate and class.

        Returns
        -------
        pandas.DataFrame
        """
        return rates_of_table(self.table(), interval, confidence_level, n_draws, random_state, form)

    def gap(self, metric: str = "tpr_gap", *, pos_label: Any = None, average: str | None = "auto") -> Any:
        """Return a gap between groups.

        Parameters
        ----------
        metric : {"tpr_gap", "grms", "demographic_parity_gap", "equalized_odds_gap"}, default="tpr_gap"
            The function of the same name says what it is.
        pos_label : label, optional
            The class whose gap is taken.
        average : {"auto", "binary", "max", "mean", "rms"} or None, default="auto"
            How the gaps of the classes become one number; not used by ``"grms"``.

        Returns
        -------
        float or pandas.Series
        """
        check_choice(metric, list(CLASS_METRICS), "metric")
        if metric == "grms":
            average, pos_label = "rms", None
        return gap_of_table(metric, self.table(), average, pos_label)
