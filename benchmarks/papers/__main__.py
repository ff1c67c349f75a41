"""Measure tables and figures of a paper or of the user guide again. See the package's docstring."""

import argparse
import os
import sys
from pathlib import Path

from benchmarks.papers._experiment import FILES, RESULTS, reproduce
from benchmarks.papers._shipped import TABLES, ship, shipped_names, tables_of_shipped


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.papers", description=__doc__)
    parser.add_argument(
        "experiment", choices=[*FILES, "tables"], help='"tables" makes those of the documents from the shipped journals'
    )
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--quick", dest="mode", action="store_const", const="quick", help="minutes (default)")
    mode.add_argument("--full", dest="mode", action="store_const", const="full", help="the whole protocol")
    parser.add_argument("--n-jobs", type=int, default=os.cpu_count() or 1, help="cells at a time; all cores by default")
    parser.add_argument("--only", default="", help="only cells whose settings contain this text")
    parser.add_argument("--report", action="store_true", help="measure nothing, print what the journal holds")
    parser.add_argument(
        "--accept-old-code",
        action="store_true",
        help="do not measure again what other code, or other versions of numpy, torch and the like, have measured",
    )
    parser.add_argument("--folder", type=Path, default=RESULTS, help="of the journals")
    parser.add_argument("--output", type=Path, help="of CSV and figures; beside the journals by default")
    parser.add_argument("--ship", action="store_true", help="put what the journal holds into the repository")
    options = vars(parser.parse_args())
    if options["experiment"] == "tables":
        for name in shipped_names():
            print(tables_of_shipped(name, options["output"] or TABLES))
        return 0
    if options.pop("ship"):
        print(ship(options["experiment"], options["folder"]))
        return 0
    print(reproduce(options.pop("experiment"), options.pop("mode") or "quick", options.pop("folder"), **options))
    return 0


if __name__ == "__main__":
    sys.exit(main())
