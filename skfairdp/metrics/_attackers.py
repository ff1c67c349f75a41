"""Who attacks a representation, and on which rows: what leakage, empirical privacy and code length share."""

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import delayed
from sklearn.base import BaseEstimator
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, check_cv
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_array

from skfairdp._base import dense
from skfairdp._parallel import parallel_results
from skfairdp._validation import SensitiveGroups, check_sensitive_features
from skfairdp.metrics._adaptive_attackers import (
    AdaptiveAttacker,
    BoostingAttacker,
    NeighborsAttacker,
    NetworkAttacker,
)
from skfairdp.random import RandomStream, clone_with_seed

POOL = ("linear", "mlp", "boosting", "neighbors")
#: The mean of these two is an attacker of its own, often a stronger one: they err on different rows.
_AVERAGED = ("mlp", "boosting")

_Split = tuple[np.ndarray, np.ndarray]


def check_representation(H: Any, name: str = "H") -> np.ndarray:
    """Return a representation as a dense two-dimensional float array."""
    if H is None:
        raise ValueError(f"{name} is missing: give one row of numbers per sample.")
    return dense(check_array(H, accept_sparse=True, dtype=[np.float64, np.float32], input_name=name))


def named_attackers(probe: Any) -> list[tuple[str, BaseEstimator]]:
    """Turn ``probe`` into a list of names and unfitted classifiers."""
    if isinstance(probe, str) and probe == "pool":
        probe = POOL
    given = list(probe) if isinstance(probe, list | tuple) else ["mlp" if probe is None else probe]
    if not given:
        raise ValueError("probe is an empty list; give at least one attacker.")
    attackers: list[tuple[str, BaseEstimator]] = []
    for one in given:
        name, estimator = _named_attacker(one)
        same = sum(known.split("#")[0] == name for known, _ in attackers)
        attackers.append((f"{name}#{same + 1}" if same else name, estimator))
    return attackers


def _named_attacker(probe: Any) -> tuple[str, BaseEstimator]:
    if isinstance(probe, str):
        if probe == "mlp":
            return probe, NetworkAttacker()
        if probe == "linear":
            return probe, make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
        if probe == "boosting":
            return probe, BoostingAttacker()
        if probe == "neighbors":
            return probe, NeighborsAttacker()
        if probe == "majority":
            return probe, DummyClassifier(strategy="most_frequent")
    elif hasattr(probe, "fit") and hasattr(probe, "predict") and not isinstance(probe, type):
        return type(probe).__name__, probe
    raise ValueError(
        "probe must be 'mlp', 'linear', 'boosting', 'neighbors', 'majority', 'pool', a scikit-learn classifier, or a "
        f"list of these; got {probe!r}."
    )


@dataclass(frozen=True)
class AttackedRows:
    """The rows of an attack: representation, sensitive groups, and which rows train and which are scored."""

    H: np.ndarray
    groups: SensitiveGroups
    splits_of: Any  # indices -> list of splits; the folds follow the column that is attacked


def check_attacked_rows(
    H: Any,
    sensitive_features: Any,
    H_test: Any,
    sensitive_features_test: Any,
    cv: Any,
    stream: RandomStream,
    *,
    min_groups: int = 2,
) -> AttackedRows:
    """Check the arguments of an attack; with test rows train and test are given, else they are folds."""
    H = check_representation(H)
    groups = check_sensitive_features(sensitive_features, len(H), min_groups=min_groups)
    if (H_test is None) != (sensitive_features_test is None):
        missing = "H_test" if H_test is None else "sensitive_features_test"
        raise ValueError(f"H_test and sensitive_features_test go together; {missing} is missing.")
    if H_test is None:
        seed = stream.seed()
        return AttackedRows(H, groups, lambda indices: _attack_folds(H, indices, cv, seed))
    H_test = check_representation(H_test, "H_test")
    if H_test.shape[1] != H.shape[1]:
        raise ValueError(f"H_test must have the {H.shape[1]} columns of H; it has {H_test.shape[1]}.")
    test = check_sensitive_features(sensitive_features_test, len(H_test), name="sensitive_features_test")
    rows = np.arange(len(H) + len(H_test))
    splits = [(rows[: len(H)], rows[len(H) :])]
    return AttackedRows(np.concatenate([H, H_test]), _joined_groups(groups, test), lambda indices: splits)


