"""What every mechanism is: one frozen object that knows its price, draws the noise, and can be audited."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from skfairdp.dp._composition import ReleaseEvent
from skfairdp.dp._guarantee import PrivacyGuarantee
from skfairdp.random import RandomStream, SeedIdentity


class Mechanism(ABC):
    """A way to release values, fixed in every detail that its guarantee depends on.

    An estimator makes one in ``fit`` and keeps it as ``mechanism_``. The receipt states the guarantee of this object,
    the noise is drawn by it, and an audit attacks it, so that all three are about the same thing.

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp.mechanisms import Mechanism, laplace_mechanism
    >>> from skfairdp.random import random_stream
    >>> mechanism = laplace_mechanism(2.0, "l1", n_features=3)
    >>> isinstance(mechanism, Mechanism), mechanism.guarantee().epsilon
    (True, 2.0)
    >>> mechanism.release(np.ones((5, 3)), random_stream(0)).shape
    (5, 3)
    """

    #: What the receipt calls it.
    name: str
    #: The worst-case loss of one release.
    epsilon: float
    #: What a paper claims for this noise, where that differs from ``epsilon``.
    published_epsilon: float | None = None

    @cached_property
    def event(self) -> ReleaseEvent:
        """What one release is, as far as its price depends on it; by default a pure loss of ``epsilon``."""
        return ReleaseEvent(self.epsilon)

    def guarantee(self, *, seed: SeedIdentity | None = None, **words: Any) -> PrivacyGuarantee:
        """Write the receipt of one release.

        Parameters
        ----------
        seed : SeedIdentity or None
            Of the stream that the noise comes from, if it is seeded.
        **words : dict
            Fields of :class:`~skfairdp.accounting.PrivacyGuarantee`: what is covered, and what is not.

        Returns
        -------
        PrivacyGuarantee
        """
        told = {"mechanism": self.name, "published_epsilon": self.published_epsilon}
        return PrivacyGuarantee.of(replace(self.event, seed=seed), **{**told, **words})

    @abstractmethod
    def check(self, X: Any) -> None:
        """Raise if ``X`` cannot be released. The price is paid after this, so nothing may fail any more.

        Parameters
        ----------
        X : object
            What is to be released, mostly one record a row.
        """

    @abstractmethod
    def draw(self, X: Any, stream: RandomStream) -> Any:
        """Draw one release of each record, with fresh and independent noise; ``check`` has passed.

        Parameters
        ----------
        X : object
            What is to be released, mostly one record a row.
        stream : RandomStream
            Where the random bits come from.
        """

    def release(self, X: Any, stream: RandomStream) -> Any:
        """Check ``X``, and draw one release of each record. No ledger is charged.

        Parameters
        ----------
        X : object
            What is to be released, mostly one record a row.
        stream : RandomStream
            Where the random bits come from.

        Returns
        -------
        object
            The released values.
        """
        self.check(X)
        return self.draw(X, stream)

    @abstractmethod
    def log_likelihood_ratio(self, y: Any, x: Any, x_prime: Any) -> np.ndarray:
        """Compute ``log p(y | x) - log p(y | x_prime)``, the score that an auditor separates two records by.

        Parameters
        ----------
        y : object
            Released values.
        x, x_prime : object
            Two inputs.
        """

    @abstractmethod
    def worst_case_pairs(self, stream: RandomStream | None = None) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return pairs of inputs that lose as much as inputs can, in different directions, the worst first.

        Parameters
        ----------
        stream : RandomStream or None, default=None
            Draws the random ones among the pairs; without it they are always the same.
        """


@dataclass(frozen=True)
class OpenMechanism(Mechanism):
    """Release everything as it is: an infinite epsilon.

    Parameters
    ----------
    n_features : int
        The number of columns.

    Examples
    --------
    >>> from skfairdp.mechanisms import OpenMechanism
    >>> OpenMechanism(3).guarantee().epsilon
    inf
    """

    n_features: int
    name = "none"
    epsilon = np.inf

    def check(self, X: np.ndarray) -> None:
        """Check the number of columns.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
            The rows.
        """
        check_columns(X, self.n_features)

    def draw(self, X: np.ndarray, stream: RandomStream) -> np.ndarray:
        """Return the rows in double precision.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
            The rows.
        stream : RandomStream
            Not needed: nothing is drawn.
        """
        return X.astype(np.float64)

    def log_likelihood_ratio(self, y: np.ndarray, x: np.ndarray, x_prime: np.ndarray) -> np.ndarray:
        """Compute the ratio: infinite unless the two records are equal.

        Parameters
        ----------
        y : ndarray of shape (n_samples, n_features)
            Released rows.
        x, x_prime : ndarray of shape (n_features,)
            Two records.
        """
        return equality_ratio(y, x, x_prime)

    def worst_case_pairs(self, stream: RandomStream | None = None) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return any two rows.

        Parameters
        ----------
        stream : RandomStream or None, default=None
            Not needed: the pairs are always the same.
        """
        return [(np.ones(self.n_features), -np.ones(self.n_features))]


def equality_ratio(y: np.ndarray, x: np.ndarray, x_prime: np.ndarray) -> np.ndarray:
    """Compute the log likelihood ratio of a release without noise: infinite as soon as the records differ."""
    first, second = ((y == row).all(axis=1) for row in (x, x_prime))
    return np.where(first == second, 0.0, np.where(first, np.inf, -np.inf))


def check_columns(X: Any, n_features: int) -> None:
    """Refuse anything but a matrix of ``n_features`` columns."""
    if getattr(X, "ndim", None) != 2 or X.shape[1] != n_features:
        raise ValueError(f"X must have shape (n_samples, {n_features}); got {getattr(X, 'shape', type(X).__name__)}.")
