"""Pipelines that know their price, and releases of rows in blocks."""

from skfairdp.pipeline._blocks import PriceOfRows, paid_before, price_of_new_rows, transform_in_blocks
from skfairdp.pipeline._guarantee import pipeline_guarantee, reasons_for_infinity
from skfairdp.pipeline._private_pipeline import PrivatePipeline, make_private_pipeline
from skfairdp.pipeline._word_guarantee import word_guarantee

__all__ = [
    "PrivatePipeline",
    "make_private_pipeline",
    "pipeline_guarantee",
    "transform_in_blocks",
    "word_guarantee",
]
