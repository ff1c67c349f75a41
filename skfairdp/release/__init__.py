"""How a value leaves: the mixin of every estimator that releases, and what a whole pipeline costs."""

from skfairdp.release._paid_release import transform_in_blocks
from skfairdp.release._pipeline_guarantee import pipeline_guarantee
from skfairdp.release._release_mixin import ReleaseMixin, ReleaseTransformerMixin
from skfairdp.release._word_guarantee import word_guarantee

__all__ = [
    "ReleaseMixin",
    "ReleaseTransformerMixin",
    "pipeline_guarantee",
    "transform_in_blocks",
    "word_guarantee",
]

# For other folders of skfairdp; not public.
from skfairdp.release._paid_release import PriceOfRows, paid_before, price_of_new_rows
from skfairdp.release._pipeline_guarantee import (
    check_public_rows,
    find_mixed_rows,
    price_in_program,
    steps_that_learn_in_clear,
    steps_that_mix_rows,
    without_protection,
)
