"""One tidy table by group."""

from typing import Any

import numpy as np
import pandas as pd

from skfairdp._validation import check_count
from skfairdp.metrics._group_fairness import warn_undefined
from skfairdp.metrics._group_table import RATE_PARTS, RATES, GroupTable, group_table
from skfairdp.metrics._intervals import (
    binomial_interval,
    bootstrap_statistic,
    check_confidence_level,
    percentile_interval,
)

_INTERVALS = (None, "exact", "wilson", "bootstrap")
_CLASS_RATES = ("tpr", "fpr", "selection_rate", "ppv")


def group_rates(
    y_true: Any,
    y_pred: Any,
    *,
    sensitive_features: Any,
    sample_weight: Any = None,
    labels: Any = None,
    interval: str | None = None,
    confidence_level: float = 0.95,
    n_draws: int = 1000,
    random_state: Any = None,
    form: str = "wide",
) -> pd.DataFrame:
    """Count, accuracy, true and false positive rate, selection rate and precision of every group, in one table.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True class labels.
    y_pred : array-like of shape (n_samples,)
        Predicted class labels.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
        The group of each row. Several columns are crossed: a group is a combination that occurs.
    sample_weight : array-like of shape (n_samples,), optional
        Non-negative weights of the rows.
    labels : array-like, optional
        All class labels, where a class may have no row; by default those that occur.
    interval : {"exact", "wilson", "bootstrap"} or None, default=None
        Add confidence intervals. ``"exact"`` (Clopper-Pearson) and ``"wilson"`` are binomial, and take the
        denominator of a rate as given; ``"bootstrap"`` resamples the rows, and is the one for weights.
    confidence_level : float, default=0.95
        Level of each interval by itself, with no correction for their number.
    n_draws : int, default=1000
        Number of bootstrap draws.
    random_state : int, Generator, SeedSequence, RandomState or None, default=None
        Seed of the bootstrap.
    form : {"wide", "long"}, default="wide"
        ``"wide"``: one row per group, one column per rate. ``"long"``: one row per group, rate and class.

    Returns
    -------
    pandas.DataFrame
        Wide: indexed by group (one level for each sensitive column), with the columns ``count``, ``weight`` (only
        with weights), ``accuracy`` and, for every class ``c``, ``tpr_c``, ``fpr_c``, ``selection_rate_c``
        and ``ppv_c`` (precision: the share of those predicted to be ``c`` who are); each rate
        is followed by its ``_lower`` and ``_upper`` end.
        Long: the sensitive columns, ``rate``, ``class`` (None for accuracy), ``value``, ``trials`` (the denominator
        of the rate) and, with an interval, ``lower`` and ``upper``.

    Warns
    -----
    UndefinedGroupMetricWarning
        A rate is 0 of 0: nan in the table, and never 0. This is so for the true positive rate of a class that
        the group lacks, for the false positive rate where it has no other class, for the precision of a class that
        nobody in it is predicted to be of (no warning for this one: it is a common sight and nobody's fault), and for
        all rates of a group without rows (a pandas category that does not occur, or one whose weights are all zero).

    Notes
    -----
    **Fairness.** The bootstrap gives an interval of length 0 to a rate that is 0 or 1 in the table; the binomial
    ones do not, and are to be preferred for small groups.

    References
    ----------
    .. [1] C. Clopper, E. Pearson, "The Use of Confidence or Fiducial Limits", Biometrika 1934.
    .. [2] E. B. Wilson, "Probable Inference, the Law of Succession, and Statistical Inference", JASA 1927.

    Examples
    --------
    >>> from skfairdp.metrics import group_rates
    >>> y_true = [1, 1, 0, 1, 1, 0, 0]
    >>> y_pred = [1, 1, 0, 1, 0, 0, 1]
    >>> sex = ["f", "f", "f", "m", "m", "m", "m"]
    >>> group_rates(y_true, y_pred, sensitive_features={"sex": sex})[["count", "accuracy", "tpr_1", "fpr_1"]]
         count  accuracy  tpr_1  fpr_1
    sex
    f        3       1.0    1.0    0.0
    m        4       0.5    0.5    0.5
    """
    table = group_table(
        y_true, y_pred, sensitive_features=sensitive_features, sample_weight=sample_weight, labels=labels
    )
    return rates_of_table(table, interval, confidence_level, n_draws, random_state, form)


