"""The report: one page that needs nothing else, and its short form for notebooks."""

import base64
import hashlib
import html
import math
import re
from functools import cache
from typing import TYPE_CHECKING, Any

import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from skfairdp.table_audit._page_pictures import (
    calibration_picture,
    group_rates_picture,
    groups_not_drawn,
    leakage_picture,
    tradeoff_picture,
)
from skfairdp.table_audit._plain_words import (
    RATE_NAMES,
    count,
    fairness_words,
    group_name,
    listed,
    p_text,
    percent,
    points,
    span,
)
from skfairdp.table_audit._terminal_summary import spoken_duration
from skfairdp.table_audit._worker_processes import start_in_copy

if TYPE_CHECKING:
    from skfairdp.table_audit._table_audit import TableAudit

#: Rates of crossed groups, steadied by what the single columns say.
_STEADIED = ("steadied", "steadied_lower", "steadied_upper")
_STRATA_NAMES = {
    "method": "Method",
    "gap": "Gap within strata",
    "p_value": "p-value",
    "highest_group": "Highest",
    "lowest_group": "Lowest",
}


@cache
def page_environment() -> Environment:
    """Return what the templates are read by; each is compiled once."""
    environment = Environment(
        loader=PackageLoader("skfairdp.table_audit"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "percent": percent,
        "duration": spoken_duration,
        "epsilon": _epsilon,
        "number": _number,
        "points": points,
        "count": count,
        "listed": listed,
        "p_text": p_text,
        "options": _mark_options,
    }
    environment.globals |= {"span": span, "isnan": math.isnan}
    return environment


def write_html_page(result: "TableAudit") -> str:
    """Write the page."""
    environment = page_environment()
    loader = environment.loader
    assert loader is not None
    script = loader.get_source(environment, "sort_tables.js")[0]
    attributes = list(dict.fromkeys(result.group_rates["attribute"]))
    crossed = " x ".join(result.settings["sensitive"])
    words = fairness_words(result.fairness)
    more_sections = start_in_copy(_group_and_leak_sections, result, attributes)  # their pictures take half of the time
    tradeoff = tradeoff_picture(result)
    first_rates = Markup("") if tradeoff else group_rates_picture(result, crossed, most_rates=1)
    systems = [_system_section(result, name, attributes) for name in result.systems]
    groups, leaks = more_sections()
    return environment.get_template("report.html.j2").render(
        result=result,
        verdict=result.verdict,
        words=words,
        meaning=words.meaning.format(positive=result.settings["pos_label"]),
        trained=bool((result.table["kind"] != "system").any()),
        checks=sorted(result.checks, key=lambda check: not check.serious),
        table=[{"name": name, **row} for name, row in result.table.to_dict("index").items()],
        best=result.table.loc[result.best].to_dict(),
        reference=result.table.loc[result.reference].to_dict(),
        tradeoff=tradeoff,
        first_rates=first_rates,
        systems=systems,
        groups=groups,
        leaks=leaks,
        strata=_strata(result),
        inf=math.inf,
        candidates=_candidates(result),
        script=Markup(script),
        # The browser runs this script and no other, should a label ever slip through as markup.
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )


def write_notebook_summary(result: "TableAudit") -> str:
    """Write headline, findings, a small table and what to do next, for the output of a notebook's cell."""
    verdict, metric = result.verdict, result.fairness
    parts = [f"<p><strong>{html.escape(verdict.headline)}</strong></p>"]
    parts += [f"<p>{html.escape(sentence)}</p>" for sentence in verdict.sentences]
    header = ["method", "rows", "accuracy", fairness_words(metric).name, "leakage", "epsilon"]
    cells = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in header)
    lines = []
    for name, row in result.table.iterrows():
        mark = " (chosen)" if name == result.best and row["kind"] != "system" else ""
        shown = [
            f"{round(row['n_rows']):,} {row['rows']}",
            f"{percent(row['accuracy'])} ({span(row['accuracy_lower'], row['accuracy_upper'])})",
            f"{points(row[metric])} ({span(row[f'{metric}_lower'], row[f'{metric}_upper'])})",
            f"{percent(row['leakage'])} ({span(row['leakage_lower'], row['leakage_upper'])})",
            _epsilon(row["epsilon"], row["delta"]),
        ]
        first = f'<th scope="row">{html.escape(str(name))}{mark}</th>'
        lines.append(f"<tr>{first}{''.join(f'<td>{html.escape(cell)}</td>' for cell in shown)}</tr>")
    parts.append(f"<table><thead><tr>{cells}</tr></thead><tbody>{''.join(lines)}</tbody></table>")
    if verdict.next_steps:
        steps = "".join(f"<li>{html.escape(step)}</li>" for step in verdict.next_steps)
        parts.append(f"<p>What to do next:</p><ol>{steps}</ol>")
    return f'<div class="skfairdp-audit">{"".join(parts)}</div>'


def _mark_options(text: str) -> Markup:
    """Set options of the command line as code, which no line end divides."""
    return Markup(re.sub(r"(?<![\w-])(--[a-z][a-z-]*)", r"<code>\1</code>", str(escape(text))))


def _epsilon(epsilon: float, delta: float = 0.0) -> str:
    if math.isinf(epsilon):
        return "∞"
    return f"{epsilon:.4g}" + (f", δ = {delta:.0e}" if delta > 0 else "")


def _number(value: float, digits: int = 3) -> str:
    return "undefined" if math.isnan(value) else f"{value:.{digits}f}"


