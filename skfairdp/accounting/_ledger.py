"""The account of everything that was released."""

import html
import math
import os
import shutil
import socket
import sqlite3
import tempfile
import threading
import uuid
import weakref
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from types import TracebackType
from typing import Any

import pandas as pd

from skfairdp._validation import check_delta, check_epsilon
from skfairdp.accounting import _registry, _store
from skfairdp.accounting._guarantee import PrivacyGuarantee, compose_counts, compose_parallel

_DEFAULT_RECORDS = "default"


class PrivacyLedger:
    """Collects what releases cost, and refuses those that a budget does not pay for.

    While the ledger is entered, every release of an estimator of this package in this process is charged
    to it: in threads, in clones, in pipelines and searches, and in the worker processes that joblib, Dask or
    :mod:`multiprocessing` send estimators to. A release is on record before its values exist.

    Parameters
    ----------
    budget : float, PrivacyGuarantee or None
        The most that any record may lose: an epsilon (with ``delta``), or a guarantee to stay within; a billionth of
        it more is let pass, so that three releases of 0.1 fit into 0.3. ``None``
        only counts, or keeps the budget that the file at ``path`` was opened with before.
    delta : float, optional
        The delta at which totals and the budget are stated. Without it a float budget is a pure
        epsilon, which Gaussian releases always exceed.
    path : str or path-like, optional
        An SQLite file to keep the account in. It may be shared by processes, survives a crash, and adds to what
        it holds already. ``None`` uses a private temporary file that goes with the ledger.

    Notes
    -----
    **Privacy.** Two releases are taken to touch the same records unless they are charged to different record
    sets (:meth:`records`), which the caller declares to be disjoint. Nothing is inferred from the rows themselves:
    the same person may come back with other values, and a comparison of contents would take
    them for somebody else. In a search with k folds, every fit and every score that privatises rows is a release, so
    that each record pays for k - 1 fits and a score at least, and is charged for k of each.

    A guarantee for single words is never counted as one for records.

    Examples
    --------
    >>> from skfairdp.accounting import PrivacyGuarantee, PrivacyLedger
    >>> with PrivacyLedger(budget=3.0) as ledger:
    ...     for _ in range(3):
    ...         ledger.charge(PrivacyGuarantee(1.0, mechanism="laplace"))
    >>> ledger.total().epsilon, ledger.remaining
    (3.0, 0.0)
    >>> ledger.charge(PrivacyGuarantee(0.5, mechanism="laplace"))
    Traceback (most recent call last):
        ...
    skfairdp.exceptions.BudgetExceededError: A release by 'laplace' (epsilon=0.5) was refused ...
    """

    def __init__(
        self,
        budget: "float | PrivacyGuarantee | None" = None,
        delta: float | None = None,
        *,
        path: str | os.PathLike[str] | None = None,
    ):
        self._budget = _as_budget(budget, delta)
        self._delta = None if delta is None else check_delta(delta, allow_zero=True)
        self._durable = path is not None
        self._session: str | None = None
        self._owner = b""  # the process that entered it
        self._stack: list[str] = []  # record sets, the innermost last
        self._stack_thread: int | None = None
        self._lock = threading.Lock()
        self._host = socket.gethostname()
        if path is None:
            folder = tempfile.mkdtemp(prefix="skfairdp-ledger-")  # readable by this user alone
            self._path = os.path.join(os.path.realpath(folder), "ledger.sqlite")
            self._finalize = weakref.finalize(self, _remove, folder, _registry.process_token())
        else:
            self._path = os.path.realpath(os.fspath(path))
        _store.prepare(self._path, durable=self._durable)
        with _store.transaction(self._path, durable=self._durable) as connection:
            if self._budget is None:
                self._budget = _store.stored_budget(connection)
            else:
                _store.store_budget(connection, self._budget)

    @property
    def budget(self) -> PrivacyGuarantee | None:
        """The budget that binds, or ``None``."""
        return self._budget

    @property
    def path(self) -> str:
        """The SQLite file."""
        return self._path

    @property
    def active(self) -> bool:
        """Whether releases of this process are being charged."""
        return self._session is not None

    def __enter__(self) -> "PrivacyLedger":
        with self._lock:
            if self._session is not None:
                raise RuntimeError("This PrivacyLedger is active already; leave it before it is entered again.")
            session = uuid.uuid4().hex
            with _store.transaction(self._path, durable=self._durable) as connection:
                _store.open_session(connection, session)
            self._session, self._owner = session, _registry.process_token()
            _registry.enter((self._path, session), self._address)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        session = self._session
        if session is None or self._owner != _registry.process_token():
            return  # a forked child walks out of its parent's block: the parent's session goes on
        _registry.leave((self._path, session))
        self._session = None
        with _store.transaction(self._path, durable=self._durable) as connection:
            _store.close_session(connection, session)

    @contextmanager
    def records(self, name: str) -> Iterator["PrivacyLedger"]:
        """Charge the releases within this block to a record set of its own.

        Parameters
        ----------
        name : str
            The set. No record may be in two sets: the ledger takes the caller's word for it, and
            charges each set apart.

        Examples
        --------
        >>> from skfairdp.accounting import PrivacyGuarantee, PrivacyLedger
        >>> with PrivacyLedger() as ledger:
        ...     for city in ("Lille", "Lyon"):
        ...         with ledger.records(city):
        ...             ledger.charge(PrivacyGuarantee(1.0, mechanism="laplace"))
        >>> ledger.total().epsilon
        1.0
        """
        name = _check_records(name)
        with self._lock:
            if self._stack and self._stack_thread != threading.get_ident():
                raise RuntimeError(
                    f"records({name!r}) was entered while another thread is within records({self._stack[-1]!r}). The "
                    "set holds for the whole process; give charge(..., records=...) the set, or take turns."
                )
            self._stack.append(name)
            self._stack_thread = threading.get_ident()
        self._tell_process()
        try:
            yield self
        finally:
            with self._lock:
                self._stack.pop()
            self._tell_process()

    def _tell_process(self) -> None:
        """Pass the record set on in a process that knows the ledger from hearsay."""
        if self._session is not None and self._owner != _registry.process_token():
            _registry.inherit((self._address(),))

    def charge(self, guarantee: PrivacyGuarantee, *, records: str | None = None) -> None:
        """Record one release by hand, whether the ledger is entered or not.

        Parameters
        ----------
        guarantee : PrivacyGuarantee
            What the release costs each record of the set.
        records : str, optional
            The record set; by default that of the enclosing :meth:`records`.

        Raises
        ------
        BudgetExceededError
            If the budget does not pay for it; nothing is recorded then.
        """
        if not isinstance(guarantee, PrivacyGuarantee):
            raise TypeError(f"guarantee must be a PrivacyGuarantee; got {guarantee!r}.")
        address = replace(self._address(None if records is None else _check_records(records)), session=None)
        _store.charge([address], guarantee, "charge", required=[self._path])

    def total(self, records: str | None = None) -> PrivacyGuarantee:
        """Compute what any record has lost so far at most.

        Parameters
        ----------
        records : str, optional
            Only this record set; by default the worst of all.

        Returns
        -------
        PrivacyGuarantee
            Epsilon 0 when nothing was released.
        """
        totals = self.totals()
        if records is not None:
            return totals.get(_check_records(records), _nothing())
        return compose_parallel(totals.values()) if totals else _nothing()

    def totals(self) -> dict[str, PrivacyGuarantee]:
        """Compute what the records of each set have lost."""
        with self._reading() as connection:
            names = [row[0] for row in connection.execute("SELECT DISTINCT records FROM entries ORDER BY records")]
            spent: dict[str, Counter[PrivacyGuarantee]] = {name: _store.spending(connection, name) for name in names}
        delta = self._delta if self._budget is None else self._budget.delta
        return {name: _total(counts, delta) for name, counts in spent.items()}

    @property
    def remaining(self) -> float:
        """The epsilon that any record set can certainly still spend; ``inf`` without a budget."""
        if self._budget is None or math.isinf(self._budget.epsilon):
            return math.inf
        return max(self._budget.epsilon - self.total().epsilon, 0.0)

    @property
    def entries(self) -> pd.DataFrame:
        """All releases, the oldest first."""
        columns = ["time", "records", "source", "mechanism", "epsilon", "delta", "unit", "releases", "process"]
        query = "SELECT time, records, source, guarantee, process FROM entries ORDER BY id"
        with self._reading() as connection:
            found = connection.execute(query).fetchall()
        rows = []
        for time, records, source, text, process in found:
            g = _store.read_guarantee(text)
            rows.append((time, records, source, g.mechanism, g.epsilon, g.delta, g.unit, g.releases, process))
        frame = pd.DataFrame(rows, columns=columns)
        frame["time"] = pd.to_datetime(frame["time"].astype(float), unit="s", utc=True)
        return frame

    def __len__(self) -> int:
        with self._reading() as connection:
            return connection.execute("SELECT COUNT(*) FROM entries").fetchone()[0]

    def __bool__(self) -> bool:
        return True  # an empty account is still an account

    def __repr__(self) -> str:
        total, budget = self.total(), self.budget
        limit = "none" if budget is None else f"{budget.epsilon:g}" + ("" if budget.pure else f" at {budget.delta:g}")
        spent = f"{total.epsilon:.6g}" + ("" if total.pure else f" at {total.delta:g}")
        state = "active" if self.active else "not active"
        return f"<PrivacyLedger, {state}: {len(self)} release(s), epsilon spent {spent}, budget {limit}>"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th scope='row'>{html.escape(name)}</th><td>{total.releases}</td><td>{total.epsilon:.6g}</td>"
            f"<td>{total.delta:.3g}</td><td>{html.escape(total.mechanism)}</td></tr>"
            for name, total in self.totals().items()
        )
        head = "".join(f"<th scope='col'>{t}</th>" for t in ("records", "releases", "epsilon", "delta", "mechanism"))
        caption = html.escape(repr(self).strip("<>"))
        return f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"

    def __getstate__(self) -> dict[str, Any]:
        kept = ("_budget", "_delta", "_durable", "_path", "_host", "_session")
        return {**{name: self.__dict__[name] for name in kept}, "_stack": self._stack[-1:]}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Become another handle on the same account; only the original is entered and left."""
        self.__dict__.update(state)
        self._owner = b""
        self._lock, self._stack_thread = threading.Lock(), threading.get_ident()

    def _address(self, records: str | None = None) -> _store.Address:
        current = records or (self._stack[-1] if self._stack else _DEFAULT_RECORDS)
        return _store.Address(self._path, self._session, current, self._host, self._durable, self._budget)

    def _reading(self) -> AbstractContextManager[sqlite3.Connection]:
        return _store.transaction(self._path, durable=self._durable, write=False)


def _as_budget(budget: Any, delta: float | None) -> PrivacyGuarantee | None:
    if delta is not None:
        delta = check_delta(delta, allow_zero=True)
    if budget is None:
        return None
    if isinstance(budget, PrivacyGuarantee):
        if delta not in (None, budget.delta):
            raise ValueError(f"delta={delta!r} contradicts the budget's own delta={budget.delta!r}; give one of them.")
        return budget
    epsilon = check_epsilon(budget, name="budget", allow_zero=True)
    return PrivacyGuarantee(epsilon, delta or 0.0, mechanism="budget")


def _check_records(name: Any) -> str:
    if not isinstance(name, str) or not name:
        raise TypeError(f"records must be a name, a str that is not empty; got {name!r}.")
    return name


def _total(counts: Counter[PrivacyGuarantee], delta: float | None) -> PrivacyGuarantee:
    if delta == 0 or delta is None:
        # Where nobody asked for a delta, the releases' own say the most.
        return compose_counts(counts)
    return compose_counts(counts, delta=delta)


def _nothing() -> PrivacyGuarantee:
    return PrivacyGuarantee(0.0, mechanism="nothing")


def _remove(folder: str, owner: bytes) -> None:
    if owner == _registry.process_token():  # a forked child must not take the file from its parent
        shutil.rmtree(folder, ignore_errors=True)
