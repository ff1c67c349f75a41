"""The methods that an audit compares: one small entry each."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from skfairdp.adversarial import FederateClassifier
from skfairdp.ensemble import PATEClassifier
from skfairdp.preprocessing import INLPEraser, LEACEEraser
from skfairdp.report._columns import check_choice

_BATCH = 256
_PUBLIC_SHARE = 0.25
_STEPS = 300  # gradient steps of a network; small tables are passed through more often


@dataclass(frozen=True)
class Setting:
    """What a method may know before it is made: public numbers, no rows."""

    epsilon: float
    delta: float
    n_rows: int
    n_classes: int

    def network(self, epsilon: float, **params: Any) -> FederateClassifier:
        """Return a network whose training takes about the same number of steps on every table."""
        epochs = min(25, max(4, math.ceil(_STEPS * _BATCH / max(self.n_rows, 1))))
        return FederateClassifier(epsilon, max_epochs=epochs, batch_size=_BATCH, **params)


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


def _codes(setting: Setting) -> dict[str, Any]:
    return {"channel": "codes", "n_codes": max(2, setting.n_classes)}


def _weights(setting: Setting) -> list[dict[str, Any]]:
    return [{"adversary_weight": weight} for weight in (0.5, 1.0, 2.0)]


def _linear(eraser: Any) -> Pipeline:
    return Pipeline([("eraser", eraser), ("classifier", LogisticRegression(max_iter=1000))])


def _pate(setting: Setting) -> PATEClassifier:
    private = int((1 - _PUBLIC_SHARE) * setting.n_rows)
    return PATEClassifier(
        LogisticRegression(max_iter=200),
        n_teachers=max(5, min(200, private // 40)),
        labels="soft",
        epsilon=setting.epsilon,
        delta=setting.delta,
        n_queries=max(10, min(300, setting.n_rows // 8)),
    )


RECORDS = "each record it is given"

METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method(
            "unconstrained",
            "A plain neural network, trained for accuracy alone.",
            "nothing",
            lambda s: s.network(math.inf, n_components=8, adversary_weight=0.0),
            cost=4,
        ),
        Method(
            "noise",
            "The network on a representation that is made private by noise before it is used.",
            RECORDS,
            lambda s: s.network(s.epsilon, adversary_weight=0.0),
            lambda s: [{"channel": "laplace"}, _codes(s)],
            cost=4,
        ),
        Method(
            "adversarial",
            "The network, trained against an adversary that tries to read the groups from the representation.",
            "nothing",
            lambda s: s.network(math.inf, n_components=8),
            _weights,
            cost=6,
        ),
        Method(
            "federate",
            "Noise and adversary together (FEDERATE; not federated learning).",
            RECORDS,
            lambda s: s.network(s.epsilon, **_codes(s)),
            _weights,
            cost=6,
        ),
        Method(
            "leace",
            "Everything that a linear model can read of the groups is erased, then logistic regression.",
            "nothing",
            lambda s: _linear(LEACEEraser()),
        ),
        Method(
            "inlp",
            "The directions in which a linear model finds the groups are projected out, then logistic regression.",
            "nothing",
            lambda s: _linear(INLPEraser()),
            lambda s: [{"eraser__n_iterations": rounds} for rounds in (1, 3)],
            cost=2,
        ),
        Method(
            "pate",
            "Teachers on disjoint parts of the training rows vote, and a student learns from noisy votes (PATE, soft).",
            "the training rows, except the quarter taken as public",
            _pate,
            cost=6,
            public_share=_PUBLIC_SHARE,
        ),
    )
}


def choose_methods(methods: Any) -> list[Method]:
    """Turn names and estimators into methods; ``None`` takes all of ours."""
    if methods is None:
        return list(METHODS.values())
    given = list(methods.items()) if isinstance(methods, Mapping) else methods
    chosen = []
    for entry in [given] if isinstance(given, str | BaseEstimator) else list(given):
        if isinstance(entry, str):
            chosen.append(METHODS[check_choice(entry, list(METHODS), "method")])
        elif isinstance(entry, tuple) and len(entry) == 2 and isinstance(entry[0], str):
            chosen.append(_own(*entry))
        else:
            chosen.append(_own(type(entry).__name__, entry))
    names = [method.name for method in chosen]
    if not names:
        raise ValueError(f"methods is empty; choose from {', '.join(METHODS)}, or give an estimator.")
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"methods has {name!r} twice; give estimators names: ('my model', estimator).")
    return chosen


def _own(name: str, estimator: Any) -> Method:
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
    except (TypeError, AttributeError):  # not a scikit-learn estimator: it cannot be asked
        return True
    return True
