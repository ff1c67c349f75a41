"""By how much the gap of one model differs from that of another on the same rows, with an interval."""

from typing import NamedTuple

import numpy as np
from scipy import sparse

from skfairdp._validation import check_sensitive_features
from skfairdp.metrics import combine_gaps, tpr_gaps
from skfairdp.table_audit._prepared_table import PreparedTable

_DRAWS = 1000  # of the bootstrap: the ends of a 95% interval are then the 25th and the 975th draw


class GapDifference(NamedTuple):
    """A difference of gaps with its 95% interval; negative is fairer than the reference."""

    value: float
    lower: float
    upper: float


def gap_difference(
    table: PreparedTable, rows: np.ndarray, predicted: np.ndarray, reference: np.ndarray, seed: int
) -> GapDifference:
    """Bootstrap the difference of two gaps over the rows that both models predict.

    The intervals of the two gaps say little about their difference: where both models err on the
    same rows, the difference is known far better than either gap.
    """
    groups = check_sensitive_features(table.sensitive.iloc[rows], len(rows), intersection=True).indices[:, 0]
    n_classes, n_groups = len(table.classes), int(groups.max()) + 1
    index_of = {label: k for k, label in enumerate(table.classes)}
    truth, one, other = (
        np.array([index_of[label] for label in labels.tolist()]) for labels in (table.y[rows], predicted, reference)
    )
    # A cell is a group, a true class, and what each of the two models predicts. Rows of a cell are alike, so that
    # drawing numbers of rows per cell is drawing rows. Each model's own table of counts is a sum of cells.
    cells = ((groups * n_classes + truth) * n_classes + one) * n_classes + other
    found, counts = np.unique(cells, return_counts=True)
    cell_group, rest = np.divmod(found, n_classes**3)
    cell_truth, rest = np.divmod(rest, n_classes**2)
    sums = []
    for predicted_class in np.divmod(rest, n_classes):
        target = (cell_group * n_classes + cell_truth) * n_classes + predicted_class
        shape = (len(found), n_groups * n_classes**2)
        sums.append(sparse.csr_matrix((np.ones(len(found)), (np.arange(len(found)), target)), shape=shape))

    def difference(drawn: np.ndarray) -> np.ndarray:
        one_gap, other_gap = (
            _gap_of_counts(table, np.asarray(drawn @ summed).reshape(len(drawn), n_groups, n_classes, n_classes))
            for summed in sums
        )
        return one_gap - other_gap

    generator = np.random.default_rng(seed)
    differences = difference(generator.multinomial(len(rows), counts / len(rows), size=_DRAWS))
    differences = differences[np.isfinite(differences)]
    lower, upper = np.quantile(differences, [0.025, 0.975]) if differences.size else (np.nan, np.nan)
    value = float(difference(counts[None])[0])
    # A gap of noisy rates is biased upwards, so that all draws may lie on one side of what was measured.
    return GapDifference(value, float(np.fmin(lower, value)), float(np.fmax(upper, value)))


def _gap_of_counts(table: PreparedTable, counts: np.ndarray) -> np.ndarray:
    """Return the table's fairness metric of counts ``[..., group, true class, predicted class]``."""
    if table.pos_label is None:
        return combine_gaps(tpr_gaps(counts), "rms")
    return combine_gaps(tpr_gaps(counts), "binary", table.classes.index(table.pos_label))
