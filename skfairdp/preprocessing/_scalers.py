"""Scalers for private pipelines: PublicScaler learns nothing from private rows, PrivateScaler learns under noise."""

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from skfairdp._base import SkfairdpEstimator, dense, restored_on_failure
from skfairdp._sklearn import fit_context
from skfairdp._validation import check_public_rows
from skfairdp.dp import ONE_RELEASE, REFUSED_TABLES, ReleaseMixin
from skfairdp.mechanisms import bounded_sums
from skfairdp.random import noise_stream

_BOUNDS = "the bounds, which must not have been chosen by looking at the rows"
_TRANSFORMED = "rows that are transformed: they come out in the clear"
#: The least standard deviation, as a share of half the width of the bounds: noise may make the estimated variance of a
#: column nearly 0 or negative, and dividing by its root would blow the column up.
_LEAST_DEVIATION = 0.01


class _Scaler(OneToOneFeatureMixin, TransformerMixin, SkfairdpEstimator):
    """Subtract a centre and divide by a scale, after cutting values to bounds where there are some."""

    center_: np.ndarray
    scale_: np.ndarray
    _limits: tuple[np.ndarray, np.ndarray] | None

    def transform(self, X: Any) -> np.ndarray:
        """Scale each column.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            Dense, because what is subtracted leaves no zeros.
        """
        check_is_fitted(self)
        X = dense(validate_data(self, X, dtype=(np.float64, np.float32), accept_sparse="csr", reset=False))
        values = X if self._limits is None else np.clip(X, *self._limits)
        return ((values - self.center_) / self.scale_).astype(X.dtype, copy=False)

    def _learned_without_noise(self) -> None:
        return None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class PublicScaler(_Scaler):
    """Scale columns by what is known without looking at the rows that are to be protected.

    A ``StandardScaler`` in front of a private step tells every row about all others, and no epsilon holds for a
    pipeline that contains it. This one takes bounds that you know, or rows that are public.

    Parameters
    ----------
    bounds : pair of numbers, pair of arrays, mapping of column to pair, or None, default=None
        Least and largest value of all columns, or of each. Values beyond are cut off, and the bounds are mapped onto
        -1 and 1. Do not read them off the rows: an age lies between 0 and 120, whoever is in the table.
        ``None`` asks ``fit`` for public rows.

    Attributes
    ----------
    center_, scale_ : ndarray of shape (n_features,)
        What is subtracted, and what the difference is divided by: the middle and half of the width of the bounds, or
        mean and standard deviation of the public rows.
    n_features_in_, feature_names_in_ : int, ndarray
        As everywhere in scikit-learn.

    See Also
    --------
    PrivateScaler : Learns mean and variance from protected rows, at a price.
    skfairdp.pipeline.pipeline_guarantee : What a whole pipeline costs.

    Notes
    -----
    **Privacy.** Nothing is learned from ``X`` but its width and column names. Rows given as ``public`` are not
    protected.

    Examples
    --------
    >>> import pandas as pd
    >>> from skfairdp import PublicScaler
    >>> people = pd.DataFrame({"age": [30.0, 60.0, 240.0], "income": [0.0, 50_000.0, 1e9]})
    >>> PublicScaler(bounds={"age": (0, 120), "income": (0, 100_000)}).fit_transform(people)
    array([[-0.5, -1. ],
           [ 0. ,  0. ],
           [ 1. ,  1. ]])
    """

    _row_wise_methods: ClassVar[dict] = {"transform": ()}

    _parameter_constraints: ClassVar[dict] = {"bounds": [tuple, list, dict, None]}

    def __init__(self, bounds: Any = None):
        self.bounds = bounds

    def _taken_as_public(self) -> str:
        return "the public rows" if self.bounds is None else "the bounds"

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, *, public: Any = None) -> "PublicScaler":
        """Read the bounds, or learn from public rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Only its width and its column names are used.
        y : ignored
            Here for the sake of pipelines.
        public : array-like of shape (n_public, n_features), default=None
            Rows that may be known to everybody; needed where no bounds were given.

        Returns
        -------
        PublicScaler
            This object.
        """
        rows = check_array(X, dtype=np.float64, accept_sparse="csr", estimator=self, input_name="X")
        if (self.bounds is None) == (public is None):
            raise ValueError(
                "PublicScaler needs bounds, or public rows in fit(X, public=...), and not both: it learns nothing from "
                f"X. Got bounds={self.bounds!r} and {'no' if public is None else 'some'} public rows."
            )
        if public is not None:
            check_public_rows(X, public)
        validate_data(self, X, skip_check_array=True)
        if self.bounds is not None:
            low, high = read_bounds(self.bounds, rows.shape[1], getattr(self, "feature_names_in_", None))
            self._limits, self.center_, self.scale_ = (low, high), low / 2 + high / 2, high / 2 - low / 2
            return self
        known = dense(validate_data(self, public, dtype=np.float64, accept_sparse="csr", reset=False))
        deviation = known.std(axis=0)
        self._limits, self.center_, self.scale_ = None, known.mean(axis=0), np.where(deviation > 0, deviation, 1.0)
        return self


