"""Choose a model by accuracy, fairness and privacy at once."""

from skfairdp.model_selection._private_search import PrivateSearchCV
from skfairdp.model_selection._routing import route_sensitive_features
from skfairdp.model_selection._search_results import Metric, Results
from skfairdp.model_selection._selection_rules import (
    DistanceToOptimum,
    ParetoFront,
    RelaxationThreshold,
    pareto_front,
    undominated_rows,
)

# What is imported and not listed here is for other folders of skfairdp.
__all__ = [
    "DistanceToOptimum",
    "Metric",
    "ParetoFront",
    "PrivateSearchCV",
    "RelaxationThreshold",
    "pareto_front",
    "route_sensitive_features",
]
