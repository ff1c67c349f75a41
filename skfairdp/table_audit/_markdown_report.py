"""The findings as Markdown: for a pull request or a wiki, with a model card."""

import math
import re
from typing import TYPE_CHECKING, Any

from skfairdp._validation import check_choice
from skfairdp.table_audit._plain_words import (
    RATE_NAMES,
    count,
    fairness_words,
    listed,
    p_text,
    percent,
    points,
    span,
)

if TYPE_CHECKING:
    from skfairdp.table_audit._table_audit import TableAudit

_MARKUP = re.compile(r"([\\`*_{}\[\]<>#|~$])")


def escaped(text: Any) -> str:
    """Write a text so that Markdown shows it as it is, on one line."""
    return _MARKUP.sub(r"\\\1", " ".join(str(text).split()))


def write_markdown(result: "TableAudit") -> str:
    """Write verdict, tables and the model card of the chosen method."""
    verdict = result.verdict
    parts = [f"# {escaped(result.title)}", f"**{escaped(verdict.headline)}**"]
    if result.checks:
        checks = sorted(result.checks, key=lambda check: not check.serious)
        lines = [f"{'**Serious:** ' if c.serious else ''}{escaped(c.sentence)} {escaped(c.advice)}" for c in checks]
        parts += ["## Before you trust this", _bullets(lines)]
    parts += map(escaped, verdict.sentences)
    if verdict.next_steps:
        parts += ["## What to do next", "\n".join(f"{k}. {escaped(s)}" for k, s in enumerate(verdict.next_steps, 1))]
    parts += ["## All figures", _methods_table(result)]
    if result.command:
        parts.append(f"Made by:\n\n```\n{result.command.replace('```', '` ` `')}\n```")
    parts.append(write_model_card(result, result.best))
    return "\n\n".join(parts) + "\n"


def write_model_card(result: "TableAudit", method: str) -> str:
    """Write what a reader of a model card asks: use, data, figures by group, guarantees, caveats."""
    check_choice(method, [str(name) for name in result.table.index], "method")
    row, settings = result.table.loc[method], result.settings
    words = fairness_words(result.fairness)
    positive = settings["pos_label"]
    sensitive = listed(map(escaped, settings["sensitive"]))
    use = f"To predict {escaped(settings['target'])}"
    if positive is not None:
        use += f"; favourable is {escaped(positive)}{' (assumed)' if settings['assumed_positive'] else ''}"
    use += f". It was judged by {words.definition} between groups of {sensitive}."
    if row["needs_groups"]:
        use += " It must be told the group of everybody whom it answers."
    data = f"{count(settings['n_rows'], 'row')}; the figures are of {count(row['n_rows'], 'row')} ({row['rows']})."
    meaning = words.meaning.format(positive=escaped(positive))
    overall = [
        f"Accuracy {percent(row['accuracy'])} ({span(row['accuracy_lower'], row['accuracy_upper'])}).",
        f"{words.name} {points(row[result.fairness])} ({_gap_span(result, row)}, "
        f"{p_text(row[f'{result.fairness}_p_value'])}): {meaning}.",
    ]
    if not math.isnan(row["selection_ratio"]):
        ends = f"{row['selection_ratio_lower']:.2f} to {row['selection_ratio_upper']:.2f}"
        overall.append(f"Four-fifths ratio {row['selection_ratio']:.2f} ({ends}).")
    if not math.isnan(row["leakage"]):
        overall.append(
            f"The strongest attacker tells the group of {percent(row['leakage'])} "
            f"({span(row['leakage_lower'], row['leakage_upper'])}); naming the largest is right for "
            f"{percent(row['majority'])}."
        )
    return "\n\n".join(
        [
            f"## Model card: {escaped(method)}",
            f"### Intended use\n\n{use} {escaped(result.summaries.get(method, ''))}".rstrip(),
            f"### Data\n\n{data}",
            f"### Figures\n\n{_bullets(overall)}\n\n{_group_table(result, method)}",
            f"### Guarantees\n\n{_guarantees(result, method)}",
            f"### Caveats\n\n{_bullets(_caveats(result, method))}",
        ]
    )


