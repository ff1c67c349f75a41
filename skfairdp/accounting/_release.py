"""What every estimator that releases noisy values inherits."""

from typing import Any

from skfairdp.accounting import _registry
from skfairdp.accounting._guarantee import PrivacyGuarantee
from skfairdp.accounting._store import Address

_STATE_KEY = "_ledgers_of_sender"


class ReleaseMixin:
    """Tells the active ledgers of a release before it is made.

    A public method that hands out noisy values calls ``self._spend(guarantee)`` before
    it computes them. Without a ledger this does nothing. Pickled copies carry the
    addresses of the ledgers that were active, so that worker processes charge them as well.
    """

    def _spend(self, guarantee: PrivacyGuarantee) -> None:
        """Charge one release to every active ledger, or raise and charge nobody.

        Parameters
        ----------
        guarantee : PrivacyGuarantee
            What this release costs each of its rows.
        """
        heard = _heard_of(self)
        gone = _registry.charge(guarantee, own=heard, source=type(self).__name__)
        if heard and gone:
            self._ledgers = tuple(address for address in heard if address.key not in gone)

    def __getstate__(self) -> dict[str, Any]:
        given: Any = super().__getstate__()  # may be our own __dict__, which must stay as it is
        state = dict(given or {})
        state.pop("_ledgers", None)
        listening = tuple(_registry.addresses(_heard_of(self)).values())
        if listening:
            state[_STATE_KEY] = (_registry.process_token(), listening, _heard_of(self))
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        token, listening, heard = state.pop(_STATE_KEY, (None, (), ()))
        if hasattr(super(), "__setstate__"):
            super().__setstate__(state)  # type: ignore[misc]
        else:
            self.__dict__.update(state)
        if token is not None and token != _registry.process_token():
            heard = tuple(address for address in listening if not _registry.owned(address))
            _registry.inherit(heard)
        if heard:
            self._ledgers = heard

    def __sklearn_clone__(self) -> Any:
        clone = super().__sklearn_clone__()  # type: ignore[misc]
        if heard := _heard_of(self):
            clone._ledgers = heard
        return clone


def _heard_of(owner: Any) -> tuple[Address, ...]:
    """Return the ledgers that an object brought along from the process it was pickled in."""
    return owner.__dict__.get("_ledgers", ())
