"""Judge a model and a representation: group fairness, and what an attacker can read."""

from skfairdp.metrics._calibration import calibration_by_group, calibration_gap, estimate_calibration_gap
from skfairdp.metrics._code_length import CodeLength, online_code_length
from skfairdp.metrics._empirical_privacy import empirical_privacy_score
from skfairdp.metrics._gap_estimate import (
    GapEstimate,
    estimate_gap,
    estimate_gap_change,
    estimate_selection_ratio,
)
from skfairdp.metrics._group_counts import GroupCounts
from skfairdp.metrics._group_fairness import (
    accuracy_gap,
    demographic_parity_gap,
    equalized_odds_gap,
    grms,
    tpr_gap,
    worst_group_accuracy,
)
from skfairdp.metrics._group_rates import group_rates
from skfairdp.metrics._group_table import combine_gaps, tpr_gaps
from skfairdp.metrics._intervals import Interval, bootstrap_interval, proportion_bounds
from skfairdp.metrics._leakage import leakage_report, leakage_score
from skfairdp.metrics._pate_analysis import (
    SensitivityBounds,
    closeness_to_boundary,
    excessive_risk,
    excessive_risk_bound,
    excessive_risk_gap,
    flipping_probability,
    hard_label_bounds,
    model_sensitivity,
    soft_label_bounds,
    standard_error,
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
from skfairdp.metrics._shrunken_rates import shrunken_rates
from skfairdp.metrics._simultaneous_bounds import gap_interval, ratio_interval

# What is imported and not listed here is for other folders of skfairdp.
__all__ = [
    "CodeLength",
    "GapEstimate",
    "GroupCounts",
    "Interval",
    "SensitivityBounds",
    "accuracy_gap",
    "accuracy_gap_scorer",
    "bootstrap_interval",
    "calibration_by_group",
    "calibration_gap",
    "closeness_to_boundary",
    "demographic_parity_gap",
    "empirical_privacy_score",
    "equalized_odds_gap",
    "estimate_calibration_gap",
    "estimate_gap",
    "estimate_gap_change",
    "estimate_selection_ratio",
    "excessive_risk",
    "excessive_risk_bound",
    "excessive_risk_gap",
    "flipping_probability",
    "grms",
    "grms_scorer",
    "group_rates",
    "hard_label_bounds",
    "leakage_report",
    "leakage_score",
    "make_code_length_scorer",
    "make_fairness_scorer",
    "make_leakage_scorer",
    "model_sensitivity",
    "online_code_length",
    "shrunken_rates",
    "soft_label_bounds",
    "tpr_gap",
    "tpr_gap_scorer",
    "worst_group_accuracy",
    "worst_group_accuracy_scorer",
]
