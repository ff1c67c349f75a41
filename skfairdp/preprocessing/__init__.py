"""Transformers that privatise, encode or erase."""

from skfairdp.preprocessing._gaussian import GaussianPrivatizer
from skfairdp.preprocessing._inlp import INLPEraser
from skfairdp.preprocessing._laplace import LaplacePrivatizer
from skfairdp.preprocessing._leace import LEACEEraser
from skfairdp.preprocessing._ome import OMEEncoder
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
