"""Any classifier's answers, made fair by multipliers and private by proof."""

from skfairdp.postprocessing._fair_private import FairPrivateClassifier

__all__ = ["FairPrivateClassifier"]
