"""Which process this is. A forked child is another one, and must not go on with what belonged to its parent."""

import os
import threading
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import ClassVar

_token = os.urandom(16)


_in_children: list[Callable[[], None]] = []


def call_in_forked_children(function: Callable[[], None]) -> None:
    """Let a function be called in every forked child, after the child has a token of its own."""
    _in_children.append(function)


def process_token() -> bytes:
    """Return a value that no other process has, forked children included."""
    return _token


class ProcessLock:
    """A re-entrant lock of one process: a forked child finds it open.

    Without this, a child that is forked while another thread holds the lock would wait for ever for a thread that
    it does not have.

    Parameters
    ----------
    held_over_fork : bool, default=False
        Let a fork wait until the lock is free, for what must not be copied half-way (an open transaction).
    """

    _all: ClassVar["weakref.WeakSet[ProcessLock]"] = weakref.WeakSet()

    def __init__(self, *, held_over_fork: bool = False):
        self._lock = threading.RLock()
        self._held_over_fork = held_over_fork
        self._all.add(self)

    def __enter__(self) -> "ProcessLock":
        self._lock.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()

    @classmethod
    def _before_fork(cls) -> None:
        for lock in list(cls._all):
            if lock._held_over_fork:
                lock._lock.acquire()

    @classmethod
    def _after_fork_in_parent(cls) -> None:
        for lock in list(cls._all):
            if lock._held_over_fork:
                lock._lock.release()

    @classmethod
    def _after_fork_in_child(cls) -> None:
        global _token
        _token = os.urandom(16)
        for lock in list(cls._all):
            lock._lock = threading.RLock()
        for function in _in_children:
            function()


if hasattr(os, "register_at_fork"):  # absent on Windows, which does not fork
    os.register_at_fork(
        before=ProcessLock._before_fork,
        after_in_parent=ProcessLock._after_fork_in_parent,
        after_in_child=ProcessLock._after_fork_in_child,
    )
