"""Private and fair machine learning with scikit-learn.

``import skfairdp`` is cheap: public names are imported when first used, so
that neither torch nor matplotlib is loaded before something needs it.
"""

import importlib
from typing import Any

__version__ = "0.1.0.dev0"

#: Where each public name lives: ``skfairdp.Name`` is ``skfairdp.<folder>.Name``.
_HOME = {
    "AuditResult": "report",
    "BagOfEmbeddingsEncoder": "adversarial",
    "BoundaryDisplay": "inspection",
    "BudgetExceededError": "exceptions",
    "CodeLength": "metrics",
    "DataDependentPrivacy": "ensemble",
    "DistanceToOptimum": "model_selection",
    "EpsilonAudit": "auditing",
    "FederateClassifier": "adversarial",
    "FlippingDisplay": "inspection",
    "GaussianPrivatizer": "preprocessing",
    "GroupRatesDisplay": "inspection",
    "INLPEraser": "preprocessing",
    "InputNormDisplay": "inspection",
    "LEACEEraser": "preprocessing",
    "LaplacePrivatizer": "preprocessing",
    "MissingSensitiveFeaturesWarning": "exceptions",
    "OMEEncoder": "preprocessing",
    "OverclaimedPrivacyWarning": "exceptions",
    "PATEClassifier": "ensemble",
    "PATEFairness": "ensemble",
    "PATESweepDisplay": "inspection",
    "ParetoFront": "model_selection",
    "PrivacyCurveDisplay": "inspection",
    "PrivacyGuarantee": "accounting",
    "PrivacyLeakWarning": "exceptions",
    "PrivacyLedger": "accounting",
    "PrivateScaler": "preprocessing",
    "PublicScaler": "preprocessing",
    "RelaxationThreshold": "model_selection",
    "ReleaseEvent": "accounting",
    "ReleaseMixin": "release",
    "RepresentationDisplay": "inspection",
    "SensitiveFeaturesNotRoutedError": "exceptions",
    "SensitivityBounds": "metrics",
    "SoftLabelDisplay": "inspection",
    "TradeoffDisplay": "inspection",
    "TrainingHistoryDisplay": "inspection",
    "UndefinedGroupMetricWarning": "exceptions",
    "WordDropout": "preprocessing",
    "accuracy_gap": "metrics",
    "accuracy_gap_scorer": "metrics",
    "amplify_by_dropout": "accounting",
    "audit_epsilon": "auditing",
    "audit_table": "report",
    "binary_vote_rdp": "accounting",
    "bootstrap_interval": "metrics",
    "closeness_to_boundary": "metrics",
    "compose": "accounting",
    "compose_parallel": "accounting",
    "confident_gnmax_data_dependent_rdp": "accounting",
    "confident_gnmax_guarantee": "accounting",
    "confident_gnmax_mu": "accounting",
    "demographic_parity_gap": "metrics",
    "dropout_epsilon": "accounting",
    "empirical_privacy_score": "metrics",
    "equalized_odds_gap": "metrics",
    "excessive_risk": "metrics",
    "excessive_risk_bound": "metrics",
    "excessive_risk_gap": "metrics",
    "federate_baselines": "adversarial",
    "fetch_adult": "datasets",
    "fetch_ag_entities": "datasets",
    "fetch_bank_marketing": "datasets",
    "fetch_celeba_attributes": "datasets",
    "fetch_credit_default": "datasets",
    "fetch_mrpc": "datasets",
    "fetch_parkinsons": "datasets",
    "fetch_sentiment_sentences": "datasets",
    "fetch_snips": "datasets",
    "flipping_probability": "metrics",
    "gaussian_delta": "accounting",
    "gaussian_epsilon": "accounting",
    "gaussian_log_delta": "accounting",
    "gaussian_mu": "accounting",
    "gaussian_rdp": "accounting",
    "gaussian_sigma": "accounting",
    "gnmax_data_dependent_epsilon": "accounting",
    "gnmax_data_dependent_rdp": "accounting",
    "gnmax_guarantee": "accounting",
    "gnmax_mu": "accounting",
    "gnmax_noise_scale": "accounting",
    "grms": "metrics",
    "grms_scorer": "metrics",
    "group_rates": "metrics",
    "hard_label_bounds": "metrics",
    "leakage_report": "metrics",
    "leakage_score": "metrics",
    "load_glove": "datasets",
    "make_biased_classification": "datasets",
    "make_biased_text": "datasets",
    "make_code_length_scorer": "metrics",
    "make_fairness_scorer": "metrics",
    "make_leakage_scorer": "metrics",
    "model_sensitivity": "metrics",
    "online_code_length": "metrics",
    "pareto_front": "model_selection",
    "pate_fairness": "ensemble",
    "pipeline_guarantee": "release",
    "pure_rdp": "accounting",
    "renyi_delta": "accounting",
    "renyi_epsilon": "accounting",
    "renyi_epsilons": "accounting",
    "route_sensitive_features": "metrics",
    "soft_label_bounds": "metrics",
    "tpr_gap": "metrics",
    "tpr_gap_scorer": "metrics",
    "worst_case_pair": "auditing",
    "worst_case_pairs": "auditing",
    "worst_group_accuracy": "metrics",
    "worst_group_accuracy_scorer": "metrics",
}

_FOLDERS = (
    "accounting",
    "adversarial",
    "auditing",
    "datasets",
    "ensemble",
    "exceptions",
    "inspection",
    "mechanisms",
    "metrics",
    "model_selection",
    "neural",
    "preprocessing",
    "release",
    "report",
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
