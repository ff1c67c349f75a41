"""One partition of a release: drawn by any worker, written once.

Dask may run a task again at any time: its worker is lost, its result was dropped, or two workers run it because one of
them is thought to be dead. A second draw for the same rows must then never be seen beside the first. So a worker draws
into a draft in a folder that nobody publishes, and gives the finished draft its public name by a hard link. To make a
link is atomic and fails where the name exists: the first draft wins, and all later ones are thrown away.
"""

import hashlib
import json
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from skfairdp.pipeline import PriceOfRows, paid_before
from skfairdp.table_files import file_digest

#: Where a part carries its receipt: rows and receipt get their name in one step.
METADATA_KEY = b"skfairdp"


@dataclass(frozen=True)
class ReleasePlan:
    """What every partition of a release has in common.

    Attributes
    ----------
    folder : str
        Where the parts are published.
    drafts : str
        Where they are drawn; as private as the rows themselves.
    release : str
        The name of the release, which no other has.
    columns, keep : tuple of str or None
        What is released, and what is copied beside it; None for arrays.
    method : str
        The method of the estimator that releases.
    price : PriceOfRows
        What was paid for each row.
    """

    folder: str
    drafts: str
    release: str
    columns: tuple[Any, ...] | None
    keep: tuple[Any, ...]
    method: str
    price: PriceOfRows


@dataclass(frozen=True)
class PartitionContent:
    """What a partition held when it was checked: whatever comes later must be the same rows in the same order."""

    n_rows: int
    digest: str


def split_columns(block: Any, plan: ReleasePlan) -> tuple[Any, pd.DataFrame | None]:
    """Return what is released, and what is copied."""
    if plan.columns is None:
        return np.asarray(block), None
    return block[list(plan.columns)], block[list(plan.keep)].reset_index(drop=True)


def check_partition(block: Any, number: int, plan: ReleasePlan, gaps_allowed: bool) -> PartitionContent:
    """Refuse a partition with gaps where the estimator would, and remember its content by a digest."""
    values, kept = split_columns(block, plan)
    frame = pd.DataFrame(values) if kept is None else values
    if not gaps_allowed:
        for name in frame:
            column = frame[name]
            wrong = column.isna().to_numpy(dtype=bool)
            if pd.api.types.is_numeric_dtype(column.dtype):
                wrong = wrong | ~np.isfinite(column.to_numpy(dtype=np.float64, na_value=np.nan))
            if wrong.any():
                raise ValueError(
                    f"row {int(np.flatnonzero(wrong)[0])} of partition {number} has no finite value in column "
                    f"{name!r}; fill or drop such rows first. Nothing was released."
                )
    digest = hashlib.sha256()
    for part in (frame, kept):
        if part is not None and part.shape[1]:  # pandas 2.1 cannot hash rows without columns
            digest.update(repr(list(part.columns)).encode())
            digest.update(pd.util.hash_pandas_object(part, index=False).to_numpy().tobytes())
    return PartitionContent(len(frame), digest.hexdigest())


def write_partition(block: Any, number: int, content: PartitionContent, estimator: Any, plan: ReleasePlan) -> dict:
    """Release one partition, unless that was done before, and return its receipt."""
    target = part_path(plan.folder, number)
    if not target.exists():
        if check_partition(block, number, plan, gaps_allowed=True) != content:
            raise RuntimeError(
                f"partition {number} holds other rows than when it was checked, or the same in another order: what "
                "data is computed from is not the same every time. Write it to Parquet first, and release that."
            )
        with _draft_in(plan.drafts) as draft:
            _write_draft(draft, _drawn_table(block, estimator, plan), plan, number)
            publish_once(draft, target)
    return _receipt_beside(target, plan, number, content)


def part_path(folder: str | Path, number: int) -> Path:
    """Return the public name of a partition."""
    return Path(folder) / f"part-{number:05d}.parquet"


def receipt_path(folder: str | Path, number: int) -> Path:
    """Return the name of its receipt; the underscore keeps readers of Parquet folders from taking it for rows."""
    return Path(folder) / f"_part-{number:05d}.guarantee.json"


def publish_once(draft: Path, target: Path) -> None:
    """Give a draft its public name, unless another one has it: that one stays as it is."""
    with suppress(FileExistsError):
        os.link(draft, target)
        _sync(target.parent)


def _drawn_table(block: Any, estimator: Any, plan: ReleasePlan) -> pd.DataFrame:
    values, kept = split_columns(block, plan)
    if kept is not None and not hasattr(estimator, "feature_names_in_"):
        values = values.to_numpy()
    with paid_before(plan.price):
        drawn = np.asarray(getattr(estimator, plan.method)(values))
    released = pd.DataFrame(drawn, columns=_names_of_release(estimator, plan, drawn))
    return released if kept is None else pd.concat([released, kept], axis=1)


def _names_of_release(estimator: Any, plan: ReleasePlan, drawn: np.ndarray) -> list[str]:
    if drawn.ndim == 1:
        return ["prediction"]
    if plan.method == "predict_proba":
        return [f"probability_{label}" for label in estimator.classes_]
    given = plan.columns if plan.columns is not None and not hasattr(estimator, "feature_names_in_") else None
    return [str(name) for name in estimator.get_feature_names_out(given)]


@contextmanager
def _draft_in(folder: str) -> Iterator[Path]:
    draft = Path(folder) / f"{uuid.uuid4().hex}.draft"
    try:
        yield draft
    finally:
        draft.unlink(missing_ok=True)


def _write_draft(draft: Path, frame: pd.DataFrame, plan: ReleasePlan, number: int) -> None:
    import pyarrow
    from pyarrow import parquet

    table = pyarrow.Table.from_pandas(frame, preserve_index=False)
    receipt = {"release": plan.release, "partition": number, "guarantee": plan.price.guarantee.to_dict()}
    metadata = {**(table.schema.metadata or {}), METADATA_KEY: json.dumps(receipt).encode()}
    parquet.write_table(table.replace_schema_metadata(metadata), draft)
    _sync(draft)


def _receipt_beside(target: Path, plan: ReleasePlan, number: int, content: PartitionContent) -> dict:
    """Write what a part says of itself beside it. Whoever does this a second time writes the same."""
    from pyarrow import parquet

    inside = json.loads(parquet.read_schema(target).metadata[METADATA_KEY])
    if (inside["release"], inside["partition"]) != (plan.release, number):
        raise FileExistsError(f"{target} belongs to another release; it is not overwritten.")
    receipt = {**inside, "file": target.name, "rows": content.n_rows, "sha256": file_digest(target)}
    write_whole(receipt_path(plan.folder, number), receipt, plan.drafts)
    return receipt


def write_whole(path: Path, document: dict, drafts: str) -> None:
    """Write a JSON file, whole or not at all; one that is there is replaced."""
    with _draft_in(drafts) as draft:
        draft.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        _sync(draft)
        os.replace(draft, path)
        _sync(path.parent)


def _sync(path: Path) -> None:
    """Bring a file, or the names in a folder, onto the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
