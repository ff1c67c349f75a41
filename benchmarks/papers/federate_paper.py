"""FEDERATE (Maheshwari, Denis, Keller and Bellet, Findings of EMNLP 2022): tables 2 (CelebA) and 3 (Adult).

Published numbers beside ours, and pictures in the style of the paper's figures 2 (with tables 4 to 6), 3 and 4. Noisy
methods are chosen twice: among all epsilons, and at each epsilon alone. Boosted trees that answer fairly and privately,
which the paper has not, are experiments of their own. See ``_federate_fits`` for what is measured.
"""

import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.papers._experiment import Experiment
from benchmarks.papers._federate_fits import (
    CODES,
    EXACT,
    FAIR_TREES,
    PENALTIES,
    PLAIN,
    PUBLIC_CODE,
    WEIGHTS,
    choose,
    chosen_cells,
    grid_cells,
    measure,
    measured_of,
)
from benchmarks.papers._tables import NOTHING, PLUS_MINUS, number, save_figure, spread

EPSILONS = (8.0, 10.0, 12.0, 14.0, 16.0)  # those of figure 4
SEEDS = range(5)
TITLES = {"accuracy": "accuracy", "tpr_gap": "TPR-gap", "leakage": "leakage", "mdl": "MDL, kbit"}
#: What the paper has not: the strongest of several attackers, by accuracy and by AUC.
STRONGEST = {"pool": "leakage, strongest attacker", "auc": "AUC, strongest attacker"}
THRESHOLDS = (0.0, 1.0, 3.0, 10.0)  # those of tables 4 to 6, in points of accuracy

#: Accuracy, TPR-gap, leakage, description length: mean and standard deviation.
PUBLISHED: dict[str, dict[str, tuple[tuple[float, float] | None, ...]]] = {
    "celeba": {
        "Random": ((50.00, 0.00), (0.00, 0.00), None, (104.64, 0.11)),
        "Unconstrained": ((85.70, 0.21), (12.25, 2.07), (81.3, 0.89), (67.82, 1.46)),
        "INLP": ((84.81, 0.47), (12.69, 4.66), (66.00, 1.32), (100.17, 1.65)),
        "Noise": ((85.12, 0.47), (12.49, 0.58), (59.01, 0.65), (103.93, 0.24)),
        "Adversarial": ((85.34, 0.22), (7.83, 0.97), (87.00, 2.22), (46.61, 5.52)),
        "Adversarial + Multiple": ((84.92, 0.12), (5.79, 1.44), (84.38, 2.07), (51.11, 4.06)),
        "FEDERATE": ((84.81, 0.34), (2.68, 0.60), (65.49, 3.48), (98.53, 4.51)),
    },
    "adult": {
        "Random": ((50.00, 0.00), (0.00, 0.00), None, (20.15, 0.083)),
        "Unconstrained": ((83.41, 0.32), (12.73, 7.17), (78.19, 1.0), (16.38, 0.46)),
        "INLP": ((83.11, 0.51), (3.91, 2.43), (74.54, 0.67), (19.93, 0.35)),
        "Noise": ((82.87, 0.37), (8.01, 1.18), (68.12, 0.94), (19.38, 0.33)),
        "Adversarial": ((83.14, 0.53), (7.02, 3.31), (78.2, 0.18), (16.1, 0.36)),
        "Adversarial + Multiple": ((83.14, 0.25), (3.55, 2.16), (81.37, 0.98), (13.5, 1.09)),
        "FEDERATE": ((82.29, 0.9), (2.73, 2.18), (70.25, 4.81), (18.1, 2.79)),
    },
}
# Published noise is drawn with broken lines, exact noise with full ones.
STYLES = {
    "Noise, published": ("#E69F00", "--", "s"),
    "Noise, exact": ("#E69F00", "-", "s"),
    "FEDERATE, published": ("#D55E00", "--", "o"),
    "FEDERATE, exact": ("#D55E00", "-", "o"),
    "codes, exact": ("#0072B2", "-", "D"),
    "INLP": ("#999999", "-", "v"),
    "Adversarial": ("#009E73", "-", "^"),
    "Adversarial + Multiple": ("#CC79A7", "-", "P"),
}


