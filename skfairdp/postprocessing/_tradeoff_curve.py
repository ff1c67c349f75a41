"""How accuracy falls as fairness rises: the curve that one fit gives, and the point on it that is taken.

The multipliers mu say in which direction utilities must be moved to make the groups' rates equal. Moving by
``strength`` times mu, from 0 (the plain model) over 1 (equal rates, if the beliefs are right) to 2, gives the curve.
Every point is judged by the labels and groups of rows that the models have not seen, so that beliefs which are off are
found out, and by the rates of *released* answers: noise makes gaps smaller, and a small epsilon needs less correction.

Estimated rates are off by chance, and hardly less at one point of the curve than at the next, because the rows are the
same. Where the plain model's groups differ by no more than chance would have it, making their estimated rates equal
only moves the true ones apart. So a point is taken by its *expected* gap: the mean of the largest difference of true
rates over what the errors are likely to be, given how far the plain model's groups lie apart (see ``_likely_errors``).
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from skfairdp.mechanisms import AnswerMechanism, best_answers
from skfairdp.postprocessing._beliefs import LEAST_ROWS, Beliefs
from skfairdp.postprocessing._fair_multipliers import (
    LARGEST_MULTIPLIER,
    Rate,
    adjustments,
    cell_shares,
    ratio_or_zero,
    solve_multipliers,
)

STRENGTHS = np.linspace(0.0, 2.0, 41)
_REFINEMENTS = 2
#: How far believed rates are taken to be off even where counts agree with them.
_LEAST_ERROR = 0.01
#: How often the linear program is solved at most while what is counted at its solution moves by more than this.
_ROUNDS, _SAME_OFFSET = 3, 0.003
#: Halvings of the range of a multiplier; what is left of it moves no answer.
_HALVINGS = 20
#: Expected gaps that differ by less are the same.
_SAME_GAP = 1e-6
_Z = 1.959964  # 95 % of a normal distribution
_DRAWS = 2000
_BLOCK = 1 << 19  # numbers that are drawn on at a time

#: A rate of every group, the variance of what was counted of it, and how far that is trusted against beliefs.
RateEstimates = tuple[np.ndarray, np.ndarray, np.ndarray]


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
        self._places = [groups.places[cell] for cell in self._cells] if groups is not None else []
        self._joint = [beliefs.joint(rate.given) for rate in rates]
        self.rows = np.zeros((len(rates), n_groups))
        for r, cell in enumerate(self._cells):
            total, squared = (self._sum_by_group(r, self.weight[cell] ** power) for power in (1, 2))
            self.rows[r] = ratio_or_zero(total**2, squared)
        self.known = self.rows >= LEAST_ROWS
        self.shares = np.zeros(self.rows.shape)
        self._set_multipliers(np.zeros(self.rows.shape))
        if groups is not None and rates:
            self.shares = cell_shares(beliefs, rates, self.weight)
            # A rate is made equal no more closely than its rows can tell: half a standard error of a share.
            slack = np.where(self.known & (self.shares > 0), 0.25 / np.sqrt(np.maximum(self.rows, 1)), np.nan)
            self._solve(slack, int(generator.integers(2**32)))
        self._noise = generator.standard_normal((len(rates), _DRAWS, n_groups))

    def _solve(self, slack: np.ndarray, seed: int) -> None:
        """Find the multipliers; where counts say that beliefs are off, find them again for what was counted."""
        offsets = np.zeros(slack.shape)
        compared = self._compared()
        if len(compared) == 1 and compared[0][1].sum() == 2:
            self._solve_for_two_groups(*compared[0])
            return
        for _ in range(_ROUNDS if compared else 0):
            self._set_multipliers(
                solve_multipliers(self.beliefs, self.rates, self.groups.columns, slack, offsets, self.weight, seed)  # type: ignore[union-attr]
            )
            q = self._decisions(1.0)
            found = np.array([self._estimate_rates(q, r)[0] - self._believed_rates(q, r) for r in range(len(slack))])
            if np.abs(found - offsets)[self.known].max(initial=0.0) < _SAME_OFFSET:
                break
            offsets = found

    def _solve_for_two_groups(self, r: int, pair: np.ndarray) -> None:
        """Find the multipliers of the one rate of two groups, under which their estimated rates are equal.

        They are mu and -mu: what makes one group's rate dearer makes the other's cheaper by as much. The difference of
        the rates falls as mu rises, so that it is found by halving, without a linear program; and where the beliefs are
        off, it still goes as far as the counted labels say.
        """
        direction = np.zeros(self.known.shape)
        direction[r, np.flatnonzero(pair)] = 1.0, -1.0
        self._set_multipliers(direction)

        def difference(mu: float) -> float:
            first, second = self._estimate_rates(self._decisions(mu), r)[0][pair]
            return float(first - second)

        sign = float(np.sign(difference(0.0)))
        low, high = 0.0, LARGEST_MULTIPLIER
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if sign * difference(sign * middle) > 0 else (low, middle)
        self._set_multipliers(sign * high * direction)

    def _decisions(self, strength: float) -> np.ndarray:
        """Answer every row by its largest utility."""
        return np.eye(self.n_classes)[self.utilities(strength).argmax(axis=1)]

    def _set_multipliers(self, multipliers: np.ndarray) -> None:
        self.multipliers = multipliers
        self.prices = ratio_or_zero(multipliers, self.shares)
        self._taken = adjustments(self.beliefs, self.rates, self.prices)

    def _sum_by_group(self, r: int, values: np.ndarray) -> np.ndarray:
        """Sum values of the rows that a rate is about, by group."""
        return sum(np.bincount(place, weights=values, minlength=self.rows.shape[1]) for place in self._places[r].T)

    def utilities(self, strength: float) -> np.ndarray:
        """Utility of each answer to each row, moved towards fairness."""
        return self.beliefs.classes - strength * self._taken

    def table(self, epsilon: float) -> pd.DataFrame:
        """Judge every point of the curve at an epsilon.

        Returns
        -------
        DataFrame
            ``strength``, ``accuracy`` and ``gap`` with the ends of their intervals, ``gap_expected``, and
            ``n_answers``, the number of answers that are given at all.
        """
        errors = self._likely_errors(self._released(epsilon, 0.0)[0])
        if not self.multipliers.any():
            return pd.DataFrame(self._points(epsilon, [0.0], errors))
        points = dict(zip(STRENGTHS.tolist(), self._points(epsilon, STRENGTHS.tolist(), errors)))
        for _ in range(_REFINEMENTS):
            # Where many rows have nearly the same utilities, rates jump between two strengths: look closer.
            strengths = sorted(points)
            finer: set[float] = set()
            for measure in ("gap", "gap_expected"):
                fairest = min(range(len(strengths)), key=lambda k: points[strengths[k]][measure])
                ends = strengths[max(fairest - 1, 0)], strengths[min(fairest + 1, len(strengths) - 1)]
                if fairest > 0:
                    finer |= set(np.linspace(*ends, 12)[1:-1].tolist())
            new = sorted(finer - set(points))
            points |= dict(zip(new, self._points(epsilon, new, errors)))
        return pd.DataFrame([points[strength] for strength in sorted(points)])

    def _released(self, epsilon: float, strength: float) -> tuple[np.ndarray, AnswerMechanism]:
        """Compute how often each row gets each answer at a point of the curve, and by which mechanism."""
        utilities = self.utilities(strength)
        mechanism, _, _ = best_answers(utilities, epsilon, self.weight, search_floors=False)
        return mechanism.probabilities(utilities), mechanism

    def _points(self, epsilon: float, strengths: list[float], errors: list[np.ndarray]) -> list[dict[str, float]]:
        """Judge several points of the curve; their draws are compared together, which is faster."""
        accuracies, estimates, n_answers = [], [], []
        for strength in strengths:  # how often each row gets each answer is kept for one point only: rows may be many
            q, mechanism = self._released(epsilon, strength)
            accuracies.append(self._accuracy(q))
            estimates.append(self._estimates(q))
            n_answers.append(sum(c > 0 for c in mechanism.ceilings))
        columns = zip(strengths, accuracies, self._gaps(estimates), self._expected_gaps(estimates, errors), n_answers)
        return [
            {"strength": strength, **accuracy, **gap, "gap_expected": expected, "n_answers": n}
            for strength, accuracy, gap, expected, n in columns
        ]

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
        return {**self._accuracy(q), **self._gaps([self._estimates(q)])[0]}

    def _accuracy(self, q: np.ndarray) -> dict[str, float]:
        right = q[np.arange(len(q)), self.y]
        accuracy = float(self.weight @ right)
        deviation = _Z * math.sqrt(float(self.weight**2 @ (right - accuracy) ** 2))
        return {
            "accuracy": accuracy,
            "accuracy_lower": max(accuracy - deviation, 0.0),
            "accuracy_upper": min(accuracy + deviation, 1.0),
        }

    def _estimates(self, q: np.ndarray) -> list[RateEstimates]:
        return [self._estimate_rates(q, r) for r in range(len(self.rates))]

    def _gaps(self, points: list[list[RateEstimates]]) -> list[dict[str, float]]:
        """Return the largest difference of two groups' rates, and an interval that holds all differences at once.

        If every estimate is off by e_g, no difference is off by more than the largest ``|e_g - e_h|``: its 95 %
        quantile, by simulation, is the half width.

        Parameters
        ----------
        points : list of list of RateEstimates
            For each point of the curve, the estimates of every rate.

        Returns
        -------
        list of dict
            For each point.
        """
        found = [(math.nan, math.nan, math.nan)] * len(points)
        for r, here in self._compared():
            rates, variance, trust = (np.array([of[r][k][here] for of in points]) for k in range(3))
            noise, deviations = self._noise[r][:, here], np.sqrt(trust * variance)
            for some in self._blocks_of_points(len(points), noise.shape[1]):
                ranges = _range_by_point(deviations[some].T[:, :, None] * noise.T[:, None, :])
                widths = np.quantile(ranges, 0.95, axis=1)
                for k, gap, width in zip(some, np.ptp(rates[some], axis=1).tolist(), widths.tolist()):
                    if not gap <= found[k][0]:
                        found[k] = (gap, max(gap - width, 0.0), min(gap + width, 1.0))
        return [dict(zip(("gap", "gap_lower", "gap_upper"), one)) for one in found]

    def _expected_gaps(self, points: list[list[RateEstimates]], errors: list[np.ndarray]) -> list[float]:
        """For each point, average the largest difference of two groups' true rates over what the errors may be."""
        largest = np.full((len(points), _DRAWS), np.nan)
        for r, here in self._compared():
            rates, variance, _ = (np.array([of[r][k][here] for of in points]) for k in range(3))
            off = errors[r][:, here].T[:, None, :]
            for some in self._blocks_of_points(len(points), len(off)):
                true = rates[some].T[:, :, None] - off * np.sqrt(variance[some]).T[:, :, None]
                largest[some] = np.fmax(largest[some], _range_by_point(true))
        return largest.mean(axis=1).tolist()

    def _blocks_of_points(self, n_points: int, n_groups: int) -> list[range]:
        """Divide points so that the draws of a block take a few megabytes."""
        size = max(1, _BLOCK // (_DRAWS * n_groups))
        return [range(start, min(start + size, n_points)) for start in range(0, n_points, size)]

    def _likely_errors(self, q: np.ndarray) -> list[np.ndarray]:
        """Draw by how many standard deviations rates may be estimated too high, given those of the plain model.

        Of the distances of a column's groups from their mean, the share ``1 - b`` is taken to be error, and the rest to
        be true, with errors of variance ``b s_g^2`` around it. If F is how many times more the groups are spread than
        chance alone would have it, an empirical Bayes estimate is ``b = 1 - 1/F``, or 0 if F is below 1 (Efron and
        Morris 1973). Here it is ``1 - 1/F^2``, which is as good where there is no gap and leaves less of a clear one.

        Parameters
        ----------
        q : ndarray of shape (n_samples, n_classes)
            How often the plain model gives each answer to each row.

        Returns
        -------
        list of ndarray of shape (n_draws, n_groups)
            One for each rate.
        """
        errors = []
        for r, known in enumerate(self.known):
            rates, variance, _ = self._estimate_rates(q, r)
            drawn = self._noise[r].copy()
            for here in self._comparable(known):
                if (variance[here] > 0).all():
                    mean, true = _mean_and_true_share(rates[here], variance[here])
                    lies_off = (1 - true) * (rates[here] - mean) / np.sqrt(variance[here])
                    drawn[:, here] = lies_off + math.sqrt(true) * drawn[:, here]
            errors.append(drawn)
        return errors

    def _estimate_rates(self, q: np.ndarray, r: int) -> RateEstimates:
        """Estimate a rate of every group; also return the variance of what was counted, and how far it is trusted.

        Counted rates are right on average and noisy, believed ones are smooth and may be off; a model that cannot tell
        a small group believes in the rate of all groups for it. So the counted rate is shrunk towards the believed one,
        the more the fewer rows it has: beliefs are taken to be off by a point or, where counts say so, by more.
        """
        rate, cell, rows = self.rates[r], self._cells[r], self.rows[r]
        believed = self._believed_rates(q, r)
        values, weight = q[cell, rate.answer], self.weight[cell]
        total = self._sum_by_group(r, weight)
        counted = ratio_or_zero(self._sum_by_group(r, weight * values), total)
        # The variance of a share, of values that lie between the least and the largest: noise draws them together, and
        # one answer for everybody has the same rate in every group.
        least, width = float(q[:, rate.answer].min()), float(np.ptp(q[:, rate.answer]))
        share = ratio_or_zero(believed - least, np.full(believed.shape, width))
        variance = width**2 * np.clip(share * (1 - share), 1e-4, None) / np.maximum(rows, 1)
        known = self.known[r]
        off = float(np.mean((counted - believed)[known] ** 2 - variance[known])) if known.any() else 0.0
        off = max((width * _LEAST_ERROR) ** 2, off)
        trust = ratio_or_zero(np.full(variance.shape, off), off + variance)
        return believed + trust * (counted - believed), variance, trust

    def _believed_rates(self, q: np.ndarray, r: int) -> np.ndarray:
        told = (self.weight * q[:, self.rates[r].answer]) @ self._joint[r]
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

    def _compared(self) -> list[tuple[int, np.ndarray]]:
        """List every rate with the groups of a sensitive column that are compared by it."""
        return [(r, here) for r, known in enumerate(self.known) for here in self._comparable(known)]

    def posterior(self, q: np.ndarray) -> np.ndarray:
        """Compute P(y | answer) from the labels; an answer that is never given tells nothing."""
        share = np.bincount(self.y, weights=self.weight, minlength=self.n_classes)
        together = np.array([np.bincount(self.y, weights=self.weight * column, minlength=len(share)) for column in q.T])
        given = together.sum(axis=1, keepdims=True)
        return np.where(given > 0, np.divide(together, given, where=given > 0, out=np.zeros_like(together)), share)

    def majority(self) -> float:
        """Return the accuracy of the best constant answer."""
        return float(np.bincount(self.y, weights=self.weight).max())


def _range_by_point(values: np.ndarray) -> np.ndarray:
    """Return largest minus least over the groups, which come first because that is ten times as fast."""
    return values.max(axis=0) - values.min(axis=0)


def _mean_and_true_share(rates: np.ndarray, variance: np.ndarray) -> tuple[float, float]:
    """Return the mean of groups' rates, and how much of their distances from it is no error."""
    weight = 1 / variance
    mean = float(weight @ rates / weight.sum())
    times_chance = float(weight @ (rates - mean) ** 2) / (len(rates) - 1)
    return mean, 1 - 1 / max(times_chance, 1.0) ** 2


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
        Without ``max_gap``: of the points whose accuracy is at most this far below the best, the one of the smallest
        expected gap; the plain model wins ties.

    Returns
    -------
    int
    """
    accuracy, gap = table["accuracy"].to_numpy(), table["gap"].fillna(0.0).to_numpy()
    if max_gap is None:
        allowed = np.flatnonzero(accuracy >= max(accuracy.max() - relaxation, min(majority, accuracy.max())))
        expected = table["gap_expected"].fillna(0.0).to_numpy()[allowed]
        return int(allowed[np.flatnonzero(expected <= expected.min() + _SAME_GAP)[0]])
    allowed = gap <= max_gap
    if not allowed.any():
        return int(gap.argmin())
    return int(np.flatnonzero(allowed)[accuracy[allowed].argmax()])
