"""Speed of FairPrivateClassifier: against fairlearn's reduction with the same trees, and over training them alone."""

import warnings

import numpy as np
from fairlearn.reductions import ExponentiatedGradient, TruePositiveRateParity
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import StratifiedKFold

from benchmarks import Timings, case
from skfairdp import FairPrivateClassifier
from skfairdp.datasets import make_biased_classification

TREES = HistGradientBoostingClassifier(random_state=0)


def _people(n_rows: int = 30_000):
    data = make_biased_classification(n_samples=n_rows, n_features=12, group_shift=1.5, label_bias=0.3, random_state=0)
    return data.data, data.target, data.sensitive_features


def _fair_and_private(X, y, groups):
    return FairPrivateClassifier(TREES, epsilon=8.0, random_state=0).fit(X, y, sensitive_features=groups)


@case("fair trees", "fit, against ExponentiatedGradient with the same trees", speedup_at_least=3)
def reduction() -> Timings:
    X, y, groups = _people(5_000)  # fairlearn fits the trees again and again

    def reduce():
        with warnings.catch_warnings():  # how fairlearn calls pandas and scikit-learn is not the reader's concern
            warnings.simplefilter("ignore")
            bound = TruePositiveRateParity(difference_bound=0.01)
            return ExponentiatedGradient(clone(TREES), bound).fit(X, y, sensitive_features=groups)

    return Timings(lambda: _fair_and_private(X, y, groups), reduce, repeats=1)


@case("fair trees", "fit, against cross-fitting the same trees of class and groups", ratio_at_most=1.15)
def cross_fitting() -> Timings:
    X, y, groups = _people()

    def train_alone():
        """Train what the classifier trains, and believe what it believes, without anything else."""
        folds = StratifiedKFold(3, shuffle=True, random_state=0).split(X, y)
        for train, test in [*folds, (np.arange(len(y)), None)]:
            positive = train[y[train] == 1]
            models = clone(TREES).fit(X[train], y[train]), clone(TREES).fit(X[positive], groups[positive])
            if test is not None:
                for model in models:
                    model.predict_proba(X[test])

    return Timings(lambda: _fair_and_private(X, y, groups), train_alone, repeats=1)
