"""PATE beside other libraries and two models without privacy (docs/reproduction/private_training.md).

Five tables: those of the PATE experiments (``_pate_redraws``), and Adult by sex. A quarter of the rows is not private;
half of it, at most 3,000 rows, is the test set, and the rest are public rows without labels. All methods get the same
private rows, at most 20,000, standardised by the public ones. Labels of public rows are shown to none. Accuracy, area
under the ROC curve, gap of true positive rates, and seconds of one core for a fit, over five redraws.
"""

import time
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.papers._experiment import Experiment
from benchmarks.papers._peers_environment import ask, peers_python, say_missing
from benchmarks.papers._private_peers import NOISE, PEERS
from benchmarks.papers._tables import NOTHING, save_figure, spread

DATA = ("Credit card", "Bank", "Income", "Parkinsons", "Adult")
EPSILONS = (0.5, 1.0, 3.0, 8.0)
DELTA = 1e-5
REDRAWS = range(5)
TEST_ROWS = 3000
PRIVATE_ROWS = 20_000  # at most, so that five redraws of everything take an hour
PATE = "PATE"
CLEAR = ("logistic regression", "boosted trees", "largest class")  # without privacy
SHOWN = {"accuracy": (100, 1), "auc": (100, 1), "tpr": (100, 1), "tpr_gap": (100, 1)}


def cells(mode: str) -> list[dict[str, Any]]:
    """All data sets and methods of one redraw before the next; a quick run does without peers that are not there."""
    if mode == "quick":
        methods = [*CLEAR, PATE]
        if peers_python() is None:
            say_missing()
        else:
            methods += PEERS
        return [{"data": "Parkinsons", "method": method, "seed": 0} for method in methods]
    methods = [*CLEAR, PATE, *PEERS]
    return [{"data": data, "method": method, "seed": seed} for seed in REDRAWS for data in DATA for method in methods]


def measure(cell: dict[str, Any]) -> dict[str, Any]:
    """Fit for each epsilon, and judge the answers on the test rows; one line for each."""
    data, method, seed = cell["data"], cell["method"], cell["seed"]
    rows = _split(data, seed)
    about: dict[str, Any] = {"n_private": len(rows["y"]), "n_public": len(rows["public"])}
    if method in CLEAR:
        scores, seconds = _clear(method, rows, seed)
        lines = [_judged(rows, scores) | {"epsilon": None, "fit_seconds": seconds}]
    elif method == PATE:
        lines = [_pate(rows, epsilon, seed) for epsilon in EPSILONS]
    else:
        taken, searched = {name: rows[name] for name in TAKEN}, np.zeros(len(EPSILONS))
        if method.startswith("DP-SGD"):
            found = _ask(NOISE, 0, n_rows=np.array(len(rows["y"])))
            taken["noise"], searched = found["scores"], found["seconds"]
        answer = _ask(method, seed, **taken)
        about["versions"] = answer["versions"].tolist()
        lines = [
            _judged(rows, scores) | {"epsilon": epsilon, "fit_seconds": float(seconds)}
            for epsilon, scores, seconds in zip(EPSILONS, answer["scores"], answer["seconds"] + searched)
        ]
    return {**about, "lines": lines}


#: What a peer is given; labels and groups of the test rows are not among it.
TAKEN = ("X", "y", "public", "X_test", "columns", "columns_test", "categorical", "bounds")


def _ask(peer: str, seed: int, **arrays: np.ndarray) -> dict[str, np.ndarray]:
    settings = {"peer": peer, "seed": seed, "epsilons": EPSILONS, "delta": DELTA}
    return ask(arrays | {name: np.array(value) for name, value in settings.items()})


def _pate(rows: dict[str, np.ndarray], epsilon: float, seed: int) -> dict[str, Any]:
    """PATE, and besides what its student would be without noise on the same votes."""
    from skfairdp.ensemble import pate_fairness

    begin = time.process_time()
    pate = _pate_classifier(epsilon, seed).fit(rows["X"], rows["y"], public=rows["public"])
    seconds = time.process_time() - begin
    found = pate_fairness(
        pate,
        rows["X_test"],
        sensitive_features=rows["groups_test"],
        y=rows["y_test"],
        n_repeats=2,
        random_state=seed,
    )
    return {
        **_judged(rows, pate.predict_proba(rows["X_test"])[:, 1]),
        "epsilon": epsilon,
        "exact_epsilon": pate.privacy_.epsilon,
        "n_teachers": pate.n_teachers_,
        "n_queries": pate.n_queries_,
        "labels": pate.labels_,
        "noise_share": pate.noise_scale_ / pate.n_voting_,
        "clean_accuracy": float(found.performance.loc["accuracy", "clean"]),
        "fit_seconds": seconds,
    }


