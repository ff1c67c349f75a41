"""How every released value leaves an estimator: check, charge, draw, in this order and each once."""

import sys
from dataclasses import dataclass, replace
from typing import Any

from sklearn.utils.validation import check_is_fitted

from skfairdp._process import process_token
from skfairdp.dp._guarantee import PrivacyGuarantee
from skfairdp.dp._mechanism import Mechanism
from skfairdp.dp._open_ledgers import (
    can_be_reached,
    charge,
    check_ledgers_came_along,
    is_paid,
    is_worker,
    keep_sent_ledgers,
    ledgers_to_send,
    let_travel,
    open_ledgers,
    was_entered_here,
)
from skfairdp.random import RandomStream


@dataclass(frozen=True)
class FrozenRelease:
    """What an estimator releases by, replaced as one object, so that no thread sees a half of another fit.

    Attributes
    ----------
    mechanism : Mechanism
        Checks values and draws noise.
    stream : RandomStream
        Where the noise comes from.
    receipt : PrivacyGuarantee
        What one release costs each record.
    """

    mechanism: Mechanism
    stream: RandomStream
    receipt: PrivacyGuarantee


class ChargingMixin:
    """Base of every object that charges the open ledgers, in this process and in the workers that it is sent to."""

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        let_travel(cls)

    def _charge(self, receipt: PrivacyGuarantee) -> None:
        """Charge a release to all open ledgers, or raise and charge none."""
        if not is_paid():
            check_ledgers_came_along(self)
        charge(receipt, source=type(self).__name__, sent=self.__dict__.get("_sent_ledgers", ()))

    def __sklearn_clone__(self) -> Any:
        copy = super().__sklearn_clone__()  # type: ignore[misc]
        copy._charge_as(self)
        return copy

    def _charge_as(self, original: "ChargingMixin") -> None:
        """Charge the ledgers that came with another estimator: a worker makes clones and parts of what it was sent."""
        for name in ("_sent_ledgers", "_pickled_under"):
            if name in original.__dict__:
                self.__dict__[name] = original.__dict__[name]

    def __getstate__(self) -> dict[str, Any]:
        given: Any = super().__getstate__()  # may be our own __dict__, which must stay as it is
        state = dict(given or {})
        # Copies within a worker keep the ledgers; another process takes them from the reducers only, ...
        if copied := state.pop("_sent_ledgers", ()):
            state["_sent_to"] = (process_token(), copied)
        # ... but Dask pickles by plain pickle, in the client and again in the scheduler, and takes no reducers.
        if "distributed" in sys.modules and (sent := ledgers_to_send(self)):
            state["_sent_ledgers"] = sent
        # Only the names of sessions, by which a worker sees that the ledgers did not come along.
        # Names that came from a file say nothing about the workers of this process.
        brought = state.pop("_pickled_under", ())
        names = (*(session.id for session in open_ledgers()), *(brought if is_worker() else ()))
        if names:
            state["_pickled_under"] = tuple(dict.fromkeys(names))
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        token, copied = state.pop("_sent_to", (b"", ()))
        carried = state.pop("_sent_ledgers", ())
        if token == process_token():
            keep_sent_ledgers(self, copied)
        elif "distributed" in sys.modules:
            # A model that is loaded from a file may come from a program whose ledger is gone. Workers must not go on.
            keep_sent_ledgers(self, carried if is_worker() else tuple(filter(can_be_reached, carried)))
        if names := tuple(name for name in state.pop("_pickled_under", ()) if not was_entered_here(name)):
            state["_pickled_under"] = names
        if hasattr(super(), "__setstate__"):
            super().__setstate__(state)  # type: ignore[misc]
        else:
            self.__dict__.update(state)


