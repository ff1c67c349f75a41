"""Release a Dask collection: every partition is drawn by a worker, written once, and paid for once."""

import json
import math
import os
import shutil
import uuid
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from sklearn.utils import get_tags

from skfairdp._validation import check_choice
from skfairdp.dask._collections import blocks_of_collection, import_dask, is_frame
from skfairdp.dask._written_once import (
    PartitionContent,
    ReleasePlan,
    check_partition,
    part_path,
    receipt_path,
    write_partition,
    write_whole,
)
from skfairdp.dp import PrivacyGuarantee, charge
from skfairdp.pipeline import PriceOfRows, price_of_new_rows

_RECEIPT = "_guarantee.json"
_METHODS = ["transform", "predict", "predict_proba"]
_SCOPE = (
    "the number of rows in each partition, and their order",
    "a person whose rows are in two partitions, who pays for each",
)


def release_to_parquet(
    data: Any,
    folder: str | os.PathLike[str],
    estimator: Any,
    columns: Sequence[Any] | None = None,
    *,
    keep: Sequence[Any] = (),
    method: str | None = None,
    resume: bool = False,
) -> tuple[PrivacyGuarantee, int]:
    """Release noisy rows of a Dask collection as a folder of Parquet files, each written once.

    Parameters
    ----------
    data : dask.dataframe.DataFrame or dask.array.Array of two dimensions
        The rows. Each record must be in one partition only.
    folder : path
        A new folder on a file system that all workers see and that has hard links. ``dask.dataframe.read_parquet`` and
        ``pandas.read_parquet`` read it.
    estimator : estimator
        Fitted, with a guarantee for rows that it is given: a privatizer, :class:`~skfairdp.preprocessing.OMEEncoder`,
        :class:`~skfairdp.postprocessing.FairPrivateClassifier`, or a pipeline that ends in one.
    columns : sequence, optional
        The columns to release, of a data frame. All together are one record. By default all that are not kept.
    keep : sequence, optional
        Columns to copy as they are. They are not protected, and the guarantee says so.
    method : {"transform", "predict", "predict_proba"}, optional
        What releases; by default the first of them that the estimator has.
    resume : bool, default=False
        Finish a release that was interrupted: parts that were written stay as they are, the others are drawn now, and
        nothing is charged again. It must be the same rows and the same estimator.

    Returns
    -------
    guarantee, n_rows : PrivacyGuarantee, int

    Notes
    -----
    **Privacy.** Dask computes a task again whenever it likes: when a worker is lost, when a result was dropped, at
    every ``compute``. A privatizer in a lazy graph (``data.map_partitions(privatizer.transform)``) then draws new
    noise for the same rows, and whoever sees two draws has two releases. Each is charged, so that the account stays
    right and the budget is soon spent. Here the draw leaves the graph: a partition is drawn into a file that nobody
    publishes and gets its name by a hard link, which fails if the name is taken. So each partition is published once,
    however often its task runs, and what is computed from the folder later reads the same values for ever.

    Every partition is computed twice. First all are checked and remembered by a digest; then the release is charged,
    once, as each record is in one partition; then noise is drawn. A partition that has other rows, or another order,
    when it is computed for the second time (a shuffle, a sample without a seed) is refused. Drafts of killed workers
    and the digests lie in a hidden folder beside ``folder``, which only its owner can open and which is removed at
    the end. They are as private as the rows. Noise comes from the operating system of each worker: no two partitions
    share it, and there is no secret that a scheduler could leak.

    Examples
    --------
    >>> import tempfile
    >>> import dask.array, pandas
    >>> from skfairdp import LaplacePrivatizer
    >>> from skfairdp.dask import release_to_parquet
    >>> rows = dask.array.ones((100, 2), chunks=(25, 2))
    >>> with tempfile.TemporaryDirectory() as home:
    ...     guarantee, n_rows = release_to_parquet(rows, f"{home}/noisy", LaplacePrivatizer(2.0).fit([[0, 0]]))
    ...     released = pandas.read_parquet(f"{home}/noisy")
    >>> n_rows, released.shape, guarantee.epsilon
    (100, (100, 2), 2.0)
    """
    dask = import_dask()
    target = _check_folder(folder)
    chosen, kept = _check_columns(data, columns, keep)
    method = _check_method(estimator, method)
    price = _price_of(estimator, kept)
    drafts = target.with_name(f".{target.name}.unfinished")
    plan = ReleasePlan(str(target), str(drafts), uuid.uuid4().hex, chosen, kept, method, price)
    blocks = blocks_of_collection(data)
    if resume:
        plan, contents = _begun_before(plan, len(blocks))
    else:
        for path in (target, drafts):
            if path.exists():
                raise FileExistsError(
                    f"{path} exists already. Give another folder, or resume=True if a release into it was interrupted."
                )
        gaps_allowed = get_tags(estimator).input_tags.allow_nan
        check = dask.delayed(check_partition, pure=False)
        shared = dask.delayed(plan, traverse=False, pure=False)  # one object for all tasks, and not a copy in each
        contents = dask.compute(*(check(block, i, shared, gaps_allowed) for i, block in enumerate(blocks)))
        _begin(plan, contents, estimator)
    write = dask.delayed(write_partition, pure=False)
    shared = [dask.delayed(thing, traverse=False, pure=False) for thing in (estimator, plan)]
    missing = [
        i for i in range(len(blocks)) if not (part_path(target, i).exists() and receipt_path(target, i).exists())
    ]
    dask.compute(*(write(blocks[i], i, contents[i], *shared) for i in missing))
    _finish(plan, contents)
    return plan.price.guarantee, sum(content.n_rows for content in contents)


