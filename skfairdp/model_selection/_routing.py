"""Send the sensitive features to every step that can use them."""

import inspect
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from skfairdp._sklearn import ROUTED_METHODS, metadata_request, routing_enabled
from skfairdp.exceptions import SensitiveFeaturesNotRoutedError

Estimator = TypeVar("Estimator")


def route_sensitive_features(estimator: Estimator) -> Estimator:
    """Let every step that takes ``sensitive_features`` ask for them.

    Looks into pipelines, column transformers, feature unions, searches (with their parameter grids) and all
    other estimators that hold estimators, and sets the metadata request of every method that
    names ``sensitive_features`` in its signature.

    Parameters
    ----------
    estimator : estimator
        It is changed in place. Requests that were set before, to an alias or to False, are kept.

    Returns
    -------
    estimator
        The same object.

    Raises
    ------
    SensitiveFeaturesNotRoutedError
        If metadata routing is off, so that no request would have an effect.

    Notes
    -----
    An estimator that takes its metadata inside ``**kwargs`` cannot be routed to by scikit-learn, and is left alone.
    So is one that takes no sensitive features at all: the same pipeline may be compared with and without a fair step.

    Examples
    --------
    >>> import sklearn
    >>> from sklearn.base import BaseEstimator, TransformerMixin
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from skfairdp.model_selection import route_sensitive_features
    >>> class GroupCentring(TransformerMixin, BaseEstimator):
    ...     def fit(self, X, y=None, *, sensitive_features=None):
    ...         self.groups_ = sorted(set(sensitive_features))
    ...         return self
    ...     def transform(self, X):
    ...         return X
    >>> with sklearn.config_context(enable_metadata_routing=True):
    ...     pipeline = route_sensitive_features(make_pipeline(GroupCentring(), LogisticRegression()))
    ...     pipeline = pipeline.fit([[0.0], [1.0]], [0, 1], sensitive_features=["a", "b"])
    >>> pipeline[0].groups_
    ['a', 'b']
    """
    if not routing_enabled():
        raise SensitiveFeaturesNotRoutedError(
            "route_sensitive_features needs metadata routing, which is off: call "
            "sklearn.set_config(enable_metadata_routing=True) first."
        )
    if not hasattr(estimator, "fit"):
        raise TypeError(f"estimator must be an estimator (an object with fit); got {estimator!r}.")
    for part in _estimators_inside(estimator, {}):
        for method in ROUTED_METHODS:
            wanted = _takes_sensitive_features(part, method)
            if wanted and metadata_request(part, method, "sensitive_features") is None:
                getattr(part, f"set_{method}_request")(sensitive_features=True)
    return estimator


def _estimators_inside(value: Any, seen: dict[int, Any]) -> Iterator[Any]:
    """Walk through everything that can be fitted inside ``value``, itself first, each object once."""
    if id(value) in seen or isinstance(value, str | type):
        return
    seen[id(value)] = value  # held, so that no other object gets its id meanwhile
    if hasattr(value, "get_params"):
        if hasattr(value, "fit"):
            yield value
        value = value.get_params(deep=False)
    if isinstance(value, Mapping | list | tuple):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from _estimators_inside(inner, seen)


def _takes_sensitive_features(estimator: Any, method: str) -> bool:
    function = getattr(type(estimator), method, None)
    if function is None or not hasattr(estimator, f"set_{method}_request"):
        return False
    try:
        return "sensitive_features" in inspect.signature(function).parameters
    except (TypeError, ValueError):  # not written in Python
        return False
