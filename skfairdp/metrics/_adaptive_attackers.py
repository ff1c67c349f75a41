"""Attackers that look at their training rows before they choose their settings."""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

from skfairdp.random import RandomState, random_stream

#: From so many rows on, and so many of every group, there are enough to hold some out and stop by them.
_ENOUGH_TO_STOP_EARLY = 1000
_ENOUGH_OF_EACH_GROUP = 20
#: Share of the variance from which on one direction drowns all others.
_DOMINATES = 0.9
_POWER_STEPS = 20
#: Rows that neighbours are looked for among: the search takes a distance for every pair of rows.
_MOST_NEIGHBORS = 5000


class NetworkAttacker(ClassifierMixin, BaseEstimator):
    """A :class:`~skfairdp.neural.ProbeClassifier` that is not deafened by one loud direction.

    Noise that is added to all columns alike, as by one draw for a whole row, makes them almost equal. A network that is
    trained by gradient steps then sees nothing else. So where one direction has more than nine tenths of the variance
    of standardised columns, it is taken out of them and given as a column of its own.

    Parameters
    ----------
    random_state : int, Generator, RandomState, SeedSequence or None, default=None
        Seed of the network.
    """

    def __init__(self, random_state: RandomState = None):
        self.random_state = random_state

    def fit(self, X: np.ndarray, y: np.ndarray) -> "NetworkAttacker":
        """Look for a loud direction, and train the network."""
        from skfairdp.neural import ProbeClassifier

        self.scaler_ = StandardScaler().fit(X)
        self.direction_ = _dominating_direction(self.scaler_.transform(X))
        self.network_ = ProbeClassifier(random_state=self.random_state).fit(self._heard(X), y)
        self.classes_ = self.network_.classes_
        return self

    def _heard(self, X: np.ndarray) -> np.ndarray:
        if self.direction_ is None:
            return X
        standardised = self.scaler_.transform(X)
        loud = standardised @ self.direction_
        return np.column_stack([standardised - np.outer(loud, self.direction_), loud])

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Return the probability of each group."""
        return self.network_.predict_proba(self._heard(X))

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Name the likeliest group."""
        return self.network_.predict(self._heard(X))


def _dominating_direction(Z: np.ndarray) -> np.ndarray | None:
    """Return the direction of the largest variance, by power iteration, if it has almost all of it."""
    total = np.square(Z).sum()
    if Z.shape[1] < 3 or not total:
        return None
    direction = np.full(Z.shape[1], Z.shape[1] ** -0.5) * np.sign(Z[:, :1].T @ Z + 0.5)[0]
    for _ in range(_POWER_STEPS):
        direction = Z.T @ (Z @ direction)
        length = np.linalg.norm(direction)
        if not length:
            return None
        direction /= length
    return direction if np.square(Z @ direction).sum() > _DOMINATES * total else None


class BoostingAttacker(ClassifierMixin, BaseEstimator):
    """Gradient-boosted trees, as many as held-out rows ask for, and few small ones where rows are few.

    Parameters
    ----------
    random_state : int, Generator, RandomState, SeedSequence or None, default=None
        Seed of the rows that are held out.
    """

    def __init__(self, random_state: RandomState = None):
        self.random_state = random_state

    def fit(self, X: np.ndarray, y: np.ndarray) -> "BoostingAttacker":
        """Train the trees."""
        _, sizes = np.unique(y, return_counts=True)
        if len(y) >= _ENOUGH_TO_STOP_EARLY and sizes.min() >= _ENOUGH_OF_EACH_GROUP:
            settings = {"max_iter": 300, "max_leaf_nodes": 31, "early_stopping": True}
        else:
            settings = {"max_iter": 40, "max_leaf_nodes": 8, "early_stopping": False}
        seed = random_stream(self.random_state).seed()
        self.trees_ = HistGradientBoostingClassifier(**settings, random_state=seed).fit(X, y)
        self.classes_ = self.trees_.classes_
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Return the probability of each group."""
        return self.trees_.predict_proba(X)

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Name the likeliest group."""
        return self.trees_.predict(X)


class NeighborsAttacker(ClassifierMixin, BaseEstimator):
    """Nearest neighbours on standardised columns: half the square root of the rows, among at most 5,000 of them.

    Parameters
    ----------
    random_state : int, Generator, RandomState, SeedSequence or None, default=None
        Seed of the choice of rows.
    """

    def __init__(self, random_state: RandomState = None):
        self.random_state = random_state

    def fit(self, X: np.ndarray, y: np.ndarray) -> "NeighborsAttacker":
        """Keep the rows, or a sample of them."""
        if len(y) > _MOST_NEIGHBORS:
            kept = random_stream(self.random_state).generator.choice(len(y), _MOST_NEIGHBORS, replace=False)
            X, y = X[kept], y[kept]
        self.scaler_ = StandardScaler().fit(X)
        self.neighbors_ = KNeighborsClassifier(max(1, round(np.sqrt(len(y)) / 2)))
        self.neighbors_.fit(self.scaler_.transform(X), y)
        self.classes_ = self.neighbors_.classes_
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Return the share of each group among the neighbours."""
        return self.neighbors_.predict_proba(self.scaler_.transform(X))

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Name the largest group among the neighbours."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]
