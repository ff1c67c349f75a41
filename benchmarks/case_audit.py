"""How long ``skfairdp audit`` takes on tables of a thousand to a million rows, and whether samples change the verdict.

Each size is a process of its own, from reading the file to the written report. Memory is that of all its processes
together, sampled while they run; of the thousand rows it is not, because looking took half a second of ten.
"""

import functools
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks import Quantities, case
from skfairdp.datasets import make_biased_classification

_GIB = 2**30


def people(n_rows: int, n_features: int = 10) -> pd.DataFrame:
    """Make a table in which two columns are words and a vendor has decided."""
    made = make_biased_classification(
        n_rows, n_features - 2, label_bias=0.3, group_shift=1.5, as_frame=True, random_state=0
    )
    generator = np.random.default_rng(0)
    frame = made.frame.round(3)
    frame["region"] = generator.choice(["north", "south", "east", "west"], n_rows)
    frame["job"] = np.where(frame["target"] == 1, "a", "b")
    frame.loc[generator.random(n_rows) < 0.7, "job"] = "c"
    frame["decision"] = (frame["x0"] + frame["x1"] + generator.normal(size=n_rows) > 0).astype(int)
    return frame


def memory_of(session: int) -> int:
    """Return the bytes that all processes of a session hold, pages that they share counted once."""
    total = 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if os.getsid(int(folder.name)) == session:
                line = next(row for row in (folder / "smaps_rollup").read_text().splitlines() if row.startswith("Pss:"))
                total += 1024 * int(line.split()[1])
        except (OSError, StopIteration):  # it has just ended
            continue
    return total


def run_audit(n_rows: int, n_features: int = 10, *, sample_memory: bool = True) -> tuple[float, float]:
    """Run the command on a table; return seconds and gibibytes (0 where memory is not sampled)."""
    with tempfile.TemporaryDirectory() as folder:
        people(n_rows, n_features).to_csv(Path(folder) / "people.csv", index=False)
        words = (
            "audit people.csv --target target --positive 1 --sensitive group --predictions decision --seed 0 --quiet"
        )
        started, peak = time.perf_counter(), 0
        process = subprocess.Popen(
            [sys.executable, "-m", "skfairdp.cli", *words.split()],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": str(Path(__file__).resolve().parent.parent)},
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        while sample_memory and process.poll() is None:
            peak = max(peak, memory_of(process.pid))
            time.sleep(0.2)
        process.wait()
        seconds = time.perf_counter() - started
    if process.returncode:
        raise RuntimeError(f"the audit of {n_rows} rows ended with exit code {process.returncode}")
    memory = f", {peak / _GIB:.2f} GiB" if sample_memory else ""
    print(f"  {n_rows:,} rows x {n_features} columns: {seconds:.1f} s{memory}", flush=True)
    return seconds, peak / _GIB


audit_of = functools.cache(run_audit)


@case(
    "audit",
    "10^3 rows, seconds",
    at_most=10,
    reason="seconds of this machine, a quarter of them for loading scikit-learn, scipy and pandas",
)
def thousand() -> Quantities:
    # Three runs, because the first may have to read its code from the disk.
    return Quantities(statistics.median(run_audit(1_000, sample_memory=False)[0] for _ in range(3)))


@case("audit", "10^4 rows, seconds", at_most=30)
def ten_thousand() -> Quantities:
    return Quantities(audit_of(10_000)[0])


@case("audit", "10^5 rows, seconds", at_most=90)
def hundred_thousand() -> Quantities:
    return Quantities(audit_of(100_000)[0])


@case("audit", "10^5 rows of 50 columns, seconds", study=True, at_most=200)
def wide() -> Quantities:
    return Quantities(audit_of(100_000, 50)[0])


@case("audit", "10^6 rows, seconds", at_most=300)
def million() -> Quantities:
    return Quantities(audit_of(1_000_000)[0])


@case("audit", "10^6 rows, GiB of memory", at_most=3 * 10**9 / _GIB)
def memory() -> Quantities:
    return Quantities(audit_of(1_000_000)[1])


@case(
    "audit",
    "samples against all rows: largest distance of two gaps, in half widths of the interval",
    study=True,
    at_most=1,
)
def samples() -> Quantities:
    """Compare an audit by samples of 20,000 rows with one for which every row was trained on and chosen by."""
    from skfairdp import audit_table

    frame = people(60_000)
    roles = {"target": "target", "pos_label": 1, "sensitive": "group", "predictions": "decision"}
    methods = ["logistic", "trees", "fair trees"]
    part, whole = (
        audit_table(frame, **roles, methods=methods, random_state=0, verbose=False, **limits)
        for limits in ({"n_train_rows": 20_000}, {"n_search_rows": 100_000})
    )
    half = (whole.table["tpr_gap_upper"] - whole.table["tpr_gap_lower"]) / 2
    print(f"  chosen by samples: {part.best}; by all rows: {whole.best}", flush=True)
    return Quantities(float(((part.table["tpr_gap"] - whole.table["tpr_gap"]).abs() / half).max()))
