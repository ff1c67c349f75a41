"""Mechanisms: pure functions on arrays that add the noise, and know what it costs."""

from skfairdp.mechanisms._allocation import (
    allocate_posterior,
    allocate_unbiased,
    allocated_channel,
    posterior_error,
    unbiased_error,
)
from skfairdp.mechanisms._bits import bit_names, bit_weights, check_bit_counts, decode_bits, encode_bits
from skfairdp.mechanisms._bounded_sums import BoundedSums, bounded_sums
from skfairdp.mechanisms._codes import CodeMechanism, code_mechanism, code_probabilities, draw_codes
from skfairdp.mechanisms._dropout import SensitiveWords, dropout_count, mask_words
from skfairdp.mechanisms._farthest import farthest_pairs
from skfairdp.mechanisms._fixed_point import FixedPointBits
from skfairdp.mechanisms._gaussian import rounded_gaussian
from skfairdp.mechanisms._gaussian_release import GaussianMechanism, gaussian_mechanism, gaussian_release
from skfairdp.mechanisms._laplace import discrete_laplace
from skfairdp.mechanisms._laplace_release import (
    LaplaceMechanism,
    exact_laplace_epsilon,
    laplace_mechanism,
    laplace_release,
)
from skfairdp.mechanisms._mechanism import Mechanism, OpenMechanism
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
    BLOCK_BITS,
    BinaryChannel,
    channel_from_logits,
    channel_loss,
    randomised_response,
)
from skfairdp.mechanisms._vote_release import VoteMechanism, vote_mechanism
from skfairdp.mechanisms._votes import (
    POSTPROCESSES,
    answer_log_probabilities,
    binary_labels,
    binary_slack,
    hard_labels,
    noisy_votes,
    normal_quadrature,
    soft_labels,
    vote_slack,
)

__all__ = [
    "BLOCK_BITS",
    "POSTPROCESSES",
    "BinaryChannel",
    "BoundedSums",
    "CodeMechanism",
    "FixedPointBits",
    "GaussianMechanism",
    "LaplaceMechanism",
    "Mechanism",
    "OpenMechanism",
    "SensitiveWords",
    "VoteMechanism",
    "allocate_posterior",
    "allocate_unbiased",
    "allocated_channel",
    "answer_log_probabilities",
    "binary_labels",
    "binary_slack",
    "bit_names",
    "bit_weights",
    "bounded_sums",
    "channel_from_logits",
    "channel_loss",
    "check_bit_counts",
    "code_mechanism",
    "code_probabilities",
    "decode_bits",
    "discrete_laplace",
    "draw_codes",
    "dropout_count",
    "encode_bits",
    "exact_laplace_epsilon",
    "farthest_pairs",
    "gaussian_mechanism",
    "gaussian_release",
    "hard_labels",
    "l1_sensitivity",
    "l2_sensitivity",
    "laplace_mechanism",
    "laplace_release",
    "largest_randomization_factor",
    "mask_words",
    "noisy_votes",
    "normal_quadrature",
    "normalise",
    "normalise_to_grid",
    "ome_channel",
    "oue_channel",
    "posterior_error",
    "posterior_estimate",
    "posterior_means",
    "published_channel",
    "randomised_response",
    "rounded_gaussian",
    "soft_labels",
    "sue_channel",
    "unbiased_error",
    "vote_mechanism",
    "vote_slack",
]
