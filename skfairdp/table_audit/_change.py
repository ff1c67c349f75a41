"""By how much the gap of one model differs from that of another on the same rows, beyond chance."""

from typing import NamedTuple

import numpy as np
from scipy import sparse

from skfairdp._validation import check_sensitive_features
from skfairdp.metrics import combine_gaps, tpr_gaps
from skfairdp.table_audit._prepare import PreparedTable

_DRAWS = 1000


class Change(NamedTuple):
    """A difference of gaps with its 95% interval; negative is fairer than the reference."""

    value: float
    low: float
    high: float


def gap_change(
    table: PreparedTable, rows: np.ndarray, predicted: np.ndarray, reference: np.ndarray, seed: int
) -> Change:
    """Bootstrap the difference of two gaps over rows, which both models share.

    The intervals of the gaps themselves say little about the difference: where both models err on the
    same rows, it is known far better than either gap.
    """
    groups = check_sensitive_features(table.sensitive.iloc[rows], len(rows), intersection=True).indices[:, 0]
    n_classes, n_groups = len(table.classes), int(groups.max()) + 1
    place = {label: k for k, label in enumerate(table.classes)}
    truth, one, other = (
        np.array([place[label] for label in labels.tolist()]) for labels in (table.y[rows], predicted, reference)
    )
    cells = ((groups * n_classes + truth) * n_classes + one) * n_classes + other
    found, counts = np.unique(cells, return_counts=True)
    cell_group, rest = np.divmod(found, n_classes**3)
    cell_truth, rest = np.divmod(rest, n_classes**2)
    sums = []
    for predicted_class in np.divmod(rest, n_classes):
        target = (cell_group * n_classes + cell_truth) * n_classes + predicted_class
        shape = (len(found), n_groups * n_classes**2)
        sums.append(sparse.csr_matrix((np.ones(len(found)), (np.arange(len(found)), target)), shape=shape))
    position = None if table.pos_label is None else place[table.pos_label]
    average = "rms" if position is None else "binary"

    def difference(drawn: np.ndarray) -> np.ndarray:
        gaps = []
        for summed in sums:
            marginal = np.asarray(drawn @ summed).reshape(len(drawn), n_groups, n_classes, n_classes)
            gaps.append(combine_gaps(tpr_gaps(marginal), average, position))
        return gaps[0] - gaps[1]

    generator = np.random.default_rng(seed)
    drawn = generator.multinomial(len(rows), counts / len(rows), size=_DRAWS)
    differences = difference(drawn)
    differences = differences[np.isfinite(differences)]
    low, high = np.quantile(differences, [0.025, 0.975]) if differences.size else (np.nan, np.nan)
    value = float(difference(counts[None])[0])
    # A gap of noisy rates is biased upwards, so that all draws may lie on one side of what was measured.
    return Change(value, float(np.fmin(low, value)), float(np.fmax(high, value)))
