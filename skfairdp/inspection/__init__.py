"""Pictures, in scikit-learn's manner: ``XDisplay.from_...`` computes and draws, and imports matplotlib then."""

from skfairdp.inspection._group_rates import GroupRatesDisplay
from skfairdp.inspection._privacy_curve import PrivacyCurveDisplay
from skfairdp.inspection._representation import RepresentationDisplay
from skfairdp.inspection._tradeoff import TradeoffDisplay

__all__ = [
    "GroupRatesDisplay",
    "PrivacyCurveDisplay",
    "RepresentationDisplay",
    "TradeoffDisplay",
]
