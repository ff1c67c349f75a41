"""Choose a model by accuracy, fairness and privacy at once."""

from skfairdp.model_selection._pareto import pareto_front, undominated
from skfairdp.model_selection._results import Metric, Results
from skfairdp.model_selection._routing import route_sensitive_features
from skfairdp.model_selection._rules import DistanceToOptimum, ParetoFront, RelaxationThreshold

__all__ = [
    "DistanceToOptimum",
    "Metric",
    "ParetoFront",
    "RelaxationThreshold",
    "Results",
    "pareto_front",
    "route_sensitive_features",
    "undominated",
]