def methods(data: str) -> dict[str, list[dict[str, Any]]]:
    """The settings of each method; the smallest epsilon has all weights, the others every third of them."""
    pairs = [(e, w) for e in EPSILONS for w in WEIGHTS[:: 1 if e == EPSILONS[0] else 3]]
    penalties = [(e, w) for e in EPSILONS for w in PENALTIES[data][:: 1 if e == EPSILONS[0] else 3]]
    several = [
        {"n_adversaries": 3, "orthogonality": o, "adversary_weight": w} for o in (0.1, 1.0) for w in WEIGHTS[::2]
    ]
    return {
        "Random": [{}],
        "Unconstrained": [PLAIN],
        "INLP": [{"n_iterations": n} for n in range(2, 8)],
        "Noise, published": [{"epsilon": e, "adversary_weight": 0.0, **PUBLIC_CODE} for e in EPSILONS],
        "Noise, exact": [{"epsilon": e, "adversary_weight": 0.0, **EXACT} for e in EPSILONS],
        "Adversarial": [{**PLAIN, "adversary_weight": w} for w in WEIGHTS],
        "Adversarial + Multiple": [{**PLAIN, **one} for one in several],
        "FEDERATE, published": [{"epsilon": e, "adversary_weight": w, **PUBLIC_CODE} for e, w in pairs],
        "FEDERATE, exact": [{"epsilon": e, "adversary_weight": w, **EXACT} for e, w in pairs],
        "codes, exact": [{**CODES, "epsilon": e, "fairness_penalty": w} for e, w in penalties],
    }


def methods_of_trees() -> dict[str, list[dict[str, Any]]]:
    """What was not in the paper: boosted trees that answer fairly, with and without noise."""
    return {FAIR_TREES: [{"epsilon": e} for e in EPSILONS], "fair trees": [{"epsilon": math.inf}]}


def cells(mode: str, data: str) -> list[dict[str, Any]]:
    """All settings of all methods, seed after seed; in the quick mode one each of few."""
    if mode == "full":
        return grid_cells(data, methods(data), SEEDS)
    names = ("Unconstrained", "Noise, published", "codes, exact") if data == "adult" else ("codes, exact",)
    return grid_cells(data, {name: methods(data)[name][:1] for name in names}, range(1))


def cells_of_trees(mode: str, data: str) -> list[dict[str, Any]]:
    """Fair trees on the same splits, at the same epsilons."""
    if mode == "full":
        return grid_cells(data, methods_of_trees(), SEEDS)
    return grid_cells(data, {FAIR_TREES: [{"epsilon": EPSILONS[0]}]}, range(1))


def selections(grid: pd.DataFrame) -> list[tuple[str, float | None, list[dict[str, Any]]]]:
    """Method, epsilon, and the chosen cell of each seed: among all settings (epsilon is None), and at each epsilon."""
    found = []
    for method, rows in grid.groupby("method", sort=False):
        epsilons = rows["settings"].map(lambda settings: settings.get("epsilon", math.inf))
        several = sorted(set(epsilons)) if epsilons.nunique() > 1 else []
        for epsilon in (None, *several):
            found.append((method, epsilon, choose(rows if epsilon is None else rows[epsilons == epsilon])))
    return found


