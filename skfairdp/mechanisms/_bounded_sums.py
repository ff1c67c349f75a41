r"""Sums of bounded columns and of their squares, with Laplace noise: what a private scaler needs.

Every value lies in [-1, 1] and is rounded to an integer :math:`Z \in \{-N, ..., N\}`, its square to
:math:`W \in \{0, ..., N\}`. Replacing one record changes a sum of Z by at most 2N and a sum of W by at most N, in
every column: :math:`3 N D` in L1, in integers. Discrete Laplace noise of scale :math:`3 N D / \varepsilon` is added.
"""

import math
from dataclasses import dataclass

import numpy as np

from skfairdp._validation import check_epsilon
from skfairdp.dp import REPLACE_ONE_RECORD, Mechanism, check_columns
from skfairdp.mechanisms._laplace_mechanism import GREATEST_SCALE, LEAST_SCALE, discrete_laplace, laplace_scale
from skfairdp.random import RandomStream

_GRID = 1 << 20  # fine enough that rounding is far below the noise, coarse enough that a billion rows add up exactly


@dataclass(frozen=True)
class BoundedSums(Mechanism):
    """Release the sums of columns in [-1, 1] and of their squares; made by :func:`bounded_sums`.

    Attributes
    ----------
    n_features : int
        The number of columns.
    epsilon : float
        The exact loss of one release, for data sets of the same size that differ in one record.
    scale : float
        The scale of the integer noise; 0 for none.

    Examples
    --------
    >>> from skfairdp.mechanisms import bounded_sums
    >>> mechanism = bounded_sums(2, 1.0)
    >>> mechanism.epsilon, len(mechanism.worst_case_pairs())
    (1.0, 3)
    """

    n_features: int
    epsilon: float
    scale: float
    name = "laplace on sums"

    @property
    def noise_scale(self) -> float:
        """Scale of the noise on a sum."""
        return self.scale / _GRID

    def guarantee(self, **words):
        """Write the receipt; neighbours differ in one record.

        Parameters
        ----------
        **words : dict
            Fields of the receipt, see :meth:`Mechanism.guarantee`.
        """
        return super().guarantee(**{"neighbours": REPLACE_ONE_RECORD, **words})

    def check(self, X: np.ndarray) -> None:
        """Check the number of columns, and that values lie in [-1, 1].

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
            The data set.
        """
        check_columns(X, self.n_features)
        if not (np.abs(X) <= 1).all():  # false for nan
            raise ValueError("X must hold numbers from -1 to 1.")

    def draw(self, X: np.ndarray, stream: RandomStream) -> np.ndarray:
        """Draw noisy sums.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
            Values in [-1, 1].
        stream : RandomStream
            Where the random bits come from.

        Returns
        -------
        ndarray of shape (2, n_features)
            Sums, and sums of squares.
        """
        sums = self._sums(X)
        if self.scale > 0:
            sums = sums + discrete_laplace(sums.shape, self.scale, stream)
        return sums / _GRID

    @staticmethod
    def _sums(X: np.ndarray) -> np.ndarray:
        return np.stack([np.rint(part * _GRID).astype(np.int64).sum(axis=0) for part in (X, np.square(X))])

    def log_likelihood_ratio(self, y: np.ndarray, x: np.ndarray, x_prime: np.ndarray) -> np.ndarray:
        """Compute ``log p(y | x) - log p(y | x_prime)`` of one release, exactly; x and x_prime are data sets.

        Parameters
        ----------
        y : ndarray of shape (2, n_features)
            Released sums, and sums of squares.
        x, x_prime : ndarray of shape (n_samples, n_features)
            Two data sets with values in [-1, 1].
        """
        if self.scale == 0:
            return np.array([0.0 if np.array_equal(self._sums(x), self._sums(x_prime)) else np.inf])
        away, away_prime = (np.abs(np.rint(y * _GRID) - self._sums(data)).sum() for data in (x, x_prime))
        return np.array([(away_prime - away) / self.scale])

    def worst_case_pairs(self, stream: RandomStream | None = None) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return data sets of one record: the squares move most from 0 to 1, the sums from -1 to 1.

        Parameters
        ----------
        stream : RandomStream or None, default=None
            Not needed: the pairs are always the same.
        """
        ones = np.ones((1, self.n_features))
        last = np.zeros((1, self.n_features))
        last[0, -1] = 1.0
        return [(ones, -ones), (ones, 0 * ones), (last, 0 * last)]


def bounded_sums(n_features: int, epsilon: float) -> BoundedSums:
    """Choose the noise for sums of columns in [-1, 1] and of their squares.

    Parameters
    ----------
    n_features : int
        The number of columns.
    epsilon : float
        Greater than 0; ``inf`` means no noise.

    Returns
    -------
    BoundedSums

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp.random import random_stream
    >>> from skfairdp.mechanisms import bounded_sums
    >>> X = np.full((10_000, 1), 0.5)
    >>> bounded_sums(1, 1.0).release(X, random_stream(0)).round(-2).ravel()
    array([5000., 2500.])
    """
    epsilon = check_epsilon(epsilon)
    if math.isinf(epsilon):
        return BoundedSums(n_features, epsilon, 0.0)
    sensitivity = 3.0 * _GRID * n_features
    least, most = sensitivity / GREATEST_SCALE, sensitivity / LEAST_SCALE
    if not 2 * least <= epsilon <= most / 2:
        raise ValueError(
            f"epsilon must be from {2 * least:.3g} to {most / 2:.3g} for {n_features} columns; got {epsilon!r}."
        )
    return BoundedSums(n_features, epsilon, laplace_scale(sensitivity, epsilon, 2 * n_features))
