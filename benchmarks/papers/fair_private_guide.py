"""Boosted trees made fair and private, beside others (docs/reproduction/fair_private.md).

All methods see the same 60 percent of the rows, coded alike: categories as numbers that the trees take as categories,
and as one-hot columns for linear models and networks. Settings are chosen on training rows alone, by cross-fitting or
by defaults; nothing is tuned. Another 20 percent are what an attacker learns from who tries to read the group from what
was released; accuracy, gap and attack are judged on the last 20. Times are CPU seconds of ``fit``. Because nothing is
chosen on the second part, it can be trained on as well: methods "on 80 %" are.

``ThresholdOptimizer`` is given the sensitive feature when it answers, which no other method is.
"""

import math
import time
import warnings
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.papers._experiment import Experiment
from benchmarks.papers._tables import number, save_figure, spread

EPSILONS = (math.inf, 8.0, 4.0, 3.0, 2.0, 1.0)
DATA = ("adult", "credit", "bank", "celeba", "adult-race", "made-multiclass")
SEEDS = range(5)
#: Every row is answered this often, so that the luck of one drawing hardly counts.
RELEASES = 5
TREES = "trees"
FAIR = "fair private trees"
ON_MORE_ROWS = ", on 80 %"
NETWORKS = ("codes", "Laplace")
METHODS = {
    TREES: (math.inf,),
    "logistic regression": (math.inf,),
    FAIR: EPSILONS,
    TREES + ON_MORE_ROWS: (math.inf,),
    FAIR + ON_MORE_ROWS: EPSILONS,
    "ThresholdOptimizer, trees": (math.inf,),
    "ExponentiatedGradient, trees": (math.inf,),
    "codes": (8.0, 4.0, 2.0),
    "Laplace": (8.0, 4.0, 2.0),
}
#: More groups, and more classes, than fairlearn's methods and the four main tables have.
FEW_METHODS = (TREES, FAIR)


def epsilons_of(method: str, data: str) -> tuple[float, ...]:
    """What is measured; the picture of networks over epsilon is drawn for Adult alone."""
    return METHODS[method][:1] if method in NETWORKS and data != "adult" else METHODS[method]


def cells(mode: str) -> list[dict[str, Any]]:
    """One cell for each data set, method and seed; in the quick mode one seed of Credit card, without networks."""
    if mode != "full":
        return [{"data": "credit", "method": method, "seed": 0} for method in (TREES, FAIR)]
    return [
        {"data": data, "method": method, "seed": seed}
        for method in METHODS
        for seed in SEEDS
        for data in DATA
        if data in DATA[:4] or method in FEW_METHODS
    ]


def measure(cell: dict[str, Any]) -> dict[str, Any]:
    """Fit once (networks once for each epsilon), release validation and test rows at every epsilon, and judge."""
    parts, categorical = _parts(cell["data"], cell["seed"])
    epsilons, seed = epsilons_of(cell["method"], cell["data"]), cell["seed"]
    method = cell["method"].removesuffix(ON_MORE_ROWS)
    if method != cell["method"]:
        more = tuple(np.concatenate(columns) for columns in zip(parts["train"], parts["valid"]))
        parts = {**parts, "train": more}
    results = []
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = _fit(method, epsilons[0], parts, categorical, seed)
        seconds = time.process_time() - started
        for epsilon in epsilons:
            if method == FAIR:
                model.set_epsilon(epsilon)
            elif epsilon != epsilons[0]:
                model = _fit(method, epsilon, parts, categorical, seed)
            results.append({"epsilon": epsilon, **_judge(method, model, parts, seed)})
            if method == FAIR:
                mechanism = model.mechanism_
                results[-1]["expected"] = 100 * mechanism.expected_accuracy
                results[-1]["bound"] = 100 * mechanism.accuracy_bound
    labels = parts["test"][2]
    return {
        "results": results,
        "fit_seconds": seconds,
        "largest_class": 100 * float(pd.Series(labels).value_counts(normalize=True).max()),
    }


