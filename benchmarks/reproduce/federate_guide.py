"""FEDERATE (docs/reproduction/federate_on_tables.md): Laplace noise against codes at exact epsilons, Adult and CelebA.

The guide has a line for each method at one epsilon, and a picture of accuracy over epsilon without any fairness term.
See ``_federate_fits`` for what is measured. Cells that the paper's experiment has too are in the same journal, and
measured once.
"""

import math
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.reproduce._experiment import Experiment
from benchmarks.reproduce._federate_fits import (
    CODES,
    EXACT,
    PENALTIES,
    PLAIN,
    WEIGHTS,
    choose,
    chosen_cells,
    grid_cells,
    measure,
    measured_of,
)
from benchmarks.reproduce._tables import number, save_figure, spread

CURVE = (1.0, 2.0, 4.0, 8.0, 16.0)
SEEDS = range(5)
NO_PENALTY = "codes, no penalty"
#: Lines of the table.
LINES = [
    ("Unconstrained", math.inf),
    ("Adversarial", math.inf),
    ("Noise, exact", 8.0),
    ("FEDERATE, exact", 8.0),
    ("codes, exact", 8.0),
    ("codes, exact", 4.0),
]


def methods(data: str) -> dict[str, list[dict[str, Any]]]:
    """The settings that each method may choose from, and those of the picture."""
    codes = [{**CODES, "epsilon": e, "fairness_penalty": w} for e in (8.0, 4.0) for w in PENALTIES[data]]
    table = {"Unconstrained": [PLAIN], "codes, exact": codes}
    if data == "adult":
        table |= {
            "Adversarial": [{**PLAIN, "adversary_weight": w} for w in WEIGHTS[::2]],
            "Noise, exact": [{"epsilon": e, "adversary_weight": 0.0, **EXACT} for e in CURVE],
            "FEDERATE, exact": [{"epsilon": 8.0, "adversary_weight": w, **EXACT} for w in WEIGHTS],
            NO_PENALTY: [{**CODES, "epsilon": e} for e in CURVE],
        }
    return table


def cells(mode: str, data: str) -> list[dict[str, Any]]:
    """All settings, seed after seed; in the quick mode those of the picture at epsilon 8, and one seed."""
    if mode == "full":
        return grid_cells(data, methods(data), SEEDS)
    names = ("Noise, exact", NO_PENALTY) if data == "adult" else ("codes, exact",)
    few = {name: [one for one in methods(data)[name] if one["epsilon"] == 8.0][:1] for name in names}
    return grid_cells(data, few, range(1))


def _choices(frame: pd.DataFrame) -> list[tuple[str, float, list[dict[str, Any]]]]:
    """Method, epsilon and the chosen cell of each seed, for each line of the table."""
    grid = frame[frame["stage"] == "grid"]
    epsilons = grid["settings"].map(lambda settings: settings["epsilon"])
    found = [(name, epsilon, grid[(grid["method"] == name) & (epsilons == epsilon)]) for name, epsilon in LINES]
    return [(name, epsilon, choose(rows)) for name, epsilon, rows in found if len(rows)]


def follow_up(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The chosen settings, for their leakage."""
    return chosen_cells(pick for _, _, picks in _choices(frame) for pick in picks)


def tables(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Mean and standard error over the seeds; leakage minus the rate of the larger group."""
    rows = []
    for method, epsilon, picks in _choices(frame):
        values = measured_of(picks, frame)
        row = {"method": method, "exact epsilon": number(epsilon)}
        row |= {"accuracy": spread(values["accuracy"], of_mean=True)}
        row |= {"TPR-gap": spread(values["tpr_gap"], of_mean=True)}
        if len(values["leakage"]) == len(picks):
            above = [leakage - pick["majority"] for leakage, pick in zip(values["leakage"], picks)]
            row |= {"leakage − majority": spread(above, of_mean=True)}
        rows.append(row | {"seeds": str(len(picks)), "larger group": f"{frame['majority'].mean():.1f}"})
    return {"methods": pd.DataFrame(rows).fillna("")}


def figures(frame: pd.DataFrame, folder: Path) -> None:
    """Accuracy over the exact epsilon, Laplace noise against codes, without a fairness term."""
    import matplotlib.pyplot as plt

    curve = frame[frame["method"].isin(["Noise, exact", NO_PENALTY]) & (frame["stage"] == "grid")]
    if not len(curve):
        return
    curve = curve.assign(
        epsilon=curve["exact_epsilon"].round(6),  # codes in 63-bit integers spend a little less than asked
        accuracy=[accuracy for accuracy, _ in curve["test"]],
    )
    figure, axis = plt.subplots(figsize=(5.5, 3.6), layout="constrained")
    for method, channel, marker, colour in (
        (NO_PENALTY, "codes", "o", "#0072B2"),
        ("Noise, exact", "laplace", "s", "#D55E00"),
    ):
        of = curve[curve["method"] == method].groupby("epsilon")["accuracy"]
        mean, error = of.mean(), of.sem()
        axis.errorbar(
            mean.index, mean, yerr=error, marker=marker, color=colour, capsize=3, label=f"channel={channel!r}"
        )
    axis.set(xlabel="exact epsilon of one release", ylabel="accuracy on the test part, %")
    axis.set_title("Adult, no fairness term")
    axis.set_xscale("log", base=2)
    ticks = sorted(curve["epsilon"].unique())
    axis.set_xticks(ticks, [f"{epsilon:g}" for epsilon in ticks])
    largest = curve["largest_class"].mean()
    axis.axhline(largest, color="0.6", linestyle=":", linewidth=1, label="always the larger class")
    axis.legend(frameon=False)
    axis.spines[["top", "right"]].set_visible(False)
    save_figure(figure, folder / "federate_adult.svg")


EXPERIMENTS = {
    f"federate-{data}-guide": Experiment(
        f"federate-{data}", partial(cells, data=data), measure, tables, figures, follow_up
    )
    for data in ("adult", "celeba")
}
