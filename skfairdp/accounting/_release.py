"""What every estimator that releases noisy values inherits."""

from skfairdp.accounting import _registry
from skfairdp.accounting._guarantee import PrivacyGuarantee


class ReleaseMixin:
    """Tells the active ledgers of a release before it is made.

    A public method that hands out noisy values calls ``self._spend(guarantee)`` before
    it computes them. Without a ledger this does nothing.
    """

    def _spend(self, guarantee: PrivacyGuarantee) -> None:
        """Charge one release to every active ledger, or raise and charge nobody.

        Parameters
        ----------
        guarantee : PrivacyGuarantee
            What this release costs each of its rows.
        """
        _registry.charge(guarantee, self)
