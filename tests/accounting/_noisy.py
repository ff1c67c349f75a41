"""A small releasing transformer in a module of its own, so that worker processes can import it."""

import os

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from skfairdp._base import SkfairdpEstimator
from skfairdp.accounting import PrivacyGuarantee, ReleaseMixin


class Noisy(ReleaseMixin, TransformerMixin, SkfairdpEstimator):
    """Releases its rows; with ``log`` it also writes a line per release, a count that no ledger is part of."""

    def __init__(self, epsilon=1.0, log=None):
        self.epsilon = epsilon
        self.log = log

    def fit(self, X, y=None):
        validate_data(self, X)
        self.privacy_ = PrivacyGuarantee(float(self.epsilon), mechanism="noisy")
        return self

    def transform(self, X):
        check_is_fitted(self)
        X = validate_data(self, X, reset=False)
        self._spend(self.privacy_)
        if self.log is not None:
            descriptor = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.write(descriptor, b"x")  # atomic for one byte
            os.close(descriptor)
        return X + np.random.default_rng().laplace(size=X.shape)


class Forgetful(Noisy):
    """The planted fault: copies that are sent elsewhere do not say whom to charge."""

    def __getstate__(self):
        return {name: value for name, value in super().__getstate__().items() if name != "_ledgers_of_sender"}
