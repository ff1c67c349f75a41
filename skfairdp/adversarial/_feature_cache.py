"""Features of documents that were computed before, in memory or in a file, found by a hash of the document."""

import hashlib
import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import closing
from os import PathLike
from pathlib import Path

import numpy as np

# Bytes of features that the process keeps: those of about 90,000 documents for a model of 768 outputs.
_MOST_BYTES = 1 << 28
# Values in one question to SQLite, which has a limit.
_KEYS_AT_ONCE = 500
# Seconds that a process waits for another one that writes.
_PATIENCE = 60.0

_kept: OrderedDict[bytes, np.ndarray] = OrderedDict()
_lock = threading.Lock()
_bytes_kept = 0


def cached_features(
    documents: Sequence[str],
    fingerprint: bytes,
    compute: Callable[[list[str]], np.ndarray],
    where: str | PathLike | None,
) -> np.ndarray:
    """Return the features of documents; only new ones are computed, each once.

    Parameters
    ----------
    documents : sequence of str
        At least one.
    fingerprint : bytes
        Of all else that features depend on.
    compute : callable
        Documents to features, of shape (n, width).
    where : "memory", path or None
        Kept by this process, in a SQLite file that processes may share, or not at all.

    Returns
    -------
    ndarray of shape (n_documents, width), float32
    """
    if where is None:
        return compute(list(documents))
    keys = [hashlib.sha256(fingerprint + document.encode("utf-8", "surrogatepass")).digest() for document in documents]
    read, write = (_read_memory, _write_memory) if where == "memory" else (_read_file, _write_file)
    found = read(set(keys), where)
    missing = {key: document for key, document in zip(keys, documents) if key not in found}
    if missing:
        new = dict(zip(missing, compute(list(missing.values())).astype(np.float32, copy=False)))
        write(new, where)
        found |= new
    return np.stack([found[key] for key in keys])


def forget_features() -> None:
    """Drop the features of documents that encoders keep in the memory of this process.

    Examples
    --------
    >>> from skfairdp.adversarial import forget_features
    >>> forget_features()
    """
    global _bytes_kept
    with _lock:
        _kept.clear()
        _bytes_kept = 0


def _read_memory(keys: set[bytes], where: object) -> dict[bytes, np.ndarray]:
    with _lock:
        found = {key: _kept[key] for key in keys if key in _kept}
        for key in found:
            _kept.move_to_end(key)
    return found


def _write_memory(new: dict[bytes, np.ndarray], where: object) -> None:
    """Keep rows; those that were not asked for longest make room."""
    global _bytes_kept
    with _lock:
        for key, row in new.items():
            if key not in _kept:
                _kept[key] = row.copy()
                _bytes_kept += row.nbytes
        while _bytes_kept > _MOST_BYTES:
            _, row = _kept.popitem(last=False)
            _bytes_kept -= row.nbytes


def _connect(where: str | PathLike) -> sqlite3.Connection:
    path = Path(where)
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        file = sqlite3.connect(path, timeout=_PATIENCE)
        file.execute("CREATE TABLE IF NOT EXISTS features (key BLOB PRIMARY KEY, row BLOB NOT NULL)")
    except sqlite3.DatabaseError as error:
        raise ValueError(
            f"cache={str(where)!r} must be the path of a file that this package has made, or of one that does not "
            f"exist yet; SQLite says: {error}"
        ) from None
    return file


def _read_file(keys: set[bytes], where: str | PathLike) -> dict[bytes, np.ndarray]:
    asked, found = list(keys), {}
    with closing(_connect(where)) as file:
        for start in range(0, len(asked), _KEYS_AT_ONCE):
            some = asked[start : start + _KEYS_AT_ONCE]
            marks = ",".join("?" * len(some))
            for key, row in file.execute(f"SELECT key, row FROM features WHERE key IN ({marks})", some):
                found[key] = np.frombuffer(row, dtype="<f4").astype(np.float32)
    return found


def _write_file(new: dict[bytes, np.ndarray], where: str | PathLike) -> None:
    with closing(_connect(where)) as file, file:
        rows = ((key, row.astype("<f4").tobytes()) for key, row in new.items())
        file.executemany("INSERT OR IGNORE INTO features VALUES (?, ?)", rows)
