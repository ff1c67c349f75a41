"""The methods that an audit compares: one entry each, with every hyper-parameter written out."""

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from skfairdp._validation import check_choice
from skfairdp.adversarial import FederateClassifier
from skfairdp.ensemble import PATEClassifier
from skfairdp.postprocessing import FairPrivateClassifier
from skfairdp.preprocessing import INLPEraser, LEACEEraser

_BATCH_SIZE = 256
_PUBLIC_SHARE = 0.25  # of the training rows, for methods that need public rows beside the private ones
_STEPS = 300  # gradient steps of a network, about: small tables are passed through more often than large ones
#: What every network of an audit has in common. Written out, so that other defaults of the estimator change no audit.
_NETWORK: dict[str, Any] = {
    "norm": "l1",
    "calibration": "exact",
    "encoder": "mlp",
    "encoder_hidden_sizes": (100, 50),
    "classifier_hidden_sizes": (),
    "adversary_hidden_sizes": (100, 50),
    "dropout": 0.1,
    "alpha": 0.0,
    "adversary_schedule": "sigmoid",
    "n_adversaries": 1,
    "orthogonality": 0.0,
    "fairness_penalty": 0.0,
    "batch_size": _BATCH_SIZE,
    "learning_rate": 0.005,
    "optimizer": "adam",
    "early_stopping": False,
    "class_weight": None,
}


@dataclass(frozen=True)
class Setting:
    """What a method may know before it is made: public numbers and the positive class, no rows."""

    epsilon: float
    delta: float
    n_rows: int
    n_classes: int
    pos_label: Any = None
    relaxation: float = 0.01  # accuracy that a method may give up for fairness, if it chooses by itself

    def network(self, epsilon: float, **params: Any) -> FederateClassifier:
        """Return a network whose training takes about the same number of steps on every table."""
        epochs = min(25, max(4, math.ceil(_STEPS * _BATCH_SIZE / max(self.n_rows, 1))))
        return FederateClassifier(epsilon, max_epochs=epochs, **_NETWORK, **params)

    def fair_trees(self, epsilon: float) -> FairPrivateClassifier:
        """Return boosted trees whose answers have equal true positive rates, as far as the relaxation allows."""
        return FairPrivateClassifier(
            _trees(),
            epsilon=epsilon,
            fairness="equal_opportunity",
            relaxation=min(self.relaxation, 1.0),
            cv=3,
            pos_label=self.pos_label,
        )


@dataclass(frozen=True)
class Method:
    """How to make a model.

    Attributes
    ----------
    name : str
        What it is called in tables and on the command line.
    summary : str
        What it does, in one sentence.
    protects : str
        Whom its epsilon protects; "nothing" for methods without one, empty where the model itself says.
    make : callable
        Takes a :class:`Setting`, returns an unfitted estimator for prepared numbers.
    candidates : callable
        Takes a :class:`Setting`, returns the parameters to choose from.
    cost : float
        Training time relative to a logistic regression, for the estimate of the time left.
    bare : bool
        Whether the estimator takes the table's own columns instead of prepared numbers.
    fitted : bool
        Whether the estimator comes fitted, and stays as it is.
    public_share : float
        Share of the training rows that are taken as public: columns are prepared by them alone, and ``fit`` gets them
        as ``public``.
    by_default : bool
        Whether an audit takes it when no methods are named.
    """

    name: str
    summary: str
    protects: str
    make: Callable[[Setting], Any]
    candidates: Callable[[Setting], list[dict[str, Any]]] = field(default=lambda setting: [{}])
    cost: float = 1.0
    bare: bool = False
    fitted: bool = False
    public_share: float = 0.0
    by_default: bool = True


