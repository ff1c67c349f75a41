"""Draws the picture of README and landing page from the shipped table that FairPrivateClassifier was measured for.

``python docs/draw_tradeoff.py`` writes it twice, for light and for dark pages. The numbers that it shows are also in
the description of the file, and a test compares them with the table.
"""

import csv
from pathlib import Path

DOCS = Path(__file__).resolve().parent
TABLE = DOCS.parent / "benchmarks" / "papers" / "tables" / "fair-private-guide-full-adult.csv"
#: Private methods: how the table calls one, its label, its marker, and where its epsilons stand from the points.
PRIVATE = (
    ("fair private trees", "FairPrivateClassifier (trees)", "o", (-9, -3), "right"),
    ("codes", "FederateClassifier (codes)", "s", (9, -3), "left"),
    ("Laplace", "FederateClassifier (Laplace)", "^", (4, 7), "right"),
)
#: The others: how the table calls one, its label, where that stands from the point, and at which of its ends.
OTHERS = (
    ("trees", "boosted trees", (0, 9), "center"),
    ("logistic regression", "logistic regression", (-8, -14), "right"),
    ("ExponentiatedGradient, trees", "the trees with fairlearn", (4, 9), "left"),
    ("ThresholdOptimizer, trees", "", (0, 0), "left"),
)
#: Ink, paper and the colours of the private methods.
PAGES = {
    "light": ("#222222", "#ffffff", ("#0072B2", "#009E73", "#D55E00")),
    "dark": ("#d8dee6", "#14181e", ("#56B4E9", "#2CC79A", "#F08A3C")),
}


def points() -> dict[tuple[str, str], tuple[float, float]]:
    """Return TPR gap and accuracy, in percent, by method and exact epsilon."""
    shown = {name for name, *_ in (*PRIVATE, *OTHERS)}
    with TABLE.open(encoding="utf-8", newline="") as table:
        return {
            (row["method"], row["exact epsilon"]): tuple(float(row[c].split()[0]) for c in ("TPR-gap", "accuracy"))
            for row in csv.DictReader(table)
            if row["method"] in shown and row["exact epsilon"] != "1"  # at 1 all get the same answer
        }


def description() -> str:
    """Say in words what the picture shows, point by point."""
    lines = (f"{m}, epsilon {e}: gap {gap}, accuracy {accuracy}" for (m, e), (gap, accuracy) in points().items())
    return "; ".join(lines)


def draw(path: Path, page: str) -> None:
    """Write the picture for a light or a dark page."""
    import matplotlib.pyplot as plt

    ink, paper, colours = PAGES[page]
    style = {"text.color": ink, "axes.edgecolor": ink, "axes.labelcolor": ink, "xtick.color": ink, "ytick.color": ink}
    with plt.rc_context({**style, "svg.hashsalt": page, "font.size": 11, "figure.facecolor": paper}):
        figure, ax = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
        ax.set_facecolor(paper)
        found = points()
        for (method, label, marker, beside, side), colour in zip(PRIVATE, colours):
            line = [(gap, accuracy, e) for (m, e), (gap, accuracy) in found.items() if m == method]
            ax.plot(*zip(*[p[:2] for p in line]), color=colour, marker=marker, label=label, markersize=7)
            for gap, accuracy, epsilon in line:
                if epsilon != "∞":
                    ax.annotate(
                        f"ε = {epsilon}",
                        (gap, accuracy),
                        beside,
                        textcoords="offset points",
                        ha=side,
                        color=colour,
                        fontsize=10,
                    )
        for method, label, beside, side in OTHERS:
            spot = found[method, "∞"]
            ax.plot(
                *spot, marker="D", color=ink, linestyle="", markersize=6, label="no privacy" if beside == (0, 0) else ""
            )
            ax.annotate(label, spot, beside, textcoords="offset points", ha=side, fontsize=10)
        ax.set(xlabel="TPR gap between women and men, points (smaller is fairer)", ylabel="accuracy, %")
        ax.set(xlim=(0, 9.8), ylim=(74.5, 88.2))
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(loc="lower right", frameon=False, title="what each answer costs: exact ε", alignment="left")
        figure.savefig(path, metadata={"Date": None, "Description": description()})
        plt.close(figure)


if __name__ == "__main__":
    for page in PAGES:
        draw(DOCS / "_static" / f"tradeoff-{page}.svg", page)
