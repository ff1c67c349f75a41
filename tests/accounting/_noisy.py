"""A small releasing transformer in a module of its own, so that worker processes can import it."""

import os
from dataclasses import dataclass

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils.validation import validate_data

from skfairdp._base import SkfairdpEstimator
from skfairdp.dp import Mechanism, ReleaseMixin
from skfairdp.random import noise_stream


@dataclass(frozen=True)
class NoisyMechanism(Mechanism):
    """Adds noise; with ``log`` it also writes a byte per release, a count that no ledger is part of."""

    epsilon: float
    log: str | None = None
    name = "noisy"

    def check(self, X):
        pass

    def draw(self, X, stream):
        if self.log is not None:
            descriptor = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.write(descriptor, b"x")  # atomic for one byte
            os.close(descriptor)
        return X + stream.generator.laplace(size=X.shape)

    def log_likelihood_ratio(self, y, x, x_prime):
        return np.abs(y - x_prime).sum(axis=1) - np.abs(y - x).sum(axis=1)

    def worst_case_pairs(self, stream=None):
        return [(np.ones(1), -np.ones(1))]


class Noisy(ReleaseMixin, TransformerMixin, SkfairdpEstimator):
    """Releases its rows."""

    def __init__(self, epsilon=1.0, log=None):
        self.epsilon = epsilon
        self.log = log

    def fit(self, X, y=None):
        validate_data(self, X)
        self._freeze(NoisyMechanism(float(self.epsilon), self.log), noise_stream(None))
        return self

    def _values(self, X):
        return validate_data(self, X, reset=False)

    def transform(self, X):
        return self._release(self._values(X))
