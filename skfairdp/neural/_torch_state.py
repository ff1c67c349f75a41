"""What torch keeps for the whole process: random streams, threads, devices."""

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch import nn

from skfairdp.random import RandomStream

# Networks with fewer parameters run on one thread: a second one costs more than it brings, and changes the last digits.
_SMALL = 1_000_000

_lock = threading.Lock()
_python_threads_inside = 0
_threads_before = 1
_of_this_thread = threading.local()  # .depth: how many blocks this Python thread is in


def torch_generator(stream: RandomStream) -> torch.Generator:
    """Make a torch generator from the next words of a stream.

    It is for draws that protect nobody: initial weights, the order of rows, dropout in
    training. Noise that carries a guarantee is drawn by ``mechanisms``, from the stream
    itself. torch's global generator is neither read nor advanced.

    Parameters
    ----------
    stream : RandomStream
        Advanced by one 64-bit word, so that two generators from one stream differ.

    Returns
    -------
    torch.Generator

    Examples
    --------
    >>> import torch
    >>> from skfairdp.random import random_stream
    >>> first, second = (torch_generator(random_stream(0)) for _ in range(2))
    >>> bool((torch.rand(3, generator=first) == torch.rand(3, generator=second)).all())
    True
    """
    generator = torch.Generator(device="cpu")
    generator.manual_seed(int(stream.uint64(1)[0]) >> 1)  # manual_seed takes 63 bits without a sign
    return generator


@contextmanager
def torch_seed(seed: int, device: torch.device) -> Iterator[None]:
    """Seed torch inside the block, and leave its global stream as it was after it.

    Initial weights and dropout can only be drawn from torch's global generator.
    """
    devices = [torch.cuda.current_device()] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(seed)
        yield


@contextmanager
def limit_threads(n_threads: int = 1) -> Iterator[None]:
    """Let torch use ``n_threads`` threads inside the block, and as many as before after it.

    A small network gains nothing from a second thread, and workers that each start
    several of them only wait for each other. With one thread the sums are also added in
    one order, so that a seed gives the same weights on machines with other core counts.

    OpenMP has a setting for every Python thread, and new ones take it from torch's. When
    blocks overlap in several Python threads, each sets its own and gets back what the
    process had when the first one came in.

    Parameters
    ----------
    n_threads : int, default=1
        Number of threads inside the block.

    Examples
    --------
    >>> import torch
    >>> before = torch.get_num_threads()
    >>> with limit_threads(1):
    ...     torch.get_num_threads()
    1
    >>> torch.get_num_threads() == before
    True
    """
    global _python_threads_inside, _threads_before
    depth = getattr(_of_this_thread, "depth", 0)
    if depth == 0:
        with _lock:
            if _python_threads_inside == 0:
                _threads_before = torch.get_num_threads()
            _python_threads_inside += 1
            # Said even if it is so already: where threadpoolctl has set OpenMP to one thread behind torch's back, torch
            # tells 1 and still starts its threads anew for every small product, which takes hundreds of times as long.
            torch.set_num_threads(n_threads)
    _of_this_thread.depth = depth + 1
    try:
        yield
    finally:
        _of_this_thread.depth = depth
        if depth == 0:
            with _lock:
                _python_threads_inside -= 1
                if torch.get_num_threads() != _threads_before:
                    torch.set_num_threads(_threads_before)


def threads_for(module: nn.Module) -> AbstractContextManager:
    """Limit a small network to one thread; leave a large one what torch has."""
    n_parameters = sum(p.numel() for p in module.parameters())
    return limit_threads(1) if n_parameters < _SMALL else nullcontext()


def resolve_device(device: Any) -> torch.device:
    """Turn what a user gave into a device; ``"auto"`` is the first GPU if there is one."""
    if isinstance(device, str) and device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        found = torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise ValueError(
            f"device must be 'auto', 'cpu', 'cuda', another name that torch knows, or a torch.device; got {device!r}. "
            f"torch says: {str(error).splitlines()[0]}"
        ) from None
    if found.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device={device!r} was asked for, but torch finds no GPU; use device='cpu' or 'auto'.")
    return found
