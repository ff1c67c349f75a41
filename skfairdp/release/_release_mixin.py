"""How every released value leaves an estimator: all that can fail is checked, the price is paid, noise is drawn."""

from contextvars import ContextVar
from typing import Any

from sklearn.utils.validation import check_is_fitted

from skfairdp._process import process_token
from skfairdp.accounting import PrivacyGuarantee, carried_ledgers, charge_release, receive_ledgers
from skfairdp.mechanisms import Mechanism
from skfairdp.random import RandomStream
from skfairdp.release._pipeline_guarantee import price_in_program, undone_by

_STATE_KEY = "_ledgers_of_sender"
_PROGRAM_KEY = "_program_of_sender"

#: The estimator whose ``fit_transform`` is releasing the very rows that it has just been fitted on.
_releases_its_own_rows: ContextVar[Any] = ContextVar("releases_its_own_rows", default=None)


class ReleaseMixin:
    """Base of every estimator that releases noisy values.

    ``fit`` ends with :meth:`_seal`, which fixes the mechanism, the stream of its noise and the receipt. Every public
    method that hands out noisy values calls :meth:`_release`, and nothing else draws. An estimator that releases
    in ``fit`` itself calls :meth:`_let_out`.

    The fitted estimator then has ``mechanism_``, which parameters that are changed later do not reach, and
    ``privacy_``, what one release costs each of its rows.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.base import BaseEstimator, TransformerMixin
    >>> from sklearn.utils.validation import validate_data
    >>> from skfairdp.accounting import PrivacyLedger
    >>> from skfairdp.mechanisms import laplace_mechanism
    >>> from skfairdp.random import noise_stream
    >>> from skfairdp.release import ReleaseMixin
    >>> class Clipped(ReleaseMixin, TransformerMixin, BaseEstimator):
    ...     def fit(self, X, y=None):
    ...         X = validate_data(self, X)
    ...         self._seal(laplace_mechanism(1.0, "clip", X.shape[1]), noise_stream(None))
    ...         return self
    ...     def _values_to_release(self, X):
    ...         return validate_data(self, X, reset=False)
    ...     def transform(self, X):
    ...         return self._release(X)
    >>> with PrivacyLedger() as ledger:
    ...     released = Clipped().fit_transform(np.zeros((5, 2)))
    >>> ledger.total().epsilon
    1.0
    """

    mechanism_: Mechanism
    privacy_: PrivacyGuarantee
    _stream: RandomStream

    def _seal(self, mechanism: Mechanism, stream: RandomStream, **words: Any) -> None:
        """Fix what will be released; ``words`` say what the guarantee covers and what it does not."""
        self.mechanism_ = mechanism
        self._stream = stream
        self.privacy_ = mechanism.guarantee(seed=stream.identity, **words)

    def _values_to_release(self, X: Any) -> Any:
        """Check X and compute what the mechanism takes, without a random draw; all that can fail fails here."""
        raise TypeError(f"{type(self).__name__} must say how rows become values to release (_values_to_release).")

    def _hand_out(self, released: Any, values: Any) -> Any:
        """Give what was released its final form; this is post-processing, and may look at the type of values only."""
        return released

    def _learned_in_clear(self) -> str | None:
        """Name what ``fit`` has learned from its rows without noise; ``None`` if nothing."""
        return None

    def _release(self, X: Any) -> Any:
        """Release each row of X once."""
        check_is_fitted(self)
        values = self._values_to_release(X)
        return self._hand_out(self._let_out(values, self.mechanism_, self._stream, self.privacy_), values)

    def _let_out(self, values: Any, mechanism: Mechanism, stream: RandomStream, guarantee: PrivacyGuarantee) -> Any:
        """Check, spend, draw: in this order, so that neither a mistake nor a refusal costs or tells anything."""
        mechanism.check(values)
        guarantee = _as_drawn(guarantee, stream)
        if guarantee.epsilon < mechanism.event.epsilon and guarantee.delta <= mechanism.event.delta:
            raise RuntimeError(
                f"{type(self).__name__} was given another mechanism while it was releasing, in another thread perhaps: "
                f"its receipt says epsilon={guarantee.epsilon:g}, and the mechanism would spend "
                f"{mechanism.event.epsilon:g}. Nothing was released; call again."
            )
        learned = self._learned_in_clear() if _releases_its_own_rows.get() is self else None
        price = price_in_program(self, guarantee, learned, self.__dict__.get("_undone_where_sent_from", ()))
        charge_release(price, source=type(self).__name__)
        return mechanism.release(values, stream)

    def __getstate__(self) -> dict[str, Any]:
        given: Any = super().__getstate__()  # may be our own __dict__, which must stay as it is
        state = dict(given or {})
        state.pop("_undone_where_sent_from", None)
        if undone := undone_by(self):  # a pipeline is sending its steps to workers, who cannot see it
            state[_PROGRAM_KEY] = (process_token(), undone)
        if carried := carried_ledgers():
            state[_STATE_KEY] = carried
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        receive_ledgers(state.pop(_STATE_KEY, ()))
        token, undone = state.pop(_PROGRAM_KEY, (None, ()))
        if token not in (None, process_token()):
            state["_undone_where_sent_from"] = undone
        if hasattr(super(), "__setstate__"):
            super().__setstate__(state)  # type: ignore[misc]
        else:
            self.__dict__.update(state)
        if "_stream" in self.__dict__ and "privacy_" in self.__dict__:
            self.privacy_ = _as_drawn(self.privacy_, self._stream)


