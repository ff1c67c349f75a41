"""The account of everything that was released."""

import html
import math
import os
import shutil
import sqlite3
import tempfile
import uuid
import weakref
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from typing import Any

import pandas as pd

from skfairdp._process import process_token
from skfairdp._validation import check_delta, check_epsilon
from skfairdp.dp import _ledger_file, _open_ledgers
from skfairdp.dp._composition import repeated_seeds
from skfairdp.dp._guarantee import (
    REPEATED_NOISE,
    PrivacyGuarantee,
    compose_counts,
    compose_parallel,
    events_of,
)

_NOTHING = PrivacyGuarantee(0.0, mechanism="nothing")


class PrivacyLedger:
    """Collects what releases cost, and refuses those that a budget does not pay for.

    While the ledger is entered, every release of an estimator of this package is charged to it: in all threads of
    this process, in clones, pipelines and searches, and in worker processes of joblib (loky), :mod:`multiprocessing`
    and :mod:`concurrent.futures` to which a fitted or unfitted estimator is sent. A release is on record before its
    values exist. A process that builds its own estimators opens the ledger by its ``path``. Where a worker is sent an
    estimator and cannot reach the ledger, the release is an error.

    Parameters
    ----------
    budget : float, PrivacyGuarantee or None
        The most that any record may lose: an epsilon (with ``delta``), or a guarantee to stay within; a billionth of
        it more is let pass, so that three releases of 0.1 fit into 0.3. The account at ``path`` keeps it: it binds
        everybody who charges the file, and a later budget may only be smaller (see :meth:`raise_budget`). ``None``
        keeps what the account has, or only counts.
    delta : float, optional
        The delta at which totals and the budget are stated. Without it a float budget is a pure
        epsilon, which Gaussian releases always exceed.
    path : str or path-like, optional
        An SQLite file that holds the account. It may be shared by processes, survives a crash, and adds to what
        it holds already. ``None`` uses a private temporary file that goes with the ledger.
    create : bool, default=False
        Make a new account at ``path``, where no file may be. Otherwise there must be one: a mistyped
        or a lost file is not replaced by an empty account that has forgotten what was spent.

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
        create: bool = False,
    ):
        self._delta = None if delta is None else check_delta(delta, allow_zero=True)
        wanted = _as_budget(budget, delta)
        self._durable = path is not None
        self._sent_records: tuple[str, ...] = ()  # sets that were worked on where this handle was sent from
        self._session: _ledger_file.Session | None = None  # from the moment it is entered until it is left
        self._stack = ExitStack()  # what is undone when it is left
        if path is None:
            if create:
                raise ValueError("create=True makes a new account at a path; give path= as well.")
            folder = tempfile.mkdtemp(prefix="skfairdp-ledger-")  # readable by this user alone
            self._path = os.path.join(os.path.realpath(folder), "ledger.sqlite")
            self._finalize = weakref.finalize(self, _remove, folder, process_token())
        else:
            self._path = os.path.realpath(os.fspath(path))
        if path is None or create:
            _ledger_file.create_ledger_file(self._path, durable=self._durable)
        else:
            _ledger_file.check_ledger_file(self._path)
        if wanted is not None:
            with self._transaction() as connection:
                stored = _ledger_file.stored_budget(connection)
                if stored is not None and not _budget_within_limit(wanted, stored):
                    raise ValueError(
                        f"budget: {_ledger_file.price_in_words(wanted)} would raise the budget of {self._path!r}, "
                        f"which is {_ledger_file.price_in_words(stored)}. Open it without a budget, and call "
                        "raise_budget if that is meant."
                    )
                if stored is None or not _budget_within_limit(stored, wanted):
                    _ledger_file.store_budget(connection, wanted)

    @property
    def budget(self) -> PrivacyGuarantee | None:
        """The budget that binds, or ``None``."""
        with self._transaction(write=False) as connection:
            return _ledger_file.stored_budget(connection)

    def raise_budget(self, budget: "float | PrivacyGuarantee", delta: float | None = None) -> None:
        """Replace the budget on purpose, also by a larger one.

        A larger budget given when the account is opened is refused, so that no script spends more than was meant by
        whoever set the limit. The file keeps all budgets, with the times at which they were set.

        Parameters
        ----------
        budget : float or PrivacyGuarantee
            The new limit; ``math.inf`` for none.
        delta : float, optional
            As when the ledger is made.

        Examples
        --------
        >>> from skfairdp.accounting import PrivacyLedger
        >>> ledger = PrivacyLedger(budget=1.0)
        >>> ledger.raise_budget(2.0)
        >>> ledger.budget.epsilon
        2.0
        """
        wanted = _as_budget(budget, delta)
        if wanted is None:
            raise TypeError("budget must be a number or a PrivacyGuarantee; got None. math.inf is no limit.")
        with self._transaction() as connection:
            _ledger_file.store_budget(connection, wanted)

    @property
    def path(self) -> str:
        """The SQLite file."""
        return self._path

    @property
    def active(self) -> bool:
        """Whether releases are being charged."""
        if self._session is None:
            return False
        with self._transaction(write=False) as connection:
            return _ledger_file.is_open(connection, self._session)

    def __enter__(self) -> "PrivacyLedger":
        if self.active:
            raise RuntimeError("This PrivacyLedger is active already; leave it before it is entered again.")
        session = _ledger_file.Session(self._path, uuid.uuid4().hex, self._durable, process_token().hex())
        # Code that has declared a set of this account, by another handle on it, goes on to work on that set.
        records = _open_ledgers.known_records(self._path) or _ledger_file.DEFAULT_RECORDS
        with ExitStack() as stack:
            with self._transaction() as connection:
                _ledger_file.open_session(connection, session)
            stack.callback(self._close, session)
            _open_ledgers.add_ledger(session, self)
            stack.enter_context(_open_ledgers.working_on(self._path, records))
            self._session = session
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        # A forked child may leave the block as well; the session is that of its parent and goes on.
        if self._session is not None and self._session.owner == process_token().hex():
            self._session = None
            self._stack.close()

    def _close(self, session: _ledger_file.Session) -> None:
        _open_ledgers.remove_ledger(session)
        with self._transaction() as connection:
            _ledger_file.close_session(connection, session)

    @contextmanager
    def records(self, name: str) -> Iterator["PrivacyLedger"]:
        """Charge the releases within this block to a record set of its own.

        Parameters
        ----------
        name : str
            The set. No record may be in two sets: the ledger takes the caller's word for it, and
            charges each set apart.

        Notes
        -----
        The set is that of the code within the block and of the asyncio tasks that it starts; another thread may work
        on another set meanwhile. Worker processes charge the sets that were worked on when the estimator was sent
        to them. A thread that has declared no set charges all open sets and the default set;
        ``contextvars.copy_context().run`` passes the set on to a thread. Join the threads of a block before it ends,
        and do not ``yield`` inside it: what runs later, or meanwhile, is charged to the wrong set.

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
        with _open_ledgers.working_on(self._path, _check_records(name)):
            yield self

    def charge(self, guarantee: PrivacyGuarantee, *, records: str | None = None) -> None:
        """Record one release by hand, whether the ledger is entered or not.

        Parameters
        ----------
        guarantee : PrivacyGuarantee
            What the release costs each record of the set.
        records : str, optional
            The record set; by default that of the enclosing :meth:`records`, or every open one where a thread or a
            worker process cannot know it.

        Raises
        ------
        BudgetExceededError
            If the budget does not pay for it; nothing is recorded then.
        """
        if not isinstance(guarantee, PrivacyGuarantee):
            raise TypeError(f"guarantee must be a PrivacyGuarantee; got {guarantee!r}.")
        if records is not None:
            sets = [_check_records(records)]
        else:
            sets = list(self._sent_records) or _open_ledgers.records_of_running_code(self._path)
        with self._transaction() as connection:
            _ledger_file.record_release(connection, sets, guarantee, "charge")

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
            return totals.get(_check_records(records), _NOTHING)
        return compose_parallel(totals.values()) if totals else _NOTHING

    def totals(self) -> dict[str, PrivacyGuarantee]:
        """Compute what the records of each set have lost."""
        with self._transaction(write=False) as connection:
            budget = _ledger_file.stored_budget(connection)
            names = [row[0] for row in connection.execute("SELECT DISTINCT records FROM entries ORDER BY records")]
            spent = {name: _ledger_file.recorded_releases(connection, name) for name in names}
        delta = self._delta if budget is None else budget.delta
        repeated = repeated_seeds(events_of(sum(spent.values(), Counter())))
        return {name: _total(counts, delta, repeated) for name, counts in spent.items()}

    @property
    def remaining(self) -> float:
        """The epsilon that any record set can certainly still spend; ``inf`` without a budget."""
        budget = self.budget
        if budget is None or math.isinf(budget.epsilon):
            return math.inf
        return max(budget.epsilon - self.total().epsilon, 0.0)

    @property
    def entries(self) -> pd.DataFrame:
        """All releases, the oldest first."""
        columns = ["time", "records", "source", "mechanism", "epsilon", "delta", "unit", "releases", "process"]
        query = "SELECT time, records, source, guarantee, process FROM entries ORDER BY id"
        with self._transaction(write=False) as connection:
            found = connection.execute(query).fetchall()
        rows = []
        for time, records, source, text, process in found:
            g = _ledger_file.read_guarantee(text)
            rows.append((time, records, source, g.mechanism, g.epsilon, g.delta, g.unit, g.releases, process))
        frame = pd.DataFrame(rows, columns=columns)
        frame["time"] = pd.to_datetime(frame["time"].astype(float), unit="s", utc=True)
        return frame

    def __len__(self) -> int:
        with self._transaction(write=False) as connection:
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
        state = {name: self.__dict__[name] for name in ("_delta", "_durable", "_path")}
        return {**state, "_sent": (process_token(), _open_ledgers.records_being_worked_on(self._path))}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Become another handle on the same account; leaving the ``with`` block is up to the original."""
        sender, records = state.pop("_sent")
        sent = () if sender == process_token() else records
        self.__dict__.update(state, _session=None, _stack=ExitStack(), _sent_records=sent)

    def _transaction(self, *, write: bool = True) -> AbstractContextManager[sqlite3.Connection]:
        return _ledger_file.ledger_transaction(self._path, durable=self._durable, write=write)


def _as_budget(budget: Any, delta: float | None) -> PrivacyGuarantee | None:
    if budget is None:
        return None
    if isinstance(budget, PrivacyGuarantee):
        if delta not in (None, budget.delta):
            raise ValueError(f"delta={delta!r} contradicts the budget's own delta={budget.delta!r}; give one of them.")
        return budget
    epsilon = check_epsilon(budget, name="budget", allow_zero=True)
    return PrivacyGuarantee(epsilon, 0.0 if delta is None else delta, mechanism="budget")


def _budget_within_limit(budget: PrivacyGuarantee, limit: PrivacyGuarantee) -> bool:
    """Tell whether a budget lets nothing pass that the limit would refuse."""
    lenient = budget.unit == "word" and limit.unit == "record"
    return budget.epsilon <= limit.epsilon and budget.delta <= limit.delta and not lenient


def _check_records(name: Any) -> str:
    if not isinstance(name, str) or not name:
        raise TypeError(f"records must be a name, a str that is not empty; got {name!r}.")
    return name


def _total(counts: Counter[PrivacyGuarantee], delta: float | None, repeated: set[str]) -> PrivacyGuarantee:
    # At a delta of 0, which is also that of a budget without one, Gaussian releases would cost infinity. The total is
    # then told at the deltas of the releases themselves.
    total = compose_counts(counts, delta=None if delta == 0 else delta)
    shared = any(event.seed is not None and event.seed.seed in repeated for event in events_of(counts))
    if not shared:
        return total
    # Another set drew the same noise, so that the difference between its records and these was released.
    scope = tuple(dict.fromkeys((REPEATED_NOISE, *total.does_not_cover)))
    return replace(total, epsilon=math.inf, delta=0.0, does_not_cover=scope)


def _remove(folder: str, owner: bytes) -> None:
    if owner == process_token():  # a forked child must not take the file from its parent
        shutil.rmtree(folder, ignore_errors=True)
