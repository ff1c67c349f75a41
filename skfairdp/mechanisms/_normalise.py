r"""Bounding what one record can say: normalisations, and the sensitivity each one has.

The noise mechanisms add integers to integers. So every normalisation exists twice: in
real numbers (:func:`normalise`, what is released when epsilon is infinite), and rounded at
random to an integer grid (:func:`normalise_to_grid`), where its sensitivity is a statement about
integers that no floating-point error can break. Rounding is unbiased: the mean over the
random offset ``u`` is the normalised row times the grid radius ``N``. The offset is no
secret, since the bound below holds for each of its values.

``"l1"``
    The row over its L1 norm. With :math:`C_j = N \sum_{i \le j} |x_i| / \lVert x \rVert_1` and
    :math:`F_j = \min(\lfloor C_j + u \rfloor, N)`, :math:`F_D = N`, the grid vector is
    :math:`|Z_j| = F_j - F_{j-1}` with the sign of :math:`x_j`. Floating-point sums of non-negative terms,
    products with a positive number and floors are all monotone, so :math:`|Z_j| \ge 0`, and
    :math:`\sum |Z_j| = F_D = N` telescopes. Two such vectors differ by at most :math:`2N` in L1.
``"l2"``
    The row over its L2 norm, times a radius slightly below N, each coordinate rounded up or down at
    random. If then :math:`\sum Z_j^2 > N^2` (rare, and seen in exact integers), the row is rounded towards zero
    instead. Two such vectors differ by at most :math:`2N` in L2, and by :math:`2 N \sqrt D` in L1.
``"minmax"``
    :math:`(x - \min x) / (\max x - \min x)`. The grid vector is cut to :math:`\{0, ..., N\}^D`: :math:`ND` in L1.
``"clip"``
    Each coordinate cut to :math:`[-1, 1]` (times ``clip_norm``). The grid vector is cut to
    :math:`\{-N, ..., N\}^D`: :math:`2ND` in L1.

Rows without a direction (all zero; constant, for min-max) and rows with a nan or an infinity become
the zero vector, which lies inside each of these sets: an exception for one record would be an
output about that record.
"""

import math
from typing import Any

import numpy as np

from skfairdp._validation import check_option
from skfairdp.random import RandomStream

NORMS = ("l1", "l2", "minmax", "clip")

#: The finest grid of each normalisation: integers, and for L2 the sum of their squares, stay below 2**53.
FINEST_GRID = {"l1": 2**40, "l2": 2**26, "minmax": 2**40, "clip": 2**40}

# Between these no sum, square or quotient of a row's entries leaves the range of float64.
_TINY, _HUGE = 1e-100, 1e100


def l1_sensitivity(norm: str, n_features: int, clip_norm: float = 1.0) -> float:
    """Compute the largest L1 distance between two normalised rows.

    Parameters
    ----------
    norm : {"l1", "l2", "minmax", "clip"}
        The normalisation.
    n_features : int
        The number of columns D.
    clip_norm : float, default=1.0
        The radius of the sphere or box, or the length of the min-max interval.

    Returns
    -------
    float
        ``2 C``, ``2 C sqrt(D)``, ``C D`` or ``2 C D``.

    Examples
    --------
    >>> from skfairdp.mechanisms import l1_sensitivity
    >>> [round(l1_sensitivity(norm, 50), 6) for norm in ("l1", "l2", "minmax", "clip")]
    [2.0, 14.142136, 50.0, 100.0]
    """
    radius, d = check_clip_norm(clip_norm), n_features
    return radius * {"l1": 2.0, "l2": 2 * math.sqrt(d), "minmax": float(d), "clip": 2.0 * d}[check_norm(norm)]


