"""What privacy costs each row and each group: excessive risk, and how far the model moved."""

import math
from typing import Any

import numpy as np
import pandas as pd

from skfairdp._validation import check_sensitive_features


def excessive_risk(private_losses: Any, clean_losses: Any, *, sensitive_features: Any = None) -> pd.DataFrame:
    r"""How much loss privacy adds, by row or by group, with the standard error of the Monte Carlo mean.

    Parameters
    ----------
    private_losses : array-like of shape (n_repeats, n_samples)
        Loss of each row under each repetition of the private model.
    clean_losses : array-like of shape (n_samples,)
        Loss of each row under the model trained without noise.
    sensitive_features : array-like or None
        ``None`` gives one line per row; otherwise one line per group, several columns are crossed.

    Returns
    -------
    DataFrame
        Columns ``risk`` (the mean difference), ``standard_error`` (over repetitions; nan for a single one) and, by
        group, ``count``.

    References
    ----------
    .. [1] C. Tran, M. H. Dinh, K. Beiter and F. Fioretto, "A fairness analysis on private aggregation of teacher
       ensembles", 2021, Equation 3, without the regulariser, which is the same for every group.

    Examples
    --------
    >>> from skfairdp.metrics import excessive_risk
    >>> table = excessive_risk([[0.5, 0.3, 0.2], [0.7, 0.3, 0.2]], [0.4, 0.3, 0.1], sensitive_features=["f", "m", "m"])
    >>> table["risk"].round(3).tolist()
    [0.2, 0.05]
    """
    private, clean = _losses(private_losses, clean_losses)
    extra = private - clean
    if sensitive_features is None:
        return pd.DataFrame(_mean_and_error(extra))
    groups = check_sensitive_features(sensitive_features, extra.shape[1], intersection=True)
    codes, labels = groups.indices[:, 0], groups.labels[0]
    sizes = np.bincount(codes, minlength=len(labels))
    membership = np.zeros((extra.shape[1], len(labels)))
    membership[np.arange(len(codes)), codes] = 1 / sizes[codes]
    index = pd.Index(labels, name=groups.names[0], tupleize_cols=False)
    return pd.DataFrame({**_mean_and_error(extra @ membership), "count": sizes}, index=index)


def excessive_risk_gap(private_losses: Any, clean_losses: Any, *, sensitive_features: Any) -> float:
    """Largest difference of excessive risk between two groups.

    Parameters
    ----------
    private_losses : array-like of shape (n_repeats, n_samples)
        Loss of each row under each repetition of the private model.
    clean_losses : array-like of shape (n_samples,)
        Loss of each row under the model trained without noise.
    sensitive_features : array-like
        At least two groups; several columns are crossed.

    Returns
    -------
    float

    Examples
    --------
    >>> from skfairdp.metrics import excessive_risk_gap
    >>> round(excessive_risk_gap([[0.6, 0.3]], [0.4, 0.3], sensitive_features=["f", "m"]), 3)
    0.2
    """
    check_sensitive_features(sensitive_features, intersection=True, min_groups=2)
    risk = excessive_risk(private_losses, clean_losses, sensitive_features=sensitive_features)["risk"]
    return float(risk.max() - risk.min())


def model_sensitivity(private_parameters: Any, clean_parameters: Any) -> dict[str, float]:
    r"""How far noise moves the model: :math:`E\lVert\tilde\theta - \theta^*\rVert` and its square's mean.

    Parameters
    ----------
    private_parameters : array-like of shape (n_repeats, ...)
        Parameters of each repetition of the private model.
    clean_parameters : array-like of shape (...)
        Parameters of the model trained without noise.

    Returns
    -------
    dict
        ``mean``, ``standard_error``, ``mean_square``, and ``bias``, the norm of the mean difference: what
        does not average out.

    Examples
    --------
    >>> from skfairdp.metrics import model_sensitivity
    >>> moved = model_sensitivity([[1.0, 0.0], [-1.0, 0.0]], [0.0, 0.0])
    >>> moved["mean"], moved["bias"]
    (1.0, 0.0)
    """
    private = np.asarray(private_parameters, dtype=float)
    clean = np.asarray(clean_parameters, dtype=float)
    if private.ndim != clean.ndim + 1 or private.shape[1:] != clean.shape or len(private) == 0:
        raise ValueError(
            f"private_parameters must have shape (n_repeats, *clean_parameters.shape); got {private.shape} "
            f"for clean_parameters of shape {clean.shape}."
        )
    moved = (private - clean).reshape(len(private), -1)
    distance = np.linalg.norm(moved, axis=1)
    error = float(distance.std(ddof=1) / math.sqrt(len(distance))) if len(distance) > 1 else math.nan
    return {
        "mean": float(distance.mean()),
        "standard_error": error,
        "mean_square": float(np.square(distance).mean()),
        "bias": float(np.linalg.norm(moved.mean(axis=0))),
    }


def _losses(private_losses: Any, clean_losses: Any) -> tuple[np.ndarray, np.ndarray]:
    private, clean = np.asarray(private_losses, dtype=float), np.asarray(clean_losses, dtype=float)
    if clean.ndim != 1 or private.ndim != 2 or private.shape[1] != len(clean) or private.size == 0:
        raise ValueError(
            "private_losses must have shape (n_repeats, n_samples) and clean_losses (n_samples,); "
            f"got {private.shape} and {clean.shape}."
        )
    if not (np.isfinite(private).all() and np.isfinite(clean).all()):
        raise ValueError("private_losses and clean_losses must be finite.")
    return private, clean


def _mean_and_error(extra: np.ndarray) -> dict[str, np.ndarray]:
    repeats = len(extra)
    spread = extra.std(axis=0, ddof=1) / math.sqrt(repeats) if repeats > 1 else np.full(extra.shape[1], math.nan)
    return {"risk": extra.mean(axis=0), "standard_error": spread}
