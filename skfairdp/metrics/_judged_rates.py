"""Which rates of which groups can be judged, with how many rows behind each, within strata if there are any."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skfairdp.metrics._group_table import RATE_PARTS, Rows
from skfairdp.metrics._simultaneous_bounds import Family

# A group must have rows in strata that hold at least this share of all rows, or it cannot be compared within them.
_LEAST_SHARE = 0.5


@dataclass(frozen=True)
class JudgedRate:
    """One rate of one class in the groups that have enough rows.

    Attributes
    ----------
    rate : str
        Name of the rate.
    label : object
        The class, None for accuracy.
    groups : ndarray of int
        Places of the groups that are judged.
    values : ndarray of shape (n_judged,)
        The rates, averaged over the strata with the same weights in every group.
    sizes : ndarray of shape (n_judged,)
        Effective numbers of rows: a binomial rate of that many rows has the same variance.
    by_stratum : ndarray of shape (n_strata, n_judged)
        The rates within the strata that are used.
    sizes_by_stratum : ndarray of shape (n_strata, n_judged)
        Effective numbers of rows there.
    weights : ndarray of shape (n_strata,)
        Weights of the strata that are used; they add up to 1.
    strata : ndarray of int
        Places of the strata that are used.
    lacking : tuple of (int, int)
        Stratum and group for the strata that are left out because a judged group has no row there.
    """

    rate: str
    label: Any
    groups: np.ndarray
    values: np.ndarray
    sizes: np.ndarray
    by_stratum: np.ndarray
    sizes_by_stratum: np.ndarray
    weights: np.ndarray
    strata: np.ndarray
    lacking: tuple[tuple[int, int], ...] = ()

    @property
    def comparable(self) -> bool:
        """Whether there are two groups to compare."""
        return len(self.groups) >= 2

    def family(self) -> Family:
        """Return rates, sizes and offset, as :mod:`skfairdp.metrics._simultaneous_bounds` wants them."""
        return self.values, self.sizes, 0.0

    def only(self, kept: np.ndarray) -> "JudgedRate":
        """Return the same rate without some of the groups."""
        if kept.all():
            return self
        return replace(
            self,
            groups=self.groups[kept],
            values=self.values[kept],
            sizes=self.sizes[kept],
            by_stratum=self.by_stratum[:, kept],
            sizes_by_stratum=self.sizes_by_stratum[:, kept],
        )

    def strata_family(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return rates, sizes and weights of the strata, for permutations within them."""
        return self.by_stratum, self.sizes_by_stratum, self.weights


def effective_sizes(counts: np.ndarray, squared: "np.ndarray | None", rate: str) -> tuple[np.ndarray, ...]:
    """Return rates (0 where there is no row), denominators and effective numbers of rows, ``[..., group, class]``.

    With weights w the effective number is Kish's (sum w)^2 / sum w^2, or less where the variance of the weighted
    rate, sum w^2 (y - p)^2 / (sum w)^2, says so, as when those who succeed weigh more.
    """
    hits, trials = (np.asarray(part, dtype=float) for part in RATE_PARTS[rate](counts))
    rates = np.divide(hits, trials, out=np.zeros(trials.shape), where=trials > 0)
    if squared is None:
        return rates, trials, trials.copy()
    squared_hits, squared_trials = RATE_PARTS[rate](squared)
    sizes = np.divide(trials**2, squared_trials, out=np.zeros(trials.shape), where=squared_trials > 0)
    spread = squared_hits * (1 - rates) ** 2 + np.maximum(squared_trials - squared_hits, 0.0) * rates**2
    linear = np.divide(rates * (1 - rates) * trials**2, spread, out=np.full(trials.shape, np.inf), where=spread > 0)
    mixed = (rates > 0) & (rates < 1) & (spread > 0)
    return rates, trials, np.where(mixed, np.minimum(sizes, linear), sizes)


def judge_rates(
    rows: Rows, tables: Sequence[tuple], names: Sequence[str], positions: Sequence[int], min_rows: float
) -> list[list[JudgedRate]]:
    """Return the rates of each table, in the order of classes and, within a class, of ``names``.

    ``tables`` are counts of the same rows by different predictions, as :meth:`Rows.count` returns them: a group is
    judged in all of them or in none, by the smallest number of rows behind it.
    """
    judged: list[list[JudgedRate]] = [[] for _ in tables]
    measured = {name: [effective_sizes(counts, squared, name) for counts, _, squared in tables] for name in names}
    for position in positions:
        for name in names:
            columns = [
                tuple(part if name == "accuracy" else part[..., position] for part in parts) for parts in measured[name]
            ]
            label = None if name == "accuracy" else rows.classes[position]
            sizes = np.minimum.reduce([column[2] for column in columns])
            strata, groups, lacking = _common_strata(columns[0][1], sizes, min_rows)
            made = [
                _standardise(name, label, rates, trials, sizes, strata, groups, lacking) for rates, trials, _ in columns
            ]
            # Unequal weights of strata leave fewer effective rows than there are.
            kept = np.logical_and.reduce([rate.sizes >= min_rows for rate in made])
            for result, rate in zip(judged, made):
                result.append(rate.only(kept))
    return judged


def _common_strata(
    trials: np.ndarray, sizes: np.ndarray, min_rows: float
) -> tuple[np.ndarray, np.ndarray, tuple[tuple[int, int], ...]]:
    """Choose the groups with enough rows, and the strata in which all of them have rows."""
    enough = sizes.sum(axis=0) >= min_rows
    share = trials.sum(axis=1) / max(trials.sum(), np.finfo(float).tiny)
    present = sizes > 0
    enough &= share @ present >= _LEAST_SHARE
    groups = np.flatnonzero(enough)
    used = (share > 0) & present[:, groups].all(axis=1)
    absent = np.argwhere(~present & enough & (share > 0)[:, None])
    return np.flatnonzero(used), groups, tuple((int(stratum), int(group)) for stratum, group in absent)


def _standardise(
    name: str,
    label: Any,
    rates: np.ndarray,
    trials: np.ndarray,
    sizes: np.ndarray,
    strata: np.ndarray,
    groups: np.ndarray,
    lacking: tuple[tuple[int, int], ...],
) -> JudgedRate:
    """Average the rates of the strata with the same weights in every group."""
    if not len(strata):
        groups = groups[:0]
    cell = np.ix_(strata, groups)
    by_stratum, n = rates[cell], sizes[cell]
    share = trials[strata].sum(axis=1)
    weights = share / share.sum() if len(strata) else share
    values = np.clip(weights @ by_stratum, 0.0, 1.0)
    if len(strata) == 1:
        return JudgedRate(name, label, groups, values, n[0], by_stratum, n, weights, strata, lacking)
    # As if all strata had the same rate, or by the rates that they have (one row of the mean added), if that is less.
    alike = 1 / (weights[:, None] ** 2 / n).sum(axis=0) if len(strata) else values
    smooth = (by_stratum * n + values) / (n + 1)
    variance = (weights[:, None] ** 2 * smooth * (1 - smooth) / n).sum(axis=0)
    own = np.divide(values * (1 - values), variance, out=np.full(values.shape, np.inf), where=variance > 0)
    effective = np.where((values > 0) & (values < 1), np.minimum(alike, own), alike)
    return JudgedRate(name, label, groups, values, effective, by_stratum, n, weights, strata, lacking)
