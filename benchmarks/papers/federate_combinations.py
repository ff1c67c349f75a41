"""What makes FEDERATE fair and private: every channel with and without adversary and penalty, on Adult and CelebA.

The channels are none, Laplace noise at an exact epsilon of 8, and codes at the same. An adversary has three weights, a
penalty on the gap six, and both together nine pairs, from which the setting is chosen by validation rows as in
``_federate_fits``. Boosted trees that answer fairly and privately stand beside them.
"""

import math
from functools import partial
from typing import Any

import pandas as pd

from benchmarks.papers._experiment import Experiment
from benchmarks.papers._federate_fits import (
    CODES,
    EXACT,
    FAIR_TREES,
    PENALTIES,
    PLAIN,
    WEIGHTS,
    choose,
    chosen_cells,
    grid_cells,
    measure,
    measured_of,
)
from benchmarks.papers._tables import NOTHING, number, spread

EPSILON = 8.0
CHANNELS = {
    "no noise": PLAIN,
    "Laplace": {"epsilon": EPSILON, "adversary_weight": 0.0, **EXACT},
    "codes": {**CODES, "epsilon": EPSILON},
}
TITLES = {
    "accuracy": "accuracy",
    "tpr_gap": "TPR-gap",
    "leakage": "leakage, network",
    "pool": "leakage, strongest attacker",
    "auc": "AUC, strongest attacker",
}


def methods(data: str) -> dict[str, list[dict[str, Any]]]:
    """The settings that each combination may choose from."""
    adversaries = [{"adversary_weight": weight} for weight in WEIGHTS[::5]]
    penalties = [{"fairness_penalty": penalty} for penalty in PENALTIES[data]]
    terms = {
        "": [{}],
        " + adversary": adversaries,
        " + penalty": penalties,
        " + adversary + penalty": [{**one, **other} for one in adversaries for other in penalties[::2]],
    }
    found = {
        channel + name: [{**settings, **one} for one in grid]
        for channel, settings in CHANNELS.items()
        for name, grid in terms.items()
    }
    return found | {FAIR_TREES: [{"epsilon": EPSILON}], "fair trees": [{"epsilon": math.inf}]}


def cells(mode: str, data: str) -> list[dict[str, Any]]:
    """All settings, seed after seed; in the quick mode the first of three combinations."""
    if mode == "full":
        return grid_cells(data, methods(data), range(5))
    names = ("no noise + penalty", "Laplace + penalty", FAIR_TREES) if data == "adult" else ("codes + penalty",)
    return grid_cells(data, {name: methods(data)[name][:1] for name in names}, range(1))


def follow_up(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The chosen settings, for what they give away."""
    grid = frame[frame["stage"] == "grid"]
    return chosen_cells(pick for _, rows in grid.groupby("method", sort=False) for pick in choose(rows))


def tables(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """One line for each combination, and the share of the largest group."""
    grid = frame[frame["stage"] == "grid"]
    lines = []
    for method, rows in grid.groupby("method", sort=False):
        picks = choose(rows)
        values = measured_of(picks, frame)
        line = {"method": method, "exact ε": number(max(pick["exact_epsilon"] for pick in picks))}
        line |= {title: spread(values[name]) if len(values[name]) else NOTHING for name, title in TITLES.items()}
        lines.append(line | {"seeds": str(len(picks)), "settings": str(len(rows) // len(picks))})
    largest = spread(grid.groupby("seed")["majority"].mean())
    lines.append({"method": "largest group", **dict.fromkeys(list(TITLES.values())[2:4], largest)})
    return {"combinations": pd.DataFrame(lines).fillna("")}


EXPERIMENTS = {
    f"federate-{data}-combinations": Experiment(
        f"federate-{data}-combinations", partial(cells, data=data), measure, tables, follow_up=follow_up
    )
    for data in ("adult", "celeba")
}
