"""The linear algebra of concept erasure, on arrays."""

from typing import Any

import numpy as np

from skfairdp._base import dense, dense_blocks

#: Erased rows are rounded to this part of the largest deviation in their column.
RESOLUTION = 2.0**-40


def column_means(X: Any) -> np.ndarray:
    """Return the mean of each column.

    Taken about the first row: a large offset then costs no precision, and the mean of a constant column is exactly
    its value.
    """
    first = dense(X[:1])[0]
    with np.errstate(over="ignore", invalid="ignore"):  # largest_deviations says it in words
        return first + sum((rows - first).sum(axis=0) for _, rows in dense_blocks(X)) / X.shape[0]


def largest_deviations(X: Any, origin: np.ndarray) -> np.ndarray:
    """Return the largest deviation of each column from an origin, or name a column that has no room in float64."""
    least, most = (np.ravel(dense(values)) for values in (X.min(axis=0), X.max(axis=0)))
    with np.errstate(over="ignore", invalid="ignore"):
        largest = np.maximum(most - origin, origin - least)
    safe = (largest == 0) | ((largest > 1e-290) & (largest < 1e300))
    if not safe.all():
        column = int(np.argmin(safe))
        raise ValueError(
            f"X spreads by {largest[column]:.3g} in column {column}; float64 has room for 1e-290 to 1e300: "
            "multiply or divide that column by a constant first."
        )
    return largest


def units_for(largest: np.ndarray) -> np.ndarray:
    """Return the power of two above each value, and 1 for 0. Dividing by a power of two is exact."""
    return np.where(largest > 0, 2.0 ** np.frexp(largest)[1], 1.0)


def round_to_grid(X: np.ndarray, grid: np.ndarray) -> np.ndarray:
    """Round each column to its grid, in place.

    A projection computed in floating point leaves about 1e-16 of what it removed, and that residue is itself
    a linear function of the row: a probe that standardises or whitens its input reads the groups from it
    as if nothing had been erased. Rounding to a grid ten thousand times coarser removes it. Each column has a grid of
    its own, so that one column of large numbers does not coarsen the others.
    """
    X /= grid
    np.rint(X, out=X)
    X *= grid
    return X


def nullspace_projection(directions: np.ndarray, tol: float = 1e-10) -> tuple[np.ndarray, int]:
    """Project onto the space orthogonal to some directions.

    Parameters
    ----------
    directions : ndarray of shape (n_directions, n_features)
        They need be neither independent nor of unit length.
    tol : float
        Directions whose singular value is below ``tol`` times the largest are left alone.

    Returns
    -------
    projection : ndarray of shape (n_features, n_features)
        Symmetric and idempotent.
    rank : int
        The number of dimensions removed.
    """
    _, lengths, basis = np.linalg.svd(directions, full_matrices=False)
    basis = basis[lengths > tol * max(lengths.max(initial=0.0), np.finfo(float).tiny)]
    return np.eye(directions.shape[1]) - basis.T @ basis, len(basis)


