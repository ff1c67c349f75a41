"""Batched networks: right gradients, independent members, and as good as scikit-learn's one by one."""

import numpy as np
import pytest
import torch
from sklearn.neural_network import MLPClassifier

from skfairdp.neural._network_ensemble import _gradients, _initial_parameters, train_ensemble
from skfairdp.neural._torch_state import torch_generator
from skfairdp.random import random_stream

SETTINGS = {"hidden_sizes": (16, 8), "max_epochs": 30, "batch_size": 32, "learning_rate": 0.01, "weight_decay": 1e-4}


def parts(k=5, n=60, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(k, n, d))
    y = (X[..., 0] * X[..., 1] > 0).astype(int)
    return X, np.eye(2)[y], np.ones((k, n), dtype=bool)


def train(X, targets, present, seed=0, **changes):
    return train_ensemble(X, targets, present, stream=random_stream(seed), **{**SETTINGS, **changes})


def test_gradients_equal_autograd():
    generator = torch.Generator().manual_seed(0)
    parameters = [
        (w.double().requires_grad_(), b.double().requires_grad_())
        for w, b in _initial_parameters((4, 5, 6, 3), [generator] * 3)
    ]
    batch = torch.randn(3, 7, 4, generator=generator).double()
    goals = torch.rand(3, 7, 3, generator=generator).double()
    rows = batch
    for weight, bias in parameters[:-1]:
        rows = torch.baddbmm(bias, rows, weight).relu()
    logits = torch.baddbmm(parameters[-1][1], rows, parameters[-1][0])
    loss = -(goals * logits.log_softmax(dim=2)).sum(dim=2).mean(dim=1).sum()
    loss = loss + sum(0.05 * w.square().sum() for w, _ in parameters)
    expected = torch.autograd.grad(loss, [t for layer in parameters for t in layer])
    with torch.no_grad():
        ours = _gradients(batch, goals, parameters, 0.1)
    for mine, theirs in zip(ours, expected):
        torch.testing.assert_close(mine, theirs)


def test_a_member_depends_on_its_own_rows_alone():
    X, targets, present = parts()
    first = train(X, targets, present)
    changed, flipped = X.copy(), targets.copy()
    changed[2] += 1.0
    flipped[2] = flipped[2, :, ::-1]
    second = train(changed, flipped, present)
    for before, after in zip(first.weights + first.biases, second.weights + second.biases):
        assert np.array_equal(np.delete(before, 2, axis=0), np.delete(after, 2, axis=0))
        assert not np.array_equal(before[2], after[2])


def test_padding_has_no_influence():
    X, targets, present = parts()
    present[:, 40:] = False
    junk = X.copy()
    junk[:, 40:] = 1e3
    first, second = train(X, targets, present), train(junk, targets[:, ::1], present)
    for before, after in zip(first.weights, second.weights):
        assert np.array_equal(before, after)


def test_seed_reproduces_and_global_stream_untouched():
    X, targets, present = parts()
    state = torch.get_rng_state()
    first, again, other = train(X, targets, present), train(X, targets, present), train(X, targets, present, seed=1)
    assert torch.equal(state, torch.get_rng_state())
    assert np.array_equal(first.weights[0], again.weights[0])
    assert not np.array_equal(first.weights[0], other.weights[0])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_members_as_good_as_mlp_classifier():
    X, targets, present = parts(k=8, n=200)
    rng = np.random.default_rng(1)
    X_test = rng.normal(size=(2000, 4))
    y_test = X_test[:, 0] * X_test[:, 1] > 0
    ours = (train(X, targets, present, max_epochs=60).predict(X_test) == y_test).mean()
    theirs = np.mean(
        [
            MLPClassifier((16, 8), batch_size=32, max_iter=60, learning_rate_init=0.01, random_state=i)
            .fit(X[i], targets[i, :, 1])
            .score(X_test, y_test)
            for i in range(3)
        ]
    )
    assert ours > theirs - 0.03
    assert ours > 0.85


def test_shared_rows_equal_copies():
    X, targets, present = parts(k=3)
    shared = train(X[:1], targets, present)
    copied = train(np.repeat(X[:1], 3, axis=0), targets, present)
    for before, after in zip(shared.weights, copied.weights):
        np.testing.assert_allclose(before, after, rtol=1e-4, atol=1e-5)


def test_prediction_in_blocks(monkeypatch):
    X, targets, present = parts()
    ensemble = train(X, targets, present)
    rows = np.random.default_rng(0).normal(size=(100, 4))
    at_once = ensemble.logits(rows)
    monkeypatch.setattr("skfairdp.neural._network_ensemble._PREDICT_ELEMENTS", 1000)
    np.testing.assert_allclose(ensemble.logits(rows), at_once, rtol=1e-4, atol=1e-5)
    assert ensemble.n_members == 5


def test_members_without_rows_stay_as_they_began():
    X, targets, present = parts()
    present[1] = False
    ensemble = train(X, targets, present, weight_decay=0.0)
    generators = [torch_generator(one) for one in random_stream(0).spawn(5)]
    untouched = _initial_parameters((4, 16, 8, 2), generators)
    np.testing.assert_array_equal(ensemble.weights[0][1], untouched[0][0][1].numpy())


def test_training_in_blocks(monkeypatch):
    X, targets, present = parts()
    at_once = train(X, targets, present)
    monkeypatch.setattr("skfairdp.neural._network_ensemble._BLOCK_BYTES", 1)  # one member at a time
    for before, after in zip(at_once.weights, train(X, targets, present).weights):
        np.testing.assert_allclose(before, after, rtol=1e-3, atol=1e-4)
