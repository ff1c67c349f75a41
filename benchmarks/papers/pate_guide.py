"""PATE (docs/reproduction/pate_by_group.md): gap of excessive risk and accuracy, hard against soft labels.

Over exact epsilons, for 20 and 150 teachers that are the default networks, and a logistic student with the default
penalty on centred ("affine") soft labels; six redraws of split and teachers. Two redraws have network students as
well, and three further ones compare ways to post-process soft labels. See ``_pate_redraws`` for the protocol. Cells
that the paper's experiment has too are in the same journal, and measured once.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.papers._experiment import Experiment
from benchmarks.papers._pate_redraws import DATA, REDRAWS, cells_of, lines_of, measure
from benchmarks.papers._tables import NOTHING, save_figure, spread

TEACHERS = (20, 150)
FRESH = range(6, 9)  # for comparing ways to post-process, apart from the reported redraws

#: What soft over hard, the median of the data sets, is held to: quantity, teachers, epsilon, limit.
TARGETS = [
    ("gap", 20, 10.0, 0.60),
    ("gap", 150, 1.0, 0.60),
    ("gap", 150, 3.0, 0.25),
    ("gap", 150, 10.0, 0.15),
    ("test_gap", 150, 3.0, 0.40),
]
#: Titles, factors and digits of what tables show.
SHOWN = {
    "gap": ("gap", 1000, 1),
    "test_gap": ("test gap", 1000, 1),
    "accuracy": ("accuracy", 100, 1),
    "cross_entropy": ("cross-entropy", 1, 3),
}
GAPS = ("gap", "test_gap")
MODERATE = [(20, 10.0), (150, 1.0), (150, 3.0), (150, 10.0)]  # teachers and epsilon: noise at most half of the votes


def cells(mode: str) -> list[dict[str, Any]]:
    """All data sets of one redraw before the next, so that tables can be made at any time."""
    if mode == "quick":
        plan = [("labels", "Parkinsons", 150, "logistic", "affine", seed) for seed in (0, FRESH[0])]
        return cells_of([*plan, ("labels", "Parkinsons", 150, "logistic", "clip", FRESH[0])])
    plan = [("labels", data, k, "logistic", "affine", seed) for seed in REDRAWS for data in DATA for k in TEACHERS]
    plan += [
        ("labels", data, 150, "network", how, seed) for seed in (0, 1) for data in DATA for how in ("simplex", "none")
    ]
    plan += [
        ("labels", data, k, "logistic", how, seed)
        for seed in FRESH
        for data in DATA
        for k in TEACHERS
        for how in ("affine", "clip", "simplex")
    ]
    return cells_of(plan)


def tables(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The tables of the guide, and what its text says in numbers."""
    lines = _lines(frame)
    reported = _reported(lines)
    found = {"results": _results(reported), "soft-over-hard": _soft_over_hard(reported)}
    found["statements"] = _statements(reported)
    found["correlations"] = _correlations(reported)
    fresh = lines[lines["seed"].isin(FRESH) & lines["epsilon"].isin([1.0, 3.0, 10.0])]
    if len(fresh):
        found["postprocessing"] = _by_postprocessing(fresh)
    networks = lines[(lines["student"] == "network") & lines["epsilon"].isin([1.0, 10.0])]
    if len(networks):
        found["network-students"] = _network_students(networks)
    return found


def _lines(frame: pd.DataFrame) -> pd.DataFrame:
    return lines_of(frame, "labels").rename(columns={"n_teachers": "k"})


def _reported(lines: pd.DataFrame) -> pd.DataFrame:
    """Logistic students on centred labels, the redraws that are reported."""
    return lines[(lines["student"] == "logistic") & lines["seed"].isin(REDRAWS)].reset_index(drop=True)