class ReleaseTransformerMixin(ReleaseMixin):
    """A :class:`ReleaseMixin` for transformers, which knows when it releases the very rows that it was fitted on.

    Put it before ``TransformerMixin``, whose ``fit_transform`` it replaces.

    Examples
    --------
    What ``fit`` learns from rows without noise is not hidden by noise on the same rows, so that they cost infinity:

    >>> import numpy as np
    >>> from sklearn.base import BaseEstimator, TransformerMixin
    >>> from skfairdp.accounting import PrivacyLedger
    >>> from skfairdp.mechanisms import laplace_mechanism
    >>> from skfairdp.random import noise_stream
    >>> from skfairdp.release import ReleaseTransformerMixin
    >>> class Centred(ReleaseTransformerMixin, TransformerMixin, BaseEstimator):
    ...     def fit(self, X, y=None):
    ...         self.mean_ = X.mean(axis=0)
    ...         self._seal(laplace_mechanism(1.0, "clip", X.shape[1]), noise_stream(None))
    ...         return self
    ...     def _learned_in_clear(self):
    ...         return "mean of every column"
    ...     def _values_to_release(self, X):
    ...         return X - self.mean_
    ...     def transform(self, X):
    ...         return self._release(X)
    >>> X = np.zeros((5, 2))
    >>> with PrivacyLedger() as other_rows:
    ...     released = Centred().fit(X).transform(X + 1)
    >>> with PrivacyLedger() as same_rows:
    ...     released = Centred().fit_transform(X)
    >>> other_rows.total().epsilon, same_rows.total().epsilon
    (1.0, inf)
    """

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """Fit, then release the same rows.

        Parameters
        ----------
        X : array-like
            The rows.
        y : array-like, optional
            Their labels, where ``fit`` takes some.
        **fit_params : dict
            Further arguments of ``fit``.

        Returns
        -------
        ndarray
            What ``transform`` returns.
        """
        self.fit(X, y, **fit_params)  # type: ignore[attr-defined]
        token = _releases_its_own_rows.set(self)
        try:
            return self.transform(X)  # type: ignore[attr-defined]
        finally:
            _releases_its_own_rows.reset(token)


def _as_drawn(guarantee: PrivacyGuarantee, stream: RandomStream) -> PrivacyGuarantee:
    """Say from which stream the noise comes now: that of a copy is another one than that of the original."""
    if all(event.seed == stream.identity for event, _ in guarantee.events):
        return guarantee
    return guarantee.with_seed(stream.identity)
