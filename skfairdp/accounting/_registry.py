"""Which ledgers listen in this process.

A ledger that is entered listens to its whole process, threads of a pool included. An
estimator that is pickled meanwhile carries the addresses of these ledgers with it; where
it wakes up in another process, that process charges them too, until their session is
closed. So workers that were started long before the ledger was entered are
heard, as are clones that they make.
"""

import os
import socket
import threading
import warnings
from collections.abc import Callable

from skfairdp.accounting import _store
from skfairdp.accounting._guarantee import PrivacyGuarantee
from skfairdp.accounting._store import Address
from skfairdp.exceptions import PrivacyLeakWarning

Key = tuple[str, str | None]

_lock = threading.RLock()
_process_token = os.urandom(16)
_active: dict[Key, Callable[[], Address]] = {}  # ledgers entered here; asked anew, as their record set changes
_inherited: dict[Key, Address] = {}  # ledgers of other processes, as last heard of
_warned: set[Key] = set()


def _in_forked_child() -> None:
    """A child keeps on charging its parent's ledgers, but does not own them."""
    global _lock, _process_token
    _lock = threading.RLock()  # another thread of the parent may have held it, and is not here to let go
    _process_token = os.urandom(16)
    _inherited.update({key: address() for key, address in _active.items()})
    _active.clear()


if hasattr(os, "register_at_fork"):  # absent on Windows, which does not fork
    os.register_at_fork(after_in_child=_in_forked_child)


def process_token() -> bytes:
    """Return a value that no other process has, forked children included."""
    return _process_token


def enter(key: Key, address: Callable[[], Address]) -> None:
    """Let a ledger listen to this process."""
    with _lock:
        _active[key] = address


def leave(key: Key) -> None:
    """Let a ledger listen no more."""
    with _lock:
        _active.pop(key, None)


def owned(address: Address) -> bool:
    """Tell whether a ledger was entered in this process."""
    return address.key in _active


def inherit(addresses: tuple[Address, ...]) -> None:
    """Hear of the ledgers of another process."""
    with _lock:
        here = socket.gethostname()
        for key in [k for k, a in _inherited.items() if a.host == here and not os.path.exists(a.path)]:
            del _inherited[key]  # a temporary ledger that has come to its end
        _inherited.update({a.key: a for a in addresses})


def addresses(own: tuple[Address, ...] = ()) -> dict[Key, Address]:
    """Return who is charged for a release of an object that has heard of ``own`` ledgers itself."""
    with _lock:
        heard = {**_inherited, **{a.key: a for a in own}}
        return {**heard, **{key: address() for key, address in _active.items()}}


def charge(guarantee: PrivacyGuarantee, *, own: tuple[Address, ...] = (), source: str = "") -> list[Key]:
    """Record a release with every ledger that listens, or raise and record it with none.

    Returns the ledgers that listen no more.
    """
    if not isinstance(guarantee, PrivacyGuarantee):
        raise TypeError(f"guarantee must be a PrivacyGuarantee; got {guarantee!r}.")
    listening = addresses(own)
    if not listening:
        return []
    with _lock:
        required = {path for path, _ in _active}
    gone = _store.charge(listening.values(), guarantee, source, required=required)
    for address in gone:
        with _lock:
            _inherited.pop(address.key, None)
        _warn_if_elsewhere(address)
    return [address.key for address in gone]


def _warn_if_elsewhere(address: Address) -> None:
    """Tell a closed ledger, which needs no word, from one on another machine that may still be counting."""
    if address.host == socket.gethostname() or os.path.exists(address.path) or address.key in _warned:
        return
    _warned.add(address.key)
    warnings.warn(
        f"A release on {socket.gethostname()!r} was not charged: it comes from an estimator that was sent from "
        f"{address.host!r} while the privacy ledger {address.path!r} was active there, and that file cannot be reached "
        "from here. Put the ledger on a file system that all workers see (path=...), or pickle the estimator after the "
        "ledger was left.",
        PrivacyLeakWarning,
        stacklevel=4,
    )


def charge_release(guarantee: PrivacyGuarantee, *, source: str) -> None:
    charge(guarantee, source=source)


def carried_ledgers() -> tuple:
    listening = tuple(addresses().values())
    return ((_process_token, listening),) if listening else ()


def receive_ledgers(carried: tuple) -> None:
    for token, listening in carried:
        if token != _process_token:
            inherit(tuple(a for a in listening if not owned(a)))
