"""What every estimator that releases noisy values inherits."""

from typing import Any

from skfairdp.accounting._guarantee import PrivacyGuarantee
from skfairdp.accounting._registry import carried_ledgers, charge_release, receive_ledgers

_STATE_KEY = "_ledgers_of_sender"


class ReleaseMixin:
    """Tells the active ledgers of a release before it is made.

    A public method that hands out noisy values calls ``self._spend(guarantee)`` before
    it computes them. Without a ledger this does nothing. Pickled copies say which ledgers were active, for
    processes that could not know otherwise.
    """

    def _spend(self, guarantee: PrivacyGuarantee) -> None:
        """Charge one release to every active ledger, or raise and charge nobody.

        Parameters
        ----------
        guarantee : PrivacyGuarantee
            What this release costs each of its rows.
        """
        charge_release(guarantee, source=type(self).__name__)

    def __getstate__(self) -> dict[str, Any]:
        given: Any = super().__getstate__()  # may be our own __dict__, which must stay as it is
        state = dict(given or {})
        if carried := carried_ledgers():
            state[_STATE_KEY] = carried
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        carried = state.pop(_STATE_KEY, ())
        if hasattr(super(), "__setstate__"):
            super().__setstate__(state)  # type: ignore[misc]
        else:
            self.__dict__.update(state)
        receive_ledgers(carried)
