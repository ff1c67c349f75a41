"""INLP: iterative null-space projection."""

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import LogisticRegression

from skfairdp._base import dense
from skfairdp._sklearn import HasMethods, Interval, fit_context
from skfairdp.preprocessing._eraser import Eraser
from skfairdp.preprocessing._projections import (
    RESOLUTION,
    column_means,
    largest_deviations,
    nullspace_projection,
    round_to_grid,
    units_for,
)


class INLPEraser(Eraser):
    """Remove, one after the other, the directions in which a linear classifier finds the groups.

    Each round trains a linear classifier of the groups on what is left of the rows and removes the
    directions it uses [1]_. Columns are standardised for it, so that units do not matter.
    ``sensitive_features`` are needed in ``fit`` only.

    Parameters
    ----------
    n_iterations : int, default=10
        Rounds at most. Each removes one direction of a two-group column (the number of groups otherwise).
    estimator : linear classifier or None, default=None
        Anything with ``fit`` and, after it, ``coef_``; it is given standardised columns. ``None`` is
        :class:`~sklearn.linear_model.LogisticRegression`.
    tol : float, default=0.0
        Stop as soon as the classifier's accuracy on the rows is at most ``tol`` above the share of the
        largest group, in every sensitive column.

    Attributes
    ----------
    mean_, scale_ : ndarray of shape (n_features,)
        Mean and standard deviation of the columns; the scale of a constant column is 1.
    projection_ : ndarray of shape (n_features, n_features)
        Symmetric and idempotent: an orthogonal projection of the *standardised* columns. The map is
        ``mean_ + ((x - mean_) / scale_) @ projection_ * scale_``, up to rounding.
    rank_ : int
        Dimensions removed.
    n_iter_ : int
        Rounds run.
    advantages_ : list of float
        How far the classifier of each round was above the largest group's share (the largest over columns).
    n_features_in_, feature_names_in_ : int, ndarray
        As everywhere in scikit-learn.

    See Also
    --------
    LEACEEraser : Closed form, and moves the rows as little as possible.

    Notes
    -----
    **Fairness.** The removed directions are gone for every model. Whether *all* linear information is gone depends
    on the rounds: look at ``advantages_``. A non-linear attacker may still find the groups.

    **Privacy.** None in the sense of differential privacy: there is no noise, and the projection was learned from
    the rows.

    Several sensitive columns are removed together, each by itself, as in :class:`LEACEEraser`: one classifier per
    column and round. To remove their combinations, give one column that names them.

    Sparse rows are accepted, and dense inside: a projection of standardised columns leaves no zeros, and the
    classifiers are trained on it.

    Each column is rounded to 2**-40 of its largest deviation, which is coarser than the rounding errors in which a
    projection leaves traces of the groups.
    A column that is constant in ``fit`` is returned as it is.

    References
    ----------
    .. [1] S. Ravfogel et al., "Null it out: guarding protected attributes by iterative nullspace projection",
       ACL 2020, Algorithm 1.

    Examples
    --------
    >>> from skfairdp import INLPEraser
    >>> from skfairdp.datasets import make_biased_classification
    >>> data = make_biased_classification(n_samples=2000, group_shift=2.0, random_state=0)
    >>> eraser = INLPEraser(n_iterations=5).fit(data.data, sensitive_features=data.sensitive_features)
    >>> eraser.advantages_[0] > 0.2, eraser.advantages_[-1] < 0.02
    (True, True)
    """

    _row_wise_methods: ClassVar[dict] = {"transform": ()}

    _parameter_constraints: ClassVar[dict] = {
        "n_iterations": [Interval(Integral, 1, None, closed="left")],
        "estimator": [HasMethods(["fit"]), None],
        "tol": [Interval(Real, 0, 1, closed="left")],
    }

    def __init__(self, n_iterations: int = 10, *, estimator: BaseEstimator | None = None, tol: float = 0.0):
        self.n_iterations = n_iterations
        self.estimator = estimator
        self.tol = tol

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any = None, *, sensitive_features: Any = None) -> "INLPEraser":
        """Learn the projection.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The representation.
        y : ignored
            Here for the sake of pipelines.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
            What to remove, each column by itself. They must be given.

        Returns
        -------
        INLPEraser
            This object.
        """
        X, groups = self._read(X, sensitive_features)
        columns = [column for column in groups.indices.T if np.ptp(column) > 0]
        base = LogisticRegression(max_iter=1000) if self.estimator is None else self.estimator

        mean = column_means(X)
        largest = largest_deviations(X, mean)
        standardised = dense(X) - mean
        unit, varies = units_for(largest), largest > 0
        standardised /= unit  # so that the squares neither overflow nor vanish
        deviation = np.where(varies, standardised.std(axis=0), 1.0)
        standardised /= deviation
        grid = units_for(largest / unit / deviation) * RESOLUTION

        projection, rank = np.eye(X.shape[1]), 0
        directions: list[np.ndarray] = []
        advantages: list[float] = []
        for _ in range(self.n_iterations if columns else 0):
            remaining = round_to_grid(standardised @ projection, grid)
            fitted = [clone(base).fit(remaining, column) for column in columns]
            reached = [_advantage_over_majority(model, remaining, column) for model, column in zip(fitted, columns)]
            advantages.append(max(reached))
            if advantages[-1] <= self.tol:
                break
            # A constant column tells nothing, whatever weight the classifier gives it.
            directions += [(_classifier_coefficients(model) * varies) @ projection for model in fitted]
            # From all directions at once: a product of projections would lose orthogonality round by round.
            projection, rank = nullspace_projection(np.vstack([_unit_length(rows) for rows in directions]))
            if rank == X.shape[1]:
                break
        self.mean_, self.scale_ = mean, np.where(varies, deviation * unit, 1.0)
        self.projection_, self.rank_ = projection, rank
        self._grid, self._constant = grid, ~varies
        self.advantages_, self.n_iter_ = advantages, max(len(advantages), 1)
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Remove the directions; the sensitive features are not needed.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The representation.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            The projected rows; dense, also where they were sparse.
        """
        return self._erased(X)

    def _erase_centred(self, block: np.ndarray) -> None:
        block /= self.scale_
        block[:] = round_to_grid(block @ self.projection_, self._grid)
        block *= self.scale_


def _advantage_over_majority(model: Any, X: np.ndarray, groups: np.ndarray) -> float:
    return float(np.mean(model.predict(X) == groups) - np.bincount(groups).max() / len(groups))


def _classifier_coefficients(model: Any) -> np.ndarray:
    if not hasattr(model, "coef_"):
        raise TypeError(f"estimator must have coef_ after fit (a linear classifier); {model!r} has none.")
    return np.atleast_2d(model.coef_)


def _unit_length(rows: np.ndarray) -> np.ndarray:
    """Scale to unit length, so that a weak direction of a late round is not mistaken for rounding."""
    length = np.linalg.norm(rows)
    return rows / length if length > 0 else rows
