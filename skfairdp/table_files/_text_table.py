"""Text tables: their encoding, their separator, their rows, and whether they begin with names."""

import codecs
import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, BinaryIO, TextIO, cast

import pandas as pd

from skfairdp.table_files._row_lengths import surely_even

_SEPARATORS = ",;\t|"
#: What stands for "no value" in text files, beside what pandas knows.
MISSING = ["?"]
#: No column is called so; a missing value, or an answer, is.
_WORDS_OF_DATA = {"?", "na", "n/a", "nan", "null", "none", "true", "false"}
# The longer mark first: UTF-32 begins as UTF-16 does.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_ASCII_AS_ASCII = re.compile(r"utf-8(-sig)?|ascii|iso8859-\d+|cp125\d|cp437|cp850|koi8-[ru]|mac-roman")
_BLOCK = 1 << 22
_BEGINNING = 1 << 12  # bytes that are looked at before anything else
_LONGEST_HEADER = 1_000_000
_LOOKED_THROUGH = 10_000  # rows among whose values a name is looked for


@contextmanager
def errors_in_one_sentence(shown: Any) -> Iterator[None]:
    """Turn everything that goes wrong with a file into one sentence with its name."""
    try:
        yield
    except pd.errors.EmptyDataError:
        raise ValueError(f"{shown} is empty.") from None
    except UnicodeDecodeError as error:
        raise ValueError(_wrong_encoding(shown, error)) from None
    except (pd.errors.ParserError, csv.Error) as error:
        raise ValueError(f"{shown} cannot be read as a table: {' '.join(str(error).split())}") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{shown} is not a whole gzip file: {error}.") from None
    except PermissionError:
        raise PermissionError(f"{shown} may not be read.") from None


def _wrong_encoding(shown: Any, error: UnicodeDecodeError) -> str:
    if error.encoding not in ("utf-8", "utf8"):
        return f"{shown} is not a text in the encoding {error.encoding} ({error.reason})."
    byte = error.object[error.start] if error.start < len(error.object) else 0
    return (
        f"{shown} is not a text table in UTF-8 (it holds the byte {byte:#04x}). Tables of older Windows programs are "
        "often in cp1252: give encoding='cp1252' (--encoding cp1252), or convert the file: "
        "iconv -f CP1252 -t UTF-8 IN > OUT"
    )


@dataclass(frozen=True)
class TextTable:
    """A text file and how it is to be read; made by :func:`text_table`."""

    path: Path
    shown: str
    zipped: bool
    encoding: str
    separator: str
    header: bool = True

    def open(self, newline: str | None = "") -> TextIO:
        """Open the text; a byte order mark at its beginning is no part of the first name."""
        return _open_text(self.path, self.zipped, self.encoding, newline)

    def rows(self) -> Iterator[list[str]]:
        """Yield the first row, which has the names if there are any, then the others, without empty lines.

        A row with a value too many or too few is refused: where it broke, nobody knows which value belongs to which
        name, and a guess can put a value under the name of another column. So is a quote that is opened
        and not closed, or closed in the middle of a value. The line is counted as an editor counts it.
        """
        with self.open() as file:
            lines = csv.reader(_without_zeros(file), delimiter=self.separator, skipinitialspace=True, strict=True)
            before = 0  # number of the line on which the previous row ended
            try:
                yield (first := next(lines, []))
                before, width = lines.line_num, len(first)
                for row in lines:
                    if len(row) == width:
                        yield row
                    elif row:
                        of_first = "the header has" if self.header else "the first line has"
                        raise csv.Error(
                            f"{_number_of(len(row), 'value')}, but {of_first} "
                            f"{_number_of(width, 'name' if self.header else 'value')}"
                        )
                    before = lines.line_num
            except csv.Error as error:
                raise ValueError(f"{self.shown} cannot be read as a table: line {before + 1}: {error}.") from None

    def check_rows(self) -> list[str]:
        """Raise at a row of the wrong length, which pandas would fill up or shift; return the first row."""
        rows = self.rows()
        first = next(rows)
        rows.close()  # type: ignore[attr-defined]
        if not surely_even(self._blocks(), self.separator, len(first)):
            for _ in self.rows():
                pass
        return first

    def _blocks(self) -> Iterator[bytes]:
        """Yield the text in pieces of bytes in which ASCII is ASCII."""
        if not _ASCII_AS_ASCII.fullmatch(self.encoding):
            with self.open() as text:
                while piece := text.read(_BLOCK):
                    yield piece.encode("utf-8", "surrogatepass")
            return
        with _open_bytes(self.path, self.zipped) as file:
            block = file.read(_BLOCK)
            yield block.removeprefix(codecs.BOM_UTF8) if self.encoding == "utf-8-sig" else block
            while block := file.read(_BLOCK):
                yield block


