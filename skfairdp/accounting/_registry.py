"""Which ledgers listen in this process."""

import threading

from skfairdp.accounting._guarantee import PrivacyGuarantee

lock = threading.RLock()


def charge(guarantee: PrivacyGuarantee, owner: object = None) -> None:
    """Record a release with every ledger that listens; a ledger may refuse it."""