class ReleaseMixin(ChargingMixin):
    """Base of every estimator that releases noisy values.

    ``fit`` ends with :meth:`_freeze`, which fixes the mechanism, the stream of its noise and the receipt. Every public
    method that returns noisy values computes them by :meth:`_values` and calls :meth:`_release`; nothing else draws.

    The fitted estimator then has ``mechanism_``, which parameters that are changed later do not reach; ``privacy_``,
    what one release costs a new record; and ``training_privacy_``, what it costs a record that ``fit`` was given.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.base import BaseEstimator, TransformerMixin
    >>> from sklearn.utils.validation import check_is_fitted, validate_data
    >>> from skfairdp.accounting import PrivacyLedger
    >>> from skfairdp.dp import ReleaseMixin
    >>> from skfairdp.mechanisms import laplace_mechanism
    >>> from skfairdp.random import noise_stream
    >>> class Clipped(ReleaseMixin, TransformerMixin, BaseEstimator):
    ...     def fit(self, X, y=None):
    ...         X = validate_data(self, X)
    ...         self._freeze(laplace_mechanism(1.0, "clip", X.shape[1]), noise_stream(None))
    ...         return self
    ...     def _values(self, X):
    ...         check_is_fitted(self)
    ...         return validate_data(self, X, reset=False)
    ...     def transform(self, X):
    ...         return self._release(self._values(X))
    >>> with PrivacyLedger() as ledger:
    ...     released = Clipped().fit_transform(np.zeros((5, 2)))
    >>> ledger.total().epsilon
    1.0

    A transformer that learns from its rows without noise says so, and ``fit_transform`` releases them at that price:

    >>> class Centred(Clipped):
    ...     def fit(self, X, y=None):
    ...         self.mean_ = X.mean(axis=0)
    ...         return super().fit(X)
    ...     def _learned_without_noise(self):
    ...         return "mean of every column"
    ...     def _values(self, X):
    ...         return super()._values(X) - self.mean_
    ...     def fit_transform(self, X, y=None):
    ...         values = self.fit(X)._values(X)
    ...         return self._release(values, self.training_privacy_)
    >>> with PrivacyLedger() as ledger:
    ...     released = Centred().fit_transform(np.zeros((5, 2)))
    >>> ledger.total().epsilon
    inf
    """

    mechanism_: Mechanism
    privacy_: PrivacyGuarantee
    _frozen: FrozenRelease

    def _freeze(
        self, mechanism: Mechanism, stream: RandomStream, receipt: PrivacyGuarantee | None = None, **words: Any
    ) -> None:
        """Fix what will be released. By default the mechanism writes the receipt, with ``words`` as further fields."""
        if receipt is None:
            receipt = mechanism.guarantee(seed=stream.identity, **words)
        self._frozen = FrozenRelease(mechanism, stream, receipt)
        self.mechanism_, self.privacy_ = mechanism, receipt

    def _values(self, X: Any) -> Any:
        """Check that this is fitted, check X, and compute what the mechanism takes, without a random draw."""
        raise TypeError(f"{type(self).__name__} must define _values(X), which computes the values to release.")

    def _learned_without_noise(self) -> str | None:
        """Name what ``fit`` learns from its rows without noise; ``None`` if nothing."""
        return None

    @property
    def training_privacy_(self) -> PrivacyGuarantee:
        """What a release costs a record that ``fit`` was given, too."""
        check_is_fitted(self)
        learned = self._learned_without_noise()
        return self.privacy_.undone([] if learned is None else [fitted_on_the_same(type(self).__name__, learned)])

    def _release(self, values: Any, receipt: PrivacyGuarantee | None = None) -> Any:
        """Check, charge, draw. Values that are refused cost nothing, and a refused charge draws no noise.

        Parameters
        ----------
        values : object
            What the mechanism takes, as :meth:`_values` returns it.
        receipt : PrivacyGuarantee, optional
            What is charged, where that is not ``privacy_``.
        """
        frozen = self._frozen
        frozen.mechanism.check(values)
        self._charge(receipt or frozen.receipt)
        return frozen.mechanism.draw(values, frozen.stream)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        # The noise of a copy comes from another stream than that of the original.
        if "_frozen" in self.__dict__:
            frozen = self._frozen
            if any(event.seed != frozen.stream.identity for event, _ in frozen.receipt.events):
                self._frozen = replace(frozen, receipt=frozen.receipt.with_seed(frozen.stream.identity))
                self.privacy_ = self.privacy_.with_seed(frozen.stream.identity)


def fitted_on_the_same(name: str, learned: str) -> str:
    """Say that a step has learned from the rows that it releases."""
    return f"{name} was fitted on the same rows ({learned})"
