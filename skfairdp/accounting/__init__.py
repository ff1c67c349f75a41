"""What a release costs: guarantees, their composition, and the noise that an epsilon needs."""

from skfairdp.accounting._composition import compose, compose_parallel
from skfairdp.accounting._dropout import amplify_by_dropout, dropout_epsilon
from skfairdp.accounting._gaussian import (
    gaussian_delta,
    gaussian_epsilon,
    gaussian_log_delta,
    gaussian_mu,
    gaussian_sigma,
)
from skfairdp.accounting._gnmax import (
    binary_vote_rdp,
    confident_gnmax_guarantee,
    confident_gnmax_mu,
    gnmax_guarantee,
    gnmax_mu,
    gnmax_noise_scale,
)
from skfairdp.accounting._gnmax_data import (
    confident_gnmax_data_dependent_rdp,
    gnmax_data_dependent_epsilon,
    gnmax_data_dependent_rdp,
)
from skfairdp.accounting._guarantee import PrivacyGuarantee
from skfairdp.accounting._ledger import PrivacyLedger

# For estimators, which tell of their releases; users have no need to call them.
from skfairdp.accounting._registry import carried_ledgers as carried_ledgers
from skfairdp.accounting._registry import charge_release as charge_release
from skfairdp.accounting._registry import receive_ledgers as receive_ledgers
from skfairdp.accounting._release import ReleaseMixin
from skfairdp.accounting._renyi import gaussian_rdp, pure_rdp, renyi_delta, renyi_epsilon

__all__ = [
    "PrivacyGuarantee",
    "PrivacyLedger",
    "ReleaseMixin",
    "amplify_by_dropout",
    "binary_vote_rdp",
    "compose",
    "compose_parallel",
    "confident_gnmax_data_dependent_rdp",
    "confident_gnmax_guarantee",
    "confident_gnmax_mu",
    "dropout_epsilon",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_log_delta",
    "gaussian_mu",
    "gaussian_rdp",
    "gaussian_sigma",
    "gnmax_data_dependent_epsilon",
    "gnmax_data_dependent_rdp",
    "gnmax_guarantee",
    "gnmax_mu",
    "gnmax_noise_scale",
    "pure_rdp",
    "renyi_delta",
    "renyi_epsilon",
]
