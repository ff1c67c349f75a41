"""Ensembles whose votes are private: PATE, and the analysis of whom its noise harms."""

from skfairdp.ensemble._fairness import pate_fairness
from skfairdp.ensemble._fairness_result import PATEFairness
from skfairdp.ensemble._pate import PATEClassifier
from skfairdp.ensemble._private_part import DataDependentPrivacy

__all__ = ["DataDependentPrivacy", "PATEClassifier", "PATEFairness", "pate_fairness"]
