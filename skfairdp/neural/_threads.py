"""How many threads torch may use."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

_lock = threading.Lock()
_inside = 0
_before = 1


@contextmanager
def limit_threads(n_threads: int = 1) -> Iterator[None]:
    """Let torch use ``n_threads`` threads inside the block, and as many as before after it.

    A small network gains nothing from a second thread, and workers that each start
    several of them only wait for each other. With one thread the sums are also added in
    one order, so that a seed gives the same weights on machines with other core counts.

    torch has one setting for the whole process. When blocks overlap in several Python
    threads, the first one in sets it and the last one out restores it.

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
    global _inside, _before
    with _lock:
        if _inside == 0:
            _before = torch.get_num_threads()
            if _before != n_threads:
                torch.set_num_threads(n_threads)
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0 and torch.get_num_threads() != _before:
                torch.set_num_threads(_before)
