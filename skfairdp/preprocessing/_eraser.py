"""What erasers share: how they read rows and groups, and how they treat rows block by block."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from skfairdp._base import SkfairdpEstimator, dense, dense_blocks
from skfairdp._validation import SensitiveGroups, check_sensitive_features

#: Columns of a sparse matrix that are still accepted: whatever removes a direction from d columns works with d times d
#: numbers, which are 0.8 GB here, and what comes out of it is dense.
MOST_SPARSE_COLUMNS = 10_000


class Eraser(OneToOneFeatureMixin, TransformerMixin, SkfairdpEstimator, ABC):
    """Base of transformers that remove directions from rows."""

    mean_: np.ndarray
    rank_: int
    _constant: np.ndarray

    def _read(self, X: Any, sensitive_features: Any, *, reset: bool = True) -> tuple[Any, SensitiveGroups]:
        """Check the rows of a fit and what is to be erased; the errors give advice that works inside a pipeline."""
        X = validate_data(self, X, dtype=np.float64, accept_sparse="csr", reset=reset)
        name = type(self).__name__
        if sparse.issparse(X) and X.shape[1] > MOST_SPARSE_COLUMNS:
            raise ValueError(
                f"X is sparse and has {X.shape[1]} columns; {name} works with a dense matrix of "
                f"columns times columns and takes at most {MOST_SPARSE_COLUMNS} sparse ones. Put "
                "sklearn.decomposition.TruncatedSVD(n_components=...) in front of it in the pipeline, or limit the "
                "columns where they are made (TfidfVectorizer(max_features=...), OneHotEncoder(max_categories=...))."
            )
        # To erase nothing when told nothing would pass for an erasure: a warning is lost in the workers of a search.
        if sensitive_features is None:
            raise ValueError(
                f"{name} does not know what to erase, because sensitive_features is None: call "
                "fit(X, sensitive_features=...). In a pipeline or a search, call "
                "sklearn.set_config(enable_metadata_routing=True) and route_sensitive_features(model) first, "
                "so that what is given to the fit of the whole reaches this step."
            )
        return X, check_sensitive_features(sensitive_features, X.shape[0])

    def _erased(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, accept_sparse="csr", reset=False)
        if not self.rank_:
            return dense(X)
        erased = np.empty(X.shape)
        for part, rows in dense_blocks(X):
            block = np.subtract(rows, self.mean_, out=erased[part])
            self._erase_centred(block)
            block += self.mean_
            block[:, self._constant] = rows[:, self._constant]
        return erased

    @abstractmethod
    def _erase_centred(self, block: np.ndarray) -> None:
        """Remove the directions from rows minus their mean, in place."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
