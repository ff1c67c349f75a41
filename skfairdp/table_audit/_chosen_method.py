"""Which model others are told against, and which method is chosen: by validation rows, with their uncertainty."""

from collections.abc import Collection

import numpy as np
import pandas as pd

#: With a class that has a larger share of the rows, one answer for everybody looks accurate.
_UNEQUAL_CLASSES = 0.6
_Z = 1.959964  # 95 % of a normal distribution


def score_to_choose_by(y: np.ndarray, n_classes: int) -> str:
    """Return ``"balanced_accuracy"`` where classes are so unequal that accuracy would favour a constant answer."""
    largest = np.unique(y, return_counts=True)[1].max() / len(y)
    return "balanced_accuracy" if largest > max(_UNEQUAL_CLASSES, 1.2 / n_classes) else "accuracy"


def choose_reference(
    validation: pd.DataFrame,
    systems: Collection[str],
    own: Collection[str],
    references: Collection[str],
    score: str,
    n_rows: int,
) -> str:
    """Choose the model that all others are told against.

    Parameters
    ----------
    validation : DataFrame
        Figures of methods on validation rows, indexed by method.
    systems : collection of str
        Systems that exist already: the first is the reference.
    own : collection of str
        The user's own models.
    references : collection of str
        Methods that are trained for accuracy alone.
    score : str
        The column by which the best of several is found.
    n_rows : int
        Rows that it was measured on.

    Returns
    -------
    str
        Of the first of these that is not empty: the system, the best of the user's own models, of the references, of
        all methods. The first of several stays, unless another is better by more than a standard error: so chance
        does not decide which it is.
    """
    for system in systems:
        return system
    for names in (own, references, validation.index):
        known = validation.loc[validation.index.isin(list(names)), score]
        if len(known):
            error = float(np.sqrt(known.max() * (1 - known.max()) / n_rows))
            return str(known.index[0] if known.iloc[0] >= known.max() - error else known.idxmax())
    raise ValueError("there is nothing to choose from.")


def choose_method(validation: pd.DataFrame, reference: str, fairness: str, score: str, threshold: float) -> str:
    """Choose the fairest method that is nearly as good as the reference; the reference wins ties.

    Parameters
    ----------
    validation : DataFrame
        Figures on validation rows, indexed by method: the score, the gap, its change from the reference with both ends
        of its interval, ``constant`` and ``needs_groups``.
    reference : str
        What methods are told against.
    fairness : str
        The column of the gap.
    score : str
        The column of the score.
    threshold : float
        How much of the score may be given up.

    Returns
    -------
    str
        A method is taken only if its gap is narrower than that of the reference by more than one standard error, it
        tells more than one answer for everybody would, and it needs nobody's group to answer.
    """
    change = validation[f"{fairness}_change"]
    error = (validation[f"{fairness}_change_upper"] - validation[f"{fairness}_change_lower"]) / (2 * _Z)
    allowed = ~validation["constant"].astype(bool) & ~validation["needs_groups"].astype(bool)
    allowed &= validation[score] >= validation.loc[reference, score] - threshold
    fairer = validation[allowed & (change < -error)]
    if fairer.empty:
        return reference
    best = fairer.sort_values([fairness, score], ascending=[True, False], kind="stable")
    return str(best.index[0])