def follow_up(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The chosen settings of all tables, each once, for their leakage and description length."""
    grid = frame[frame["stage"] == "grid"]
    picks = [pick for _, _, picks in selections(grid) for pick in picks]
    return chosen_cells(picks + [pick for _, _, picks in _relaxed(grid) for pick in picks])


def tables(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """One line for each method; noisy methods once with the epsilon among what is chosen, once at the least of them."""
    grid = frame[frame["stage"] == "grid"]
    least = min(epsilon for epsilon in _epsilons(grid) if epsilon > 0)
    rows = [
        _line(method, epsilon, picks, frame)
        for method, epsilon, picks in selections(grid)
        if epsilon is None or epsilon == least
    ]
    largest = spread(grid.groupby("seed")["majority"].mean())
    rows.append({"method": "largest group", "leakage": f"{NOTHING} / {largest}"})
    cost = {
        "cells": len(frame),
        "CPU seconds of a cell, median": f"{frame['cpu_seconds'].median():.1f}",
        "CPU seconds, all": f"{frame['cpu_seconds'].sum():,.0f}",
        "peak memory of a process, MB": f"{frame['peak_mb'].max():,.0f}",
    }
    found = {"methods": pd.DataFrame(rows).fillna(""), "cost": pd.DataFrame([cost]), "thresholds": _thresholds(frame)}
    by_epsilon = _by_epsilon(frame)
    if len(by_epsilon):
        lines = []
        for (method, epsilon), of in by_epsilon.groupby(["method", "epsilon"], sort=False):
            line = {"method": method, "claimed ε": number(epsilon), "exact ε": number(of["exact"].iloc[0])}
            lines.append(line | {name: spread(of[name]) for name in ("accuracy", "tpr_gap", "leakage")})
        found["figure-4"] = pd.DataFrame(lines).rename(columns=TITLES)
    return found


def _line(method: str, epsilon: float | None, picks: list[dict[str, Any]], frame: pd.DataFrame) -> dict[str, str]:
    name, _, calibration = method.partition(", ")
    values = measured_of(picks, frame)
    everything = PUBLISHED[picks[0]["data"]].get(name) if calibration != "exact" and epsilon is None else None
    of_method = frame[(frame["stage"] == "grid") & (frame["method"] == method)]
    if epsilon is not None:
        of_method = of_method[of_method["settings"].map(lambda settings: settings["epsilon"] == epsilon)]
    row = {
        "method": method,
        "claimed ε": _span(_epsilons(of_method)),
        "exact ε": _span(set(of_method["exact_epsilon"].round(6))),
    }
    for column, title, published in zip(TITLES, TITLES.values(), everything or (None,) * 4):
        before = NOTHING if published is None else PLUS_MINUS.join(map(number, published))
        row[title] = f"{before} / {spread(values[column]) if len(values[column]) else NOTHING}"
    row |= {title: spread(values[column]) for column, title in STRONGEST.items() if len(values[column])}
    return row | {"seeds": str(len(picks)), "settings": str(len(of_method) // len(picks))}


def _relaxed(grid: pd.DataFrame) -> list[tuple[str, float, list[dict[str, Any]]]]:
    """Method, points of accuracy that may be given up, and the chosen cell of each seed."""
    by_method = grid.groupby("method", sort=False)
    return [(method, points, choose(rows, points / 100)) for method, rows in by_method for points in THRESHOLDS]


def _thresholds(frame: pd.DataFrame) -> pd.DataFrame:
    """What every method has if more or less accuracy may be given up (tables 4 to 6 of the paper)."""
    rows = []
    for method, points, picks in _relaxed(frame[frame["stage"] == "grid"]):
        values = measured_of(picks, frame)
        row = {"method": method, "within points": number(points)}
        names = {**TITLES, "auc": STRONGEST["auc"]}
        rows.append(row | {title: spread(values[name]) for name, title in names.items() if len(values[name])})
    return pd.DataFrame(rows).fillna("")


def _by_epsilon(frame: pd.DataFrame) -> pd.DataFrame:
    """Accuracy, gap and leakage of each noisy method, epsilon and seed."""
    rows = []
    for method, epsilon, picks in selections(frame[frame["stage"] == "grid"]):
        values = measured_of(picks, frame)
        if epsilon is not None and len(values["leakage"]) == len(picks):
            exact = [pick["exact_epsilon"] for pick in picks]
            of = pd.DataFrame({name: values[name] for name in ("accuracy", "tpr_gap", "leakage")} | {"exact": exact})
            rows.append(of.assign(method=method, epsilon=epsilon))
    return pd.concat(rows, ignore_index=True) if rows else pd.DataFrame()


def _epsilons(grid: pd.DataFrame) -> set[float]:
    claimed = {"Random": 0.0}
    return {
        settings.get("epsilon", claimed.get(method, math.inf))
        for method, settings in zip(grid["method"], grid["settings"])
    }


def _span(values: set[float]) -> str:
    low, high = min(values), max(values)
    return number(low) if low == high else f"{number(low)} to {number(high)}"


def figures(frame: pd.DataFrame, folder: Path, data: str) -> None:
    """Figures 2, 3 and 4: over relaxation thresholds, over validation accuracy, and over epsilon."""
    import matplotlib.pyplot as plt
    from matplotlib.ticker import MultipleLocator

    grid = frame[frame["stage"] == "grid"]
    _figure_2(frame, folder / f"federate-{data}-figure-2.svg")
    figure, axis = plt.subplots(figsize=(7, 3.6), layout="constrained")
    for method, (colour, line, marker) in STYLES.items():
        curve = best_gaps(grid[grid["method"] == method])
        if len(curve):
            axis.plot(curve.index, curve, line, color=colour, marker=marker, markersize=4, label=method)
    axis.set(xlabel="validation accuracy, % (middle of an interval of one point)", ylabel="least TPR-gap, %")
    axis.xaxis.set_major_locator(MultipleLocator(1))
    figure.legend(frameon=False, fontsize=7, handlelength=4, loc="outside right upper")
    save_figure(figure, folder / f"federate-{data}-figure-3.svg")
    by_epsilon = _by_epsilon(frame)
    if not len(by_epsilon):
        return
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    for method, rows in by_epsilon.groupby("method", sort=False):
        colour, line, marker = STYLES[method]
        for axis, column in zip(axes, ("accuracy", "leakage")):
            mean = rows.groupby("epsilon")[column].mean()
            axis.plot(mean.index, mean, line, color=colour, marker=marker, markersize=4, label=method)
    axes[0].set(xlabel="claimed ε", ylabel="accuracy, %")
    plain = frame[(frame["stage"] == "chosen") & (frame["method"] == "Unconstrained")]["leakage"].mean()
    largest = grid["majority"].mean()
    for height, name, style in ((plain, "no noise", "-."), (largest, "largest group", ":")):
        axes[1].axhline(height, color="0.4", linestyle=style, linewidth=1)
        axes[1].annotate(name, (16, height), xytext=(0, -12), textcoords="offset points", ha="right", fontsize=7)
    axes[1].set_ylim(bottom=largest - 0.15 * (plain - largest))  # room for the name below the line
    axes[1].set(xlabel="claimed ε", ylabel="leakage, %")
    figure.legend(
        *axes[0].get_legend_handles_labels(), frameon=False, fontsize=7, handlelength=4, loc="outside right upper"
    )
    save_figure(figure, folder / f"federate-{data}-figure-4.svg")


def _figure_2(frame: pd.DataFrame, path: Path) -> None:
    """Accuracy and gap on validation rows, and leakage, of what each relaxation threshold chooses."""
    import matplotlib.pyplot as plt

    relaxed = _relaxed(frame[frame["stage"] == "grid"])
    names = [name for name in dict.fromkeys(method for method, _, _ in relaxed) if name != "Random"]
    figure, axes = plt.subplots(1, 3, figsize=(11, 4.2), layout="constrained", sharey=True)
    for offset, (points, colour) in enumerate(zip(THRESHOLDS, ("#D55E00", "#E69F00", "#56B4E9", "#0072B2"))):
        chosen = {method: picks for method, one, picks in relaxed if one == points}
        places = [place + (offset - 1.5) / 6 for place in range(len(names))]
        for axis, column in zip(axes, ("accuracy", "gap", "leakage")):
            values = [_of_relaxed(column, chosen[name], frame) for name in names]
            axis.errorbar(
                [np.mean(one) if len(one) else math.nan for one in values],
                places,
                xerr=[np.std(one, ddof=1) if len(one) > 1 else 0.0 for one in values],
                fmt="o",
                markersize=4,
                linewidth=1,
                color=colour,
                label=f"{points:g}",
            )
    axes[0].set_yticks(range(len(names)), names)
    axes[0].invert_yaxis()
    labels = ("accuracy, % (validation)", "TPR-gap, % (validation)", "leakage, % (network)")
    for axis, label in zip(axes, labels):
        axis.set_xlabel(label)
        axis.grid(axis="y", linewidth=0.3)
    title = "points of accuracy that may be given up"
    handles = axes[0].get_legend_handles_labels()
    figure.legend(*handles, title=title, frameon=False, fontsize=8, ncols=4, loc="outside lower center")
    save_figure(figure, path)


def _of_relaxed(column: str, picks: list[dict[str, Any]], frame: pd.DataFrame) -> list[float]:
    if column == "leakage":
        return measured_of(picks, frame)["leakage"]
    return [pick["valid"][column == "gap"] for pick in picks]


def best_gaps(rows: pd.DataFrame) -> pd.Series:
    """Least validation gap among settings whose accuracy rounds to a whole point, mean over the seeds.

    An interval that fewer than half of the seeds reach is left out.
    """
    if not len(rows):
        return pd.Series(dtype=float)
    accuracy, gap = np.array(rows["valid"].tolist(), dtype=float).T
    flat = pd.DataFrame({"seed": rows["seed"].to_numpy(), "middle": np.round(accuracy), "gap": gap})
    best = flat.groupby(["middle", "seed"])["gap"].min().groupby("middle").agg(["mean", "size"])
    return best.loc[2 * best["size"] >= flat["seed"].nunique(), "mean"]


def tables_of_trees(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Further lines of table 2 or 3."""
    return {"methods": tables(frame)["methods"]}


EXPERIMENTS = {
    f"federate-{data}": Experiment(
        f"federate-{data}", partial(cells, data=data), measure, tables, partial(figures, data=data), follow_up
    )
    for data in ("adult", "celeba")
} | {
    f"federate-{data}-trees": Experiment(
        f"federate-{data}-trees", partial(cells_of_trees, data=data), measure, tables_of_trees, follow_up=follow_up
    )
    for data in ("adult", "celeba")
}
