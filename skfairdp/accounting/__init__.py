"""What a release costs: guarantees, their composition, and the noise that an epsilon needs."""

from skfairdp.accounting._dropout import amplify_by_dropout, dropout_epsilon
from skfairdp.accounting._events import ReleaseEvent
from skfairdp.accounting._gaussian import (
    gaussian_delta,
    gaussian_epsilon,
    gaussian_log_delta,
    gaussian_mu,
    gaussian_sigma,
)
from skfairdp.accounting._gnmax import (
    REPLACE_ONE,
    VOTES_COVER,
    VOTES_DO_NOT_COVER,
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
from skfairdp.accounting._guarantee import (
    KNOWN_SEED,
    ONE_RELEASE,
    REFUSED_TABLES,
    REPLACE_ONE_RECORD,
    TRAINING_DATA,
    PrivacyGuarantee,
    compose,
    compose_parallel,
)
from skfairdp.accounting._ledger import PrivacyLedger
from skfairdp.accounting._registry import carried_ledgers, charge_release, receive_ledgers
from skfairdp.accounting._renyi import (
    DEFAULT_ORDERS,
    gaussian_rdp,
    pure_rdp,
    renyi_delta,
    renyi_epsilon,
    renyi_epsilons,
)

__all__ = [
    "DEFAULT_ORDERS",
    "KNOWN_SEED",
    "ONE_RELEASE",
    "REFUSED_TABLES",
    "REPLACE_ONE",
    "REPLACE_ONE_RECORD",
    "TRAINING_DATA",
    "VOTES_COVER",
    "VOTES_DO_NOT_COVER",
    "PrivacyGuarantee",
    "PrivacyLedger",
    "ReleaseEvent",
    "amplify_by_dropout",
    "binary_vote_rdp",
    "carried_ledgers",
    "charge_release",
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
    "receive_ledgers",
    "renyi_delta",
    "renyi_epsilon",
    "renyi_epsilons",
]
