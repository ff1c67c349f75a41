"""The only file that may import private scikit-learn names.

When a new scikit-learn moves one of them, this is the one place to mend.
"""

from typing import Any

import numpy as np
import sklearn
from sklearn.base import _fit_context as fit_context
from sklearn.utils import _safe_indexing as safe_indexing
from sklearn.utils._metadata_requests import SIMPLE_METHODS as ROUTED_METHODS
from sklearn.utils._param_validation import HasMethods, Interval, Options, StrOptions
from sklearn.utils.validation import _check_feature_names_in as check_feature_names_in
from sklearn.utils.validation import _check_sample_weight as check_sample_weight


def routing_enabled() -> bool:
    """Whether scikit-learn passes metadata on."""
    return bool(sklearn.get_config()["enable_metadata_routing"])


def metadata_request(consumer: Any, method: str, name: str) -> "bool | str | None":
    """Return what a consumer has requested for one piece of metadata; None if nobody has said anything."""
    return getattr(consumer._get_metadata_request(), method).requests.get(name)


def validate_parameters(estimator: Any) -> None:
    """Let an estimator, and the steps of a pipeline, check their parameters without being fitted."""
    for part in [step for _, step in estimator.steps] if hasattr(estimator, "steps") else [estimator]:
        if hasattr(part, "_parameter_constraints"):
            part._validate_params()


def split_gains(trees: Any) -> np.ndarray:
    """Return what the splits on each column have gained in fitted histogram-based boosted trees."""
    gains = np.zeros(trees.n_features_in_)
    for tree in (tree for iteration in trees._predictors for tree in iteration):
        splits = tree.nodes[tree.nodes["is_leaf"] == 0]
        np.add.at(gains, splits["feature_idx"], splits["gain"])
    return gains
