"""What a release costs: guarantees, their composition, and the noise that an epsilon needs."""

from skfairdp.accounting._composition import ReleaseEvent
from skfairdp.accounting._dropout_amplification import amplify_by_dropout, dropout_epsilon
from skfairdp.accounting._gaussian_accounting import (
    gaussian_delta,
    gaussian_epsilon,
    gaussian_log_delta,
    gaussian_mu,
    gaussian_sigma,
)
from skfairdp.accounting._gnmax_accounting import (
    binary_vote_rdp,
    confident_gnmax_data_dependent_rdp,
    confident_gnmax_guarantee,
    confident_gnmax_mu,
    gnmax_data_dependent_epsilon,
    gnmax_data_dependent_rdp,
    gnmax_guarantee,
    gnmax_mu,
    gnmax_noise_scale,
)
from skfairdp.accounting._guarantee import PrivacyGuarantee, compose, compose_parallel
from skfairdp.accounting._ledger import PrivacyLedger
from skfairdp.accounting._private_selection import (
    TrialBudget,
    TruncatedNegativeBinomial,
    selection_budget,
    selection_epsilon,
    selection_rdp,
)
from skfairdp.accounting._renyi_accounting import gaussian_rdp, pure_rdp, renyi_delta, renyi_epsilon, renyi_epsilons

__all__ = [
    "PrivacyGuarantee",
    "PrivacyLedger",
    "ReleaseEvent",
    "TrialBudget",
    "TruncatedNegativeBinomial",
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
    "renyi_epsilons",
    "selection_budget",
    "selection_epsilon",
    "selection_rdp",
]

# For other folders of skfairdp; not public.
from skfairdp.accounting._active_ledgers import carried_ledgers, charge_release, receive_ledgers, withheld_releases
from skfairdp.accounting._gnmax_accounting import REPLACE_ONE, VOTES_COVER, VOTES_DO_NOT_COVER
from skfairdp.accounting._guarantee import ONE_RELEASE, REFUSED_TABLES, REPLACE_ONE_RECORD, TRAINING_DATA, as_one_event
from skfairdp.accounting._renyi_accounting import DEFAULT_ORDERS
