"""Judge a model and a representation: group fairness, and what an attacker can read."""

from skfairdp.metrics._code_length import CodeLength, online_code_length
from skfairdp.metrics._empirical_privacy import empirical_privacy_score
from skfairdp.metrics._excessive_risk import excessive_risk, excessive_risk_gap, model_sensitivity
from skfairdp.metrics._flipping import closeness_to_boundary, flipping_probability
from skfairdp.metrics._group_counts import combine as combine_gaps
from skfairdp.metrics._group_counts import tpr_gaps
from skfairdp.metrics._group_fairness import (
    accuracy_gap,
    demographic_parity_gap,
    equalized_odds_gap,
    grms,
    tpr_gap,
    worst_group_accuracy,
)
from skfairdp.metrics._group_rates import group_rates
from skfairdp.metrics._intervals import bootstrap_interval
from skfairdp.metrics._leakage import leakage_report, leakage_score
from skfairdp.metrics._pate_bounds import (
    SensitivityBounds,
    excessive_risk_bound,
    hard_label_bounds,
    soft_label_bounds,
)
from skfairdp.metrics._scorers import (
    accuracy_gap_scorer,
    grms_scorer,
    how_to_pass_groups,
    make_code_length_scorer,
    make_fairness_scorer,
    make_leakage_scorer,
    tpr_gap_scorer,
    worst_group_accuracy_scorer,
)

__all__ = [
    "CodeLength",
    "SensitivityBounds",
    "accuracy_gap",
    "accuracy_gap_scorer",
    "bootstrap_interval",
    "closeness_to_boundary",
    "combine_gaps",
    "demographic_parity_gap",
    "empirical_privacy_score",
    "equalized_odds_gap",
    "excessive_risk",
    "excessive_risk_bound",
    "excessive_risk_gap",
    "flipping_probability",
    "grms",
    "grms_scorer",
    "group_rates",
    "hard_label_bounds",
    "how_to_pass_groups",
    "leakage_report",
    "leakage_score",
    "make_code_length_scorer",
    "make_fairness_scorer",
    "make_leakage_scorer",
    "model_sensitivity",
    "online_code_length",
    "soft_label_bounds",
    "tpr_gap",
    "tpr_gap_scorer",
    "tpr_gaps",
    "worst_group_accuracy",
    "worst_group_accuracy_scorer",
]
