"""Run the cells that a journal does not have yet, on all cores, one thread each."""

import resource
import sys
import time
from collections.abc import Callable
from typing import Any

from joblib import Parallel, delayed, parallel_config
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from benchmarks.reproduce._journal import Journal

Measure = Callable[[dict[str, Any]], dict[str, Any]]


def run_cells(measure: Measure, cells: list[dict[str, Any]], journal: Journal, *, n_jobs: int = 1) -> int:
    """Measure what is missing; return how many cells were measured.

    Only this process writes the journal, so that no two workers' lines can mix.
    """
    with journal:
        todo = journal.missing(cells)
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


def _one(measure: Measure, cell: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
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
