"""Teachers: disjoint parts of the private rows, one model on each, and their votes."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy import sparse
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from skfairdp._base import dense
from skfairdp._parallel import parallel_results
from skfairdp._sklearn import routing_enabled
from skfairdp._validation import warn_user
from skfairdp.exceptions import PrivacyLeakWarning
from skfairdp.random import RandomStream, clone_with_seed

_ROWS_AT_ONCE = 1 << 14
#: Values that are held as an array at a time where rows are sparse, or copied for networks.
_VALUES_AT_ONCE = 1 << 24


def read_rows(X: Any, *, scaler: Any, names: np.ndarray | None, keeps_sparse: bool) -> Any:
    """Return rows as the teachers get them: scaled by what public rows say, and dense unless sparse ones are welcome.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n_samples, n_features)
        The rows.
    scaler : fitted transformer or None
        It returns arrays.
    names : ndarray of str or None
        Column names that the scaler was fitted with.
    keeps_sparse : bool
        Whether rows without a scaler may stay sparse.
    """
    if scaler is not None:
        return np.asarray(scaler.transform(with_names(X, names)))
    return X if keeps_sparse else dense(X)


def with_names(X: Any, names: np.ndarray | None) -> Any:
    """Give rows back the column names that they came with; sparse matrices have none."""
    return X if names is None or sparse.issparse(X) else pd.DataFrame(X, columns=names)


def takes_sparse(model: Any) -> bool:
    """Whether a classifier says that it can be fitted on sparse rows."""
    return hasattr(model, "__sklearn_tags__") and bool(get_tags(model).input_tags.sparse)


def fit_with_weights(model: Any, X: Any, y: np.ndarray, weight: np.ndarray | None) -> Any:
    """Fit a classifier, with weights where there are some; :func:`check_weighable` has said that it takes them."""
    return model.fit(X, y) if weight is None else model.fit(X, y, **{_weight_argument(model): weight})


def is_weighable(model: Any) -> bool:
    """Whether a classifier can weigh rows."""
    return bool(_weight_argument(model))


def check_weighable(model: Any, name: str, reason: str) -> None:
    """Refuse a classifier that cannot weigh rows, and say what wants it to."""
    if not is_weighable(model):
        raise ValueError(
            f"{name} must accept sample_weight in fit to {reason}, which {type(model).__name__} does not; choose "
            f"another {name}."
        )


def _weight_argument(model: Any) -> str:
    """Return what the weights of rows are called in ``fit``; empty if it takes none."""
    if has_fit_parameter(model, "sample_weight"):
        return "sample_weight"
    if not isinstance(model, Pipeline) or not has_fit_parameter(model.steps[-1][1], "sample_weight"):
        return ""
    # A pipeline passes weights on to the steps that have requested them; without routing, to the step that is named.
    return "sample_weight" if routing_enabled() else f"{model.steps[-1][0]}__sample_weight"


def partition_rows(n_rows: int, n_teachers: int, stream: RandomStream) -> list[np.ndarray]:
    """Divide rows among teachers by their index alone: a random permutation, cut into nearly equal parts.

    Neither a feature nor a label nor a weight is looked at, so that a row which is replaced by another one stays
    where it is, and one teacher changes. A partition that is stratified by label or by group would move other rows
    too, and every teacher could change its vote.

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


def set_aside(n_rows: int, fraction: float, stream: RandomStream) -> tuple[np.ndarray, np.ndarray]:
    """Choose rows that stand in for public ones, and say that they are not protected; returns these and the rest."""
    n_aside = min(max(1, round(fraction * n_rows)), n_rows - 1)
    order = stream.generator.permutation(n_rows)
    warn_user(
        f"no public rows were given: {n_aside} of the {n_rows} rows of X are set aside as public, and their "
        "features are not protected. Give public rows to fit(X, y, public=...).",
        PrivacyLeakWarning,
    )
    return np.sort(order[:n_aside]), np.sort(order[n_aside:])


def weigh_rows(
    class_indices: np.ndarray, parts: Sequence[np.ndarray], sample_weight: np.ndarray | None, class_weight: Any
) -> np.ndarray | None:
    """Weigh each row for the teacher that holds it, without looking at the rows of another teacher.

    Parameters
    ----------
    class_indices : ndarray of shape (n_rows,)
        Classes, as 0, 1, ...
    parts : list of ndarray
        The rows of each teacher.
    sample_weight : ndarray of shape (n_rows,) or None
        Given weights.
    class_weight : ndarray of shape (n_classes,), "balanced" or None
        Factors of the classes. ``"balanced"`` makes the classes of each part weigh the same: frequencies over all
        private rows would let one label change every teacher.

    Returns
    -------
    ndarray of shape (n_rows,) or None
        ``None`` if neither weights nor class weights were given. This must not depend on their values: a weight of 1
        that becomes 1.1 would otherwise change how all teachers are trained.
    """
    if sample_weight is None and class_weight is None:
        return None
    weight = np.ones(len(class_indices)) if sample_weight is None else sample_weight.astype(np.float64)
    if isinstance(class_weight, np.ndarray):
        weight = weight * class_weight[class_indices]
    elif class_weight is not None:
        for part in parts:
            totals = np.bincount(class_indices[part], weights=weight[part])
            share = np.divide(1.0, totals * (totals > 0).sum(), out=np.zeros_like(totals), where=totals > 0)
            weight[part] *= totals.sum() * share[class_indices[part]]
    return weight


