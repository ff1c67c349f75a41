"""The report: one page that needs nothing else."""

import io
import math
import re
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from skfairdp.table_audit._terminal_summary import spoken_duration
from skfairdp.table_audit._verdict import percent, points

if TYPE_CHECKING:
    from skfairdp.table_audit._table_audit import TableAudit

_WIDE, _NARROW = 720.0, 340.0  # width of a picture on a screen and on a phone, in pixels
_MANY_GROUPS = 6  # with more, only the first rate is drawn, and the tables have the others


def write_html_page(result: "TableAudit") -> str:
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
        "duration": spoken_duration,
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
        gap_name=_gap_name(result),
        tradeoff=_tradeoff_picture(result),
        groups=[_group_section(result, attribute) for attribute in attributes],
        leaks=[_leak_section(result, attribute) for attribute in attributes],
        inf=math.inf,
        candidates=_candidates(result),
    )


#: Colours as the Displays draw them, and the colour of the page (a variable of its style sheet) that takes their
#: place: so a picture is light on a light page and dark on a dark one.
_PAGE_COLOURS = {
    "#0072b2": "var(--accent)",
    "#d55e00": "var(--chosen)",
    "#009e73": "var(--private)",
    "#56b4e9": "var(--bar)",
    "#000000": "var(--ink)",
    "#404040": "var(--ink)",
    "#737373": "var(--soft)",
    "#a6a6a6": "var(--soft)",
    "#e6e6e6": "var(--line)",
    "#ffffff": "var(--page)",
}
_RC_PARAMS = {
    "font.size": 12,
    "svg.fonttype": "none",  # text stays text: it can be searched, and takes the font of the page
    "text.parse_math": False,  # a dollar sign in a label is a dollar sign
    "axes.edgecolor": "#e6e6e6",
    "xtick.color": "#e6e6e6",
    "xtick.labelcolor": "#737373",
    "ytick.color": "#e6e6e6",
    "ytick.labelcolor": "black",
    "figure.facecolor": "none",
    "axes.facecolor": "none",
}


def _picture_for_screens(draw: Callable[[Any], str], heights: tuple[float, float], salt: str) -> Markup:
    """Draw for a screen and for a phone; the style sheet shows one of them.

    Parameters
    ----------
    draw : callable
        Draws into the axes that it is given, and returns what a screen reader says instead of the picture.
    heights : (float, float)
        Height of each, in pixels.
    salt : str
        Sets the names inside the picture apart from those in other pictures of the page.
    """
    import matplotlib
    from matplotlib.figure import Figure

    pictures = []
    for css, width, height in zip(("wide", "narrow"), (_WIDE, _NARROW), heights):
        with matplotlib.rc_context(_RC_PARAMS | {"svg.hashsalt": f"{salt} {css}"}), warnings.catch_warnings():
            # Measured in matplotlib's font, which lacks many scripts. The page's font, which is shown, may have them.
            warnings.filterwarnings("ignore", "Glyph .* missing|Matplotlib currently does not support")
            figure = Figure(figsize=(width / 72, height / 72), layout="constrained")  # 72 pixels to the inch, as in SVG
            label = draw(figure.subplots())
            file = io.StringIO()
            figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
        pictures.append(_inline_svg(file.getvalue(), css, label))
    return Markup("".join(pictures))


def _inline_svg(svg: str, css: str, label: str) -> str:
    """Turn a file of matplotlib into an element of the page."""
    box = re.search(r'viewBox="([^"]*)"', svg)
    assert box is not None
    body = svg[svg.index(">", box.end()) + 1 :]  # behind the opening tag
    # The style sheet of a picture would be one of the whole page; the page's own says the same of its pictures.
    body = re.sub(r"<metadata>.*?</metadata>|<defs>\s*<style[^>]*>[^<]*</style>\s*</defs>", "", body, flags=re.S)
    body = re.sub(r'<g id="[^"]*"', "<g", body)  # names of parts, the same in every picture
    body = re.sub(r'style="[^"]*"', lambda style: _page_style(style[0]), body)
    body = re.sub(r"\s*\n\s*", "\n", body)
    return f'<svg class="{css}" viewBox="{box[1]}" role="img" aria-label="{escape(label)}">{body}'


