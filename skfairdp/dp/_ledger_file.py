"""The SQLite file behind a ledger.

One connection per transaction and nothing kept open: a file can then be shared by
threads, by forked and by spawned processes, and a process that dies leaves
nothing locked. A charge is one ``BEGIN IMMEDIATE`` transaction that reads the budget and
what was spent, and writes the entry, so that two processes can never both get the
last of one budget, and a budget binds from the moment it is set.
"""

import json
import math
import os
import sqlite3
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from skfairdp._process import ProcessLock
from skfairdp.dp._composition import events_fit_budget, repeated_seeds
from skfairdp.dp._guarantee import PrivacyGuarantee, events_of
from skfairdp.exceptions import BudgetExceededError

DEFAULT_RECORDS = "default"

_APPLICATION_ID = 0x736B6670  # "skfp": tells a ledger from any other SQLite file
_VERSION = 3
_TIMEOUT = 120.0  # seconds to wait for other processes before a release is refused

_SCHEMA = """
CREATE TABLE budgets (time REAL NOT NULL, process INTEGER NOT NULL, guarantee TEXT NOT NULL);
CREATE TABLE sessions (id TEXT PRIMARY KEY, time REAL NOT NULL, process INTEGER NOT NULL, left REAL);
CREATE TABLE entries (
    id INTEGER PRIMARY KEY AUTOINCREMENT, time REAL NOT NULL, process INTEGER NOT NULL, records TEXT NOT NULL,
    source TEXT NOT NULL, guarantee TEXT NOT NULL);
CREATE INDEX entries_by_records ON entries (records, guarantee);
"""

# SQLite knows of locks per process; a child that is forked in the middle of a transaction would believe for ever
# that it holds one. So transactions of one process take turns, and a fork waits for its turn too.
_turn = ProcessLock(held_over_fork=True)


class Session(NamedTuple):
    """A ledger from the moment it is entered until it is left, as any process may know it.

    ``owner`` names the process that has entered it.
    """

    path: str
    id: str
    durable: bool
    owner: str


class SessionClosedError(RuntimeError):
    """These sessions were left, so that nothing is charged to them any more."""

    def __init__(self, message: str, sessions: list[Session]):
        super().__init__(message)
        self.sessions = sessions


@contextmanager
def ledger_transaction(path: str, *, durable: bool, write: bool = True) -> Iterator[sqlite3.Connection]:
    """Hold a lock on a ledger file; commit at the end, roll back on any exception."""
    with _turn, _named_errors(path):
        if not os.path.exists(path):
            raise RuntimeError(
                f"The privacy ledger {path!r} cannot be reached from here: there is no such file. Nothing was "
                "released. Workers on other machines need a path on a file system that all of them see."
            )
        # mode=rw never makes a file: a ledger that is gone must not come back empty.
        uri = f"file:{quote(path)}?mode=rw"
        connection = sqlite3.connect(uri, uri=True, timeout=_TIMEOUT, isolation_level=None)
        with closing(connection), connection:  # commits or rolls back, then closes
            # EXTRA also syncs the folder, without which a power cut can bring a journal back and undo an entry.
            connection.execute(f"PRAGMA synchronous = {'EXTRA' if durable else 'OFF'}")
            connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
            yield connection


def create_ledger_file(path: str, *, durable: bool) -> None:
    """Make a new account where there is no file yet."""
    if not Path(path).parent.is_dir():
        raise FileNotFoundError(f"path must lie in a folder that exists; got {path!r}.")
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))  # private from its first byte on
    except FileExistsError:
        raise FileExistsError(
            f"path={path!r} exists already, and create=True makes new accounts only. Leave create away to open it."
        ) from None
    with ledger_transaction(path, durable=durable) as connection:
        for statement in _SCHEMA.split(";"):
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {_VERSION}")


def check_ledger_file(path: str) -> None:
    """Refuse a file that is not there, not a ledger, or not a whole one."""
    if not os.path.exists(path):
        raise FileNotFoundError(
            f"path={path!r} does not exist. If a new account is meant, pass create=True; if there was one, restore it "
            "from a copy: a new one would forget what has been spent."
        )
    if os.path.getsize(path) == 0:
        raise ValueError(_damaged_file(path, "it is empty"))
    with ledger_transaction(path, durable=True, write=False) as connection:
        found = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if found != _APPLICATION_ID:
            raise ValueError(f"path={path!r} is an SQLite file, but not a privacy ledger.")
        if version != _VERSION:
            raise ValueError(f"path={path!r} is a privacy ledger of version {version}; version {_VERSION} is known.")
        damage = connection.execute("PRAGMA quick_check").fetchone()[0]
        if damage != "ok":
            raise ValueError(_damaged_file(path, damage))


def charge_sessions(sets: Mapping[Session, Sequence[str]], guarantee: PrivacyGuarantee, source: str) -> None:
    """Charge one release to the record sets of every session, or raise and charge none."""
    by_path: dict[str, list[Session]] = {}
    for session in sets:
        by_path.setdefault(session.path, []).append(session)
    with ExitStack() as stack:
        # Always in the same order, so that two releases never wait for each other. All checks come before the
        # first commit; should a later commit fail, an earlier ledger has recorded a release that was not made.
        for path, here in sorted(by_path.items()):
            connection = stack.enter_context(ledger_transaction(path, durable=here[0].durable))
            if closed := [session for session in here if not is_open(connection, session)]:
                raise SessionClosedError(f"The privacy ledger {path!r} was left.", closed)
            names = [name for session in here for name in sets[session]]
            record_release(connection, names, guarantee, source)


