"""Which ledgers are open, and for which records a release is charged.

The open ledgers of a process are one set, behind one lock, that all its threads charge. A forked child inherits it.
Into other processes they travel with the estimator: when the first ledger is entered, reducers are registered with loky
and :mod:`multiprocessing`, and these reducers send the ledgers along. The estimator keeps what came with it, so that a
worker that is used again for something else charges nothing. Plain pickles and ``joblib.dump`` carry no ledger, unless
``distributed`` is imported: Dask pickles by plain pickle.
"""

import asyncio
import multiprocessing.reduction
import os
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from joblib.externals.loky.backend import reduction as loky_reduction

from skfairdp._process import ProcessLock, process_token
from skfairdp.dp import _ledger_file
from skfairdp.dp._guarantee import PrivacyGuarantee
from skfairdp.dp._ledger_file import DEFAULT_RECORDS, Session


class SentLedger(NamedTuple):
    """An open ledger that came with an estimator, and the record sets that were worked on when it was sent."""

    session: Session
    records: tuple[str, ...]


class _Opening(NamedTuple):
    """A block of code that works on one record set of the account at ``path``."""

    path: str
    records: str
    thread: tuple[bytes, int]


_lock = ProcessLock()
_open: dict[Session, Any] = {}  # with their ledgers, so that a temporary file lives until its ledger is left
_entered: dict[str, bytes] = {}  # which process has entered a session, be it open or left
#: Blocks that are open in any thread, the latest last, with the thread or asyncio task that opened each.
_blocks: dict[str, tuple[str, _Opening]] = {}
#: The blocks around the running code.
_openings: ContextVar[tuple[_Opening, ...]] = ContextVar("skfairdp_record_sets", default=())


# -- which ledgers ----------------------------------------------------------------------------------------------------


def add_ledger(session: Session, ledger: Any) -> None:
    """Let a ledger be charged by this process, and by the workers that estimators are sent to."""
    _register_reducers()
    with _lock:
        _open[session] = ledger
        _entered[session.id] = process_token()


def remove_ledger(session: Session) -> None:
    """Let a ledger be charged no more."""
    with _lock:
        _open.pop(session, None)


def was_entered_here(session_id: str) -> bool:
    """Whether this process has entered a session, be it open or left."""
    return _entered.get(session_id) == process_token()


def open_ledgers() -> list[Session]:
    """Return the ledgers that this process charges."""
    with _lock:
        return list(_open)


def charge(guarantee: PrivacyGuarantee, *, source: str, sent: tuple[SentLedger, ...] = ()) -> None:
    """Charge one release to every open ledger, or raise and charge none.

    Parameters
    ----------
    guarantee : PrivacyGuarantee
        What the release costs each of its records.
    source : str
        Who releases; shown in the ledger's entries.
    sent : tuple of SentLedger
        The ledgers that came with the estimator from another process.
    """
    if not isinstance(guarantee, PrivacyGuarantee):
        raise TypeError(f"guarantee must be a PrivacyGuarantee; got {guarantee!r}.")
    if is_paid():
        return _paid.get()[1](guarantee)
    sets = {session: records_of_running_code(session.path) for session in open_ledgers()}
    for ledger in sent:
        # Where the ledger was sent to, its own record sets are known better than by a process that was forked before.
        if ledger.session.owner != process_token().hex():
            sets[ledger.session] = list(ledger.records)
    while sets:
        try:
            return _ledger_file.charge_sessions(sets, guarantee, source)
        except _ledger_file.SessionClosedError as error:  # left meanwhile, here or in the process that sent it
            for session in error.sessions:
                remove_ledger(session)
                del sets[session]


#: Where releases go whose price has been paid, and in which process.
_paid: ContextVar[tuple[bytes, Callable[[PrivacyGuarantee], None]]] = ContextVar(
    "skfairdp_paid", default=(b"", lambda guarantee: None)
)


@contextmanager
def paying(receive: Callable[[PrivacyGuarantee], None]) -> Iterator[None]:
    """Withhold charges for releases that the caller has paid for, or that reach only the caller.

    Parameters
    ----------
    receive : callable
        Called with what each release would have cost, before its noise is drawn. If it raises, nothing is released.

    Notes
    -----
    Code that does not see this block, in other threads and in worker processes, charges again: never too little.
    """
    before = _paid.set((process_token(), receive))
    try:
        yield
    finally:
        _paid.reset(before)


def is_paid() -> bool:
    """Whether the running code is in a :func:`paying` block."""
    return _paid.get()[0] == process_token()


# -- which records ----------------------------------------------------------------------------------------------------

# A context is inherited by tasks, which belong to the block that starts them. A forked worker inherits one too, and so
# does a thread from Python 3.14 on where it is built so; but pools keep theirs and give them work from other blocks.
_THREADS_INHERIT = bool(getattr(sys.flags, "thread_inherit_context", False))


def _running_thread() -> tuple[bytes, int]:
    return process_token(), threading.get_ident() if _THREADS_INHERIT else 0


