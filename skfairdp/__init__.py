"""Private and fair machine learning with scikit-learn.

``import skfairdp`` is cheap: public names are imported when first used, so
that neither torch nor matplotlib is loaded before something needs it.
"""

import importlib
from typing import Any

__version__ = "0.1.0.dev0"

#: Where each public name lives: ``skfairdp.Name`` is ``skfairdp.<folder>.Name``.
_HOME = {
    "BudgetExceededError": "exceptions",
    "EpsilonAudit": "auditing",
    "GaussianPrivatizer": "preprocessing",
    "INLPEraser": "preprocessing",
    "LEACEEraser": "preprocessing",
    "LaplacePrivatizer": "preprocessing",
    "MissingSensitiveFeaturesWarning": "exceptions",
    "OMEEncoder": "preprocessing",
    "OverclaimedPrivacyWarning": "exceptions",
    "PrivacyLeakWarning": "exceptions",
    "SensitivityBounds": "metrics",
    "audit_epsilon": "auditing",
    "closeness_to_boundary": "metrics",
    "excessive_risk": "metrics",
    "excessive_risk_bound": "metrics",
    "excessive_risk_gap": "metrics",
    "flipping_probability": "metrics",
    "hard_label_bounds": "metrics",
    "make_biased_classification": "datasets",
    "make_biased_text": "datasets",
    "model_sensitivity": "metrics",
    "soft_label_bounds": "metrics",
    "worst_case_pair": "auditing",
}

_FOLDERS = (
    "auditing",
    "datasets",
    "exceptions",
    "mechanisms",
    "preprocessing",
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
