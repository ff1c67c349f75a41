"""The ``skfairdp`` command."""

import argparse
import contextlib
import importlib.metadata
import os
import platform
import shlex
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from skfairdp import __version__

_SHOWN = ("numpy", "scipy", "pandas", "scikit-learn", "torch", "skorch", "fairlearn", "matplotlib", "joblib")

EXIT_OK, EXIT_FORBIDDEN, EXIT_BAD_INPUT, EXIT_INTERRUPTED = 0, 1, 2, 130

_EXIT_CODES = """\
exit codes:
  0    done
  1    a --fail-if condition holds, a gap grew (compare), or a --budget does not pay for the release
  2    wrong arguments, or a table that cannot be used
  130  interrupted; no half-written file is left
"""

_METHODS = (
    "logistic, trees, fair trees, fair private trees, federate, leace, pate; unconstrained, noise, adversarial, inlp, "
    "fairlearn, threshold optimizer, private threshold optimizer"
)


def _parser() -> argparse.ArgumentParser:
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
    how.add_argument("--methods", metavar="NAMES", help=f"with commas: all, none, or some of {_METHODS}")
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
    audit.add_argument("--no-header", action="store_true", help="the first line is a row: columns are column_1, ...")
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


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _demo_frame(n_rows: int) -> Any:
    from skfairdp.datasets import make_biased_classification

    data = make_biased_classification(
        n_rows, 8, class_sep=2.2, label_bias=0.4, group_shift=2.5, as_frame=True, random_state=0
    )
    frame = data.frame.rename(columns={"target": "hired"})
    return frame.assign(hired=frame["hired"].map({0: "no", 1: "yes"}), group=frame["group"].map({0: "A", 1: "B"}))


def _demo(chosen: argparse.Namespace) -> int:
    seed = 0 if chosen.seed is None else chosen.seed
    command = f"skfairdp demo --rows {chosen.rows} --seed {seed}"
    return _run_audit(
        _demo_frame(chosen.rows),
        chosen,
        {"target": "hired", "sensitive": ["group"], "random_state": seed},
        command,
        "Demonstration: a made-up table",
    )


def _named_values(texts: Sequence[str]) -> dict[str, str]:
    """Read ``NAME=VALUE``; a value without a name is called by itself."""
    named: dict[str, str] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        name, value = (name, value) if sign else (text, text)
        if name in named:
            raise ValueError(f"{name!r} is given twice; give one of them another name (NAME=...).")
        named[name] = value
    return named


def _audit(chosen: argparse.Namespace) -> int:
    from skfairdp.random import random_stream
    from skfairdp.table_audit import FailCondition, load_model, method_names
    from skfairdp.table_files import read_table

    conditions = [FailCondition.parse(text) for text in chosen.fail_if]
    predictions, scores = _named_values(chosen.predictions), _named_values(chosen.scores)
    models = {Path(name).stem: path for name, path in _named_values(chosen.model).items()}
    named = None if chosen.methods is None else _names(chosen.methods)
    if named is None and models:
        named = method_names()
    for condition in conditions:
        condition.check_method([*predictions, *scores, *models, *(method_names() if named is None else named)])
    methods: Any = named
    if models:
        methods = [name for name in named or [] if name != "none"]
        methods = [*(method_names(everything=True) if methods == ["all"] else methods)]
        methods += [(name, load_model(path)) for name, path in models.items()]
    frame = read_table(
        chosen.table,
        separator=chosen.separator,
        encoding=chosen.encoding,
        header=False if chosen.no_header else None,
    )
    arguments = {
        "target": chosen.target,
        "sensitive": chosen.sensitive,
        "predictions": predictions or None,
        "scores": scores or None,
        "score_threshold": chosen.score_threshold,
        "methods": methods,
        "fairness": chosen.fairness,
        "pos_label": chosen.positive,
        "control": chosen.control,
        "weights": chosen.weights,
        "person": chosen.person,
        "drop": chosen.drop,
        "features": chosen.features or None,
        "keep_sensitive": chosen.keep_sensitive,
        "epsilon": chosen.epsilon,
        "delta": chosen.delta,
        "choose_by": chosen.choose_by,
        "relaxation_threshold": chosen.threshold,
        "random_state": random_stream(None).seed() if chosen.seed is None else chosen.seed,
    }
    title = "Audit of standard input" if chosen.table == "-" else f"Audit of {Path(chosen.table).name}"
    command = _command_to_repeat(chosen, arguments["random_state"])
    return _run_audit(frame, chosen, arguments, command, title, conditions, {"file_sha256": frame.attrs["file_sha256"]})


