"""Read the results of a search: which column, which direction, which candidates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from skfairdp._sklearn import routing_enabled
from skfairdp.exceptions import SensitiveFeaturesNotRoutedError
from skfairdp.metrics import how_to_pass_groups

# What names tell. The first rule that fits counts.
_SMALLER_ENDS = ("gap", "_loss", "_error", "_difference", "grms", "leakage", "epsilon")
_LARGER_PARTS = ("accuracy", "score", "auc", "f1", "precision", "recall", "code_length", "r2")


@dataclass(frozen=True)
class Metric:
    """One metric of every candidate.

    Attributes
    ----------
    name : str
        The name under which it was asked for.
    score : ndarray
        Larger is better; nan where it is not a finite number.
    negated : bool
        Whether the score is the negative of what a person reads.

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp.model_selection import Metric
    >>> int(Metric("tpr_gap", np.array([-0.1, -0.02]), negated=True).score.argmax())
    1
    """

    name: str
    score: np.ndarray
    negated: bool

    @property
    def value(self) -> np.ndarray:
        """As a person reads it: a gap is positive."""
        return 0.0 - self.score if self.negated else self.score


class Results:
    """The candidates of a search.

    Parameters
    ----------
    cv_results : dict, pandas or polars DataFrame
        ``cv_results_`` of any search, or a table with one row per candidate.
    directions : mapping of str to {"min", "max"}, optional
        How to read a column, where the name does not tell.
    """

    def __init__(self, cv_results: Any, directions: Mapping[str, str] | None = None):
        self._columns = _columns_of(cv_results)
        lengths = {len(column) for column in self._columns.values()}
        if len(lengths) != 1 or lengths == {0}:
            raise ValueError(f"cv_results must have one entry per candidate in every column; got lengths {lengths}.")
        (self.n_candidates,) = lengths
        directions = {} if directions is None else directions
        if not isinstance(directions, Mapping) or not set(directions.values()) <= {"min", "max"}:
            raise ValueError(f"directions must map names of metrics to 'min' or 'max'; got {directions!r}.")
        self._directions = dict(directions)

    def table(self, metrics: Sequence[Metric]) -> pd.DataFrame:
        """Lay out parameters, if the results tell them, and metrics; one row per candidate."""
        columns = {"params": list(self._columns["params"])} if "params" in self._columns else {}
        columns.update({metric.name: metric.value for metric in metrics})
        return pd.DataFrame(columns, index=pd.RangeIndex(self.n_candidates, name="candidate"))

    def last_iteration(self) -> np.ndarray:
        """Say which candidates may be compared: with a halving search, those that saw the most rows."""
        if "iter" in self._columns and "n_resources" in self._columns:
            iteration = np.asarray(self._columns["iter"])
            return iteration == iteration.max()
        return np.ones(self.n_candidates, dtype=bool)

    def metric(self, name: str) -> Metric:
        """Find a metric by its name in ``scoring``, or by the name of its column."""
        column = self._find(name)
        values = _column_of_floats(self._columns[column], column)
        if column.startswith("mean_test_") and np.isnan(values).all():
            raise _never_scored(name, column)
        direction = self._directions.get(name)
        if direction is None and column.startswith("mean_test_"):
            return self._mean_test_score(name, column, values)
        direction = direction or _direction_by_name(name)
        if direction is None:
            raise ValueError(
                f"cannot tell whether a larger {name!r} is better; give directions={{{name!r}: 'max'}} or 'min'."
            )
        return Metric(name, values if direction == "max" else -values, direction == "min")

    def _find(self, name: str) -> str:
        if not isinstance(name, str):
            raise TypeError(f"a metric is given by its name; got {name!r}.")
        for column in (f"mean_test_{name}", name):
            if column in self._columns:
                return column
        known = sorted(c.removeprefix("mean_test_") for c in self._columns if c.startswith("mean_test_"))
        raise KeyError(
            f"cv_results holds no metric {name!r}; it holds {known or sorted(self._columns)}. "
            f"Give the search a scoring dict with the key {name!r}, or name another metric."
        )

    def _mean_test_score(self, name: str, column: str, values: np.ndarray) -> Metric:
        """Read a score of scikit-learn, where larger is better and a gap is negative."""
        finite = values[~np.isnan(values)]
        smaller = _direction_by_name(name.removeprefix("mean_test_")) == "min"
        if smaller and (finite > 1e-12).any():
            raise ValueError(
                f"{column} holds positive values, but the score of something that should be small is its negative "
                f"(make_scorer(..., greater_is_better=False)). If they are meant as they stand, give "
                f"directions={{{name!r}: 'min'}}."
            )
        # A name such as "fair" tells nothing; scores that are never positive are those of a loss.
        negated = smaller or bool(finite.size and (finite <= 0).all() and (finite < 0).any())
        return Metric(name, values, negated)


def eligible_candidates(results: Results, metrics: Sequence[Metric]) -> np.ndarray:
    """Return the candidates of the last iteration whose metrics are all numbers."""
    finite = ~np.any([np.isnan(metric.score) for metric in metrics], axis=0)
    candidates = np.flatnonzero(results.last_iteration() & finite)
    if candidates.size == 0:
        names = " and ".join(repr(metric.name) for metric in metrics)
        raise ValueError(
            f"no candidate has a finite {names}, so that none can be chosen. Look for the warnings of the search: "
            "fits or scorers have failed, or a group had no row in some fold."
        )
    return candidates


def _never_scored(name: str, column: str) -> ValueError:
    """Say why a metric has no score at all: the table does not tell, so that every likely reason is named."""
    sentence = (
        f"{column} has no finite number: in some fold of every candidate the fit failed, or the scorer of {name!r} "
        "failed or gave nan. "
        f"If the scorer lacked sensitive_features: {how_to_pass_groups()}. "
        "If not, the budget of a PrivacyLedger may be spent, the estimators may have no representation to probe, or a "
        "fold may lack a group; the warnings of the search say which, and error_score='raise' stops it at an error."
    )
    return ValueError(sentence) if routing_enabled() else SensitiveFeaturesNotRoutedError(sentence)


def score_tolerance(best: float) -> float:
    """Return how far apart two equal scores may lie after a mean over folds."""
    return 1e-12 * max(1.0, abs(best))


def best_of(candidates: np.ndarray, scores: Sequence[np.ndarray]) -> int:
    """Return the candidate with the largest score; among equals the next score decides, then the order.

    A score that is nan loses.
    """
    for score in scores:
        here = np.where(np.isnan(score[candidates]), -np.inf, score[candidates])
        best = here.max()
        if np.isfinite(best):
            candidates = candidates[here >= best - score_tolerance(best)]
    return int(candidates[0])


def _columns_of(cv_results: Any) -> dict[str, Any]:
    if isinstance(cv_results, pd.DataFrame):
        return {str(name): cv_results[name].to_numpy() for name in cv_results.columns}
    if isinstance(cv_results, Mapping):
        columns = {str(name): column for name, column in cv_results.items()}
    elif hasattr(cv_results, "get_columns"):  # polars
        columns = {column.name: column.to_list() for column in cv_results.get_columns()}
    else:
        raise TypeError(
            "cv_results must be a dict or DataFrame with one entry per candidate, such as search.cv_results_; "
            f"got {type(cv_results).__name__}."
        )
    if not columns:
        raise ValueError("cv_results has no columns.")
    scalar = next((name for name, column in columns.items() if not hasattr(column, "__len__")), None)
    if scalar is not None:
        raise TypeError(f"cv_results must have one entry per candidate; {scalar!r} is the single value.")
    return columns


def _column_of_floats(column: Any, name: str) -> np.ndarray:
    """Return a column as floats; what is infinite, None or masked (a parameter that is not set) becomes nan."""
    entries = column.astype(object).filled(np.nan) if isinstance(column, np.ma.MaskedArray) else column
    try:
        values = np.array([np.nan if entry is None else float(entry) for entry in entries])
        return np.where(np.isfinite(values), values, np.nan)
    except (TypeError, ValueError) as error:
        raise TypeError(f"column {name!r} of cv_results must hold numbers ({error}).") from None


def _direction_by_name(name: str) -> "str | None":
    lowered = name.lower()
    if lowered.startswith("neg_"):
        return "max"
    if lowered.endswith(_SMALLER_ENDS):
        return "min"
    return "max" if any(part in lowered for part in _LARGER_PARTS) else None
