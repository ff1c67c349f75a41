"""Journals that are part of the repository, compressed, and the tables that are made of them and of nothing else.

A shipped journal is frozen: it records the version of the code that measured it, which need not be that of today.
"""

import json
import lzma
from pathlib import Path
from typing import Any

from benchmarks.papers._experiment import RESULTS, Experiment, cells_with_follow_up, experiment_of
from benchmarks.papers._journal import Journal, key_of
from benchmarks.papers._tables import frame_of, write_tables

JOURNALS = Path(__file__).resolve().parent / "journals"
TABLES = Path(__file__).resolve().parent / "tables"


def ship(name: str, folder: Path = RESULTS, journals: Path = JOURNALS) -> Path:
    """Compress what the newest version of the code that finished the full experiment has measured."""
    experiment = experiment_of(name)
    rows = Journal(folder / f"{experiment.journal}-full.jsonl").rows()
    codes = dict.fromkeys(row["code"] for row in rows)  # in the order in which they began
    complete = []
    for code in codes:
        lines = {key_of(row["cell"]): row for row in rows if row["code"] == code}
        found, missing = _lines_of(experiment, lines)
        if not missing:
            complete.append(found)
    if not complete:
        raise ValueError(f"no version of the code has finished all cells of {name}; {len(codes)} have begun.")
    path = journals / f"{name}.jsonl.xz"
    path.parent.mkdir(parents=True, exist_ok=True)
    content = "".join(json.dumps(row, sort_keys=True) + "\n" for row in complete[-1])
    path.write_bytes(lzma.compress(content.encode(), preset=9))
    return path


def shipped_names(journals: Path = JOURNALS) -> list[str]:
    """Name the experiments whose journals are shipped."""
    return sorted(path.name.removesuffix(".jsonl.xz") for path in journals.glob("*.jsonl.xz"))


def shipped_rows(name: str, journals: Path = JOURNALS) -> list[dict[str, Any]]:
    """Read a shipped journal, measured by one version of the code; :func:`ship` checked that no cell is missing."""
    content = lzma.decompress((journals / f"{name}.jsonl.xz").read_bytes()).decode()
    rows = [json.loads(line) for line in content.splitlines()]
    if len({row["code"] for row in rows}) != 1:
        raise ValueError(f"the journal of {name} was measured by several versions of the code.")
    return rows


def tables_of_shipped(name: str, output: Path = TABLES, journals: Path = JOURNALS) -> str:
    """Write the tables and figures of a shipped journal, and return them as Markdown."""
    experiment = experiment_of(name)
    frame = frame_of(shipped_rows(name, journals))
    if experiment.figures is not None:
        experiment.figures(frame, output)
    return write_tables(experiment.tables(frame), RESULTS, f"{name}-full", output)


def _lines_of(experiment: Experiment, lines: dict[str, Any]) -> tuple[list[dict[str, Any]], int]:
    """Return the lines of all cells of the full experiment, and how many of them are missing."""
    cells = cells_with_follow_up(experiment, "full", lambda some: [lines[k] for k in map(key_of, some) if k in lines])
    keys = [key_of(cell) for cell in cells]
    return [lines[key] for key in keys if key in lines], sum(key not in lines for key in keys)
