"""Gradient reversal against finite differences."""

import pytest
import torch

from skfairdp.neural import mlp, reverse_gradient


def finite_difference(function, x, step=1e-6):
    gradient = torch.zeros_like(x)
    for i in range(x.numel()):
        shift = torch.zeros_like(x).view(-1)
        shift[i] = step
        shift = shift.view_as(x)
        gradient.view(-1)[i] = (function(x + shift) - function(x - shift)) / (2 * step)
    return gradient


@pytest.mark.parametrize("weight", [0.0, 0.3, 1.0, 2.5])
def test_encoder_receives_minus_lambda_times_the_gradient(weight):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        adversary = mlp(3, (5,), 2).double()
        x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    z = torch.tensor([0, 1, 1, 0])

    def loss(h):
        return torch.nn.functional.cross_entropy(adversary(h), z)

    loss(reverse_gradient(x, weight)).backward()
    expected = -weight * finite_difference(lambda h: loss(h).detach(), x.detach())
    assert torch.allclose(x.grad, expected, atol=1e-8)
    # planted fault: a layer that forgets to reverse
    if weight > 0:
        x.grad = None
        loss(x).backward()
        assert not torch.allclose(x.grad, expected, atol=1e-4)


def test_adversary_receives_its_own_gradient_unchanged():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        adversary = mlp(3, (), 2)
        x = torch.randn(6, 3)
    z = torch.tensor([0, 1, 1, 0, 1, 0])
    gradients = []
    for h in (x, reverse_gradient(x, 7.0)):
        adversary.zero_grad()
        torch.nn.functional.cross_entropy(adversary(h), z).backward()
        gradients.append(adversary[0].weight.grad.clone())
    assert torch.equal(*gradients)
    assert torch.equal(x, reverse_gradient(x, 7.0))
