"""FEDERATE on real data: accuracy, TPR-gap and leakage at exact epsilons, on Adult and CelebA.

Every fit is one line of a journal, so that a run can be stopped and taken up again::

    python -m benchmarks.federate_adult --data adult --journal ~/federate.jsonl
    python -m benchmarks.federate_adult --data celeba --journal ~/federate.jsonl
    python -m benchmarks.federate_adult --report --journal ~/federate.jsonl --figure docs/_static/federate_adult.svg

Protocol: 60/20/20 split, five seeds; for each method and seed the settings are chosen on the validation part by a
relaxation threshold of one point of accuracy (the fairest of the settings within one point of the best); then accuracy,
TPR-gap and leakage are measured on the test part. Predictions are one release of each record. Leakage is
the accuracy of a probe that is trained on the released validation rows and judged on the released test rows.
"""

import argparse
import json
import math
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.model_selection import train_test_split

SEEDS = (0, 1, 2, 3, 4)
WEIGHTS = tuple(round(0.1 + 0.2 * i, 1) for i in range(15))  # the 15 weights of the paper
# Heavier penalties cost over a point of validation accuracy on Adult; CelebA is larger and needs more of it.
PENALTIES = {"adult": (0.05, 0.1, 0.15, 0.2, 0.3, 0.4), "celeba": (0.5, 1.0, 1.5, 2.0, 3.0, 4.0)}
CURVE = (1.0, 2.0, 4.0, 8.0, 16.0)

# What the methods share on each data set. The head of the Laplace channel has one hidden layer: noise of two
# coordinates is read better by a curved boundary; codes need none.
TRAINING = {
    ("adult", "codes"): {"max_epochs": 20, "batch_size": 500, "learning_rate": 0.005},
    ("adult", "laplace"): {"max_epochs": 20, "batch_size": 1000, "learning_rate": 0.01},
    ("celeba", "codes"): {"max_epochs": 8, "batch_size": 2000, "learning_rate": 0.005},
    ("celeba", "laplace"): {"max_epochs": 8, "batch_size": 2000, "learning_rate": 0.005},
}
NOISY = {"n_components": 2, "classifier_hidden_sizes": [32]}


def methods(data: str) -> dict[str, list[dict]]:
    """The settings that each method may choose from."""
    codes = {"channel": "codes", "n_codes": 2, "adversary_weight": 0.0}
    table = {
        "Unconstrained": [{"epsilon": math.inf, "adversary_weight": 0.0, **NOISY, "n_components": 50}],
        "codes, epsilon 8": [{**codes, "epsilon": 8.0, "fairness_penalty": w} for w in PENALTIES[data]],
        "codes, epsilon 4": [{**codes, "epsilon": 4.0, "fairness_penalty": w} for w in PENALTIES[data]],
    }
    if data == "adult":
        table["Noise, epsilon 8"] = [{"epsilon": 8.0, "adversary_weight": 0.0, **NOISY}]
        table["FEDERATE, epsilon 8"] = [{"epsilon": 8.0, "adversary_weight": w, **NOISY} for w in WEIGHTS]
        table["Adversarial"] = [
            {"epsilon": math.inf, "adversary_weight": w, **NOISY, "n_components": 50} for w in WEIGHTS[::2]
        ]
        for epsilon in CURVE:
            table[f"curve laplace {epsilon:g}"] = [{"epsilon": epsilon, "adversary_weight": 0.0, **NOISY}]
            table[f"curve codes {epsilon:g}"] = [{**codes, "epsilon": epsilon}]
    return table


