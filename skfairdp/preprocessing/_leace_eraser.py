"""LEACE: least-squares concept erasure."""

from numbers import Real
from typing import Any, ClassVar

import numpy as np

from skfairdp._sklearn import Interval, fit_context
from skfairdp.preprocessing._eraser import Eraser
from skfairdp.preprocessing._projections import RESOLUTION, GroupMoments, leace_projection, round_to_grid


class LEACEEraser(Eraser):
    r"""Erase what any linear model could read of the sensitive features, and as little else as possible.

    Among all affine maps after which no linear classifier beats a constant, this is the one that moves the
    rows least in mean squared distance, whatever weights the features have in it ([1]_, Theorem 4.2): units
    do not matter. ``sensitive_features`` are needed in ``fit`` only.

    Parameters
    ----------
    tol : float, default=1e-8
        Whitened directions whose covariance with the groups does not exceed ``tol`` are left alone.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
        Mean of the rows seen.
    left_, right_ : ndarray of shape (n_features, rank), (rank, n_features)
        The map is ``x - (x - mean_) @ right_.T @ left_.T``, up to rounding.
    rank_ : int
        Dimensions removed: at most the number of groups less one, summed over the sensitive columns.
    n_samples_seen_ : int
        Rows seen.
    n_features_in_, feature_names_in_ : int, ndarray
        As everywhere in scikit-learn.

    See Also
    --------
    INLPEraser : Removes directions one classifier at a time.

    Notes
    -----
    **Fairness.** On the rows that it was fitted on, every linear classifier with any convex loss does as well
    without the features as with them (linear guardedness, [1]_ Theorem 3.1): the means of all groups coincide. A
    non-linear attacker may still find the groups; measure it with ``leakage_score``.

    **Privacy.** None in the sense of differential privacy: there is no noise, and the map was learned from the rows.

    Several sensitive columns are erased together, each by itself, as in :class:`INLPEraser` and by the adversaries of
    :class:`~skfairdp.FederateClassifier`: there is one group per label, not per combination of labels, whose number
    multiplies. Metrics measure the combinations. To erase these too, give one column that names them.

    Sparse rows are read a block at a time for sums of d times d numbers, for d columns, and are never dense all at once
    in ``fit``. What ``transform`` returns is dense: without the groups no entry stays zero.

    Each column is rounded to 2**-40 of its largest deviation, which is coarser than the rounding errors in which a
    projection leaves traces of the groups.
    A column that is constant in ``fit`` is returned as it is.

    References
    ----------
    .. [1] N. Belrose et al., "LEACE: Perfect linear concept erasure in closed form", NeurIPS 2023.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skfairdp import LEACEEraser
    >>> from skfairdp.datasets import make_biased_classification
    >>> data = make_biased_classification(n_samples=2000, group_shift=2.0, random_state=0)
    >>> z = data.sensitive_features
    >>> erased = LEACEEraser().fit_transform(data.data, sensitive_features=z)
    >>> probe = LogisticRegression()
    >>> bool(probe.fit(data.data, z).score(data.data, z) > 0.7)
    True
    >>> bool(abs(probe.fit(erased, z).coef_).max() < 0.01)
    True
    """

    _row_wise_methods: ClassVar[dict] = {"transform": ()}

    _parameter_constraints: ClassVar[dict] = {"tol": [Interval(Real, 0, None, closed="left")]}

    _moments: GroupMoments

    def __init__(self, *, tol: float = 1e-8):
        self.tol = tol

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, *, sensitive_features: Any = None) -> "LEACEEraser":
        """Learn the map from all rows at once.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The representation.
        y : ignored
            Here for the sake of pipelines.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
            What to erase, each column by itself. They must be given.

        Returns
        -------
        LEACEEraser
            This object.
        """
        return self._learn(X, sensitive_features, first=True)

    @fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any = None, *, sensitive_features: Any = None) -> "LEACEEraser":
        """Learn from another batch of rows; groups may appear in any batch.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The representation.
        y : ignored
            Here for the sake of pipelines.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
            What to erase, each column by itself. They must be given.

        Returns
        -------
        LEACEEraser
            This object.
        """
        return self._learn(X, sensitive_features, first=not hasattr(self, "_moments"))

    def _learn(self, X: Any, sensitive_features: Any, *, first: bool) -> "LEACEEraser":
        X, groups = self._read(X, sensitive_features, reset=first)
        moments: GroupMoments = GroupMoments(X.shape[1]) if first else self._moments
        keys = [[(name, label) for label in labels] for name, labels in zip(groups.names, groups.labels)]
        moments.add(X, groups.indices, keys)
        self._moments = moments
        self.mean_ = moments.mean
        left, right = leace_projection(moments.covariance, moments.cross_covariance, self.tol)
        self.left_, self.right_ = left * moments.unit[:, None], right / moments.unit
        self.rank_ = left.shape[1]
        self._grid, self._constant = moments.unit * RESOLUTION, moments.largest == 0
        self.n_samples_seen_ = moments.n
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Erase; the sensitive features are not needed.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The representation.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            The rows, moved as little as possible; dense, also where they were sparse.
        """
        return self._erased(X)

    def _erase_centred(self, block: np.ndarray) -> None:
        block -= (block @ self.right_.T) @ self.left_.T
        round_to_grid(block, self._grid)
