"""An encoder for tables as they come: columns of any scale, heavy tails, steps, and few rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from scipy import sparse
from sklearn.ensemble import RandomForestClassifier
from torch import nn

from skfairdp.neural._networks import mlp

# A column is cut into at most so many pieces, each of which should hold about so many rows.
_MOST_PIECES, _ROWS_PER_PIECE = 48, 50
# Fewer pieces than this say no more about a column than the column itself.
_FEWEST_PIECES = 4
# All pieces together add at most about so many inputs: a table of 250 columns and more that have more than two values
# is standardised only.
_MOST_INPUTS = 1000
# So many columns are made dense at a time.
_COLUMNS_AT_ONCE = 64
# Quantiles of so many rows are close enough to those of all. Training rows come in the order of a hash, so that the
# first ones are a random part.
_ROWS_TO_SORT = 100_000
# Standardised values are cut off here: one absurd value must not decide what a record is encoded as.
_LARGEST = 10.0
# Pieces start smaller than the columns themselves, so that the penalty on weights holds them back until rows ask
# for a step or a bend; 0.3 cost no accuracy on tables of 150 rows and none of 40,000.
_PIECE_SCALE = 0.3
# A forest of so many trees, grown on so many rows and values, tells which columns matter and where to cut them: enough
# for a ranking, and a small part of the time that the network takes. A split is the best of half of the columns, so
# that noise does not hide the few that matter, but of no more than this, so that wide tables do not take long.
_TREES, _ROWS_TO_GROW, _VALUES_TO_GROW, _MOST_COLUMNS_TO_TRY = 50, 5000, 1 << 24, 200
# What a column gains, beside the column that gains most, is taken as at least this much: what a forest cannot see can
# still be learned. The power keeps columns that stand in for each other from being put aside for the best of them.
_LEAST_RELEVANCE, _POWER = 0.02, 0.75
# Added to the spread of a piece, so that a piece which is almost always 0 or 1 is not blown up.
_LEAST_SPREAD = 0.1


@dataclass(frozen=True)
class ColumnStatistics:
    """What a ``TabularEncoder`` knows of its training columns before it is trained.

    Attributes
    ----------
    mean, spread : ndarray of shape (n_features,)
        Mean and standard deviation of each column; the spread of a constant column is 1.
    piece_column : ndarray of shape (n_pieces,)
        Which column each piece belongs to.
    piece_start, piece_length : ndarray of shape (n_pieces,)
        Where each piece starts, and how long it is.
    piece_mean, piece_spread : ndarray of shape (n_pieces,)
        Of the share of a piece that a value has passed.
    relevance : ndarray of shape (n_features,)
        How much a forest gains from each column when it tells the classes apart; its mean square is 1.
    """

    mean: np.ndarray
    spread: np.ndarray
    piece_column: np.ndarray
    piece_start: np.ndarray
    piece_length: np.ndarray
    piece_mean: np.ndarray
    piece_spread: np.ndarray
    relevance: np.ndarray


def column_statistics(x: Any, y: np.ndarray, weight: np.ndarray | None = None) -> ColumnStatistics:
    """Learn means, spreads and quantiles of the columns of a table, and which of them matter for the classes.

    Parameters
    ----------
    x : ndarray or sparse matrix of shape (n_samples, n_features)
        Training rows, in an order that is as good as shuffled.
    y : ndarray of shape (n_samples,)
        Class indices.
    weight : ndarray of shape (n_samples,) or None
        Row weights.

    Returns
    -------
    ColumnStatistics

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp.neural import column_statistics
    >>> x = np.random.default_rng(0).normal(size=(300, 3)).astype(np.float32)
    >>> statistics = column_statistics(x, (x[:, 1] > 0).astype(int))
    >>> int(statistics.relevance.argmax())
    1
    """
    n_rows, n_features = x.shape
    share = np.full(n_rows, 1.0 / n_rows) if weight is None else weight / weight.sum()
    x = x.tocsc() if sparse.issparse(x) else x
    mean, spread, in_between = np.zeros(n_features), np.ones(n_features), np.zeros(n_features, dtype=bool)
    for start in range(0, n_features, _COLUMNS_AT_ONCE):
        part = slice(start, start + _COLUMNS_AT_ONCE)
        values = _dense_columns(x, part)
        mean[part] = share @ values
        spread[part] = np.sqrt(share @ (values - mean[part]) ** 2)
        in_between[part] = ((values > values.min(axis=0)) & (values < values.max(axis=0))).any(axis=0)
    # Rounding leaves a constant column a tiny spread, which must not become the unit of its values.
    spread[(spread <= 1e-6 * np.abs(mean)) | (spread < 1e-30)] = 1.0
    n_pieces = min(_MOST_PIECES, n_rows // _ROWS_PER_PIECE, _MOST_INPUTS // max(in_between.sum(), 1))
    split_column, split_at, gain = _splits_of_a_forest(x, y, share)
    pieces = []
    for j in np.flatnonzero(in_between) if n_pieces >= _FEWEST_PIECES else ():
        values = _dense_columns(x, slice(j, j + 1))[:, 0]
        here = split_column == j
        edges = _edges(values[:_ROWS_TO_SORT], share[:_ROWS_TO_SORT], split_at[here], gain[here], n_pieces)
        for start, length in zip(edges[:-1], np.diff(edges)):
            passed = np.clip((values - start) / length, 0.0, 1.0)
            mean_passed = share @ passed
            pieces.append((j, start, length, mean_passed, np.sqrt(share @ (passed - mean_passed) ** 2)))
    column, starts, lengths, means, spreads = np.array(pieces, dtype=np.float64).reshape(-1, 5).T
    gains = np.bincount(split_column, weights=gain, minlength=n_features)
    relevance = np.maximum(gains / max(gains.max(), 1e-30), _LEAST_RELEVANCE) ** _POWER
    relevance /= np.sqrt(np.mean(relevance**2))
    return ColumnStatistics(mean, spread, column.astype(int), starts, lengths, means, spreads, relevance)


def _dense_columns(x: Any, columns: slice) -> np.ndarray:
    part = x[:, columns]
    # In one memory order, because sums depend on it in their last digits.
    return (part.toarray() if sparse.issparse(part) else part).astype(np.float64, order="C")


def _splits_of_a_forest(x: Any, y: np.ndarray, share: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Column, threshold and gain in purity of every split that a random forest makes."""
    n_features = x.shape[1]
    rows = slice(max(1, min(_ROWS_TO_GROW, _VALUES_TO_GROW // n_features)))
    tried = max(1, min(n_features // 2, _MOST_COLUMNS_TO_TRY))
    forest = RandomForestClassifier(_TREES, min_samples_leaf=3, max_features=tried, random_state=0)
    with np.errstate(over="ignore", invalid="ignore"):  # scikit-learn adds all values up, and these may be absurd
        forest.fit(_dense_columns(x[rows], slice(None)), y[rows], share[rows])
    found = []
    for tree in (estimator.tree_ for estimator in forest.estimators_):
        impurity = tree.weighted_n_node_samples * tree.impurity
        node = np.flatnonzero(tree.children_left >= 0)
        gain = impurity[node] - impurity[tree.children_left[node]] - impurity[tree.children_right[node]]
        found.append((tree.feature[node], tree.threshold[node], np.maximum(gain, 0.0)))
    columns, thresholds, gains = (np.concatenate(part) for part in zip(*found))
    return columns, thresholds, gains


def _edges(values: np.ndarray, share: np.ndarray, split_at: np.ndarray, gain: np.ndarray, n_pieces: int) -> np.ndarray:
    """Cut a column where a forest splits it, and between equally many rows, and between equally many values.

    Half of the cuts have equal parts of the forest's gain between them and see to steps. A quarter sees to columns that
    are mostly one value, such as a capital gain that few people have. A column with few different values is cut at
    each.
    """
    edges = distinct = np.unique(values)
    if len(distinct) > n_pieces + 1:
        by_values = distinct[np.linspace(0, len(distinct) - 1, n_pieces // 4 + 1).round().astype(int)]
        by_rows = _quantiles(values, share, n_pieces // 4)
        by_gain = _quantiles(split_at, gain, n_pieces // 2) if len(split_at) else by_rows
        edges = np.unique(np.concatenate([by_values, by_rows, by_gain]))
    # Networks compute in single precision: cuts that it cannot tell apart are one.
    keep = np.diff(edges, prepend=-np.inf) > 1e-6 * np.abs(edges).max()
    return edges[keep]


def _quantiles(values: np.ndarray, weight: np.ndarray, n_parts: int) -> np.ndarray:
    """Values between which there are equal parts of the weight."""
    order = np.argsort(values, kind="stable")
    passed = np.cumsum(weight[order])
    levels = np.linspace(0.0, passed[-1], n_parts + 1)
    return values[order][np.minimum(np.searchsorted(passed, levels), len(values) - 1)]


class TabularEncoder(nn.Module):
    """Standardise the columns, add piecewise linear ones, and pass all to a linear layer beside hidden layers.

    A value is standardised and cut off at 10 spreads. Beside it stand the shares of the pieces of its column that it
    has passed (Gorishniy, Rubachev and Babenko 2022), so that a linear layer can already follow steps and bends, as
    trees do. The linear layer to the output makes logistic regression a part of what can be learned; the hidden layers
    add what goes together. Their inputs are larger the more a forest gained from the column, so that the penalty on
    weights keeps columns of noise out: a network that sees all alike learns small tables by heart. The statistics are
    fixed: only the layers are trained, and each row is encoded by itself.

    Parameters
    ----------
    statistics : ColumnStatistics
        Of the training rows.
    hidden_sizes : sequence of int
        Widths of the hidden layers; none leaves the linear layer alone.
    n_outputs : int
        Width of the output.
    dropout : float
        Share of hidden units that are dropped in training.

    References
    ----------
    .. [1] Y. Gorishniy, I. Rubachev, A. Babenko (2022). On embeddings for numerical features in tabular deep learning.
       NeurIPS.

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> from skfairdp.neural import TabularEncoder, column_statistics
    >>> x = np.random.default_rng(0).normal(size=(300, 3)).astype(np.float32)
    >>> statistics = column_statistics(x, (x[:, 0] > 0).astype(int))
    >>> TabularEncoder(statistics, (16,), n_outputs=2)(torch.from_numpy(x)).shape
    torch.Size([300, 2])
    """

    _row_wise_methods: ClassVar[dict] = {"forward": ()}

    mean: torch.Tensor
    unit: torch.Tensor
    piece_start: torch.Tensor
    piece_unit: torch.Tensor
    piece_mean: torch.Tensor
    piece_scale: torch.Tensor
    relevance: torch.Tensor
    piece_column: torch.Tensor

    def __init__(self, statistics: ColumnStatistics, hidden_sizes: Sequence[int], n_outputs: int, dropout: float = 0.0):
        super().__init__()

        def keep(name: str, values: np.ndarray) -> None:
            self.register_buffer(name, torch.as_tensor(values, dtype=torch.float32))

        keep("mean", statistics.mean)
        keep("unit", 1.0 / statistics.spread)
        keep("piece_start", statistics.piece_start)
        keep("piece_unit", 1.0 / statistics.piece_length)
        keep("piece_mean", statistics.piece_mean)
        keep("piece_scale", _PIECE_SCALE / (statistics.piece_spread + _LEAST_SPREAD))
        keep("relevance", np.append(statistics.relevance, statistics.relevance[statistics.piece_column]))
        self.register_buffer("piece_column", torch.as_tensor(statistics.piece_column))
        n_inputs = len(statistics.mean) + len(statistics.piece_column)
        self.linear = nn.Linear(n_inputs, n_outputs)
        nn.init.zeros_(self.linear.weight)
        self.hidden = mlp(n_inputs, hidden_sizes, n_outputs, dropout) if hidden_sizes else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Encode rows of shape (n, n_features).

        Parameters
        ----------
        x : Tensor of shape (n_samples, n_features)
            The rows.
        """
        inputs = self.inputs(x)
        out = self.linear(inputs)
        return out if self.hidden is None else out + self.hidden(inputs * self.relevance)

    def inputs(self, x: torch.Tensor) -> torch.Tensor:
        """Return what the layers get: standardised columns, then pieces.

        Parameters
        ----------
        x : Tensor of shape (n_samples, n_features)
            The rows.
        """
        columns = ((x - self.mean) * self.unit).clamp(-_LARGEST, _LARGEST)
        if len(self.piece_column):
            passed = ((x[:, self.piece_column] - self.piece_start) * self.piece_unit).clamp(0.0, 1.0)
            columns = torch.cat([columns, (passed - self.piece_mean) * self.piece_scale], dim=1)
        return columns
