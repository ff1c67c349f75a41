"""The module: what training sees, what is released, that no noise is missing, and who gets which gradient."""

import math

import numpy as np
import pytest
import torch
from scipy import stats

from skfairdp.mechanisms import OpenMechanism, code_mechanism, code_probabilities, laplace_mechanism
from skfairdp.neural import CodeChannel, LaplaceChannel, OpenChannel, mlp, reverse_gradient
from skfairdp.neural._federate_module import laplace_like
from skfairdp.random import random_stream


def codes(epsilon, n_codes, n_classes):
    return CodeChannel(code_mechanism(n_codes, epsilon), n_classes)


@pytest.fixture(autouse=True)
def _own_torch_stream():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield


def rows(n=20_000, width=3):
    return np.tile(np.array([3.0, -1.0, 0.5, 2.0][:width], dtype=np.float32), (n, 1))


@pytest.mark.parametrize(("norm", "calibration"), [("l1", "exact"), ("l2", "exact"), ("l2", "published")])
@pytest.mark.parametrize("where", ["training", "release"])
def test_laplace_noise_has_the_scale_of_the_proof(norm, calibration, where):
    epsilon, u = 4.0, rows()
    mechanism = laplace_mechanism(epsilon, norm, 3, calibration=calibration)
    channel = LaplaceChannel(mechanism)
    if where == "training":
        out = channel(torch.tensor(u)).numpy()
    else:
        out = mechanism.release(channel.values(u), random_stream(0))
    clean = u / np.linalg.norm(u, ord=1 if norm == "l1" else 2, axis=1, keepdims=True)
    scale = 2 / epsilon if norm == "l1" or calibration == "published" else 2 * math.sqrt(3) / epsilon
    noise = (out - clean).ravel()

    def p_value(of_scale):
        return stats.kstest(noise, stats.laplace(scale=of_scale).cdf).pvalue

    assert p_value(scale) > 1e-4
    assert p_value(1.1 * scale) < 1e-4  # the same test sees ten per cent too little noise
    correlation = np.corrcoef((out - clean).T) - np.eye(3)
    assert np.abs(correlation).max() < 0.04  # and one value per row instead of one per coordinate


def test_one_component_can_be_trained():
    u = torch.tensor([[0.3], [-2.0]], requires_grad=True)
    channel = LaplaceChannel(laplace_mechanism(1e9, "l1", 1))
    out = channel(u)
    assert torch.allclose(out, torch.tensor([[1.0], [-1.0]]), atol=1e-6)
    out.sum().backward()
    assert (u.grad > 0).all()


@pytest.mark.parametrize("n_codes", [2, 3, 8])
def test_code_probabilities_closed_form(n_codes):
    channel = codes(2.0, n_codes, 3)
    u = torch.randn(50, n_codes)
    named = channel.choose(channel.belief(u)).numpy()
    expected = code_probabilities(np.eye(n_codes)[named], 2.0)
    assert np.allclose(channel(u).detach().numpy(), expected, atol=1e-6)


def test_code_gradient_is_that_of_soft_codes():
    channel = codes(1.5, 4, 2)
    u = torch.randn(6, 4, dtype=torch.float64, requires_grad=True)
    target = torch.randn(6, 4, dtype=torch.float64)
    channel = channel.double()
    (channel(u) * target).sum().backward()
    soft = u.detach().clone().requires_grad_(True)
    (channel.probabilities(torch.softmax(soft, dim=1)) * target).sum().backward()
    assert torch.allclose(u.grad, soft.grad)


def test_named_code_stands_for_believed_class():
    channel = codes(2.0, 5, 3)
    u = 3 * torch.randn(500, 5)
    belief = channel.belief(u)
    stands_for = channel.codebook.argmax(dim=1)
    assert torch.equal(stands_for[channel.choose(belief)], belief.argmax(dim=1))
    few = codes(2.0, 2, 4)  # fewer codes than classes: some class has no code of its own
    assert set(few.choose(torch.eye(4)).tolist()) == {0, 1}


@pytest.mark.parametrize("epsilon", [1.0, 3.0])
def test_released_codes_follow_the_closed_form(epsilon):
    u = np.tile(np.array([[0.0, 4.0, 0.0]], dtype=np.float32), (60_000, 1))
    drawn = code_mechanism(3, epsilon).release(codes(epsilon, 3, 3).values(u), random_stream(2))
    counts = np.bincount(drawn, minlength=3)
    expected = code_probabilities(np.eye(3)[[1]], epsilon)[0] * len(u)
    assert stats.chisquare(counts, expected).pvalue > 1e-4
    wrong = code_probabilities(np.eye(3)[[1]], 1.1 * epsilon)[0] * len(u)
    assert stats.chisquare(counts, wrong).pvalue < 1e-4


def test_broken_rows_give_nothing_away():
    bad = np.tile(np.array([[np.nan, 1.0], [np.inf, 0.0]], dtype=np.float32), (5_000, 1))
    drawn = code_mechanism(2, 8.0).release(codes(8.0, 2, 2).values(bad), random_stream(0))
    assert abs(drawn.mean() - 0.5) < 0.03
    laplace = laplace_mechanism(8.0, "l1", 2)
    noisy = laplace.release(LaplaceChannel(laplace).values(bad), random_stream(0))
    assert np.isfinite(noisy).all()
    assert np.abs(noisy.mean(axis=0)).max() < 0.05


def test_open_channel_returns_what_it_gets():
    u = rows(5)
    assert np.array_equal(OpenMechanism(3).release(OpenChannel().values(u), random_stream(0)), u)
    assert torch.equal(OpenChannel()(torch.tensor(u)), torch.tensor(u))


def finite_difference(function, x, step=1e-6):
    gradient = torch.zeros_like(x)
    for i in range(x.numel()):
        shift = torch.zeros_like(x).view(-1)
        shift[i] = step
        shift = shift.view_as(x)
        gradient.view(-1)[i] = (function(x + shift) - function(x - shift)) / (2 * step)
    return gradient


@pytest.mark.parametrize("weight", [0.0, 0.3, 1.0, 2.5])
def test_reversal_negates_gradient(weight):
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


def test_reversal_leaves_adversary_gradient():
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


# -- noise of a training ----------------------------------------------------------------------------------------------

FALSE_ALARM = 1e-6


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_training_noise_is_laplace(dtype):
    torch.manual_seed(0)
    noise = laplace_like(torch.empty(1000, 301, dtype=dtype))
    assert noise.dtype == dtype
    values = noise.numpy().ravel()
    assert np.isfinite(values).all()
    assert stats.kstest(values, "laplace").pvalue > FALSE_ALARM
    assert stats.kstest(1.05 * values, "laplace").pvalue < FALSE_ALARM  # five percent too much is noticed


def test_training_noise_of_neighbours_is_independent():
    torch.manual_seed(0)
    noise = laplace_like(torch.empty(400_000)).numpy()
    for step in (1, 2, 3, 4):
        for first, second in ((noise[:-step], noise[step:]), (abs(noise[:-step]), abs(noise[step:]))):
            correlation = np.corrcoef(first, second)[0, 1]
            assert abs(correlation) * math.sqrt(len(first)) < stats.norm.isf(FALSE_ALARM)


def test_training_noise_follows_the_seed_of_torch():
    rows = torch.ones(7, 5)  # an odd number: half of the last word is not used
    torch.manual_seed(0)
    first = laplace_like(rows)
    torch.manual_seed(0)
    assert torch.equal(laplace_like(rows), first)
    assert not torch.equal(laplace_like(rows), first)
    assert laplace_like(torch.empty(0, 3)).shape == (0, 3)
