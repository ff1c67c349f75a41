"""Read a table from a file, standard input or a database, or say in one line why it cannot be read."""

import os

import pandas as pd

from skfairdp.table_files._stored_tables import (
    read_database,
    read_excel,
    read_json_lines,
    read_parquet,
    read_sqlite,
)
from skfairdp.table_files._table_address import TEXT_KINDS, TableFile, local_file, shown_address, split_address, url_of
from skfairdp.table_files._text_columns import numbers_in_other_notations
from skfairdp.table_files._text_table import check_names, errors_in_one_sentence, read_text, text_table
from skfairdp.table_files._whole_file import file_digest


def read_table(
    path: str | os.PathLike[str],
    *,
    separator: str | None = None,
    encoding: str | None = None,
    header: bool | None = None,
) -> pd.DataFrame:
    """Read a table, as it comes, or say in one sentence why not.

    Parameters
    ----------
    path : str or path
        What to read; the name, or the first bytes where they tell more, say which format it is.

        - CSV, TSV and JSON lines (``.jsonl``), also compressed (``.gz``); Parquet; a workbook of Excel (``.xlsx``, with
          openpyxl); an SQLite file (``.sqlite``, ``.db``), opened for reading only; a zip archive of one of them.
        - ``"-"`` is standard input. A pipe is copied to a temporary file first.
        - What is meant inside of a file stands behind ``::``, as in ``people.zip::adults.csv``,
          ``people.xlsx::Sheet2``, ``people.db::clients`` and ``people.db::SELECT age, sex FROM clients``.
        - ``postgresql://me@server/people::clients``: any database that SQLAlchemy knows, if it is installed.
    separator : str, optional
        Of text files; by default found in the first line.
    encoding : str, optional
        Of text files, such as ``"cp1252"``. By default what a byte order mark says (UTF-8, UTF-16, UTF-32), and
        otherwise UTF-8; a file that is neither is refused.
    header : bool, optional
        Of text files and workbooks: whether the first line has the names of the columns. False calls them
        ``column_1``, ``column_2`` and so on. By default it must have names, and a first line that looks like a row of
        data is refused; True takes it for names without looking.

    Returns
    -------
    pandas.DataFrame
        ``frame.attrs["notes"]`` is a tuple of sentences that say what was converted, or is worth knowing;
        ``frame.attrs["file_sha256"]`` is the digest of the file, or of what came from standard input; None for other
        databases than SQLite.

    Notes
    -----
    A text table in which a row has a value too many or too few is refused with the number of the line, and so is one
    with a quote that is not closed. Columns of text whose values are all numbers in one other notation become numbers:
    ``3,14``, ``1.234,50``, ``$1,200``, ``45%`` (which is 45). ``?`` is a missing value.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from skfairdp.table_files import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "people.csv").write_text("age;height;sex\\n30;1,70;f\\n?;1,85;m\\n")
    ...     frame = read_table(Path(folder) / "people.csv")
    >>> frame
        age  height sex
    0  30.0    1.70   f
    1   NaN    1.85   m
    >>> print(*frame.attrs["notes"])
    Read as numbers with a decimal comma ('1,70' is 1.7): 'height'.
    """
    outer, inside = split_address(path)
    digest = None
    with errors_in_one_sentence(shown_address(outer)):
        if url_of(outer):
            _refuse_options(shown_address(outer), separator, encoding, header)
            frame = read_database(outer, inside)
        else:
            with local_file(outer, inside) as file, errors_in_one_sentence(file.shown):
                frame = _read_file(file, separator, encoding, header)
                digest = file_digest(file.source)
    frame = frame.set_axis([str(name) for name in frame.columns], axis=1)
    check_names(list(frame.columns), shown_address(outer))
    frame, notes = numbers_in_other_notations(frame)
    frame.attrs |= {"notes": notes, "file_sha256": digest}
    return frame


def _read_file(file: TableFile, separator: str | None, encoding: str | None, header: bool | None) -> pd.DataFrame:
    if file.kind in TEXT_KINDS:
        if file.inside:
            raise ValueError(f"{file.shown} is one table; leave '::{file.inside}' out.")
        table = text_table(
            file.path,
            file.kind,
            file.zipped,
            shown=file.shown,
            separator=separator,
            encoding=encoding,
            header=header is not False,
        )
        if file.kind != "jsonl":
            return read_text(table, look_at_names=header is None)
        _refuse_options(file.shown, separator, None, header)
        with table.open() as text:
            return read_json_lines(text, file.shown)
    _refuse_options(file.shown, separator, encoding, None if file.kind == "excel" else header)
    if file.kind == "excel":
        return read_excel(file, header)
    if file.kind == "sqlite":
        return read_sqlite(file)
    if file.inside:
        raise ValueError(f"{file.shown} is one table; leave '::{file.inside}' out.")
    return read_parquet(file.path, file.shown)


def _refuse_options(shown: str, separator: str | None, encoding: str | None, header: bool | None) -> None:
    """Refuse what has no meaning for this format, instead of doing nothing."""
    header = None if header is True else header  # the names are there, as they should be
    for name, value in (("separator", separator), ("encoding", encoding), ("header", header)):
        if value is not None:
            raise ValueError(f"{shown}: {name}={value!r} is about text tables; leave it out.")