def l2_sensitivity(norm: str, n_features: int, clip_norm: float = 1.0) -> float:
    """Compute the largest L2 distance between two normalised rows.

    Parameters
    ----------
    norm : {"l1", "l2", "minmax", "clip"}
        The normalisation.
    n_features : int
        The number of columns D.
    clip_norm : float, default=1.0
        The radius of the sphere or box, or the length of the min-max interval.

    Returns
    -------
    float
        ``2 C``, ``2 C``, ``C sqrt(D)`` or ``2 C sqrt(D)``.

    Examples
    --------
    >>> from skfairdp.mechanisms import l2_sensitivity
    >>> [round(l2_sensitivity(norm, 50), 6) for norm in ("l1", "l2", "minmax", "clip")]
    [2.0, 2.0, 7.071068, 14.142136]
    """
    radius, root = check_clip_norm(clip_norm), math.sqrt(n_features)
    return radius * {"l1": 2.0, "l2": 2.0, "minmax": root, "clip": 2 * root}[check_norm(norm)]


def normalise(X: np.ndarray, norm: str, clip_norm: float = 1.0) -> np.ndarray:
    """Normalise each row in floating point.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        The rows.
    norm : {"l1", "l2", "minmax", "clip"}
        The normalisation.
    clip_norm : float, default=1.0
        The radius of the sphere or box, or the length of the min-max interval.

    Returns
    -------
    ndarray of shape (n_samples, n_features), float64

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp.mechanisms import normalise
    >>> normalise(np.array([[1.0, -3.0], [0.0, 0.0]]), "l1")
    array([[ 0.25, -0.75],
           [ 0.  ,  0.  ]])
    """
    check_norm(norm)
    check_clip_norm(clip_norm)
    if norm == "clip":
        return np.clip(_without_bad_rows(X), -clip_norm, clip_norm)
    X = _rows_without_overflow(X)
    if norm == "minmax":
        low = X.min(axis=1, keepdims=True)
        unit = (X - low) / _or_one(X.max(axis=1, keepdims=True) - low)
    elif norm == "l1":
        unit = X / _or_one(np.abs(X).sum(axis=1, keepdims=True))
    else:
        unit = X / _or_one(np.sqrt(np.square(X).sum(axis=1, keepdims=True)))
    return unit * clip_norm


def normalise_to_grid(
    X: np.ndarray, norm: str, grid: int, stream: RandomStream, *, clip_norm: float = 1.0
) -> np.ndarray:
    """Normalise each row and round it at random to integers.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        The rows.
    norm : {"l1", "l2", "minmax", "clip"}
        The normalisation.
    grid : int
        The radius N that the unit of the normalisation becomes; at most ``2**40`` (L2: ``2**26``).
    stream : RandomStream
        Where the rounding offsets come from.
    clip_norm : float, default=1.0
        Where ``"clip"`` cuts; the other normalisations do not depend on scale.

    Returns
    -------
    ndarray of shape (n_samples, n_features), float64
        Whole numbers, exact because they are below ``2**53``.

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp.random import random_stream
    >>> from skfairdp.mechanisms._normalise import normalise_to_grid
    >>> Z = normalise_to_grid(np.array([[0.1, 0.2, -0.7]]), "l1", 256, random_stream(0))
    >>> float(abs(Z).sum())
    256.0
    """
    if not 1 <= grid <= FINEST_GRID[check_norm(norm)]:
        raise ValueError(f"grid must be between 1 and {FINEST_GRID[norm]} for norm={norm!r}; got {grid!r}.")
    if norm == "l2":
        return _l2_grid(_rows_without_overflow(X), grid, stream.generator.random(X.shape))
    u = _rounding_offsets(len(X), stream)
    if norm == "clip":
        unit = np.clip(_without_bad_rows(X), -clip_norm, clip_norm) / clip_norm
        return np.clip(np.floor(unit * grid + u), -grid, grid)
    X = _rows_without_overflow(X)
    if norm == "l1":
        return _l1_grid(X, grid, u)
    low = X.min(axis=1, keepdims=True)
    width = X.max(axis=1, keepdims=True) - low
    return np.clip(np.floor((X - low) * (grid / _or_one(width)) + u), 0, grid)


