"""Attackers that look at their training rows before they choose their settings."""

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

from skfairdp._sklearn import split_gains
from skfairdp.random import RandomState, RandomStream, random_stream

#: From so many rows on, and so many of every group, there are enough to hold some out and stop by them.
_ENOUGH_TO_STOP_EARLY = 1000
_ENOUGH_OF_EACH_GROUP = 20
#: From so many columns on a table is wide.
_WIDE = 101
#: Trees look at all columns for every split. Of a wide table they get one in six, which a few small trees choose.
_ONE_COLUMN_IN = 6
_FEWEST_COLUMNS = 48
_TREES_OF_WIDE_TABLES = {"max_bins": 63, "learning_rate": 0.12}
_ROWS_THAT_CHOOSE = 1000  # of each group, so that a rare one is heard
_SMALL_TREES = {"max_leaf_nodes": 8, "max_bins": 31, "learning_rate": 0.2, "early_stopping": False}
#: Share of the variance from which on one direction drowns all others.
_DOMINATES = 0.9
_POWER_STEPS = 20
_ROWS_THAT_SHOW_IT = 2000  # where so many rows have nothing near it, the others are not asked
#: Rows that neighbours are looked for among, and in wide tables: the search takes a distance for every pair of rows.
_MOST_NEIGHBORS = 5000
_MOST_NEIGHBORS_OF_WIDE_TABLES = 2000


class AdaptiveAttacker(ClassifierMixin, BaseEstimator):
    """What the three of them share: they name the likeliest group."""

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Name the likeliest group."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


class NetworkAttacker(AdaptiveAttacker):
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
        step = max(1, len(X) // _ROWS_THAT_SHOW_IT)
        self.direction_ = _dominating_direction(self.scaler_.transform(X[::step]), _DOMINATES - 0.1)
        if self.direction_ is not None:
            self.direction_ = _dominating_direction(self.scaler_.transform(X), _DOMINATES)
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


def _dominating_direction(Z: np.ndarray, share: float) -> np.ndarray | None:
    """Return the direction of the largest variance, by power iteration, if it has more than this share of it."""
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
    return direction if np.square(Z @ direction).sum() > share * total else None


class BoostingAttacker(AdaptiveAttacker):
    """Gradient-boosted trees, as many as held-out rows ask for, and few small ones where rows are few.

    Of a wide table with rows enough they get the columns by which a few small trees gain most.

    Parameters
    ----------
    random_state : int, Generator, RandomState, SeedSequence or None, default=None
        Seed of the rows that are held out, and of those that choose columns.
    """

    def __init__(self, random_state: RandomState = None):
        self.random_state = random_state

    def fit(self, X: np.ndarray, y: np.ndarray) -> "BoostingAttacker":
        """Train the trees."""
        _, sizes = np.unique(y, return_counts=True)
        stream = random_stream(self.random_state)
        seed = stream.seed()
        self.columns_: slice | np.ndarray = slice(None)
        if len(y) < _ENOUGH_TO_STOP_EARLY or sizes.min() < _ENOUGH_OF_EACH_GROUP:
            settings: dict[str, float] = {"max_iter": 40, "max_leaf_nodes": 8, "early_stopping": False}
        else:
            settings = {"max_iter": 300, "max_leaf_nodes": 31, "early_stopping": True}
            if X.shape[1] >= _WIDE:
                self.columns_ = _columns_worth_splitting(X, y, stream)
                settings |= _TREES_OF_WIDE_TABLES
        self.trees_ = HistGradientBoostingClassifier(**settings, random_state=seed).fit(X[:, self.columns_], y)
        self.classes_ = self.trees_.classes_
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Return the probability of each group."""
        return self.trees_.predict_proba(X[:, self.columns_])


def _columns_worth_splitting(X: np.ndarray, y: np.ndarray, stream: RandomStream) -> np.ndarray:
    """Return the places of the columns by which a few small trees gain most, trained on some rows of every group."""
    shuffled = stream.generator.permutation(len(y))
    rank = pd.Series(y[shuffled]).groupby(y[shuffled]).cumcount().to_numpy()
    rows = shuffled[rank < _ROWS_THAT_CHOOSE]
    n_kept = max(_FEWEST_COLUMNS, X.shape[1] // _ONE_COLUMN_IN)
    n_trees = n_kept // 5  # seven splits each: more splits than columns that are kept
    trees = HistGradientBoostingClassifier(**_SMALL_TREES, max_iter=n_trees, random_state=stream.seed())
    return np.sort(np.argsort(-split_gains(trees.fit(X[rows], y[rows])), kind="stable")[:n_kept])


class NeighborsAttacker(AdaptiveAttacker):
    """Nearest neighbours on standardised columns: half the square root of the rows.

    They are looked for among at most 5,000 rows, and 2,000 of a wide table.

    Parameters
    ----------
    random_state : int, Generator, RandomState, SeedSequence or None, default=None
        Seed of the choice of rows.
    """

    def __init__(self, random_state: RandomState = None):
        self.random_state = random_state

    def fit(self, X: np.ndarray, y: np.ndarray) -> "NeighborsAttacker":
        """Keep the rows, or a sample of them."""
        most = _MOST_NEIGHBORS if X.shape[1] < _WIDE else _MOST_NEIGHBORS_OF_WIDE_TABLES
        if len(y) > most:
            kept = random_stream(self.random_state).generator.choice(len(y), most, replace=False)
            X, y = X[kept], y[kept]
        self.scaler_ = StandardScaler().fit(X)
        self.neighbors_ = KNeighborsClassifier(max(1, round(np.sqrt(len(y)) / 2)))
        self.neighbors_.fit(self.scaler_.transform(X), y)
        self.classes_ = self.neighbors_.classes_
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Return the share of each group among the neighbours."""
        return self.neighbors_.predict_proba(self.scaler_.transform(X))