def _pate_classifier(epsilon: float, seed: int) -> Any:
    """PATE as it is by default: the one place where its settings are chosen."""
    from skfairdp.ensemble import PATEClassifier

    return PATEClassifier(epsilon=epsilon, delta=DELTA, classes=[0, 1], random_state=seed)


def _clear(method: str, rows: dict[str, np.ndarray], seed: int) -> tuple[np.ndarray, float]:
    """Models that may look at the private rows as they like."""
    from sklearn.dummy import DummyClassifier
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression

    model = {
        "logistic regression": LogisticRegression(max_iter=1000),
        "boosted trees": HistGradientBoostingClassifier(random_state=seed),
        "largest class": DummyClassifier(),
    }[method]
    begin = time.process_time()
    model.fit(rows["X"], rows["y"])
    return model.predict_proba(rows["X_test"])[:, 1], time.process_time() - begin


def _judged(rows: dict[str, np.ndarray], scores: np.ndarray) -> dict[str, float]:
    from sklearn.metrics import roc_auc_score

    from skfairdp.metrics import tpr_gap

    truth, said = rows["y_test"], (scores > 0.5).astype(int)
    return {
        "accuracy": float((said == truth).mean()),
        "auc": float(roc_auc_score(truth, scores)),
        "tpr": float(said[truth == 1].mean()),
        "tpr_gap": float(tpr_gap(truth, said, sensitive_features=rows["groups_test"], pos_label=1)),
    }


