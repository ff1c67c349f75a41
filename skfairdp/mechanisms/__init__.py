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
from skfairdp.mechanisms._farthest import farthest_pairs
from skfairdp.mechanisms._gaussian import rounded_gaussian
from skfairdp.mechanisms._gaussian_release import gaussian_release, plan_gaussian
from skfairdp.mechanisms._laplace import discrete_laplace
from skfairdp.mechanisms._laplace_release import exact_laplace_epsilon, laplace_release, plan_laplace
from skfairdp.mechanisms._normalise import l1_sensitivity, l2_sensitivity, normalise, normalise_to_grid
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
from skfairdp.mechanisms._votes import (
    binary_labels,
    binary_slack,
    hard_labels,
    noisy_votes,
    soft_labels,
    vote_slack,
)

__all__ = [
    "BinaryChannel",
    "CodeWeights",
    "SensitiveWords",
    "allocate_posterior",
    "allocate_unbiased",
    "allocated_channel",
    "binary_labels",
    "binary_slack",
    "bit_names",
    "bit_weights",
    "channel_from_logits",
    "channel_loss",
    "check_bit_counts",
    "code_probabilities",
    "code_weights",
    "decode_bits",
    "discrete_laplace",
    "draw_codes",
    "dropout_count",
    "encode_bits",
    "exact_laplace_epsilon",
    "farthest_pairs",
    "gaussian_release",
    "hard_labels",
    "l1_sensitivity",
    "l2_sensitivity",
    "laplace_release",
    "largest_randomization_factor",
    "mask_words",
    "noisy_votes",
    "normalise",
    "normalise_to_grid",
    "ome_channel",
    "oue_channel",
    "plan_gaussian",
    "plan_laplace",
    "posterior_error",
    "posterior_estimate",
    "posterior_means",
    "published_channel",
    "randomised_response",
    "rounded_gaussian",
    "soft_labels",
    "sue_channel",
    "unbiased_error",
    "vote_slack",
]