def _rates_table(rates: pd.DataFrame, positive: Any) -> tuple[list[str], dict[tuple[str, str], dict[str, Any]]]:
    """Lay out rates with a row for each method and group, and a cell for each rate."""
    shown = rates[(rates["rate"] == "accuracy") | (rates["class"] == positive if positive is not None else True)]
    # As RATE_NAMES has them, and the classes in their own order. Of many classes, first what their gap is made of.
    order = {rate: k for k, rate in enumerate(RATE_NAMES)} | (
        {} if positive is not None else {"accuracy": -2, "tpr": -1}
    )
    kinds = sorted(dict.fromkeys(zip(shown["rate"], shown["class"])), key=lambda kind: order[kind[0]])
    names = {kind: _column_name(*kind, positive) for kind in kinds}
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    columns = ["method", "group", "rate", "class", "value", "trials", "lower", "upper"]
    for method, group, rate, label, value, trials, lower, upper, *steadied in shown[
        [*columns, *(name for name in _STEADIED if name in shown)]
    ].itertuples(index=False):
        cells = rows.setdefault((str(method), str(group)), {})
        cells[names[rate, label]] = cell = _cell(value, lower, upper, trials)
        if steadied and not math.isnan(steadied[0]):
            cell["more"] += f" steadied: {percent(steadied[0])} ({span(*steadied[1:])})"
        if rate == "accuracy":
            cells["rows"] = round(trials)
    return list(dict.fromkeys(names.values())), rows


def _column_name(rate: str, label: Any, positive: Any) -> str:
    name = RATE_NAMES[rate]
    return name if rate == "accuracy" or positive is not None else f"{name} of {label}"


def _cell(value: float, lower: float, upper: float, trials: float) -> dict[str, Any]:
    """A number with its interval and how many rows it is of; ``sort`` is what the table is sorted by."""
    if math.isnan(value):
        return {"text": "undefined", "more": f"of {round(trials):,}", "sort": ""}
    more = f"({100 * lower:.0f}–{100 * upper:.0f}, of {round(trials):,})"
    return {"text": percent(value), "more": more, "sort": f"{value:.6f}"}


def _system_section(result: "TableAudit", name: str, attributes: list[str]) -> dict[str, Any]:
    parts = []
    for attribute in attributes:
        rates = result.group_rates
        mine = rates[(rates["method"] == name) & (rates["attribute"] == attribute)]
        columns, rows = _rates_table(mine, result.settings["pos_label"])
        parts.append(
            {
                "attribute": attribute,
                "names": columns,
                "rows": {group: cells for (_, group), cells in rows.items()},
                "calibration": _calibration_section(result, name, attribute),
            }
        )
    return {"name": name, "row": result.table.loc[name].to_dict(), "parts": parts}


def _calibration_section(result: "TableAudit", method: str, attribute: str) -> dict[str, Any] | None:
    table = result.calibration
    if table is None:
        return None
    mine = table[(table["method"] == method) & (table["attribute"] == attribute)]
    if mine.empty:
        return None
    figure, drawn = calibration_picture(result, method, attribute)
    rows = [
        {**row, "cell": _cell(row["observed"], row["lower"], row["upper"], row["n"])} for row in mine.to_dict("records")
    ]
    left = [group for group in dict.fromkeys(mine["group"].astype(str)) if group not in drawn]
    return {"figure": figure, "rows": rows, "not_drawn": left}


def _group_and_leak_sections(
    result: "TableAudit", attributes: list[str]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    groups = [_group_section(result, attribute) for attribute in attributes]
    return groups, [_leak_section(result, attribute) for attribute in dict.fromkeys(result.leakage["attribute"])]


def _group_section(result: "TableAudit", attribute: str) -> dict[str, Any]:
    rates = result.group_rates[result.group_rates["attribute"] == attribute]
    names, rows = _rates_table(rates, result.settings["pos_label"])
    first = (result.reference, result.best)
    if result.best == result.reference and result.best in result.systems:
        first = ()  # the section about what exists has its table already
        rows = {key: cells for key, cells in rows.items() if key[0] not in result.systems}
    return {
        "attribute": attribute,
        "names": names,
        "rows": {key: cells for key, cells in rows.items() if key[0] in first},
        "others": {key: cells for key, cells in rows.items() if key[0] not in first},
        "figure": group_rates_picture(result, attribute),
        "not_drawn": groups_not_drawn(result, attribute),
        "too_few": [str(group) for group in result.too_few.get(attribute, ())],
    }


def _leak_section(result: "TableAudit", attribute: str) -> dict[str, Any]:
    rows = result.leakage[result.leakage["attribute"] == attribute]
    return {
        "attribute": attribute,
        "rows": rows.to_dict("records"),
        "n": [f"{n:,}" for n in dict.fromkeys(rows["n_scored"])],
        "figure": leakage_picture(result, attribute),
    }


def _strata(result: "TableAudit") -> dict[str, Any] | None:
    """Lay out the gaps within strata; columns that are not known here are shown as they are."""
    if result.strata is None or result.strata.empty:
        return None
    columns = [name for name in result.strata if name not in ("lower", "upper")]
    rows = []
    for row in result.strata.to_dict("records"):
        cells = []
        for name in columns:
            if name == "gap":
                cells.append(f"{points(row['gap'])} ({span(row['lower'], row['upper'])})")
            elif name == "p_value":
                cells.append(p_text(row[name]))
            else:
                cells.append(group_name(row[name]) or "undefined")
        rows.append(cells)
    return {"names": [_STRATA_NAMES.get(name, name) for name in columns], "rows": rows}


def _candidates(result: "TableAudit") -> list[dict[str, Any]]:
    if result.candidates.empty:
        return []
    rows = result.candidates.reset_index(level="method").to_dict("records")
    for row in rows:
        params = row["params"]
        row["text"] = ", ".join(f"{name.split('__')[-1]}={value}" for name, value in params.items()) or "as it is"
    return rows
