"""The neighbours that maximise the loss of a mechanism."""

from numbers import Integral
from typing import Any

import numpy as np


def worst_case_pair(estimator: Any, n_features: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Two inputs between which a mechanism loses its whole epsilon.

    Parameters
    ----------
    estimator : LaplacePrivatizer, GaussianPrivatizer, OMEEncoder, or an estimator with ``_worst_case_pair``
        An estimator of your own joins in by a method ``_worst_case_pair(n_features)`` that returns two rows.
    n_features : int, optional
        The width of the inputs; by default the ``n_features_in_`` of a fitted estimator.

    Returns
    -------
    x, x_prime : ndarray of shape (n_features,)
        In the units that ``transform`` takes.

    Notes
    -----
    **Privacy.** For noise on normalised rows the pair is the one whose normalised rows are farthest apart, in the
    L1 norm for Laplace noise and in the L2 norm for Gaussian noise. For randomised bits it is the code in which
    every bit stands so that its larger loss points the same way, and its complement.

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp import LaplacePrivatizer, worst_case_pair
    >>> x, x_prime = worst_case_pair(LaplacePrivatizer(epsilon=1.0, norm="minmax"), n_features=4)
    >>> x, x_prime
    (array([0., 1., 1., 1.]), array([1., 0., 0., 0.]))
    """
    own = getattr(estimator, "_worst_case_pair", None)
    noise = _noise_of(estimator)
    if own is None and noise is None:
        raise TypeError(
            f"The worst-case neighbours of {type(estimator).__name__} are not known. Give x and x_prime yourself, or "
            "give the class a method _worst_case_pair(n_features) that returns them; audit the last step of a pipeline."
        )
    width = _check_width(getattr(estimator, "n_features_in_", None) if n_features is None else n_features)
    if own is not None:
        x, x_prime = own(width)
        return np.asarray(x), np.asarray(x_prime)
    return farthest_rows(
        getattr(estimator, "norm", "l2"), width, noise=noise or "laplace", clip_norm=_radius(estimator)
    )


def farthest_rows(
    norm: str, n_features: int, *, noise: str = "laplace", clip_norm: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """Two rows whose normalised forms are as far apart as the normalisation allows.

    Parameters
    ----------
    norm : {"l1", "l2", "minmax", "clip"}
        The normalisation.
    n_features : int
        The number of columns.
    noise : {"laplace", "gaussian"}
        Whether distance is meant in the L1 or in the L2 norm.
    clip_norm : float, default=1.0
        The radius of the sphere or box.

    Returns
    -------
    x, x_prime : ndarray of shape (n_features,)

    Examples
    --------
    >>> from skfairdp.auditing._worst_case import farthest_rows
    >>> farthest_rows("l1", 3)
    (array([1., 0., 0.]), array([-1., -0., -0.]))
    """
    if norm == "minmax":
        if n_features == 1:
            raise ValueError("n_features must be at least 2 for norm='minmax': a single value always becomes 0.")
        x = np.ones(n_features)
        x[0] = 0.0
        return clip_norm * x, clip_norm * (1 - x)
    if norm == "clip" or (norm == "l2" and noise == "laplace"):
        x = np.ones(n_features)  # every coordinate moves: the box's corners, or the sphere's points of largest L1 norm
        x *= 1.0 if norm == "clip" else 1 / np.sqrt(n_features)
    else:
        x = np.zeros(n_features)
        x[0] = 1.0
    return clip_norm * x, -clip_norm * x


def _noise_of(estimator: Any) -> str | None:
    from skfairdp import preprocessing

    if isinstance(estimator, preprocessing.LaplacePrivatizer):
        return "laplace"
    return "gaussian" if isinstance(estimator, preprocessing.GaussianPrivatizer) else None


def _radius(estimator: Any) -> float:
    clip_norm = getattr(estimator, "clip_norm", None)
    return 1.0 if clip_norm is None else float(clip_norm)


def _check_width(n_features: Any) -> int:
    if n_features is None:
        raise ValueError("n_features is missing: give it, or fit the estimator first.")
    if isinstance(n_features, bool) or not isinstance(n_features, Integral) or n_features < 1:
        raise ValueError(f"n_features must be a whole number of at least 1; got {n_features!r}.")
    return int(n_features)
