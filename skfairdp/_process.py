"""Which process this is. A forked child is another one, and must not go on with what belonged to its parent."""

import os
import threading
from collections.abc import Callable

_token = b""
_CAN_FORK = hasattr(os, "register_at_fork")  # absent on Windows


def call_in_forked_children(function: Callable[[], None]) -> None:
    """Let a function be called in every forked child, after the child has a token of its own."""
    if _CAN_FORK:
        os.register_at_fork(after_in_child=function)


def process_token() -> bytes:
    """Return a value that no other process has, forked children included."""
    return _token


def _renew_token() -> None:
    global _token
    _token = os.urandom(16)


_renew_token()
call_in_forked_children(_renew_token)  # the first of all: functions are called in the order in which they came


class ProcessLock:
    """A re-entrant lock of one process, held by a module: a forked child finds it open.

    Without this, a child that is forked while another thread holds the lock would wait for ever for a thread that
    it does not have.

    Parameters
    ----------
    held_over_fork : bool, default=False
        Let a fork wait until the lock is free, for what must not be copied half-way (an open transaction).
    """

    def __init__(self, *, held_over_fork: bool = False):
        self._open()
        call_in_forked_children(self._open)
        if held_over_fork and _CAN_FORK:
            os.register_at_fork(before=self.__enter__, after_in_parent=self.__exit__)

    def _open(self) -> None:
        self._lock = threading.RLock()

    def __enter__(self) -> "ProcessLock":
        self._lock.acquire()
        return self

    def __exit__(self, *error: object) -> None:
        self._lock.release()