def _check_folder(folder: str | os.PathLike[str]) -> Path:
    if "://" in str(folder):
        raise ValueError(
            f"folder={str(folder)!r} is no folder of a file system: only a hard link promises that a part is written "
            "once. Release into a folder that all workers see, and copy it from there."
        )
    path = Path(folder).absolute()
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {path.parent} to make {path.name} in.")
    return path


def _check_columns(
    data: Any, columns: Sequence[Any] | None, keep: Sequence[Any]
) -> tuple[tuple[Any, ...] | None, tuple[Any, ...]]:
    if not is_frame(data):
        if columns is not None or len(keep):
            raise ValueError("columns and keep name columns of a data frame; data is an array. Leave them out.")
        return None, ()
    if isinstance(columns, str) or isinstance(keep, str):
        raise TypeError("columns and keep must be lists of columns, not one str.")
    known = list(data.columns)
    if len(set(known)) < len(known):
        raise ValueError("data has two columns of one name; give them different names first.")
    chosen = [name for name in known if name not in keep] if columns is None else list(columns)
    if not chosen:
        raise ValueError("columns must name at least one column.")
    named = [*chosen, *keep]
    for name in named:
        check_choice(name, known, "column")
    if len(set(named)) < len(named):
        raise ValueError(f"a column is named twice in columns and keep: {named}.")
    return tuple(chosen), tuple(keep)


def _check_method(estimator: Any, method: str | None) -> str:
    found = [name for name in _METHODS if hasattr(estimator, name)]
    if method is not None and method not in found:
        raise ValueError(f"method must be one of {found}, which {type(estimator).__name__} has; got {method!r}.")
    if not found:
        raise TypeError(f"estimator must have one of the methods {_METHODS}; got {type(estimator).__name__}.")
    return method or found[0]


def _price_of(estimator: Any, keep: tuple[Any, ...]) -> PriceOfRows:
    price = price_of_new_rows(estimator)
    if price is None or math.isinf(price.guarantee.epsilon):
        nothing = "it makes the rows that it is given not private"
        reason = nothing if price is None else "; ".join(price.guarantee.does_not_cover)
        raise ValueError(f"{type(estimator).__name__} has no finite guarantee for these rows: {reason}.")
    copied = (f"the columns copied as they are: {', '.join(map(str, keep))}",) if keep else ()
    scope = (*price.guarantee.does_not_cover, *_SCOPE, *copied)
    return replace(price, guarantee=replace(price.guarantee, does_not_cover=scope))


