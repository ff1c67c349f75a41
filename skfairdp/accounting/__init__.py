"""What a release costs: guarantees, their composition, and the noise that an epsilon needs."""

from skfairdp.accounting._gaussian import (
    gaussian_delta,
    gaussian_epsilon,
    gaussian_log_delta,
    gaussian_mu,
    gaussian_sigma,
)
from skfairdp.accounting._guarantee import PrivacyGuarantee
from skfairdp.accounting._release import ReleaseMixin

__all__ = [
    "PrivacyGuarantee",
    "ReleaseMixin",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_log_delta",
    "gaussian_mu",
    "gaussian_sigma",
]
