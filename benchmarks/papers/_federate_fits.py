"""FEDERATE on Adult and CelebA: settings, fits, what is measured of them, and the choice among settings.

A cell of the stage ``grid`` trains one setting and judges it on validation and test rows. For each method and seed, the
fairest setting within one point of the best validation accuracy is chosen; a cell of the stage ``chosen`` trains it
again and measures leakage and description length of what it releases. Predictions are one release of each
record. Leakage is the accuracy of a network that is trained on the released validation rows and judged on the released
test rows, as in the paper; beside it stand accuracy and AUC of the strongest attacker of the package's pool.

``PUBLIC_CODE`` is the noise of the public code: L2 rows of 50 coordinates and noise of scale 2 / epsilon, which
spends sqrt(50) times its epsilon. ``EXACT`` keeps the epsilon, with two coordinates of L1 rows. ``CODES`` is the
package's other channel.
"""

import math
import warnings
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

WEIGHTS = tuple(round(0.1 + 0.2 * i, 1) for i in range(15))  # the 15 weights of the paper
# Heavier penalties cost over a point of validation accuracy on Adult; CelebA is larger and needs more of it.
PENALTIES = {"adult": (0.05, 0.1, 0.15, 0.2, 0.3, 0.4), "celeba": (0.5, 1.0, 1.5, 2.0, 3.0, 4.0)}
# What the methods share on each data set.
TRAINING = {
    ("adult", "codes"): {"max_epochs": 20, "batch_size": 500, "learning_rate": 0.005},
    ("adult", "laplace"): {"max_epochs": 20, "batch_size": 1000, "learning_rate": 0.01},
    ("celeba", "codes"): {"max_epochs": 8, "batch_size": 2000, "learning_rate": 0.005},
    ("celeba", "laplace"): {"max_epochs": 8, "batch_size": 2000, "learning_rate": 0.005},
}
# The head behind Laplace noise has one hidden layer: two noisy coordinates are read better by a curved boundary. Behind
# codes it needs none.
WIDE = {"n_components": 50, "classifier_hidden_sizes": [32]}
EXACT = {"n_components": 2, "classifier_hidden_sizes": [32]}
PUBLIC_CODE = {**WIDE, "norm": "l2", "calibration": "published"}
CODES = {"channel": "codes", "n_codes": 2, "adversary_weight": 0.0}
PLAIN = {"epsilon": math.inf, "adversary_weight": 0.0, **WIDE}
FAIR_TREES = "fair private trees"
#: What is measured of a chosen setting's releases.
RELEASED = ("leakage", "pool", "auc", "mdl")

Cell = dict[str, Any]
Part = tuple[np.ndarray, np.ndarray, np.ndarray]  # rows, labels, groups


def grid_cells(data: str, methods: dict[str, list[Cell]], seeds: Iterable[int]) -> list[Cell]:
    """All settings of all methods, seed after seed."""
    # The training is named, though ``fit`` knows it, so that other training makes other cells.
    return [
        {
            "stage": "grid",
            "data": data,
            "method": method,
            "settings": settings,
            "training": TRAINING[data, settings.get("channel", "laplace")],
            "seed": seed,
        }
        for seed in seeds
        for method, grid in methods.items()
        for settings in grid
    ]


def chosen_cells(picks: Iterable[Cell]) -> list[Cell]:
    """The second stage of chosen settings, each once."""
    names = ("data", "method", "settings", "training", "seed")
    wanted = {name_of(pick): pick for pick in picks}
    return [{"stage": "chosen", **{name: pick[name] for name in names}} for pick in wanted.values()]


def name_of(cell: Cell) -> str:
    """What a cell of the grid and the chosen cell that follows it have in common."""
    return f"{cell['seed']} {cell['method']} {cell['settings']}"


