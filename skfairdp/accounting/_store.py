"""The SQLite file behind a ledger.

One connection per transaction and nothing kept open: a file can then be shared by
threads, by forked and by spawned processes, and a process that dies leaves
nothing locked. A charge is one ``BEGIN IMMEDIATE`` transaction that reads what was
spent, checks every budget and writes the entry, so that two processes can never
both get the last of one budget.
"""

import json
import os
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from skfairdp.accounting._composition import fits
from skfairdp.accounting._guarantee import PrivacyGuarantee, events_of
from skfairdp.exceptions import BudgetExceededError

_APPLICATION_ID = 0x736B6670  # "skfp": tells a ledger from any other SQLite file
_VERSION = 1
_TIMEOUT = 120.0  # seconds to wait for other processes before a release is refused

_SCHEMA = """
CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE sessions (
    id TEXT PRIMARY KEY, opened REAL NOT NULL, closed REAL, process INTEGER NOT NULL);
CREATE TABLE entries (
    id INTEGER PRIMARY KEY AUTOINCREMENT, time REAL NOT NULL, session TEXT, process INTEGER NOT NULL,
    records TEXT NOT NULL, source TEXT NOT NULL, mechanism TEXT NOT NULL, epsilon REAL NOT NULL,
    delta REAL NOT NULL, guarantee TEXT NOT NULL);
CREATE INDEX entries_by_records ON entries (records);
"""


class LedgerGoneError(LookupError):
    """The file of a ledger cannot be reached from here."""


@dataclass(frozen=True)
class Address:
    """Where a ledger can be charged from any process that sees its file."""

    path: str
    session: str | None
    records: str
    host: str
    durable: bool
    budget: PrivacyGuarantee | None

    @property
    def key(self) -> tuple[str, str | None]:
        """What stays the same when the record set changes."""
        return self.path, self.session


# SQLite knows of locks per process; a child that is forked in the middle of a transaction would believe for ever
# that it holds one. So transactions of one process take turns, and a fork waits for its turn too.
_turn = threading.RLock()


def _renew_turn() -> None:
    global _turn
    _turn = threading.RLock()


if hasattr(os, "register_at_fork"):  # absent on Windows, which does not fork
    os.register_at_fork(
        before=lambda: _turn.acquire(), after_in_parent=lambda: _turn.release(), after_in_child=_renew_turn
    )


@contextmanager
def transaction(path: str, *, durable: bool, write: bool = True) -> Iterator[sqlite3.Connection]:
    """Hold a lock on a ledger file; commit at the end, roll back on any exception."""
    with _turn, closing(_connect(path, durable=durable)) as connection:
        with _named_errors(path):
            connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
        try:
            with _named_errors(path):
                yield connection
        except BaseException:
            connection.rollback()
            raise
        with _named_errors(path):
            connection.commit()


def prepare(path: str, *, durable: bool) -> None:
    """Make the ledger file if it is not there, and check it if it is."""
    if not os.path.exists(path):
        if not Path(path).parent.is_dir():
            raise FileNotFoundError(f"path must lie in a folder that exists; got {path!r}.")
        # The file is private from its first byte on; two processes may race for it, and both win.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    with transaction(path, durable=durable) as connection:
        if os.path.getsize(path) > 0:
            check(connection, path)
            return
        for statement in _SCHEMA.split(";"):
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {_VERSION}")


def check(connection: sqlite3.Connection, path: str) -> None:
    """Refuse a file that is not a ledger, or not a whole one."""
    found = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if found != _APPLICATION_ID:
        raise ValueError(f"path={path!r} is an SQLite file, but not a privacy ledger.")
    if version != _VERSION:
        raise ValueError(f"path={path!r} is a privacy ledger of version {version}; version {_VERSION} is known.")
    damage = connection.execute("PRAGMA quick_check").fetchone()[0]
    if damage != "ok":
        raise ValueError(_damaged(path, damage))


def charge(
    addresses: Iterable[Address], guarantee: PrivacyGuarantee, source: str, *, required: Collection[str] = ()
) -> list[Address]:
    """Charge one release to every address, or raise and charge none.

    Returns the addresses whose session was closed meanwhile, which were not charged. A file whose path is
    ``required`` must be there.
    """
    by_path: dict[str, list[Address]] = {}
    for address in addresses:
        by_path.setdefault(address.path, []).append(address)
    gone: list[Address] = []
    with ExitStack() as stack:
        # Always in the same order, so that two releases never wait for each other. All checks come before the
        # first commit; should a later commit fail, an earlier ledger has recorded a release that was not made.
        for path in sorted(by_path):
            try:
                connection = stack.enter_context(transaction(path, durable=by_path[path][0].durable))
            except LedgerGoneError as error:
                if path in required:
                    raise RuntimeError(f"{error} Nothing was released.") from None
                gone += by_path[path]
                continue
            gone += _charge_one(connection, by_path[path], guarantee, source)
    return gone


