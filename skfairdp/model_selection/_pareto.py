"""The candidates that no other candidate beats."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from skfairdp.model_selection._results import Results, eligible


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
    candidates = eligible(results, metrics)
    scores = np.column_stack([metric.score for metric in metrics])
    front = candidates[undominated(scores[candidates])]
    front = front[np.lexsort(-scores[front].T[::-1])]
    columns: dict[str, Any] = {}
    params = results.params()
    if params is not None:
        columns["params"] = [params[k] for k in front]
    columns.update({metric.name: metric.value[front] for metric in metrics})
    return pd.DataFrame(columns, index=pd.Index(front, name="candidate"))


def undominated(scores: np.ndarray) -> np.ndarray:
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
