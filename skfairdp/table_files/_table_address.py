"""Where a table is: a file, a part of a file, standard input or a database; and what its name and first bytes say."""

import os
import re
import shutil
import stat
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

#: Between a file and what is meant in it: a member of an archive, a sheet, a table or a query.
INSIDE = "::"
TEXT_KINDS = ("csv", "tsv", "jsonl")
_STANDARD_INPUT = "-"
_KINDS = {
    ".csv": "csv", ".txt": "csv", ".tsv": "tsv", ".tab": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl",
    ".parquet": "parquet", ".pq": "parquet", ".xlsx": "excel", ".xlsm": "excel", ".zip": "zip",
    ".sqlite": "sqlite", ".sqlite3": "sqlite", ".db": "sqlite", ".db3": "sqlite",
}  # fmt: skip
_KIND_NAMES = {"parquet": "Parquet", "excel": "an Excel workbook", "zip": "a zip archive", "sqlite": "SQLite"}
_NOT_READ = {
    **dict.fromkeys((".xls", ".ods", ".numbers"), "save it as .xlsx or .csv"),
    **dict.fromkeys((".bz2", ".xz", ".zst", ".7z", ".rar", ".tar", ".tgz"), "unpack it; .gz and .zip are read packed"),
    **dict.fromkeys((".dta", ".sav", ".sas7bdat", ".feather", ".rds", ".rdata"), "write it as .csv or .parquet"),
    ".json": "write it as JSON lines (.jsonl), one row a line",
}
_URL = re.compile(r"(?P<url>[a-z][a-z0-9+.-]*://(?:[^/\[]*\[[^\]]*\])?.*?)(?:::(?P<inside>.*))?", re.I | re.S)
_COPIED_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class TableFile:
    """A file on this machine that can be opened as often as one likes.

    Attributes
    ----------
    source : Path
        The file that the user named, or the copy of a stream.
    path : Path
        Where the table lies; for a stream or a member of an archive, a temporary file.
    shown : str
        How the user called it.
    kind : str
        ``"csv"``, ``"tsv"``, ``"jsonl"``, ``"parquet"``, ``"excel"`` or ``"sqlite"``.
    zipped : bool
        Whether text is compressed with gzip.
    inside : str or None
        What is meant in it.
    """

    source: Path
    path: Path
    shown: str
    kind: str
    zipped: bool
    inside: str | None


