"""What a model believes about the class and the groups of a record: P(y | x), and P(z | x, y) where fairness needs it.

The joint belief ``P(y, z | x) = P(y | x) P(z | x, y)`` is learned by its factors: one model of the class on all rows,
and, for each class that a fairness definition speaks of, one model of the groups on the rows of that class. Against one
model of all pairs (y, z) this grows one tree per round instead of one per pair, and leaves the columns of X alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import delayed
from sklearn.utils.validation import has_fit_parameter

from skfairdp._parallel import parallel_results
from skfairdp._row_wise import evaluate_rows
from skfairdp._sklearn import safe_indexing
from skfairdp.random import clone_with_seed

#: Rows that a group needs in a class to be learned there; a model cannot tell a group from fewer.
LEAST_ROWS = 10
#: Beliefs are rounded to this many digits, and may lie outside of 0 and 1 by no more than the rounding of arithmetic.
_DIGITS, _ROUNDING = 9, 1e-6
#: Stands for the rows of all classes.
ANY_CLASS = -1


@dataclass(frozen=True)
class Beliefs:
    """Beliefs about some rows.

    Attributes
    ----------
    classes : ndarray of shape (n_samples, n_classes)
        P(y | x).
    groups : dict of int to ndarray of shape (n_samples, n_groups)
        P(z = g | x, y = c) by class c, or P(z = g | x) under ``ANY_CLASS``; the groups of several sensitive columns
        stand side by side.
    """

    classes: np.ndarray
    groups: dict[int, np.ndarray]

    def joint(self, given: Sequence[int]) -> np.ndarray:
        """Compute P(y in given, z = g | x) for every group."""
        if ANY_CLASS in self.groups:
            return self.groups[ANY_CLASS]
        return sum(self.classes[:, [c]] * self.groups[c] for c in given)

    def take(self, rows: np.ndarray) -> "Beliefs":
        """Return the beliefs about some of the rows."""
        return Beliefs(self.classes[rows], {c: groups[rows] for c, groups in self.groups.items()})


@dataclass(frozen=True)
class TrainingRows:
    """What beliefs are learned from.

    Attributes
    ----------
    X : any table
        Rows, as the estimator likes them.
    y : ndarray of int
        Class indices.
    groups : ndarray of int of shape (n_samples, n_columns) or None
        Group indices of every sensitive column.
    n_groups : tuple of int
        How many groups each column has.
    weight : ndarray or None
        Row weights, to be passed on to the estimator.
    labels : ndarray
        The class labels, which the estimator is trained with.
    """

    X: Any
    y: np.ndarray
    groups: np.ndarray | None
    n_groups: tuple[int, ...]
    weight: np.ndarray | None
    labels: np.ndarray

    def __len__(self) -> int:
        return len(self.y)

    def take(self, rows: np.ndarray) -> "TrainingRows":
        """Return some of the rows."""
        groups = None if self.groups is None else self.groups[rows]
        weight = None if self.weight is None else self.weight[rows]
        return TrainingRows(safe_indexing(self.X, rows), self.y[rows], groups, self.n_groups, weight, self.labels)


class BeliefModel:
    """One model of the class, and models of the groups within the classes that fairness speaks of.

    Parameters
    ----------
    class_model : estimator
        Of P(y | x); fitted here unless ``prefit``.
    group_model : estimator
        Of P(z | x, y), cloned for each class and sensitive column.
    conditions : sequence of int
        The classes within which groups are believed in, or ``(ANY_CLASS,)``.
    prefit : bool
        Whether ``class_model`` is fitted and stays as it is.
    """

    def __init__(self, class_model: Any, group_model: Any, conditions: Sequence[int], prefit: bool = False):
        self.class_model = class_model
        self.group_model = group_model
        self.conditions = tuple(conditions)
        self.prefit = prefit

    def fit(self, rows: TrainingRows, seed: int) -> "BeliefModel":
        """Train all models; those of the groups on the rows of their class alone."""
        self.n_groups_, self.labels_ = rows.n_groups, rows.labels
        self.class_model_ = self.class_model
        if not self.prefit:
            self.class_model_ = _fitted(self.class_model, rows.X, rows.labels[rows.y], rows.weight, seed)
        self.group_models_ = {}
        for c in self.conditions:
            of_class = rows if c == ANY_CLASS else rows.take(np.flatnonzero(rows.y == c))
            for column, n_groups in enumerate(self.n_groups_):
                self.group_models_[c, column] = self._fit_groups(of_class, column, n_groups, seed)
        return self

    def _fit_groups(self, rows: TrainingRows, column: int, n_groups: int, seed: int) -> Any:
        """Return a model of one column's groups among the given rows, or its only group."""
        groups = rows.groups[:, column]  # type: ignore[index]
        learned = np.flatnonzero(np.bincount(groups, minlength=n_groups) >= LEAST_ROWS)
        if len(learned) < 2:
            return learned
        kept = np.flatnonzero(np.isin(groups, learned))
        part = rows if len(kept) == len(groups) else rows.take(kept)
        return _fitted(self.group_model, part.X, groups[kept], part.weight, seed)

    def believe(self, X: Any, *, row_wise: bool = True) -> Beliefs:
        """Compute the beliefs about rows.

        Parameters
        ----------
        X : any table
            Rows.
        row_wise : bool, default=True
            Call every model on the whole batch. Otherwise a model that is not known to treat each record alone is
            called on one record at a time.
        """
        found = Beliefs(_aligned(self.class_model_, X, self.labels_, row_wise), {})
        n = len(found.classes)
        for c in self.conditions:
            columns = []
            for column, n_groups in enumerate(self.n_groups_):
                model = self.group_models_[c, column]
                if isinstance(model, np.ndarray):  # at most one group can be told
                    columns.append(np.tile(np.isin(np.arange(n_groups), model).astype(float), (n, 1)))
                else:
                    columns.append(_aligned(model, X, np.arange(n_groups), row_wise))
            found.groups[c] = np.hstack(columns)
        return found


