"""Mechanisms: pure functions on arrays that add the noise, and know what it costs."""

from skfairdp.mechanisms._allocation import (
    allocate_posterior,
    allocate_unbiased,
    allocated_channel,
    posterior_error,
    unbiased_error,
)
from skfairdp.mechanisms._bits import bit_names, bit_weights, check_bit_counts, decode_bits, encode_bits
from skfairdp.mechanisms._codes import CodeWeights, code_probabilities, code_weights, draw_codes
from skfairdp.mechanisms._dropout import SensitiveWords, dropout_count, mask_words
from skfairdp.mechanisms._posterior import posterior_estimate, posterior_means
from skfairdp.mechanisms._protocols import (
    largest_randomization_factor,
    ome_channel,
    oue_channel,
    published_channel,
    sue_channel,
)
from skfairdp.mechanisms._randomised_response import (
    BinaryChannel,
    channel_from_logits,
    channel_loss,
    randomised_response,
)

__all__ = [
    "BinaryChannel",
    "CodeWeights",
    "SensitiveWords",
    "allocate_posterior",
    "allocate_unbiased",
    "allocated_channel",
    "bit_names",
    "bit_weights",
    "channel_from_logits",
    "channel_loss",
    "check_bit_counts",
    "code_probabilities",
    "code_weights",
    "decode_bits",
    "draw_codes",
    "dropout_count",
    "encode_bits",
    "largest_randomization_factor",
    "mask_words",
    "ome_channel",
    "oue_channel",
    "posterior_error",
    "posterior_estimate",
    "posterior_means",
    "published_channel",
    "randomised_response",
    "sue_channel",
    "unbiased_error",
]