def text_table(
    path: Path,
    kind: str,
    zipped: bool,
    *,
    shown: str | None = None,
    separator: str | None = None,
    encoding: str | None = None,
    header: bool = True,
) -> TextTable:
    """Find out how a text file is written: its encoding from its first bytes, its separator from its first line."""
    shown = str(path) if shown is None else shown
    if separator is not None and (len(separator) != 1 or separator in '"\r\n'):
        raise ValueError(f"--separator must be one character that is no quote and no line break; got {separator!r}.")
    with _open_bytes(path, zipped) as file:
        beginning = file.read(_BEGINNING)
    encoding = _find_encoding(beginning, encoding)
    # Zero bytes are looked for first: they tell more than the first byte that is no UTF-8.
    if encoding in ("utf-8", "utf-8-sig") and b"\0" in beginning:
        raise ValueError(
            f"{shown} is not a text table: it holds zero bytes. If it is a text in UTF-16, give encoding='utf-16-le' "
            "(--encoding utf-16-le)."
        )
    with _open_text(path, zipped, encoding, "") as text:
        first = text.readline(_LONGEST_HEADER)
    if not first.strip():
        raise ValueError(f"{shown} is empty." if not first else f"{shown} begins with an empty line; delete it.")
    if re.fullmatch(r"\s*\"?sep=.\"?\s*", first, re.I):
        raise ValueError(f"{shown} begins with {first.strip()!r}, a word to Excel and no row of the table; delete it.")
    if separator is None:
        separator = "\t" if kind == "tsv" else _most_frequent_separator(first)
    return TextTable(path, shown, zipped, encoding, separator, header)


def _most_frequent_separator(line: str) -> str:
    # What stands in quotes divides nothing, as in "name, first";"age".
    bare = re.sub(r'"[^"]*"', "", line)
    counted = bare if any(separator in bare for separator in _SEPARATORS) else line
    return max(_SEPARATORS, key=counted.count) if any(separator in counted for separator in _SEPARATORS) else ","


def _find_encoding(beginning: bytes, given: str | None = None) -> str:
    """Return the encoding that a byte order mark tells, or else the one that was given, or else UTF-8."""
    if given is not None:
        try:
            io.TextIOWrapper(io.BytesIO(), encoding=given)
            given = codecs.lookup(given).name
        except (LookupError, ValueError, TypeError):
            raise ValueError(
                f"encoding must be the name of a text encoding, such as 'utf-8' or 'cp1252'; got {given!r}."
            ) from None
    for mark, encoding in _MARKS:
        if beginning.startswith(mark) and given in (None, "utf-8", "utf-8-sig", encoding):
            return encoding
    return given or "utf-8"


def _open_bytes(path: Path, zipped: bool) -> BinaryIO:
    return cast(BinaryIO, gzip.open(path, "rb")) if zipped else open(path, "rb")


def _open_text(path: Path, zipped: bool, encoding: str, newline: str | None) -> TextIO:
    if zipped:
        return cast(TextIO, gzip.open(path, "rt", encoding=encoding, newline=newline))
    return open(path, encoding=encoding, newline=newline)


def _without_zeros(lines: TextIO) -> Iterator[str]:
    # A program in C takes a zero byte for the end of a text, and would lose what follows.
    for line in lines:
        if "\0" in line:
            raise csv.Error("a zero byte")
        yield line


