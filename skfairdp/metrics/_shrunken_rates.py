"""Rates of crossed groups, drawn towards what their single columns predict."""

from typing import Any

import numpy as np
import pandas as pd

from skfairdp._validation import check_option
from skfairdp.metrics._group_fairness import resolve_average
from skfairdp.metrics._group_table import RATES, group_table
from skfairdp.metrics._intervals import check_confidence_level
from skfairdp.metrics._judged_rates import effective_sizes
from skfairdp.metrics._simultaneous_bounds import normal_multiplier

# Standard deviations between groups that are tried; closer together where they are small.
_DEVIATIONS = 0.5 * np.linspace(0, 1, 201) ** 2
# What is thought of them beforehand (half-Cauchy): groups depart from the guess by ten points, seldom by far more.
_USUAL_DEVIATION = 0.1


def shrunken_rates(
    rate: str,
    y_true: Any,
    y_pred: Any,
    *,
    sensitive_features: Any,
    sample_weight: Any = None,
    pos_label: Any = None,
    labels: Any = None,
    confidence_level: float = 0.95,
) -> pd.DataFrame:
    """Rates of all combinations of sensitive columns, steadied by what the single columns say.

    Crossed groups are small, and a rate of twelve rows says little. The columns by themselves say more: a first guess
    is that the effects of, say, sex and age add up. Each rate is drawn from the measured one towards this guess, the
    more so the fewer rows there are, and the less so the more the large groups depart from their guesses.

    Parameters
    ----------
    rate : {"accuracy", "tpr", "fpr", "selection_rate", "ppv"}
        Name of the rate, as in :func:`group_rates`.
    y_true : array-like of shape (n_samples,)
        True class labels.
    y_pred : array-like of shape (n_samples,)
        Predicted class labels.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
        The group of each row. Several columns are crossed; with one column the guess is the same for all groups.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative weights of the rows.
    pos_label : label, optional
        The class of the rate; by default, with two classes, the larger label. Not used by ``"accuracy"``.
    labels : array-like, optional
        All class labels, where a class may have no row; by default those that occur.
    confidence_level : float, default=0.95
        Level of the intervals.

    Returns
    -------
    pandas.DataFrame
        One row per group that occurs: ``n`` (effective rows in the denominator), ``measured`` (nan without rows),
        ``expected`` (the guess), ``value``, ``lower`` and ``upper``.

    Notes
    -----
    **Fairness.** Rates are normal around a sum of column effects, with a standard deviation between groups over which
    is averaged (half-Cauchy beforehand, with a scale of ten points). The intervals cover the true rates with the
    stated level on average over the groups, not each: a small group that truly is unlike all others is drawn towards
    them.
    For a claim about the largest gap use :func:`estimate_gap`, which draws nobody anywhere.

    References
    ----------
    .. [1] A. Gelman, "Prior Distributions for Variance Parameters in Hierarchical Models", Bayesian Analysis 2006.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from skfairdp.metrics import shrunken_rates
    >>> cells = pd.DataFrame({"sex": list("ffffmmmm"), "region": list("nesw") * 2})
    >>> sizes, selected = [90, 90, 90, 5], [81, 72, 63, 0]
    >>> sizes, selected = [*sizes, 90, 90, 90, 90], [*selected, 72, 63, 54, 45]
    >>> people = cells.loc[np.repeat(np.arange(8), sizes)]
    >>> y_pred = np.concatenate([np.arange(n) < k for n, k in zip(sizes, selected)])
    >>> table = shrunken_rates("selection_rate", y_pred, y_pred, sensitive_features=people)
    >>> table.loc[("f", "w")].round(2).to_dict()  # five women of the west, none of them selected
    {'n': 5.0, 'measured': 0.0, 'expected': 0.42, 'value': 0.34, 'lower': 0.0, 'upper': 0.72}
    """
    check_option(rate, "rate", list(RATES))
    check_confidence_level(confidence_level)
    table = group_table(
        y_true, y_pred, sensitive_features=sensitive_features, sample_weight=sample_weight, labels=labels
    )
    rates, _, sizes = effective_sizes(table.counts, table.squared, rate)
    if rate != "accuracy":
        position = resolve_average(table.classes, "binary", pos_label)[1]
        rates, sizes = rates[:, position], sizes[:, position]
    if not sizes.any():
        raise ValueError(f"no group has a row in the denominator of {rate!r}; choose another rate or pos_label.")
    value, deviation, expected = _posterior(rates, sizes, _column_effects(table.groups, len(table.names)))
    half = normal_multiplier((1 - confidence_level) / 2) * deviation
    value, expected = np.clip(value, 0.0, 1.0), np.clip(expected, 0.0, 1.0)
    return pd.DataFrame(
        {
            "n": sizes,
            "measured": np.where(sizes > 0, rates, np.nan),
            "expected": expected,
            "value": value,
            "lower": np.clip(value - half, 0.0, 1.0),
            "upper": np.clip(value + half, 0.0, 1.0),
        },
        index=table.index(),
    )


def _column_effects(groups: tuple[Any, ...], n_columns: int) -> np.ndarray:
    """Return the design of an additive model: a constant, and one indicator for every label of every column."""
    effects = [np.ones(len(groups))]
    if n_columns > 1:
        for column in zip(*groups):
            effects += [np.array([label == other for other in column], dtype=float) for label in dict.fromkeys(column)]
    return np.column_stack(effects)


def _posterior(rates: np.ndarray, sizes: np.ndarray, design: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return mean and standard deviation of each true rate, and the mean of what the columns predict."""
    known = sizes > 0
    pooled = np.average(rates[known], weights=sizes[known])
    smooth = (rates * sizes + 2 * pooled) / (sizes + 2)
    noise = np.where(known, np.maximum(smooth * (1 - smooth), 1e-4) / np.where(known, sizes, 1.0), np.inf)
    # Columns that say the same are told once: directions in which the groups that have rows differ.
    _, strength, directions = np.linalg.svd(design[known], full_matrices=False)
    basis = design @ directions[strength > 1e-9 * strength[0]].T
    logs, means, variances, guesses = [], [], [], []
    for deviation in _DEVIATIONS:
        between = deviation**2
        weight = np.where(known, 1 / (noise + between), 0.0)
        information = basis.T @ (weight[:, None] * basis)
        covariance = np.linalg.inv(information)
        guess = basis @ (covariance @ (basis.T @ (weight * rates)))
        uncertainty = np.einsum("gi,ij,gj->g", basis, covariance, basis)
        misfit = (weight * (rates - guess) ** 2).sum()
        logs.append((np.log(weight[known]).sum() - np.linalg.slogdet(information)[1] - misfit) / 2)
        kept = between / (between + noise)
        means.append(guess + kept * (rates - guess))
        variances.append(between * (1 - kept) + (1 - kept) ** 2 * uncertainty)
        guesses.append(guess)
    beforehand = np.gradient(_DEVIATIONS) / (1 + (_DEVIATIONS / _USUAL_DEVIATION) ** 2)
    chance = np.exp(np.array(logs) - max(logs)) * beforehand
    chance /= chance.sum()
    mean = chance @ np.array(means)
    variance = chance @ (np.array(variances) + (np.array(means) - mean) ** 2)
    return mean, np.sqrt(variance), chance @ np.array(guesses)
