"""Teachers: disjoint parts of the private rows, one model on each, and their votes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator

from skfairdp.random import RandomStream, clone_with_seed

_ROWS_AT_ONCE = 1 << 14


@dataclass(frozen=True)
class NetworkSettings:
    """How networks are trained, teachers and students alike."""

    hidden_sizes: tuple[int, ...]
    max_epochs: int
    batch_size: int
    learning_rate: float


def partition(n_rows: int, n_teachers: int, stream: RandomStream) -> list[np.ndarray]:
    """Divide rows among teachers by their index alone: a random permutation, cut into nearly equal parts.

    Neither a feature nor a label is looked at, so that a row which is replaced by another one stays where it
    is, and one teacher changes. A partition that is stratified by label or by group would move other rows too,
    and every teacher could change its vote.

    Parameters
    ----------
    n_rows, n_teachers : int
        With more teachers than rows some parts are empty.
    stream : RandomStream
        For the permutation.

    Returns
    -------
    list of ndarray
        The rows of each teacher.
    """
    return np.array_split(stream.generator.permutation(n_rows), n_teachers)


@dataclass(frozen=True)
class Teachers:
    """Trained teachers.

    Attributes
    ----------
    models : NetworkEnsemble or list
        What was trained; teachers whose part holds a single class are not asked.
    constant : ndarray of shape (n_voting,)
        The class of a part that holds no other; -1 elsewhere.
    n_classes : int
        Number of classes.
    n_jobs : int or None
        Of joblib, for a list of models.
    """

    models: Any
    constant: np.ndarray
    n_classes: int
    n_jobs: int | None = None

    @property
    def n_voting(self) -> int:
        """Number of teachers that have at least one row; the others abstain."""
        return len(self.constant)

    def votes(self, X: np.ndarray) -> np.ndarray:
        """Count the votes of all teachers on each row; shape (n_samples, n_classes), integers."""
        counts = np.empty((len(X), self.n_classes), dtype=np.int64)
        for start in range(0, len(X), _ROWS_AT_ONCE):
            ballots = self._ballots(X[start : start + _ROWS_AT_ONCE])
            for c in range(self.n_classes):
                counts[start : start + _ROWS_AT_ONCE, c] = (ballots == c).sum(axis=0)
        return counts

    def _ballots(self, X: np.ndarray) -> np.ndarray:
        """Return what each teacher votes for; shape (n_voting, n_samples)."""
        ballots = np.repeat(self.constant[:, None], len(X), axis=1)
        undecided = np.flatnonzero(self.constant < 0)
        if isinstance(self.models, list):
            asked = Parallel(n_jobs=self.n_jobs)(delayed(_ballot)(self.models[i], X) for i in undecided)
            for i, ballot in zip(undecided, asked):
                ballots[i] = ballot
        elif undecided.size:
            ballots[undecided] = self.models.predict(X)[undecided]
        return ballots


def train_teachers(
    X: np.ndarray,
    codes: np.ndarray,
    parts: Sequence[np.ndarray],
    n_classes: int,
    *,
    estimator: Any,
    networks: NetworkSettings,
    stream: RandomStream,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> Teachers:
    """Train one teacher on each part that has rows.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
        Private rows.
    codes : ndarray of shape (n_rows,)
        Their classes, as 0, 1, ...
    parts : list of ndarray
        The rows of each teacher.
    n_classes : int
        Number of classes.
    estimator : classifier or None
        Cloned for each teacher; ``None`` trains small networks, all at once.
    networks : NetworkSettings
        Of these networks.
    stream : RandomStream
        Every teacher gets a seed of its own from it, which does not depend on any row.
    n_jobs, verbose : int
        Of joblib.

    Returns
    -------
    Teachers
    """
    if estimator is not None and any(isinstance(part, FrozenEstimator) for part in _parts(estimator)):
        raise ValueError("estimator holds a FrozenEstimator: teachers must learn from their own rows alone.")
    voting = [part for part in parts if len(part)]
    constant = np.array([codes[part[0]] if (codes[part] == codes[part[0]]).all() else -1 for part in voting])
    models: Any
    if estimator is None:
        models = _train_networks(X, codes, voting, n_classes, networks, stream) if (constant < 0).any() else []
    else:
        seeds = stream.uint32(len(voting)).tolist()
        models = Parallel(n_jobs=n_jobs, verbose=verbose)(
            delayed(_train_one)(estimator, X[part], codes[part], seed) if fixed < 0 else delayed(_nobody)()
            for part, seed, fixed in zip(voting, seeds, constant)
        )
    return Teachers(models, constant, n_classes, n_jobs)


def _parts(estimator: BaseEstimator) -> list[Any]:
    return [estimator, *(estimator.get_params(deep=True).values() if hasattr(estimator, "get_params") else ())]


def _train_networks(
    X: np.ndarray,
    codes: np.ndarray,
    parts: list[np.ndarray],
    n_classes: int,
    networks: NetworkSettings,
    stream: RandomStream,
) -> Any:
    from skfairdp.neural import train_ensemble

    longest = max(len(part) for part in parts)
    rows = np.zeros((len(parts), longest, X.shape[1]), dtype=np.float32)
    targets = np.zeros((len(parts), longest, n_classes), dtype=np.float32)
    present = np.zeros((len(parts), longest), dtype=bool)
    for i, part in enumerate(parts):
        rows[i, : len(part)] = X[part]
        targets[i, np.arange(len(part)), codes[part]] = 1
        present[i, : len(part)] = True
    return train_ensemble(
        rows,
        targets,
        present,
        hidden_sizes=networks.hidden_sizes,
        max_epochs=networks.max_epochs,
        batch_size=networks.batch_size,
        learning_rate=networks.learning_rate,
        weight_decay=1e-4,
        stream=stream,
    )


def _train_one(estimator: BaseEstimator, X: np.ndarray, codes: np.ndarray, seed: int) -> Any:
    return clone_with_seed(estimator, seed, overwrite=True).fit(X, codes)


def _nobody() -> None:
    """Stand in for a teacher that knows one class only."""


def _ballot(model: Any, X: np.ndarray) -> np.ndarray:
    return np.asarray(model.predict(X))