def cross_fit(model: BeliefModel, rows: TrainingRows, folds: Sequence[Any], seed: int, n_jobs: int | None) -> Beliefs:
    """Compute each row's beliefs by models that have not seen it.

    Parameters
    ----------
    model : BeliefModel
        Unfitted.
    rows : TrainingRows
        All rows.
    folds : sequence of (ndarray, ndarray)
        Training and test rows; every row is a test row once.
    seed : int
        For models whose ``random_state`` is None.
    n_jobs : int or None
        Folds at the same time.

    Returns
    -------
    Beliefs
    """
    parts = parallel_results(lambda: (delayed(_believe_fold)(model, rows, *fold, seed) for fold in folds), n_jobs)
    place = np.argsort(np.concatenate([test for _, test in folds]), kind="stable")
    classes = np.concatenate([part.classes for part in parts])[place]
    groups = {c: np.concatenate([part.groups[c] for part in parts])[place] for c in model.conditions}
    return Beliefs(classes, groups)


def _believe_fold(model: BeliefModel, rows: TrainingRows, train: np.ndarray, test: np.ndarray, seed: int) -> Beliefs:
    fresh = BeliefModel(model.class_model, model.group_model, model.conditions, model.prefit)
    return fresh.fit(rows.take(train), seed).believe(safe_indexing(rows.X, test))


def _fitted(estimator: Any, X: Any, y: np.ndarray, weight: np.ndarray | None, seed: int) -> Any:
    if len(np.unique(y)) < 2:
        raise ValueError(
            f"y: a fold is trained on rows of one class, {y[0]!r}, because others have too few rows. Give at least as "
            "many rows of every class as there are folds (cv)."
        )
    model = clone_with_seed(estimator, seed)
    if weight is None:
        return model.fit(X, y)
    if not has_fit_parameter(model, "sample_weight"):
        raise ValueError(
            f"sample_weight was given, but {type(model).__name__} takes none; leave it out, or choose an estimator "
            "whose fit has sample_weight."
        )
    return model.fit(X, y, sample_weight=weight)


def _aligned(model: Any, X: Any, labels: np.ndarray, row_wise: bool) -> np.ndarray:
    """Return probabilities with one column per label, in their order; 0 for labels that the model has not seen."""
    name, classes = type(model).__name__, getattr(model, "classes_", None)
    if classes is None or not np.isin(classes, labels).all():
        raise ValueError(f"{name} must have the classes that it was trained with as classes_; it has {classes!r}.")
    found = np.asarray(evaluate_rows(model, "predict_proba", X, row_wise=row_wise), dtype=float)
    if found.ndim != 2 or found.shape[1] != len(classes):
        raise ValueError(
            f"predict_proba of {name} must give a column for each of {len(classes)} classes; got shape {found.shape}."
        )
    if ((found < -_ROUNDING) | (found > 1 + _ROUNDING)).any():
        raise ValueError(f"predict_proba of {name} must give probabilities; got values outside of 0 and 1.")
    # The last digits of a sum over threads are not the same twice, and must not decide anything.
    found = np.round(found, _DIGITS)
    if np.array_equal(classes, labels):
        return found
    every = np.zeros((len(found), len(labels)))
    every[:, np.searchsorted(labels, classes)] = found
    return every