def _joined_groups(train: SensitiveGroups, test: SensitiveGroups) -> SensitiveGroups:
    """Put the rows of two tables below each other; labels that only the second has come last."""
    if train.n_columns != test.n_columns:
        raise ValueError(
            f"sensitive_features_test must have the {train.n_columns} columns of sensitive_features; "
            f"it has {test.n_columns}."
        )
    labels, indices = [], []
    for j, (known, found) in enumerate(zip(train.labels, test.labels)):
        place = {label: code for code, label in enumerate(known)}
        for label in found:
            place.setdefault(label, len(place))
        labels.append(tuple(place))
        places = np.array([place[label] for label in found])
        indices.append(np.concatenate([train.indices[:, j], places[test.indices[:, j]]]))
    return SensitiveGroups(np.column_stack(indices), tuple(labels), train.names)


def _attack_folds(H: np.ndarray, indices: np.ndarray, cv: Any, seed: int) -> list[_Split]:
    if isinstance(cv, bool) or not (isinstance(cv, int | np.integer | Iterable) or hasattr(cv, "split")):
        raise ValueError(f"cv must be a number of folds, a scikit-learn splitter or a list of splits; got {cv!r}.")
    if isinstance(cv, int | np.integer):
        largest = np.bincount(indices).max()
        if not 2 <= cv <= largest:
            raise ValueError(f"cv must be between 2 and {largest}, the size of the largest group; got {cv}.")
        cv = StratifiedKFold(int(cv), shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        # A group smaller than the number of folds is missing from some of them, which the scores can bear.
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        return list(check_cv(cv, indices, classifier=True).split(H, indices))


@dataclass(frozen=True)
class Attack:
    """What one attacker said about every scored row."""

    predicted: np.ndarray
    scores: np.ndarray | None  # a column per group, larger is likelier; None if the attacker gives none


def run_attacks(
    attacked: AttackedRows, indices: np.ndarray, attackers: list, stream: RandomStream, n_jobs: int | None
) -> tuple[dict[str, Attack], np.ndarray, np.ndarray]:
    """Train every attacker on the training rows of every split, and let it speak about the other rows.

    Returns
    -------
    attacks : dict of str to Attack
        What each attacker said; with the network and the trees among them, also what their mean says.
    truth, part : ndarray of shape (n_scored,)
        Groups of the scored rows, and the part each belongs to when the strongest attacker is chosen.
    """
    splits = attacked.splits_of(indices)
    n_groups = int(indices.max()) + 1
    tasks = [(clone_with_seed(attacker, stream.seed()), split) for _, attacker in attackers for split in splits]
    ask = delayed(_answer_of_attacker)
    answers = parallel_results(
        lambda: (ask(attacker, attacked.H, indices, n_groups, split) for attacker, split in tasks), n_jobs
    )
    attacks = {}
    for k, (name, _) in enumerate(attackers):
        predicted, scores = zip(*answers[k * len(splits) : (k + 1) * len(splits)])
        known = all(part is not None for part in scores)
        attacks[name] = Attack(np.concatenate(predicted), np.concatenate(scores) if known else None)
    averaged = [found for name in _AVERAGED if name in attacks and (found := attacks[name].scores) is not None]
    if len(averaged) == len(_AVERAGED):
        mean = np.mean(averaged, axis=0)
        attacks[" + ".join(_AVERAGED)] = Attack(mean.argmax(axis=1), mean)
    truth = np.concatenate([indices[test] for _, test in splits])
    if len(splits) > 1:
        return attacks, truth, np.repeat(np.arange(len(splits)), [len(test) for _, test in splits])
    part = np.empty(len(truth), dtype=np.intp)
    part[np.argsort(truth, kind="stable")] = np.arange(len(truth)) % 2
    return attacks, truth, part


def _answer_of_attacker(attacker: Any, H: np.ndarray, indices: np.ndarray, n_groups: int, split: _Split) -> tuple:
    train, test = split
    known = np.unique(indices[train])
    scores = np.full((len(test), n_groups), -np.inf)
    if len(known) == 1:  # nothing to learn, so everybody is said to belong to the only group there is
        scores[:, known] = 0.0
        return np.full(len(test), known[0]), scores
    attacker.fit(H[train], indices[train])
    if isinstance(attacker, AdaptiveAttacker):  # asked once for both: neighbours are not looked for twice
        scores[:, attacker.classes_] = attacker.predict_proba(H[test])
        return scores.argmax(axis=1), scores
    predicted = np.asarray(attacker.predict(H[test])).astype(np.intp)
    method = next((name for name in ("predict_proba", "decision_function") if hasattr(attacker, name)), None)
    if method is None:
        return predicted, None
    likely = np.asarray(getattr(attacker, method)(H[test]))
    scores[:, attacker.classes_.astype(np.intp)] = np.column_stack([-likely, likely]) if likely.ndim == 1 else likely
    return predicted, scores
