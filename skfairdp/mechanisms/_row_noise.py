r"""Rows that are normalised and get noise on every entry: what the Laplace and the Gaussian mechanism share.

Beside the mechanism's base class, :func:`farthest_pairs` finds rows that a normalisation puts as far apart as it can:
the noise hides the difference of two such rows least.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from skfairdp._base import dense
from skfairdp.dp import Mechanism, check_columns, equality_ratio
from skfairdp.mechanisms._alias_table import BLOCK
from skfairdp.mechanisms._normalise import add_noise, check_clip_norm, check_norm, normalise, normalise_to_grid
from skfairdp.random import RandomStream, random_stream


@dataclass(frozen=True)
class RowNoise(Mechanism):
    """Base of mechanisms that turn rows into integers of bounded norm, add integer noise, and scale back.

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
    def _fill(self, out: np.ndarray, stream: RandomStream) -> None:
        """Fill a one-dimensional array with independent integer noise."""

    @abstractmethod
    def _log_density(self, noise: np.ndarray) -> np.ndarray:
        """Compute the log density of each row of noise, up to a constant."""

    def check(self, X: Any) -> None:
        """Check the shape. Values cannot fail: a row with a nan or an infinity is treated as the zero vector.

        Parameters
        ----------
        X : ndarray or sparse matrix of shape (n_samples, n_features)
            The rows.
        """
        check_columns(X, self.n_features)

    def draw(self, X: Any, stream: RandomStream) -> np.ndarray:
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
        n_samples, n_features = X.shape
        if self.grid == 0:
            return normalise(dense(X), self.norm, self.clip_norm)
        out = np.empty((n_samples, n_features))
        rows = max(1, BLOCK // n_features)
        for start in range(0, n_samples, rows):
            part = slice(start, start + rows)
            Z = normalise_to_grid(dense(X[part]), self.norm, self.grid, stream, clip_norm=self.clip_norm)
            noise = np.empty(Z.shape)
            self._fill(noise.reshape(-1), stream)
            np.multiply(add_noise(Z, noise), self.unit, out=out[part])
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
        """Return records whose normalised rows are as far apart as the normalisation allows.

        Parameters
        ----------
        stream : RandomStream or None, default=None
            Draws the random ones among the pairs; without it they are always the same.
        """
        return farthest_pairs(self.norm, self.n_features, noise=self.name, clip_norm=self.clip_norm, stream=stream)


def farthest_pairs(
    norm: str,
    n_features: int,
    *,
    noise: str = "laplace",
    clip_norm: float = 1.0,
    stream: RandomStream | None = None,
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return pairs of rows that are hard to hide, the first of them as far apart as the normalisation allows.

    One pair shows the sensitivity, but not every fault: a coordinate that gets too little noise is noticed only in a
    pair that differs in it. So there are pairs that differ in the first, in the last, and in all coordinates, and some
    that are drawn at random.

    Parameters
    ----------
    norm : {"l1", "l2", "minmax", "clip"}
        The normalisation.
    n_features : int
        The number of columns D.
    noise : {"laplace", "gaussian"}, default="laplace"
        Whether distance is meant in the L1 or in the L2 norm.
    clip_norm : float, default=1.0
        The radius of the sphere or box, or the length of the min-max interval.
    stream : RandomStream, optional
        Draws the random pairs; without it they are always the same.

    Returns
    -------
    list of (x, x_prime)
        Rows of shape (n_features,), already normalised. In short, with unit vectors e and signs s:

        - ``"l1"``: e_1, e_D, s/D and a random point of the sphere, each against its negative. For Laplace noise all
          are equally far apart; for Gaussian noise only the first two are at the largest distance.
        - ``"l2"``, Laplace: 1/sqrt(D) and s/sqrt(D) at the largest distance, e_1 and e_D nearer, against their
          negatives.
        - ``"l2"``, Gaussian: e_1, e_D, s/sqrt(D) and a random unit vector, against their negatives.
        - ``"minmax"``: 0/1 patterns against their complements.
        - ``"clip"``: the corners 1 and s at the largest distance, e_1 and e_D nearer, against their negatives.

    Notes
    -----
    **Privacy.** Laplace noise of scale b on each coordinate loses ``sum |x - x_prime| / b`` between two rows, Gaussian
    noise an amount that grows with the L2 distance over sigma. So the farthest rows lose the whole epsilon.
    Pairs that are nearer lose less if the noise is right, and may lose most if it is not.

    Examples
    --------
    >>> from skfairdp.mechanisms import farthest_pairs
    >>> farthest_pairs("l1", 3)[:2]
    [(array([1., 0., 0.]), array([-1.,  0.,  0.])), (array([0., 0., 1.]), array([ 0.,  0., -1.]))]
    >>> all(abs(x - x_prime).sum() == 4 for x, x_prime in farthest_pairs("minmax", 4))
    True
    """
    radius = check_clip_norm(clip_norm)
    if noise not in ("laplace", "gaussian"):
        raise ValueError(f"noise must be 'laplace' or 'gaussian'; got {noise!r}.")
    if check_norm(norm) == "minmax" and n_features == 1:
        raise ValueError("n_features must be at least 2 for norm='minmax': a single value always becomes 0.")
    random = (random_stream(0) if stream is None else stream).generator
    signs = random.choice([-1.0, 1.0], n_features)
    first, last = np.zeros((2, n_features))
    first[0] = last[-1] = 1.0
    root = np.sqrt(n_features)
    if norm == "minmax":
        pattern = (signs + 1) / 2
        pattern[random.choice(n_features, 2, replace=False)] = 0.0, 1.0  # a constant row has no direction
        return _distinct_pairs([(radius * row, radius * (1 - row)) for row in (1 - first, 1 - last, pattern)])
    if norm == "l1":
        rows = [first, last, signs / n_features, signs * random.dirichlet(np.ones(n_features))]
    elif norm == "clip":
        rows = [np.ones(n_features), signs, first, last]
    elif noise == "laplace":
        rows = [np.ones(n_features) / root, signs / root, first, last]
    else:
        direction = random.normal(size=n_features)
        rows = [first, last, signs / root, direction / np.linalg.norm(direction)]
    return _distinct_pairs([(radius * row, 0.0 - radius * row) for row in rows])


def _distinct_pairs(pairs: list[tuple[np.ndarray, np.ndarray]]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Leave out pairs that repeat an earlier one, in either order: with one feature there is only one pair."""
    kept: list[tuple[np.ndarray, np.ndarray]] = []
    for x, x_prime in pairs:
        if not any(np.allclose(x, known) for pair in kept for known in pair):
            kept.append((x, x_prime))
    return kept


def check_scale(scale: Any, least: float, greatest: float) -> float:
    """Return the scale of integer noise as a float, or say what is allowed."""
    value = float(scale)
    if not least <= value <= greatest:
        raise ValueError(f"scale must be a finite number in [{least:g}, {greatest:g}]; got {scale!r}.")
    return value