def rates_of_table(
    table: GroupTable,
    interval: str | None,
    confidence_level: float,
    n_draws: int,
    random_state: Any,
    form: str,
) -> pd.DataFrame:
    """Make the table of :func:`group_rates` from counts."""
    if interval not in _INTERVALS:
        raise ValueError(f"interval must be one of {_INTERVALS}; got {interval!r}.")
    if form not in ("wide", "long"):
        raise ValueError(f"form must be 'wide' or 'long'; got {form!r}.")
    check_confidence_level(confidence_level)
    check_count(n_draws, "n_draws")
    if table.squared is not None and interval in ("exact", "wilson"):
        raise ValueError(
            f"interval={interval!r} counts rows and cannot weigh them; use interval='bootstrap' with sample_weight."
        )
    values = _all_rates(table.counts)
    warn_undefined("group_rates", table, "accuracy", values[:, :1], [None], least=0)
    for rate in ("tpr", "fpr"):  # a selection rate is undefined where the accuracy is
        of_rate = values[:, 1 + _CLASS_RATES.index(rate) :: len(_CLASS_RATES)]
        warn_undefined("group_rates", table, rate, of_rate, table.classes, least=0)
    trials = _all_trials(table.counts)
    ends = None
    if interval == "bootstrap":
        ends = percentile_interval(bootstrap_statistic(table, _all_rates, n_draws, random_state), confidence_level)
    elif interval is not None:
        successes = np.rint(np.where(trials > 0, values, 0.0) * trials)  # unweighted: a rate times its trials is whole
        ends = binomial_interval(successes, trials, confidence_level, interval)
    return _wide_table(table, values, ends) if form == "wide" else _long_table(table, values, trials, ends)


def _all_rates(counts: np.ndarray) -> np.ndarray:
    """Return accuracy, then the rates of each class, class by class, ``[..., group, rate]``."""
    by_class = np.stack([RATES[rate][2](counts) for rate in _CLASS_RATES], axis=-1)
    flat = by_class.reshape(*by_class.shape[:-2], -1)
    return np.concatenate([RATES["accuracy"][2](counts)[..., None], flat], axis=-1)


def _all_trials(counts: np.ndarray) -> np.ndarray:
    """Return the denominators of the rates in the order of :func:`_all_rates`."""
    by_class = np.stack([RATE_PARTS[rate](counts)[1] for rate in _CLASS_RATES], axis=-1)
    flat = by_class.reshape(*by_class.shape[:-2], -1)
    return np.concatenate([RATE_PARTS["accuracy"](counts)[1][..., None], flat], axis=-1)


def _rate_names(table: GroupTable) -> list[tuple[str, Any]]:
    return [
        ("accuracy", None),
        *((rate, label) for label in table.classes for rate in _CLASS_RATES),
    ]


def _wide_table(table: GroupTable, values: np.ndarray, ends: Any) -> pd.DataFrame:
    columns: dict[str, np.ndarray] = {"count": table.rows.sum(axis=(1, 2))}
    if table.rows is not table.counts:
        columns["weight"] = table.counts.sum(axis=(1, 2))
    for k, (rate, label) in enumerate(_rate_names(table)):
        name = rate if label is None else f"{rate}_{label}"
        columns[name] = values[:, k]
        if ends is not None:
            columns[f"{name}_lower"], columns[f"{name}_upper"] = ends[0][:, k], ends[1][:, k]
    return pd.DataFrame(columns, index=table.index())


def _long_table(table: GroupTable, values: np.ndarray, trials: np.ndarray, ends: Any) -> pd.DataFrame:
    names = _rate_names(table)
    n_groups = len(table.groups)
    frame = table.index().repeat(len(names)).to_frame(index=False)
    frame["rate"] = [rate for rate, _ in names] * n_groups
    frame["class"] = pd.Series([label for _, label in names] * n_groups, dtype=object)
    frame["value"] = values.ravel()
    frame["trials"] = trials.ravel()
    if ends is not None:
        frame["lower"], frame["upper"] = ends[0].ravel(), ends[1].ravel()
    return frame
