"""How accuracy falls as fairness rises: the curve that one fit gives, and the point on it that is taken.

The multipliers mu say in which direction utilities must be moved to make the groups' rates equal. Moving by
``strength`` times mu, from 0 (the plain model) over 1 (equal rates, if the beliefs are right) to 2, gives the curve.
Every point is judged by the labels and groups of rows that the models have not seen, so that beliefs which are off are
found out, and by the rates of *released* answers: noise makes gaps smaller, and a small epsilon needs less correction.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from skfairdp.mechanisms import AnswerMechanism, best_answers
from skfairdp.postprocessing._beliefs import LEAST_ROWS, Beliefs
from skfairdp.postprocessing._fair_multipliers import Rate, adjustments, cell_shares, ratio_or_zero, solve_multipliers

STRENGTHS = np.linspace(0.0, 2.0, 41)
_REFINEMENTS = 2
#: How far believed rates are taken to be off even where counts agree with them.
_LEAST_ERROR = 0.01
#: How often the linear program is solved at most while what is counted at its solution moves by more than this.
_ROUNDS, _SAME_OFFSET = 3, 0.003
_Z = 1.959964  # 95 % of a normal distribution
_DRAWS = 2000


@dataclass(frozen=True)
class Groups:
    """The sensitive columns, side by side.

    Attributes
    ----------
    indices : ndarray of shape (n_samples, n_columns)
        Group of each row in each column.
    n_groups : tuple of int
        Number of groups of each column.
    """

    indices: np.ndarray
    n_groups: tuple[int, ...]

    @property
    def columns(self) -> np.ndarray:
        """The column of each group."""
        return np.repeat(np.arange(len(self.n_groups)), self.n_groups)

    @property
    def places(self) -> np.ndarray:
        """The groups of each row, counted through all columns."""
        return self.indices + np.concatenate([[0], np.cumsum(self.n_groups)[:-1]]).astype(int)


class TradeoffCurve:
    """Rows with their labels, groups and out-of-fold beliefs, and the multipliers that make their rates equal.

    Parameters
    ----------
    beliefs : Beliefs
        Out of fold.
    y : ndarray of int
        Class indices.
    groups : Groups or None
        Without groups the curve is one point.
    rates : list of Rate
        What is made equal between groups; empty without groups.
    weight : ndarray
        Row weights.
    generator : Generator
        For choices among rows that protect nobody.

    Attributes
    ----------
    rows : ndarray of shape (n_rates, n_groups)
        Rows that each rate is estimated from (effective ones, with weights).
    known : ndarray of bool of shape (n_rates, n_groups)
        Whether there are enough of them.
    multipliers, shares, prices : ndarray of shape (n_rates, n_groups)
        mu of the linear program, ``P(y in M, z = g)`` as believed, and their ratio.
    """

    def __init__(
        self,
        beliefs: Beliefs,
        y: np.ndarray,
        groups: Groups | None,
        rates: list[Rate],
        weight: np.ndarray,
        generator: np.random.Generator,
    ):
        self.beliefs, self.y, self.groups, self.rates = beliefs, y, groups, rates
        self.weight = weight / weight.sum()
        self.n_classes = beliefs.classes.shape[1]
        n_groups = 0 if groups is None else sum(groups.n_groups)
        self._cells = [np.flatnonzero(np.isin(y, rate.given)) for rate in rates]
        self.rows = np.zeros((len(rates), n_groups))
        for counts, cell in zip(self.rows, self._cells):
            counts[:] = self._effective_rows(cell, n_groups)
        self.known = self.rows >= LEAST_ROWS
        self.shares = np.zeros(self.rows.shape)
        self._set_multipliers(np.zeros(self.rows.shape))
        if groups is not None and rates:
            self.shares = cell_shares(beliefs, rates, self.weight)
            # A rate is made equal no more closely than its rows can tell: half a standard error of a share.
            slack = np.where(self.known & (self.shares > 0), 0.25 / np.sqrt(np.maximum(self.rows, 1)), np.nan)
            self._solve(slack, int(generator.integers(2**32)))
        self._noise = generator.standard_normal((_DRAWS, n_groups))

    def _solve(self, slack: np.ndarray, seed: int) -> None:
        """Find the multipliers; where counts say that beliefs are off, find them again for what was counted.

        With two groups and one rate there is only one direction, and how far to go in it is for the curve to say.
        """
        offsets = np.zeros(slack.shape)
        n_directions = sum(int(here.sum()) - 1 for known in self.known for here in self._comparable(known))
        for _ in range(_ROUNDS if n_directions > 1 else n_directions):
            self._set_multipliers(
                solve_multipliers(self.beliefs, self.rates, self.groups.columns, slack, offsets, self.weight, seed)  # type: ignore[union-attr]
            )
            q = np.eye(self.n_classes)[self.utilities(1.0).argmax(axis=1)]
            found = np.array([self._estimate_rates(q, r)[0] - self._believed_rates(q, r) for r in range(len(slack))])
            if np.abs(found - offsets)[self.known].max(initial=0.0) < _SAME_OFFSET:
                break
            offsets = found

    def _set_multipliers(self, multipliers: np.ndarray) -> None:
        self.multipliers = multipliers
        self.prices = ratio_or_zero(multipliers, self.shares)
        self._taken = adjustments(self.beliefs, self.rates, self.prices)

    def _effective_rows(self, cell: np.ndarray, n_groups: int) -> np.ndarray:
        total, squared = (self._sum_by_group(cell, self.weight[cell] ** power, n_groups) for power in (1, 2))
        return ratio_or_zero(total**2, squared)

    def _sum_by_group(self, cell: np.ndarray, values: np.ndarray, n_groups: int) -> np.ndarray:
        places = self.groups.places[cell]  # type: ignore[union-attr]
        return sum(np.bincount(place, weights=values, minlength=n_groups) for place in places.T)

    def utilities(self, strength: float) -> np.ndarray:
        """Utility of each answer to each row, moved towards fairness."""
        return self.beliefs.classes - strength * self._taken

    def table(self, epsilon: float) -> pd.DataFrame:
        """Judge every point of the curve at an epsilon.

        Returns
        -------
        DataFrame
            ``strength``, ``accuracy`` and ``gap`` with the ends of their intervals, and ``n_answers``, the number of
            answers that are given at all.
        """
        if not self.multipliers.any():
            return pd.DataFrame([self._point(epsilon, 0.0)])
        points = {strength: self._point(epsilon, strength) for strength in STRENGTHS.tolist()}
        for _ in range(_REFINEMENTS):
            # Where many rows have nearly the same utilities, rates jump between two strengths: look closer.
            strengths = sorted(points)
            fairest = min(range(len(strengths)), key=lambda k: points[strengths[k]]["gap"])
            ends = strengths[max(fairest - 1, 0)], strengths[min(fairest + 1, len(strengths) - 1)]
            finer = np.linspace(*ends, 12)[1:-1].tolist()
            points |= {strength: self._point(epsilon, strength) for strength in finer}
        return pd.DataFrame([points[strength] for strength in sorted(points)])

    def _point(self, epsilon: float, strength: float) -> dict[str, float]:
        utilities = self.utilities(strength)
        mechanism, _, _ = best_answers(utilities, epsilon, self.weight, search_floors=False)
        figures = self.judge(mechanism.probabilities(utilities))
        return {"strength": strength, **figures, "n_answers": sum(c > 0 for c in mechanism.ceilings)}

    def judge(self, q: np.ndarray) -> dict[str, float]:
        """Estimate accuracy and largest gap of released answers, from labels and groups.

        Parameters
        ----------
        q : ndarray of shape (n_samples, n_classes)
            How often each row gets each answer.

        Returns
        -------
        dict
            ``accuracy``, ``gap``, and both ends of an interval of each.
        """
        right = q[np.arange(len(q)), self.y]
        accuracy = float(self.weight @ right)
        deviation = _Z * math.sqrt(float(self.weight**2 @ (right - accuracy) ** 2))
        gap, lower, upper = self._gap(q)
        return {
            "accuracy": accuracy,
            "accuracy_lower": max(accuracy - deviation, 0.0),
            "accuracy_upper": min(accuracy + deviation, 1.0),
            "gap": gap,
            "gap_lower": lower,
            "gap_upper": upper,
        }

    def _gap(self, q: np.ndarray) -> tuple[float, float, float]:
        """Return the largest difference of two groups' rates, and an interval that holds all differences at once.

        If every estimate is off by e_g, no difference is off by more than the largest ``|e_g - e_h|``: its 95 %
        quantile, by simulation, is the half width.
        """
        gaps = [(math.nan, math.nan, math.nan)]
        for r, known in enumerate(self.known):
            rates, deviations = self._estimate_rates(q, r)
            for here in self._comparable(known):
                width = float(np.quantile(np.ptp(self._noise[:, here] * deviations[here], axis=1), 0.95))
                gap = float(np.ptp(rates[here]))
                gaps.append((gap, max(gap - width, 0.0), min(gap + width, 1.0)))
        return max(gaps, key=lambda found: -1.0 if math.isnan(found[0]) else found[0])

    def _estimate_rates(self, q: np.ndarray, r: int) -> tuple[np.ndarray, np.ndarray]:
        """Estimate a rate of every group, with its standard deviation.

        Counted rates are right on average and noisy, believed ones are smooth and may be off; a model that cannot tell
        a small group believes in the rate of all groups for it. So the counted rate is shrunk towards the believed one,
        the more the fewer rows it has: beliefs are taken to be off by a point or, where counts say so, by more.
        """
        rate, cell, rows = self.rates[r], self._cells[r], self.rows[r]
        believed = self._believed_rates(q, r)
        values, weight = q[cell, rate.answer], self.weight[cell]
        total = self._sum_by_group(cell, weight, len(rows))
        counted = ratio_or_zero(self._sum_by_group(cell, weight * values, len(rows)), total)
        # Each row's answer is drawn, so that the variance is that of a share, whatever the noise.
        variance = np.clip(believed * (1 - believed), 1e-4, None) / np.maximum(rows, 1)
        known = self.known[r]
        off = max(
            _LEAST_ERROR**2, float(np.mean((counted - believed)[known] ** 2 - variance[known])) if known.any() else 0
        )
        trust = off / (off + variance)
        return believed + trust * (counted - believed), np.sqrt(trust * variance)

    def _believed_rates(self, q: np.ndarray, r: int) -> np.ndarray:
        told = (self.weight * q[:, self.rates[r].answer]) @ self.beliefs.joint(self.rates[r].given)
        return ratio_or_zero(told, self.shares[r])

    def best_mechanism(self, epsilon: float, strength: float, labels: tuple[Any, ...]) -> AnswerMechanism:
        """Make the best mechanism for a point of the curve, with its accuracy and what bounds it.

        Accuracy is the adjusted utility plus ``sum mu_g rate_g``. So, of all mechanisms of this epsilon that give the
        groups the same rates, none can be more accurate by more than its utility lies below the bound of utilities.

        Parameters
        ----------
        epsilon : float
            The privacy loss of an answer.
        strength : float
            Which point.
        labels : tuple
            What the answers are called.

        Returns
        -------
        AnswerMechanism
        """
        utilities = self.utilities(strength)
        mechanism, value, bound = best_answers(utilities, epsilon, self.weight)
        q = mechanism.probabilities(utilities)
        accuracy = float(self.weight @ (q * self.beliefs.classes).sum(axis=1))
        return replace(mechanism, labels=labels, expected_accuracy=accuracy, accuracy_bound=accuracy + bound - value)

    def _comparable(self, known: np.ndarray) -> list[np.ndarray]:
        """List, for each sensitive column, the groups whose rate is known; one alone has nothing to compare with."""
        if self.groups is None:
            return []
        every = [known & (self.groups.columns == column) for column in range(len(self.groups.n_groups))]
        return [here for here in every if here.sum() > 1]

    def posterior(self, q: np.ndarray) -> np.ndarray:
        """Compute P(y | answer) from the labels; an answer that is never given tells nothing."""
        share = np.bincount(self.y, weights=self.weight, minlength=self.n_classes)
        together = np.array([np.bincount(self.y, weights=self.weight * column, minlength=len(share)) for column in q.T])
        given = together.sum(axis=1, keepdims=True)
        return np.where(given > 0, np.divide(together, given, where=given > 0, out=np.zeros_like(together)), share)

    def majority(self) -> float:
        """Return the accuracy of the best constant answer."""
        return float(np.bincount(self.y, weights=self.weight).max())


def choose_point(table: pd.DataFrame, majority: float, max_gap: float | None, relaxation: float) -> int:
    """Choose a point of the curve.

    Parameters
    ----------
    table : DataFrame
        Of :meth:`TradeoffCurve.table`.
    majority : float
        The accuracy of a constant answer. No point below it is taken, as far as there are others.
    max_gap : float or None
        The largest gap allowed; the most accurate point within it is taken, or the fairest if there is none.
    relaxation : float
        Without ``max_gap``: the fairest point whose accuracy is at most this far below the best.

    Returns
    -------
    int
    """
    accuracy, gap = table["accuracy"].to_numpy(), table["gap"].fillna(0.0).to_numpy()
    if max_gap is None:
        allowed = accuracy >= max(accuracy.max() - relaxation, min(majority, accuracy.max()))
        # Where the curve is flat, noise alone would decide: of gaps that are as good as equal, the least correction.
        tolerance = 0.05 * (table["gap_upper"] - table["gap"]).fillna(0.0).to_numpy()
        return int(np.flatnonzero(allowed & (gap - tolerance <= gap[allowed].min()))[0])
    allowed = gap <= max_gap
    if not allowed.any():
        return int(gap.argmin())
    return int(np.flatnonzero(allowed)[accuracy[allowed].argmax()])
