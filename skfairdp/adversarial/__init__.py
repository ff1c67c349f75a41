"""Classifiers that learn a private representation against an adversary."""

from skfairdp.adversarial._federate import FederateClassifier

__all__ = ["FederateClassifier"]
