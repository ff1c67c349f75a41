"""Read a table from a file, or say in one line why it cannot be read."""

import csv
import gzip
import os
import zlib
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

import pandas as pd

_SEPARATORS = ",;\t|"
#: What stands for "no value" in text files, beside what pandas knows.
_MISSING = ["?"]


def kind_of(path: str | os.PathLike[str]) -> tuple[str, bool]:
    """Return what a file's name says it is, ``"csv"``, ``"tsv"`` or ``"parquet"``, and whether it is compressed."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    zipped = bool(suffixes) and suffixes[-1] == ".gz"
    last = (suffixes[-2] if len(suffixes) > 1 else "") if zipped else (suffixes[-1] if suffixes else "")
    if last in (".parquet", ".pq"):
        if zipped:
            raise ValueError(f"{path}: Parquet is compressed inside; unpack the .gz first.")
        return "parquet", False
    return ("tsv" if last in (".tsv", ".tab") else "csv"), zipped


def check_exists(path: str | os.PathLike[str]) -> Path:
    """Return the path if it is a file."""
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder, not a table.")
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}.")
    return path


@contextmanager
def errors_in_one_sentence(path: Path) -> Iterator[None]:
    """Turn everything that goes wrong with a file into one sentence with its name."""
    try:
        yield
    except pd.errors.EmptyDataError:
        raise ValueError(f"{path} is empty.") from None
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise ValueError(f"{path} is not a text table in UTF-8 (it holds the byte {byte:#04x}).") from None
    except (pd.errors.ParserError, csv.Error) as error:
        raise ValueError(f"{path} cannot be read as a table: {' '.join(str(error).split())}") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{path} is not a whole gzip file: {error}.") from None
    except PermissionError:
        raise PermissionError(f"{path} may not be read.") from None


def open_text(path: Path, zipped: bool, newline: str | None = "") -> TextIO:
    """Open a text file; a byte order mark at its beginning is no part of the first name."""
    if zipped:
        return gzip.open(path, "rt", encoding="utf-8-sig", newline=newline)
    return open(path, encoding="utf-8-sig", newline=newline)


def find_separator(path: Path, kind: str, zipped: bool, given: str | None = None) -> str:
    """Return the separator that was given, or else the one that divides the header most often."""
    if given is not None:
        if len(given) != 1 or given in '"\r\n':
            raise ValueError(f"--separator must be one character that is no quote and no line break; got {given!r}.")
        return given
    if kind == "tsv":
        return "\t"
    with open_text(path, zipped) as file:
        header = file.readline(1_000_000)
    if "\0" in header:
        raise ValueError(f"{path} is not a text table: it holds zero bytes.")
    if not header.strip():
        raise ValueError(
            f"{path} is empty." if not header else f"{path} begins with an empty line; a header is needed."
        )
    return max(_SEPARATORS, key=header.count) if any(s in header for s in _SEPARATORS) else ","


def pyarrow_parquet() -> Any:
    """Import what Parquet needs."""
    try:
        import pyarrow.parquet
    except ImportError:
        raise ValueError("Parquet needs pyarrow: pip install pyarrow, or convert the table to CSV.") from None
    return pyarrow.parquet


def text_rows(path: Path, zipped: bool, separator: str) -> Iterator[list[str]]:
    """Yield the header of a text table, then its rows, without empty lines.

    A row with a value too many or too few is refused: where it broke, nobody knows which value belongs to which
    name, and a guess can put a value under the name of another column. So is a quote that is opened
    and not closed, or closed in the middle of a value. The line is counted as an editor counts it.
    """
    with open_text(path, zipped) as file:
        lines = csv.reader(file, delimiter=separator, skipinitialspace=True, strict=True)
        before = 0  # number of the line on which the previous row ended
        try:
            yield (header := next(lines, []))
            before, width = lines.line_num, len(header)
            for row in lines:
                if len(row) == width:
                    yield row
                elif row:
                    raise csv.Error(f"{_number_of(len(row), 'value')}, but the header has {_number_of(width, 'name')}")
                before = lines.line_num
        except csv.Error as error:
            raise ValueError(f"{path} cannot be read as a table: line {before + 1}: {error}.") from None


def _number_of(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def read_table(path: str | os.PathLike[str], *, separator: str | None = None) -> pd.DataFrame:
    """Read a CSV, TSV or Parquet file, the text ones also compressed (``.gz``).

    Parameters
    ----------
    path : path
        The file; its name tells the format, and CSV is assumed where it does not.
    separator : str, optional
        Of text files; by default found in the header.

    Returns
    -------
    pandas.DataFrame

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from skfairdp.table_files import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "people.csv").write_text("age;sex\\n30;f\\n?;m\\n")
    ...     read_table(Path(folder) / "people.csv")
        age sex
    0  30.0   f
    1   NaN   m
    """
    path = check_exists(path)
    with errors_in_one_sentence(path):
        kind, zipped = kind_of(path)
        if kind == "parquet":
            return _read_parquet(path)
        separator = find_separator(path, kind, zipped, separator)
        # Read once to raise at a row of the wrong length, which pandas would fill up or shift.
        deque(text_rows(path, zipped, separator), maxlen=0)
        # pandas gets every line end as \n: it loses the first separator after an empty line that ends in a lone \r.
        with open_text(path, zipped, newline=None) as file:
            return pd.read_csv(
                file, sep=separator, skipinitialspace=True, low_memory=False, index_col=False, na_values=_MISSING
            )


def _read_parquet(path: Path) -> pd.DataFrame:
    parquet = pyarrow_parquet()
    try:
        return parquet.read_table(path).to_pandas()
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} is not a Parquet file: {' '.join(str(error).split())[:200]}") from None
