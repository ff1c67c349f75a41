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


def test_standardises_and_cuts_off():
    x = table()
    inputs = TabularEncoder(column_statistics(x), (), 2).inputs(torch.tensor(x)).numpy()
    assert inputs[:, [0, 2]].mean(axis=0) == pytest.approx([0, 0], abs=1e-4)
    assert inputs[:, [0, 2]].std(axis=0) == pytest.approx([1, 1], abs=1e-3)
    assert np.abs(inputs).max() <= 10.0
    assert (inputs[:, 3] == 0).all()  # a constant column says nothing


def test_pieces_follow_rows_and_values():
    found = column_statistics(table())
    assert set(found.piece_column) == {0, 1, 4}  # two values or one need no pieces
    # Nine rows in ten are zero, and still the others are told apart.
    assert (found.piece_column == 4).sum() > 5
    assert (found.piece_length > 0).all()


def test_few_rows_or_many_columns_have_no_pieces():
    assert len(column_statistics(table(150)).piece_column) == 0
    wide = np.random.default_rng(0).normal(size=(400, 300)).astype(np.float32)
    assert len(column_statistics(wide).piece_column) == 0


def test_linear_layer_can_follow_a_step():
    x = np.linspace(0, 1, 500, dtype=np.float32)[:, None]
    encoder = TabularEncoder(column_statistics(x), (), 1)
    inputs, step = encoder.inputs(torch.tensor(x)).numpy(), (x[:, 0] > 0.37).astype(float)
    design = np.column_stack([inputs, np.ones(500)])
    error = np.abs(design @ np.linalg.lstsq(design, step, rcond=None)[0] - step)
    assert np.quantile(error, 0.85) < 0.1


def test_sparse_equals_dense():
    x = table()
    dense, thin = column_statistics(x), column_statistics(sparse.csr_array(x))
    assert all(np.array_equal(value, getattr(thin, name)) for name, value in vars(dense).items())


def test_weight_is_repetition():
    x = table(400)
    weight = np.random.default_rng(1).integers(1, 4, size=400)
    weighted, repeated = column_statistics(x, weight.astype(float)), column_statistics(np.repeat(x, weight, axis=0))
    assert weighted.mean == pytest.approx(repeated.mean)
    assert weighted.spread == pytest.approx(repeated.spread)


def test_extreme_values_stay_finite():
    x = table()
    x[0], x[1] = 3e38, -3e38
    encoder = TabularEncoder(column_statistics(x), (8,), 2)
    assert torch.isfinite(encoder(torch.tensor(x))).all()
