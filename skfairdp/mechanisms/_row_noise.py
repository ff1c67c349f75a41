"""Normalise rows and add noise to every entry: what Laplace and Gaussian releases share."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from skfairdp.mechanisms._alias import BLOCK
from skfairdp.mechanisms._farthest import farthest_pairs
from skfairdp.mechanisms._mechanism import Mechanism, check_columns, equality_ratio
from skfairdp.mechanisms._normalise import add_noise, dense, normalise, normalise_to_grid, shape_of
from skfairdp.random import RandomStream


class NoiseSource(Protocol):
    """Draws integers."""

    def fill(self, out: np.ndarray, stream: RandomStream) -> None:
        """Fill a one-dimensional array with independent noise."""


@dataclass(frozen=True)
class RowNoise(Mechanism):
    """Rows become integers of bounded norm, integer noise is added, and the sum is scaled back.

    Attributes
    ----------
    norm : {"l1", "l2", "minmax", "clip"}
        The normalisation.
    n_features : int
        The number of columns.
    clip_norm : float
        Radius, or interval length, of the normalised rows.
    grid : int
        The integer radius N; 0 when there is no noise.
    unit : float
        What one integer step is worth in the output.
    """

    norm: str
    n_features: int
    clip_norm: float
    grid: int
    unit: float

    @property
    @abstractmethod
    def noise_scale(self) -> float:
        """Scale of the noise in the units of the output; 0 when there is none."""

    @abstractmethod
    def _source(self) -> NoiseSource:
        """Return what draws the integer noise."""

    @abstractmethod
    def _log_density(self, noise: np.ndarray) -> np.ndarray:
        """Compute the log density of each row of noise, up to a constant."""

    def check(self, X: Any) -> None:
        """Check the shape. Values cannot fail: a row with a nan or an infinity is treated as the zero vector."""
        shape_of(X)
        check_columns(X, self.n_features)

    def release(self, X: Any, stream: RandomStream) -> np.ndarray:
        """Normalise each row and add noise, independent for every entry.

        Parameters
        ----------
        X : ndarray or sparse CSR matrix of shape (n_samples, n_features)
            The rows.
        stream : RandomStream
            Where the random bits come from.

        Returns
        -------
        ndarray of shape (n_samples, n_features), float64
        """
        self.check(X)
        n_samples, n_features = shape_of(X)
        if self.grid == 0:
            return normalise(dense(X), self.norm, self.clip_norm)
        source = self._source()
        out = np.empty((n_samples, n_features))
        rows = max(1, BLOCK // n_features)
        noise = np.empty((min(rows, n_samples), n_features))
        for start in range(0, n_samples, rows):
            part = slice(start, min(start + rows, n_samples))
            Z = normalise_to_grid(dense(X[part]), self.norm, self.grid, stream, clip_norm=self.clip_norm)
            fresh = noise[: len(Z)]
            source.fill(fresh.reshape(-1), stream)
            np.multiply(add_noise(Z, fresh), self.unit, out=out[part])
        return out

    def log_likelihood_ratio(self, y: np.ndarray, x: np.ndarray, x_prime: np.ndarray) -> np.ndarray:
        """Compute ``log p(y | x) - log p(y | x_prime)`` with the continuous density around the normalised record.

        The noise is rounded to a grid, so the exact ratio differs by less than a grid step over the noise scale;
        any score gives a valid audit.

        Parameters
        ----------
        y : ndarray of shape (n_samples, n_features)
            Released rows.
        x, x_prime : ndarray of shape (1, n_features) or (n_samples, n_features)
            Two records.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        centres = [normalise(row, self.norm, self.clip_norm) for row in (x, x_prime)]
        if self.noise_scale == 0:
            return equality_ratio(y, *centres)
        return self._log_density(y - centres[0]) - self._log_density(y - centres[1])

    def worst_case_pairs(self, stream: RandomStream | None = None) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return records whose normalised rows are as far apart as the normalisation allows."""
        return farthest_pairs(self.norm, self.n_features, noise=self.name, clip_norm=self.clip_norm, stream=stream)
