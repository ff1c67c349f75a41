"""Estimators as strangers write them: most look at their batch, and none does so out of malice."""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

from skfairdp import LaplacePrivatizer, PrivatePipeline


class Stateless(TransformerMixin, BaseEstimator):
    """A transformer whose fit learns nothing."""

    def fit(self, X, y=None):
        self.n_features_in_ = np.shape(X)[1]
        return self

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.allow_nan = True
        return tags


class FirstRow(Stateless):
    """Everybody becomes the first record of the batch."""

    def transform(self, X):
        return np.tile(np.asarray(X)[:1], (len(X), 1))


class Filled(Stateless):
    """Gaps become the mean of the batch."""

    def transform(self, X):
        X = np.array(X, dtype=float)
        with np.errstate(invalid="ignore"):
            means = np.nansum(X, axis=0) / np.maximum((~np.isnan(X)).sum(axis=0), 1)
        return np.where(np.isnan(X), means, X)


class Remembering(Stateless):
    """Everybody becomes the first record that was ever seen; the memory is a cache, and so is not pickled."""

    def __init__(self):
        self._first = None

    def transform(self, X):
        if getattr(self, "_first", None) is None:
            self._first = np.asarray(X)[:1].copy()
        return np.tile(self._first, (len(X), 1))

    def __getstate__(self):
        return {name: value for name, value in super().__getstate__().items() if name != "_first"}


class Shared(Stateless):
    """Everybody becomes the first record that was ever seen; copies are the same object, as those of a connection."""

    def __init__(self):
        self.first_ = None

    def transform(self, X):
        if self.first_ is None:
            self.first_ = np.asarray(X)[:1].copy()
        return np.tile(self.first_, (len(X), 1))

    def __deepcopy__(self, memo):
        return self


class Alarm(Stateless):
    """A record above 0.5 raises an alarm, which the next record uses up."""

    def __init__(self):
        self.alarm_ = False

    def transform(self, X):
        X = np.array(X, dtype=float)
        for row in X:
            raised = bool(row[0] > 0.5)
            if self.alarm_:
                row[:] = 1.0
            self.alarm_ = raised
        return X


class OwnFitTransform(Stateless):
    """fit_transform takes a short cut that mixes the rows, and transform does not."""

    def transform(self, X):
        return np.asarray(X, dtype=float)

    def fit_transform(self, X, y=None):
        return FirstRow().fit(X).transform(X)


class LearningFunction(FunctionTransformer):
    """A stateless transformer, made into one that learns; its tags still say that it needs no fit."""

    def fit(self, X, y=None):
        self.middle_ = np.asarray(X).max(axis=0)
        return super().fit(X)

    def transform(self, X):
        return np.asarray(X) - self.middle_


class CentredPipeline(Pipeline):
    """A pipeline that centres what it is given."""

    def transform(self, X):
        return super().transform(X - X.mean(axis=0))

    def fit_transform(self, X, y=None):
        return super().fit(X, y).transform(X)


class FirstRowPrivatePipeline(PrivatePipeline):
    """A private pipeline that copies the first record before anything else."""

    def transform(self, X):
        return super().transform(np.tile(X[:1], (len(X), 1)))

    def fit_transform(self, X, y=None):
        return self.fit(X, y).transform(X)


class FirstRowPrivatizer(LaplacePrivatizer):
    """A privatizer that copies the first record."""

    def transform(self, X):
        return super().transform(np.tile(X[:1], (len(X), 1)))


class NeedsLabels(ClassifierMixin, BaseEstimator):
    """Base of classifiers of two classes."""

    def fit(self, X, y=None, sample_weight=None):
        self.classes_ = np.array([0, 1])
        self.n_features_in_ = np.shape(X)[1]
        return self

    def predict_proba(self, X):
        right = self._right(np.asarray(X, dtype=float))
        return np.column_stack([1 - right, right])

    def predict(self, X):
        return (self.predict_proba(X)[:, 1] > 0.5).astype(int)


class BatchNormalising(NeedsLabels):
    """Believes in class 1 where the first column is above the mean of the batch."""

    def _right(self, X):
        return np.where(X[:, 0] > X[:, 0].mean(), 0.9, 0.1)


class RunningMean(NeedsLabels):
    """Compares a record with the mean of all records that it has seen."""

    def fit(self, X, y=None, sample_weight=None):
        self.total_, self.count_ = 0.0, 0
        return super().fit(X, y)

    def _right(self, X):
        found = []
        for value in X[:, 0]:
            self.total_, self.count_ = self.total_ + value, self.count_ + 1
            found.append(0.9 if value >= self.total_ / self.count_ else 0.1)
        return np.array(found)


class Drawing(NeedsLabels):
    """Draws as many numbers from its own stream as the first column says."""

    def fit(self, X, y=None, sample_weight=None):
        self.stream_ = np.random.RandomState(0)
        return super().fit(X, y)

    def _right(self, X):
        return np.array([self.stream_.random_sample(1 + int(abs(value) * 10))[-1] for value in X[:, 0]])


class ColumnPredict(NeedsLabels):
    """predict returns shape (n, 1)."""

    def _right(self, X):
        return np.where(X[:, 0] > 0, 0.9, 0.1)

    def predict(self, X):
        return super().predict(X)[:, None]


class ListPredict(ColumnPredict):
    """predict returns a list of lists of one label each."""

    def predict(self, X):
        return [[int(value)] for value in NeedsLabels.predict(self, X)]


class BatchMajority(ColumnPredict):
    """Everybody is predicted what the majority of the batch is."""

    def predict(self, X):
        found = NeedsLabels.predict(self, X)
        return np.full(len(found), int(found.mean() > 0.5))
