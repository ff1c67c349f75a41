"""Which ledgers are active, so that a release is charged to them, and for which records.

A ledger that is entered is charged by its process and by all processes that descend from it. They find it without
being told. Each process has a *board*, a prefix of file names that it adds to an environment variable when this module
is imported; its children inherit the variable, and so know the boards of all their ancestors, however early they were
started. Entering a ledger writes a small file with that prefix, the *marker*; leaving removes it. A process reads the
markers on its own board and on those of its ancestors, not those of its siblings.

Processes that do not descend from it (those of a cluster, say) learn of a ledger from estimators that they are sent.
"""

import asyncio
import json
import multiprocessing
import os
import socket
import stat
import sys
import tempfile
import threading
import uuid
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, NamedTuple

from skfairdp._process import call_in_forked_children, process_token
from skfairdp.accounting import _ledger_file
from skfairdp.accounting._guarantee import PrivacyGuarantee
from skfairdp.accounting._ledger_file import Session
from skfairdp.exceptions import PrivacyLeakWarning

_VARIABLE = "SKFAIRDP_LEDGERS"

_boards: tuple[str, ...] = ()  # those of the ancestors, and last our own
_entered: dict[Session, Any] = {}  # the ledgers of this process, which live until they are left
_received: dict[Session, str] = {}  # those that came with an estimator, and the host it came from


# -- boards -----------------------------------------------------------------------------------------------------------


def _announce_board() -> None:
    """Name the board of this process. No file is made, because most processes never enter a ledger."""
    global _boards
    inherited = _boards or tuple(filter(None, os.environ.get(_VARIABLE, "").split(os.pathsep)))
    # The number finds the parent of a worker that was started before its parent had a board.
    _boards = (*inherited, os.path.join(_FOLDER, f"{os.getpid()}-{uuid.uuid4().hex}"))
    os.environ[_VARIABLE] = os.pathsep.join(_boards)
    _entered.clear()  # a forked child charges the ledgers of its parent, but does not own them


def _board_folder() -> str:
    """Return where boards are. The name tells users apart who share a folder of temporary files."""
    try:
        parent = tempfile.gettempdir()
    except OSError:
        parent = os.path.abspath(os.sep)  # nothing can be written anywhere: releases without a ledger go on
    return os.path.join(parent, f"skfairdp-{os.getuid() if hasattr(os, 'getuid') else 'ledgers'}")


_FOLDER = _board_folder()


def _is_ours(folder: str) -> bool:
    """Tell whether a folder is there, and nobody else made it."""
    try:
        found = os.lstat(folder)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return False
    return stat.S_ISDIR(found.st_mode) and (not hasattr(os, "getuid") or found.st_uid == os.getuid())


def _session_markers() -> Iterator[str]:
    """List the markers on our board and on those of our ancestors."""
    parents = {str(os.getppid())}
    if (parent := multiprocessing.parent_process()) is not None:
        parents.add(str(parent.pid))  # another one where a server forks the workers
    folders, boards = zip(*(os.path.split(board) for board in _boards))
    for folder in set(folders):
        for name in os.listdir(folder) if _is_ours(folder) else ():
            board = name.partition(".")[0]
            if board in boards or board.partition("-")[0] in parents:
                yield os.path.join(folder, name)


def _session_marker(session: Session) -> str:
    return f"{_boards[-1]}.{session.id}"


def enter_ledger(session: Session, ledger: Any) -> None:
    """Let a ledger be charged by this process and its descendants."""
    folder, name = os.path.split(_session_marker(session))
    with suppress(FileExistsError):
        os.mkdir(folder, 0o700)
    if not _is_ours(folder):
        raise PermissionError(
            f"{folder!r} belongs to somebody else, and worker processes look there for active ledgers. Set the "
            "environment variable TMPDIR to a folder of your own before Python starts."
        )
    draft = os.path.join(folder, f".{name}")  # nobody reads half a marker
    with open(draft, "w", encoding="utf-8") as file:
        json.dump(session, file)
    os.replace(draft, _session_marker(session))
    _entered[session] = ledger


def leave_ledger(session: Session) -> None:
    """Let a ledger be charged no more."""
    _entered.pop(session, None)
    with suppress(FileNotFoundError):
        os.unlink(_session_marker(session))


def sessions_to_charge() -> dict[Session, str]:
    """Return the sessions that a release is charged to, each with the path of its marker, or an empty string."""
    found = dict.fromkeys(_received, "")
    for marker in _session_markers():
        with suppress(FileNotFoundError), open(marker, encoding="utf-8") as file:  # it may have been left just now
            found[Session(*json.load(file))] = marker
    # Our own are kept in memory as well: they are charged even if somebody has cleaned up the folder of markers.
    return {**dict.fromkeys(_entered, ""), **found}


# -- releases ---------------------------------------------------------------------------------------------------------


def charge_release(guarantee: PrivacyGuarantee, *, source: str) -> None:
    """Charge one release to every active ledger, or raise and charge none.

    Parameters
    ----------
    guarantee : PrivacyGuarantee
        What the release costs each of its records.
    source : str
        Who releases; shown in the ledger's entries.
    """
    if not isinstance(guarantee, PrivacyGuarantee):
        raise TypeError(f"guarantee must be a PrivacyGuarantee; got {guarantee!r}.")
    if is_withheld():
        return _withheld.get()[1](guarantee)
    active = sessions_to_charge()
    while active:
        try:
            return _ledger_file.charge_sessions(
                {session: clue_about_records(session.path, session.id) for session in active}, guarantee, source
            )
        except _ledger_file.SessionClosedError as error:
            for session in error.sessions:
                _dismiss_session(session, active.pop(session), error)


