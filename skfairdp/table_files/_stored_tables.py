"""Tables that are not text: Parquet, Excel, SQLite and other databases, and JSON lines."""

import json
import re
import sqlite3
import warnings
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import pandas as pd

from skfairdp.table_files._table_address import INSIDE, TableFile, listed, shown_address
from skfairdp.table_files._text_table import MISSING, refuse_data_as_names

_QUERY = re.compile(r"\s*(select|with)\s", re.I)


def pyarrow_parquet() -> Any:
    """Import what Parquet needs."""
    try:
        import pyarrow.parquet
    except ImportError:
        raise ValueError("Parquet needs pyarrow: pip install pyarrow, or convert the table to CSV.") from None
    return pyarrow.parquet


def read_parquet(path: Path, shown: str) -> pd.DataFrame:
    """Read a Parquet file."""
    parquet = pyarrow_parquet()
    try:
        return parquet.read_table(path).to_pandas()
    except (OSError, ValueError) as error:
        raise ValueError(f"{shown} is not a Parquet file: {_one_line(error)}") from None


def read_json_lines(lines: Iterable[str], shown: str) -> pd.DataFrame:
    """Read one JSON object a line; values keep the type that they have there."""
    rows = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{shown} cannot be read as JSON lines: line {number}: {_one_line(error)}") from None
        if not isinstance(row, dict):
            raise ValueError(f"{shown} cannot be read as JSON lines: line {number} is no object such as {{...}}.")
        rows.append(row)
    return pd.DataFrame(rows)


def read_excel(file: TableFile, header: bool | None) -> pd.DataFrame:
    """Read a sheet of a workbook: the one that was named, or the only one that has values."""
    try:
        import openpyxl
    except ImportError:
        raise ValueError("Excel needs openpyxl: pip install openpyxl, or save the sheet as CSV.") from None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about charts, formats and extensions, which hold no values
            with open(file.path, "rb") as stream:  # a name that does not end in .xlsx would be refused
                with closing(openpyxl.load_workbook(stream, read_only=True, data_only=True)) as book:
                    names = [sheet.title for sheet in book.worksheets]
                    filled = [sheet.title for sheet in book.worksheets if _has_values(sheet)]
                sheet = _sheet(file, names, filled)
            with open(file.path, "rb") as stream:
                first = None if header is False else 0
                frame = pd.read_excel(stream, sheet_name=sheet, header=first, engine="openpyxl", na_values=MISSING)
    except (MemoryError, _WrongPart):
        raise
    except Exception as error:  # a workbook can be broken in any way
        raise ValueError(f"{file.shown} is not a workbook that can be read: {_one_line(error)}") from None
    if header is False:
        return frame.set_axis([f"column_{number + 1}" for number in range(frame.shape[1])], axis=1)
    if header is None:
        names = ["" if str(name).startswith("Unnamed: ") else name for name in frame.columns]
        refuse_data_as_names(names, frame, file.shown)
    return frame


class _WrongPart(ValueError):
    """A sheet or table that is not there, or that must be named."""


def _has_values(sheet: Any) -> bool:
    return any(value is not None for row in sheet.iter_rows(max_row=10, values_only=True) for value in row)


def _sheet(file: TableFile, names: list[str], filled: list[str]) -> str:
    if file.inside:
        if file.inside not in names:
            raise _WrongPart(f"{file.shown} has no sheet {file.inside!r}; it has {listed(names)}.")
        return file.inside
    if not filled:
        raise _WrongPart(f"{file.shown} is empty.")
    if len(filled) > 1:
        raise _WrongPart(
            f"{file.shown} has {len(filled)} sheets: {listed(filled)}. Say which is meant: "
            f"{file.shown}{INSIDE}{filled[0]}"
        )
    return filled[0]


def read_sqlite(file: TableFile) -> pd.DataFrame:
    """Read a table, a view or a query of an SQLite file, which is opened for reading only."""
    try:
        with closing(sqlite3.connect(f"{file.path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            query = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%'"
            tables = [name for (name,) in connection.execute(query)]
            return pd.read_sql_query(_sqlite_query(file, tables), connection)
    except (sqlite3.Error, pd.errors.DatabaseError) as error:
        raise ValueError(f"{file.shown} cannot be read as an SQLite database: {_one_line(error)}") from None


def _sqlite_query(file: TableFile, tables: list[str]) -> str:
    wanted = file.inside
    if wanted and _QUERY.match(wanted):
        return wanted
    if not wanted:
        if len(tables) != 1:
            example = f"{file.shown}{INSIDE}{tables[0] if tables else 'SELECT ...'}"
            raise _WrongPart(
                f"{file.shown} has {len(tables)} tables: {listed(tables)}. Say which is meant, or give a query: "
                f"{example}"
            )
        wanted = tables[0]
    if wanted not in tables:
        raise _WrongPart(
            f"{file.shown} has no table {wanted!r}; it has {listed(tables)}. A query must begin with SELECT or WITH."
        )
    return 'SELECT * FROM "{}"'.format(wanted.replace('"', '""'))


def read_database(url: str, inside: str | None) -> pd.DataFrame:
    """Read a table or a query of any database that SQLAlchemy knows; nothing is written, nothing is committed."""
    shown = shown_address(url)
    if url.lower().startswith(("http:", "https:", "ftp:", "s3:", "gs:")):
        raise ValueError(f"{shown} is an address in the network; download the table first.")
    if not inside:
        raise ValueError(f"{shown}: say which table, or give a query: {shown}{INSIDE}SELECT ...")
    try:
        import sqlalchemy
    except ImportError:
        raise ValueError(
            f"{shown} needs SQLAlchemy: pip install sqlalchemy and the driver of the database, or export the table as "
            "CSV."
        ) from None
    try:
        engine = sqlalchemy.create_engine(url)
        try:
            with engine.connect() as connection:
                if _QUERY.match(inside):
                    return pd.read_sql_query(sqlalchemy.text(inside), connection)
                return pd.read_sql_table(inside, connection)
        finally:
            engine.dispose()
    except (sqlalchemy.exc.SQLAlchemyError, ImportError, ValueError, OSError) as error:
        reason = _one_line(getattr(error, "orig", None) or error).replace(url, shown)
        raise ValueError(f"{shown} cannot be read: {reason}") from None


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]