def load(data: str, seed: int) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Training, validation and test part: rows, labels, groups."""
    from skfairdp.datasets import fetch_adult, fetch_celeba_attributes

    if data == "adult":
        bunch = fetch_adult(preset="federate", as_frame=True)
    else:
        bunch = fetch_celeba_attributes(as_frame=True)
    train, rest = train_test_split(np.arange(len(bunch.target)), test_size=0.4, random_state=seed)
    valid, test = train_test_split(rest, test_size=0.5, random_state=seed)
    preprocessor = bunch.preprocessor.fit(bunch.data.iloc[train]) if data == "adult" else None
    parts = []
    for index in (train, valid, test):
        rows = bunch.data.iloc[index]
        rows = rows.to_numpy() if preprocessor is None else np.asarray(preprocessor.transform(rows))
        groups = np.asarray(bunch.sensitive_features)[index].ravel()
        parts.append((rows.astype(np.float32), np.asarray(bunch.target)[index], groups))
    return parts


def cosine(max_epochs: int) -> list:
    """A learning rate that falls to zero: the last epochs settle instead of wandering."""
    from skorch.callbacks import LRScheduler
    from torch.optim.lr_scheduler import CosineAnnealingLR

    return [("lr", LRScheduler(CosineAnnealingLR, T_max=max_epochs))]


def fit(data: str, settings: dict, seed: int, parts: list):
    """Train one model."""
    from skfairdp.adversarial import published_federate

    training = TRAINING[data, settings.get("channel", "laplace")]
    clf = published_federate(**settings, **training, callbacks=cosine(training["max_epochs"]), random_state=seed)
    rows, labels, groups = parts[0]
    return clf.fit(rows, labels, sensitive_features=groups)


def measure(clf, part: tuple) -> tuple[float, float]:
    """Accuracy and TPR-gap, in percent, of one release of a part."""
    from skfairdp.metrics import tpr_gap

    rows, labels, groups = part
    answers = clf.predict(rows)
    return 100 * float(np.mean(answers == labels)), 100 * float(tpr_gap(labels, answers, sensitive_features=groups))


def leakage(clf, parts: list, seed: int) -> float:
    """Accuracy, in percent, of a probe for the groups on released rows."""
    from skfairdp.metrics import leakage_score

    (valid, _, z_valid), (test, _, z_test) = parts[1], parts[2]
    score = leakage_score(
        clf.transform(valid), z_valid, H_test=clf.transform(test), sensitive_features_test=z_test, random_state=seed
    )
    return 100 * float(score)


def key(line: dict) -> str:
    return json.dumps([line["data"], line["method"], line["settings"], line["seed"]], sort_keys=True)


def one_fit(task: dict, journal: Path) -> None:
    """Train, measure on the validation and test part, and write a line."""
    warnings.simplefilter("ignore")
    parts = load(task["data"], task["seed"])
    clf = fit(task["data"], task["settings"], task["seed"], parts)
    (va, vg), (ta, tg) = measure(clf, parts[1]), measure(clf, parts[2])
    majority = 100 * pd.Series(parts[2][2]).value_counts(normalize=True).max()
    line = {
        **task,
        "valid": [va, vg],
        "test": [ta, tg],
        "majority": majority,
        "epsilon": clf.privacy_.epsilon,
        "leakage": None if task["method"].startswith("curve") else leakage(clf, parts, task["seed"]),
    }
    with journal.open("a") as file:
        file.write(json.dumps(line) + "\n")


def read(journal: Path) -> list[dict]:
    return [json.loads(line) for line in journal.read_text().splitlines()] if journal.exists() else []


def chosen(lines: list[dict]) -> dict:
    """The relaxation threshold of one point on the validation part, for the lines of one method and seed."""
    from skfairdp.model_selection import RelaxationThreshold

    results = {
        "mean_test_accuracy": np.array([line["valid"][0] for line in lines]) / 100,
        "mean_test_tpr_gap": np.array([line["valid"][1] for line in lines]) / 100,
        "params": [line["settings"] for line in lines],
    }
    rule = RelaxationThreshold(0.01, directions={"accuracy": "max", "tpr_gap": "min"})
    return lines[rule(results)]


def report(journal: Path) -> str:
    """The tables, in Markdown: mean and standard error over the seeds."""
    grids = {(data, method): grid for data in ("adult", "celeba") for method, grid in methods(data).items()}
    lines = [line for line in read(journal) if line["settings"] in grids.get((line["data"], line["method"]), [])]
    frame = pd.DataFrame(lines)
    text = []
    for data, of_data in frame[~frame["method"].str.startswith("curve")].groupby("data"):
        text += [
            f"\n{data}\n",
            "| method | exact epsilon | accuracy | TPR-gap | leakage - majority |",
            "|---|---|---|---|---|",
        ]
        for method, of_method in of_data.groupby("method", sort=False):
            picks = [chosen(lines.to_dict("records")) for _, lines in of_method.groupby("seed")]
            cells = [
                np.array([p["test"][0] for p in picks]),
                np.array([p["test"][1] for p in picks]),
                np.array([p["leakage"] - p["majority"] for p in picks]),
            ]
            shown = [f"{c.mean():.1f} ± {c.std(ddof=1) / math.sqrt(len(c)):.1f}" for c in cells]
            text.append(f"| {method} ({len(picks)} seeds) | {picks[0]['epsilon']:g} | " + " | ".join(shown) + " |")
        text.append(f"\nmajority rate of the groups: {of_data['majority'].mean():.1f}")
    return "\n".join(text)


def draw(journal: Path, path: Path) -> None:
    """Accuracy over exact epsilon, Laplace against codes."""
    import matplotlib.pyplot as plt

    from skfairdp.datasets import fetch_adult

    frame = pd.DataFrame(read(journal))
    frame = frame[(frame["data"] == "adult") & frame["method"].str.startswith("curve")]
    frame = frame.assign(epsilon=frame["epsilon"].round(6))  # codes in 63-bit integers spend a little less than asked
    figure, axes = plt.subplots(figsize=(5.5, 3.6), layout="constrained")
    for channel, marker, colour in (("codes", "o", "#0072B2"), ("laplace", "s", "#D55E00")):
        rows = frame[frame["method"].str.contains(channel)]
        accuracy = rows.assign(accuracy=[t[0] for t in rows["test"]]).groupby("epsilon")["accuracy"]
        mean, error = accuracy.mean(), accuracy.sem()
        axes.errorbar(
            mean.index, mean, yerr=error, marker=marker, color=colour, capsize=3, label=f"channel={channel!r}"
        )
    axes.set(
        xlabel="exact epsilon of one release", ylabel="accuracy on the test part, %", title="Adult, no fairness term"
    )
    axes.set_xscale("log", base=2)
    ticks = sorted(frame["epsilon"].unique())
    axes.set_xticks(ticks, [f"{e:g}" for e in ticks])
    majority = 100 * (1 - np.mean(fetch_adult(preset="federate").target))
    axes.axhline(majority, color="0.6", linestyle=":", linewidth=1, label="always the larger class")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", choices=["adult", "celeba"], default="adult")
    parser.add_argument("--journal", type=Path, default=Path(tempfile.gettempdir()) / "skfairdp_federate.jsonl")
    parser.add_argument("--only", help="methods whose name contains this")
    parser.add_argument("--seeds", type=int, nargs="*", default=SEEDS)
    parser.add_argument("--n-jobs", type=int, default=2)
    parser.add_argument("--report", action="store_true", help="print the tables of the journal and run nothing")
    parser.add_argument("--figure", type=Path, help="with --report: where to draw accuracy over epsilon")
    options = parser.parse_args()
    if not options.report:
        done = {key(line) for line in read(options.journal)}
        tasks = [
            {"data": options.data, "method": method, "settings": settings, "seed": seed}
            for method, grid in methods(options.data).items()
            if options.only is None or options.only in method
            for seed in options.seeds
            for settings in grid
        ]
        tasks = [task for task in tasks if key(json.loads(json.dumps(task))) not in done]
        print(f"{len(tasks)} fits to do, {len(done)} in {options.journal}")
        Parallel(n_jobs=options.n_jobs, verbose=5)(delayed(one_fit)(task, options.journal) for task in tasks)
    print(report(options.journal))
    if options.figure is not None:
        draw(options.journal, options.figure)


if __name__ == "__main__":
    main()