def record_release(
    connection: sqlite3.Connection, sets: Iterable[str], guarantee: PrivacyGuarantee, source: str
) -> None:
    """Write one release down for each of these record sets, if the budget pays for all of them."""
    text = json.dumps(guarantee.to_dict(), sort_keys=True)
    budget = stored_budget(connection)
    if budget is not None and math.isfinite(budget.epsilon) and guarantee.reproducible:
        _check_noise(connection, guarantee)
    for records in dict.fromkeys(sets):
        if budget is not None:
            spent = recorded_releases(connection, records)
            spent[guarantee] += 1
            _check_budget(spent, guarantee, budget, records)
        connection.execute(
            "INSERT INTO entries (time, process, records, source, guarantee) VALUES (?, ?, ?, ?, ?)",
            (time.time(), os.getpid(), records, source, text),
        )


def _check_noise(connection: sqlite3.Connection, guarantee: PrivacyGuarantee) -> None:
    """Refuse noise that another release of any record set has drawn already."""
    everything = recorded_releases(connection)
    everything[guarantee] += 1
    if repeated_seeds(events_of(everything)):
        raise BudgetExceededError(
            f"A release by {guarantee.mechanism!r} was refused: an earlier one started from the same seed and carries "
            "the same noise, so that their difference is the difference of the records, and no budget pays for that. "
            "Leave random_state=None. Nothing was released and nothing was charged."
        )


def _check_budget(
    spent: Counter[PrivacyGuarantee], guarantee: PrivacyGuarantee, budget: PrivacyGuarantee, records: str
) -> None:
    where = f"records {records!r}: the budget of {price_in_words(budget)}"
    if budget.unit == "record" and any(g.unit == "word" for g in spent):
        raise BudgetExceededError(
            f"A release by {guarantee.mechanism!r} was refused for {where} counts records, and a guarantee for single "
            "words does not bound what a whole record loses. Charge the record-level guarantee, or give a budget whose "
            "unit is 'word'."
        )
    if not events_fit_budget(events_of(spent), budget.epsilon, budget.delta):
        hint = ""
        if budget.pure and not guarantee.pure:
            hint = " A budget without a delta cannot pay for a release that has one: give delta= to the ledger."
        raise BudgetExceededError(
            f"A release by {guarantee.mechanism!r} ({price_in_words(guarantee)}) was refused for {where} would "
            f"be exceeded after {spent.total() - 1} earlier release(s). Nothing was released and nothing was "
            f"charged.{hint}"
        )


def price_in_words(guarantee: PrivacyGuarantee) -> str:
    """Return what a guarantee costs as an error says it."""
    delta = "" if guarantee.pure else f", delta={guarantee.delta:.3g}"
    return f"epsilon={guarantee.epsilon:.6g}{delta}{' for words' if guarantee.unit == 'word' else ''}"


def stored_budget(connection: sqlite3.Connection) -> PrivacyGuarantee | None:
    """Return the budget that binds whoever charges this file."""
    row = connection.execute("SELECT guarantee FROM budgets ORDER BY rowid DESC LIMIT 1").fetchone()
    return None if row is None else read_guarantee(row[0])


def store_budget(connection: sqlite3.Connection, budget: PrivacyGuarantee) -> None:
    """Let a budget bind from now on; the earlier ones stay on record."""
    text = json.dumps(budget.to_dict(), sort_keys=True)
    connection.execute("INSERT INTO budgets VALUES (?, ?, ?)", (time.time(), os.getpid(), text))


def open_session(connection: sqlite3.Connection, session: Session) -> None:
    """Let releases be charged from now on."""
    row = (session.id, time.time(), os.getpid())
    connection.execute("INSERT INTO sessions (id, time, process) VALUES (?, ?, ?)", row)


def close_session(connection: sqlite3.Connection, session: Session) -> None:
    """Let releases be charged no more."""
    connection.execute("UPDATE sessions SET left = ? WHERE id = ?", (time.time(), session.id))


def is_open(connection: sqlite3.Connection, session: Session) -> bool:
    """Whether a session was entered and not left; a file that has never seen it is another account."""
    row = connection.execute("SELECT left FROM sessions WHERE id = ?", (session.id,)).fetchone()
    if row is None:
        raise RuntimeError(
            f"The privacy ledger {session.path!r} is not the one that was entered: another file has its name now. "
            "Nothing was released."
        )
    return row[0] is None


def recorded_releases(connection: sqlite3.Connection, records: str | None = None) -> Counter[PrivacyGuarantee]:
    """Return the releases of one record set, or of all, with how often each was made."""
    query = "SELECT guarantee, COUNT(*) FROM entries WHERE records = ? GROUP BY guarantee"
    if records is None:
        query = "SELECT guarantee, COUNT(*) FROM entries GROUP BY guarantee"
    found = connection.execute(query, () if records is None else (records,))
    return Counter({read_guarantee(text): n for text, n in found})


@lru_cache(maxsize=1024)
def read_guarantee(text: str) -> PrivacyGuarantee:
    """Read a guarantee from its JSON."""
    return PrivacyGuarantee.from_dict(json.loads(text))


@contextmanager
def _named_errors(path: str) -> Iterator[None]:
    """Say which file SQLite complains about; whatever it is, the release does not take place."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise RuntimeError(
            f"The privacy ledger {path!r} could not be written ({error}); nothing was released."
        ) from error
    except sqlite3.DatabaseError as error:
        raise ValueError(_damaged_file(path, str(error))) from error


def _damaged_file(path: str, detail: str) -> str:
    return (
        f"path={path!r} is not a privacy ledger, or it is damaged ({detail}). Restore it from a copy: starting an "
        "empty one would forget what has been spent."
    )
