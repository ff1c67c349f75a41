"""The ``skfairdp`` command."""

import argparse
import contextlib
import gc
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
from skfairdp._cli_options import make_parser

_SHOWN = ("numpy", "scipy", "pandas", "scikit-learn", "torch", "skorch", "fairlearn", "matplotlib", "joblib")

#: The libraries that are loaded make hundreds of thousands of objects that stay. To look for garbage among them after
#: every 700, which is the default, takes half a second.
_OBJECTS_BETWEEN_COLLECTIONS = 100_000

EXIT_OK, EXIT_FORBIDDEN, EXIT_BAD_INPUT, EXIT_INTERRUPTED = 0, 1, 2, 130


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
        {"target": "hired", "pos_label": "yes", "sensitive": ["group"], "random_state": seed},
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
    from skfairdp.table_files import read_table, shown_address

    conditions = [FailCondition.parse(text) for text in chosen.fail_if]
    predictions, scores = _named_values(chosen.predictions), _named_values(chosen.scores)
    models = {Path(name).stem: path for name, path in _named_values(chosen.model).items()}
    named = None if chosen.methods is None else _names(chosen.methods)
    if named is None and models:
        named = method_names()
    for condition in conditions:
        judged = [*predictions, *scores, *models, *(method_names() if named is None else named)]
        condition.check_before(judged, chosen.fairness, bool(chosen.control))
    methods: Any = named
    if models:
        methods = [name for name in named or [] if name != "none"]
        methods = [*(method_names(everything=True) if methods == ["all"] else methods)]
        methods += [(name, load_model(path)) for name, path in models.items()]
    frame = read_table(
        chosen.table,
        separator=chosen.separator,
        encoding=chosen.encoding,
        header=chosen.header,
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
    shown = shown_address(chosen.table)  # without a password that an address of a database may hold
    title = "Audit of standard input" if shown == "-" else f"Audit of {Path(shown).name}"
    command = _command_to_repeat(chosen, shown, arguments["random_state"])
    return _run_audit(frame, chosen, arguments, command, title, conditions, {"file_sha256": frame.attrs["file_sha256"]})


def _command_to_repeat(chosen: argparse.Namespace, table: str, seed: int) -> str:
    words = ["skfairdp", "audit", table, "--target", chosen.target]
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
    words += ["--keep-sensitive"] * chosen.keep_sensitive
    words += {True: ["--header"], False: ["--no-header"], None: []}[chosen.header]
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

    from skfairdp.table_audit import audit_table, declare_process_ours, printable
    from skfairdp.table_files import check_writable

    if chosen.is_program and chosen.jobs != 1:  # then it may be forked
        declare_process_ours()
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
        if "left out, because" in note.lower():
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
    from skfairdp.dp import PrivacyLedger
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
    parser = make_parser()
    chosen = parser.parse_args(arguments)
    chosen.is_program = arguments is None
    if chosen.is_program:
        gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
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
    finally:
        if chosen.is_program:  # it ends now: to look once more for garbage in all that is loaded takes half a second
            gc.freeze()


def _reason(error: BaseException) -> str:
    if isinstance(error, MemoryError):
        return "the table does not fit into memory."
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error) or type(error).__name__


if __name__ == "__main__":
    sys.exit(main())