def choose(rows: pd.DataFrame, threshold: float = 0.01) -> list[Cell]:
    """For each seed, the fairest setting within so much (one point) of the best accuracy, on validation rows."""
    picks = []
    for _, one in rows.groupby("seed"):
        accuracy, gap = np.array(one["valid"].tolist(), dtype=float).T / 100
        in_band = accuracy >= accuracy.max() - threshold - 1e-12
        # Among settings of the same gap the most accurate one, then the first.
        picks.append(one.iloc[np.lexsort((-accuracy, np.where(in_band, gap, np.inf)))[0]].to_dict())
    return picks


def measured_of(picks: list[Cell], frame: pd.DataFrame) -> dict[str, list[float]]:
    """What was measured of chosen cells, and of what they release as far as that is finished."""
    chosen = {name_of(row): row for row in frame[frame["stage"] == "chosen"].to_dict("records")}
    released = [chosen[name_of(pick)] for pick in picks if name_of(pick) in chosen]
    values = {"accuracy": [pick["test"][0] for pick in picks], "tpr_gap": [pick["test"][1] for pick in picks]}
    # Lines that were measured before there was a pool do not have it.
    return values | {name: [row[name] for row in released if not pd.isna(row.get(name))] for name in RELEASED}


def measure(cell: Cell) -> dict[str, Any]:
    """Train; then accuracy and gap on both parts, or what the representation gives away."""
    from sklearn.exceptions import ConvergenceWarning

    from skfairdp.exceptions import OverclaimedPrivacyWarning

    parts = _parts(cell["data"], cell["seed"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the paper fixes the number of epochs
        if cell["settings"].get("calibration") == "published":
            warnings.simplefilter("ignore", OverclaimedPrivacyWarning)
        model = _model(cell, parts)
    if cell["stage"] == "chosen":
        return _leaks(model, parts, cell["seed"])
    epsilon = 0.0 if cell["method"] == "Random" else math.inf
    _, labels, groups = parts[2]
    return {
        "valid": _accuracy_and_gap(model, parts[1]),
        "test": _accuracy_and_gap(model, parts[2]),
        "exact_epsilon": model.privacy_.epsilon if hasattr(model, "privacy_") else epsilon,
        "majority": 100 * float(pd.Series(groups).value_counts(normalize=True).max()),
        "largest_class": 100 * float(pd.Series(labels).value_counts(normalize=True).max()),
    }


def _accuracy_and_gap(model: Any, part: Part) -> tuple[float, float]:
    """In percent, of one release of a part."""
    from skfairdp.metrics import tpr_gap

    rows, labels, groups = part
    answers = model.predict(rows)
    return 100 * float(np.mean(answers == labels)), 100 * float(tpr_gap(labels, answers, sensitive_features=groups))


def _leaks(model: Any, parts: list[Part], seed: int) -> dict[str, float]:
    """How well attackers read the groups from released rows, in percent, and how short they make their description."""
    from skfairdp.metrics import leakage_report, online_code_length

    (valid, _, groups_valid), (test, _, groups_test) = parts[1:]
    length = online_code_length(
        model.transform(test), groups_test, n_orders=1, reference_compatible=True, random_state=seed
    )
    report = leakage_report(
        model.transform(valid),
        groups_valid,
        H_test=model.transform(test),
        sensitive_features_test=groups_test,
        random_state=seed,
    ).set_index("attacker")
    network, strongest = report.loc["mlp"], report.loc["strongest"]
    figures = {"leakage": network["accuracy"], "pool": strongest["accuracy"]}
    figures |= {name: strongest[name] for name in ("auc", "auc_lower", "auc_upper")}
    return {name: 100 * float(value) for name, value in figures.items()} | {"mdl": length.kbits}


class _Random:
    """A label at random, and a representation that has nothing to do with the row."""

    def __init__(self, seed: int):
        self._random = np.random.default_rng(seed)

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self._random.integers(2, size=len(X))

    def transform(self, X: np.ndarray) -> np.ndarray:
        return self._random.normal(size=(len(X), 2))


class _Erased:
    """The plain network's representation without the group, and logistic regression on it."""

    def __init__(self, plain: Any, n_iterations: int, part: Part):
        from sklearn.linear_model import LogisticRegression

        from skfairdp.preprocessing import INLPEraser

        rows, labels, groups = part
        hidden = plain.transform(rows)
        self._plain = plain
        self._eraser = INLPEraser(n_iterations=n_iterations).fit(hidden, sensitive_features=groups)
        self._head = LogisticRegression(max_iter=1000).fit(self._eraser.transform(hidden), labels)

    def transform(self, X: np.ndarray) -> np.ndarray:
        return self._eraser.transform(self._plain.transform(X))

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self._head.predict(self.transform(X))


class _FairTrees:
    """Boosted trees that answer fairly and privately; what they release is the answer."""

    def __init__(self, epsilon: float, seed: int, part: Part):
        from sklearn.ensemble import HistGradientBoostingClassifier

        from skfairdp.postprocessing import FairPrivateClassifier

        rows, labels, groups = part
        trees = HistGradientBoostingClassifier(random_state=seed)
        self._model = FairPrivateClassifier(trees, epsilon=epsilon, random_state=seed)
        self._model.fit(rows, labels, sensitive_features=groups)
        self.privacy_ = self._model.privacy_

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self._model.predict(X)

    def transform(self, X: np.ndarray) -> np.ndarray:
        return (self.predict(X)[:, None] == self._model.classes_).astype(float)


def _model(cell: Cell, parts: list[Part]) -> Any:
    data, method, settings, seed = (cell[name] for name in ("data", "method", "settings", "seed"))
    if method in (FAIR_TREES, "fair trees"):
        return _FairTrees(settings["epsilon"], seed, parts[0])
    if method == "Random":
        return _Random(seed)
    if method == "INLP":
        return _Erased(_plain(data, seed), settings["n_iterations"], parts[0])
    return _fit(data, settings, seed, parts)


def _fit(data: str, settings: Cell, seed: int, parts: list[Part]) -> Any:
    """Train one network; its learning rate falls to zero, so that the last epochs settle."""
    from skorch.callbacks import LRScheduler
    from torch.optim.lr_scheduler import CosineAnnealingLR

    from skfairdp.adversarial import published_federate

    training = TRAINING[data, settings.get("channel", "laplace")]
    cosine = LRScheduler(CosineAnnealingLR, T_max=training["max_epochs"])
    model = published_federate(**settings, **training, callbacks=[("lr", cosine)], random_state=seed)
    rows, labels, groups = parts[0]
    return model.fit(rows, labels, sensitive_features=groups)


@lru_cache(maxsize=1)
def _plain(data: str, seed: int) -> Any:
    return _fit(data, PLAIN, seed, _parts(data, seed))


@lru_cache(maxsize=1)
def _parts(data: str, seed: int) -> list[Part]:
    """Training, validation and test part: 60, 20 and 20 percent of the rows."""
    from sklearn.model_selection import train_test_split

    from skfairdp.datasets import fetch_adult, fetch_celeba_attributes

    adult = data == "adult"
    bunch = fetch_adult(preset="federate", as_frame=True) if adult else fetch_celeba_attributes(as_frame=True)
    train, rest = train_test_split(np.arange(len(bunch.target)), test_size=0.4, random_state=seed)
    valid, test = train_test_split(rest, test_size=0.5, random_state=seed)
    preprocessor = bunch.preprocessor.fit(bunch.data.iloc[train]) if adult else None
    parts = []
    for index in (train, valid, test):
        rows = bunch.data.iloc[index]
        rows = rows.to_numpy() if preprocessor is None else np.asarray(preprocessor.transform(rows))
        groups = np.asarray(bunch.sensitive_features)[index].ravel()
        parts.append((rows.astype(np.float32), np.asarray(bunch.target)[index], groups))
    return parts
