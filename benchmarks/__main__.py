"""Run the registered cases, print a table, write JSON. See the package's docstring."""

import argparse
import contextlib
import importlib
import json
import os
import platform
import statistics
import sys
import time
from pathlib import Path

from threadpoolctl import threadpool_limits

from benchmarks._case import CASES, Case, Peer, Quantities, Timings

_HERE = Path(__file__).resolve().parent


def _seconds(call) -> float:
    if isinstance(call, Peer):
        return call.seconds()
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _measure(timings: Timings) -> tuple[float, float]:
    """Time both sides in turn, after one warm-up each, and return the medians per unit of work.

    Both compute in one thread: threads that wait for each other on a busy machine took up to ten times as long.
    """
    with threadpool_limits(1), contextlib.ExitStack() as stack:
        if isinstance(timings.other, Peer):
            stack.enter_context(timings.other)
        ours, other = [], []
        for _ in range(timings.repeats + 1):
            ours.append(_seconds(timings.ours) / timings.ours_work)
            other.append(_seconds(timings.other) / timings.other_work)
    return statistics.median(ours[1:]), statistics.median(other[1:])


def run(case: Case) -> dict:
    """Run one case and say whether its target holds."""
    made = case.make()
    if isinstance(made, Timings):
        ours, other = _measure(made)
        value = ours / other if case.kind == "ratio_at_most" else other / ours
    else:
        ours, other = made.ours, made.other
        value = other - ours if case.kind == "shortfall_at_most" else ours
    holds = value >= case.target if case.kind.endswith("at_least") else value <= case.target
    row = {"topic": case.topic, "case": case.title, "ours": ours, "other": other, "kind": case.kind}
    return row | {
        "reason": case.reason,
        "value": value,
        "target": case.target,
        "holds": bool(holds),
        "timed": not isinstance(made, Quantities),
    }


def _number(value: float | None, timed: bool) -> str:
    if value is None:
        return "-"
    if not timed:
        return f"{value:.4g}"
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns"


def _table(rows: list[dict]) -> str:
    words = {
        "ratio_at_most": "ratio <=",
        "speedup_at_least": "speed-up >=",
        "shortfall_at_most": "shortfall <=",
        "at_most": "<=",
        "at_least": ">=",
    }
    cells = [("case", "ours", "other", "value", "target", "holds")]
    for row in rows:
        cells.append(
            (
                f"{row['topic']}: {row['case']}",
                _number(row["ours"], row["timed"]),
                _number(row["other"], row["timed"]),
                f"{row['value']:.3g}",
                f"{words[row['kind']]} {row['target']:g}",
                "yes" if row["holds"] else "NO",
            )
        )
    widths = [max(len(line[j]) for line in cells) for j in range(len(cells[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in cells)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", metavar="TOPIC", action="append", help="run the cases of this topic alone")
    parser.add_argument("--list", action="store_true", help="list the cases and stop")
    parser.add_argument("--json", type=Path, default=_HERE / "results" / "latest.json", help="where to write the rows")
    options = parser.parse_args()
    # What pip installs is compiled. New processes of ours would otherwise compile the package again at every start.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

    for path in sorted(_HERE.glob("case_*.py")):
        importlib.import_module(f"benchmarks.{path.stem}")
    topics = sorted({case.topic for case in CASES})
    chosen = [case for case in CASES if (case.topic in options.only if options.only else not case.study)]
    if not chosen:
        print(
            f"no case of topic {', '.join(options.only or [])}; topics are: {', '.join(topics)}",
            file=sys.stderr,
        )
        return 2
    if options.list:
        print("\n".join(f"{case.topic}: {case.title}" for case in chosen))
        return 0

    rows = []
    for number, case in enumerate(chosen, 1):
        print(f"[{number}/{len(chosen)}] {case.topic}: {case.title}", file=sys.stderr, flush=True)
        started = time.perf_counter()
        rows.append(run(case) | {"seconds_of_case": time.perf_counter() - started})
        print(f"    {'holds' if rows[-1]['holds'] else 'MISSED'}, {rows[-1]['seconds_of_case']:.0f} s", file=sys.stderr)
    print(_table(rows))
    missed = [row for row in rows if not row["holds"]]
    minutes = sum(row["seconds_of_case"] for row in rows) / 60
    print(f"\n{len(rows) - len(missed)} of {len(rows)} targets hold; {minutes:.1f} minutes.")
    for row in missed:
        reason = f": {row['reason']}" if row["reason"] else ""
        print(f"missed: {row['topic']}: {row['case']} ({row['value']:.3g}, target {row['target']:g}){reason}")
    if studies := sorted({case.topic for case in CASES if case.study and case not in chosen}):
        print(f"Not run, because they take many minutes: studies of {', '.join(studies)}; --only runs them.")
    options.json.parent.mkdir(parents=True, exist_ok=True)
    about = {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "time": time.strftime("%Y-%m-%d %H:%M"),
    }
    options.json.write_text(json.dumps({"about": about, "rows": rows}, indent=2))
    return int(bool(missed))


if __name__ == "__main__":
    if sys.argv[1:2] == ["growth"]:
        from benchmarks import growth

        sys.exit(growth.main(sys.argv[2:]))
    sys.exit(main())