class FairlearnClassifier(ClassifierMixin, BaseEstimator):
    """Logistic regression under fairlearn's reduction, for labels of any kind and groups that are routed.

    ``fairlearn.reductions.ExponentiatedGradient`` wants the labels 0 and 1, and takes the groups inside ``**kwargs``,
    where scikit-learn cannot route them. ``fairlearn.postprocessing.ThresholdOptimizer`` is no method of an audit: it
    needs the groups of the rows to predict, which no other method is given.

    Parameters
    ----------
    pos_label : label or None, default=None
        The class whose true positive rates are made equal; None is the larger label.
    difference_bound : float, default=0.01
        The gap that is allowed on the training rows.
    random_state : int or None, default=None
        Its predictions are drawn at random among several linear models.
    """

    def __init__(self, pos_label: Any = None, *, difference_bound: float = 0.01, random_state: Any = None):
        self.pos_label = pos_label
        self.difference_bound = difference_bound
        self.random_state = random_state

    def fit(self, X: Any, y: Any, *, sensitive_features: Any) -> "FairlearnClassifier":
        """Train a linear model under the constraint of equal true positive rates."""
        from fairlearn.reductions import ExponentiatedGradient, TruePositiveRateParity

        labels = np.unique(y).tolist()
        if len(labels) != 2:
            raise ValueError(f"fairlearn's reduction knows two classes; the target has {len(labels)}.")
        positive = labels[1] if self.pos_label is None else self.pos_label
        self.classes_ = np.array([label for label in labels if label != positive] + [positive])
        self.reduction_ = ExponentiatedGradient(
            LogisticRegression(max_iter=1000), TruePositiveRateParity(difference_bound=self.difference_bound)
        )
        with warnings.catch_warnings():  # how fairlearn calls pandas is not the reader's concern
            warnings.simplefilter("ignore", DeprecationWarning)
            warnings.simplefilter("ignore", FutureWarning)
            self.reduction_.fit(X, (np.asarray(y) == positive).astype(int), sensitive_features=sensitive_features)
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class under the drawing of models; columns as in ``classes_``."""
        weights = self.reduction_.weights_
        models = self.reduction_.predictors_
        positive = sum(weight * models[k].predict(X) for k, weight in weights.items() if weight > 0)
        return np.column_stack([1 - positive, positive])

    def predict(self, X: Any) -> np.ndarray:
        """Draw a label of each row; the same seed draws the same."""
        return self.classes_[self.reduction_.predict(X, random_state=self.random_state)]


def _federate_codes(setting: Setting) -> dict[str, Any]:
    return {"channel": "codes", "n_components": None, "n_codes": setting.n_classes}


def _adversary_weights(setting: Setting) -> list[dict[str, Any]]:
    return [{"adversary_weight": weight} for weight in (0.5, 1.0, 2.0)]


def _erased_then_logistic(eraser: Any) -> Pipeline:
    return Pipeline([("eraser", eraser), ("classifier", LogisticRegression(max_iter=1000))])


def _pate_method(setting: Setting) -> PATEClassifier:
    n_private = int((1 - _PUBLIC_SHARE) * setting.n_rows)
    return PATEClassifier(
        LogisticRegression(max_iter=200),
        n_teachers=max(5, min(200, n_private // 40)),  # about 40 rows each
        labels="soft",
        epsilon=setting.epsilon,
        delta=setting.delta,
        n_queries=max(10, min(300, setting.n_rows // 8)),  # at most half of the public rows
        postprocess="auto",
        student="logistic",
        scale="public",
    )


def _trees() -> HistGradientBoostingClassifier:
    return HistGradientBoostingClassifier(
        learning_rate=0.1, max_iter=100, max_leaf_nodes=31, min_samples_leaf=20, early_stopping="auto"
    )


RECORDS = "each record it is given"

METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method(
            "unconstrained",
            "A plain neural network, trained for accuracy alone.",
            "nothing",
            lambda s: s.network(math.inf, channel="laplace", n_components=8, adversary_weight=0.0),
            cost=4,
        ),
        Method(
            "noise",
            "The network on a representation that is made private by noise before it is used.",
            RECORDS,
            lambda s: s.network(s.epsilon, adversary_weight=0.0),
            lambda s: [{"channel": "laplace", "n_components": 2}, _federate_codes(s)],
            cost=4,
        ),
        Method(
            "adversarial",
            "The network, trained against an adversary that tries to read the groups from the representation.",
            "nothing",
            lambda s: s.network(math.inf, channel="laplace", n_components=8, adversary_weight=1.0),
            _adversary_weights,
            cost=6,
        ),
        Method(
            "federate",
            "Noise and adversary together (FEDERATE; not federated learning).",
            RECORDS,
            lambda s: s.network(s.epsilon, adversary_weight=1.0, **_federate_codes(s)),
            _adversary_weights,
            cost=6,
        ),
        Method(
            "leace",
            "Everything that a linear model can read of the groups is erased, then logistic regression.",
            "nothing",
            lambda s: _erased_then_logistic(LEACEEraser(tol=1e-8)),
        ),
        Method(
            "inlp",
            "The directions in which a linear model finds the groups are projected out, then logistic regression.",
            "nothing",
            lambda s: _erased_then_logistic(INLPEraser(estimator=LogisticRegression(max_iter=1000), tol=0.0)),
            lambda s: [{"eraser__n_iterations": rounds} for rounds in (1, 3)],
            cost=2,
        ),
        Method(
            "pate",
            "Teachers on disjoint parts of the training rows vote, and a student learns from noisy votes (PATE, soft).",
            "the training rows, except the quarter taken as public",
            _pate_method,
            cost=6,
            public_share=_PUBLIC_SHARE,
        ),
        Method(
            "trees",
            "Boosted trees, trained for accuracy alone.",
            "nothing",
            lambda s: _trees(),
            cost=2,
        ),
        Method(
            "fair trees",
            "The trees, whose answers are corrected after training so that the groups' rates become equal.",
            "nothing",
            lambda s: s.fair_trees(math.inf),
            cost=14,
        ),
        Method(
            "fair private trees",
            "The trees, whose answers are corrected in the same way, and drawn at random to keep epsilon.",
            RECORDS,
            lambda s: s.fair_trees(s.epsilon),
            cost=14,
        ),
        Method(
            "fairlearn",
            "Logistic regression under a bound on the gap of the training rows (fairlearn's exponentiated gradient).",
            "nothing",
            lambda s: FairlearnClassifier(s.pos_label),
            lambda s: [{"difference_bound": bound} for bound in (0.01, 0.05)],
            cost=20,
            by_default=False,  # slow: it trains up to fifty models one after the other
        ),
    )
}


def choose_methods(methods: Any) -> list[Method]:
    """Turn names and estimators into methods; ``None`` takes those of ours that are compared by default."""
    if methods is None:
        return [method for method in METHODS.values() if method.by_default]
    given = list(methods.items()) if isinstance(methods, Mapping) else methods
    chosen = []
    for entry in [given] if isinstance(given, str | BaseEstimator) else list(given):
        if isinstance(entry, str):
            chosen.append(METHODS[check_choice(entry, list(METHODS), "method")])
        elif isinstance(entry, tuple) and len(entry) == 2 and isinstance(entry[0], str):
            chosen.append(_users_own_method(*entry))
        else:
            chosen.append(_users_own_method(type(entry).__name__, entry))
    names = [method.name for method in chosen]
    if not names:
        raise ValueError(f"methods is empty; choose from {', '.join(METHODS)}, or give an estimator.")
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"methods has {name!r} twice; give estimators names: ('my model', estimator).")
    return chosen


def _users_own_method(name: str, estimator: Any) -> Method:
    if isinstance(estimator, type) or not (hasattr(estimator, "fit") and hasattr(estimator, "predict")):
        raise TypeError(
            f"methods may hold names ({', '.join(METHODS)}), classifiers, and pairs of a name and a classifier; "
            f"got {estimator!r}."
        )
    fitted = _is_fitted(estimator)
    summary = f"Your own model, a {type(estimator).__name__}" + (
        ", fitted before and used as it is." if fitted else "."
    )
    return Method(
        name,
        summary,
        "",
        lambda setting: estimator,
        bare=fitted or isinstance(estimator, Pipeline),
        fitted=fitted,
    )


def _is_fitted(estimator: Any) -> bool:
    if not hasattr(estimator, "get_params"):  # it cannot be cloned, and scikit-learn 1.6 would call it unfitted
        return True
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return False
    except (TypeError, AttributeError):  # no scikit-learn estimator: nobody can ask it, and nobody can clone it
        return True
    return True