def _terms(plan: ReleasePlan, n_partitions: int) -> dict[str, Any]:
    """Return what may not change before a release is finished."""
    return {
        "guarantee": plan.price.guarantee.to_dict(),
        "columns": None if plan.columns is None else list(plan.columns),
        "kept_unprotected": list(plan.keep),
        "method": plan.method,
        "partitions": n_partitions,
    }


def _begin(plan: ReleasePlan, contents: Sequence[PartitionContent], estimator: Any) -> None:
    """Pay, and leave a receipt that says "unfinished" before anything is drawn."""
    if not sum(content.n_rows for content in contents):
        raise ValueError("data has no rows.")
    drafts, folder = Path(plan.drafts), Path(plan.folder)
    folder.mkdir()
    try:
        drafts.mkdir(mode=0o700)
        _check_links(drafts, folder)
        remembered = {"release": plan.release, "contents": [asdict(content) for content in contents]}
        write_whole(drafts / "contents.json", remembered, plan.drafts)
        charge(plan.price.guarantee, source=type(estimator).__name__)
    except BaseException:  # nothing was drawn: leave everything as it was
        shutil.rmtree(drafts, ignore_errors=True)
        shutil.rmtree(folder, ignore_errors=True)
        raise
    document = {"release": plan.release, "unfinished": True, **_terms(plan, len(contents))}
    write_whole(folder / _RECEIPT, document, plan.drafts)


def _check_links(drafts: Path, folder: Path) -> None:
    probe, link = drafts / "probe", folder / "_probe"
    probe.touch()
    try:
        os.link(probe, link)
        link.unlink()
    except OSError as error:
        raise OSError(
            f"{folder} lies on a file system without hard links ({error}), and only they promise that a part is "
            "written once. Nothing was released; give another folder."
        ) from None
    finally:
        probe.unlink()


def _begun_before(plan: ReleasePlan, n_partitions: int) -> tuple[ReleasePlan, list[PartitionContent]]:
    """Read what was written down when the release began, and refuse to go on with another one."""
    receipt, remembered = Path(plan.folder) / _RECEIPT, Path(plan.drafts) / "contents.json"
    if not receipt.exists() or not remembered.exists():
        raise FileNotFoundError(f"there is no unfinished release in {plan.folder}; leave resume out to begin one.")
    begun = json.loads(receipt.read_text(encoding="utf-8"))
    now = json.loads(json.dumps(_terms(plan, n_partitions)))
    for terms in (begun, now):  # the copy of a seeded estimator has a stream of its own
        terms["guarantee"] = PrivacyGuarantee.from_dict(terms["guarantee"]).with_seed(None)
    for name, value in now.items():
        if begun[name] != value:
            raise ValueError(
                f"{plan.folder} was begun with {name}={begun[name]!r}, not {value!r}; nothing was released."
            )
    contents = [PartitionContent(**content) for content in json.loads(remembered.read_text())["contents"]]
    return replace(plan, release=begun["release"]), contents


def _finish(plan: ReleasePlan, contents: Sequence[PartitionContent]) -> None:
    """Write the receipt of the whole, and remove what is not to be kept."""
    parts = []
    for number in range(len(contents)):
        receipt = json.loads(receipt_path(plan.folder, number).read_text(encoding="utf-8"))
        parts.append({name: receipt[name] for name in ("file", "rows", "sha256")})
    n_rows = sum(content.n_rows for content in contents)
    document = {"release": plan.release, **_terms(plan, len(contents)), "rows": n_rows, "parts": parts}
    write_whole(Path(plan.folder) / _RECEIPT, document, plan.drafts)
    shutil.rmtree(plan.drafts)
