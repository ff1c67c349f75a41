"""Reproduce a table or figure of a paper. See the package's docstring."""

import argparse
import importlib
import os
import sys
from pathlib import Path

from benchmarks.reproduce._journal import Journal
from benchmarks.reproduce._runner import run_cells
from benchmarks.reproduce._tables import frame_of, write_tables

TABLES = ("ome", "dpnr", "federate-adult", "federate-celeba", "pate")
_RESULTS = Path(__file__).resolve().parents[1] / "results" / "reproduce"


def reproduce(
    name: str,
    mode: str,
    folder: Path = _RESULTS,
    *,
    output: Path | None = None,
    n_jobs: int = 1,
    only: str = "",
    report: bool = False,
) -> str:
    """Measure what is missing of a table, write it, and return it as Markdown."""
    table = importlib.import_module(f"benchmarks.reproduce.{name.replace('-', '_')}")
    journal = Journal(folder / f"{name}-{mode}.jsonl")
    cells = [cell for cell in table.cells(mode) if only in str(cell)]
    if not report:
        run_cells(table.measure, cells, journal, n_jobs=n_jobs)
    if hasattr(table, "follow_up") and (rows := journal.finished(cells)):
        cells += table.follow_up(frame_of(rows))  # what can be named only after a choice among the first cells
        if not report:
            run_cells(table.measure, cells, journal, n_jobs=n_jobs)
    rows = journal.finished(cells)
    if not rows:
        return f"{journal.path} holds no finished cell of this table."
    frame = frame_of(rows)
    if hasattr(table, "figures"):
        table.figures(frame, folder if output is None else output)
    return write_tables(table.tables(frame), folder, f"{name}-{mode}", output)


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reproduce", description=__doc__)
    parser.add_argument("table", choices=TABLES)
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--quick", dest="mode", action="store_const", const="quick", help="minutes (default)")
    mode.add_argument("--full", dest="mode", action="store_const", const="full", help="the paper's protocol")
    parser.add_argument("--n-jobs", type=int, default=os.cpu_count() or 1, help="cells at a time; all cores by default")
    parser.add_argument("--only", default="", help="only cells whose settings contain this text")
    parser.add_argument("--report", action="store_true", help="measure nothing, print what the journal holds")
    parser.add_argument("--folder", type=Path, default=_RESULTS, help="of the journals")
    parser.add_argument("--output", type=Path, help="of CSV and figures; beside the journals by default")
    options = parser.parse_args()
    print(
        reproduce(
            options.table,
            options.mode or "quick",
            options.folder,
            output=options.output,
            n_jobs=options.n_jobs,
            only=options.only,
            report=options.report,
        )
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
