"""How a value leaves: the one door of every estimator that releases, and what a whole pipeline costs."""

from skfairdp.release._door import ReleaseMixin, ReleaseTransformerMixin
from skfairdp.release._pipelines import check_public_rows, pipeline_guarantee
from skfairdp.release._rows import find_mixed_rows

__all__ = ["ReleaseMixin", "ReleaseTransformerMixin", "check_public_rows", "find_mixed_rows", "pipeline_guarantee"]
