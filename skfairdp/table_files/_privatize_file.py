"""Privatise a table block by block: memory does not grow with the file, and no half file is left behind."""

import json
import math
import os
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from skfairdp._validation import check_choice
from skfairdp.dp import PrivacyGuarantee
from skfairdp.preprocessing import GaussianPrivatizer, LaplacePrivatizer
from skfairdp.table_files._stored_tables import pyarrow_parquet
from skfairdp.table_files._table_address import check_exists, kind_of
from skfairdp.table_files._text_table import errors_in_one_sentence, text_table
from skfairdp.table_files._whole_file import check_writable, file_digest, temporary_file_beside, whole_file

# A block holds at most 50,000 rows, and at most a million values (8 MB as floats) where rows are wide.
BLOCK_ROWS, BLOCK_VALUES = 50_000, 1_000_000
_NUMBER_OF_ROWS = "the number and the order of the rows"


def make_privatizer(
    mechanism: str, epsilon: float, delta: float, norm: str | None, radius: float, bounded: bool
) -> Any:
    """Return a privatizer that learns nothing from the rows.

    Parameters
    ----------
    mechanism : {"laplace", "gaussian"}
        Kind of the noise.
    epsilon : float
        Privacy loss of one row.
    delta : float
        Of ``"gaussian"``.
    norm : {"l1", "l2", "minmax", "clip"} or None
        How rows are bounded before Laplace noise. None is ``"clip"`` with public bounds and ``"l1"`` without.
    radius : float
        The bound.
    bounded : bool
        Whether columns are scaled by public bounds first.

    Returns
    -------
    LaplacePrivatizer or GaussianPrivatizer

    Examples
    --------
    >>> from skfairdp.table_files import make_privatizer
    >>> make_privatizer("laplace", 2.0, 1e-5, None, 1.0, bounded=True)
    LaplacePrivatizer(epsilon=2.0, norm='clip')
    """
    if mechanism == "gaussian":
        if bounded or norm not in (None, "l2"):
            raise ValueError("--mechanism gaussian gives every row the same L2 norm; leave --norm and --bounds out.")
        return GaussianPrivatizer(epsilon, delta, radius=radius)
    if bounded and (norm not in (None, "clip") or radius != 1.0):
        raise ValueError("--bounds say how columns are limited; leave --norm and --radius out.")
    return LaplacePrivatizer(epsilon, norm=norm or ("clip" if bounded else "l1"), radius=radius)


def load_privatizer(path: str | os.PathLike[str], columns: Sequence[str]) -> Any:
    """Load a fitted privatizer that joblib has written, and check that it can release these columns.

    Parameters
    ----------
    path : path
        The file. Open only files that you trust: a pickle can run any code.
    columns : sequence of str
        The columns that it is to privatise.

    Returns
    -------
    transformer
        With the receipt ``privacy_``.

    Examples
    --------
    >>> import tempfile
    >>> import joblib
    >>> from pathlib import Path
    >>> from skfairdp import LaplacePrivatizer
    >>> from skfairdp.table_files import load_privatizer
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = joblib.dump(LaplacePrivatizer(2.0).fit([[0.5, 0.5]]), Path(folder) / "privatizer")
    ...     privatizer = load_privatizer(Path(folder) / "privatizer", ["age", "hours"])
    >>> privatizer.privacy_.epsilon
    2.0
    """
    import joblib

    path = check_exists(path)
    try:
        privatizer = joblib.load(path)
    except Exception as error:  # a pickle can fail in any way
        raise ValueError(f"{path} does not hold a privatizer that can be loaded: {error}") from None
    if getattr(privatizer, "_protects_fitted_rows", False):
        raise ValueError(
            f"{path} holds a {type(privatizer).__name__}, whose guarantee is about the rows that it was fitted on: "
            "rows that it transforms come out in the clear."
        )
    if not hasattr(privatizer, "transform") or not isinstance(getattr(privatizer, "privacy_", None), PrivacyGuarantee):
        raise ValueError(f"{path} holds no fitted privatizer, but a {type(privatizer).__name__} without a guarantee.")
    if privatizer.n_features_in_ != len(columns):
        raise ValueError(f"{path} was fitted on {privatizer.n_features_in_} columns; --columns names {len(columns)}.")
    # Checked here and not when the first block is released: by then the ledger would have been charged.
    names = getattr(privatizer, "get_feature_names_out", lambda: columns)()
    if len(names) != len(columns):
        raise ValueError(
            f"{path} makes {len(names)} columns of {len(columns)}; only one that keeps the columns can be used."
        )
    return privatizer


