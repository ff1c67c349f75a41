"""The ``skfairdp`` command."""

import argparse
import importlib.metadata
import platform
import sys
from collections.abc import Sequence

from skfairdp import __version__

_SHOWN = ("numpy", "scipy", "pandas", "scikit-learn", "torch", "skorch", "fairlearn", "matplotlib", "joblib")


def _versions() -> str:
    lines = [f"skfairdp {__version__}", f"python {platform.python_version()}"]
    lines += [f"{name} {importlib.metadata.version(name)}" for name in _SHOWN]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    parser = argparse.ArgumentParser(
        prog="skfairdp", description="Private and fair machine learning with scikit-learn."
    )
    parser.add_argument("--version", action="version", version=f"skfairdp {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="command")
    commands.add_parser("versions", help="print the versions of skfairdp and what it stands on (for bug reports)")
    chosen = parser.parse_args(arguments)
    if chosen.command == "versions":
        print(_versions())
        return 0
    parser.print_help()
    return 0


if __name__ == "__main__":
    sys.exit(main())
