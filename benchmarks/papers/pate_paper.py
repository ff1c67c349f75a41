"""PATE fairness analysis (Tran, Dinh, Beiter and Fioretto, 2021): figures 2 to 7 on the four data sets.

Students are networks, as in the paper, and logistic, as in its theorems. The paper's penalty belongs to a sum over 200
rows, so its lambda of 100 is 0.5 beside the mean loss that is used here. See ``_pate_redraws`` for the protocol.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.papers._experiment import Experiment
from benchmarks.papers._pate_redraws import DATA, REDRAWS, SHOWN, cells_of, lines_of, measure
from benchmarks.papers._tables import number, save_figure, spread

TEACHERS = (20, 50, 100, 150)
# Centred soft labels keep the loss of a logistic student convex; networks get shares between 0 and 1, or raw ones.
STUDENTS = (("logistic", "affine"), ("network", "simplex"), ("network", "none"))
LABELS = [(k, student, how) for k in (20, 150) for student, how in STUDENTS]
PAIRS = {
    "norm gradient_norm": "3: input norm and gradient norm",
    "norm risk": "5: input norm and excessive risk",
    "closeness flipping_probability": "6: closeness to the boundary and flipping probability",
    "flipping_probability risk": "6: flipping probability and excessive risk",
}


def cells(mode: str) -> list[dict[str, Any]]:
    """``sweep``: figures 2 to 6 at one ensemble size. ``labels``: figure 7."""
    if mode == "quick":
        plan = [("sweep", "Parkinsons", k, "logistic", "affine", 0) for k in (20, 150)]
        plan += [("labels", "Parkinsons", 150, "logistic", "affine", 0)]
    else:
        plan = []
        for seed in REDRAWS:
            for data in DATA:
                plan += [("sweep", data, k, student, "affine", seed) for student in SHOWN for k in TEACHERS]
                plan += [("labels", data, k, student, how, seed) for k, student, how in LABELS]
    return cells_of(plan)


def tables(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """One table for each figure; numbers are means over redraws of split and teachers."""
    found = {}
    sweep, labels = lines_of(frame, "sweep"), lines_of(frame, "labels")
    if len(sweep):
        found["figures-3-4"] = _by(_shown(sweep), "n_teachers", "k", flipping=True)
        at_150 = sweep[sweep["n_teachers"] == 150]
    if len(sweep) and len(at_150):  # not if only other ensembles were asked for
        found["figure-2"] = _by(at_150, "penalty", "λ")
        of = _shown(at_150)
        found["figures-3-5-6"] = pd.DataFrame(
            [
                {"figure": title, "student": student}
                | {data: spread(rows[pair], 2) for data, rows in mine.groupby("data", sort=False)}
                for pair, title in PAIRS.items()
                for student, mine in of.groupby("student", sort=False)
            ]
        )
    if len(labels):
        rows = []
        names = ["data", "k", "student", "soft labels", "epsilon"]
        labels = labels.assign(k=labels["n_teachers"], **{"soft labels": labels["postprocess"]})
        for values, of in labels.groupby(names, observed=True, sort=False):
            row = dict(zip(names[:-1], values)) | {"exact ε": number(values[-1])}
            for kind in ("hard", "soft"):
                mine = of[of["labels"] == kind]
                row |= {f"σ, {kind}": number(mine["sigma"].mean()), f"gap × 1000, {kind}": spread(1000 * mine["gap"])}
                moved = pd.Series([one["mean"] for one in mine["sensitivity"]])
                row |= {f"accuracy, {kind}": spread(100 * mine["accuracy"]), f"sensitivity, {kind}": spread(moved, 3)}
            rows.append(row)
        found["figure-7"] = pd.DataFrame(rows)
    return found


def _shown(sweep: pd.DataFrame) -> pd.DataFrame:
    return sweep[sweep["penalty"] == sweep["student"].map(SHOWN)]


def _by(lines: pd.DataFrame, column: str, name: str, *, flipping: bool = False) -> pd.DataFrame:
    rows = []
    lines = lines.assign(data=pd.Categorical(lines["data"], DATA))
    for (data, value), both in lines.groupby(["data", column], observed=True):
        row = {"data": data, name: number(value), "exact ε": number(both["exact_epsilon"].mean())}
        if flipping:  # the teachers' alone: students have no part in it
            row["mean flipping probability"] = spread(both[both["student"] == "logistic"]["flipping"], 3)
        for student, of in both.groupby("student", sort=False):
            row[f"{student}: model sensitivity"] = spread(of["sensitivity"], 3)
            if student == "logistic":
                row["bound on it"] = number(of["bound"].mean())
            row |= {f"{student}: gap × 1000": spread(1000 * of["gap"])}
            row |= {f"{student}: accuracy": spread(100 * of["accuracy"])}
        rows.append(row)
    return pd.DataFrame(rows)


def figures(frame: pd.DataFrame, folder: Path) -> None:
    """Pictures in the style of figures 2, 4 with 3, 5, 6 (right) and 7."""
    import matplotlib.pyplot as plt

    sweep, labels = lines_of(frame, "sweep"), lines_of(frame, "labels")
    panels = [("sensitivity", "model sensitivity"), ("gap", "gap of excessive risk"), ("accuracy", "accuracy")]
    if len(sweep):
        of_150 = sweep[sweep["n_teachers"] == 150]
        _over(of_150, "penalty", "λ (sum form)", panels, folder / "pate-figure-2.svg")
        shown = [("flipping", "flipping probability"), *panels]
        _over(_shown(sweep), "n_teachers", "teachers k", shown, folder / "pate-figure-4.svg")
    of = _shown(of_150) if len(sweep) else sweep
    _by_fifths(of[of["student"] == "logistic"] if len(of) else of, folder / "pate-figure-5.svg")
    _risk_by_flipping(of, folder / "pate-figure-6.svg")
    _sensitivity(labels, folder / "pate-figure-7-left.svg")
    labels = labels[labels["n_teachers"] == 150] if len(labels) else labels
    if len(labels):
        names = [data for data in DATA if (labels["data"] == data).any()]
        figure, axes = plt.subplots(2, len(names), figsize=(3 * len(names), 4.6), layout="constrained", squeeze=False)
        for (student, how), line in (
            (("logistic", "affine"), "-"),
            (("network", "simplex"), "--"),
            (("network", "none"), ":"),
        ):
            for column, data in enumerate(names):
                of = labels[(labels["data"] == data) & (labels["student"] == student) & (labels["postprocess"] == how)]
                for kind, colour in (("hard", "#D55E00"), ("soft", "#0072B2")):
                    mine = of[of["labels"] == kind].groupby("epsilon")
                    if not len(mine) or (kind == "hard" and how == "none"):  # hard labels are not post-processed
                        continue
                    name = f"{student}, {kind}" + (", raw" if how == "none" else "")
                    for row, values in enumerate((mine["gap"].mean(), 100 * mine["accuracy"].mean())):
                        axes[row, column].plot(
                            values.index, values, line, color=colour, marker="o", markersize=3, label=name
                        )
                axes[0, column].set(title=data, xscale="log", yscale="log", ylabel="gap of excessive risk")
                axes[1, column].set(xscale="log", xlabel="exact ε", ylabel="accuracy, %")
        handles = axes[0, 0].get_legend_handles_labels()
        figure.legend(*handles, frameon=False, fontsize=7, handlelength=4, ncols=5, loc="outside lower center")
        save_figure(figure, folder / "pate-figure-7.svg")


def _by_fifths(lines: pd.DataFrame, path: Path) -> None:
    """Figure 5, left: how far noise moves students that are trained on a fifth of the rows each."""
    import matplotlib.pyplot as plt

    if not len(lines):
        return
    figure, axis = plt.subplots(figsize=(4, 2.8), layout="constrained")
    for data, rows in lines.groupby("data", sort=False):
        bins = np.mean(rows["norm_bins"].tolist(), axis=0)
        axis.plot(bins[:, 0], bins[:, 1], marker="o", markersize=3, label=data)
    axis.set(xlabel="input norm (mean of a fifth of the rows)", ylabel="model sensitivity")
    axis.legend(frameon=False, fontsize=7)
    save_figure(figure, path)


def _risk_by_flipping(lines: pd.DataFrame, path: Path) -> None:
    """Figure 6, right: excessive risk over the probability that noise flips a label, fifths of the rows."""
    import matplotlib.pyplot as plt

    if not len(lines):
        return
    students = list(lines["student"].unique())
    figure, axes = plt.subplots(1, len(students), figsize=(4 * len(students), 2.8), layout="constrained", squeeze=False)
    for axis, student in zip(axes[0], students):
        for data, rows in lines[lines["student"] == student].groupby("data", sort=False):
            fifths = np.mean(rows["risk_by_flipping"].tolist(), axis=0)
            axis.plot(fifths[:, 0], fifths[:, 1], marker="o", markersize=3, label=data)
        axis.set(xlabel="flipping probability (mean of a fifth of the rows)", ylabel="excessive risk", title=student)
    axes[0, 0].legend(frameon=False, fontsize=7)
    save_figure(figure, path)


def _sensitivity(labels: pd.DataFrame, path: Path) -> None:
    """Figure 7, left: how far noise moves logistic students with hard and with soft labels, over the exact epsilon."""
    import matplotlib.pyplot as plt

    of = labels[labels["student"] == "logistic"] if len(labels) else labels
    if not len(of):
        return
    of = of.assign(moved=[one["mean"] for one in of["sensitivity"]])
    names = [data for data in DATA if (of["data"] == data).any()]
    figure, axes = plt.subplots(1, len(names), figsize=(3 * len(names), 2.8), layout="constrained", squeeze=False)
    for axis, data in zip(axes[0], names):
        for (k, kind), rows in of[of["data"] == data].groupby(["n_teachers", "labels"]):
            mean = rows.groupby("epsilon")["moved"].mean()
            colour, line = "#D55E00" if kind == "hard" else "#0072B2", "-" if k == 150 else "--"
            axis.plot(mean.index, mean, line, color=colour, marker="o", markersize=3, label=f"{kind}, k = {k}")
        axis.set(xscale="log", yscale="log", xlabel="exact ε", ylabel="model sensitivity", title=data)
    handles = axes[0, 0].get_legend_handles_labels()
    figure.legend(*handles, frameon=False, fontsize=7, handlelength=4, ncols=4, loc="outside lower center")
    save_figure(figure, path)


def _over(lines: pd.DataFrame, x: str, title: str, panels: list[tuple[str, str]], path: Path) -> None:
    """One row of panels for each kind of student, one line for each data set; no picture of no lines."""
    import matplotlib.pyplot as plt

    if not len(lines):
        return
    students = list(lines["student"].unique())
    size = (3.2 * len(panels), 2.6 * len(students))
    figure, axes = plt.subplots(len(students), len(panels), figsize=size, layout="constrained", squeeze=False)
    for row, student in zip(axes, students):
        for axis, (column, label) in zip(row, panels):
            for data, rows in lines[lines["student"] == student].groupby("data", sort=False):
                mean = rows.groupby(x)[column].mean()
                axis.plot(mean.index, mean, marker="o", markersize=3, label=data)
            axis.set(xlabel=title, ylabel=label, xscale="log" if x == "penalty" else "linear", title=student)
    axes[0, 0].legend(frameon=False, fontsize=7)
    save_figure(figure, path)


EXPERIMENTS = {"pate": Experiment("pate", cells, measure, tables, figures)}