def _judge(method: str, model: Any, parts: dict[str, Any], seed: int) -> dict[str, float]:
    from sklearn.preprocessing import OneHotEncoder

    from skfairdp.metrics import leakage_report, tpr_gap

    answers = {}
    for part in ("valid", "test"):
        coded, dense, labels, groups = (np.repeat(column, RELEASES, axis=0) for column in parts[part])
        if method in ("logistic regression", "codes", "Laplace"):
            answers[part] = model.predict(dense)
        elif method.startswith("Threshold"):
            answers[part] = model.predict(coded, sensitive_features=groups, random_state=seed)
        elif method.startswith("Exponentiated"):
            answers[part] = model.predict(coded, random_state=seed)
        else:
            answers[part] = model.predict(coded)
    encoder = OneHotEncoder(sparse_output=False, handle_unknown="ignore").fit(np.reshape(labels, (-1, 1)))
    released = {part: encoder.transform(np.reshape(found, (-1, 1))) for part, found in answers.items()}
    attack = leakage_report(
        released["valid"],
        np.repeat(parts["valid"][3], RELEASES),
        H_test=released["test"],
        sensitive_features_test=groups,
        probe="linear",  # of answers, one column each, every attacker learns the same: how often each group gets them
    ).iloc[0]
    return {
        "accuracy": 100 * float(np.mean(answers["test"] == labels)),
        "tpr_gap": 100 * float(tpr_gap(labels, answers["test"], sensitive_features=groups)),
        "advantage": 100 * attack["advantage"],
        "auc": 100 * attack["auc"],
    }


def _fit(method: str, epsilon: float, parts: dict[str, Any], categorical: np.ndarray, seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from skfairdp.adversarial import FederateClassifier
    from skfairdp.postprocessing import FairPrivateClassifier

    coded, dense, labels, groups = parts["train"]
    trees = HistGradientBoostingClassifier(categorical_features=categorical, random_state=seed)
    if method == TREES:
        return trees.fit(coded, labels)
    if method == "logistic regression":
        return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(dense, labels)
    if method == FAIR:
        model = FairPrivateClassifier(trees, epsilon=epsilon, random_state=seed)
        return model.fit(coded, labels, sensitive_features=groups)
    if method.startswith("Exponentiated"):
        from fairlearn.reductions import ExponentiatedGradient, TruePositiveRateParity

        reduction = ExponentiatedGradient(trees, TruePositiveRateParity(difference_bound=0.01))
        return reduction.fit(coded, labels, sensitive_features=groups) or reduction
    if method.startswith("Threshold"):
        from fairlearn.postprocessing import ThresholdOptimizer

        optimizer = ThresholdOptimizer(
            estimator=trees, constraints="true_positive_rate_parity", predict_method="predict_proba", prefit=False
        )
        return optimizer.fit(coded, labels, sensitive_features=groups)
    channel = {"codes": "codes", "Laplace": "laplace"}[method]
    model = FederateClassifier(epsilon, channel=channel, random_state=seed)
    return model.fit(dense, labels, sensitive_features=groups)


@lru_cache(maxsize=1)
def _parts(data: str, seed: int) -> tuple[dict[str, Any], np.ndarray]:
    """Rows coded for trees, rows coded for linear models, labels and groups of each part; and which are categories."""
    from sklearn.compose import make_column_transformer
    from sklearn.model_selection import train_test_split
    from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

    X, y, groups = _table(data)
    train, rest = train_test_split(np.arange(len(y)), test_size=0.4, random_state=seed)
    valid, test = train_test_split(rest, test_size=0.5, random_state=seed)
    words = [name for name in X.columns if not pd.api.types.is_numeric_dtype(X[name])]
    unseen = {"handle_unknown": "use_encoded_value", "unknown_value": np.nan}
    coder = make_column_transformer((OrdinalEncoder(**unseen), words), remainder="passthrough").fit(X.iloc[train])
    one_hot = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), words), remainder="passthrough"
    ).fit(X.iloc[train])
    parts = {}
    for part, index in (("train", train), ("valid", valid), ("test", test)):
        rows = X.iloc[index]
        coded = np.asarray(coder.transform(rows), dtype=float)
        parts[part] = (coded, np.asarray(one_hot.transform(rows), dtype=float), y[index], groups[index])
    categorical = np.arange(X.shape[1]) < len(words)
    return parts, categorical


def _table(data: str) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    from skfairdp.datasets import fetch_adult, fetch_bank_marketing, fetch_celeba_attributes, fetch_credit_default

    if data == "made-multiclass":
        return _made_multiclass()
    if data == "adult-race":
        bunch = fetch_adult(as_frame=True)
        return bunch.data, np.asarray(bunch.target), np.asarray(bunch.sensitive_features["race"])
    fetch = {
        "adult": partial(fetch_adult, preset="federate"),
        "credit": fetch_credit_default,
        "bank": fetch_bank_marketing,
        "celeba": fetch_celeba_attributes,
    }[data]
    bunch = fetch(as_frame=True)
    return bunch.data, np.asarray(bunch.target), np.asarray(bunch.sensitive_features).ravel()


