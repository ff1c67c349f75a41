"""What the privatizers of rows share: validation in front of a mechanism, and the receipt behind it."""

from typing import Any, ClassVar

import numpy as np
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from skfairdp._base import SkfairdpEstimator
from skfairdp.accounting import ONE_RELEASE, REFUSED_TABLES, TRAINING_DATA
from skfairdp.mechanisms import GaussianMechanism, LaplaceMechanism
from skfairdp.random import noise_stream
from skfairdp.release import ReleaseTransformerMixin

_DTYPES = (np.float64, np.float32)


class RowPrivatizer(ReleaseTransformerMixin, OneToOneFeatureMixin, TransformerMixin, SkfairdpEstimator):
    """Base of transformers that normalise each row and add noise to every entry."""

    _parameter_constraints: ClassVar[dict] = {}

    random_state: Any
    noise_scale_: float
    sensitivity_: float
    n_features_in_: int

    def transform(self, X: Any) -> np.ndarray:
        """Release noisy rows; every call draws fresh noise and spends the budget again.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            Dense, because noise is.
        """
        return self._release(X)

    def log_likelihood_ratio(self, y: Any, x: Any, x_prime: Any) -> np.ndarray:
        """Compute ``log p(y | x) - log p(y | x_prime)``, the score that an auditor separates two records by.

        Parameters
        ----------
        y : array-like of shape (n_samples, n_features) or (n_features,)
            Released rows.
        x, x_prime : array-like of shape (n_features,) or (n_samples, n_features)
            Two records, in the units that ``transform`` takes.

        Returns
        -------
        ndarray of shape (n_samples,)
            With the continuous density around the normalised record. The noise is rounded to a grid, so the exact
            ratio differs by less than a grid step over the noise scale; any score gives a valid audit.
        """
        check_is_fitted(self)
        y = self._rows(y, "y")
        rows = [self._rows(row, name) for name, row in (("x", x), ("x_prime", x_prime))]
        for name, row in zip(("x", "x_prime"), rows):
            if len(row) not in (1, len(y)):
                raise ValueError(
                    f"{name} must be one record, or one for each of the {len(y)} rows of y; got {len(row)} records."
                )
        return self.mechanism_.log_likelihood_ratio(y, *rows)

    def _width(self, X: Any) -> int:
        """Check X and count its columns, and remember nothing: what follows in fit may still fail."""
        return check_array(X, dtype=_DTYPES, accept_sparse="csr", estimator=self, input_name="X").shape[1]

    def _finish(self, X: Any, mechanism: LaplaceMechanism | GaussianMechanism) -> None:
        """Keep what was fitted, once nothing can fail any more."""
        stream = noise_stream(self.random_state)
        validate_data(self, X, skip_check_array=True)  # number and names of the features
        self.sensitivity_, self.noise_scale_ = mechanism.sensitivity, mechanism.noise_scale
        self._seal(mechanism, stream, does_not_cover=(ONE_RELEASE, TRAINING_DATA, REFUSED_TABLES))

    def _values_to_release(self, X: Any) -> Any:
        return validate_data(self, X, dtype=_DTYPES, accept_sparse="csr", reset=False)

    def _hand_out(self, released: np.ndarray, values: Any) -> np.ndarray:
        return released.astype(values.dtype, copy=False)

    def _rows(self, rows: Any, name: str) -> np.ndarray:
        rows = check_array(np.atleast_2d(np.asarray(rows, dtype=np.float64)), input_name=name)
        if rows.shape[1] != self.n_features_in_:
            raise ValueError(f"{name} must have {self.n_features_in_} features, as in fit; got {rows.shape[1]}.")
        return rows

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.non_deterministic = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