def kind_of(path: str | os.PathLike[str]) -> tuple[str, bool]:
    """Return what a file's name says it is, such as ``"csv"`` or ``"parquet"``, and whether gzip has compressed it."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    zipped = bool(suffixes) and suffixes[-1] == ".gz"
    last = (suffixes[-2] if len(suffixes) > 1 else "") if zipped else (suffixes[-1] if suffixes else "")
    if last in _NOT_READ:
        raise ValueError(f"{path}: {last} files are not read; {_NOT_READ[last]}.")
    kind = _KINDS.get(last, "csv")
    if zipped and kind not in TEXT_KINDS:
        raise ValueError(f"{path}: {_KIND_NAMES[kind]} is compressed inside; unpack the .gz first.")
    return kind, zipped


def check_exists(path: str | os.PathLike[str]) -> Path:
    """Return the path if there is something to read."""
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder, not a table.")
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}.")
    return path


def split_address(address: str | os.PathLike[str]) -> tuple[str, str | None]:
    """Divide ``people.zip::a.csv`` into file and part; a file whose own name has the sign is taken as it is."""
    text = os.fspath(address)
    if url := url_of(text):
        return url
    if INSIDE not in text or os.path.exists(text):
        return text, None
    outer, _, inside = text.partition(INSIDE)
    return outer, inside.strip()


def url_of(address: str | os.PathLike[str]) -> tuple[str, str | None] | None:
    """Return the address of a database and what is asked of it, or None for a file."""
    found = _URL.fullmatch(os.fspath(address))
    return None if found is None else (found["url"], found["inside"])


def shown_address(address: str | os.PathLike[str]) -> str:
    """Return an address as it may be printed and published: a password in it is left out.

    Parameters
    ----------
    address : str or path
        What was given to :func:`read_table`.

    Returns
    -------
    str

    Examples
    --------
    >>> from skfairdp.table_files import shown_address
    >>> shown_address("postgresql://me:secret@server/people::clients")
    'postgresql://me:***@server/people::clients'
    """
    return re.sub(r"^([a-zA-Z][a-zA-Z0-9+.-]*://[^:/@]*):.*@(?=[^@]*$)", r"\1:***@", os.fspath(address), flags=re.S)


@contextmanager
def local_file(outer: str, inside: str | None) -> Iterator[TableFile]:
    """Yield a table as a file that can be opened more than once; temporary copies are removed at the end."""
    with tempfile.TemporaryDirectory(prefix="skfairdp-") as folder:
        source = path = _seekable(outer, Path(folder) / "stream")
        shown = "standard input" if outer == _STANDARD_INPUT else str(outer)
        kind, zipped = kind_of(shown)
        kind, zipped = _what_first_bytes_say(path, shown, kind, zipped)
        if kind == "zip":
            path, member, inside = _unpack(path, shown, inside, Path(folder) / "member")
            shown = f"{shown}{INSIDE}{member}"
            kind, zipped = kind_of(member)
            kind, zipped = _what_first_bytes_say(path, shown, kind, zipped)
            if kind == "zip":
                raise ValueError(f"{shown} is an archive in an archive; unpack it first.")
        yield TableFile(source, path, shown, kind, zipped, inside)


def _seekable(outer: str, copy: Path) -> Path:
    """Return a path that can be read from the beginning again; a pipe can be read only once, so it is copied."""
    if outer == _STANDARD_INPUT:
        if sys.stdin is None or sys.stdin.isatty():
            raise ValueError("standard input is a terminal; send a table into it, as in: cat people.csv | ... -")
        _copy_stream(sys.stdin.buffer, copy)
        return copy
    path = check_exists(outer)
    if stat.S_ISREG(os.stat(path).st_mode):
        return path
    with open(path, "rb") as stream:
        _copy_stream(stream, copy)
    return copy


def _copy_stream(stream: BinaryIO, copy: Path) -> None:
    with open(copy, "wb") as file:
        shutil.copyfileobj(stream, file, _COPIED_AT_ONCE)


def _what_first_bytes_say(path: Path, shown: str, kind: str, zipped: bool) -> tuple[str, bool]:
    """Correct what the name says of a file: a pipe has no suffix, and other formats are often called .csv."""
    if kind not in TEXT_KINDS or zipped:
        return kind, zipped
    with open(path, "rb") as file:
        first = file.read(16)
    if first.startswith(b"\x1f\x8b"):
        return kind, True
    if first.startswith(b"PAR1"):
        return "parquet", False
    if first.startswith(b"SQLite format 3\0"):
        return "sqlite", False
    if first.startswith(b"PK\x03\x04"):
        with archive_errors(shown), zipfile.ZipFile(path) as archive:
            return ("excel" if "xl/workbook.xml" in archive.namelist() else "zip"), False
    if first.startswith(b"\xd0\xcf\x11\xe0"):
        raise ValueError(f"{shown} is a workbook of an old Excel (.xls); save it as .xlsx or .csv.")
    return kind, False


@contextmanager
def archive_errors(shown: str) -> Iterator[None]:
    """Turn what is wrong with a zip archive into one sentence."""
    try:
        yield
    except (zipfile.BadZipFile, EOFError) as error:
        raise ValueError(f"{shown} is not a whole zip archive: {error}.") from None
    except RuntimeError as error:  # zipfile needs a password, or does not know this compression
        raise ValueError(f"{shown} cannot be unpacked ({error}); unpack it first.") from None


def _unpack(path: Path, shown: str, inside: str | None, copy: Path) -> tuple[Path, str, str | None]:
    """Copy one member of an archive out of it; its name is never used as a path."""
    with archive_errors(shown), zipfile.ZipFile(path) as archive:
        members = [info for info in archive.infolist() if not info.is_dir() and not _is_litter(info.filename)]
        names = [info.filename for info in members]
        wanted, _, within = (inside or "").partition(INSIDE)
        if not wanted:
            wanted = _only_table(names, shown)
        elif wanted not in names:
            raise ValueError(f"{shown} has no member {wanted!r}; it has {listed(names)}.")
        info = members[names.index(wanted)]
        free = shutil.disk_usage(copy.parent).free
        if info.file_size > free:
            raise ValueError(
                f"{shown}{INSIDE}{wanted} has {info.file_size:,} bytes unpacked; there is room for {free:,} in "
                f"{copy.parent.parent}."
            )
        with archive.open(info) as member:
            _copy_stream(member, copy)  # type: ignore[arg-type]
    return copy, wanted, within or None


def _is_litter(name: str) -> bool:
    return name.startswith("__MACOSX/") or name.rpartition("/")[2].startswith(".")


def _only_table(names: list[str], shown: str) -> str:
    """Return the one member of an archive that can be meant."""
    if len(names) == 1:
        return names[0]
    tables = [name for name in names if Path(name.lower().removesuffix(".gz")).suffix in set(_KINDS) - {".txt"}]
    if len(tables) == 1:
        return tables[0]
    if not names:
        raise ValueError(f"{shown} is an archive without files.")
    found = tables or names
    raise ValueError(
        f"{shown} is an archive of {len(names)} files: {listed(found)}. Say which is meant: {shown}{INSIDE}{found[0]}"
    )


def listed(names: list[str], most: int = 10) -> str:
    """Return names in quotes, not too many of them."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return (", ".join(map(repr, names[:most])) + more) if names else "none"
