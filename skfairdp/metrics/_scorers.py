"""Scorers that know the groups, and refuse to work without them."""

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import sklearn
from sklearn.metrics import make_scorer
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import MetadataRequest

from skfairdp._sklearn import routing_enabled
from skfairdp.exceptions import SensitiveFeaturesNotRoutedError
from skfairdp.metrics._code_length import online_code_length
from skfairdp.metrics._group_fairness import accuracy_gap, grms, tpr_gap, worst_group_accuracy
from skfairdp.metrics._leakage import leakage_score

# What make_scorer makes. A search lets scorers of this class share one call of predict, and every call of a
# private model is a release: a fairness scorer beside the accuracy must not cost a second one.
_PlainScorer: Any = type(make_scorer(tpr_gap))


class SensitiveScorer(_PlainScorer):
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
        If the sensitive features are missing. A search turns the error of any scorer into nan and a warning, unless
        it was made with ``error_score="raise"``; the rules of :mod:`skfairdp.model_selection` refuse a score that is
        nan for every candidate, and say what to do.

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

    def __init__(self, name: str, metric: Callable, *, greater_is_better: bool, **kwargs: Any):
        # scikit-learn reads pos_label and sample_weight off the signature of the metric
        checked = functools.update_wrapper(functools.partial(_with_groups, name, metric), metric)
        plain = make_scorer(checked, greater_is_better=greater_is_better, **kwargs)
        self.__dict__.update(vars(plain))
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
        _check_given(sensitive_features, self._name)  # before predict, which may be a release
        # Who calls directly hands over the metadata, and no routing is needed to bring them here.
        with sklearn.config_context(enable_metadata_routing=True):
            return super().__call__(estimator, X, y_true, sensitive_features=sensitive_features, **params)

    def __repr__(self) -> str:
        return self._name


def _with_groups(
    scorer: str, metric: Callable, y_true: Any, y_pred: Any, *, sensitive_features: Any = None, **params: Any
) -> float:
    """Call a metric, and refuse to without the groups: what a scorer does when a search has made the predictions."""
    _check_given(sensitive_features, scorer)
    return metric(y_true, y_pred, sensitive_features=sensitive_features, **params)


class RepresentationScorer:
    """Score what a fitted estimator makes of held-out rows, instead of what it predicts.

    It is called, and asks for metadata, as a :class:`SensitiveScorer`; the labels are not looked at.
    """

    def __init__(self, name: str, probe: Callable, sign: int, params: dict, representation: "str | Callable"):
        if representation not in ("transform", "output") and not callable(representation):
            raise ValueError(f"representation must be 'transform', 'output' or a function; got {representation!r}.")
        # A wrong name is refused now: inside a search it would only be a nan and a warning.
        known = [key for key, p in inspect.signature(probe).parameters.items() if p.kind is p.KEYWORD_ONLY]
        unknown = sorted(set(params) - set(known))
        if unknown:
            raise TypeError(f"{probe.__name__} has no parameter {unknown[0]!r}; it has {known}.")
        self._name = name
        self._probe = probe
        self._sign = sign
        self._params = params
        self._representation = representation
        self.set_score_request()

    def set_score_request(self, *, sensitive_features: "bool | str" = True, **requests: Any) -> "RepresentationScorer":
        """Request further metadata; the sensitive features stay requested, under an alias if one is given."""
        self._request = MetadataRequest(owner=self._name)
        for name, alias in {"sensitive_features": sensitive_features, **requests}.items():
            self._request.score.add_request(param=name, alias=alias)
        return self

    def get_metadata_routing(self) -> MetadataRequest:
        """Tell scikit-learn what to pass on."""
        return self._request

    def __call__(
        self, estimator: Any, X: Any, y_true: Any = None, *, sensitive_features: Any = None, **params: Any
    ) -> float:
        _check_given(sensitive_features, self._name)
        H = representation_of(estimator, X, self._representation)
        return self._sign * float(self._probe(H, sensitive_features, **self._params, **params))

    def __repr__(self) -> str:
        return self._name


def _check_given(sensitive_features: Any, scorer: str) -> None:
    if sensitive_features is None:
        raise SensitiveFeaturesNotRoutedError(f"{scorer} needs sensitive_features: {how_to_pass_groups()}.")


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
    return SensitiveScorer(name, metric, greater_is_better=greater_is_better, **kwargs)


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
    the output finds less, and two candidates that are attacked at different places cannot be compared. In a search
    the refusal is a nan and a warning, as every error of a scorer; ``error_score="raise"`` stops at the first one.

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
    return RepresentationScorer("make_leakage_scorer(...)", leakage_score, -1, probe_params, representation)


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
    return RepresentationScorer("make_code_length_scorer(...)", online_code_length, 1, code_params, representation)


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
        raise TypeError(
            f"representation='output' needs predict_proba or decision_function; {type(estimator).__name__} has neither."
        )
    if hasattr(estimator, "transform"):
        return estimator.transform(X)
    if isinstance(estimator, Pipeline) and len(estimator) > 1:
        encoded = estimator[:-1].transform(X)
        last = estimator[-1]
        return representation_of(last, encoded) if isinstance(last, Pipeline) and len(last) > 1 else encoded
    raise TypeError(
        f"representation='transform' needs a transformer, or a pipeline with one; {type(estimator).__name__} has no "
        "transform. Use representation='output' to probe what the model says, or a function that gives the "
        "representation."
    )


tpr_gap_scorer = SensitiveScorer("tpr_gap_scorer", tpr_gap, greater_is_better=False)
grms_scorer = SensitiveScorer("grms_scorer", grms, greater_is_better=False)
accuracy_gap_scorer = SensitiveScorer("accuracy_gap_scorer", accuracy_gap, greater_is_better=False)
worst_group_accuracy_scorer = SensitiveScorer(
    "worst_group_accuracy_scorer", worst_group_accuracy, greater_is_better=True
)


def how_to_pass_groups() -> str:
    """Say what to do, as scikit-learn is set now, so that the sensitive features reach a scorer."""
    if routing_enabled():
        return (
            "pass them to the search, search.fit(X, y, sensitive_features=...), or to cross_validate through "
            "params={'sensitive_features': ...}"
        )
    return (
        "scikit-learn passes them on only when metadata routing is enabled, so call "
        "sklearn.set_config(enable_metadata_routing=True) before the search, and then "
        "search.fit(X, y, sensitive_features=...)"
    )
