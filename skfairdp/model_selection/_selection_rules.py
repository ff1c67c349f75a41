"""Rules that choose one candidate of a search: callables for ``refit=``."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from sklearn.base import clone

from skfairdp.model_selection._search_results import Metric, Results, best_of, eligible_candidates, score_tolerance


class _Judgement:
    """The candidates as a rule sees them: metrics, those that count, and the one that is most accurate."""

    def __init__(self, rule: Any, cv_results: Any):
        self.results = Results(cv_results, rule.directions)
        names = [rule.accuracy, rule.fairness, *([] if rule.privacy is None else [rule.privacy])]
        self.metrics = [self.results.metric(name) for name in names]
        self.accuracy, self.fairness, *privacy = self.metrics
        needed = self.metrics if rule._privacy_is_needed else self.metrics[:2]
        self.candidates = eligible_candidates(self.results, needed)
        self.best_accuracy = float(self.accuracy.score[self.candidates].max())
        self.tie_breakers = [metric.score for metric in (*privacy, self.accuracy)]

    def table(self, chosen: int, verdicts: np.ndarray, **columns: np.ndarray) -> pd.DataFrame:
        """Lay out the choice, one row per candidate."""
        # What a search for accuracy alone would choose; among equals the fairer one.
        reference = best_of(self.candidates, [self.accuracy.score, self.fairness.score])
        everybody = np.arange(self.results.n_candidates)
        verdicts = verdicts.astype(object)
        verdicts[~np.isin(everybody, self.candidates)] = "skipped: a metric is not finite"
        verdicts[~self.results.last_iteration()] = "skipped: eliminated in an earlier iteration"
        verdicts[chosen] = "chosen"
        return self.results.table(self.metrics).assign(
            **columns,
            accuracy_given_up=self.best_accuracy - self.accuracy.score,
            gap_won=self.fairness.score - self.fairness.score[reference],
            chosen=everybody == chosen,
            verdict=verdicts,
        )


class _Rule(ABC):
    """What the rules share: they are called, they explain, and they refit a search that cannot call them."""

    _privacy_is_needed: ClassVar[bool] = True

    def __call__(self, cv_results: Any) -> int:
        """Return the position of the chosen candidate."""
        chosen, _, _ = self._decide(_Judgement(self, cv_results))
        return chosen

    def explain(self, cv_results: Any) -> pd.DataFrame:
        """Return a table with one row per candidate: what it costs, what it wins, and the verdict.

        Parameters
        ----------
        cv_results : dict, pandas or polars DataFrame
            As for a call.

        Returns
        -------
        pandas.DataFrame
            ``accuracy_given_up`` is the distance to the best accuracy; ``gap_won`` is how much fairer the candidate
            is than the most accurate one (negative: less fair).
        """
        judgement = _Judgement(self, cv_results)
        chosen, verdicts, columns = self._decide(judgement)
        return judgement.table(chosen, verdicts, **columns)

    def refit(self, search: Any, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """Fit the chosen candidate of a finished search on all rows.

        For searches that do not call ``refit``: the halving searches of scikit-learn always take the best score.

        Parameters
        ----------
        search : fitted search
            With ``estimator`` and ``cv_results_``.
        X : array-like
            All rows.
        y : array-like, optional
            Their labels.
        **fit_params : dict
            Passed to ``fit`` of the estimator.

        Returns
        -------
        estimator
            A fitted clone of ``search.estimator`` with the chosen parameters.
        """
        if not hasattr(search, "cv_results_"):
            raise ValueError("search must have been fitted: it has no cv_results_.")
        params = search.cv_results_["params"][self(search.cv_results_)]
        estimator = clone(search.estimator).set_params(**clone(params, safe=False))
        return estimator.fit(X, **fit_params) if y is None else estimator.fit(X, y, **fit_params)

    @abstractmethod
    def _decide(self, judgement: _Judgement) -> tuple[int, np.ndarray, dict[str, np.ndarray]]:
        """Return the choice, a verdict on every candidate, and columns for the explanation."""


@dataclass(frozen=True)
class RelaxationThreshold(_Rule):
    """Choose the fairest candidate among those that are almost as accurate as the best one.

    Among candidates whose mean validation accuracy lies in [best - threshold, best], take the one with the best
    fairness; among equally fair ones the most private, if privacy is measured, then the most accurate.

    Parameters
    ----------
    threshold : float, default=0.01
        The accuracy that may be given up. The band includes its lower end; rounding errors do not count.
    accuracy : str, default="accuracy"
        Name of the accuracy metric: a key of ``scoring``, or a column of the table.
    fairness : str, default="tpr_gap"
        Name of the fairness metric.
    privacy : str, optional
        Name of a privacy metric, which decides between candidates of equal fairness. It may be a parameter,
        such as ``"param_privatizer__epsilon"``.
    directions : dict of str to {"min", "max"}, optional
        How to read columns. Not needed for ``mean_test_`` columns, where larger is better (a gap is
        negative), and for names that tell, such as those that end in ``_gap``.

    Notes
    -----
    Candidates with an accuracy or fairness that is not finite are skipped, also when the best accuracy is looked for;
    if none is left the rule raises. Of a halving search only the candidates of the last iteration count.

    A search turns the error of a scorer into nan and a warning. A metric of the rule (privacy among them) that is nan
    for every candidate was never measured: the rule raises, and says how to pass the sensitive features on.

    **Privacy.** A search over private rows releases them for every candidate, fold and score, and the budget pays
    for all of the candidates, not for the chosen one alone.

    References
    ----------
    .. [1] G. Maheshwari, P. Denis, M. Keller, A. Bellet, "Fair NLP Models with Differentially Private Text
       Encoders", Findings of EMNLP 2022, section 5.1 (where the threshold is in percentage points: 1.0 is 0.01 here).

    Examples
    --------
    >>> from skfairdp.model_selection import RelaxationThreshold
    >>> table = {"accuracy": [0.90, 0.89, 0.88], "tpr_gap": [0.20, 0.05, 0.01]}
    >>> rule = RelaxationThreshold(0.01)
    >>> rule(table)
    1
    >>> rule.explain(table)[["accuracy_given_up", "gap_won", "verdict"]].round(2)
               accuracy_given_up  gap_won                      verdict
    candidate
    0                       0.00     0.00  in the band, but not chosen
    1                       0.01     0.15                       chosen
    2                       0.02     0.19      accuracy below the band
    """

    _privacy_is_needed: ClassVar[bool] = False  # it only breaks ties

    threshold: float = 0.01
    accuracy: str = "accuracy"
    fairness: str = "tpr_gap"
    privacy: str | None = None
    directions: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.threshold, bool) or not isinstance(self.threshold, Real) or not self.threshold >= 0:
            raise ValueError(f"threshold must be a number of at least 0; got {self.threshold!r}.")

    def _decide(self, judgement: _Judgement) -> tuple[int, np.ndarray, dict[str, np.ndarray]]:
        floor = judgement.best_accuracy - self.threshold
        in_band = judgement.accuracy.score >= floor - score_tolerance(judgement.best_accuracy)
        candidates = judgement.candidates[in_band[judgement.candidates]]
        chosen = best_of(candidates, [judgement.fairness.score, *judgement.tie_breakers])
        verdicts = np.where(in_band, "in the band, but not chosen", "accuracy below the band")
        return chosen, verdicts, {"in_band": np.isin(np.arange(len(in_band)), candidates)}


@dataclass(frozen=True)
class DistanceToOptimum(_Rule):
    """Choose the candidate that lies closest to the point where every metric is best.

    Parameters
    ----------
    accuracy : str, default="accuracy"
        Name of the accuracy metric: a key of ``scoring``, or a column of the table.
    fairness : str, default="tpr_gap"
        Name of the fairness metric.
    privacy : str, optional
        Name of a privacy metric. If given it is a third axis.
    optimum : dict of str to float, optional
        The point to be near to, as a person reads the metrics: ``{"accuracy": 1.0, "tpr_gap": 0.0}``. By default the
        best value that any candidate reaches, for each metric by itself.
    scale : {"range"} or None, default=None
        None takes differences as they are, which suits metrics between 0 and 1; ``"range"`` divides them by the
        distance between the best and the worst candidate (needed for a code length in bits).
    weights : dict of str to float, optional
        Factors of the differences; 1 by default.
    directions : dict of str to {"min", "max"}, optional
        As in :class:`RelaxationThreshold`.

    Notes
    -----
    The distance is Euclidean. Ties, nan and halving searches are treated as in :class:`RelaxationThreshold`; here
    a candidate without a finite privacy is skipped, too.

    References
    ----------
    .. [1] X. Han, T. Baldwin, T. Cohn, "Balancing out Bias: Achieving Fairness Through Balanced Training",
       EMNLP 2022.

    Examples
    --------
    >>> from skfairdp.model_selection import DistanceToOptimum
    >>> table = {"accuracy": [0.90, 0.87, 0.60], "tpr_gap": [0.20, 0.05, 0.01]}
    >>> DistanceToOptimum()(table)
    1
    """

    accuracy: str = "accuracy"
    fairness: str = "tpr_gap"
    privacy: str | None = None
    optimum: Mapping[str, float] | None = None
    scale: str | None = None
    weights: Mapping[str, float] | None = None
    directions: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        if self.scale not in (None, "range"):
            raise ValueError(f"scale must be 'range' or None; got {self.scale!r}.")
        names = {self.accuracy, self.fairness, self.privacy}
        for argument, given in (("optimum", self.optimum), ("weights", self.weights)):
            if given is not None and not set(given) <= names:
                raise ValueError(f"{argument} must name metrics of this rule; got {sorted(set(given) - names)}.")
        if any(not weight >= 0 for weight in (self.weights or {}).values()):
            raise ValueError(f"weights must not be negative; got {self.weights!r}.")

    def _decide(self, judgement: _Judgement) -> tuple[int, np.ndarray, dict[str, np.ndarray]]:
        total = np.zeros(judgement.results.n_candidates)
        for metric in judgement.metrics:
            here = metric.score[judgement.candidates]
            best = self._best(metric, here)
            unit = float(here.max() - here.min()) if self.scale == "range" else 1.0
            weight = float((self.weights or {}).get(metric.name, 1.0))
            total += (weight * (best - metric.score) / (unit or 1.0)) ** 2
        distance = np.sqrt(total)
        chosen = best_of(judgement.candidates, [-distance, *judgement.tie_breakers])
        return chosen, np.full(len(distance), "farther from the optimum"), {"distance": distance}

    def _best(self, metric: Metric, scores: np.ndarray) -> float:
        if self.optimum is None or metric.name not in self.optimum:
            return float(scores.max())
        wanted = float(self.optimum[metric.name])
        return -wanted if metric.negated else wanted


@dataclass(frozen=True)
class ParetoFront(_Rule):
    """Choose a candidate that no other one beats in all metrics at once.

    Parameters
    ----------
    accuracy : str, default="accuracy"
        Name of the accuracy metric: a key of ``scoring``, or a column of the table.
    fairness : str, default="tpr_gap"
        Name of the fairness metric.
    privacy : str, optional
        Name of a privacy metric. If given it is a third axis.
    prefer : {"balanced", "accuracy", "fairness", "privacy"}, default="balanced"
        Which candidate of the front: the one that is best in one metric, or ``"balanced"``: every metric is scaled to
        [0, 1] on the front, and the candidate whose worst metric is best is taken.
    directions : dict of str to {"min", "max"}, optional
        As in :class:`RelaxationThreshold`.

    Notes
    -----
    Ties, nan and halving searches are treated as in :class:`RelaxationThreshold`; here a candidate without a finite
    privacy is skipped, too. A front of two candidates has no middle: the tie is decided by privacy, then accuracy.

    Examples
    --------
    >>> from skfairdp.model_selection import ParetoFront
    >>> table = {"accuracy": [0.90, 0.89, 0.80, 0.70], "tpr_gap": [0.20, 0.05, 0.06, 0.01]}
    >>> ParetoFront()(table)
    1
    >>> ParetoFront(prefer="fairness")(table)
    3
    """

    accuracy: str = "accuracy"
    fairness: str = "tpr_gap"
    privacy: str | None = None
    prefer: str = "balanced"
    directions: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        allowed = ("balanced", "accuracy", "fairness", *(() if self.privacy is None else ("privacy",)))
        if self.prefer not in allowed:
            raise ValueError(f"prefer must be one of {allowed}; got {self.prefer!r}.")

    def _decide(self, judgement: _Judgement) -> tuple[int, np.ndarray, dict[str, np.ndarray]]:
        scores = np.column_stack([metric.score for metric in judgement.metrics])
        front = judgement.candidates[undominated_rows(scores[judgement.candidates])]
        if self.prefer == "balanced":
            spread = np.ptp(scores[front], axis=0)
            scaled = (scores - scores[front].min(axis=0)) / np.where(spread > 0, spread, 1.0)
            first = np.where(spread > 0, scaled, 1.0).min(axis=1)
        else:
            first = judgement.metrics[("accuracy", "fairness", "privacy").index(self.prefer)].score
        chosen = best_of(front, [first, *judgement.tie_breakers])
        on_front = np.isin(np.arange(len(scores)), front)
        return chosen, np.where(on_front, "on the front, but not chosen", "dominated"), {"on_front": on_front}


def pareto_front(
    cv_results: Any, objectives: "Sequence[str] | Mapping[str, str]" = ("accuracy", "tpr_gap")
) -> pd.DataFrame:
    """Table of the candidates that no other candidate beats in all objectives at once.

    Parameters
    ----------
    cv_results : dict, pandas or polars DataFrame
        ``cv_results_`` of a search, or any table with one row per candidate.
    objectives : sequence of str, or dict of str to {"max", "min"}
        Names of metrics: keys of ``scoring``, or columns. In ``mean_test_`` columns larger is better, as
        scikit-learn has it; elsewhere the name tells (a ``_gap`` is small), or else the dict.

    Returns
    -------
    pandas.DataFrame
        One row for each candidate on the front, indexed by its position in ``cv_results``, best first in the first
        objective. Columns: ``params`` if there are any, and the objectives as a person reads them (a gap is positive).

    Notes
    -----
    Candidates with an objective that is not finite are left out; of a halving search only the last iteration
    counts. Equal candidates are all on the front.

    Examples
    --------
    >>> from skfairdp.model_selection import pareto_front
    >>> table = {"accuracy": [0.90, 0.89, 0.88, 0.80], "tpr_gap": [0.20, 0.05, 0.07, 0.01]}
    >>> pareto_front(table, ["accuracy", "tpr_gap"])
               accuracy  tpr_gap
    candidate
    0              0.90     0.20
    1              0.89     0.05
    3              0.80     0.01
    """
    if isinstance(objectives, str) or not objectives:
        raise ValueError(f"objectives must be a list of metric names, or a dict of directions; got {objectives!r}.")
    results = Results(cv_results, objectives if isinstance(objectives, Mapping) else None)
    metrics = [results.metric(name) for name in objectives]
    candidates = eligible_candidates(results, metrics)
    scores = np.column_stack([metric.score for metric in metrics])
    front = candidates[undominated_rows(scores[candidates])]
    return results.table(metrics).iloc[front[np.lexsort(-scores[front].T[::-1])]]


def undominated_rows(scores: np.ndarray) -> np.ndarray:
    """Return a mask of the rows that no other row equals or exceeds everywhere, and exceeds somewhere."""
    mask = np.ones(len(scores), dtype=bool)
    # In this order nothing can be dominated by what comes later, so that the front so far is enough to ask.
    front: list[int] = []
    for k in np.lexsort(-scores.T[::-1]):
        others = scores[front]
        if front and ((others >= scores[k]).all(axis=1) & (others > scores[k]).any(axis=1)).any():
            mask[k] = False
        else:
            front.append(k)
    return mask
