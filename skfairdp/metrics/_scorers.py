"""Scorers that know the groups, and refuse to work without them."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import sklearn
from sklearn.pipeline import Pipeline

from skfairdp._sklearn import MultimetricScorer, PredictionScorer, routing_enabled
from skfairdp.exceptions import BudgetExceededError, SensitiveFeaturesNotRoutedError
from skfairdp.metrics._code_length import online_code_length
from skfairdp.metrics._group_fairness import accuracy_gap, grms, tpr_gap, worst_group_accuracy
from skfairdp.metrics._leakage import leakage_score


class SensitiveScorer(PredictionScorer):
    """Score a fitted estimator on held-out rows whose groups are known.

    Larger is better, as everywhere in scikit-learn: a gap comes with a minus sign.

    Parameters
    ----------
    estimator : estimator
        A fitted estimator.
    X : array-like
        Held-out rows.
    y_true : array-like of shape (n_samples,)
        Their true labels.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
        Their groups. A search or a cross-validation passes them on when metadata routing is enabled; the request
        is already set.
    **params : dict
        Other metadata that was requested by ``set_score_request``, such as ``sample_weight``.

    Raises
    ------
    SensitiveFeaturesNotRoutedError
        If the sensitive features are missing. Other errors of a scorer become nan in a search; this one does not, nor
        does :class:`BudgetExceededError`.

    Examples
    --------
    >>> import sklearn
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import cross_val_score
    >>> from skfairdp.datasets import make_biased_classification
    >>> from skfairdp.metrics import accuracy_gap_scorer
    >>> data = make_biased_classification(n_samples=400, random_state=0)
    >>> with sklearn.config_context(enable_metadata_routing=True):
    ...     scores = cross_val_score(LogisticRegression(), data.data, data.target, scoring=accuracy_gap_scorer,
    ...                              params={"sensitive_features": data.sensitive_features})
    >>> scores.shape, bool((scores <= 0).all())
    ((5,), True)
    """

    _refused = False

    def __init__(self, name: str, score_func: Callable, sign: int, kwargs: dict, response_method: str = "predict"):
        super().__init__(score_func, sign, kwargs, response_method)
        self._name = name
        with sklearn.config_context(enable_metadata_routing=True):
            self.set_score_request(sensitive_features=True)

    def set_score_request(self, *, sensitive_features: "bool | str" = True, **requests: Any) -> "SensitiveScorer":
        """Request further metadata; the sensitive features stay requested, under an alias if one is given.

        The ready-made scorers are shared by everybody who imports them: change a copy (``copy.deepcopy``).
        """
        return super().set_score_request(sensitive_features=sensitive_features, **requests)

    def __call__(
        self, estimator: Any, X: Any, y_true: Any = None, *, sensitive_features: Any = None, **params: Any
    ) -> float:
        if sensitive_features is None:
            score: Any = _Refusal(self._missing())
        else:
            # Who calls directly hands over the metadata, and no routing is needed to bring them here.
            with sklearn.config_context(enable_metadata_routing=True):
                score = super().__call__(estimator, X, y_true, sensitive_features=sensitive_features, **params)
        if type(score) is _Refusal:
            self._refused = True
            raise score.error
        return score

    def _score(self, method_caller: Callable, estimator: Any, X: Any, y_true: Any, **kwargs: Any) -> Any:
        # A multi-metric scorer calls this, and would turn an error into nan: what must not pass is returned.
        if kwargs.get("sensitive_features") is None:
            return _Refusal(self._missing())
        try:
            return self._evaluate(method_caller, estimator, X, y_true, **kwargs)
        except (BudgetExceededError, NoRepresentationError) as error:
            return _Refusal(error)

    def _evaluate(self, method_caller: Callable, estimator: Any, X: Any, y_true: Any, **kwargs: Any) -> float:
        return super()._score(method_caller, estimator, X, y_true, **kwargs)

    def _missing(self) -> SensitiveFeaturesNotRoutedError:
        if routing_enabled():
            return SensitiveFeaturesNotRoutedError(
                f"{self._name} needs the group of every row: pass sensitive_features to the search, "
                "search.fit(X, y, sensitive_features=...), or to cross_validate through "
                "params={'sensitive_features': ...}."
            )
        return SensitiveFeaturesNotRoutedError(
            f"{self._name} needs sensitive_features, and scikit-learn passes them on only when metadata routing is "
            "enabled: call sklearn.set_config(enable_metadata_routing=True) before the search, and then "
            "search.fit(X, y, sensitive_features=...)."
        )

    # scikit-learn replaces the error of a scorer by nan. On the way it asks two questions, and the answers
    # below keep it from doing so.
    # - isinstance(scorer, _MultimetricScorer): the errors of such a scorer are raised. A scorer that has just
    #   refused, or that cannot work since routing is off, says yes. If it was the fit that failed, because the
    #   estimator was given sensitive_features that nobody routed, scikit-learn then asks for ``_scorers``.
    # - scorer.__module__: asked of every scorer in a dict, before anything is fitted.

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        refused, self._refused = self._refused, False
        return _RefusingScorer if refused or not routing_enabled() else type(self)

    @property
    def _scorers(self) -> dict:
        raise self._missing()

    def __getattribute__(self, name: str) -> Any:
        if name == "__module__" and not routing_enabled():
            raise self._missing()
        return super().__getattribute__(name)

    def __reduce__(self) -> tuple:
        return _blank_scorer, (type(self),), self.__dict__  # the default compares __class__ with the type

    def __repr__(self) -> str:
        return self._name


class _RefusingScorer(SensitiveScorer, MultimetricScorer):
    """What a scorer says it is while it cannot work; no object has this type."""


class _Refusal:
    """Stands where a score should be, and raises as soon as somebody looks whether it is one."""

    def __init__(self, error: Exception):
        self.error = error

    @property
    def item(self) -> Any:
        raise self.error

    def __repr__(self) -> str:
        return repr(self.error)


def _blank_scorer(kind: type) -> Any:
    return object.__new__(kind)


class RepresentationScorer(SensitiveScorer):
    """A scorer that probes what an estimator makes of the rows, instead of what it predicts."""

    def __init__(self, name: str, score_func: Callable, sign: int, kwargs: dict, representation: "str | Callable"):
        # The response method is only looked for, never called, and every estimator has a fit.
        super().__init__(name, score_func, sign, kwargs, response_method="fit")
        self._representation = representation

    def _evaluate(self, method_caller: Callable, estimator: Any, X: Any, y_true: Any, **kwargs: Any) -> float:
        H = representation_of(estimator, X, self._representation)
        return self._sign * self._score_func(H, **self._kwargs, **kwargs)


def make_fairness_scorer(metric: Callable, *, greater_is_better: bool, **kwargs: Any) -> SensitiveScorer:
    """Make a scorer of any metric ``metric(y_true, y_pred, *, sensitive_features, ...)``.

    Parameters
    ----------
    metric : callable
        A group metric, of this package, of fairlearn or your own.
    greater_is_better : bool
        False for a gap: the score is then its negative.
    **kwargs : dict
        Further arguments of the metric, such as ``pos_label``.

    Returns
    -------
    scorer
        With ``sensitive_features`` already requested.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> from skfairdp.metrics import demographic_parity_gap, make_fairness_scorer
    >>> scorer = make_fairness_scorer(demographic_parity_gap, greater_is_better=False)
    >>> model = DummyClassifier(strategy="most_frequent").fit([[0], [1]], [1, 1])
    >>> print(scorer(model, [[0], [1]], [0, 1], sensitive_features=["a", "b"]))
    -0.0
    """
    if not callable(metric):
        raise TypeError(f"metric must be a function of y_true and y_pred; got {metric!r}.")
    if not isinstance(greater_is_better, bool):
        raise TypeError(f"greater_is_better must be True or False; got {greater_is_better!r}.")
    name = f"make_fairness_scorer({getattr(metric, '__name__', repr(metric))}, greater_is_better={greater_is_better})"
    return SensitiveScorer(name, metric, 1 if greater_is_better else -1, kwargs)


def make_leakage_scorer(*, representation: "str | Callable" = "transform", **probe_params: Any) -> RepresentationScorer:
    """Make a scorer of how well an attacker reads the sensitive attribute from the representation.

    The score is the negative of :func:`leakage_score` on the held-out rows: larger is more private.

    Parameters
    ----------
    representation : {"transform", "output"} or callable, default="transform"
        What is attacked. ``"transform"``: what ``estimator.transform`` gives; a pipeline that ends in an estimator
        without ``transform`` is followed up to its last step. ``"output"``: ``predict_proba``, or else
        ``decision_function``. A function is called with the estimator and the rows.
    **probe_params : dict
        Arguments of :func:`leakage_score`, such as ``probe``, ``cv`` and ``random_state``.

    Returns
    -------
    scorer
        With ``sensitive_features`` already requested.

    Notes
    -----
    An estimator that has no representation is refused, and the probe does not fall back on its output: an attack on
    the output finds less, and two candidates that are attacked at different places cannot be compared.

    **Privacy.** Scoring passes the held-out rows through the transformer, and a private transformer pays for that: the
    probe is one more release of every row for every candidate, beside those of the fit and of the predictions.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skfairdp.datasets import make_biased_classification
    >>> from skfairdp.metrics import make_leakage_scorer
    >>> data = make_biased_classification(n_samples=300, random_state=0)
    >>> scorer = make_leakage_scorer(probe=LogisticRegression(), cv=3, random_state=0)
    >>> encoder = StandardScaler().fit(data.data)
    >>> bool(-1 <= scorer(encoder, data.data, sensitive_features=data.sensitive_features) < -0.5)
    True
    """
    _check_representation(representation)
    _check_parameters(leakage_score, probe_params)
    return RepresentationScorer("make_leakage_scorer(...)", _leakage, -1, probe_params, representation)


def make_code_length_scorer(
    *, representation: "str | Callable" = "transform", **code_params: Any
) -> RepresentationScorer:
    """Make a scorer of the number of bits that the sensitive attribute costs given the representation.

    The score is :func:`online_code_length` on the held-out rows: a longer code means that the attribute is
    harder to learn from the representation, so that larger is more private.

    Parameters
    ----------
    representation : {"transform", "output"} or callable, default="transform"
        What is probed, as in :func:`make_leakage_scorer`.
    **code_params : dict
        Arguments of :func:`online_code_length`, such as ``random_state``.

    Returns
    -------
    scorer
        With ``sensitive_features`` already requested.

    Notes
    -----
    The length grows with the number of rows: folds of equal size are comparable, data sets are not.

    **Privacy.** As for :func:`make_leakage_scorer`, the probe is one more release of every row for every candidate.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skfairdp.datasets import make_biased_classification
    >>> from skfairdp.metrics import make_code_length_scorer
    >>> data = make_biased_classification(n_samples=300, random_state=0)
    >>> scorer = make_code_length_scorer(probe=LogisticRegression(), random_state=0)
    >>> encoder = StandardScaler().fit(data.data)
    >>> bool(scorer(encoder, data.data, sensitive_features=data.sensitive_features) > 0)
    True
    """
    _check_representation(representation)
    _check_parameters(online_code_length, code_params)
    return RepresentationScorer("make_code_length_scorer(...)", _code_length, 1, code_params, representation)


def _leakage(H: Any, *, sensitive_features: Any, **params: Any) -> float:
    return float(leakage_score(H, sensitive_features, **params))


def _code_length(H: Any, *, sensitive_features: Any, **params: Any) -> float:
    return float(online_code_length(H, sensitive_features, **params))


def _check_representation(representation: Any) -> None:
    if representation not in ("transform", "output") and not callable(representation):
        raise ValueError(f"representation must be 'transform', 'output' or a function; got {representation!r}.")


def _check_parameters(function: Callable, params: dict[str, Any]) -> None:
    """Refuse a wrong name now: inside a search it would only be a nan and a warning."""
    known = [name for name, p in inspect.signature(function).parameters.items() if p.kind is p.KEYWORD_ONLY]
    unknown = sorted(set(params) - set(known))
    if unknown:
        raise TypeError(f"{function.__name__} has no parameter {unknown[0]!r}; it has {known}.")


class NoRepresentationError(TypeError):
    """The estimator has nothing that could be probed in the way that was asked for."""


def representation_of(estimator: Any, X: Any, how: "str | Callable" = "transform") -> Any:
    """Return what an estimator makes of the rows, see :func:`make_leakage_scorer`."""
    if callable(how):
        return how(estimator, X)
    estimator = getattr(estimator, "best_estimator_", estimator)
    if how == "output":
        for method in ("predict_proba", "decision_function"):
            if hasattr(estimator, method):
                output = np.asarray(getattr(estimator, method)(X))
                return output.reshape(len(output), -1)
        raise NoRepresentationError(
            f"representation='output' needs predict_proba or decision_function; {type(estimator).__name__} has neither."
        )
    if hasattr(estimator, "transform"):
        return estimator.transform(X)
    if isinstance(estimator, Pipeline) and len(estimator) > 1:
        encoded = estimator[:-1].transform(X)
        last = estimator[-1]
        return representation_of(last, encoded) if isinstance(last, Pipeline) and len(last) > 1 else encoded
    raise NoRepresentationError(
        f"representation='transform' needs a transformer, or a pipeline with one; {type(estimator).__name__} has no "
        "transform. Use representation='output' to probe what the model says, or a function that gives the "
        "representation."
    )


tpr_gap_scorer = SensitiveScorer("tpr_gap_scorer", tpr_gap, -1, {})
grms_scorer = SensitiveScorer("grms_scorer", grms, -1, {})
accuracy_gap_scorer = SensitiveScorer("accuracy_gap_scorer", accuracy_gap, -1, {})
worst_group_accuracy_scorer = SensitiveScorer("worst_group_accuracy_scorer", worst_group_accuracy, 1, {})