def _page_style(style: str) -> str:
    """Give an element the colours and the font of the page; its size and weight stay."""
    # Newer versions of matplotlib write the weight as a word, 3.8 as a number.
    style = re.sub(r"font: (?:bold|700) ([\d.]+px) [^;\"]*", r"font-weight: bold; font-size: \1", style)
    style = re.sub(r"font: ([\d.]+px) [^;\"]*", r"font-size: \1", style)
    style = re.sub(r"font-family: [^;\"]*;? ?", "", style)
    return re.sub("#[0-9a-f]{6}", lambda colour: _PAGE_COLOURS.get(colour[0], colour[0]), style)


def _tradeoff_picture(result: "TableAudit") -> Markup:
    """Accuracy to the right, gap upwards: better is lower right."""
    name = _gap_name(result)
    table = result.table[result.table[result.fairness].notna()]
    if table.empty:
        return Markup("")

    def draw(ax: Any) -> str:
        result.plot(ax)
        ax.get_legend().remove()  # the caption says it
        ax.set_ylim(bottom=min(0.0, ax.get_ylim()[0]))  # a gap is read from zero
        ax.set_xlabel("accuracy", fontweight="bold")
        ax.set_ylabel(f"{name} in points", fontweight="bold")
        ax.xaxis.set_major_formatter(_percent)
        ax.yaxis.set_major_formatter(lambda value, position: f"{100 * value:.4g}")
        told = "; ".join(
            f"{m}: accuracy {row['accuracy']:.3f}, gap {row[result.fairness]:.3f}" for m, row in table.iterrows()
        )
        return f"Accuracy against {name}. Chosen: {result.best}. {told}."

    return _picture_for_screens(draw, (380, 330), "trade-off")


def _group_rates(result: "TableAudit", attribute: str) -> Markup:
    """Rates of every group with their intervals, of the reference and of the chosen method."""
    from skfairdp.inspection import GroupRatesDisplay

    rates = result.group_rates
    methods = list(dict.fromkeys([result.reference, result.best]))
    mine = pd.concat([rates[(rates["attribute"] == attribute) & (rates["method"] == method)] for method in methods])
    positive = result.settings["pos_label"]
    shown = ("accuracy",) if positive is None else ("tpr", "fpr", "selection_rate", "accuracy")
    if mine["group"].nunique() > _MANY_GROUPS:
        shown = shown[:1]

    def draw(ax: Any) -> str:
        GroupRatesDisplay(mine, ("group",), rates=shown, pos_label=positive, model="method").plot(ax)
        ax.get_legend().remove()
        ax.xaxis.set_major_formatter(_percent)
        told = " and ".join(methods)
        return f"Rates by {attribute} with 95% intervals, for {told}; the tables below have the numbers."

    height = 50 + 24 * len(shown) * (mine["group"].nunique() + 1)
    return _picture_for_screens(draw, (height, height), f"rates {attribute}")


def _leakage_picture(result: "TableAudit", attribute: str) -> Markup:
    """Accuracy of the strongest attacker on each method's output, beside what guessing reaches."""
    from skfairdp.inspection import LeakageDisplay

    rows = result.leakage[(result.leakage["attribute"] == attribute) & (result.leakage["attacker"] == "strongest")]
    labels = ["the columns" if name == "(columns)" else str(name) for name in rows["method"]]

    def draw(ax: Any) -> str:
        LeakageDisplay(rows, labels, chosen=result.best).plot(ax)
        ax.xaxis.set_major_formatter(_percent)
        told = "; ".join(f"{row['method']}: {row['accuracy']:.3f}" for _, row in rows.iterrows())
        majority = rows["majority"].iloc[0]
        return f"Share of rows whose {attribute} an attacker tells, guessing is right for {majority:.3f}. {told}."

    height = 60 + 30 * len(rows)
    return _picture_for_screens(draw, (height, height), f"leakage {attribute}")


def _percent(value: float, position: Any = None) -> str:
    return f"{100 * value:.4g}%"


def _gap_name(result: "TableAudit") -> str:
    return "TPR gap" if result.fairness == "tpr_gap" else "GRMS"


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
        "figure": _group_rates(result, attribute),
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
        "figure": _leakage_picture(result, attribute),
    }


def _candidates(result: "TableAudit") -> list[dict[str, Any]]:
    rows = result.candidates.reset_index(level="method").to_dict("records")
    for row in rows:
        params = row["params"]
        row["text"] = ", ".join(f"{name.split('__')[-1]}={value}" for name, value in params.items()) or "as it is"
    return rows