class Bounds:
    """Public limits of each column: they map it onto [-1, 1] and back."""

    def __init__(self, limits: dict[str, tuple[float, float]], columns: Sequence[str]):
        missing = [name for name in columns if name not in limits]
        for name in limits:
            check_choice(name, list(columns), "column to privatise")
        if missing:
            raise ValueError(f"--bounds must name all columns or none; it lacks {', '.join(map(repr, missing))}.")
        self.lower = np.array([limits[name][0] for name in columns])
        self.upper = np.array([limits[name][1] for name in columns])

    def scale(self, values: np.ndarray) -> np.ndarray:
        """Map the limits onto -1 and 1; what lies beyond is cut off."""
        return np.clip(2 * (values - self.lower) / (self.upper - self.lower) - 1, -1, 1)

    def unscale(self, values: np.ndarray) -> np.ndarray:
        """Map back; this only looks at what is released, and costs nothing."""
        return self.lower + (values + 1) * (self.upper - self.lower) / 2


def parse_bounds(texts: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Read bounds of columns as they are written on the command line.

    Parameters
    ----------
    texts : sequence of str
        Each is a column and its public limits.

    Returns
    -------
    dict of str to (float, float)

    Examples
    --------
    >>> from skfairdp.table_files import parse_bounds
    >>> parse_bounds(["age=0:100"])
    {'age': (0.0, 100.0)}
    """
    limits = {}
    for text in texts:
        name, _, interval = text.rpartition("=")
        low, _, high = interval.partition(":")
        try:
            ends = (float(low), float(high))
        except ValueError:
            ends = (math.nan, math.nan)
        if not name or not (math.isfinite(ends[0]) and math.isfinite(ends[1]) and ends[0] < ends[1]):
            raise ValueError(f"{text!r} is no bound; write column=low:high with low < high, as in age=0:100.")
        limits[name] = ends
    return limits


def blocks_of(
    path: Path, wanted: Sequence[str], separator: str | None, block_rows: int
) -> Generator[pd.DataFrame, None, None]:
    """Read the wanted columns block by block."""
    with errors_in_one_sentence(path):
        kind, zipped = kind_of(path)
        if kind == "parquet":
            parquet = pyarrow_parquet()
            try:
                file = parquet.ParquetFile(path)
            except (OSError, ValueError) as error:
                raise ValueError(f"{path} is not a Parquet file: {' '.join(str(error).split())[:200]}") from None
            for name in wanted:
                check_choice(name, file.schema_arrow.names, "column")
            for batch in file.iter_batches(block_rows, columns=list(wanted)):
                yield batch.to_pandas()[list(wanted)]
            return
        rows = text_table(path, kind, zipped, separator=separator).rows()
        header = next(rows)
        for name in wanted:
            check_choice(name, header, "column")
            if header.count(name) > 1:
                raise ValueError(f"{path} has two columns of the name {name!r}; give them different names first.")
        places = [header.index(name) for name in wanted]
        while True:
            values = (row[place] for row in islice(rows, block_rows) for place in places)
            block = np.fromiter(values, dtype=object).reshape(-1, len(places))
            if not len(block):
                return
            # Values stay text, so that kept columns are copied exactly as they are written.
            yield pd.DataFrame(block, columns=list(wanted), dtype=object)


class _Writer:
    """Write blocks as text or Parquet, to a temporary name."""

    def __init__(self, path: Path, target: Path):
        self.path = path
        self.kind, self.zipped = kind_of(target)
        self.parquet: Any = None
        self.first = True

    def write(self, block: pd.DataFrame) -> None:
        if self.kind == "parquet":
            import pyarrow

            table = pyarrow.Table.from_pandas(block, preserve_index=False)
            if self.parquet is None:
                self.parquet = pyarrow_parquet().ParquetWriter(self.path, table.schema)
            self.parquet.write_table(table)
        else:
            block.to_csv(
                self.path,
                sep="\t" if self.kind == "tsv" else ",",
                index=False,
                mode="w" if self.first else "a",
                header=self.first,
                compression="gzip" if self.zipped else None,
            )
        self.first = False

    def close(self) -> None:
        if self.parquet is not None:
            self.parquet.close()


def privatize_file(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    privatizer: Any,
    columns: Sequence[str],
    *,
    keep: Sequence[str] = (),
    bounds: dict[str, tuple[float, float]] | None = None,
    separator: str | None = None,
    block_rows: int = BLOCK_ROWS,
    overwrite: bool = False,
    charge: Callable[[PrivacyGuarantee], None] | None = None,
) -> tuple[PrivacyGuarantee, int]:
    """Release noisy columns of a file, and write a guarantee beside them.

    The file is read twice. First every row is checked; then the release is charged and a receipt that says
    "unfinished" is written; only then are rows drawn. So a table that is refused costs nothing, and a process that
    is killed leaves no row without its receipt.

    Parameters
    ----------
    source, target : path
        CSV, TSV or Parquet; the text ones also compressed. The guarantee is ``target`` + ``.guarantee.json``.
    privatizer : transformer
        Fitted, or a stateless one, which is fitted on the number of columns.
    columns : sequence of str
        What to privatise. All together are one record: epsilon is the price of a whole row.
    keep : sequence of str
        Columns to copy as they are. They are not protected, and the guarantee says so.
    bounds : dict of str to (float, float), optional
        Public limits, by which columns are scaled to [-1, 1] before and back after.
    separator : str, optional
        Of text files.
    block_rows : int
        Rows in memory at a time, at most.
    overwrite : bool
        Whether existing files may be replaced.
    charge : callable, optional
        Is told the guarantee once for the whole file, since every record is in one block only, and raises to refuse it.

    Returns
    -------
    guarantee, n_rows : PrivacyGuarantee, int

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from skfairdp import LaplacePrivatizer
    >>> from skfairdp.table_files import privatize_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     source, target = Path(folder) / "people.csv", Path(folder) / "noisy.csv"
    ...     _ = source.write_text("age,hours,name\\n30,40,Doe\\n50,20,Roe\\n")
    ...     guarantee, n_rows = privatize_file(source, target, LaplacePrivatizer(2.0), ["age", "hours"])
    ...     header = target.read_text().splitlines()[0]
    >>> n_rows, header, guarantee.epsilon
    (2, 'age,hours', 2.0)
    """
    source, target = _check_source(source), check_writable(target)
    _check_kind(target)
    beside = target.with_name(target.name + ".guarantee.json")
    if target.exists() and source.samefile(target):
        raise ValueError("input and output are the same file.")
    for path in (target, beside):
        if path.exists() and not overwrite:
            raise FileExistsError(f"{path} exists already; use --force to overwrite it.")
    if not columns:
        raise ValueError("--columns must name at least one column.")
    both = sorted(set(columns) & set(keep))
    if both or len(set(columns)) < len(columns):
        raise ValueError(f"a column is named twice: {', '.join(map(repr, both or sorted(columns)))}.")
    scaler = None if bounds is None else Bounds(bounds, columns)
    if not hasattr(privatizer, "privacy_"):
        privatizer.fit(np.zeros((1, len(columns))))
    block_rows = min(block_rows, max(BLOCK_VALUES // (len(columns) + len(keep)), 1))

    def checked_blocks() -> Generator[tuple[np.ndarray, pd.DataFrame], None, None]:
        before = 0
        with closing(blocks_of(source, [*columns, *keep], separator, block_rows)) as blocks:
            for block in blocks:
                if not block.empty:
                    yield _numbers_of_block(block[list(columns)], before), block[list(keep)].reset_index(drop=True)
                before += len(block)

    n_rows = sum(len(values) for values, _ in checked_blocks())
    if n_rows == 0:
        raise ValueError(f"{source} has no rows.")
    guarantee = _scope_of_guarantee(privatizer.privacy_, keep, bounds)
    document = {
        "guarantee": guarantee.to_dict(),
        "columns": list(columns),
        "kept_unprotected": list(keep),
        "bounds": bounds,
        "rows": n_rows,
    }
    # A receipt without rows is harmless, rows without a receipt are not. These three are closed from the last to the
    # first: the receipt gets its name, then the file with the rows, and only then the unfinished receipt is removed.
    with (
        temporary_file_beside(target, ".guarantee.json") as unfinished,
        whole_file(target, overwrite=overwrite) as part,
        whole_file(beside, overwrite=overwrite) as receipt,
    ):
        if charge is not None:
            charge(guarantee)
        _write_receipt(unfinished, document | {"unfinished": True, "file": part.name})
        n_written = 0
        with closing(_Writer(part, target)) as writer, closing(checked_blocks()) as blocks:
            for values, kept in blocks:
                values = values if scaler is None else scaler.scale(values)
                noisy = np.asarray(privatizer.transform(values))
                noisy = noisy if scaler is None else scaler.unscale(noisy)
                writer.write(pd.concat([pd.DataFrame(noisy, columns=list(columns)), kept], axis=1))
                n_written += len(values)
        if n_written != n_rows:
            raise ValueError(f"{source} had {n_rows:,} rows when it was checked, and {n_written:,} when it was read.")
        _write_receipt(receipt, document | {"file": target.name, "sha256": file_digest(part)})
    return guarantee, n_rows


def _check_source(path: str | os.PathLike[str]) -> Path:
    path = check_exists(path)
    if not path.is_file():
        raise ValueError(f"{path} is a stream, which can be read only once; write the table to a file first.")
    _check_kind(path)
    return path


def _check_kind(path: Path) -> None:
    if kind_of(path)[0] not in ("csv", "tsv", "parquet"):
        raise ValueError(f"{path}: only CSV, TSV and Parquet are read and written block by block; name such a file.")


def _write_receipt(path: Path, document: dict[str, Any]) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(json.dumps(document, indent=2, ensure_ascii=False) + "\n")
        file.flush()
        os.fsync(file.fileno())  # on the disk before any row is


def _numbers_of_block(block: pd.DataFrame, before: int) -> np.ndarray:
    """Return the values as floats, or name the row and column that is not a number."""
    columns = []
    for name in block:
        numbers = pd.to_numeric(block[name], errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
        wrong = np.flatnonzero(~np.isfinite(numbers))
        if wrong.size:
            raise ValueError(
                f"row {before + wrong[0] + 1} of column {name!r} is no finite number; fill or drop such rows first."
            )
        columns.append(numbers)
    return np.column_stack(columns)


def _scope_of_guarantee(
    guarantee: PrivacyGuarantee, keep: Sequence[str], bounds: dict[str, tuple[float, float]] | None
) -> PrivacyGuarantee:
    more = [_NUMBER_OF_ROWS]
    if keep:
        more.append(f"the columns copied as they are: {', '.join(keep)}")
    if bounds is not None:
        more.append("the bounds, which must not have been chosen by looking at the rows")
    return replace(guarantee, does_not_cover=(*guarantee.does_not_cover, *more))
