"""Figure 7 of the PATE fairness paper, for four data sets, from the journal of redraws."""

from pathlib import Path

import numpy as np
import pandas as pd

from skfairdp.inspection._display_style import colour_of, marker_of, quieten


def draw(runs: pd.DataFrame, folder: Path) -> None:
    """Write one figure for each number of teachers."""
    import matplotlib

    matplotlib.use("agg")
    for k in sorted(runs["k"].unique()):
        figure = _figure(runs[runs["k"] == k])
        figure.savefig(folder / f"pate_fairness_{k}.png", dpi=110, metadata={"Software": None})


def _figure(runs: pd.DataFrame):
    import matplotlib.pyplot as plt

    names = list(dict.fromkeys(runs["data"]))
    figure, axes = plt.subplots(3, len(names), figsize=(3.1 * len(names), 7.2), layout="constrained", sharex=True)
    for column, name in enumerate(names):
        part = runs[runs["data"] == name]
        for number, kind in enumerate(("hard", "soft")):
            lines = part[part["labels"] == kind].groupby("epsilon")
            for group, style in (("minority", "-"), ("majority", "--")):
                _series(axes[0, column], lines[f"{group}_risk"], number, f"{kind}, {group}", style)
            _series(axes[1, column], lines["accuracy"], number, kind, "-")
            _series(axes[2, column], lines["cross_entropy"], number, kind, "-")
        axes[0, column].set_title(f"{name} (minority: {part['minority'].iloc[0]})", fontsize="medium")
        axes[0, column].set_yscale("symlog", linthresh=0.01)
        axes[0, column].axhline(0, color="0.6", linewidth=0.8)
        axes[-1, column].set_xlabel("epsilon (exact)")
    for ax in axes.ravel():
        ax.set_xscale("log")
        quieten(ax)
    ticks = sorted(runs["epsilon"].unique())
    axes[0, 0].set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes[0, 0].minorticks_off()
    for ax, label in zip(axes[:, 0], ("excessive risk", "test accuracy", "test cross-entropy")):
        ax.set_ylabel(label)
    axes[0, 0].legend(frameon=False, fontsize="small")
    return figure


def _series(ax, grouped, number: int, label: str, style: str) -> None:
    mean, error = grouped.mean(), grouped.std(ddof=1) / np.sqrt(grouped.size())
    ax.errorbar(
        mean.index,
        mean,
        yerr=error,
        color=colour_of(number),
        marker=marker_of(number),
        linestyle=style,
        markerfacecolor=colour_of(number) if style == "-" else "white",
        markersize=4,
        capsize=3,
        label=label,
    )