class PrivateScaler(ReleaseMixin, _Scaler):
    r"""Scale columns by their mean and standard deviation, estimated from protected rows under differential privacy.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy loss of every row that ``fit`` sees. ``inf`` adds no noise.
    bounds : pair of numbers, pair of arrays, mapping of column to pair
        Least and largest value of all columns, or of each; values beyond are cut off. A public choice: do not read them
        off the rows.
    random_state : int, Generator, SeedSequence, RandomState or None, default=None
        ``None`` draws from the operating system's entropy, and so do a Generator and a RandomState, whose copies in
        clones would repeat the noise. A seed is for experiments: it makes the guarantee worthless against whoever
        knows it or sees two releases that start from it, which ``privacy_`` then says.

    Attributes
    ----------
    mechanism_ : Mechanism
        What draws the noise, frozen.
    privacy_ : PrivacyGuarantee
        What ``fit`` has cost each of its rows; ``transform`` costs nothing, and protects nothing.
    center_, scale_ : ndarray of shape (n_features,)
        Noisy mean and standard deviation.
    n_features_in_, feature_names_in_ : int, ndarray
        As everywhere in scikit-learn.

    See Also
    --------
    PublicScaler : Costs nothing, where bounds suffice or public rows are at hand.

    Notes
    -----
    **Privacy.** Neighbours are data sets of the same size that differ in one record. Within the bounds, mapped onto
    [-1, 1], replacing a record moves the D sums by at most 2 and the D sums of squares by at most 1 each: 3 D in L1,
    in integers, so that Laplace noise of scale :math:`3 D / \varepsilon` is pure epsilon-DP. Of n rows the mean is off
    by about :math:`4 D / (\varepsilon n)`. The number of rows is not protected. What is released behind the scaler
    costs extra: :func:`~skfairdp.pipeline.pipeline_guarantee` adds both up.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from skfairdp import LaplacePrivatizer, PrivateScaler, pipeline_guarantee
    >>> X = np.random.default_rng(0).normal(50.0, 10.0, size=(20_000, 2))
    >>> scaler = PrivateScaler(epsilon=0.5, bounds=(0, 100), random_state=0).fit(X)
    >>> scaler.center_.round().tolist(), scaler.scale_.round().tolist()
    ([50.0, 50.0], [10.0, 10.0])
    >>> pipeline = make_pipeline(PrivateScaler(epsilon=0.5, bounds=(0, 100)), LaplacePrivatizer(epsilon=2.0)).fit(X)
    >>> pipeline_guarantee(pipeline, rows="fitted").epsilon
    2.5
    """

    _row_wise_methods: ClassVar[dict] = {"transform": ()}

    _parameter_constraints: ClassVar[dict] = {
        "epsilon": [Real],
        "bounds": [tuple, list, dict, None],
        "random_state": "no_validation",
    }
    #: Whose rows ``privacy_`` is about: those of ``fit``, not those that are transformed.
    _protects_fitted_rows = True

    def __init__(self, epsilon: float = 1.0, *, bounds: Any = None, random_state: Any = None):
        self.epsilon = epsilon
        self.bounds = bounds
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> "PrivateScaler":
        """Estimate mean and standard deviation; one release of every row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.
        y : ignored
            Here for the sake of pipelines.

        Returns
        -------
        PrivateScaler
            This object.
        """
        rows = dense(check_array(X, dtype=np.float64, accept_sparse="csr", estimator=self, input_name="X"))
        if self.bounds is None:
            raise ValueError("bounds are missing: give the least and largest value of every column, known beforehand.")
        low, high = read_bounds(self.bounds, rows.shape[1], getattr(X, "columns", None))
        middle, half = low / 2 + high / 2, high / 2 - low / 2
        values = np.clip((np.clip(rows, low, high) - middle) / half, -1, 1)
        with restored_on_failure(self):
            validate_data(self, X, skip_check_array=True)
            self._freeze(
                bounded_sums(rows.shape[1], self.epsilon),
                noise_stream(self.random_state),
                covers="the rows given to fit, in the centre and the scale",
                does_not_cover=(ONE_RELEASE, _TRANSFORMED, _BOUNDS, REFUSED_TABLES),
            )
            sums, squares = self._release(values) / len(rows)
            mean = np.clip(sums, -1, 1)
            deviation = np.sqrt(np.maximum(squares - np.square(mean), _LEAST_DEVIATION**2))
            self._limits, self.center_, self.scale_ = (low, high), middle + half * mean, half * deviation
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        return tags


def read_bounds(bounds: Any, n_features: int, names: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the least and the largest value of each column, or say what is wrong with them."""
    wanted = f"bounds must be a pair (low, high) of numbers or of {n_features} numbers each, or name every column"
    if isinstance(bounds, dict):
        if names is None or set(bounds) != set(names):
            raise ValueError(
                f"{wanted}; got {sorted(map(str, bounds))} for the columns {None if names is None else list(names)}."
            )
        pairs = [bounds[name] for name in names]
        if any(np.shape(pair) != (2,) for pair in pairs):
            raise ValueError(f"{wanted}; each column needs a pair (low, high).")
        bounds = np.array(pairs, dtype=np.float64).T
    low, high = read_pair(bounds, n_features, wanted)
    if not (np.isfinite(low).all() and np.isfinite(high).all() and (high / 2 - low / 2 > 0).all()):
        raise ValueError("bounds must be finite, and every lower one less than its upper one.")
    return low, high


def read_pair(given: Any, n_features: int, wanted: str) -> tuple[np.ndarray, np.ndarray]:
    """Return two numbers, or two times a number for each feature, as two arrays; ``wanted`` says what was asked for."""
    if len(given) != 2:
        raise ValueError(f"{wanted}; got {len(given)} things.")
    try:
        first, second = (np.broadcast_to(np.asarray(part, dtype=np.float64), (n_features,)).copy() for part in given)
    except (TypeError, ValueError):
        raise ValueError(f"{wanted}; got {given!r}.") from None
    return first, second
