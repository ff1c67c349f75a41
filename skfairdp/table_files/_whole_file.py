"""Write a file so that it is there whole or not at all."""

import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def check_writable(path: str | os.PathLike[str]) -> Path:
    """Return the path if a file can be made there. Called before the work begins, so that no result is lost.

    Parameters
    ----------
    path : path
        Where a file is to be written.

    Returns
    -------
    pathlib.Path

    Examples
    --------
    >>> from skfairdp.table_files import check_writable
    >>> check_writable("no/such/folder/report.html")
    Traceback (most recent call last):
        ...
    FileNotFoundError: there is no folder no/such/folder to write report.html into.
    """
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; give the name of a file.")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {path.parent} to write {path.name} into.")
    if not os.access(path.parent, os.W_OK):
        raise PermissionError(f"the folder {path.parent} cannot be written to.")
    return path


@contextmanager
def temporary_file_beside(path: str | os.PathLike[str], suffix: str) -> Iterator[Path]:
    """Yield a new temporary file in the folder of ``path``, and remove it at the end, also after an error.

    Only its owner may read it. A process that is killed cannot remove it, and leaves it behind.
    """
    path = check_writable(path)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=suffix, dir=path.parent)
    os.close(handle)
    try:
        yield Path(name)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(name)


@contextmanager
def whole_file(path: str | os.PathLike[str], *, overwrite: bool = True) -> Iterator[Path]:
    """Yield a temporary name in the same folder, which gets the right name when all went well.

    If anything goes wrong, an interruption included, the temporary file is removed and ``path`` is as it was.
    """
    with temporary_file_beside(path, ".part") as temporary:
        yield temporary
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)  # as if it had been opened in the ordinary way
        if overwrite:
            os.replace(temporary, path)
        else:
            _move_without_overwriting(temporary, Path(path))


def _move_without_overwriting(temporary: Path, path: Path) -> None:
    try:
        os.link(temporary, path)  # fails if somebody else has made the file meanwhile
    except FileExistsError:
        raise FileExistsError(f"{path} exists already; it is not overwritten.") from None
    except OSError:  # a file system without links
        if path.exists():
            raise FileExistsError(f"{path} exists already; it is not overwritten.") from None
        os.replace(temporary, path)


def file_digest(path: str | os.PathLike[str]) -> str:
    """Return the sha256 of a file, which need not fit into memory."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file, whole or not at all.

    Parameters
    ----------
    path : path
        Where to write; a file that is there is replaced.
    text : str
        Its content; written as UTF-8.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from skfairdp.table_files import write_text
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_text(Path(folder) / "note.txt", "whole")
    ...     (Path(folder) / "note.txt").read_text()
    'whole'
    """
    with whole_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")
