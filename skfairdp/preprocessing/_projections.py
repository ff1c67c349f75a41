"""The linear algebra of concept erasure, on arrays."""

from dataclasses import dataclass, field

import numpy as np


def grid_for(largest: float) -> float:
    """Return a grid, a power of two, on which rows of this magnitude hide the rounding of their erasure."""
    return 2.0 ** (np.ceil(np.log2(largest)) - 40) if largest > 0 else 1.0


def snap(X: np.ndarray, grid: float) -> np.ndarray:
    """Round to a grid.

    A projection computed in floating point leaves about 1e-16 of what it removed, and that residue is itself
    a linear function of the row: a probe that standardises or whitens its input reads the groups from it
    as if nothing had been erased. The grid, ten thousand times coarser, drowns it.
    """
    return np.rint(X / grid) * grid


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


@dataclass
class GroupMoments:
    """Running moments of rows by group: what LEACE needs, in one pass and bounded memory.

    Groups may appear at any time. Sums are kept about a fixed origin, the mean of the first
    batch, so that a large offset of the data does not eat the digits.
    """

    n_features: int
    n: int = 0
    largest: float = 0.0
    origin: np.ndarray | None = None
    total: np.ndarray = field(init=False)
    scatter: np.ndarray = field(init=False)
    group_counts: dict = field(default_factory=dict)
    group_totals: dict = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.total = np.zeros(self.n_features)
        self.scatter = np.zeros((self.n_features, self.n_features))

    def add(self, X: np.ndarray, codes: np.ndarray, keys: list) -> None:
        """Add rows whose group is ``keys[codes[i]]`` for each column of ``codes``."""
        if self.origin is None:
            self.origin = X.mean(axis=0)
        centred = X - self.origin
        self.n += len(X)
        self.largest = max(self.largest, float(np.abs(X).max()))
        self.total += centred.sum(axis=0)
        self.scatter += centred.T @ centred
        for column, column_keys in zip(codes.T, keys):
            membership = np.zeros((len(column_keys), len(X)))
            membership[column, np.arange(len(X))] = 1.0
            for key, count, total in zip(column_keys, membership.sum(axis=1), membership @ centred):
                self.group_counts[key] = self.group_counts.get(key, 0.0) + count
                self.group_totals[key] = self.group_totals.get(key, 0.0) + total

    @property
    def mean(self) -> np.ndarray:
        """Mean of all rows."""
        assert self.origin is not None
        return self.origin + self.total / self.n

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
        return np.reshape(columns, (-1, self.n_features)).T / max(self.n - 1, 1)


def leace_projection(
    covariance: np.ndarray, cross_covariance: np.ndarray, tol: float = 1e-8
) -> tuple[np.ndarray, np.ndarray]:
    r"""Least-squares concept erasure in closed form (Belrose et al. 2023, Theorem 4.3).

    With :math:`W = (\Sigma_{XX}^{1/2})^+` and :math:`P` the orthogonal projection onto the
    columns of :math:`W \Sigma_{XZ}`, the eraser is
    :math:`r(x) = x - W^+ P W (x - \mathrm{E}[X])`.

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
    values, vectors = np.linalg.eigh(covariance)
    kept = values > values[-1] * len(values) * np.finfo(float).eps
    roots = np.sqrt(np.where(kept, values, 1.0))
    whiten = (vectors * np.where(kept, 1 / roots, 0.0)) @ vectors.T
    unwhiten = (vectors * np.where(kept, roots, 0.0)) @ vectors.T
    basis, strength, _ = np.linalg.svd(whiten @ cross_covariance, full_matrices=False)
    basis = basis[:, strength > tol]
    return unwhiten @ basis, basis.T @ whiten