def inner_radius(grid: int, n_features: int) -> float:
    """Compute the radius that L2 rows are scaled to, so that rounding rarely takes them beyond ``grid``.

    Rounding adds at most ``D/4`` to the expected squared norm, with a standard deviation of at most the radius; the
    squared inner radius leaves room for the former and for three times the latter.
    """
    square = grid * grid - n_features / 4 - 3 * grid
    if square < grid * grid / 4:
        raise ValueError(f"a grid radius of {grid} is too coarse for {n_features} features.")
    return math.sqrt(square)


def add_noise(Z: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """Add noise in place. Shapes must match: noise shared by two coordinates cancels in their difference."""
    if noise.shape != Z.shape:
        raise ValueError(f"noise must have the shape of the data, {Z.shape}; got {noise.shape}.")
    Z += noise
    return Z


def shape_of(X: Any) -> tuple[int, int]:
    """Return rows and columns, or say that there must be both."""
    shape = np.shape(X)
    if len(shape) != 2 or shape[1] == 0:
        raise ValueError(f"X must have shape (n_samples, n_features) with at least one feature; got shape {shape}.")
    return shape


def check_norm(norm: Any) -> str:
    """Return the norm, or say which ones there are."""
    return check_option(norm, "norm", NORMS)


def check_clip_norm(clip_norm: Any) -> float:
    """Return ``clip_norm`` as a float greater than 0, or say what is wrong with it."""
    value = float(clip_norm)
    if not 0 < value < math.inf:
        raise ValueError(f"clip_norm must be a finite number greater than 0; got {clip_norm!r}.")
    return value


def _l1_grid(X: np.ndarray, grid: int, u: np.ndarray) -> np.ndarray:
    sums = np.cumsum(np.abs(X), axis=1)
    total = sums[:, -1:]
    steps = np.minimum(np.floor(sums * (grid / _or_one(total)) + u), grid)
    steps[:, -1] = grid
    steps[total[:, 0] == 0] = 0.0
    return np.copysign(np.diff(steps, axis=1, prepend=0.0), X)


def _l2_grid(X: np.ndarray, grid: int, u: np.ndarray) -> np.ndarray:
    radius = inner_radius(grid, X.shape[1])
    scaled = X * (radius / _or_one(np.sqrt(np.square(X).sum(axis=1, keepdims=True))))
    Z = np.floor(scaled + u)
    outside = np.square(Z).sum(axis=1) > grid * grid
    if outside.any():
        Z[outside] = np.trunc(scaled[outside])
        if (np.square(Z[outside]).sum(axis=1) > grid * grid).any():
            raise ArithmeticError("a normalised row lies outside its sphere; this is a bug, nothing was released.")
    return Z


def _rounding_offsets(n: int, stream: RandomStream) -> np.ndarray:
    """Draw one rounding offset in [0, 1) per row, a multiple of 2**-24."""
    return ((stream.uint32(n) >> np.uint32(8)) * 2.0**-24)[:, np.newaxis]


def _or_one(divisor: np.ndarray) -> np.ndarray:
    return np.where(divisor > 0, divisor, 1.0)


def _rows_without_overflow(X: np.ndarray) -> np.ndarray:
    """Return float64 rows in a range where nothing overflows; rows with nan or infinity become zero."""
    X = np.asarray(X, dtype=np.float64)
    peak = np.maximum(X.max(axis=1), -X.min(axis=1))
    wild = ~((peak > _TINY) & (peak < _HUGE))  # nan compares false, and so is wild
    if not wild.any():
        return X
    X = X.copy(order="K")  # in another order of memory, the sums of the other rows would be rounded in another way
    size = peak[wild, np.newaxis]
    usable = np.isfinite(size) & (size > 0)
    # NumPy 1.26 reports an overflow of tiny rows where there is none; no quotient here exceeds one.
    with np.errstate(invalid="ignore", over="ignore"):
        X[wild] = np.where(usable, X[wild] / np.where(usable, size, 1.0), 0.0)
    return X


def _without_bad_rows(X: np.ndarray) -> np.ndarray:
    X = np.asarray(X, dtype=np.float64)
    finite = np.isfinite(X).all(axis=1, keepdims=True)
    return X if finite.all() else np.where(finite, X, 0.0)
