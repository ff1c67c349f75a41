"""Pictures, in scikit-learn's manner: ``XDisplay.from_...`` computes and draws, and imports matplotlib then."""

from skfairdp.inspection._display_style import shortened_label
from skfairdp.inspection._group_rates_display import GroupRatesDisplay
from skfairdp.inspection._leakage_display import LeakageDisplay
from skfairdp.inspection._pate_displays import (
    BoundaryDisplay,
    FlippingDisplay,
    InputNormDisplay,
    PATESweepDisplay,
    SoftLabelDisplay,
)
from skfairdp.inspection._privacy_curve_display import PrivacyCurveDisplay
from skfairdp.inspection._representation_display import RepresentationDisplay
from skfairdp.inspection._tradeoff_display import TradeoffDisplay
from skfairdp.inspection._training_history_display import TrainingHistoryDisplay

# What is imported and not listed here is for other folders of skfairdp.
__all__ = [
    "BoundaryDisplay",
    "FlippingDisplay",
    "GroupRatesDisplay",
    "InputNormDisplay",
    "LeakageDisplay",
    "PATESweepDisplay",
    "PrivacyCurveDisplay",
    "RepresentationDisplay",
    "SoftLabelDisplay",
    "TradeoffDisplay",
    "TrainingHistoryDisplay",
]
