"""Mean and scale of columns: learned, or given."""

from typing import Any

import numpy as np


def read_statistics(standardize: Any, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and scale of each column, as ``standardize`` says.

    Parameters
    ----------
    standardize : bool or (mean, scale)
        ``True`` learns them from ``X``, ``False`` gives 0 and 1, a pair is used as it is.
    X : ndarray of float of shape (n_samples, n_features)

    Returns
    -------
    mean, scale : ndarray of shape (n_features,)
    """
    n_features = X.shape[1]
    if isinstance(standardize, tuple | list):
        return _given_statistics(standardize, n_features)
    if not standardize:
        return np.zeros(n_features), np.ones(n_features)
    # In units of the largest value of a column, so that huge and tiny columns neither overflow nor vanish.
    largest = np.abs(X).max(axis=0).astype(np.float64)
    unit = 2.0 ** np.clip(np.frexp(np.where(largest > 0, largest, 1.0))[1], -1000, 1000)
    scaled = X / unit
    mean, deviation = scaled.mean(axis=0), scaled.std(axis=0)
    constant = deviation <= 10 * np.finfo(X.dtype).eps * np.abs(mean)
    return mean * unit, np.where(constant, 1.0, deviation) * np.where(constant, 1.0, unit)


def _given_statistics(given: Any, n_features: int) -> tuple[np.ndarray, np.ndarray]:
    """Read ``standardize=(mean, scale)``."""
    wanted = f"standardize must be True, False or a pair (mean, scale) of numbers or of {n_features} numbers each"
    if len(given) != 2:
        raise ValueError(f"{wanted}; got {len(given)} things.")
    try:
        mean, scale = (np.broadcast_to(np.asarray(part, dtype=np.float64), (n_features,)).copy() for part in given)
    except (TypeError, ValueError):
        raise ValueError(f"{wanted}; got {given!r}.") from None
    if not (np.isfinite(mean).all() and np.isfinite(scale).all() and (scale > 0).all()):
        raise ValueError("standardize must hold finite means and finite scales greater than 0.")
    return mean, scale