def _split(data: str, seed: int) -> dict[str, np.ndarray]:
    """Split rows at random, and standardise them by the public ones, as PATE does."""
    X, columns, categorical, y, groups = _load(data)
    order = np.random.default_rng(seed).permutation(len(X))
    n_open = len(X) // 4
    n_test = min(TEST_ROWS, n_open // 2)
    test, public, private = np.split(order, [n_test, n_open])
    private = private[:PRIVATE_ROWS]
    mean, deviation = X[public].mean(axis=0), X[public].std(axis=0)
    X = (X - mean) / np.where(deviation > 0, deviation, 1.0)
    bounds = np.array([columns[public].min(axis=0), columns[public].max(axis=0)])
    bounds[:, categorical] = np.array([columns.min(axis=0), columns.max(axis=0)])[:, categorical]  # known beforehand
    return {
        **{"X": X[private], "y": y[private], "public": X[public], "X_test": X[test], "y_test": y[test]},
        **{"groups_test": groups[test], "columns": columns[private], "columns_test": columns[test]},
        **{"categorical": categorical, "bounds": bounds},
    }


@lru_cache(maxsize=1)
def _load(data: str) -> tuple[np.ndarray, ...]:
    """Rows as numbers, columns before one-hot coding, which of these are categories, labels and groups."""
    from skfairdp.datasets import fetch_adult, fetch_bank_marketing, fetch_credit_default, fetch_parkinsons

    loaders = (fetch_credit_default, fetch_bank_marketing, fetch_adult, fetch_parkinsons, fetch_adult)
    bunch = dict(zip(DATA, loaders))[data](preset="federate" if data == "Adult" else "pate", as_frame=True)
    rows = pd.get_dummies(bunch.data, dtype=float).to_numpy(dtype=float)
    categorical = np.array([bunch.feature_types[name] == "categorical" for name in bunch.data])
    columns = bunch.data.apply(
        lambda column: (
            pd.factorize(column, sort=True)[0] if bunch.feature_types[column.name] == "categorical" else column
        )
    ).to_numpy(dtype=float)
    return rows, columns, categorical, bunch.target.to_numpy(), bunch.sensitive_features.to_numpy(dtype=object)


def lines_of(frame: pd.DataFrame) -> pd.DataFrame:
    """One row for each cell and epsilon."""
    return pd.DataFrame(
        [
            {**line, **{name: cell[name] for name in ("data", "method", "seed", "n_private", "n_public")}}
            for cell in frame.to_dict("records")
            for line in cell["lines"]
        ]
    )


def tables(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """For each quantity, methods by epsilon and data set; what PATE is behind by, and where it loses it."""
    lines = lines_of(frame)
    found = {quantity.replace("_", "-"): _by_data(lines, quantity) for quantity in SHOWN}
    found["seconds"] = _seconds(lines)
    methods = set(lines["method"])
    if PATE in methods and CLEAR[0] in methods:
        found["pate-step-by-step"] = _step_by_step(lines)
    if PATE in methods and methods & set(PEERS):
        found["pate-less-peers"] = _differences(lines)
    return found


def _seconds(lines: pd.DataFrame) -> pd.DataFrame:
    """Seconds of one core for a fit, mean of all epsilons and redraws."""
    mean = lines.pivot_table(index="method", columns="data", values="fit_seconds", sort=False)
    mean = mean[[data for data in DATA if data in mean]]
    return mean.map(lambda seconds: f"{seconds:.1f}").reset_index().rename_axis(columns=None)


def _step_by_step(lines: pd.DataFrame) -> pd.DataFrame:
    """From logistic regression on all rows to the students of clean votes, and of noisy ones: points of accuracy."""
    pate = lines[lines["method"] == PATE].set_index(["data", "seed"])
    start = lines[lines["method"] == CLEAR[0]].set_index(["data", "seed"])["accuracy"]
    pate = pate.assign(
        votes=100 * (pate["clean_accuracy"] - start.reindex(pate.index)),
        noise=100 * (pate["accuracy"] - pate["clean_accuracy"]),
    ).reset_index()
    rows = []
    for (data, epsilon), part in pate.groupby(["data", "epsilon"], sort=False):
        row = {"data": data, "epsilon": f"{epsilon:g}", "teachers": f"{part['n_teachers'].mean():.0f}"}
        row |= {"queries": f"{part['n_queries'].mean():.0f}", "noise on a share": f"{part['noise_share'].mean():.2f}"}
        row |= {"by votes": spread(part["votes"], of_mean=True), "by noise": spread(part["noise"], of_mean=True)}
        rows.append(row)
    return pd.DataFrame(rows)


def _by_data(lines: pd.DataFrame, quantity: str) -> pd.DataFrame:
    scale, digits = SHOWN[quantity]
    names = [data for data in DATA if data in set(lines["data"])]
    rows = []
    for (method, epsilon), part in lines.groupby(["method", "epsilon"], sort=False, dropna=False):
        by = dict(list(part.groupby("data")))
        row = {"method": method, "epsilon": NOTHING if pd.isna(epsilon) else f"{epsilon:g}"}
        row |= {data: spread(scale * by[data][quantity], digits) if data in by else NOTHING for data in names}
        rows.append(row)
    order = {method: k for k, method in enumerate([*CLEAR, PATE, *PEERS])}
    return pd.DataFrame(rows).sort_values("method", key=lambda column: column.map(order), kind="stable")


def _differences(lines: pd.DataFrame) -> pd.DataFrame:
    """Points of accuracy by which PATE is ahead of each peer on the same split, with the standard error of the mean."""
    accuracy = 100 * lines.dropna(subset="epsilon").pivot_table(
        index=["data", "epsilon", "seed"], columns="method", values="accuracy"
    )
    rows = []
    for method in [method for method in PEERS if method in accuracy]:
        ahead = accuracy[PATE] - accuracy[method]
        for epsilon in EPSILONS:
            row = {"PATE less": method, "epsilon": f"{epsilon:g}"}
            for data in DATA:
                if (data, epsilon) in ahead:
                    row[data] = spread(ahead[data, epsilon], of_mean=True)
            rows.append(row)
    return pd.DataFrame(rows)


def figures(frame: pd.DataFrame, folder: Path) -> None:
    """Accuracy over epsilon, a picture for each data set."""
    import matplotlib.pyplot as plt

    lines = lines_of(frame).eval("percent = 100 * accuracy")
    names = [data for data in DATA if data in set(lines["data"])]
    size = (2.9 * len(names), 3.4)
    figure, axes = plt.subplots(1, len(names), figsize=size, dpi=110, layout="constrained", squeeze=False)
    colours = dict(zip([PATE, *PEERS], ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#56B4E9")))
    for axis, data in zip(axes[0], names):
        part = lines[lines["data"] == data]
        for method, colour in colours.items():
            accuracy = part.loc[part["method"] == method].groupby("epsilon")["percent"]
            if len(accuracy):
                mean, error = accuracy.mean(), accuracy.std(ddof=1) / np.sqrt(accuracy.size())
                axis.errorbar(mean.index, mean, yerr=error, color=colour, marker="o", ms=4, capsize=3, label=method)
        for method, style in zip(CLEAR, ("-", "--", ":")):
            level = part.loc[part["method"] == method, "percent"].mean()
            axis.axhline(level, color="0.5", linestyle=style, linewidth=1, label=method)
        axis.set_title(data, fontsize="medium")
        axis.set_xscale("log")
        axis.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
        axis.minorticks_off()
        axis.set_xlabel("epsilon")
        axis.spines[["top", "right"]].set_visible(False)
    axes[0, 0].set_ylabel("test accuracy, per cent")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    save_figure(figure, folder / "private-training.svg")


EXPERIMENTS = {"private-training": Experiment("private-training", cells, measure, tables, figures)}
