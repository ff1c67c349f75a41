"""The pictures of the report: drawn by the Displays, in the colours of the page."""

import io
import re
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd
from markupsafe import Markup, escape

from skfairdp.table_audit._plain_words import fairness_words, listed

if TYPE_CHECKING:
    from skfairdp.table_audit._table_audit import TableAudit

_WIDE, _NARROW = 720.0, 340.0  # width of a picture on a screen and on a phone, in pixels
_BESIDE_THE_VERDICT = 600.0  # width of the picture on the first screen
_MANY_GROUPS = 6  # with more, only the first rate is drawn, and the tables have the others
#: Groups of a calibration picture: as many as there are colours that the page has in light and dark.
_GROUP_STYLES = (("#0072B2", "o"), ("#D55E00", "s"), ("#009E73", "^"), ("#000000", "D"))


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


def _picture_for_screens(
    draw: Callable[[Any], str], heights: tuple[float, float], salt: str, wide: float = _WIDE
) -> Markup:
    """Draw for a screen and for a phone; the style sheet shows one of them.

    Parameters
    ----------
    draw : callable
        Draws into the axes that it is given, and returns what a screen reader says instead of the picture.
    heights : (float, float)
        Height of each, in pixels.
    salt : str
        Sets the names inside the picture apart from those in other pictures of the page.
    wide : float
        Width on a screen, in pixels. A picture that is shown narrower has smaller letters.
    """
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    metadata = {"Date": None, "Creator": None, "Format": None, "Type": None}
    pictures = []
    for css, width, height in zip(("wide", "narrow"), (wide, _NARROW), heights):
        with matplotlib.rc_context(_RC_PARAMS | {"svg.hashsalt": f"{salt} {css}"}), warnings.catch_warnings():
            # Measured in matplotlib's font, which lacks many scripts. The page's font, which is shown, may have them.
            warnings.filterwarnings("ignore", "Glyph .* missing|Matplotlib currently does not support")
            figure = Figure(figsize=(width / 72, height / 72), layout="constrained")  # 72 pixels to the inch, as in SVG
            label = draw(figure.subplots())
            layout = figure.get_layout_engine()
            assert layout is not None
            layout.execute(figure)
            figure.set_layout_engine("none")  # or else it would be laid out once more
            file = io.StringIO()
            FigureCanvasSVG(figure).print_svg(file, metadata=metadata)  # savefig draws everything twice
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


def tradeoff_picture(result: "TableAudit") -> Markup:
    """Draw accuracy to the right and the gap upwards, so that better is lower right; nothing where no two can be."""
    name = fairness_words(result.fairness).name
    table = result.table[result.table[result.fairness].notna()]
    if len(table) < 2:
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

    return _picture_for_screens(draw, (300, 330), "trade-off", _BESIDE_THE_VERDICT)


def rates_shown(result: "TableAudit", n_groups: int) -> tuple[str, ...]:
    """Return the rates that a picture shows: first what the fairness metric compares; with many groups nothing else."""
    if result.settings["pos_label"] is None:
        return ("accuracy",)
    first = fairness_words(result.fairness).rates
    shown = (*first, *(rate for rate in ("selection_rate", "tpr", "fpr", "accuracy") if rate not in first))
    return shown[: max(1, len(first))] if n_groups > _MANY_GROUPS else shown


def group_rates_picture(result: "TableAudit", attribute: str, most_rates: int | None = None) -> Markup:
    """Draw the rates of every group with their intervals, of the reference and of the chosen method.

    With ``most_rates`` it is the picture beside the verdict.
    """
    from skfairdp.inspection import GroupRatesDisplay

    rates = result.group_rates
    methods = list(dict.fromkeys([result.reference, result.best]))
    mine = pd.concat([rates[(rates["attribute"] == attribute) & (rates["method"] == method)] for method in methods])
    shown = rates_shown(result, mine["group"].nunique())[:most_rates]
    mine = mine[mine["group"].isin(_drawn_groups(result, attribute, shown))]
    if mine.empty:
        return Markup("")
    positive = result.settings["pos_label"]

    def draw(ax: Any) -> str:
        GroupRatesDisplay(mine, ("group",), rates=shown, pos_label=positive, model="method").plot(ax)
        ax.get_legend().remove()
        ax.xaxis.set_major_formatter(_percent)
        told = " and ".join(methods)
        return f"Rates by {attribute} with 95% intervals, for {told}; the tables below have the numbers."

    height = 50 + 24 * len(shown) * (mine["group"].nunique() + 1)
    wide = _WIDE if most_rates is None else _BESIDE_THE_VERDICT
    return _picture_for_screens(draw, (height, height), f"rates {attribute} {most_rates}", wide)


