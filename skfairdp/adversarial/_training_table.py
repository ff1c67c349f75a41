"""From what a user gives to the table that a net is trained on."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.class_weight import compute_class_weight

from skfairdp._sklearn import check_sample_weight
from skfairdp._validation import SensitiveGroups, check_sensitive_features

#: Rows of an epoch at most, unless there are more different ones.
_MOST_DRAWS = 1_000_000


@dataclass
class TrainingTable:
    """Encoded training data: equal rows are merged, and ``weight`` is None when all rows weigh the same.

    ``copies`` says how often each row is drawn in an epoch, None if each is drawn once: a row that was given a hundred
    times, or with a weight of 100, takes part in a hundred batches. ``n_records`` says how many records the rows stand
    for: their total weight before class weights, or their number where weights are fractions that add up to less.
    """

    x: Any
    y: np.ndarray
    groups: np.ndarray | None
    weight: np.ndarray | None
    classes: np.ndarray
    sensitive: SensitiveGroups | None
    n_records: float
    copies: np.ndarray | None

    @property
    def n_draws(self) -> int:
        """How many rows an epoch has."""
        return len(self.y) if self.copies is None else int(self.copies.sum())

    @property
    def n_groups(self) -> tuple[int, ...]:
        """Groups of each sensitive column."""
        return () if self.sensitive is None else self.sensitive.n_groups

    def class_shares(self) -> np.ndarray:
        """Weighted share of each class."""
        count = np.bincount(self.y, weights=self.weight, minlength=len(self.classes))
        return count / count.sum()

    def chance_loss(self) -> float:
        """Cross-entropy, in nats, of an adversary that knows nothing but how frequent the groups are."""
        if self.groups is None:
            return float("nan")
        entropies = []
        for j, n in enumerate(self.n_groups):
            share = np.bincount(self.groups[:, j], weights=self.weight, minlength=n)
            share = share[share > 0] / share.sum()
            entropies.append(-(share * np.log(share)).sum())
        return float(np.mean(entropies))


def make_training_table(
    x: Any, y: np.ndarray, sensitive_features: Any, sample_weight: Any, class_weight: Any
) -> TrainingTable:
    """Encode labels, groups and weights, and merge equal rows.

    Parameters
    ----------
    x : ndarray or sparse matrix of shape (n_samples, n_features)
        Validated rows.
    y : ndarray of shape (n_samples,)
        Labels of any type.
    sensitive_features, sample_weight, class_weight
        As in ``FederateClassifier``.

    Returns
    -------
    TrainingTable
    """
    weight = check_sample_weight(sample_weight, x, dtype=np.float64, ensure_non_negative=True)
    sensitive = None
    if sensitive_features is not None:
        sensitive = check_sensitive_features(sensitive_features, x.shape[0], min_groups=2)
    groups = None if sensitive is None else sensitive.indices
    kept = weight > 0
    if not kept.all():
        x, y, weight = x[kept], y[kept], weight[kept]
        groups = None if groups is None else groups[kept]
    classes, indices = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            "y must hold at least two classes in rows of positive weight; "
            f"got {len(classes)} class: {classes.tolist()}."
        )
    by_class = np.ones(len(classes))
    if class_weight is not None:
        by_class = _class_weights(class_weight, classes, y, indices, weight)
    x, indices, groups, weight = merge_rows(x, indices, groups, weight)
    n_records = max(float(weight.sum()), float(len(weight)))
    copies = _copies_in_an_epoch(weight)
    weight = weight * by_class[indices]
    weight = weight * (len(weight) / weight.sum())
    equal = bool(np.all(weight == weight[0]))
    return TrainingTable(x, indices, groups, None if equal else weight, classes, sensitive, n_records, copies)


def _copies_in_an_epoch(weight: np.ndarray) -> np.ndarray | None:
    """Return how often each row is drawn in an epoch: as often as it weighs, and at least once.

    So many copies share the weight, so that fractions are kept. Weights that count millions of people, as those of a
    survey do, are scaled down: an epoch of a small table has to end.
    """
    most = max(_MOST_DRAWS, len(weight))
    copies = np.maximum(np.floor(weight * min(1.0, most / weight.sum())), 1).astype(np.int64)
    return None if (copies == 1).all() else copies


def _class_weights(
    class_weight: Any, classes: np.ndarray, y: np.ndarray, indices: np.ndarray, weight: np.ndarray
) -> np.ndarray:
    if class_weight == "balanced":
        return weight.sum() / (len(classes) * np.bincount(indices, weights=weight))
    return compute_class_weight(class_weight, classes=classes, y=y)


def merge_rows(
    x: Any, y: np.ndarray, groups: np.ndarray | None, weight: np.ndarray
) -> tuple[Any, np.ndarray, np.ndarray | None, np.ndarray]:
    """Merge equal rows, add up their weights, and bring them into an order that depends on nothing but the rows.

    Training then sees the same table whether a row was given twice or with weight 2, in whatever order the rows came,
    dense or sparse. Rows are ordered by a hash, which is as good as shuffled.

    Parameters
    ----------
    x : ndarray or sparse matrix of shape (n_samples, n_features)
        Floats of single precision, or integers; sparse rows are never made dense.
    y : ndarray of shape (n_samples,)
        Class indices.
    groups : ndarray of shape (n_samples, n_columns) or None
        Group indices.
    weight : ndarray of shape (n_samples,)
        Positive weights.

    Returns
    -------
    x, y, groups, weight
        As given, without repetitions; sparse rows as a CSR array.
    """
    if sparse.issparse(x):
        x = sparse.csr_array(x, copy=True)  # the user's matrix stays as it is
        x.sum_duplicates()
        x.eliminate_zeros()
    labels = np.column_stack([y] if groups is None else [y, groups]).astype(np.uint64)
    salt = 0
    while True:
        key = _hash_rows(x, labels, salt)
        _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
        twin = first[inverse]
        if len(first) == len(key) or (np.array_equal(labels, labels[twin]) and _same_rows(x, x[twin])):
            break
        salt += 1  # two different rows with one hash: take another
    total = np.bincount(inverse, weights=weight)
    return x[first], y[first], None if groups is None else groups[first], total


def _same_rows(x: Any, other: Any) -> bool:
    if not sparse.issparse(x):
        return np.array_equal(x, other)
    return all(np.array_equal(getattr(x, part), getattr(other, part)) for part in ("indptr", "indices", "data"))


def _words_of_values(values: np.ndarray) -> np.ndarray:
    """One unsigned word per value; equal values give equal words, also for the two zeros, whose word is 0."""
    if values.dtype == np.float32:
        return (values + np.float32(0.0)).view(np.uint32).astype(np.uint64)
    return values.astype(np.int64).view(np.uint64)


def _hash_rows(x: Any, labels: np.ndarray, salt: int) -> np.ndarray:
    """Hash each row to 64 bits: a sum of its words with random multipliers, then a mix of the sum's bits.

    A zero adds nothing to the sum, so that sparse and dense rows have the same hash.
    """
    n_features = x.shape[1]
    generator = np.random.default_rng(salt)
    # Odd multipliers lose no bit of a word. The last factor spreads the low bits of the sum over the high ones; it is
    # the odd constant of the mixer degski64.
    multipliers = generator.integers(0, 2**64, size=n_features + labels.shape[1], dtype=np.uint64) | np.uint64(1)
    with np.errstate(over="ignore"):
        if sparse.issparse(x):
            sums = np.concatenate(
                [np.zeros(1, np.uint64), np.cumsum(_words_of_values(x.data) * multipliers[x.indices])]
            )
            total = sums[x.indptr[1:]] - sums[x.indptr[:-1]]
        else:
            total = _words_of_values(x) @ multipliers[:n_features]
        total = total + labels @ multipliers[n_features:]
        return (total ^ (total >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
