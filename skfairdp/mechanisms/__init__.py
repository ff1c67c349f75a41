"""Mechanisms: what draws the noise and knows its price; functions on arrays, and one frozen object for each release."""

from skfairdp.dp import Mechanism, OpenMechanism
from skfairdp.mechanisms._answer_mechanism import AnswerMechanism, best_answers
from skfairdp.mechanisms._bit_allocation import (
    allocate_posterior,
    allocate_unbiased,
    allocated_bit_mechanism,
    posterior_error,
    unbiased_error,
)
from skfairdp.mechanisms._bit_mechanism import (
    BitMechanism,
    largest_randomization_factor,
    ome_mechanism,
    oue_mechanism,
    published_bit_mechanism,
    randomised_response,
    sue_mechanism,
)
from skfairdp.mechanisms._bounded_sums import BoundedSums, bounded_sums
from skfairdp.mechanisms._code_mechanism import CodeMechanism, code_mechanism, code_probabilities, draw_codes
from skfairdp.mechanisms._fixed_point_bits import (
    FixedPointBits,
    bit_weights,
    decode_bits,
    encode_bits,
    posterior_estimate,
    posterior_means,
)
from skfairdp.mechanisms._gaussian_mechanism import (
    GaussianMechanism,
    GaussianNoise,
    gaussian_mechanism,
    gaussian_release,
    rounded_gaussian,
)
from skfairdp.mechanisms._laplace_mechanism import (
    LaplaceMechanism,
    discrete_laplace,
    exact_laplace_epsilon,
    laplace_mechanism,
    laplace_release,
)
from skfairdp.mechanisms._masked_words import SensitiveWords, mask_words
from skfairdp.mechanisms._normalise import l1_sensitivity, l2_sensitivity, normalise
from skfairdp.mechanisms._row_noise import farthest_pairs
from skfairdp.mechanisms._selection_mechanism import SelectionMechanism, selection_mechanism
from skfairdp.mechanisms._vote_mechanism import (
    VoteMechanism,
    answer_log_probabilities,
    binary_labels,
    hard_labels,
    noisy_votes,
    soft_labels,
    vote_mechanism,
)

__all__ = [
    "AnswerMechanism",
    "BitMechanism",
    "BoundedSums",
    "CodeMechanism",
    "FixedPointBits",
    "GaussianMechanism",
    "GaussianNoise",
    "LaplaceMechanism",
    "Mechanism",
    "OpenMechanism",
    "SelectionMechanism",
    "SensitiveWords",
    "VoteMechanism",
    "allocate_posterior",
    "allocate_unbiased",
    "allocated_bit_mechanism",
    "answer_log_probabilities",
    "best_answers",
    "binary_labels",
    "bit_weights",
    "bounded_sums",
    "code_mechanism",
    "code_probabilities",
    "decode_bits",
    "discrete_laplace",
    "draw_codes",
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
    "normalise",
    "ome_mechanism",
    "oue_mechanism",
    "posterior_error",
    "posterior_estimate",
    "posterior_means",
    "published_bit_mechanism",
    "randomised_response",
    "rounded_gaussian",
    "selection_mechanism",
    "soft_labels",
    "sue_mechanism",
    "unbiased_error",
    "vote_mechanism",
]

# For other folders of skfairdp; not public.
from skfairdp.mechanisms._bit_mechanism import BLOCK_BITS
from skfairdp.mechanisms._fixed_point_bits import bit_names, check_bit_counts
from skfairdp.mechanisms._laplace_mechanism import laplace_scale
from skfairdp.mechanisms._masked_words import dropout_count
from skfairdp.mechanisms._vote_mechanism import POSTPROCESSES, normal_quadrature
