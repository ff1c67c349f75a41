"""Pictures, in scikit-learn's manner: ``XDisplay.from_...`` computes and draws, and imports matplotlib then."""

from skfairdp.inspection._group_rates import GroupRatesDisplay
from skfairdp.inspection._leakage_display import LeakageDisplay
from skfairdp.inspection._pate import PATESweepDisplay, SoftLabelDisplay
from skfairdp.inspection._pate_rows import BoundaryDisplay, FlippingDisplay, InputNormDisplay
from skfairdp.inspection._privacy_curve import PrivacyCurveDisplay
from skfairdp.inspection._representation import RepresentationDisplay
from skfairdp.inspection._tradeoff import TradeoffDisplay
from skfairdp.inspection._training_history import TrainingHistoryDisplay

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