def _number_of(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def read_text(table: TextTable, look_at_names: bool) -> pd.DataFrame:
    """Read a text table whose rows have all been looked at."""
    first = table.check_rows()
    names = None if table.header else [f"column_{number + 1}" for number in range(len(first))]
    # pandas gets every line end as \n: it loses the first separator after an empty line that ends in a lone \r.
    with table.open(newline=None) as file:
        frame = pd.read_csv(
            file,
            sep=table.separator,
            skipinitialspace=True,
            low_memory=False,
            index_col=False,
            na_values=MISSING,
            header=0 if table.header else None,
            names=names,
        )
    if table.header and look_at_names:
        refuse_data_as_names(first, frame, table.shown)
    if table.header:
        check_names(first, table.shown)
    return frame


def check_names(names: Sequence[str], shown: str) -> None:
    """Refuse a table with two columns of one name; columns without a name are counted by pandas."""
    counts = pd.Series([str(name) for name in names if str(name)], dtype=object).value_counts()
    if len(counts) and counts.iloc[0] > 1:
        raise ValueError(
            f"{shown} has {'two' if counts.iloc[0] == 2 else counts.iloc[0]} columns of the name {counts.index[0]!r}; "
            "give them different names first. If the first line is a row of data and no names, use header=False "
            "(--no-header)."
        )


def refuse_data_as_names(names: Sequence[Any], frame: pd.DataFrame, shown: str) -> None:
    """Refuse a table whose first line looks like a row of data.

    A name is as its column if it is a number over numbers, or occurs among the column's own values. One word over
    numbers shows that the line has names. Years and running numbers are names too.
    """
    if frame.empty or frame.shape[1] != len(names):
        return
    alike, numbers = 0, []
    for place, name in enumerate(str(name).strip() for name in names):
        column = frame.iloc[:, place]
        number = _as_number(name)
        if number is not None:
            numbers.append(number)
        if not name:
            continue
        if number is not None or name.lower() in _WORDS_OF_DATA:
            alike += 1
        elif pd.api.types.is_numeric_dtype(column.dtype) and column.notna().any():
            return
        elif (column.iloc[:_LOOKED_THROUGH].astype(object) == name).any():
            alike += 1
    if alike < 2 or 2 * alike < len(names) or (len(numbers) == alike and _are_names(numbers)):
        return
    again = _row_of_names_again(names, frame.iloc[:_LOOKED_THROUGH])
    if again is not None:
        raise ValueError(
            f"{shown} has its names once more in row {again + 1}, as if tables had been put behind each other; delete "
            "such rows."
        )
    line = ", ".join(str(name) for name in islice(names, 6)) + (", ..." if len(names) > 6 else "")
    raise ValueError(
        f"{shown}: the first line looks like a row of data, not like names: {line[:200]}. If the table has no names, "
        "use header=False (--no-header), which calls its columns column_1, column_2 and so on; if these are names, use "
        "header=True (--header)."
    )


def _row_of_names_again(names: Sequence[Any], frame: pd.DataFrame) -> int | None:
    """Return the first row that repeats the names, if a column is numbers without such rows: so they are names."""
    repeats = (frame.astype(str) == [str(name) for name in names]).all(axis=1).to_numpy()
    words = [place for place, name in enumerate(names) if _as_number(str(name)) is None]
    if not repeats.any() or repeats.all():
        return None
    others = frame[~repeats]
    if any(pd.to_numeric(others.iloc[:, place], errors="coerce").notna().all() for place in words):
        return int(repeats.argmax())
    return None


def _as_number(text: str) -> float | None:
    try:
        return float(text.replace(",", "."))
    except ValueError:
        return None


def _are_names(numbers: list[float]) -> bool:
    """Say whether numbers are 0, 1, 2, ... or 1, 2, 3, ... or years, one after the other."""
    steady = all(after - before == 1 for before, after in pairwise(numbers))
    return steady and (numbers[0] in (0, 1) or 1800 <= numbers[0] <= 2200)