def _charge_one(
    connection: sqlite3.Connection, addresses: list[Address], guarantee: PrivacyGuarantee, source: str
) -> list[Address]:
    closed = [a for a in addresses if a.session is not None and not _is_open(connection, a.session)]
    charged = [a for a in addresses if a not in closed]
    for records in dict.fromkeys(a.records for a in charged):
        spent = spending(connection, records)
        spent[guarantee] += 1
        for budget in {a.budget: None for a in charged if a.records == records}:
            if budget is not None:
                _check_budget(spent, guarantee, budget, records)
        text = json.dumps(guarantee.to_dict(), sort_keys=True)
        connection.execute(
            "INSERT INTO entries (time, session, process, records, source, mechanism, epsilon, delta, guarantee)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (time.time(), next(a.session for a in charged if a.records == records), os.getpid(), records, source)
            + (guarantee.mechanism, guarantee.epsilon, guarantee.delta, text),
        )
    return closed


def _check_budget(
    spent: Counter[PrivacyGuarantee], guarantee: PrivacyGuarantee, budget: PrivacyGuarantee, records: str
) -> None:
    price = f"epsilon={guarantee.epsilon:.6g}" + ("" if guarantee.pure else f", delta={guarantee.delta:.3g}")
    allowed = f"epsilon={budget.epsilon:.6g}" + ("" if budget.pure else f", delta={budget.delta:.3g}")
    where = f"records {records!r}: the budget of {allowed}"
    if budget.unit == "record" and any(g.unit == "word" for g in spent):
        raise BudgetExceededError(
            f"A release by {guarantee.mechanism!r} was refused for {where} counts records, and a guarantee for single "
            "words does not bound what a whole record loses. Charge the record-level guarantee, or give a budget whose "
            "unit is 'word'."
        )
    if not fits(events_of(spent), budget.epsilon, budget.delta):
        hint = ""
        if budget.pure and not guarantee.pure:
            hint = " A budget without a delta cannot pay for a release that has one: give delta= to the ledger."
        raise BudgetExceededError(
            f"A release by {guarantee.mechanism!r} ({price}) was refused for {where} would be exceeded after "
            f"{spent.total() - 1} earlier release(s). Nothing was released and nothing was charged.{hint}"
        )


def _is_open(connection: sqlite3.Connection, session: str) -> bool:
    query = "SELECT 1 FROM sessions WHERE id = ? AND closed IS NULL"
    return connection.execute(query, (session,)).fetchone() is not None


def stored_budget(connection: sqlite3.Connection) -> PrivacyGuarantee | None:
    """Return the budget that was last given for this file."""
    row = connection.execute("SELECT value FROM settings WHERE name = 'budget'").fetchone()
    return None if row is None else read_guarantee(row[0])


def store_budget(connection: sqlite3.Connection, budget: PrivacyGuarantee) -> None:
    """Keep a budget with the file, so that whoever opens it next is bound by it too."""
    text = json.dumps(budget.to_dict(), sort_keys=True)
    connection.execute("INSERT OR REPLACE INTO settings VALUES ('budget', ?)", (text,))


def open_session(connection: sqlite3.Connection, session: str) -> None:
    """Let releases be charged to a session from now on."""
    connection.execute("INSERT INTO sessions VALUES (?, ?, NULL, ?)", (session, time.time(), os.getpid()))


def close_session(connection: sqlite3.Connection, session: str) -> None:
    """Charge nothing to a session any more."""
    connection.execute("UPDATE sessions SET closed = ? WHERE id = ?", (time.time(), session))


def spending(connection: sqlite3.Connection, records: str) -> Counter[PrivacyGuarantee]:
    """Return the releases of one record set, with how often each was made."""
    query = "SELECT guarantee, COUNT(*) FROM entries WHERE records = ? GROUP BY guarantee"
    return Counter({read_guarantee(text): n for text, n in connection.execute(query, (records,))})


def read_guarantee(text: str) -> PrivacyGuarantee:
    """Read a guarantee from its JSON."""
    return PrivacyGuarantee.from_dict(json.loads(text))


def _connect(path: str, *, durable: bool) -> sqlite3.Connection:
    if not os.path.exists(path):
        raise LedgerGoneError(f"The privacy ledger {path!r} is gone.")
    with _named_errors(path):
        # mode=rw never makes a file: a ledger that is gone must not come back empty.
        uri = f"file:{quote(path)}?mode=rw"
        connection = sqlite3.connect(uri, uri=True, timeout=_TIMEOUT, isolation_level=None)
        try:
            # EXTRA also syncs the folder, without which a power cut can bring a journal back and undo an entry.
            connection.execute(f"PRAGMA synchronous = {'EXTRA' if durable else 'OFF'}")
        except sqlite3.Error:
            connection.close()
            raise
    return connection


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
        raise ValueError(_damaged(path, str(error))) from error


def _damaged(path: str, detail: str) -> str:
    return (
        f"path={path!r} is not a privacy ledger, or it is damaged ({detail}). Restore it from a copy: starting an "
        "empty one would forget what has been spent."
    )
