"""The methods that an audit compares: one entry each, with every hyper-parameter written out."""

import importlib.util
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from skfairdp._validation import check_choice
from skfairdp.adversarial import FederateClassifier
from skfairdp.ensemble import PATEClassifier
from skfairdp.postprocessing import FairPrivateClassifier
from skfairdp.preprocessing import INLPEraser, LEACEEraser
from skfairdp.table_audit._models_of_others import (
    FairlearnClassifier,
    OpacusClassifier,
    ThresholdOptimizerClassifier,
    boosted_trees,
)

#: Fairness definitions that are about rates of answers; calibration is about scores.
RATE_DEFINITIONS = ("equal_opportunity", "equalized_odds", "demographic_parity")
_BATCH_SIZE = 256
_PUBLIC_SHARE = 0.25  # of the training rows, for methods that need public rows beside the private ones
#: Rows of a table from which on a network, and teachers on parts of the rows, learn enough to be worth their time.
_ENOUGH_ROWS = 2000
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
    fairness: str = "equal_opportunity"
    group_columns: tuple[str, ...] = ()  # what the groups are called, for methods that are told them
    preparation: Any = None  # an unfitted transformer of the other columns into numbers, for the same methods

    def network(self, epsilon: float, **params: Any) -> FederateClassifier:
        """Return a network whose training takes about the same number of steps on every table."""
        epochs = min(25, max(4, math.ceil(_STEPS * _BATCH_SIZE / max(self.n_rows, 1))))
        return FederateClassifier(epsilon, max_epochs=epochs, **_NETWORK, **params)

    def fair_trees(self, epsilon: float) -> FairPrivateClassifier:
        """Return boosted trees whose answers have the same rates in all groups, as far as the relaxation allows."""
        return FairPrivateClassifier(
            boosted_trees(self.n_rows),
            epsilon=epsilon,
            fairness=self.fairness,
            relaxation=min(self.relaxation, 1.0),
            cv=3,
            pos_label=self.pos_label,
        )

    def threshold_optimizer(self) -> "ThresholdOptimizerClassifier":
        """Return the trees with a threshold for each group."""
        return ThresholdOptimizerClassifier(
            self.preparation, self.group_columns, fairness=self.fairness, pos_label=self.pos_label
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
    is_reference : bool
        Whether it is trained for accuracy alone, so that others can be told against it.
    is_own : bool
        Whether it is the user's own model; others are then told against it.
    needs_groups : bool
        Whether it must be told the group of each row to predict. It gets the sensitive columns as further features,
        named as in ``Setting.group_columns``.
    definitions : tuple of str
        The fairness definitions that it can serve.
    same_fit_as : str or None
        A method whose fitted model becomes this one's by ``adapt``, so that it need not be trained again.
    adapt : callable or None
        Takes a :class:`Setting`, returns a function that changes a fitted model in place.
    public_share : float
        Share of the training rows that are taken as public: columns are prepared by them alone, and ``fit`` gets them
        as ``public``.
    by_default : bool
        Whether an audit takes it when no methods are named.
    least_rows : int
        Rows of a table below which an audit takes it only if it is named.
    needs : str or None
        A package that is not installed with this one, but with its extra ``dp``. Without it, "all" leaves the method
        out.
    """

    name: str
    summary: str
    protects: str
    make: Callable[[Setting], Any]
    candidates: Callable[[Setting], list[dict[str, Any]]] = field(default=lambda setting: [{}])
    cost: float = 1.0
    bare: bool = False
    is_reference: bool = False
    is_own: bool = False
    needs_groups: bool = False
    definitions: tuple[str, ...] = (*RATE_DEFINITIONS, "calibration")
    same_fit_as: str | None = None
    adapt: Callable[[Setting], Callable[[Any], None]] | None = None
    public_share: float = 0.0
    by_default: bool = True
    least_rows: int = 0
    needs: str | None = None

    @property
    def is_installed(self) -> bool:
        """Whether the package that it needs is there."""
        return self.needs is None or importlib.util.find_spec(self.needs) is not None


def _federate_codes(setting: Setting) -> dict[str, Any]:
    return {"channel": "codes", "n_components": None, "n_codes": setting.n_classes}


def _adversary_weights(setting: Setting) -> list[dict[str, Any]]:
    return [{"adversary_weight": weight} for weight in (0.5, 1.0, 2.0)]


def _erased_then_logistic(eraser: Any) -> Pipeline:
    return Pipeline([("eraser", eraser), ("classifier", LogisticRegression(max_iter=1000))])


def _pate_method(setting: Setting) -> PATEClassifier:
    # Teachers, queries, labels and penalty are left to the rule, which knows the sizes of the table and no row.
    return PATEClassifier(LogisticRegression(max_iter=200), epsilon=setting.epsilon, delta=setting.delta)


def _set_epsilon_of_last_step(model: Any, epsilon: float) -> None:
    last = model[-1] if isinstance(model, Pipeline) else model
    last.set_epsilon(epsilon)


RECORDS = "each record it is given"

METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method(
            "logistic",
            "Logistic regression, trained for accuracy alone.",
            "nothing",
            lambda s: LogisticRegression(max_iter=1000),
            is_reference=True,
        ),
        Method(
            "trees",
            "Boosted trees, trained for accuracy alone.",
            "nothing",
            lambda s: boosted_trees(s.n_rows),
            cost=2,
            is_reference=True,
        ),
        Method(
            "fair trees",
            "The trees, whose answers are corrected after training so that the groups' rates become equal.",
            "nothing",
            lambda s: s.fair_trees(math.inf),
            cost=14,
            definitions=RATE_DEFINITIONS,
        ),
        Method(
            "fair private trees",
            "The trees, whose answers are corrected in the same way, and drawn at random to keep epsilon.",
            RECORDS,
            lambda s: s.fair_trees(s.epsilon),
            cost=14,
            definitions=RATE_DEFINITIONS,
            same_fit_as="fair trees",
            adapt=lambda s: partial(_set_epsilon_of_last_step, epsilon=s.epsilon),
        ),
        Method(
            "federate",
            "A neural network with noise and an adversary (FEDERATE; not federated learning).",
            RECORDS,
            lambda s: s.network(s.epsilon, adversary_weight=1.0, **_federate_codes(s)),
            cost=6,
            least_rows=_ENOUGH_ROWS,
        ),
        Method(
            "leace",
            "Everything that a linear model can read of the groups is erased, then logistic regression.",
            "nothing",
            lambda s: _erased_then_logistic(LEACEEraser(tol=1e-8)),
        ),
        Method(
            "pate",
            "Teachers on disjoint parts of the training rows vote, and a student learns from noisy votes (PATE, soft).",
            "the training rows, except the quarter taken as public",
            _pate_method,
            cost=6,
            public_share=_PUBLIC_SHARE,
            least_rows=_ENOUGH_ROWS,
        ),
        Method(
            "dp-sgd",
            "A small network trained by noisy gradients, by Opacus (DP-SGD): its epsilon is what Opacus claims.",
            "the training rows, except the quarter taken as public",
            lambda s: OpacusClassifier(s.epsilon, s.delta),
            cost=30,
            public_share=_PUBLIC_SHARE,
            by_default=False,
            least_rows=_ENOUGH_ROWS,
            needs="opacus",
        ),
        Method(
            "unconstrained",
            "A plain neural network, trained for accuracy alone.",
            "nothing",
            lambda s: s.network(math.inf, channel="laplace", n_components=8, adversary_weight=0.0),
            cost=4,
            is_reference=True,
            by_default=False,
        ),
        Method(
            "noise",
            "The network on a representation that is made private by noise before it is used.",
            RECORDS,
            lambda s: s.network(s.epsilon, adversary_weight=0.0),
            lambda s: [{"channel": "laplace", "n_components": 2}, _federate_codes(s)],
            cost=4,
            by_default=False,
        ),
        Method(
            "adversarial",
            "The network, trained against an adversary that tries to read the groups from the representation.",
            "nothing",
            lambda s: s.network(math.inf, channel="laplace", n_components=8, adversary_weight=1.0),
            _adversary_weights,
            cost=6,
            by_default=False,
        ),
        Method(
            "inlp",
            "The directions in which a linear model finds the groups are projected out, then logistic regression.",
            "nothing",
            lambda s: _erased_then_logistic(INLPEraser(estimator=LogisticRegression(max_iter=1000), tol=0.0)),
            lambda s: [{"eraser__n_iterations": rounds} for rounds in (1, 3)],
            cost=2,
            by_default=False,
        ),
        Method(
            "fairlearn",
            "Logistic regression under a bound on the gap of the training rows (fairlearn's exponentiated gradient).",
            "nothing",
            lambda s: FairlearnClassifier(s.pos_label, fairness=s.fairness),
            lambda s: [{"difference_bound": bound} for bound in (0.01, 0.05)],
            cost=20,
            definitions=RATE_DEFINITIONS,
            by_default=False,  # slow: it trains up to fifty models one after the other
        ),
        Method(
            "threshold optimizer",
            "The trees with a threshold for each group (fairlearn's ThresholdOptimizer): it must be told everybody's "
            "group to answer.",
            "nothing",
            lambda s: s.threshold_optimizer(),
            cost=3,
            bare=True,
            needs_groups=True,
            definitions=RATE_DEFINITIONS,
            by_default=False,
        ),
        Method(
            "private threshold optimizer",
            "The likelier answer of the threshold optimizer, released by randomised response: it, too, must be told "
            "everybody's group.",
            RECORDS,
            lambda s: FairPrivateClassifier(s.threshold_optimizer(), epsilon=s.epsilon, fairness=None),
            cost=12,
            bare=True,
            needs_groups=True,
            definitions=RATE_DEFINITIONS,
            by_default=False,
        ),
    )
}


def method_names(everything: bool = False) -> list[str]:
    """List the methods that an audit compares by default, or all that it knows and whose packages are there."""
    return [method.name for method in METHODS.values() if method.is_installed and (everything or method.by_default)]


def choose_methods(methods: Any, systems: int = 0) -> tuple[list[Method], dict[str, Any]]:
    """Turn names and estimators into methods to train and models that come fitted.

    Parameters
    ----------
    methods : None, "all", "none", list or dict
        ``None`` takes those of ours that are compared by default.
    systems : int, default=0
        Number of systems whose decisions are in the table: with any, there need not be a method.

    Returns
    -------
    methods : list of Method
        To be trained.
    fitted : dict of str to estimator
        To be used as they are.
    """
    if methods is None:
        return [METHODS[name] for name in method_names()], {}
    given = list(methods.items()) if isinstance(methods, Mapping) else methods
    given = [given] if isinstance(given, str | BaseEstimator) else list(given)
    if given == ["all"]:
        return [METHODS[name] for name in method_names(everything=True)], {}
    if given == ["none"] or not given:
        if not systems:
            raise ValueError(
                f"methods is empty; choose from {', '.join(METHODS)}, or give an estimator, or the predictions of a "
                "system that exists."
            )
        return [], {}
    chosen, fitted, names = [], {}, []
    for entry in given:
        if isinstance(entry, str):
            chosen.append(_named_method(entry))
            names.append(entry)
            continue
        pair = isinstance(entry, tuple) and len(entry) == 2 and isinstance(entry[0], str)
        name, estimator = entry if pair else (type(entry).__name__, entry)
        names.append(name)
        _check_model(estimator)
        if _is_fitted(estimator):
            fitted[name] = estimator
        else:
            chosen.append(_users_own_method(name, estimator))
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"methods has {name!r} twice; give estimators names: ('my model', estimator).")
    return chosen, fitted


def _named_method(name: str) -> Method:
    method = METHODS[check_choice(name, list(METHODS), "method")]
    if not method.is_installed:
        raise ValueError(f"the method {name!r} needs {method.needs}: pip install 'skfairdp[dp]', or leave it out.")
    return method


def _check_model(estimator: Any) -> None:
    if isinstance(estimator, type) or not (hasattr(estimator, "fit") and hasattr(estimator, "predict")):
        raise TypeError(
            f"methods may hold names ({', '.join(METHODS)}), classifiers, and pairs of a name and a classifier; "
            f"got {estimator!r}."
        )


def _users_own_method(name: str, estimator: Any) -> Method:
    return Method(
        name,
        f"Your own model, a {type(estimator).__name__}.",
        "",
        lambda setting: estimator,
        bare=isinstance(estimator, Pipeline),
        is_own=True,
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