def _running_thread_or_task() -> str:
    try:
        task = asyncio.current_task()
    except RuntimeError:  # no event loop runs in this thread
        task = None
    return f"{threading.get_ident()}-{0 if task is None else id(task)}"


def known_records(path: str) -> str | None:
    """Return the record set that the running code has declared for this account, if it has."""
    thread = _running_thread()
    return next((o.records for o in reversed(_openings.get()) if o.path == path and o.thread == thread), None)


def records_of_running_code(path: str) -> list[str]:
    """Return the record sets of this account that a release may concern.

    A thread that has declared no set may have been started by any block, or by none: it charges them all.
    """
    known = known_records(path)
    if known is not None:
        return [known]
    with _lock:
        return [DEFAULT_RECORDS, *(o.records for _, o in _blocks.values() if o.path == path)]


def records_being_worked_on(path: str) -> tuple[str, ...]:
    """Return the innermost record set of every thread and task that has declared one."""
    with _lock:
        innermost = {place: o.records for place, o in _blocks.values() if o.path == path}
    return tuple(dict.fromkeys(innermost.values())) or (DEFAULT_RECORDS,)


@contextmanager
def working_on(path: str, records: str) -> Iterator[None]:
    """Declare the record set of the code within, and of the tasks that it starts."""
    opening, block = _Opening(path, records, _running_thread()), uuid.uuid4().hex
    with _lock:
        _blocks[block] = (_running_thread_or_task(), opening)
    _openings.set((*_openings.get(), opening))
    try:
        yield
    finally:
        _openings.set(tuple(o for o in _openings.get() if o is not opening))
        with _lock:
            _blocks.pop(block, None)


# -- estimators that travel -------------------------------------------------------------------------------------------

#: Classes whose objects take the open ledgers along, and whether reducers know them.
_travellers: list[type] = []
_registered: set[type] = set()


def let_travel(kind: type) -> None:
    """Let the objects of a class take the open ledgers along to worker processes."""
    _travellers.append(kind)
    if _registered:
        _register_reducers()


def _register_reducers() -> None:
    """Register the reducers of all classes with the picklers that send work to other processes."""
    with _lock:
        for kind in _travellers:
            if kind not in _registered:
                multiprocessing.reduction.ForkingPickler.register(kind, _reduce)
                loky_reduction.register(kind, _reduce)
                _registered.add(kind)


def ledgers_to_send(estimator: Any) -> tuple[SentLedger, ...]:
    """Return the ledgers that an estimator takes along: those open here, and those that it brought."""
    here = [SentLedger(session, records_being_worked_on(session.path)) for session in open_ledgers()]
    known = {ledger.session for ledger in here}
    return (*here, *(one for one in getattr(estimator, "_sent_ledgers", ()) if one.session not in known))


def _reduce(estimator: Any) -> tuple[Any, ...]:
    make, arguments, state, *_ = estimator.__reduce_ex__(4)
    return make, arguments, (state, ledgers_to_send(estimator)), None, None, _restore


def _restore(estimator: Any, content: tuple[Any, tuple[SentLedger, ...]]) -> None:
    state, sent = content
    estimator.__setstate__(state)
    keep_sent_ledgers(estimator, sent)


def keep_sent_ledgers(estimator: Any, sent: tuple[SentLedger, ...]) -> None:
    """Keep the ledgers that came with an estimator from another process."""
    foreign = tuple(ledger for ledger in sent if ledger.session.owner != process_token().hex())
    if foreign:
        estimator.__dict__["_sent_ledgers"] = foreign
        _register_reducers()  # this worker may send it on


def check_ledgers_came_along(estimator: Any) -> None:
    """Refuse a release in a worker that was sent an estimator, and not the ledgers that were open where it came from.

    Backends of joblib other than loky, threads, Dask and forked processes pickle without our reducers.
    """
    expected = estimator.__dict__.get("_pickled_under", ())
    known = {session.id for session in open_ledgers()}
    known |= {ledger.session.id for ledger in estimator.__dict__.get("_sent_ledgers", ())}
    if any(session not in known for session in expected) and is_worker():
        raise RuntimeError(
            f"{type(estimator).__name__} was pickled while a PrivacyLedger was open, and this worker cannot reach the "
            "ledger: loky, multiprocessing, threads and Dask send it along, this backend does not. Nothing was "
            "released. Use joblib's loky backend, or enter PrivacyLedger(path=...) in the task itself."
        )


def can_be_reached(ledger: SentLedger) -> bool:
    """Whether the file of a ledger is there."""
    return os.path.exists(ledger.session.path)


def is_worker() -> bool:
    """Whether this code runs in a worker, as far as joblib, multiprocessing and Dask show it."""
    from joblib.parallel import get_active_backend

    if multiprocessing.parent_process() is not None or (get_active_backend()[0].nesting_level or 0) > 0:
        return True
    if "distributed" not in sys.modules:
        return False
    from distributed import get_worker

    try:
        get_worker()
    except ValueError:
        return False
    return True
