"""What an experiment is, and how one is run: on all cores, one thread each, only the cells that its journal lacks."""

import importlib
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from joblib import Parallel, delayed, parallel_config
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from benchmarks.papers._code_version import code_version
from benchmarks.papers._journal import Journal
from benchmarks.papers._tables import frame_of, write_tables

Cell = dict[str, Any]
Measure = Callable[[Cell], dict[str, Any]]

#: The file of each experiment, imported when it is asked for: some import torch.
FILES = {
    "ome": "ome",
    "dpnr": "dpnr",
    "federate-adult": "federate_paper",
    "federate-celeba": "federate_paper",
    "federate-adult-trees": "federate_paper",
    "federate-celeba-trees": "federate_paper",
    "federate-adult-guide": "federate_guide",
    "federate-adult-combinations": "federate_combinations",
    "federate-celeba-combinations": "federate_combinations",
    "fair-private-guide": "fair_private_guide",
    "pate": "pate_paper",
    "pate-guide": "pate_guide",
    "biased-text": "biased_text",
    "static-embeddings": "static_embeddings",
    "private-search": "private_search",
    "private-training": "private_training",
    "pate-defaults": "pate_defaults",
}
RESULTS = Path(__file__).resolve().parents[1] / "results" / "papers"


@dataclass(frozen=True)
class Experiment:
    """What is to be measured, how, and how it is shown; the package's docstring says more about each part."""

    journal: str
    cells: Callable[[str], list[Cell]]
    measure: Measure
    tables: Callable[[pd.DataFrame], dict[str, pd.DataFrame]]
    figures: Callable[[pd.DataFrame, Path], None] | None = None
    follow_up: Callable[[pd.DataFrame], list[Cell]] | None = None


def experiment_of(name: str) -> Experiment:
    """Return the experiment of this name."""
    return importlib.import_module(f"benchmarks.papers.{FILES[name]}").EXPERIMENTS[name]


def reproduce(
    name: str,
    mode: str,
    folder: Path = RESULTS,
    *,
    output: Path | None = None,
    n_jobs: int = 1,
    only: str = "",
    report: bool = False,
    accept_old_code: bool = False,
) -> str:
    """Measure what is missing of an experiment, write its tables, and return them as Markdown."""
    experiment = experiment_of(name)
    path = folder / f"{experiment.journal}-{mode}.jsonl"
    journal = Journal(path, code_version(), accept_old_code=accept_old_code)
    cells = [cell for cell in experiment.cells(mode) if only in str(cell)]
    if not report:
        run_cells(experiment.measure, cells, journal, n_jobs=n_jobs)
    if experiment.follow_up is not None and (rows := journal.finished(cells)):
        cells += experiment.follow_up(frame_of(rows))  # what can be named only after a choice among the first cells
        if not report:
            run_cells(experiment.measure, cells, journal, n_jobs=n_jobs)
    rows, old = journal.finished(cells), journal.of_other_code(cells)
    if not rows:
        hint = f" Other code has finished {old} of them; --accept-old-code shows these." if old else ""
        return f"{path} holds no finished cell of this experiment.{hint}"
    frame = frame_of(rows)
    if experiment.figures is not None:
        experiment.figures(frame, folder if output is None else output)
    note = ""
    if old:
        note = f"{old} of {len(cells)} cells were measured by other code; they are "
        note += "in these tables." if accept_old_code else "not in these tables."
    return write_tables(experiment.tables(frame), folder, f"{name}-{mode}", output, note=note)


def cells_with_follow_up(
    experiment: Experiment, mode: str, finished: Callable[[list[Cell]], list[dict[str, Any]]]
) -> list[Cell]:
    """All cells: those that are known from the start, and those that can be named only after a choice among them."""
    cells = experiment.cells(mode)
    if experiment.follow_up is not None and (rows := finished(cells)):
        cells = cells + experiment.follow_up(frame_of(rows))
    return cells


def run_cells(measure: Measure, cells: list[Cell], journal: Journal, *, n_jobs: int = 1) -> int:
    """Measure what is missing; return how many cells were measured.

    Only this process writes the journal, so that no two workers' lines can mix.
    """
    with journal:
        todo = journal.missing(cells)
        if old := journal.of_other_code(cells):
            what = "kept" if journal.accept_old_code else "measured again (--accept-old-code keeps them)"
            print(f"{old} of {len(cells)} cells were measured by other code; they are {what}.", file=sys.stderr)
        backend = {"backend": "loky", "inner_max_num_threads": 1} if n_jobs != 1 else {"backend": "sequential"}
        with (
            parallel_config(n_jobs=n_jobs, **backend),
            tqdm(total=len(cells), initial=len(cells) - len(todo), unit="cell") as bar,
        ):
            finished = Parallel(return_as="generator_unordered")(delayed(_one)(measure, cell) for cell in todo)
            for cell, result in finished:
                journal.append(cell, result)
                bar.update()
    return len(todo)


def _one(measure: Measure, cell: Cell) -> tuple[Cell, dict[str, Any]]:
    """Measure one cell, with what it cost."""
    from skfairdp.neural import limit_threads

    wall, cpu = time.perf_counter(), time.process_time()
    with threadpool_limits(1), limit_threads(1):
        try:
            result = measure(cell)
        except Exception as error:
            raise RuntimeError(f"the cell {cell} failed: {type(error).__name__}: {error}") from error
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform == "darwin" else 1)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return cell, {**result, "seconds": wall, "cpu_seconds": cpu, "peak_mb": kilobytes / 1024}
