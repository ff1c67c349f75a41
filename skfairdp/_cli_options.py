"""The options of the ``skfairdp`` command."""

import argparse
from typing import Any

from skfairdp import __version__

_EXIT_CODES = """\
exit codes:
  0    done
  1    a --fail-if condition holds, a gap grew (compare), or a --budget does not pay for the release
  2    wrong arguments, or a table that cannot be used
  130  interrupted; no half-written file is left
"""

#: The methods of an audit: those that are compared by default, then the others.
METHODS_SHOWN = (
    "logistic, trees, fair trees, fair private trees, federate, leace, pate; dp-sgd, unconstrained, noise, "
    "adversarial, inlp, fairlearn, threshold optimizer, private threshold optimizer"
)


def make_parser() -> argparse.ArgumentParser:
    """Make the parser of the whole command."""
    parser = argparse.ArgumentParser(
        prog="skfairdp",
        description="Private and fair machine learning: audit a table, privatise a table.",
        epilog=_EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"skfairdp {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="command")
    demo = _add_command(
        commands,
        "demo",
        "audit a made-up table: one command, no network, about a minute",
        "Audit a made-up table of people in two groups, and write the report.",
    )
    demo.add_argument("--rows", type=int, default=5000, metavar="N", help="number of people (default: 5000)")
    _add_output(demo)
    _add_audit(commands)
    _add_compare(commands)
    _add_privatize(commands)
    commands.add_parser("versions", help="print the versions of skfairdp and what it stands on (for bug reports)")
    return parser


def _add_audit(commands: Any) -> None:
    audit = _add_command(
        commands,
        "audit",
        "how fair are decisions about people, what do they leak, what could be had instead",
        "Judge decisions that are in a table, or a model of it, and compare methods that could take their place,\n"
        "on rows that they have not seen. Writes a report.",
        "skfairdp audit loans.csv --target repaid --positive yes --sensitive sex --predictions approved",
        "skfairdp audit loans.csv --target repaid --positive yes --sensitive sex --scores score --methods none",
        "skfairdp audit adult.csv --target income --sensitive sex --sensitive race --epsilon 4",
        'skfairdp audit adult.csv --target income --sensitive sex --methods "trees, fair trees, fair private trees"',
        'skfairdp audit adult.csv --target income --sensitive sex --fail-if "tpr_gap > 0.05" '
        '--fail-if "fair trees: accuracy < 0.8"',
    )
    audit.add_argument(
        "table",
        help="CSV, TSV, JSON lines, Parquet, Excel or SQLite file, also in a zip; FILE::PART names a table inside; "
        "- is standard input",
    )
    audit.add_argument("--target", required=True, metavar="COLUMN", help="the column with what is true")
    audit.add_argument(
        "--sensitive", required=True, action="append", metavar="COLUMN", help="a column of groups (may be repeated)"
    )
    audit.add_argument("--positive", metavar="LABEL", help="the favourable class (default: the larger of two, assumed)")
    what = audit.add_argument_group("what exists already (each may be repeated; NAME is what it is called)")
    named = {"action": "append", "default": [], "metavar": "[NAME=]COLUMN"}
    what.add_argument("--predictions", **named, help="a column with decisions, each a class of the target")
    what.add_argument("--scores", **named, help="a column with scores; larger speaks for the favourable class")
    what.add_argument(
        "--score-threshold", type=float, help="from which score on a decision is favourable (default: 0.5 for shares)"
    )
    what.add_argument(
        "--model",
        **{**named, "metavar": "[NAME=]FILE"},
        help="a fitted model, written by joblib.dump or skops; a joblib file can run any program: open only files you "
        "trust",
    )
    columns = audit.add_argument_group("columns (each may be repeated)")
    several = {"action": "append", "default": [], "metavar": "COLUMN"}
    columns.add_argument("--drop", **several, help="models may not use it")
    columns.add_argument("--features", **several, help="models may use no other")
    columns.add_argument("--control", **several, help="compare groups within its values")
    columns.add_argument("--weights", metavar="COLUMN", help="row weights, for every rate")
    columns.add_argument("--person", metavar="COLUMN", help="whose the row is: rows of one stay on one side of a split")
    columns.add_argument(
        "--keep-sensitive", action="store_true", help="let models use the sensitive columns as features"
    )
    how = audit.add_argument_group("how to judge")
    how.add_argument(
        "--fairness",
        choices=["equal_opportunity", "equalized_odds", "demographic_parity", "calibration"],
        default="equal_opportunity",
        help="what is compared between groups (default: %(default)s, true positive rates)",
    )
    how.add_argument("--methods", metavar="NAMES", help=f"with commas: all, none, or some of {METHODS_SHOWN}")
    how.add_argument("--epsilon", type=float, default=8.0, help="what private methods may spend (default: 8)")
    how.add_argument("--delta", type=float, default=1e-5, help="of methods that need one (default: 1e-5)")
    how.add_argument(
        "--choose-by",
        choices=["auto", "accuracy", "balanced_accuracy"],
        default="auto",
        help="what may be given up for fairness (default: accuracy, balanced where classes are unequal)",
    )
    how.add_argument("--threshold", type=float, default=0.01, help="how much of it (default: 0.01)")
    how.add_argument(
        "--fail-if",
        action="append",
        default=[],
        metavar="CONDITION",
        help='exit 1 if it holds for the system that exists, or else for the best plain model: "tpr_gap > 0.05"; or '
        'for the one that it names: "pate: accuracy < 0.8"',
    )
    audit.add_argument("--separator", metavar="CHARACTER", help="of a text table (default: found in its header)")
    audit.add_argument("--encoding", metavar="NAME", help="of a text table, such as cp1252 (default: UTF-8)")
    audit.add_argument(
        "--header",
        action=argparse.BooleanOptionalAction,
        help="whether the first line has names; without, columns are column_1, ... (default: it must look like names)",
    )
    _add_output(audit)


def _add_command(commands: Any, name: str, summary: str, description: str, *examples: str) -> argparse.ArgumentParser:
    shown = "".join(f"  {example}\n" for example in examples)
    return commands.add_parser(
        name,
        help=summary,
        description=description,
        epilog=(f"examples:\n{shown}\n" if examples else "") + _EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def _add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", default="skfairdp-report.html", metavar="FILE", help="report (default: %(default)s)")
    parser.add_argument("--json", metavar="FILE", help="also write all numbers as JSON")
    parser.add_argument("--markdown", metavar="FILE", help="also write findings and a model card as Markdown")
    parser.add_argument("--seed", type=int, help="of splits, training and noise (default: drawn, and told)")
    parser.add_argument(
        "--jobs", type=int, metavar="N", help="number of processes (default: all processors where that saves time)"
    )
    parser.add_argument("--quiet", action="store_true", help="no progress on standard error")


def _add_compare(commands: Any) -> None:
    parser = _add_command(
        commands,
        "compare",
        "the same system at two dates: did a gap grow",
        "Compare two audits of the same system, an earlier and a later one: changes of gap, accuracy,\n"
        "selection ratio and leakage with 95% intervals. Fails if the gap of a system (without one: of the\n"
        "reference) grew beyond chance.",
        "skfairdp compare january.json june.json",
        "skfairdp compare january.json june.json --fail-if-worse 2",
    )
    parser.add_argument("before", metavar="A", help="the earlier audit, written by `skfairdp audit ... --json A`")
    parser.add_argument("after", metavar="B", help="the later one")
    parser.add_argument(
        "--fail-if-worse",
        type=float,
        metavar="POINTS",
        help="exit 1 only if a gap grew by more than so many percentage points (default: by more than chance)",
    )


def _add_privatize(commands: Any) -> None:
    parser = _add_command(
        commands,
        "privatize",
        "release noisy columns of a table, with a guarantee beside them",
        "Read a table block by block, add noise to the named columns, and write them with a guarantee\n"
        "(OUT.guarantee.json) that says what the noise is worth. Other columns are left out unless --keep\n"
        "names them. Epsilon is the price of a whole row, however many columns are named.\n\n"
        "Every row is checked before any is released: a text table in which a row has a value too many or too\n"
        'few is refused with the number of the line. While rows are written, a guarantee that says "unfinished"\n'
        "lies beside them, so that a run that is killed leaves no row without one.",
        "skfairdp privatize embeddings.csv out.csv --epsilon 8 --columns h0,h1,h2,h3",
        "skfairdp privatize people.csv out.csv --epsilon 8 --columns age,hours --bounds age=0:100 --bounds hours=0:80",
        "skfairdp privatize people.csv out.csv --epsilon 1 --columns age,hours --ledger people.ledger "
        "--create-ledger --budget 3",
    )
    parser.add_argument("source", metavar="IN", help="CSV, TSV or Parquet file")
    parser.add_argument("target", metavar="OUT", help="file to write; its name tells the format")
    parser.add_argument("--columns", required=True, metavar="NAMES", help="columns to privatise, with commas")
    parser.add_argument("--keep", default="", metavar="NAMES", help="columns to copy without protection, with commas")
    parser.add_argument("--epsilon", type=float, help="privacy loss of one row")
    parser.add_argument(
        "--delta", type=float, default=1e-5, help="of --mechanism gaussian and --budget (default: 1e-5)"
    )
    parser.add_argument("--mechanism", choices=["laplace", "gaussian"], default="laplace")
    parser.add_argument(
        "--norm",
        choices=["l1", "l2", "minmax", "clip"],
        help="how rows are bounded before noise (default: l1; clip with --bounds)",
    )
    parser.add_argument("--radius", type=float, default=1.0, help="the norm that rows have then (default: 1)")
    parser.add_argument(
        "--bounds",
        action="append",
        default=[],
        metavar="COLUMN=LOW:HIGH",
        help="public limits of a column, never read off the rows (may be repeated; for all columns or none)",
    )
    parser.add_argument(
        "--privatizer", metavar="FILE", help="a fitted privatizer, written by joblib.dump; open only files you trust"
    )
    parser.add_argument("--separator", metavar="CHARACTER", help="of a text table (default: found in its header)")
    parser.add_argument("--force", action="store_true", help="overwrite OUT and its guarantee")
    parser.add_argument(
        "--ledger",
        metavar="FILE",
        help="account in which releases of a table add up; charged once for all rows, before the first is written",
    )
    parser.add_argument("--create-ledger", action="store_true", help="make FILE if it is not there")
    parser.add_argument(
        "--budget",
        type=float,
        metavar="EPSILON",
        help="refuse what would make a record lose more than this in all (at --delta)",
    )
    parser.add_argument(
        "--records",
        metavar="NAME",
        help="the table's name in the ledger; tables of different names must share no record",
    )
