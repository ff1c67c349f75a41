"""Rows as a weighted multiset, dense and sparse."""

import numpy as np
import pytest
from scipy import sparse

from skfairdp.adversarial import _training_table
from skfairdp.adversarial._training_table import make_training_table, merge_rows


def rows(n=300, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.integers(-1, 2, size=(n, 3)).astype(np.float32)
    x[x == 0] *= rng.choice([-1.0, 1.0], size=(x == 0).sum())  # both zeros
    return x, rng.integers(2, size=n), rng.integers(2, size=(n, 1)), rng.integers(1, 4, size=n).astype(float)


def as_dict(x, y, groups, weight):
    x = x.toarray() if sparse.issparse(x) else x
    return {(*np.abs(a), *np.sign(a), b, *c): w for a, b, c, w in zip((x + 0.0).tolist(), y, groups, weight)}


def test_merging_adds_weights():
    x, y, groups, weight = rows()
    merged = merge_rows(x, y, groups, weight)
    counted = {}
    for a, b, c, w in zip((x + 0.0).tolist(), y, groups, weight):
        key = (*np.abs(a), *np.sign(a), b, *c)
        counted[key] = counted.get(key, 0.0) + w
    assert as_dict(*merged) == counted
    assert len(merged[0]) == len(counted) < 300


@pytest.mark.parametrize("form", [sparse.csr_array, sparse.csr_matrix, sparse.csc_array])
def test_sparse_rows_merge_as_dense(form):
    x, y, groups, weight = rows()
    given = form(x)
    if form is sparse.csr_array:
        given.data[:5] = 0.0  # stored zeros are zeros
        x = given.toarray()
    stored = given.data.copy()
    dense, thin = merge_rows(x, y, groups, weight), merge_rows(given, y, groups, weight)
    assert np.array_equal(thin[0].toarray(), dense[0])
    assert all(np.array_equal(a, b) for a, b in zip(thin[1:], dense[1:]))
    assert np.array_equal(given.data, stored)  # the user's matrix stays as it is


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_order_of_rows_does_not_count(make):
    x, y, groups, weight = rows()
    order = np.random.default_rng(1).permutation(len(x))
    one = merge_rows(make(x), y, groups, weight)
    two = merge_rows(make(x[order]), y[order], groups[order], weight[order])
    assert np.array_equal(one[1], two[1])
    assert np.array_equal(one[3], two[3])


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_hash_collisions_are_noticed(make, monkeypatch):
    x, y, groups, weight = rows()
    honest, salts = _training_table._hash_rows, []

    def clashing(*args):
        salts.append(args[-1])
        return honest(*args) % 5 if len(salts) == 1 else honest(*args)

    monkeypatch.setattr(_training_table, "_hash_rows", clashing)
    merged = merge_rows(make(x), y, groups, weight)
    assert salts == [0, 1]
    assert merged[3].sum() == weight.sum()
    assert len(as_dict(*merged)) == merged[0].shape[0]


def test_table_of_sparse_rows_stays_sparse():
    x, y, groups, _ = rows()
    weight = np.r_[np.zeros(100), np.ones(200)]
    table = make_training_table(sparse.csr_matrix(x), y, groups, weight, "balanced")
    assert sparse.issparse(table.x)
    assert table.x.shape[0] == len(table.y) == len(table.groups)


def test_epoch_draws_a_row_as_often_as_it_weighs():
    x, y, groups, weight = rows()
    table = make_training_table(x, y, groups, weight, None)
    assert table.n_draws == weight.sum()
    merged = merge_rows(x, y, groups, weight)
    np.testing.assert_array_equal(table.copies, merged[3])


def test_fractions_are_drawn_once_at_least():
    x = np.arange(4, dtype=np.float32)[:, None]
    table = make_training_table(x, np.array([0, 1, 0, 1]), None, [0.2, 1.9, 2.0, 3.7], None)
    assert dict(zip(table.x[:, 0], table.copies)) == {0: 1, 1: 1, 2: 2, 3: 3}
    assert make_training_table(x, np.array([0, 1, 0, 1]), None, [0.2, 1.9, 0.1, 1.0], None).copies is None


def test_weights_of_a_survey_do_not_make_epochs_endless():
    x = np.arange(100, dtype=np.float32)[:, None]
    table = make_training_table(x, np.arange(100) % 2, None, np.full(100, 1e7), None)
    assert table.n_draws == 1_000_000


def test_class_weights_change_no_draws():
    x, y, groups, weight = rows()
    table = make_training_table(x, y, groups, weight, {0: 5.0, 1: 1.0})
    assert table.n_draws == weight.sum()
    assert table.class_shares()[0] == pytest.approx(
        5 * weight[y == 0].sum() / (5 * weight[y == 0].sum() + weight[y == 1].sum())
    )