def _results(lines: pd.DataFrame) -> pd.DataFrame:
    """One line per data set, number of teachers and epsilon: hard and soft side by side, with errors over redraws."""
    rows = []
    for (data, k, epsilon), part in lines.groupby(["data", "k", "epsilon"], sort=False):
        row = {"data": data, "k": k, "epsilon": f"{epsilon:g}"}
        for quantity, (title, scale, digits) in SHOWN.items():
            for kind in ("hard", "soft"):
                values = scale * part.loc[part["labels"] == kind, quantity]
                row[f"{title}, {kind}"] = spread(values, digits, of_mean=True)
        rows.append(row)
    return pd.DataFrame(rows).sort_values(["k", "data"], ascending=[False, True], kind="stable")


def _ratios(lines: pd.DataFrame, quantity: str) -> pd.DataFrame:
    """Soft over hard, of means over redraws, for each data set, and their median."""
    means = lines.pivot_table(index=["k", "epsilon", "data"], columns="labels", values=quantity)
    ratio = (means["soft"] / means["hard"]).unstack("data")
    return ratio.assign(median=ratio.median(axis=1))


def _soft_over_hard(lines: pd.DataFrame) -> pd.DataFrame:
    """The median of the data sets: one line per quantity and number of teachers, one column per epsilon."""
    rows = []
    for quantity in GAPS:
        medians = _ratios(lines, quantity)["median"].unstack("epsilon").sort_index(ascending=False)
        for k, ratios in medians.iterrows():
            row = {"": f"{SHOWN[quantity][0]}, {k} teachers"}
            rows.append(row | {f"epsilon {epsilon:g}": f"{ratio:.2f}" for epsilon, ratio in ratios.items()})
    return pd.DataFrame(rows)


def _correlations(lines: pd.DataFrame) -> pd.DataFrame:
    """Rank correlations with hard labels of 150 teachers at an epsilon of 1, mean over redraws."""
    rho = pd.DataFrame(lines["rho"].tolist()).join(lines[["data", "k", "epsilon", "labels"]])
    hard = rho[(rho["labels"] == "hard") & (rho["k"] == 150) & (rho["epsilon"] == 1.0)]
    means = hard.drop(columns=["k", "epsilon", "labels"]).groupby("data").mean().round(2)
    return means.rename(columns=lambda name: name.replace("_", " ")).reset_index()


def _by_postprocessing(lines: pd.DataFrame) -> pd.DataFrame:
    """Soft over hard for each way to post-process, median of the data sets; hard labels are never post-processed."""
    by = ["k", "epsilon", "data"]
    columns = []
    for quantity in GAPS:
        hard = lines[lines["labels"] == "hard"].groupby(by)[quantity].mean()
        soft = lines[lines["labels"] == "soft"].groupby([*by, "postprocess"])[quantity].mean()
        ratio = soft.unstack("postprocess").div(hard, axis=0).groupby(["k", "epsilon"]).median()
        columns.append(ratio.add_suffix(f", {SHOWN[quantity][0]}"))
    return pd.concat(columns, axis=1).map("{:.2f}".format).rename(index="{:g}".format).reset_index()


def _network_students(lines: pd.DataFrame) -> pd.DataFrame:
    """Hard labels beside two ways to post-process soft ones."""
    labels = lines["labels"].where(lines["labels"] == "hard", lines["postprocess"])
    by = lines.assign(labels=labels).groupby(["data", "epsilon", "labels"])
    columns = []
    for quantity, (title, scale, digits) in SHOWN.items():
        means = (scale * by[quantity].mean()).map(f"{{:.{digits}f}}".format).unstack("labels").fillna(NOTHING)
        columns.append(means.add_prefix(f"{title}, "))
    return pd.concat(columns, axis=1).rename(index="{:g}".format, level="epsilon").reset_index()


