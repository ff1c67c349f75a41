"""How cost per row and memory grow with the number of rows: ``python -m benchmarks growth``.

Each operation of ``_growth_operations.py`` runs at 10^4, 10^5, 10^6 and, where it is cheap, 10^7 rows, in a process
of its own and on one thread. What is counted is processor time, which other programs on the machine disturb less than
the clock. Memory is what a process holds at its peak beyond the data it was given. The **growth** is the largest
ratio of the cost per row at one size to that at the size before, from the second size on; an operation **holds** if
that is at most 1.5. The **slope** is that of log cost over log rows: 1 where the cost per row is constant.

``benchmarks/growth.json`` keeps the measurements that are shipped; table and figure of the docs, ``growth.csv`` and
``growth.svg`` beside it, are made from it. ``--only WORD`` measures operations whose name contains a word,
``--up-to N`` leaves larger sizes out, and ``--draw`` only makes table and figure again.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks._growth_operations import OPERATIONS, frame_of, measured

FOLDER = Path(__file__).resolve().parent
JOURNAL = FOLDER / "growth.json"
MOST_GROWTH = 1.5
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def summary(frame: pd.DataFrame) -> pd.DataFrame:
    """One line for each operation: cost per row at each size, growth, slope, memory at the largest two."""
    lines = []
    for name, group in frame.groupby("operation", sort=False):
        cost = (group["seconds"] / group["rows"]).to_numpy()
        slope = np.polyfit(np.log(group["rows"]), np.log(group["seconds"]), 1)[0] if len(group) > 1 else np.nan
        tenfolds = np.diff(np.log10(group["rows"]))
        later = (cost[1:] / cost[:-1]) ** (1 / tenfolds)  # a smaller step is judged as if it went on to ten times
        judged = later[1:] if len(later) > 1 else later  # start-up shows in the first decade
        growth = judged.max() if len(judged) else np.nan
        lines.append(
            {
                "operation": name,
                "rows, up to": f"{group['rows'].max():,}",
                "microseconds per row": " / ".join(
                    f"{1e6 * value:.3g}" if value < 1e-4 else f"{1e6 * value:.0f}" for value in cost
                ),
                "peak MB": " / ".join(f"{value:.0f}" for value in group["megabytes"]),
                "growth": f"{growth:.2f}",
                "slope": f"{slope:.2f}",
                "holds": "yes" if growth <= MOST_GROWTH else "no",
            }
        )
    return pd.DataFrame(lines)


def draw(frame: pd.DataFrame, path: Path) -> None:
    """Cost per row and peak memory over rows, one line for each operation."""
    import matplotlib.pyplot as plt

    from benchmarks.papers._tables import save_figure

    figure, axes = plt.subplots(1, 2, figsize=(10, 5.6), layout="constrained")
    groups = [(name, group) for name, group in frame.groupby("operation", sort=False) if "instead" not in name]
    colours = plt.get_cmap("tab20")(np.linspace(0, 1, len(groups)))
    for (name, group), colour in zip(groups, colours):
        style = {"color": colour, "marker": "o", "markersize": 3.5, "linewidth": 1.4, "label": name}
        axes[0].loglog(group["rows"], 1e6 * group["seconds"] / group["rows"], **style)
        axes[1].loglog(group["rows"], group["megabytes"].clip(lower=0.3), **style)
    axes[0].set(xlabel="rows", ylabel="microseconds of one processor per row", title="Cost per row: flat is linear")
    axes[1].set(xlabel="rows", ylabel="megabytes beyond the data", title="Peak memory: flat is by the block")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=7, frameon=False)
    save_figure(figure, path)


def write_documents(folder: Path = FOLDER, journal: Path = JOURNAL) -> pd.DataFrame:
    """Make table and figure from the shipped measurements, and from nothing else."""
    frame = frame_of(json.loads(journal.read_text())["rows"])
    table = summary(frame)
    table.to_csv(folder / "growth.csv", index=False)
    draw(frame, folder / "growth.svg")
    return table


def _measure(name: str, n: int) -> dict[str, Any]:
    """Measure in a new process, which starts with nothing in memory."""
    command = [sys.executable, "-m", "benchmarks", "growth", "--child", name, str(n)]
    done = subprocess.run(command, cwd=FOLDER.parent, env=os.environ | _ONE_THREAD, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise RuntimeError(f"{name} at {n:,} rows ended with exit code {done.returncode}")
    return {"operation": name, "rows": n, **json.loads(done.stdout.splitlines()[-1])}


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks growth", description=__doc__)
    parser.add_argument("--only", metavar="WORD", action="append", help="operations whose name contains a word")
    parser.add_argument("--up-to", metavar="N", type=float, default=1e7, help="the largest number of rows")
    parser.add_argument("--draw", action="store_true", help="measure nothing; make table and figure again")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args(words)
    if options.child:
        print(json.dumps(measured(options.child[0], int(options.child[1]))))
        return 0
    known = json.loads(JOURNAL.read_text())["rows"] if JOURNAL.exists() else []
    rows = {(row["operation"], row["rows"]): row for row in known if row["operation"] in OPERATIONS}
    for name, operation in OPERATIONS.items():
        if options.draw or (options.only and not any(word in name for word in options.only)):
            continue
        for n in operation.sizes:
            if n <= options.up_to:
                rows[name, n] = row = _measure(name, n)
                cost = 1e6 * row["seconds"] / n
                print(f"{name}, {n:,}: {cost:.3g} us per row, {row['megabytes']:.0f} MB", file=sys.stderr, flush=True)
                about = {"python": platform.python_version(), "machine": platform.machine()}
                content = {"about": about, "rows": [rows[key] for key in sorted(rows)]}
                JOURNAL.write_text(json.dumps(content, indent=1) + "\n")
    table = write_documents()
    print(table.to_string(index=False))
    for name in table.loc[table["holds"] == "no", "operation"]:
        print(f"grows: {name}. {OPERATIONS[name].reason}")
    unexplained = [name for name in table.loc[table["holds"] == "no", "operation"] if not OPERATIONS[name].reason]
    return int(bool(unexplained))