def _command_to_repeat(chosen: argparse.Namespace, seed: int) -> str:
    words = ["skfairdp", "audit", chosen.table, "--target", chosen.target]
    for option in ("sensitive", "predictions", "scores", "model", "drop", "features", "control"):
        words += [word for value in getattr(chosen, option) for word in (f"--{option}", value)]
    for option, value in (
        ("--positive", chosen.positive),
        ("--score-threshold", None if chosen.score_threshold is None else f"{chosen.score_threshold:g}"),
        ("--weights", chosen.weights),
        ("--person", chosen.person),
        ("--fairness", chosen.fairness),
        ("--epsilon", f"{chosen.epsilon:g}"),
        ("--delta", f"{chosen.delta:g}"),
        ("--methods", chosen.methods),
        ("--choose-by", chosen.choose_by),
        ("--threshold", f"{chosen.threshold:g}"),
        ("--separator", chosen.separator),
        ("--encoding", chosen.encoding),
        ("--seed", str(seed)),
    ):
        words += [] if value is None else [option, value]
    words += ["--keep-sensitive"] * chosen.keep_sensitive + ["--no-header"] * chosen.no_header
    return shlex.join(words)


def _has_colour(stream: Any) -> bool:
    """Say whether a stream is a terminal that wants colours (https://no-color.org)."""
    return bool(getattr(stream, "isatty", lambda: False)()) and "NO_COLOR" not in os.environ


def _run_audit(
    frame: Any,
    chosen: argparse.Namespace,
    arguments: dict[str, Any],
    command: str,
    title: str,
    fail_conditions: Sequence[Any] = (),
    more_settings: dict[str, Any] | None = None,
) -> int:
    from dataclasses import replace

    from skfairdp.table_audit import audit_table, printable
    from skfairdp.table_files import check_writable

    for path in filter(None, (chosen.out, chosen.json, chosen.markdown)):
        check_writable(path)
    result = audit_table(frame, **arguments, n_jobs=chosen.jobs, verbose=not chosen.quiet)
    result = replace(result, command=command, title=title, settings=result.settings | (more_settings or {}))
    result.to_html(chosen.out)
    if chosen.json:
        result.to_json(chosen.json)
    if chosen.markdown:
        result.to_markdown(chosen.markdown)
    print(result.to_text(colour=_has_colour(sys.stdout)))
    for note in result.notes:
        if "left out, because" in note:
            print(f"\nnote: {printable(note)}")
    print(f"\nreport: {os.path.abspath(chosen.out)}")
    reasons = [reason for condition in fail_conditions if (reason := condition.reason_to_fail(result)) is not None]
    for reason in reasons:
        print(f"skfairdp: failed: {printable(reason)}", file=sys.stderr)
    return EXIT_FORBIDDEN if reasons else EXIT_OK


def _compare(chosen: argparse.Namespace) -> int:
    from skfairdp.table_audit import compare_audits, printable

    worst = chosen.fail_if_worse
    if worst is not None and not worst >= 0:  # nan too
        raise ValueError(f"--fail-if-worse must be a number of at least 0; got {worst:g}.")
    comparison = compare_audits(chosen.before, chosen.after)
    for sentence in comparison.sentences:
        print(printable(sentence))
    reasons = comparison.reasons_to_fail(worst)
    for reason in reasons:
        print(f"skfairdp: failed: {printable(reason)}", file=sys.stderr)
    return EXIT_FORBIDDEN if reasons else EXIT_OK


def _check_ledger(chosen: argparse.Namespace) -> None:
    """Say what is wrong with the ledger's options before hours of work, and make no file."""
    if chosen.ledger is None:
        for option in ("--create-ledger", "--budget", "--records"):
            if getattr(chosen, option[2:].replace("-", "_")) not in (None, False):
                raise ValueError(f"{option} is about a ledger; name its file with --ledger.")
        return
    if os.path.realpath(chosen.ledger) in map(os.path.realpath, (chosen.target, f"{chosen.target}.guarantee.json")):
        raise ValueError("OUT would overwrite the ledger; give one of them another name.")
    if not os.path.exists(chosen.ledger) and not chosen.create_ledger:
        raise FileNotFoundError(
            f"there is no ledger {chosen.ledger}. If its name is right, --create-ledger starts a new one, which knows "
            "of no earlier release."
        )