def _statements(lines: pd.DataFrame) -> pd.DataFrame:
    """What the guide says in words, beside what it is held to, as far as it was measured."""
    rows: list[tuple[str, str, str]] = []
    for quantity, k, epsilon, limit in TARGETS:
        ratios = _ratios(lines, quantity)["median"]
        if (k, epsilon) in ratios.index:
            title = f"{SHOWN[quantity][0]}, soft over hard, {k} teachers, epsilon {epsilon:g}"
            rows.append((title, f"{ratios[k, epsilon]:.3f}", f"at most {limit}"))
    accuracy = lines.pivot_table(index=["k", "epsilon", "data"], columns="labels", values="accuracy")
    lost = 100 * (accuracy["soft"] - accuracy["hard"]).unstack("data")
    lost = lost[lost.index.isin(MODERATE)]
    rows.append(("accuracy, soft less hard, points: mean", f"{lost.to_numpy().mean():.2f}", "at least -0.5"))
    rows.append(("accuracy, soft less hard, points: worst data set", f"{lost.mean().min():.2f}", "at least -1.5"))
    moved = pd.DataFrame(lines["sensitivity"].tolist())
    held = (moved["mean"] <= moved["bound"]).sum()
    rows.append(("model sensitivity within its bound", f"{held} of {len(moved)}", ""))
    times = (moved["bound"] / moved["mean"])[moved["mean"] > 0.001]  # ratios of smaller ones are noise over noise
    rows.append(("bound over model sensitivity", f"{times.min():.2f} to {times.max():.1f}", ""))
    printed = moved.dropna()  # Corollaries 1 and 2 are about hard labels
    for name, value, bound in (("1", "mean", "published_bound"), ("2", "mean_square", "published_square_bound")):
        rows.append((f"Corollary {name} held", f"{(printed[value] <= printed[bound]).sum()} of {len(printed)}", ""))
    return pd.DataFrame(rows, columns=["statement", "found", "target"])


def figures(frame: pd.DataFrame, folder: Path) -> None:
    """Risk of both groups, accuracy and cross-entropy over epsilon; one picture for each number of teachers."""
    reported = _reported(_lines(frame))
    for k, lines in reported.groupby("k"):
        save_figure(_figure(lines), folder / f"pate-guide-{k}-teachers.svg")


def _figure(lines: pd.DataFrame) -> Any:
    import matplotlib.pyplot as plt

    names = list(dict.fromkeys(lines["data"]))
    size = (3.1 * len(names), 7.2)
    figure, axes = plt.subplots(3, len(names), figsize=size, layout="constrained", sharex=True, squeeze=False)
    for column, name in zip(axes.T, names):
        part = lines[lines["data"] == name]
        for kind, colour, marker in (("hard", "#0072B2", "o"), ("soft", "#D55E00", "s")):
            mine = part[part["labels"] == kind].groupby("epsilon")
            style = {"color": colour, "marker": marker, "markersize": 4, "capsize": 3}
            _over_epsilon(column[0], mine["minority_risk"], label=f"{kind}, minority", **style)
            _over_epsilon(
                column[0], mine["majority_risk"], label=f"{kind}, majority", ls="--", markerfacecolor="white", **style
            )
            _over_epsilon(column[1], mine["accuracy"], label=kind, **style)
            _over_epsilon(column[2], mine["cross_entropy"], label=kind, **style)
        column[0].set_title(f"{name} (minority: {part['minority'].iloc[0]})", fontsize="medium")
        column[0].set_yscale("symlog", linthresh=0.01)
        column[0].axhline(0, color="0.6", linewidth=0.8)
        column[-1].set_xlabel("epsilon (exact)")
    for axis in axes.ravel():
        axis.set_xscale("log")
        axis.spines[["top", "right"]].set_visible(False)
    ticks = sorted(lines["epsilon"].unique())
    axes[0, 0].set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes[0, 0].minorticks_off()
    for axis, label in zip(axes[:, 0], ("excessive risk", "test accuracy", "test cross-entropy")):
        axis.set_ylabel(label)
    axes[0, 0].legend(frameon=False, fontsize="small")
    return figure


def _over_epsilon(axis: Any, values: Any, **style: Any) -> None:
    mean, error = values.mean(), values.std(ddof=1) / np.sqrt(values.size())
    axis.errorbar(mean.index, mean, yerr=error, **style)


EXPERIMENTS = {"pate-guide": Experiment("pate", cells, measure, tables, figures)}