#: Who is told of releases instead of the ledgers, and in which process.
_withheld: ContextVar[tuple[bytes, Callable[[PrivacyGuarantee], None]]] = ContextVar(
    "skfairdp_withheld", default=(b"", lambda guarantee: None)
)


@contextmanager
def withheld_releases(receive: Callable[[PrivacyGuarantee], None]) -> Iterator[None]:
    """Let the code within release nothing to anybody but the caller, who pays for what leaves in the end.

    Parameters
    ----------
    receive : callable
        Is told what each release would have cost, before its noise is drawn; what it raises prevents the release.

    Notes
    -----
    Releases in other threads and in worker processes, of which nothing is known here, are charged as ever.
    """
    before = _withheld.set((process_token(), receive))
    try:
        yield
    finally:
        _withheld.reset(before)


def is_withheld() -> bool:
    """Tell whether a release would reach the caller of :func:`withheld_releases` and no ledger."""
    return _withheld.get()[0] == process_token()


def _dismiss_session(session: Session, marker: str, error: _ledger_file.SessionClosedError) -> None:
    """Forget a session that cannot be charged because it has ended; refuse the release if it has not ended."""
    if session in _entered or (os.path.exists(marker) and _is_alive(marker)):
        raise RuntimeError(f"{error} It is still active; nothing was released.") from error
    with suppress(FileNotFoundError):
        os.unlink(marker)  # if there is one: its process was killed, and its file removed
    host = _received.pop(session, None)
    here = socket.gethostname()
    if host not in (None, here) and not error.known:
        warnings.warn(
            f"A release on {here!r} was not charged: it comes from an estimator that was sent from {host!r} while the "
            f"privacy ledger {session.path!r} was active there, and that file is not here. Put the "
            "ledger on a file system that all workers see (path=...), or pickle the estimator after the ledger was "
            "left.",
            PrivacyLeakWarning,
            stacklevel=4,
        )


def _is_alive(marker: str) -> bool:
    """Tell whether the process that put up a marker still runs; where that cannot be asked, assume it."""
    if os.name == "nt":
        return True  # os.kill would end the process there
    try:
        os.kill(int(os.path.basename(marker).partition("-")[0]), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


# -- record sets ------------------------------------------------------------------------------------------------------


class _Opening(NamedTuple):
    """A block that works on a record set, and the thread in which that is known for certain."""

    path: str
    records: str | None
    witness: tuple[bytes, int]


_openings: ContextVar[tuple[_Opening, ...]] = ContextVar("skfairdp_record_sets", default=())
_open_blocks: dict[str, str] = {}  # those of this process, the latest last, and their files
_sent_from: dict[str, str] = {}  # the block from which this process was last sent an estimator, by session

# A context is inherited by tasks, which belong to the block that starts them. A forked worker inherits one too, and so
# does a thread from Python 3.14 on where it is built so; but pools keep theirs and give them work from other blocks.
_THREADS_INHERIT = bool(getattr(sys.flags, "thread_inherit_context", False))


def _running_thread() -> tuple[bytes, int]:
    return process_token(), threading.get_ident() if _THREADS_INHERIT else 0


def clue_about_records(path: str, session: str) -> _ledger_file.Clue:
    """Return what is known of the records of this ledger file that the running code is at work on."""
    here = _running_thread()
    known = (o.records for o in reversed(_openings.get()) if o.path == path and o.witness == here)
    return _ledger_file.Clue(next(known, None), _sent_from.get(session))


@contextmanager
def known_as(path: str, records: str | None, block: str) -> Iterator[None]:
    """Let the code within, and the tasks it starts, be known to work on a record set, if that is known."""
    opening = _Opening(path, records, _running_thread())
    _open_blocks[block] = path
    _openings.set((*_openings.get(), opening))
    try:
        yield
    finally:
        _openings.set(tuple(o for o in _openings.get() if o is not opening))
        _open_blocks.pop(block, None)


def new_block() -> str:
    """Name a block, after the process that opens it."""
    return f"{process_token().hex()}-{uuid.uuid4().hex}"


def name_of_thread_or_task() -> str:
    """Return a name for the running thread, or for the running task of it, that no other process has."""
    try:
        task = asyncio.current_task()
    except RuntimeError:  # no event loop runs in this thread
        task = None
    return f"{process_token().hex()}-{threading.get_ident()}-{0 if task is None else id(task)}"


# -- estimators that travel -------------------------------------------------------------------------------------------


def carried_ledgers() -> tuple[tuple[Any, ...], ...]:
    """Describe the active ledgers in plain values, for an estimator that is being pickled.

    Returns
    -------
    tuple
        For each ledger where it is, and a block that is open; empty if none is active.
    """
    # Pools pickle in a thread of their own, so that the block is any that is open, not that of the running code.
    latest = {path: block for block, path in list(_open_blocks.items())}
    here = socket.gethostname()
    return tuple((_received.get(s, here), latest.get(s.path, _sent_from.get(s.id)), *s) for s in sessions_to_charge())


def receive_ledgers(carried: tuple[tuple[Any, ...], ...]) -> None:
    """Learn from an unpickled estimator which ledgers it is charged to, where this is not known, and for which records.

    Parameters
    ----------
    carried : tuple
        What :func:`carried_ledgers` returned where it was pickled.
    """
    known = sessions_to_charge() if carried else {}
    for host, block, *rest in carried:
        session = Session(*rest)
        if session not in known:
            _received[session] = host
        if block is not None and not block.startswith(process_token().hex()):  # a copy within the process says nothing
            _sent_from[session.id] = block


_announce_board()
call_in_forked_children(_announce_board)
