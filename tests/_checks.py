"""What the tests of all estimators share: the list of estimators, and data to fit them on."""

import math
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import matplotlib
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import get_tags

from skfairdp import (
    BagOfEmbeddingsEncoder,
    FairPrivateClassifier,
    FederateClassifier,
    GaussianPrivatizer,
    INLPEraser,
    LaplacePrivatizer,
    LEACEEraser,
    OMEEncoder,
    PATEClassifier,
    PrivateScaler,
    PrivateSearchCV,
    PublicScaler,
    WordDropout,
)
from skfairdp.adversarial import TransformersEncoder

#: One instance per configuration that scikit-learn's checks run on: every estimator first as it is by default, then in
#: settings that reach other code. An estimator that is not here fails ``test_public_api.py``.
ESTIMATORS: list = [
    BagOfEmbeddingsEncoder(),
    FairPrivateClassifier(),
    FairPrivateClassifier(LogisticRegression(), epsilon=math.inf, cv=2),
    FederateClassifier(),
    FederateClassifier(channel="laplace", epsilon=1e4, encoder="mlp", encoder_hidden_sizes=(20,), learning_rate=0.02),
    GaussianPrivatizer(),
    LaplacePrivatizer(),
    LaplacePrivatizer(norm="minmax", random_state=0),
    INLPEraser(),
    LEACEEraser(),
    OMEEncoder(),
    OMEEncoder(epsilon=30.0, protocol="optimal", random_state=0),
    OMEEncoder(epsilon=30.0, protocol="optimal", objective="posterior"),
    PATEClassifier(),
    PATEClassifier(
        DecisionTreeClassifier(max_depth=3), n_teachers=10, epsilon=8.0, labels="hard", student=LogisticRegression()
    ),
    PATEClassifier(n_teachers=20, epsilon=30.0, labels="confident", threshold=1.0, student="network"),
    # Without an estimator and candidates there is nothing to choose from.
    PrivateSearchCV(
        PATEClassifier(LogisticRegression(), n_teachers=10, n_queries=50, labels="hard"),
        {"student_regularization": [0.001, 0.01]},
        epsilon=30.0,
        expected_trials=2,
    ),
    # Without bounds they refuse to fit: nobody but the user can know them.
    PrivateScaler(bounds=(-20, 20)),
    PublicScaler(bounds=(-20, 20)),
    TransformersEncoder(),
    WordDropout(),
]

_FIRST = {type(estimator): estimator for estimator in reversed(ESTIMATORS)}

#: The first instance of each estimator, and all the others.
DEFAULT_ESTIMATORS = [estimator for estimator in ESTIMATORS if _FIRST[type(estimator)] is estimator]
OTHER_ESTIMATORS = [estimator for estimator in ESTIMATORS if _FIRST[type(estimator)] is not estimator]


class ToldLEACEEraser(LEACEEraser):
    def fit(self, X, y=None, *, sensitive_features=None):
        return super().fit(X, y, sensitive_features=_groups(X, y))

    def partial_fit(self, X, y=None, *, sensitive_features=None):
        return super().partial_fit(X, y, sensitive_features=_groups(X, y))


class ToldINLPEraser(INLPEraser):
    def fit(self, X, y=None, *, sensitive_features=None):
        return super().fit(X, y, sensitive_features=_groups(X, y))


def _groups(X, y):
    return np.arange(np.shape(X)[0]) % 2 if y is None else np.asarray(y)


def told_the_groups(estimator):
    """An eraser refuses to fit without groups, which scikit-learn's checks never give: this one erases ``y``."""
    told = {LEACEEraser: ToldLEACEEraser, INLPEraser: ToldINLPEraser}.get(type(estimator))
    return estimator if told is None else told(**estimator.get_params())


class RepeatingFederateClassifier(FederateClassifier):
    def _release(self, values, receipt=None):
        before = self._frozen
        try:
            self._frozen = replace(before, stream=deepcopy(before.stream))
            return super()._release(values, receipt)
        finally:
            self._frozen = before


class RepeatingFairPrivateClassifier(FairPrivateClassifier):
    def _release(self, values, receipt=None):
        before = self._frozen
        try:
            self._frozen = replace(before, stream=deepcopy(before.stream))
            return super()._release(values, receipt)
        finally:
            self._frozen = before


_REPEATING = {
    FairPrivateClassifier: RepeatingFairPrivateClassifier,
    FederateClassifier: RepeatingFederateClassifier,
}


def as_the_check_wants_it(estimator, check):
    """Prepare an estimator for one of scikit-learn's checks.

    ``check_classifiers_train`` does not ask for the tag ``non_deterministic``: it wants ``predict`` to agree in every
    row with the ``predict_proba`` of a later call. Two releases need not agree, and whether they do would hang on the
    seed and on the last digits of the machine. Made from the same draw they must agree, always and exactly: so for this
    check, and for no other, every release of a seeded classifier draws the same noise.
    """
    if type(estimator) in _REPEATING and check.func.__name__ == "check_classifiers_train":
        return _REPEATING[type(estimator)](**estimator.get_params(deep=False))
    return estimator


def expected_failures(estimator):
    """Checks that cannot hold, by name, each with its reason."""
    reasons = {
        FairPrivateClassifier: "copies of a row are given to several folds, and its weight to one; nor do "
        "scikit-learn's boosted trees take a weight of 2 as two rows",
        PATEClassifier: "copies of a row are given to several teachers, and its weight to one: to merge equal rows "
        "first, as the check wants, would let one record move others between teachers, and the proof would be gone",
        PrivateSearchCV: "copies of a row are trained on and scored on, and its weight only weighs in training",
    }
    if type(estimator) not in reasons:
        return {}
    kinds = ["dense"] + ["sparse"] * get_tags(estimator).input_tags.sparse
    return dict.fromkeys(
        [f"check_sample_weight_equivalence_on_{kind}_data" for kind in kinds], reasons[type(estimator)]
    )


def assert_same_document(made: Path, shown: Path) -> None:
    """A table or figure that was made again is the one in the documents, byte by byte.

    Another version of matplotlib draws the same picture in other bytes; then only tables are compared.
    """
    pins = (Path(__file__).parents[1] / "constraints.txt").read_text(encoding="utf-8").split()
    if made.suffix != ".svg" or f"matplotlib=={matplotlib.__version__}" in pins:
        assert made.read_bytes() == shown.read_bytes(), made.name
