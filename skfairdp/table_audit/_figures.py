"""The three pictures of the report: trade-off, rates of the groups, leakage. Each for a wide and a narrow page."""

import math
from typing import TYPE_CHECKING

import pandas as pd

from skfairdp.table_audit._svg import Scale, picture, place_labels, shortened, tag, ticks

if TYPE_CHECKING:
    from skfairdp.table_audit._table_audit import TableAudit

_RATE_NAMES = {
    "tpr": "true positive rate",
    "fpr": "false positive rate",
    "selection_rate": "share that is selected",
    "accuracy": "accuracy",
}
_MANY_GROUPS = 6  # from here on only the first rate is drawn, and the tables have the others


def _percent(value: float) -> str:
    return f"{100 * value:.4g}%"


def tradeoff(result: "TableAudit", width: float, css: str) -> str:
    """Accuracy to the right, gap upwards: better is lower right."""
    table = result.table[result.table[result.fairness].notna()]
    name = "TPR gap" if result.fairness == "tpr_gap" else "GRMS"
    height, left, right, top, bottom = (380.0 if width > 500 else 330.0), 58.0, 18.0, 16.0, 50.0
    ups = table[f"{result.fairness}_upper"].fillna(table[result.fairness])
    spread = max(table["accuracy"].max() - table["accuracy"].min(), 0.02) if len(table) else 0.02
    low, high = (table["accuracy"].min(), table["accuracy"].max()) if len(table) else (0.0, 1.0)
    x = Scale(low - 0.18 * spread, high + 0.18 * spread, left, width - right)
    y = Scale(0.0, max(float(ups.max()) * 1.05 if len(table) else 0.1, 0.02), height - bottom, top)
    parts = []
    for value in ticks(x.low, x.high, 5 if width > 500 else 3):
        parts.append(tag("line", x1=x(value), x2=x(value), y1=top, y2=height - bottom, class_="grid"))
        parts.append(tag("text", _percent(value), x=x(value), y=height - bottom + 18, text_anchor="middle"))
    for value in ticks(y.low, y.high):
        parts.append(tag("line", x1=left, x2=width - right, y1=y(value), y2=y(value), class_="grid"))
        parts.append(tag("text", f"{100 * value:.4g}", x=left - 8, y=y(value) + 4, text_anchor="end"))
    parts.append(
        tag("text", "accuracy", x=(left + width - right) / 2, y=height - 8, text_anchor="middle", class_="axis")
    )
    middle = (top + height - bottom) / 2
    turned = f"rotate(-90 14 {middle:.1f})"
    parts.append(
        tag("text", f"{name} in points", x=14.0, y=middle, text_anchor="middle", class_="axis", transform=turned)
    )
    points = []
    for method, row in table.iterrows():
        px, py = x(row["accuracy"]), y(row[result.fairness])
        ends = [row[f"{result.fairness}_lower"], row[f"{result.fairness}_upper"]]
        if all(math.isfinite(end) for end in ends):
            parts.append(tag("line", x1=px, x2=px, y1=y(ends[0]), y2=y(ends[1]), class_="whisker"))
        private = math.isfinite(row["epsilon"])
        if private:
            parts.append(tag("rect", x=px - 5.5, y=py - 5.5, width=11, height=11, class_="private"))
        else:
            parts.append(tag("circle", cx=px, cy=py, r=6, class_="open"))
        if method == result.best:
            parts.append(tag("circle", cx=px, cy=py, r=12, class_="chosen"))
        points.append((px, py, shortened(str(method), 130)))
    for (lx, ly, anchor), (_, _, text) in zip(
        place_labels(points, (left, top - 8, width - 2, height - bottom)), points
    ):
        parts.append(tag("text", text, x=lx, y=ly, text_anchor=anchor, class_="name"))
    told = "; ".join(f"{m}: accuracy {r['accuracy']:.3f}, gap {r[result.fairness]:.3f}" for m, r in table.iterrows())
    return picture(parts, width, height, f"Accuracy against {name}. Chosen: {result.best}. {told}.", css)


