"""The tabular encoder: what it learns of columns, and what it makes of values."""

import numpy as np
import pytest
import torch
from scipy import sparse

from skfairdp.neural import TabularEncoder, column_statistics


def table(n=1000):
    rng = np.random.default_rng(0)
    zeros = np.where(rng.random(n) < 0.9, 0.0, rng.integers(1, 200, n) * 50.0)
    columns = [rng.normal(5, 2, n), np.exp(3 * rng.normal(size=n)), rng.integers(0, 2, n), np.full(n, 7.0), zeros]
    return np.column_stack(columns).astype(np.float32)


def classes(x):
    """Two classes that any one column may tell apart a little."""
    return (np.argsort(np.argsort(x[:, 0])) % 7 > 3).astype(int)


def learn(x, weight=None):
    return column_statistics(x, classes(x), weight)


def test_standardises_and_cuts_off():
    x = table()
    inputs = TabularEncoder(learn(x), (), 2).inputs(torch.tensor(x)).numpy()
    assert inputs[:, [0, 2]].mean(axis=0) == pytest.approx([0, 0], abs=1e-4)
    assert inputs[:, [0, 2]].std(axis=0) == pytest.approx([1, 1], abs=1e-3)
    assert np.abs(inputs).max() <= 10.0
    assert (inputs[:, 3] == 0).all()  # a constant column says nothing


def test_pieces_follow_rows_and_values():
    found = learn(table())
    assert set(found.piece_column) == {0, 1, 4}  # two values or one need no pieces
    # Nine rows in ten are zero, and still the others are told apart.
    assert (found.piece_column == 4).sum() > 5
    assert (found.piece_length > 0).all()


def test_few_rows_or_many_columns_have_no_pieces():
    assert len(learn(table(150)).piece_column) == 0
    wide = np.random.default_rng(0).normal(size=(400, 300)).astype(np.float32)
    assert len(learn(wide).piece_column) == 0


def test_linear_layer_can_follow_a_step():
    x = np.linspace(0, 1, 500, dtype=np.float32)[:, None]
    step = (x[:, 0] > 0.37).astype(float)
    inputs = TabularEncoder(column_statistics(x, step), (), 1).inputs(torch.tensor(x)).numpy()
    design = np.column_stack([inputs, np.ones(500)])
    error = np.abs(design @ np.linalg.lstsq(design, step, rcond=None)[0] - step)
    assert np.quantile(error, 0.85) < 0.1


def test_sparse_equals_dense():
    x = table()
    dense, thin = learn(x), column_statistics(sparse.csr_array(x), classes(x))
    assert all(np.array_equal(value, getattr(thin, name)) for name, value in vars(dense).items())


def test_weight_is_repetition():
    x = table(400)
    weight = np.random.default_rng(1).integers(1, 4, size=400)
    weighted, repeated = learn(x, weight.astype(float)), learn(np.repeat(x, weight, axis=0))
    assert weighted.mean == pytest.approx(repeated.mean)
    assert weighted.spread == pytest.approx(repeated.spread)


def test_extreme_values_stay_finite():
    x = table()
    x[0], x[1] = 3e38, -3e38
    encoder = TabularEncoder(learn(x), (8,), 2)
    assert torch.isfinite(encoder(torch.tensor(x))).all()


def test_relevance_finds_the_columns_that_matter():
    x = np.random.default_rng(0).normal(size=(400, 60)).astype(np.float32)
    found = column_statistics(x, ((x[:, 3] > 0) & (x[:, 7] > 0)).astype(int))
    others = np.delete(found.relevance, [3, 7])
    assert found.relevance[[3, 7]].min() > 2 * others.max()
    assert others.min() > 0  # what a forest cannot see can still be learned
    assert np.mean(found.relevance**2) == pytest.approx(1)


def test_relevance_without_anything_to_learn():
    constant = column_statistics(np.ones((50, 3), np.float32), np.arange(50) % 2)
    assert constant.relevance == pytest.approx([1, 1, 1])


def test_cuts_are_close_where_the_classes_change():
    x = np.random.default_rng(0).normal(size=(1000, 2)).astype(np.float32)
    found = column_statistics(x, (x[:, 0] > 0.4).astype(int))
    cuts = found.piece_start[found.piece_column == 0]
    assert np.abs(cuts - 0.4).min() < 0.01


def test_only_the_hidden_layers_see_relevance():
    x = np.random.default_rng(0).normal(size=(400, 5)).astype(np.float32)
    encoder = TabularEncoder(column_statistics(x, (x[:, 0] > 0).astype(int)), (8,), 2)
    rows = torch.tensor(x)
    expected = encoder.linear(encoder.inputs(rows)) + encoder.hidden(encoder.inputs(rows) * encoder.relevance)
    assert torch.equal(encoder(rows), expected)
    assert encoder.relevance[0] > 5 * encoder.relevance[1:5].max()