def _drawn_groups(result: "TableAudit", attribute: str, shown: Sequence[str]) -> list[str]:
    rates, positive = result.group_rates, result.settings["pos_label"]
    drawn = rates[
        (rates["attribute"] == attribute)
        & rates["method"].isin([result.reference, result.best])
        & rates["rate"].isin(shown)
        & ((rates["rate"] == "accuracy") | (rates["class"] == positive))
        & rates["value"].notna()
    ]
    return list(dict.fromkeys(drawn["group"]))


def groups_not_drawn(result: "TableAudit", attribute: str) -> list[str]:
    """Return the groups that a picture of rates lacks, because they have no row that it could show."""
    mine = result.group_rates[result.group_rates["attribute"] == attribute]
    known = dict.fromkeys([*mine["group"], *map(str, result.too_few.get(attribute, ()))])
    drawn = _drawn_groups(result, attribute, rates_shown(result, mine["group"].nunique()))
    return [group for group in known if group not in drawn]


def calibration_picture(result: "TableAudit", method: str, attribute: str) -> tuple[Markup, list[str]]:
    """Draw what happens against what the scores say, for the largest groups; return those that are drawn too."""
    from skfairdp.inspection import shortened_label

    table = result.calibration
    assert table is not None
    mine = table[(table["method"] == method) & (table["attribute"] == attribute)]
    sizes = mine[mine["bin"].astype(str) == "all"].set_index("group")["n"].sort_values(ascending=False, kind="stable")
    groups = [str(group) for group in sizes.index[: len(_GROUP_STYLES)]]
    bins = mine[(mine["bin"].astype(str) != "all") & (mine["n"] > 0)]
    if bins.empty:
        return Markup(""), []

    def draw(ax: Any) -> str:
        ax.plot([0, 1], [0, 1], color="#a6a6a6", linestyle="--", linewidth=1)
        for (colour, marker), group in zip(_GROUP_STYLES, groups):
            rows = bins[bins["group"].astype(str) == group].sort_values("mean_score")
            errors = [rows["observed"] - rows["lower"], rows["upper"] - rows["observed"]]
            style = {"color": colour, "marker": marker, "markersize": 6, "linewidth": 1.4, "elinewidth": 1}
            ax.errorbar(rows["mean_score"], rows["observed"], yerr=errors, label=shortened_label(group), **style)
        ax.spines[["top", "right"]].set_visible(False)
        ax.set_xlabel("mean score", fontweight="bold")
        ax.set_ylabel("share that happens", fontweight="bold")
        ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
        ax.xaxis.set_major_formatter(_percent)
        ax.yaxis.set_major_formatter(_percent)
        ax.legend(frameon=False, loc="upper left")
        return (
            f"Calibration of {method} by {attribute}: the share that happens against the mean score, for "
            f"{listed(groups)}; the table below has the numbers."
        )

    return _picture_for_screens(draw, (340, 330), f"calibration {method} {attribute}"), groups


def leakage_picture(result: "TableAudit", attribute: str) -> Markup:
    """Draw the accuracy of the strongest attacker on each method's output, beside what guessing reaches."""
    from skfairdp.inspection import LeakageDisplay

    rows = result.leakage[(result.leakage["attribute"] == attribute) & (result.leakage["attacker"] == "strongest")]
    labels = ["the columns" if name == "(columns)" else str(name) for name in rows["method"]]

    def draw(ax: Any) -> str:
        LeakageDisplay(rows, labels, chosen=result.best).plot(ax)
        ax.xaxis.set_major_formatter(_percent)
        told = "; ".join(f"{row['method']}: {row['accuracy']:.3f}" for _, row in rows.iterrows())
        majority = rows["majority"].iloc[0]
        return f"Share of rows whose {attribute} an attacker tells, guessing is right for {majority:.3f}. {told}."

    if rows.empty:
        return Markup("")
    height = 60 + 30 * len(rows)
    return _picture_for_screens(draw, (height, height), f"leakage {attribute}")


def _percent(value: float, position: Any = None) -> str:
    return f"{100 * value:.4g}%"
