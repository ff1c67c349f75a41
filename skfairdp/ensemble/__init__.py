"""Ensembles whose votes are private: PATE, and the analysis of whom its noise harms."""

from skfairdp.ensemble._pate import DataDependentPrivacy, PATEClassifier
from skfairdp.ensemble._pate_fairness import PATEFairness, pate_fairness

__all__ = ["DataDependentPrivacy", "PATEClassifier", "PATEFairness", "pate_fairness"]
