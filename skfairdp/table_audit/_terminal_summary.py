"""What an audit writes on a terminal: progress, then the findings; coloured only where colours are seen."""

import io
import math
import shutil
import sys
import textwrap
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from skfairdp.table_audit._plain_words import fairness_words

if TYPE_CHECKING:
    from skfairdp.table_audit._table_audit import TableAudit

_BOLD, _GREEN, _DIM, _PLAIN = "\x1b[1m", "\x1b[32m", "\x1b[2m", "\x1b[0m"


class Progress:
    """A bar with the time left on a terminal, and a line for each step elsewhere.

    Parameters
    ----------
    total : float
        Work to be done, in any unit.
    verbose : bool
        False is silent.
    stream : file
        Where to write; standard error by default, so that results can be piped.
    """

    def __init__(self, total: float, verbose: bool = True, stream: Any = None):
        stream = sys.stderr if stream is None else stream
        is_terminal = getattr(stream, "isatty", lambda: False)()
        self._lines = stream if verbose and not is_terminal else None
        self._bar = _Bar(
            total=total,
            disable=not verbose,
            file=stream if is_terminal else io.StringIO(),  # elsewhere the bar only keeps the time
            leave=False,
            smoothing=0,  # steps are of very different length: the time left is told from the mean of all
            mininterval=0,
            ascii=" #",
            bar_format="[{bar:24}] {percentage:3.0f}%  {remaining} left  {desc}",
        )

    def step(self, work: float, done: str) -> None:
        """Note that ``work`` is done."""
        self._bar.set_description_str(done, refresh=False)
        self._bar.update(work)
        if self._lines is not None:
            state = self._bar.format_dict
            left = state["elapsed"] * max(0.0, state["total"] - state["n"]) / state["n"]
            print(f"{done}  ({spoken_duration(left)} left)", file=self._lines, flush=True)

    def close(self) -> None:
        """Clear the line of the bar."""
        self._bar.close()


class _Bar(tqdm):
    monitor_interval = 0  # no thread that watches the bar: steps are rare, and each of them draws it


def spoken_duration(seconds: float) -> str:
    """Write a time as a person would say it."""
    if seconds < 0.95:
        return f"{seconds:.1f} s"
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes / 60:.1f} h"


def epsilon_text(epsilon: float, delta: float) -> str:
    """Write an epsilon with its delta."""
    if math.isinf(epsilon):
        return "none"
    return f"{epsilon:.4g}" + (f" ({delta:.0e})" if delta > 0 else "")


def terminal_summary(result: "TableAudit", colour: bool) -> str:
    """Write verdict, table and what to do next: the text of ``TableAudit.to_text``."""
    bold, green, dim, plain = (_BOLD, _GREEN, _DIM, _PLAIN) if colour else ("", "", "", "")
    width = min(100, max(60, shutil.get_terminal_size((100, 24)).columns))
    verdict = result.verdict
    lines = [f"{bold}{line}{plain}" for line in textwrap.wrap(printable(verdict.headline), width)]
    if result.checks:
        lines += ["", f"{bold}Before you trust this{plain}"]
        for check in sorted(result.checks, key=lambda check: not check.serious):
            lines += _item(f"{check.sentence} {check.advice}", width, "!" if check.serious else "-")
    for sentence in verdict.sentences:
        if not sentence.startswith("Before you trust this"):  # said above, with what to do about it
            lines += ["", *textwrap.wrap(printable(sentence), width)]
    header, rows = _cells(result)
    widths = [max(len(row[k]) for row in [header, *rows]) for k in range(len(header))]
    lines += ["", f"{bold}{_line(header, widths)}{plain}"]
    for name, row in zip(result.table.index, rows):
        lines.append(f"{green}{_line(row, widths)}{plain}" if name == result.best else _line(row, widths))
    guess = result.table["majority"].iloc[0]
    legend = "" if math.isnan(guess) else f" Guessing the group is right for {guess:.1%}."
    if (result.table["kind"] != "system").any():
        threshold = result.settings["relaxation_threshold"]
        legend = f"* chosen on validation rows: the fairest within {threshold:g} of the reference.{legend}"
    if legend:
        lines += ["", *(f"{dim}{line}{plain}" for line in textwrap.wrap(legend.strip(), width))]
    if verdict.next_steps:
        lines += ["", f"{bold}What to do next{plain}"]
        for number, step in enumerate(verdict.next_steps, 1):
            lines += _item(step, width, f"{number}.")
    return "\n".join(lines)


def _item(text: str, width: int, mark: str) -> list[str]:
    indent = " " * (len(mark) + 1)
    return textwrap.wrap(printable(text), width, initial_indent=f"{mark} ", subsequent_indent=indent)


def _cells(result: "TableAudit") -> tuple[list[str], list[list[str]]]:
    gap = fairness_words(result.fairness).name
    header = ["", "method", "accuracy", "balanced", gap, "95%", "leakage", "AUC", "epsilon", "protects", "rows"]
    rows = []
    for name, row in result.table.iterrows():
        rows.append(
            [
                "*" if name == result.best and row["kind"] != "system" else " ",
                printable(str(name)) + _remark(row),
                _digits(row["accuracy"], 3),
                _digits(row["balanced_accuracy"], 3),
                _digits(row[result.fairness], 3),
                f"{_digits(row[f'{result.fairness}_lower'], 2)}-{_digits(row[f'{result.fairness}_upper'], 2)}",
                "-" if math.isnan(row["leakage"]) else f"{row['leakage']:.1%}",
                _digits(row["leakage_auc"], 2),
                epsilon_text(row["epsilon"], row["delta"]),
                str(row["protects"]).split(",")[0],
                f"{round(row['n_rows']):,} {str(row['rows']).removesuffix(' rows')}",
            ]
        )
    return header, rows


def _remark(row: Any) -> str:
    return " (constant)" if row["constant"] else " (needs the group)" if row["needs_groups"] else ""


def _digits(value: float, digits: int) -> str:
    return "-" if math.isnan(value) else f"{value:.{digits}f}"


def _line(cells: list[str], widths: list[int]) -> str:
    left = {0, 1, 9}
    parts = [cell.ljust(w) if k in left else cell.rjust(w) for k, (cell, w) in enumerate(zip(cells, widths))]
    return "  ".join(parts).rstrip()


def printable(text: str) -> str:
    """Replace control characters, so that a column name cannot move the cursor of a terminal.

    Parameters
    ----------
    text : str
        Anything that came from a file.

    Returns
    -------
    str

    Examples
    --------
    >>> from skfairdp.table_audit import printable
    >>> printable("age" + chr(27) + "[2J")
    'age�[2J'
    """
    return "".join(c if c.isprintable() else "�" for c in text)
