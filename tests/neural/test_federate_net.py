"""How the net reads rows: batches, sparse rows, rows kept out, and the schedule of the adversary's weight."""

import numpy as np
import pytest
import torch
from scipy import sparse
from skorch.dataset import ValidSplit
from torch.optim import Adam
from torch.utils.data import DataLoader

from skfairdp.mechanisms import laplace_mechanism
from skfairdp.neural import AdversarySchedule, FederateNet
from skfairdp.neural._federate_net import HoldOut, RowsDataset, TensorBatches, _rows_at_once, encode


@pytest.fixture(autouse=True)
def _own_torch_stream():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield


def table(n=50):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 4)) * (rng.random((n, 4)) < 0.4)
    y = (x.sum(axis=1) > 0).astype(int)
    return x.astype(np.float32), y, rng.integers(2, size=(n, 1)), rng.random(n)


def same(a, b):
    return all(torch.equal(a[0][name], b[0][name]) for name in b[0]) and torch.equal(a[1], b[1])


@pytest.mark.parametrize("form", [sparse.csr_array, sparse.csc_matrix, sparse.coo_array])
@pytest.mark.parametrize("rows", [slice(3, 9), torch.tensor([4, 0, 4]), np.array([1, 2]), [7], 3])
def test_sparse_batches_equal_dense(form, rows):
    x, y, groups, weight = table()
    dense, thin = (RowsDataset({"x": made, "groups": groups, "weight": weight}, y) for made in (x, form(x)))
    assert same(thin[rows], dense[rows])


def test_rows_are_shared_not_copied():
    x, y, _, _ = table()
    assert RowsDataset(x, y).X["x"].data_ptr() == torch.from_numpy(x).data_ptr()
    x.flags.writeable = False
    assert len(RowsDataset(x, y)) == 50  # and torch does not warn of memory that must not be written


@pytest.mark.parametrize(("drop_last", "sizes"), [(False, [20, 20, 10]), (True, [20, 20])])
def test_batches_cover_every_row_once(drop_last, sizes):
    y = table()[1]
    batches = TensorBatches(RowsDataset(np.arange(50.0)[:, None], y), 20, shuffle=True, drop_last=drop_last)
    first, second = ([batch["x"][:, 0] for batch, _ in batches] for _ in range(2))
    assert [len(batch) for batch in first] == sizes
    assert len(batches) == len(sizes)
    assert len(set(torch.cat(first).tolist())) == sum(sizes)
    assert not torch.equal(first[0], second[0])


def test_rows_of_many_copies_are_divided_and_others_are_not():
    copies = np.array([100, 40] + [3] * 20)
    weight = copies / copies.mean()
    rows = {"x": np.arange(22.0)[:, None], "weight": weight, "copies": copies}
    train, valid = HoldOut(0.1)(RowsDataset(rows, np.arange(22) % 2))
    seen = [dict(zip(part.X["x"][:, 0].tolist(), part.copies.tolist())) for part in (train, valid)]
    assert [part[0.0] for part in seen] == [90, 10]
    assert [part[1.0] for part in seen] == [36, 4]
    others = [{x: n for x, n in part.items() if x > 1} for part in seen]
    assert not set(others[0]) & set(others[1]), "copies of a row that has few stay together"
    assert len(others[0]) + len(others[1]) == 20
    assert len(others[1]) == 2
    total = float(train.X["weight"].sum() + valid.X["weight"].sum())
    assert total == pytest.approx(weight.sum(), rel=1e-5)


def test_copies_are_drawn_and_share_the_weight():
    """A row of three copies is in three draws of a third of its weight; validation has it once, with all of it."""
    dataset = RowsDataset(
        {"x": np.arange(3.0)[:, None], "weight": np.array([0.5, 3.0, 2.0]), "copies": np.array([1, 3, 2])}, np.arange(3)
    )
    drawn = [
        (float(x), float(w)) for X, _ in TensorBatches(dataset, 4, shuffle=True) for x, w in zip(X["x"], X["weight"])
    ]
    assert sorted(drawn) == [(0, 0.5), (1, 1), (1, 1), (1, 1), (2, 1), (2, 1)]
    assert len(TensorBatches(dataset, 4, shuffle=True)) == 2
    ((whole, _),) = TensorBatches(dataset, 4)
    assert whole["weight"].tolist() == [0.5, 3.0, 2.0]
    part = dataset.part(torch.tensor([2, 0]))
    assert part.draws().tolist() == [0, 0, 1]


def test_hold_out_parts_rows():
    x, y, groups, weight = table()
    numbered = {"x": sparse.csr_array(np.c_[np.arange(1, 51), x]), "groups": groups, "weight": weight}
    train, valid = HoldOut(0.2)(RowsDataset(numbered, y))
    assert (len(train), len(valid)) == (40, 10)
    seen = torch.cat([train[:][0]["x"][:, 0], valid[:][0]["x"][:, 0]]).sort().values
    assert torch.equal(seen, torch.arange(1.0, 51.0))
    with pytest.raises(ValueError, match="leaves no row"):
        HoldOut(0.999)(RowsDataset(x, y))


def net(**params):
    mechanism = laplace_mechanism(1e6, "l1", 2)
    module = {"mechanism": mechanism, "n_features": 4, "n_outputs": 2, "n_classes": 2, "encoder_hidden_sizes": (10,)}
    given = {f"module__{name}": value for name, value in module.items()}
    return FederateNet(**{"max_epochs": 20, "lr": 0.05, "optimizer": Adam, "verbose": 0, **given, **params})


@pytest.mark.parametrize("settings", [{}, {"train_split": ValidSplit(5)}, {"iterator_train": DataLoader}])
def test_net_alone_is_a_skorch_classifier(settings):
    x, y, _, _ = table(200)
    found = net(**settings).fit(sparse.csr_array(x), y)
    assert found.score(x, y) > 0.8
    assert found.score(sparse.csr_matrix(x), y) > 0.8
    assert ("valid_loss" in found.history[-1]) is ("train_split" in settings)


def test_weight_in_the_net_counts():
    x, y, _, _ = table(200)
    only_ones = net().fit({"x": x, "weight": np.where(y == 1, 1.0, 1e-6)}, y)
    assert only_ones.predict(x).mean() > 0.9


def test_set_params_reinitialises():
    found = net().initialize()
    before = len(found.module_.encoder)
    found.set_params(module__encoder_hidden_sizes=(10, 10))
    assert len(found.module_.encoder) == before + 2


def test_schedule_restarts_in_a_continued_training():
    x, y, _, _ = table()
    found = net(adversary_weight=2.0, adversary_schedule="linear", max_epochs=3)
    found.fit(x, y)
    found.partial_fit(x, y)
    assert found.history[:, "adversary_weight"] == [0.0, 1.0, 2.0] * 2
    assert AdversarySchedule(1.0, "constant").share(0.0) == 1.0


def test_encoding_in_parts(monkeypatch):
    x, _, _, _ = table()
    encoder = torch.nn.Linear(4, 3)
    whole = encode(encoder, x)
    monkeypatch.setattr("skfairdp.neural._federate_net._VALUES_AT_ONCE", 24)  # six rows of four values
    assert _rows_at_once(4) == 6
    assert np.allclose(encode(encoder, x), whole, atol=1e-6)
    assert np.allclose(encode(encoder, sparse.csr_array(x)), whole, atol=1e-6)
