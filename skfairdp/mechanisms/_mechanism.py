"""What every mechanism is: one frozen object that knows its price, draws, and can be attacked."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skfairdp.accounting import PrivacyGuarantee, ReleaseEvent
from skfairdp.random import RandomStream, SeedIdentity


class Mechanism(ABC):
    """A way to release values, fixed in every detail that its guarantee depends on.

    An estimator makes one in ``fit`` and holds it as ``mechanism_``. The receipt states its guarantee, the noise is
    drawn by it, and the auditor attacks it: none of the three can be about something else.
    """

    #: What the receipt calls it.
    name: str

    @property
    @abstractmethod
    def event(self) -> ReleaseEvent:
        """What one release is, as far as its price depends on it."""

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
        return PrivacyGuarantee.of(replace(self.event, seed=seed), **{"mechanism": self.name, **words})

    @abstractmethod
    def check(self, X: Any) -> None:
        """Raise if ``X`` cannot be released: after this nothing may fail any more, because the price is paid."""

    @abstractmethod
    def release(self, X: Any, stream: RandomStream) -> Any:
        """Draw one release of each record, with fresh and independent noise."""

    @abstractmethod
    def log_likelihood_ratio(self, y: Any, x: Any, x_prime: Any) -> np.ndarray:
        """Compute ``log p(y | x) - log p(y | x_prime)``, the score that an auditor separates two records by."""

    @abstractmethod
    def worst_case_pairs(self, stream: RandomStream | None = None) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return pairs of inputs that lose as much as inputs can, in different directions, the worst first.

        ``stream`` draws the random ones among them; without it they are always the same.
        """


@dataclass(frozen=True)
class OpenMechanism(Mechanism):
    """Release everything as it is: an infinite epsilon.

    Parameters
    ----------
    n_features : int
        The number of columns.
    """

    n_features: int
    name = "none"

    @property
    def event(self) -> ReleaseEvent:
        """An infinite loss."""
        return ReleaseEvent(np.inf)

    def check(self, X: np.ndarray) -> None:
        """Check the number of columns."""
        check_columns(X, self.n_features)

    def release(self, X: np.ndarray, stream: RandomStream) -> np.ndarray:
        """Return the rows in double precision."""
        return X.astype(np.float64)

    def log_likelihood_ratio(self, y: np.ndarray, x: np.ndarray, x_prime: np.ndarray) -> np.ndarray:
        """Tell whether rows are equal."""
        return equality_ratio(y, x, x_prime)

    def worst_case_pairs(self, stream: RandomStream | None = None) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return any two rows."""
        return [(np.ones(self.n_features), -np.ones(self.n_features))]


def equality_ratio(y: np.ndarray, x: np.ndarray, x_prime: np.ndarray) -> np.ndarray:
    """Compute the log likelihood ratio of a release without noise: infinite as soon as the records differ."""
    first, second = ((y == row).all(axis=1) for row in (x, x_prime))
    return np.where(first == second, 0.0, np.where(first, np.inf, -np.inf))


def check_columns(X: Any, n_features: int) -> None:
    """Refuse anything but a matrix of so many columns."""
    if getattr(X, "ndim", None) != 2 or X.shape[1] != n_features:
        raise ValueError(f"X must have shape (n_samples, {n_features}); got {getattr(X, 'shape', type(X).__name__)}.")
