"""The objective: expected losses against enumeration, gaps against tables made by hand."""

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from skfairdp.mechanisms import code_mechanism
from skfairdp.neural import CodeChannel, FederateLoss, FederateModule, OpenChannel, expected_gap, mlp
from skfairdp.neural._federate_loss import Targets, orthogonality_loss, smooth, weighted_nll


@pytest.fixture(autouse=True)
def _own_torch_stream():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield


def slow_gap(p, y, z, fairness, w):
    """The definition, one loop per quantifier."""
    classes = [1] if p.shape[1] == 2 else range(p.shape[1])
    gaps = []
    for c in classes:
        conditions = {"demographic_parity": [None], "equal_opportunity": [c]}.get(fairness, range(p.shape[1]))
        for condition in conditions:
            rates = []
            for g in np.unique(z):
                cell = (z == g) & ((y == condition) if condition is not None else True)
                if cell.any():
                    rates.append((p[cell, c] * w[cell]).sum() / w[cell].sum())
            if len(rates) > 1:
                gaps.append(max(rates) - min(rates))
    return np.mean(gaps) if gaps else 0.0


@pytest.mark.parametrize("fairness", ["equal_opportunity", "equalized_odds", "demographic_parity"])
@pytest.mark.parametrize(("n_classes", "n_groups"), [(2, 2), (2, 4), (4, 3)])
def test_gap_is_the_definition(fairness, n_classes, n_groups):
    rng = np.random.default_rng(n_classes * n_groups)
    n = 60
    p = rng.dirichlet(np.ones(n_classes), size=n)
    y, z, w = rng.integers(n_classes, size=n), rng.integers(n_groups, size=n), rng.uniform(0.1, 2, size=n)
    ours = expected_gap(torch.tensor(p), torch.tensor(y), torch.tensor(z), n_groups, fairness, torch.tensor(w))
    assert float(ours) == pytest.approx(slow_gap(p, y, z, fairness, w), abs=1e-9)
    renamed = (z + 1) % n_groups
    again = expected_gap(torch.tensor(p), torch.tensor(y), torch.tensor(renamed), n_groups, fairness, torch.tensor(w))
    assert float(again) == pytest.approx(float(ours), abs=1e-12)


def test_gap_of_one_group_is_zero():
    p = torch.full((4, 2), 0.5, requires_grad=True)
    gap = expected_gap(p, torch.tensor([1, 1, 0, 0]), torch.tensor([0, 0, 1, 1]), 2, "equal_opportunity")
    gap.backward()
    assert gap.item() == 0.0
    assert torch.isfinite(p.grad).all()


def test_smooth_gap_is_continuous():
    gap = torch.tensor([0.0, 0.05, 0.1 - 1e-6, 0.1 + 1e-6, 0.5])
    value = smooth(gap)
    assert float(value[0]) == 0.0
    assert float(value[3] - value[2]) == pytest.approx(0.0, abs=1e-5)
    assert float(value[4]) == pytest.approx(0.45)


def test_weighted_loss_is_that_of_repeated_rows():
    log_p = torch.log_softmax(torch.randn(4, 3), dim=1)
    y, weight = torch.tensor([0, 2, 1, 1]), torch.tensor([1.0, 3.0, 2.0, 1.0])
    repeated = weight.long()
    expected = weighted_nll(log_p.repeat_interleave(repeated, 0), y.repeat_interleave(repeated), None)
    assert torch.allclose(weighted_nll(log_p, y, weight), expected)


def test_code_losses_are_expectations():
    n_codes, n_classes, n_groups = 4, 3, 2
    encoder, channel, head = (
        mlp(5, (6,), n_codes),
        CodeChannel(code_mechanism(n_codes, 2.0), n_classes),
        mlp(n_codes, (), n_classes),
    )
    adversary = mlp(n_codes, (7,), n_groups)
    module = FederateModule(encoder, channel, head, [adversary])
    module.wants_decisions = True
    x, y, z = torch.randn(9, 5), torch.randint(n_classes, (9,)), torch.randint(n_groups, (9, 1))
    outputs = module(x)
    probabilities = channel(encoder(x))
    codes = torch.eye(n_codes)
    for i in range(len(x)):
        by_hand = sum(probabilities[i, c] * cross_entropy(head(codes[[c]]), y[[i]]) for c in range(n_codes))
        assert torch.allclose(-outputs.log_p[i, y[i]], by_hand, atol=1e-5)
        by_hand = sum(probabilities[i, c] * cross_entropy(adversary(codes[[c]]), z[i]) for c in range(n_codes))
        assert torch.allclose(-outputs.adversary_log_p[0][i, z[i, 0]], by_hand, atol=1e-5)
        answers = head(codes).argmax(dim=1)
        by_hand = torch.stack([probabilities[i, answers == k].sum() for k in range(n_classes)])
        assert torch.allclose(outputs.decision[i], by_hand, atol=1e-6)


def test_objective_adds_its_terms():
    module = FederateModule(mlp(5, (), 3), OpenChannel(), mlp(3, (), 2), [mlp(3, (4,), 2), mlp(3, (4,), 2)])
    module.wants_decisions = True
    x, y, z = torch.randn(30, 5), torch.randint(2, (30,)), torch.randint(2, (30, 1))
    outputs = module(x)
    loss = FederateLoss((2,), (0, 0), orthogonality=0.7, fairness_penalty=0.4)
    value = loss(outputs, Targets(y, z, None))
    gap = expected_gap(outputs.decision, y, z[:, 0], 2, "equal_opportunity")
    expected = (
        cross_entropy(module.head(module.encoder(x)), y)
        + sum(cross_entropy(a(module.encoder(x)), z[:, 0]) for a in module.adversaries) / 2
        + 0.7 * orthogonality_loss(outputs.adversary_hidden, (0, 0))
        + 0.4 * smooth(gap)
    )
    assert torch.allclose(value, expected, atol=1e-5)
    assert loss.parts["fairness_gap"] == pytest.approx(gap.item())


def test_orthogonality_of_unlike_adversaries_is_zero():
    left = torch.cat([torch.rand(10, 3), torch.zeros(10, 3)], dim=1)
    right = torch.cat([torch.zeros(10, 3), torch.rand(10, 3)], dim=1)
    stacked = torch.eye(6).repeat(2, 1)
    assert float(orthogonality_loss([stacked[:6], stacked[:6]], (0, 0))) > 0.1
    # hidden units that never fire together do not overlap
    both = torch.cat([left[:5], torch.zeros(5, 6)]), torch.cat([torch.zeros(5, 6), right[5:]])
    assert float(orthogonality_loss(list(both), (0, 0))) == pytest.approx(0.0, abs=1e-9)
