"""Transformers that privatise, encode or erase."""

from skfairdp.preprocessing._inlp_eraser import INLPEraser
from skfairdp.preprocessing._leace_eraser import LEACEEraser
from skfairdp.preprocessing._ome_encoder import OMEEncoder
from skfairdp.preprocessing._privatizers import GaussianPrivatizer, LaplacePrivatizer
from skfairdp.preprocessing._scalers import PrivateScaler, PublicScaler
from skfairdp.preprocessing._word_dropout import WordDropout

__all__ = [
    "GaussianPrivatizer",
    "INLPEraser",
    "LEACEEraser",
    "LaplacePrivatizer",
    "OMEEncoder",
    "PrivateScaler",
    "PublicScaler",
    "WordDropout",
]
