"""Classifiers that learn a private representation against an adversary."""

from skfairdp.adversarial._baselines import federate_baselines
from skfairdp.adversarial._federate import FederateClassifier
from skfairdp.adversarial._text import BagOfEmbeddingsEncoder

__all__ = ["BagOfEmbeddingsEncoder", "FederateClassifier", "federate_baselines"]