@dataclass(frozen=True)
class Teachers:
    """Trained teachers.

    Attributes
    ----------
    models : NetworkEnsemble or list
        What was trained. A list leaves out the teachers whose part holds a single class; they are not asked.
    constant : ndarray of shape (n_voting,)
        The class of a part that holds no other; -1 elsewhere. A teacher whose rows all have weight 0, or that could not
        be trained, abstains, which is written as the number of classes.
    n_classes : int
        Number of classes.
    read : callable
        How rows are given to the models, :func:`read_rows` with its other arguments.
    n_jobs : int or None
        Of joblib, for a list of models.
    """

    models: Any
    constant: np.ndarray
    n_classes: int
    read: Callable[[Any], Any]
    n_jobs: int | None = None

    @property
    def n_voting(self) -> int:
        """Number of teachers that have at least one row; the others abstain."""
        return len(self.constant)

    def votes(self, X: Any) -> np.ndarray:
        """Count the votes of all teachers on each row; shape (n_samples, n_classes), integers."""
        n_rows, n_columns = X.shape
        step = min(_ROWS_AT_ONCE, max(1, _VALUES_AT_ONCE // n_columns)) if sparse.issparse(X) else _ROWS_AT_ONCE
        counts = np.empty((n_rows, self.n_classes), dtype=np.int64)
        for start in range(0, n_rows, step):
            part = slice(start, start + step)
            ballots = self._ballots(self.read(X[part]))
            for c in range(self.n_classes):
                counts[part, c] = (ballots == c).sum(axis=0)
        return counts

    def _ballots(self, X: Any) -> np.ndarray:
        """Return what each teacher votes for; shape (n_voting, n_samples)."""
        ballots = np.repeat(self.constant[:, None], X.shape[0], axis=1)
        undecided = np.flatnonzero(self.constant < 0)
        if isinstance(self.models, list):
            ask = delayed(_predict_as_array)
            asked = parallel_results(lambda: (ask(model, X, self.n_classes) for model in self.models), self.n_jobs)
            for i, ballot in zip(undecided, asked):
                ballots[i] = ballot
        elif undecided.size:
            ballots[undecided] = self.models.predict(X)[undecided]
        return ballots


def train_teachers(
    X: Any,
    class_indices: np.ndarray,
    parts: Sequence[np.ndarray],
    n_classes: int,
    *,
    estimator: Any,
    networks: dict[str, Any],
    stream: RandomStream,
    read: Callable[[Any], Any],
    weight: np.ndarray | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> Teachers:
    """Train one teacher on each part that has rows.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n_rows, n_features)
        Private rows.
    class_indices : ndarray of shape (n_rows,)
        Their classes, as 0, 1, ...
    parts : list of ndarray
        The rows of each teacher.
    n_classes : int
        Number of classes.
    estimator : classifier or None
        Cloned for each teacher; ``None`` trains small networks, all at once.
    networks : dict
        Of these networks, as for ``train_ensemble``.
    stream : RandomStream
        Every teacher gets a seed of its own from it, which does not depend on any row.
    read : callable
        How rows are given to the models, a part at a time.
    weight : ndarray of shape (n_rows,) or None
        Weights of rows. A row of weight 0 is left out by its teacher, and moves no other row.
    n_jobs, verbose : int
        Of joblib.

    Returns
    -------
    Teachers
    """
    held = estimator.get_params(deep=True).values() if hasattr(estimator, "get_params") else ()
    if any(isinstance(one, FrozenEstimator) for one in (estimator, *held)):
        raise ValueError("estimator holds a FrozenEstimator: teachers must learn from their own rows alone.")
    voting = [part if weight is None else part[weight[part] > 0] for part in parts if len(part)]
    constant = np.array([_only_class(class_indices[part], n_classes) for part in voting])
    models: Any = []
    if estimator is not None:
        seeds = stream.uint32(len(voting)).tolist()
        models = Parallel(n_jobs=n_jobs, verbose=verbose)(
            delayed(_train_teacher)(
                [
                    clone_with_seed(estimator, seed, overwrite=True),
                    read(X[part]),
                    class_indices[part],
                    None if weight is None else weight[part],
                ]
            )
            for part, seed, fixed in zip(voting, seeds, constant)
            if fixed < 0
        )
        # A teacher that could not be trained abstains: an error would reveal something about its rows.
        failed = np.flatnonzero(constant < 0)[[model is None for model in models]]
        constant[failed] = n_classes
        models = [model for model in models if model is not None]
    elif (constant < 0).any():
        # Padded to the longest part with its rows of weight 0: weights must not change what other teachers draw.
        longest = max(len(part) for part in parts)
        models = _train_networks(X, class_indices, voting, longest, n_classes, networks, stream, read, weight)
    return Teachers(models, constant, n_classes, read, n_jobs)


def _train_teacher(arguments: list[Any]) -> Any:
    """Train one teacher.

    Its rows come in a list, so that joblib's Dask backend sends them with the task: rows that it sends apart are lost
    with the worker that holds them, and rows that travel with their task are sent again.
    """
    try:
        return fit_with_weights(*arguments)
    except Exception:
        return None


def rehearse_teacher(
    X: Any, n_rows: int, n_classes: int, *, estimator: Any, read: Callable[[Any], Any], weighted: bool
) -> None:
    """Train and ask a teacher on public rows and synthetic labels, so that honest errors are raised.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n_public, n_features)
        Public rows.
    n_rows : int
        As many rows as a teacher has; public rows are repeated where there are fewer.
    n_classes : int
        Number of classes.
    estimator : classifier
        As for :func:`train_teachers`.
    read : callable
        How rows are given to the models.
    weighted : bool
        Whether the teachers get weights.
    """
    rows = read(X[np.arange(n_rows) % X.shape[0]])
    labels = np.arange(n_rows) % n_classes
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # nothing can be learned from these labels
        model = fit_with_weights(clone_with_seed(estimator, 0), rows, labels, np.ones(n_rows) if weighted else None)
        model.predict(rows)


def _only_class(class_indices: np.ndarray, n_classes: int) -> int:
    """Return the class of a part that holds no other, -1 if there are several, and the number of classes if none."""
    if not len(class_indices):
        return n_classes
    return int(class_indices[0]) if (class_indices == class_indices[0]).all() else -1


class _SpawnedStreams:
    """Hands out streams that were spawned before: how teachers are cut into blocks then changes no draw."""

    def __init__(self, streams: list[RandomStream]):
        self.streams = streams

    def spawn(self, n: int) -> list[RandomStream]:
        """Return the streams, one for each of n teachers."""
        return self.streams[:n]


def _train_networks(
    X: Any,
    class_indices: np.ndarray,
    parts: list[np.ndarray],
    longest: int,
    n_classes: int,
    networks: dict[str, Any],
    stream: RandomStream,
    read: Callable[[Any], Any],
    weight: np.ndarray | None,
) -> Any:
    """Train blocks of teachers, so that their rows, padded to the same number, are not all dense at once."""
    from skfairdp.neural import NetworkEnsemble, train_ensemble

    streams = stream.spawn(len(parts))
    step = max(1, _VALUES_AT_ONCE // (longest * X.shape[1]))
    found = []
    for start in range(0, len(parts), step):
        block = parts[start : start + step]
        rows = np.zeros((len(block), longest, X.shape[1]), dtype=np.float32)
        targets = np.zeros((len(block), longest, n_classes), dtype=np.float32)
        present = np.zeros((len(block), longest), dtype=bool)
        for i, part in enumerate(block):
            if not len(part):
                continue
            rows[i, : len(part)] = read(X[part])
            # Weights have mean 1 in each part, so that the penalty on the network's weights means the same.
            factor = 1.0 if weight is None else weight[part] / weight[part].mean()
            targets[i, np.arange(len(part)), class_indices[part]] = factor
            present[i, : len(part)] = True
        ready: Any = _SpawnedStreams(streams[start : start + step])
        found.append(
            train_ensemble(
                rows,
                targets,
                present,
                **networks,
                weight_decay=1e-4,
                stream=ready,
            )
        )
    layers = [
        tuple(np.concatenate(tensors) for tensors in zip(*(getattr(one, kind) for one in found)))
        for kind in ("weights", "biases")
    ]
    return NetworkEnsemble(*layers)


def _predict_as_array(model: Any, X: Any, abstains: int) -> np.ndarray:
    """Return the votes of one teacher, which abstains where it fails; an error would reveal something of its rows."""
    try:
        ballot = np.asarray(model.predict(X))
    except Exception:
        ballot = None
    n_rows = X.shape[0]
    if ballot is None or ballot.shape != (n_rows,) or ballot.dtype.kind not in "iub":
        return np.full(n_rows, abstains)
    return ballot
