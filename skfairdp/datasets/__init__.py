"""Data whose bias has knobs, and real data that papers use."""

from skfairdp.datasets._classification import make_biased_classification
from skfairdp.datasets._text import make_biased_text

__all__ = ["make_biased_classification", "make_biased_text"]
