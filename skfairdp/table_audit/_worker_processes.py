"""Who makes the calls of an audit: this process, forked copies of it, or fresh processes."""

import contextlib
import multiprocessing
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from typing import Any

from joblib import Parallel, delayed, effective_n_jobs
from threadpoolctl import threadpool_limits

_process_is_ours = False
#: Cells of the training table from which a fresh process gains more time than its start costs, which is seconds.
_WORTH_FRESH_PROCESSES = 40_000


class WorkerProcesses:
    """Make calls on several processors.

    A fresh process has to load scikit-learn and torch, which takes longer than the audit of a small table. A forked one
    has loaded all that this process has, but may be made only where nothing else goes on in it: threads of others, also
    those inside of torch, would leave the copy with locks that nobody opens. So it is made for the command alone, whose
    process is ours.

    Parameters
    ----------
    n_jobs : int or None
        Number of processes, as in joblib; forked ones where that is safe, else fresh ones. None takes all processors,
        but this process alone where a small table is not worth fresh ones.
    n_cells : int
        Cells of the training table.
    meanwhile : callable, optional
        What this process does while forked ones work.
    """

    def __init__(self, n_jobs: int | None, n_cells: int, meanwhile: Callable[[], None] | None = None):
        self._n_jobs = effective_n_jobs(-1 if n_jobs is None else n_jobs)
        self._pool: ProcessPoolExecutor | None = None
        self._meanwhile: threading.Thread | None = None
        if self._n_jobs > 1 and may_fork():
            self._pool = ProcessPoolExecutor(self._n_jobs, mp_context=multiprocessing.get_context("fork"))
            self._pool.submit(int)  # the processes are forked by the first call, while this one has no thread
            self._meanwhile = threading.Thread(target=meanwhile)
            self._meanwhile.start()
        elif n_jobs is None and n_cells <= _WORTH_FRESH_PROCESSES:
            self._n_jobs = 1

    def __enter__(self) -> "WorkerProcesses":
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
        if self._meanwhile is not None:
            self._meanwhile.join()  # while it runs, this process may not be forked

    def results(self, calls: Sequence[tuple]) -> Iterator[tuple[int, Any]]:
        """Make calls, each a function with its arguments; give number and result of each as soon as it is there."""
        if self._pool is None:
            numbered = (delayed(_numbered)(number, *call) for number, call in enumerate(calls))
            yield from Parallel(n_jobs=self._n_jobs, return_as="generator_unordered")(numbered)
            return
        futures = [self._pool.submit(_numbered, number, *call) for number, call in enumerate(calls)]
        for future in as_completed(futures):
            yield future.result()


def declare_process_ours() -> None:
    """Say that nobody else's code runs in this process, which may then be forked: the command line does so."""
    global _process_is_ours
    _process_is_ours = True


def may_fork() -> bool:
    """Tell whether a copy of this process would work: it is ours, has one thread, and torch has started none."""
    return _process_is_ours and sys.platform == "linux" and "torch" not in sys.modules and threading.active_count() == 1


def start_in_copy(function: Callable, *arguments: Any) -> Callable[[], Any]:
    """Start a call in a forked copy of this process, where one may be made, and return what waits for its result.

    Elsewhere the call is made when its result is asked for; also if the copy died. The result must be one that pickles;
    function and arguments need not.
    """
    if not may_fork() or effective_n_jobs(-1) < 2:
        return partial(function, *arguments)
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    # A daemon, so that it ends with this process if an error keeps that from asking for the result.
    copy = context.Process(target=_send_result, args=(sender, function, *arguments), daemon=True)
    copy.start()
    sender.close()  # the copy has its own: if it dies, there is nothing left to wait for

    def wait() -> Any:
        try:
            return receiver.recv()
        except EOFError:
            return function(*arguments)
        finally:
            receiver.close()
            copy.join()

    return wait


def _send_result(sender: Any, function: Callable, *arguments: Any) -> None:
    # After an error the call is made again by who waits, and fails there; who interrupts has both processes stopped.
    with contextlib.suppress(Exception, KeyboardInterrupt):
        sender.send(function(*arguments))


def _numbered(number: int, function: Callable, *arguments: Any) -> tuple[int, Any]:
    """Call a function, and tell which call it was: results come in the order in which they are ready.

    It gets one thread: on a busy machine, the threads of boosted trees and of matrix products wait for each other for
    minutes.
    """
    with threadpool_limits(1):
        return number, function(*arguments)
