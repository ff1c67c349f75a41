"""Which pipelines are being fitted, in this thread and in others.

scikit-learn tells a step nothing about the pipeline that it stands in, and the price of a release depends on it. The
pipelines of the own thread are on its stack. A step may also run in a thread of a pool, or be pickled by a thread that
feeds worker processes, while the pipeline waits in another thread. CPython 3.11 crashes now and then when one thread
reads the stack of another, and so pipelines are asked to say it themselves: importing this file wraps the three methods
of ``sklearn.pipeline.Pipeline`` that fit steps, and the wrapper keeps a list of those that run. A class that replaces
these methods without calling them is known in its own thread only.
"""

import functools
import os
import sys
import threading
from types import MethodType
from typing import Any

from sklearn.pipeline import Pipeline

#: Methods of a pipeline in which its steps are being fitted.
_FITTING = ("fit", "fit_transform", "fit_predict")
#: Thread and pipeline of every such call that runs. Single operations on a dictionary need no lock.
_running: dict[object, tuple[int, Pipeline]] = {}


class _NotedMethod:
    """A method of a class that is on the list while it runs; otherwise it is the method that it was."""

    def __init__(self, method: Any):
        self._method = method

        @functools.wraps(method.__get__(None, Pipeline))
        def noted(pipeline: Pipeline, *args: Any, **params: Any) -> Any:
            call = object()
            _running[call] = threading.get_ident(), pipeline
            try:
                return method.__get__(pipeline, type(pipeline))(*args, **params)
            finally:
                _running.pop(call, None)  # a forked process has forgotten it

        self._noted = noted

    def __get__(self, pipeline: Pipeline | None, owner: type | None = None) -> Any:
        method = self._method.__get__(pipeline, owner)  # there is none if the last step has no such method
        return method if pipeline is None else MethodType(self._noted, pipeline)


def _note_calls(pipelines: type) -> None:
    for name in _FITTING:
        method = vars(pipelines)[name]
        if not isinstance(method, _NotedMethod):
            setattr(pipelines, name, _NotedMethod(method))


_note_calls(Pipeline)
if hasattr(os, "register_at_fork"):  # the threads of a process do not live on in what it forks
    os.register_at_fork(after_in_child=_running.clear)


def pipelines_of_this_thread() -> dict[int, Pipeline]:
    """Return the pipelines on the stack of this thread, by identity, whatever their class has for ``fit``."""
    found: dict[int, Pipeline] = {}
    frame: Any = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name in _FITTING:
            owner = frame.f_locals.get("self")
            if isinstance(owner, Pipeline):
                found[id(owner)] = owner
        frame = frame.f_back
    return found


def pipelines_of_other_threads() -> dict[int, Pipeline]:
    """Return the pipelines that are being fitted in other threads, by identity."""
    here = threading.get_ident()
    return {id(pipeline): pipeline for thread, pipeline in _running.copy().values() if thread != here}
