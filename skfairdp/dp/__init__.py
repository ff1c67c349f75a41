"""The privacy kernel: receipts and their composition, accounting, the ledger, and how a value is released."""

from skfairdp.dp._composition import ReleaseEvent
from skfairdp.dp._dropout_amplification import amplify_by_dropout, dropout_epsilon
from skfairdp.dp._gaussian_accounting import (
    gaussian_delta,
    gaussian_epsilon,
    gaussian_log_delta,
    gaussian_mu,
    gaussian_sigma,
)
from skfairdp.dp._gnmax_accounting import (
    REPLACE_ONE,
    VOTES_COVER,
    VOTES_DO_NOT_COVER,
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
from skfairdp.dp._guarantee import (
    ONE_RELEASE,
    REFUSED_TABLES,
    REPLACE_ONE_RECORD,
    TRAINING_DATA,
    PrivacyGuarantee,
    as_one_event,
    compose,
    compose_parallel,
)
from skfairdp.dp._ledger import PrivacyLedger
from skfairdp.dp._mechanism import Mechanism, OpenMechanism, check_columns, equality_ratio
from skfairdp.dp._open_ledgers import charge, paying
from skfairdp.dp._private_selection import (
    TrialBudget,
    TruncatedNegativeBinomial,
    selection_budget,
    selection_epsilon,
    selection_rdp,
)
from skfairdp.dp._release import ChargingMixin, ReleaseMixin, fitted_on_the_same
from skfairdp.dp._renyi_accounting import (
    DEFAULT_ORDERS,
    gaussian_rdp,
    pure_rdp,
    renyi_delta,
    renyi_epsilon,
    renyi_epsilons,
)

__all__ = ["Mechanism", "OpenMechanism", "PrivacyGuarantee", "PrivacyLedger", "ReleaseEvent", "ReleaseMixin", "compose"]
