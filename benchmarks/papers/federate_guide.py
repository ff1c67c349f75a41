"""FEDERATE's guide (docs/guide/federate.md): accuracy on Adult over the exact epsilon, Laplace noise against codes.

There is no fairness term, and so nothing to choose. See ``_federate_fits`` for what is measured.
"""

from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.papers._experiment import Experiment
from benchmarks.papers._federate_fits import CODES, EXACT, grid_cells, measure
from benchmarks.papers._tables import number, save_figure, spread

EPSILONS = (1.0, 2.0, 4.0, 8.0, 16.0)
SEEDS = range(5)
CHANNELS = {"Laplace": {**EXACT, "adversary_weight": 0.0}, "codes": CODES}


def cells(mode: str) -> list[dict[str, Any]]:
    """Both channels at all epsilons; in the quick mode at one of them, and one seed."""
    epsilons, seeds = (EPSILONS, SEEDS) if mode == "full" else ((8.0,), range(1))
    methods = {name: [{**settings, "epsilon": e} for e in epsilons] for name, settings in CHANNELS.items()}
    return grid_cells("adult", methods, seeds)


def tables(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """A line for each epsilon: mean and standard error over the seeds."""
    accuracy = _accuracies(frame).groupby(["epsilon", "method"], sort=False)["accuracy"]
    shown = accuracy.agg(lambda values: spread(values, of_mean=True)).unstack("method").sort_index()
    return {"accuracy": shown.rename(index=number).rename_axis("exact ε").reset_index()}


def _accuracies(frame: pd.DataFrame) -> pd.DataFrame:
    """Of every fit, on test rows."""
    return frame.assign(
        epsilon=frame["exact_epsilon"].round(6),  # codes in 63-bit integers spend a little less than asked
        accuracy=[accuracy for accuracy, _ in frame["test"]],
    )


def figures(frame: pd.DataFrame, folder: Path) -> None:
    """Accuracy over the exact epsilon."""
    import matplotlib.pyplot as plt

    fits = _accuracies(frame)
    figure, axis = plt.subplots(figsize=(5.5, 3.6), layout="constrained")
    for method, marker, colour in (("codes", "o", "#0072B2"), ("Laplace", "s", "#D55E00")):
        of = fits[fits["method"] == method].groupby("epsilon")["accuracy"]
        mean, error = of.mean(), of.sem()
        label = f"channel={method.lower()!r}"
        axis.errorbar(mean.index, mean, yerr=error, marker=marker, color=colour, capsize=3, label=label)
    axis.set(xlabel="exact epsilon of one release", ylabel="accuracy on the test part, %")
    axis.set_title("Adult, no fairness term")
    axis.set_xscale("log", base=2)
    ticks = sorted(fits["epsilon"].unique())
    axis.set_xticks(ticks, [f"{epsilon:g}" for epsilon in ticks])
    largest = fits["largest_class"].mean()
    axis.axhline(largest, color="0.6", linestyle=":", linewidth=1, label="always the larger class")
    axis.legend(frameon=False)
    axis.spines[["top", "right"]].set_visible(False)
    save_figure(figure, folder / "federate-adult-guide-accuracy.svg")


EXPERIMENTS = {"federate-adult-guide": Experiment("federate-adult-guide", cells, measure, tables, figures)}