def _made_multiclass() -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Five classes and three groups, whose features are shifted against each other."""
    generator = np.random.default_rng(0)
    groups = generator.choice(3, size=20_000, p=[0.5, 0.3, 0.2])
    y = generator.integers(5, size=len(groups))
    X = 1.5 * np.eye(5)[y] + generator.normal(size=(len(y), 5)) + 0.4 * groups[:, None] * np.linspace(-1, 1, 5)
    X = np.column_stack([X, groups + 0.5 * generator.normal(size=len(y))])
    return pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])]), y, np.array(["a", "b", "c"])[groups]


def _by_epsilon(frame: pd.DataFrame) -> pd.DataFrame:
    """One row for each cell and epsilon."""
    rows = [
        {"data": cell["data"], "method": cell["method"], "seed": cell["seed"], "fit_seconds": cell["fit_seconds"]}
        | {"largest_class": cell["largest_class"], **result}
        for cell in frame.to_dict("records")
        for result in cell["results"]
    ]
    return pd.DataFrame(rows)


def tables(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Mean and standard error over the seeds, one table for each data set."""
    found = _by_epsilon(frame)
    made = {}
    for data in [name for name in DATA if name in set(found["data"])]:
        rows = []
        for method, epsilons in METHODS.items():
            for epsilon in epsilons:
                here = found[(found["data"] == data) & (found["method"] == method) & (found["epsilon"] == epsilon)]
                if not len(here):
                    continue
                row = {"method": method, "exact epsilon": number(epsilon)}
                row |= {"accuracy": spread(here["accuracy"], 2, of_mean=True)}
                row |= {"TPR-gap": spread(here["tpr_gap"], of_mean=True)}
                row |= {"leakage − majority": spread(here["advantage"], of_mean=True)}
                row |= {"AUC": spread(here["auc"], of_mean=True)}
                below = here["bound"] - here["expected"] if "bound" in here else pd.Series([math.nan])
                row |= {"bound − expected": "" if below.isna().all() else f"{below.max():.3f}"}
                row |= {"fit, CPU s": f"{here['fit_seconds'].mean():.1f}", "seeds": str(len(here))}
                rows.append(row)
        made[data] = pd.DataFrame(rows)
    return made


def figures(frame: pd.DataFrame, folder: Path) -> None:
    """Accuracy over the exact epsilon on Adult: fair trees, their bound, codes and Laplace noise."""
    import matplotlib.pyplot as plt

    found = _by_epsilon(frame)
    found = found[(found["data"] == "adult") & np.isfinite(found["epsilon"])]
    if FAIR not in set(found["method"]):
        return
    figure, axis = plt.subplots(figsize=(6, 3.8), layout="constrained")
    styles = {FAIR: ("o", "#0072B2"), "codes": ("s", "#009E73"), "Laplace": ("^", "#D55E00")}
    for method, (marker, colour) in styles.items():
        of = found[found["method"] == method].groupby("epsilon")["accuracy"]
        if len(of):
            axis.errorbar(
                of.mean().index, of.mean(), yerr=of.sem(), marker=marker, color=colour, capsize=3, label=method
            )
    bound = found[found["method"] == FAIR].groupby("epsilon")["bound"].mean()
    axis.plot(bound.index, bound, color="0.3", linestyle="--", linewidth=1, label="bound for the trees' beliefs")
    largest = found["largest_class"].mean()
    axis.axhline(largest, color="0.6", linestyle=":", linewidth=1, label="always the larger class")
    axis.set(xlabel="exact epsilon of one answer", ylabel="accuracy on the test part, %")
    axis.set_title("Adult, TPR-gap made small")
    axis.set_xscale("log", base=2)
    ticks = sorted(found["epsilon"].unique())
    axis.set_xticks(ticks, [f"{epsilon:g}" for epsilon in ticks])
    axis.legend(frameon=False)
    axis.spines[["top", "right"]].set_visible(False)
    save_figure(figure, folder / "fair-private-guide-adult.svg")


EXPERIMENTS = {"fair-private-guide": Experiment("fair-private", cells, measure, tables, figures)}
