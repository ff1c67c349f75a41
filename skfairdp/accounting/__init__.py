"""What a release costs: guarantees, their composition, and the noise that an epsilon needs."""

from skfairdp.accounting._composition import compose, compose_parallel
from skfairdp.accounting._gaussian import (
    gaussian_delta,
    gaussian_epsilon,
    gaussian_log_delta,
    gaussian_mu,
    gaussian_sigma,
)
from skfairdp.accounting._guarantee import PrivacyGuarantee
from skfairdp.accounting._ledger import PrivacyLedger
from skfairdp.accounting._release import ReleaseMixin
from skfairdp.accounting._renyi import gaussian_rdp, pure_rdp, renyi_delta, renyi_epsilon

__all__ = [
    "PrivacyGuarantee",
    "PrivacyLedger",
    "ReleaseMixin",
    "compose",
    "compose_parallel",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_log_delta",
    "gaussian_mu",
    "gaussian_rdp",
    "gaussian_sigma",
    "pure_rdp",
    "renyi_delta",
    "renyi_epsilon",
]
