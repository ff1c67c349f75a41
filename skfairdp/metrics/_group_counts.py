"""Rates and gaps as functions of counts.

Every function takes ``counts[..., group, true class, predicted class]``; the leading axes are free, so that a
thousand bootstrap tables are judged by the same line of code as the one that was observed. A rate of 0 out of 0
is nan, and nan takes no part in a gap.
"""

import numpy as np


def _ratio(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    return np.divide(part, whole, out=np.full(np.shape(whole), np.nan), where=whole > 0)


def accuracies(counts: np.ndarray) -> np.ndarray:
    """Return the share of correct rows of each group, ``[..., group]``."""
    return _ratio(np.trace(counts, axis1=-2, axis2=-1), counts.sum(axis=(-2, -1)))


def true_positive_rates(counts: np.ndarray) -> np.ndarray:
    """Return P(predicted c | true c) of each group and class, ``[..., group, class]``."""
    return _ratio(np.diagonal(counts, axis1=-2, axis2=-1), counts.sum(axis=-1))


def false_positive_rates(counts: np.ndarray) -> np.ndarray:
    """Return P(predicted c | true class is not c) of each group and class, ``[..., group, class]``."""
    hits, negatives = false_positives(counts)
    return _ratio(hits, negatives)


def false_positives(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the false positives and the negatives of each group and class.

    Both are sums over the other classes rather than differences from a total: with weights, a difference
    of two equal sums need not be zero.
    """
    others = 1 - np.eye(counts.shape[-1], dtype=counts.dtype)
    return (counts * others).sum(axis=-2), counts.sum(axis=-1) @ others


def selection_rates(counts: np.ndarray) -> np.ndarray:
    """Return P(predicted c) of each group and class, ``[..., group, class]``."""
    return _ratio(counts.sum(axis=-2), np.broadcast_to(counts.sum(axis=(-2, -1))[..., None], counts.shape[:-1]))


def spread(rates: np.ndarray, axis: int) -> np.ndarray:
    """Return the largest difference between two groups; nan where fewer than two have the rate."""
    defined = ~np.isnan(rates)
    highest = np.where(defined, rates, -np.inf).max(axis=axis)
    lowest = np.where(defined, rates, np.inf).min(axis=axis)
    return np.subtract(highest, lowest, out=np.full(highest.shape, np.nan), where=defined.sum(axis=axis) >= 2)


def tpr_gaps(counts: np.ndarray) -> np.ndarray:
    """Return the gap in true positive rate of each class, ``[..., class]``."""
    return spread(true_positive_rates(counts), axis=-2)


def fpr_gaps(counts: np.ndarray) -> np.ndarray:
    """Return the gap in false positive rate of each class, ``[..., class]``."""
    return spread(false_positive_rates(counts), axis=-2)


def selection_gaps(counts: np.ndarray) -> np.ndarray:
    """Return the gap in selection rate of each class, ``[..., class]``."""
    return spread(selection_rates(counts), axis=-2)


def odds_gaps(counts: np.ndarray, agg: str) -> np.ndarray:
    """Return the worse, or the mean, of the gaps in true and in false positive rate, ``[..., class]``."""
    both = np.stack([tpr_gaps(counts), fpr_gaps(counts)], axis=-1)
    return combine(both, "max" if agg == "worst_case" else "mean")


def combine(per_class: np.ndarray, average: str, position: int | None = None) -> np.ndarray:
    """Reduce the last axis to one number, over the entries that are defined."""
    if average == "binary":
        return per_class[..., position]
    defined = ~np.isnan(per_class)
    if average == "max":
        value = np.where(defined, per_class, -np.inf).max(axis=-1)
    else:
        powers = per_class**2 if average == "rms" else per_class
        value = np.where(defined, powers, 0.0).sum(axis=-1) / np.maximum(defined.sum(axis=-1), 1)
        value = np.sqrt(value) if average == "rms" else value
    return np.where(defined.any(axis=-1), value, np.nan)