def _bullets(lines: list[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _gap_span(result: "TableAudit", row: Any) -> str:
    return span(row[f"{result.fairness}_lower"], row[f"{result.fairness}_upper"])


def _methods_table(result: "TableAudit") -> str:
    header = [
        "method",
        "accuracy",
        f"{fairness_words(result.fairness).name}, points",
        "leakage",
        "AUC",
        "epsilon",
        "rows",
    ]
    rows = []
    for name, row in result.table.iterrows():
        mark = " (chosen)" if name == result.best and row["kind"] != "system" else ""
        rows.append(
            [
                f"{escaped(name)}{mark}",
                f"{percent(row['accuracy'])} ({span(row['accuracy_lower'], row['accuracy_upper'])})",
                f"{points(row[result.fairness]).split()[0]} ({_gap_span(result, row)})",
                f"{percent(row['leakage'])} ({span(row['leakage_lower'], row['leakage_upper'])})",
                "undefined"
                if math.isnan(row["leakage_auc"])
                else f"{row['leakage_auc']:.2f} ({row['leakage_auc_lower']:.2f} to {row['leakage_auc_upper']:.2f})",
                "none" if math.isinf(row["epsilon"]) else f"{row['epsilon']:.4g}",
                f"{round(row['n_rows']):,} {row['rows']}",
            ]
        )
    return _table(header, rows)


def _group_table(result: "TableAudit", method: str) -> str:
    rates = result.group_rates[result.group_rates["method"] == method]
    positive = result.settings["pos_label"]
    rates = rates[(rates["rate"] == "accuracy") | (rates["class"] == positive)]
    kinds = [rate for rate in RATE_NAMES if rate in set(rates["rate"])]
    rows = []
    for (attribute, group), part in rates.groupby(["attribute", "group"], sort=False):
        by_rate = {row["rate"]: row for _, row in part.iterrows()}
        cells = [_rate(by_rate[rate]) if rate in by_rate else "undefined" for rate in kinds]
        rows.append([escaped(attribute), escaped(group), f"{round(by_rate['accuracy']['trials']):,}", *cells])
    return _table(["attribute", "group", "rows", *(RATE_NAMES[rate] for rate in kinds)], rows)


def _rate(row: Any) -> str:
    if math.isnan(row["value"]):
        return "undefined"
    return f"{percent(row['value'])} ({span(row['lower'], row['upper'])}; of {round(row['trials']):,})"


def _guarantees(result: "TableAudit", method: str) -> str:
    finite = [given for given in result.guarantees.get(method, ()) if math.isfinite(given.epsilon)]
    if not finite:
        return "None: no epsilon is finite, and whoever gets its output may learn anything about a record."
    lines = []
    for given in finite:
        delta = f", delta = {given.delta:.0e}" if given.delta > 0 else ""
        lines.append(f"epsilon = {given.epsilon:.4g}{delta} for {given.neighbours}, by {given.mechanism}.")
        lines += [f"Does not cover {escaped(scope)}." for scope in given.does_not_cover]
    return _bullets(lines)


def _caveats(result: "TableAudit", method: str) -> list[str]:
    lines = [escaped(check.sentence) for check in result.checks]
    if result.settings["assumed_positive"]:
        lines.append(f"That {escaped(result.settings['pos_label'])} is favourable was assumed.")
    if result.table.loc[method, "constant"]:
        lines.append("It is no better than one answer for everybody.")
    for attribute, groups in result.too_few.items():
        if len(groups):
            lines.append(f"Too few rows to say anything of {listed(map(escaped, groups))} ({escaped(attribute)}).")
    lines += ["Brackets are 95% intervals.", "This text was computed from the rows without noise: it is not private."]
    return lines
