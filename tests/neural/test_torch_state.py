"""Threads, random streams and devices of torch."""

import threading

import pytest
import torch

from skfairdp.neural import limit_threads, torch_generator
from skfairdp.neural._torch_state import resolve_device, torch_seed
from skfairdp.random import random_stream


@pytest.fixture
def two_threads():
    """Give torch two threads, also where the tests are run with one: what is to be restored must not be 1."""
    given = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(given)


@pytest.mark.usefixtures("two_threads")
def test_overlapping_blocks_restore_threads():
    inside, leave, counts = threading.Event(), threading.Event(), []

    def other():
        with limit_threads(1):
            inside.set()
            leave.wait(10)
        counts.append(torch.get_num_threads())

    worker = threading.Thread(target=other)
    with limit_threads(1):
        worker.start()
        inside.wait(10)
    assert torch.get_num_threads() == 2, "the main thread has its own setting back, while the other is still inside"
    leave.set()
    worker.join()
    assert torch.get_num_threads() == 2
    assert counts == [2]


@pytest.mark.usefixtures("two_threads")
def test_nested_blocks_restore_threads_at_the_end():
    with limit_threads(1):
        with limit_threads(1):
            pass
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 2


def test_generators_follow_the_stream():
    stream = random_stream(0)
    first, second = torch_generator(stream), torch_generator(stream)
    again = torch_generator(random_stream(0))
    drawn = torch.rand(4, generator=first)
    assert not torch.equal(drawn, torch.rand(4, generator=second)), "one stream, two generators"
    assert torch.equal(drawn, torch.rand(4, generator=again))


def test_torch_seed_leaves_global_stream():
    before = torch.get_rng_state()
    with torch_seed(3, torch.device("cpu")):
        first = torch.rand(2)
    assert torch.equal(before, torch.get_rng_state())
    with torch_seed(3, torch.device("cpu")):
        assert torch.equal(first, torch.rand(2))


@pytest.mark.parametrize("device", ["cpu", torch.device("cpu"), "auto"])
def test_devices_in_every_form(device):
    assert isinstance(resolve_device(device), torch.device)


@pytest.mark.parametrize("device", ["gpu please", None, 1.5])
def test_unknown_device_is_named(device):
    with pytest.raises(ValueError, match="device"):
        resolve_device(device)


def test_one_thread_is_said_even_if_torch_tells_it(monkeypatch):
    """threadpoolctl sets OpenMP behind torch's back: torch then tells one thread, and starts new ones all the same."""
    said = []
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    monkeypatch.setattr(torch, "set_num_threads", said.append)
    with limit_threads(1):
        assert said == [1]
