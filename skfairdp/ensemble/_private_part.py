"""What is computed from private rows without noise, and must not leave the process."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted, validate_data

from skfairdp.accounting import confident_gnmax_data_dependent_rdp, gnmax_data_dependent_epsilon, renyi_epsilon
from skfairdp.ensemble._teachers import Teachers
from skfairdp.mechanisms import VoteMechanism


@dataclass(frozen=True)
class DataDependentPrivacy:
    """What the votes at hand cost: a diagnostic that is private itself.

    Attributes
    ----------
    epsilon, delta : float
        The bound on these votes.
    data_independent_epsilon : float
        The guarantee, which holds for any votes and may be published.
    publishable : bool
        Always False: the number was computed from private votes without noise.
    """

    epsilon: float
    delta: float
    data_independent_epsilon: float
    publishable: bool = False


@dataclass(frozen=True)
class PrivatePart:
    """Teachers and votes without noise: kept in memory for the analysis, never pickled.

    Attributes
    ----------
    teachers : Teachers
        The teachers.
    mechanism : VoteMechanism
        How the votes were released.
    queries : ndarray of shape (n_asked, n_features)
        Rows that were asked about, scaled, in the order of asking.
    votes : ndarray of shape (n_asked, n_classes)
        What the teachers voted on them.
    answered : ndarray of int
        Which of them were answered.
    """

    teachers: Teachers
    mechanism: VoteMechanism
    queries: np.ndarray
    votes: np.ndarray
    answered: np.ndarray

    def privacy(self) -> DataDependentPrivacy:
        """Bound what these votes cost."""
        mechanism = self.mechanism
        if mechanism.labels == "soft":
            raise ValueError("a data-dependent bound exists for labels='hard' and labels='confident' only; got 'soft'.")
        if mechanism.mu is None and mechanism.delta == 0:  # no noise, or nothing to tell
            return DataDependentPrivacy(mechanism.epsilon, 0.0, mechanism.epsilon)
        if mechanism.labels == "hard":
            epsilon = gnmax_data_dependent_epsilon(self.votes, mechanism.noise_scale, mechanism.delta)
        else:
            # Nothing was asked once the last answer was given.
            stopped = len(self.answered) == mechanism.n_answered
            asked = int(self.answered[-1]) + 1 if stopped else len(self.votes)
            passed = np.isin(np.arange(asked), self.answered)
            rdp = confident_gnmax_data_dependent_rdp(
                self.votes[:asked], passed, mechanism.threshold, mechanism.threshold_noise_scale, mechanism.noise_scale
            )
            epsilon = renyi_epsilon(rdp, mechanism.delta)
        return DataDependentPrivacy(min(epsilon, mechanism.epsilon), mechanism.delta, mechanism.epsilon)


class PrivatePartMixin:
    """What a fitted ensemble can tell about its teachers, as long as it has not been pickled or copied."""

    student_: Any
    _private: PrivatePart

    def teacher_votes(self, X: Any) -> np.ndarray:
        """Count the teachers' votes without noise: private, for analysis only, and covered by no guarantee.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_classes), int
        """
        part = self._private_part()
        return part.teachers.votes(self._scaled(validate_data(self, X, dtype=np.float64, reset=False)))

    def data_dependent_privacy(self) -> DataDependentPrivacy:
        """Bound what hard or confident labels cost on the votes at hand, which is private and not to be published.

        Returns
        -------
        DataDependentPrivacy
            Where teachers agree, its epsilon is far below the guarantee's.

        Notes
        -----
        **Privacy.** The number depends on votes without noise. To publish it, it would have to be smoothed and
        noised itself; use ``privacy_``. Soft labels have no such bound: their noise always shows.
        """
        return self._private_part().privacy()

    def _named(self, X: np.ndarray) -> Any:
        """Give rows back the column names that they came with, so that the student knows them when it is alone."""
        names = getattr(self, "feature_names_in_", None)
        return X if names is None else pd.DataFrame(X, columns=names)

    def _scaled(self, X: np.ndarray) -> np.ndarray:
        if len(self.student_) == 1:
            return X
        return np.asarray(self.student_[0].transform(self._named(X)))

    def _private_part(self) -> PrivatePart:
        check_is_fitted(self, "student_")
        if "_private" not in self.__dict__:
            raise ValueError(
                "the teachers are gone: they hold private data, and pickles and copies of a fitted PATEClassifier "
                "leave them out. Ask the object that was fitted."
            )
        return self._private

    def __getstate__(self) -> dict[str, Any]:
        state: Any = super().__getstate__()
        state.pop("_private", None)
        return state
