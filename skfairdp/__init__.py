"""Private and fair machine learning with scikit-learn.

``import skfairdp`` is cheap: public names are imported when first used, so
that neither torch nor matplotlib is loaded before something needs it.
"""

import importlib
from typing import Any

__version__ = "0.1.0.dev0"

#: What most people come for, as ``skfairdp.Name``; everything else is ``skfairdp.<folder>.Name`` alone.
_HOME = {
    "BagOfEmbeddingsEncoder": "adversarial",
    "DistanceToOptimum": "model_selection",
    "FairPrivateClassifier": "postprocessing",
    "FederateClassifier": "adversarial",
    "GaussianPrivatizer": "preprocessing",
    "INLPEraser": "preprocessing",
    "LEACEEraser": "preprocessing",
    "LaplacePrivatizer": "preprocessing",
    "OMEEncoder": "preprocessing",
    "PATEClassifier": "ensemble",
    "ParetoFront": "model_selection",
    "PrivacyGuarantee": "accounting",
    "PrivacyLedger": "accounting",
    "PrivatePipeline": "pipeline",
    "PrivateScaler": "preprocessing",
    "PrivateSearchCV": "model_selection",
    "PublicScaler": "preprocessing",
    "RelaxationThreshold": "model_selection",
    "WordDropout": "preprocessing",
    "accuracy_gap": "metrics",
    "audit_epsilon": "epsilon_audit",
    "audit_table": "table_audit",
    "demographic_parity_gap": "metrics",
    "equalized_odds_gap": "metrics",
    "grms": "metrics",
    "group_rates": "metrics",
    "leakage_score": "metrics",
    "make_fairness_scorer": "metrics",
    "make_leakage_scorer": "metrics",
    "pate_fairness": "ensemble",
    "pipeline_guarantee": "pipeline",
    "tpr_gap": "metrics",
    "worst_group_accuracy": "metrics",
}

_FOLDERS = (
    "accounting",
    "adversarial",
    "dask",
    "datasets",
    "dp",
    "ensemble",
    "epsilon_audit",
    "exceptions",
    "inspection",
    "mechanisms",
    "metrics",
    "model_selection",
    "neural",
    "pipeline",
    "postprocessing",
    "preprocessing",
    "random",
    "release",
    "table_audit",
    "table_files",
)

__all__ = ["__version__", *_HOME, *_FOLDERS]


def __getattr__(name: str) -> Any:
    if name in _FOLDERS:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _HOME:
        value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
        globals()[name] = value  # found once, then found without this function
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