def _privatize(chosen: argparse.Namespace) -> int:
    from skfairdp.accounting import PrivacyLedger
    from skfairdp.exceptions import BudgetExceededError
    from skfairdp.table_files import load_privatizer, make_privatizer, parse_bounds, privatize_file

    total = None

    def charge(guarantee: Any) -> None:
        nonlocal total
        try:
            delta = None if chosen.budget is None else chosen.delta
            create = not os.path.exists(chosen.ledger)
            ledger = PrivacyLedger(chosen.budget, delta, path=chosen.ledger, create=create)
            ledger.charge(guarantee, records=chosen.records)
            total = ledger.total(chosen.records)
        except BudgetExceededError:
            raise
        except RuntimeError as error:  # a file that is locked or gone
            raise OSError(str(error)) from None

    _check_ledger(chosen)
    columns = _names(chosen.columns)
    bounds = parse_bounds(chosen.bounds) if chosen.bounds else None
    if chosen.privatizer is not None:
        if chosen.epsilon is not None:
            raise ValueError("--privatizer has an epsilon of its own; leave --epsilon out.")
        privatizer = load_privatizer(chosen.privatizer, columns)
    elif chosen.epsilon is None:
        raise ValueError("--epsilon is missing.")
    else:
        privatizer = make_privatizer(
            chosen.mechanism, chosen.epsilon, chosen.delta, chosen.norm, chosen.radius, bounds is not None
        )
    try:
        guarantee, n_rows = privatize_file(
            chosen.source,
            chosen.target,
            privatizer,
            columns,
            keep=_names(chosen.keep),
            bounds=bounds,
            separator=chosen.separator,
            overwrite=chosen.force,
            charge=None if chosen.ledger is None else charge,
        )
    except BudgetExceededError as error:
        print(f"skfairdp: {error}", file=sys.stderr)
        return EXIT_FORBIDDEN
    print(f"{n_rows:,} rows in {chosen.target}: {guarantee}")
    print("It does not cover:")
    for scope in guarantee.does_not_cover:
        print(f"  - {scope}")
    print(f"guarantee: {chosen.target}.guarantee.json")
    if total is not None:
        print(f"all releases in {chosen.ledger}: {total}")
    return EXIT_OK


def _versions(chosen: argparse.Namespace) -> int:
    """Print versions; nothing is imported for it, so that it also answers where an import fails."""
    print(f"skfairdp {__version__}\npython {platform.python_version()}")
    for name in _SHOWN:
        print(name, importlib.metadata.version(name))
    return EXIT_OK


def _terminate(number: int, frame: Any) -> None:
    raise KeyboardInterrupt  # so that temporary files are removed on the way out


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    parser = _parser()
    chosen = parser.parse_args(arguments)
    if chosen.command is None:
        parser.print_help()
        return EXIT_OK
    runs = {"demo": _demo, "audit": _audit, "compare": _compare, "privatize": _privatize, "versions": _versions}
    run = runs[chosen.command]
    for stream in (sys.stdout, sys.stderr):  # a label in any script is shown as well as the terminal can
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    with contextlib.suppress(ValueError):  # not in the main thread: whoever started us handles signals
        signal.signal(signal.SIGTERM, _terminate)
    try:
        return run(chosen)
    except KeyboardInterrupt:
        print("skfairdp: interrupted; nothing was left half-written.", file=sys.stderr)
        return EXIT_INTERRUPTED
    except (ValueError, TypeError, OSError, MemoryError) as error:
        from skfairdp.table_audit import printable

        print(f"skfairdp: {printable(' '.join(_reason(error).split()))}", file=sys.stderr)
        return EXIT_BAD_INPUT


def _reason(error: BaseException) -> str:
    if isinstance(error, MemoryError):
        return "the table does not fit into memory."
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error) or type(error).__name__


if __name__ == "__main__":
    sys.exit(main())