def leakage(result: "TableAudit", attribute: str, width: float, css: str) -> str:
    """Accuracy of the strongest attacker on each method's output, beside what guessing reaches."""
    rows = result.leakage[(result.leakage["attribute"] == attribute) & (result.leakage["attacker"] == "strongest")]
    left, right, top, step = (170.0 if width > 500 else 112.0), 54.0, 30.0, 30.0
    height = top + step * len(rows) + 30
    x = Scale(0.0, 1.0, left, width - right)
    bottom = height - 26
    parts = []
    for value in ticks(0, 1, 5):
        parts.append(tag("line", x1=x(value), x2=x(value), y1=top, y2=bottom, class_="grid"))
        parts.append(tag("text", _percent(value), x=x(value), y=bottom + 17, text_anchor="middle"))
    majority = float(rows["majority"].iloc[0])
    for k, (_, row) in enumerate(rows.iterrows()):
        middle = top + step * (k + 0.5)
        name = "the columns" if row["method"] == "(columns)" else str(row["method"])
        parts.append(
            tag("text", shortened(name, left - 14), x=left - 8, y=middle + 4, text_anchor="end", class_="name")
        )
        shown = "bar chosen-bar" if row["method"] == result.best else "bar"
        parts.append(tag("rect", x=left, y=middle - 8, width=x(row["accuracy"]) - left, height=16, class_=shown))
        ends = {"x1": x(row["accuracy_lower"]), "x2": x(row["accuracy_upper"])}
        parts.append(tag("line", **ends, y1=middle, y2=middle, class_="whisker strong"))
        beyond = x(row["accuracy_upper"]) + 6
        parts.append(tag("text", f"{100 * row['accuracy']:.0f}%", x=beyond, y=middle + 4))
    parts.append(tag("line", x1=x(majority), x2=x(majority), y1=top - 6, y2=bottom, class_="guess"))
    place = "end" if majority > 0.7 else "start" if majority < 0.3 else "middle"
    parts.append(
        tag("text", f"guessing {100 * majority:.0f}%", x=x(majority), y=top - 12, text_anchor=place, class_="axis")
    )
    told = "; ".join(f"{r['method']}: {r['accuracy']:.3f}" for _, r in rows.iterrows())
    label = f"Share of rows whose {attribute} an attacker tells, guessing is right for {majority:.3f}. {told}."
    return picture(parts, width, height, label, css)


def group_rates(result: "TableAudit", attribute: str, width: float, css: str) -> str:
    """Rates of every group with their intervals, of the reference and of the chosen method."""
    rates = result.group_rates
    methods = list(dict.fromkeys([result.reference, result.best]))
    mine = rates[(rates["attribute"] == attribute) & rates["method"].isin(methods)]
    groups = list(dict.fromkeys(mine["group"]))
    positive = result.settings["pos_label"]
    shown = ["accuracy"] if positive is None else ["tpr", "fpr", "selection_rate", "accuracy"]
    if len(groups) > _MANY_GROUPS:
        shown = shown[:1]
    left, right = (170.0 if width > 500 else 104.0), 24.0
    x = Scale(0.0, 1.0, left, width - right)
    step, head = 15.0 * len(methods) + 8, 28.0
    height = sum(head + step * len(groups) for _ in shown) + 34
    parts, at = [], 6.0
    for value in ticks(0, 1, 5):
        parts.append(tag("line", x1=x(value), x2=x(value), y1=6, y2=height - 26, class_="grid"))
        parts.append(tag("text", _percent(value), x=x(value), y=height - 8, text_anchor="middle"))
    for rate in shown:
        parts.append(tag("text", _RATE_NAMES[rate], x=4, y=at + 17, class_="axis"))
        at += head
        for group in groups:
            middle = at + step / 2
            parts.append(
                tag("text", shortened(group, left - 14), x=left - 8, y=middle + 4, text_anchor="end", class_="name")
            )
            for k, method in enumerate(methods):
                row = _rate_row(mine, method, group, rate, positive)
                if row is None:
                    continue
                here = middle + 15.0 * (k - (len(methods) - 1) / 2)
                css_class = "best" if method == result.best else "reference"
                ends = {"x1": x(row["lower"]), "x2": x(row["upper"])}
                parts.append(tag("line", **ends, y1=here, y2=here, class_=f"interval {css_class}"))
                if css_class == "best":
                    parts.append(tag("circle", cx=x(row["value"]), cy=here, r=5, class_="dot best"))
                else:
                    corner = {"x": x(row["value"]) - 4.5, "y": here - 4.5}
                    parts.append(tag("rect", **corner, width=9, height=9, class_="dot reference"))
            at += step
    label = f"Rates by {attribute} with 95% intervals, for {' and '.join(methods)}; the tables below have the numbers."
    return picture(parts, width, height, label, css)


def _rate_row(rates: pd.DataFrame, method: str, group: str, rate: str, positive: object) -> pd.Series | None:
    rows = rates[(rates["method"] == method) & (rates["group"] == group) & (rates["rate"] == rate)]
    if rate != "accuracy":
        rows = rows[rows["class"] == positive]
    rows = rows[rows["value"].notna()]
    return None if rows.empty else rows.iloc[0]