class GroupMoments:
    """Running moments of rows by group: what LEACE needs, in one pass and bounded memory.

    Groups may appear at any time. Sums are kept about a fixed origin, the mean of the first
    batch, so that a large offset of the data costs no precision. Each column is counted in units of its own largest
    deviation, so that columns of very different size neither overflow nor vanish beside each other.
    """

    def __init__(self, n_features: int):
        self.n = 0
        self.origin: np.ndarray | None = None
        self.largest, self.total = np.zeros(n_features), np.zeros(n_features)
        self.scatter = np.zeros((n_features, n_features))
        self.group_counts: dict = {}
        self.group_totals: dict = {}

    def add(self, X: Any, indices: np.ndarray, keys: list) -> None:
        """Add rows, dense or sparse, whose group is ``keys[j][indices[i, j]]`` in each sensitive column j."""
        origin = column_means(X) if self.origin is None else self.origin
        largest = largest_deviations(X, origin)
        # Nothing below can fail: a batch is added whole or not at all.
        self.origin = origin
        self._change_units(np.maximum(self.largest, largest))
        for part, rows in dense_blocks(X):
            centred = (rows - origin) / self.unit
            self.n += len(centred)
            self.total += centred.sum(axis=0)
            self.scatter += centred.T @ centred
            for column, column_keys in zip(indices[part].T, keys):
                membership = np.zeros((len(column_keys), len(centred)))
                membership[column, np.arange(len(centred))] = 1.0
                for key, count, total in zip(column_keys, membership.sum(axis=1), membership @ centred):
                    self.group_counts[key] = self.group_counts.get(key, 0.0) + count
                    self.group_totals[key] = self.group_totals.get(key, 0.0) + total

    def _change_units(self, largest: np.ndarray) -> None:
        ratio = self.unit / units_for(largest)
        self.total *= ratio
        self.scatter *= ratio  # one side at a time: a ratio squared may overflow
        self.scatter *= ratio[:, None]
        for key in self.group_totals:
            self.group_totals[key] = self.group_totals[key] * ratio
        self.largest = largest

    @property
    def unit(self) -> np.ndarray:
        """The unit of each column, in which sums and covariances are kept."""
        return units_for(self.largest)

    @property
    def mean(self) -> np.ndarray:
        """Mean of all rows, in the numbers that were given."""
        assert self.origin is not None
        return self.origin + self.total / self.n * self.unit

    @property
    def covariance(self) -> np.ndarray:
        """Covariance of the features, with Bessel's correction."""
        offset = self.total / self.n
        covariance = (self.scatter - self.n * np.outer(offset, offset)) / max(self.n - 1, 1)
        return (covariance + covariance.T) / 2

    @property
    def cross_covariance(self) -> np.ndarray:
        """Covariance of the features with the indicators of the groups; a column per group."""
        offset = self.total / self.n
        columns = [self.group_totals[key] - count * offset for key, count in self.group_counts.items()]
        return np.reshape(columns, (-1, len(offset))).T / max(self.n - 1, 1)


def leace_projection(
    covariance: np.ndarray, cross_covariance: np.ndarray, tol: float = 1e-8
) -> tuple[np.ndarray, np.ndarray]:
    r"""Least-squares concept erasure in closed form (Belrose et al. 2023, Theorem 4.3).

    With :math:`W = (\Sigma_{XX}^{1/2})^+` and :math:`P` the orthogonal projection onto the
    columns of :math:`W \Sigma_{XZ}`, the eraser is
    :math:`r(x) = x - W^+ P W (x - \mathrm{E}[X])`. It is the optimum for every weighting of the
    features at once (Theorem 4.2), hence the same map in any units: it is computed in those in which
    each feature has variance 1, where the arithmetic is safe, and given back in those of the arguments.

    Parameters
    ----------
    covariance : ndarray of shape (n_features, n_features)
        Covariance of the features.
    cross_covariance : ndarray of shape (n_features, n_groups)
        Covariance of the features with the group indicators.
    tol : float
        Whitened directions whose singular value does not exceed ``tol`` are noise of the
        arithmetic and left alone.

    Returns
    -------
    left : ndarray of shape (n_features, rank)
        :math:`W^+ U`, where :math:`U` is an orthonormal basis of the image of :math:`P`.
    right : ndarray of shape (rank, n_features)
        :math:`U^\top W`. The eraser subtracts ``(x - mean) @ right.T @ left.T``.
    """
    scale = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    inverse = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)  # 0 leaves constant features out
    cross = cross_covariance * inverse[:, None]
    values, vectors = np.linalg.eigh(covariance * inverse * inverse[:, None])
    kept = values > values[-1] * len(values) * np.finfo(float).eps
    vectors, roots = vectors[:, kept], np.sqrt(values[kept])
    whiten = (vectors / roots) @ vectors.T
    basis, strength, groups = np.linalg.svd(whiten @ cross, full_matrices=False)
    found = strength > tol
    # W^+ U, read from the covariance with the groups: in a direction too narrow for the covariance of the features,
    # which holds squares, the means of the groups still differ, and have to coincide afterwards.
    left = cross @ (groups[found].T / strength[found])
    return left * scale[:, None], (basis[:, found].T @ whiten) * inverse
