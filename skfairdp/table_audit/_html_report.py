"""The report: one page that needs nothing else."""

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from skfairdp.table_audit import _figures
from skfairdp.table_audit._terminal_summary import duration
from skfairdp.table_audit._verdict import percent, points

if TYPE_CHECKING:
    from skfairdp.table_audit._table_audit import TableAudit

_WIDE, _NARROW = 720.0, 340.0


def page(result: "TableAudit") -> str:
    """Write the page."""
    environment = Environment(
        loader=PackageLoader("skfairdp.table_audit"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "percent": percent,
        "duration": duration,
        "epsilon": _epsilon,
        "number": _number,
        "points": points,
    }
    attributes = list(dict.fromkeys(result.leakage["attribute"]))
    return environment.get_template("report.html.j2").render(
        result=result,
        verdict=result.verdict,
        table=[{"name": name, **row} for name, row in result.table.to_dict("index").items()],
        best=result.table.loc[result.best].to_dict(),
        reference=result.table.loc[result.reference].to_dict(),
        gap_name="TPR gap" if result.fairness == "tpr_gap" else "GRMS",
        tradeoff=_both(partial(_figures.tradeoff, result)),
        groups=[_group_section(result, attribute) for attribute in attributes],
        leaks=[_leak_section(result, attribute) for attribute in attributes],
        inf=math.inf,
        candidates=_candidates(result),
    )


def _both(draw: Any) -> Markup:
    """Draw for a screen and for a phone; the style sheet shows one of them."""
    return Markup(draw(_WIDE, "wide") + draw(_NARROW, "narrow"))


def _epsilon(epsilon: float, delta: float = 0.0) -> str:
    if math.isinf(epsilon):
        return "∞"
    return f"{epsilon:.4g}" + (f", δ = {delta:.0e}" if delta > 0 else "")


def _number(value: float, digits: int = 3) -> str:
    return "undefined" if math.isnan(value) else f"{value:.{digits}f}"


def _group_section(result: "TableAudit", attribute: str) -> dict[str, Any]:
    rates = result.group_rates[result.group_rates["attribute"] == attribute]
    positive = result.settings["pos_label"]
    shown = rates[(rates["rate"] == "accuracy") | (rates["class"] == positive if positive is not None else True)]
    names = ["test rows", *dict.fromkeys(_column_of(row, positive) for _, row in shown.iterrows())]
    rows: dict[tuple[str, str], dict[str, str]] = {}
    for _, row in shown.iterrows():
        cells = rows.setdefault((row["method"], row["group"]), {})
        cells[_column_of(row, positive)] = _rate(row)
        if row["rate"] == "accuracy":
            cells["test rows"] = f"{int(row['trials']):,}"
    return {
        "attribute": attribute,
        "names": names,
        "rows": rows,
        "figure": _both(partial(_figures.group_rates, result, attribute)),
    }


def _column_of(row: pd.Series, positive: Any) -> str:
    words = {"tpr": "true positive rate", "fpr": "false positive rate", "selection_rate": "selected"}
    name = words.get(row["rate"], row["rate"])
    return name if row["rate"] == "accuracy" or positive is not None else f"{name} of {row['class']}"


def _rate(row: pd.Series) -> str:
    if math.isnan(row["value"]):
        return "undefined"
    return f"{100 * row['value']:.1f}% ({100 * row['lower']:.0f} to {100 * row['upper']:.0f})"


def _leak_section(result: "TableAudit", attribute: str) -> dict[str, Any]:
    return {
        "attribute": attribute,
        "rows": result.leakage[result.leakage["attribute"] == attribute].to_dict("records"),
        "figure": _both(partial(_figures.leakage, result, attribute)),
    }


def _candidates(result: "TableAudit") -> list[dict[str, Any]]:
    rows = result.candidates.reset_index(level="method").to_dict("records")
    for row in rows:
        params = row["params"]
        row["text"] = ", ".join(f"{name.split('__')[-1]}={value}" for name, value in params.items()) or "as it is"
    return rows
