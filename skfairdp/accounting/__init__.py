"""What a release costs: guarantees, their composition, and the noise that an epsilon needs."""

from skfairdp.accounting._guarantee import PrivacyGuarantee

__all__ = ["PrivacyGuarantee"]
