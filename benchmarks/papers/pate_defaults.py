"""What the rule for teachers, queries and penalty gains over fixed numbers (docs/reproduction/pate_by_group.md).

"Fixed" is what the defaults were before there was a rule: 150 teachers (a third of the private rows if that is less),
200 queries, soft labels, a penalty of 0.1, labels clipped where noise exceeds half of the votes. "Rule" is
``PATEClassifier()``. Both have the same exact epsilon, network teachers and a logistic student, on the same split.

75 % of the rows are private; the others are public, but half of them, at most 3,000, are the test set. Noise is
drawn 10 times on the votes of each redraw of split and teachers. The four sets are those of ``_pate_redraws``; Adult
has the features and groups (by sex) of FEDERATE, CelebA is a sample of 40,000 rows, and made data have 2 or 4 classes,
and groups by whether a feature is above its 70 % quantile.
"""

import math
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.papers._experiment import Experiment
from benchmarks.papers._pate_redraws import DATA, load
from benchmarks.papers._tables import spread

MADE = {"made, 2 classes": 2, "made, 4 classes": 4}
SETS = (*DATA, "Adult", "CelebA", *MADE)
EPSILONS = (1.0, 3.0)
SEEDS = range(5)
REPEATS = 10
TEST_ROWS = 3000
DELTA = 1e-5
#: Columns of the table: what was measured, its name, what it is multiplied by, and digits.
SHOWN = (
    ("accuracy", "accuracy", 100, 1),
    ("worst_cross_entropy", "cross-entropy of the worse group", 1, 3),
    ("gap", "gap", 1000, 1),
    ("test_gap", "test gap", 1000, 1),
)


def cells(mode: str) -> list[dict[str, Any]]:
    """All data sets of one redraw before the next, so that tables can be made at any time."""
    sets, seeds = (("Parkinsons",), (0, 1)) if mode == "quick" else (SETS, SEEDS)
    return [
        {"data": data, "epsilon": epsilon, "defaults": defaults, "seed": seed}
        for seed in seeds
        for data in sets
        for epsilon in EPSILONS
        for defaults in ("fixed", "rule")
    ]


def measure(cell: dict[str, Any]) -> dict[str, Any]:
    """Fit, and draw the noise again and again: accuracy, cross-entropy and gaps of excessive risk on test rows."""
    from skfairdp.ensemble import PATEClassifier, pate_fairness

    X, y, groups = _rows(cell["data"])
    quarter, private = np.split(np.random.default_rng(cell["seed"]).permutation(len(X)), [len(X) // 4])
    test, public = np.split(quarter, [min(TEST_ROWS, len(quarter) // 2)])
    settings = {"epsilon": cell["epsilon"], "delta": DELTA, "classes": np.unique(y), "random_state": cell["seed"]}
    if cell["defaults"] == "fixed":
        settings |= _fixed(len(private), cell["epsilon"])
    pate = PATEClassifier(**settings).fit(X[private], y[private], public=X[public])
    found = pate_fairness(
        pate, X[test], sensitive_features=groups[test], y=y[test], n_repeats=REPEATS, random_state=cell["seed"]
    )
    scores = found.performance
    return {
        "k": pate.n_teachers_,
        "m": pate.n_queries_,
        "penalty": pate.student_regularization_,
        "noise": pate.noise_scale_ / pate.n_voting_,
        "accuracy": float(scores.loc["accuracy", "private"]),
        "clean_accuracy": float(scores.loc["accuracy", "clean"]),
        "cross_entropy": float(scores.loc["cross_entropy", "private"]),
        "worst_accuracy": float(found.groups["accuracy"].min()),
        "worst_cross_entropy": float(found.groups["cross_entropy"].max()),
        "gap": found.gap,
        "test_gap": found.label_gap,
    }


def _fixed(n_private: int, epsilon: float) -> dict[str, Any]:
    """Name what the defaults were."""
    from skfairdp.accounting import gnmax_noise_scale

    n_teachers = min(150, n_private // 3)
    moderate = gnmax_noise_scale(epsilon, DELTA, 200) <= n_teachers / 2
    return {
        "n_teachers": n_teachers,
        "n_queries": 200,
        "labels": "soft",
        "postprocess": "affine" if moderate else "clip",
        "student_regularization": 0.1,
        "scale": "public",
    }


@lru_cache(maxsize=1)
def _rows(data: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    if data in DATA:
        return load(data)
    if data in MADE:
        return _made(MADE[data])
    from skfairdp.datasets import fetch_adult, fetch_celeba_attributes

    if data == "Adult":
        bunch = fetch_adult(preset="federate", as_frame=True)
        chosen = np.arange(len(bunch.data))
    else:
        bunch = fetch_celeba_attributes(as_frame=True)
        chosen = np.random.default_rng(0).permutation(len(bunch.data))[:40_000]
    rows = pd.get_dummies(bunch.data.iloc[chosen], dtype=float).to_numpy(dtype=float)
    groups = bunch.sensitive_features.iloc[chosen].to_numpy(dtype=object)
    return rows, bunch.target.to_numpy()[chosen], groups


def _made(n_classes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    from sklearn.datasets import make_classification

    X, y = make_classification(
        20_000,
        n_features=30,
        n_informative=12,
        n_redundant=3,
        n_classes=n_classes,
        n_clusters_per_class=1,
        class_sep=1.2,
        flip_y=0.05,
        random_state=n_classes,
    )
    return X, y, np.where(X[:, 0] > np.quantile(X[:, 0], 0.7), "high", "low").astype(object)


def tables(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Both defaults side by side, and their difference on the same splits with its standard error."""
    rows = []
    for (data, epsilon), part in frame.groupby(["data", "epsilon"], sort=False):
        fixed, rule = (part[part["defaults"] == name].set_index("seed").sort_index() for name in ("fixed", "rule"))
        if not len(rule) or list(fixed.index) != list(rule.index):
            continue
        row = {"data": data, "epsilon": f"{epsilon:g}", "k": _span(rule["k"]), "m": _span(rule["m"])}
        for column, name, scale, digits in SHOWN:
            for title, one in (("fixed", fixed), ("rule", rule)):
                row[f"{name}, {title}"] = spread(scale * one[column], digits, of_mean=True)
        row["gain in accuracy"] = spread(100 * (rule["accuracy"] - fixed["accuracy"]), 1, of_mean=True)
        rows.append(row)
    return {"results": pd.DataFrame(rows)}


def _span(numbers: pd.Series) -> str:
    low, high = int(numbers.min()), int(numbers.max())
    return f"{low:,}" if math.isclose(low, high) else f"{low:,} to {high:,}"


EXPERIMENTS = {"pate-defaults": Experiment("pate-defaults", cells, measure, tables)}
