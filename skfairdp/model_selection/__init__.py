"""Choose a model by accuracy, fairness and privacy at once."""

from skfairdp.model_selection._pareto import pareto_front
from skfairdp.model_selection._rules import DistanceToOptimum, ParetoFront, RelaxationThreshold

__all__ = ["DistanceToOptimum", "ParetoFront", "RelaxationThreshold", "pareto_front"]
