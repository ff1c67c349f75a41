"""Plant the faults of the list one by one, and tell which of them the tests find. See the package's docstring."""

import argparse
import os
import sys
import time
from collections import Counter

from tests.mutants._hunt import hunt, unchanged_tree_passes
from tests.mutants._mutant import read_mutants


def main(arguments: list[str] | None = None) -> int:
    """Read the command line, and return 1 if there is anything to mend."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--only", default="", metavar="WORD", help="only mutants whose name contains this")
    parser.add_argument("--n-jobs", type=int, default=os.cpu_count() or 1, help="at a time; all cores by default")
    parser.add_argument("--verbose", action="store_true", help="print what pytest printed, of each")
    options = parser.parse_args(arguments)
    mutants = read_mutants(only=options.only)
    if not mutants:
        print(f"no mutant has {options.only!r} in its name.")
        return 1
    started = time.perf_counter()
    print(f"{len(mutants)} mutants; first, their tests without them", flush=True)
    all_pass, output = unchanged_tree_passes(mutants, options.n_jobs)
    if not all_pass:
        print(output)
        print("these tests fail without any fault; mend them first.")
        return 1
    outcomes = []
    for outcome in hunt(mutants, options.n_jobs):
        outcomes.append(outcome)
        place = f"[{len(outcomes):{len(str(len(mutants)))}}/{len(mutants)}]"
        print(f"{place} {outcome.fate:8} {outcome.seconds:6.1f} s  {outcome.mutant.name}", flush=True)
        if options.verbose:
            print(outcome.output)
    wrong = [outcome for outcome in outcomes if not outcome.is_fine]
    for outcome in wrong:
        mutant = outcome.mutant
        print(f"\n{outcome.fate}: {mutant.name} ({mutant.file})\n  {mutant.why}\n  {' '.join(mutant.tests)}")
        if outcome.fate != "survived":
            print(outcome.output)
    counts = Counter(outcome.fate for outcome in outcomes)
    summary = ", ".join(f"{count} {fate}" for fate, count in sorted(counts.items()))
    print(f"\n{summary}, in {time.perf_counter() - started:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
