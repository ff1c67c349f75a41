"""The mixin of every estimator that releases, and what a whole pipeline costs."""

from skfairdp.dp import ReleaseMixin
from skfairdp.pipeline import pipeline_guarantee, transform_in_blocks, word_guarantee

__all__ = ["ReleaseMixin", "pipeline_guarantee", "transform_in_blocks", "word_guarantee"]
