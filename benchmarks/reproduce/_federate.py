"""FEDERATE (Maheshwari, Denis, Keller and Bellet, Findings of EMNLP 2022): cells of tables 2 (CelebA) and 3 (Adult).

First every setting of every method is trained and judged on validation and test rows. Then, for each method and seed,
the fairest setting within one point of the best validation accuracy is trained again, and leakage and
description length of what it releases are measured; for noisy methods also at each epsilon alone, as in figure 4.

``published`` is the public code: L2 rows of 50 coordinates and noise of scale 2 / epsilon, which spends sqrt(50) times
its epsilon. ``exact`` keeps the epsilon, with two coordinates of L1 rows. Codes are this package's other channel.
"""

import math
import warnings
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.federate_adult import PENALTIES, TRAINING, WEIGHTS, chosen, fit, leakage, load
from benchmarks.federate_adult import measure as accuracy_and_gap

EPSILONS = (8.0, 10.0, 12.0, 14.0, 16.0)  # those of figure 4
SEEDS = range(5)
WIDE = {"n_components": 50, "classifier_hidden_sizes": [32]}
EXACT = {"n_components": 2, "classifier_hidden_sizes": [32]}
PUBLIC_CODE = {**WIDE, "norm": "l2", "calibration": "published"}


def methods(data: str) -> dict[str, list[dict[str, Any]]]:
    """The settings of each method; the smallest epsilon has all weights, the others every third of them."""
    plain = {"epsilon": math.inf, "adversary_weight": 0.0, **WIDE}
    codes = {"channel": "codes", "n_codes": 2, "adversary_weight": 0.0}
    pairs = [(e, w) for e in EPSILONS for w in WEIGHTS[:: 1 if e == EPSILONS[0] else 3]]
    penalties = [(e, w) for e in EPSILONS for w in PENALTIES[data][:: 1 if e == EPSILONS[0] else 3]]
    several = [
        {"n_adversaries": 3, "orthogonality": o, "adversary_weight": w} for o in (0.1, 1.0) for w in WEIGHTS[::2]
    ]
    return {
        "Random": [{}],
        "Unconstrained": [plain],
        "INLP": [{"n_iterations": n} for n in range(2, 8)],
        "Noise, published": [{"epsilon": e, "adversary_weight": 0.0, **PUBLIC_CODE} for e in EPSILONS],
        "Noise, exact": [{"epsilon": e, "adversary_weight": 0.0, **EXACT} for e in EPSILONS],
        "Adversarial": [{**plain, "adversary_weight": w} for w in WEIGHTS],
        "Adversarial + Multiple": [{**plain, **one} for one in several],
        "FEDERATE, published": [{"epsilon": e, "adversary_weight": w, **PUBLIC_CODE} for e, w in pairs],
        "FEDERATE, exact": [{"epsilon": e, "adversary_weight": w, **EXACT} for e, w in pairs],
        "codes, exact": [{**codes, "epsilon": e, "fairness_penalty": w} for e, w in penalties],
    }


def cells_of(data: str, mode: str) -> list[dict[str, Any]]:
    """All settings of all methods, seed after seed; in the quick mode one each of few."""
    table, seeds = methods(data), SEEDS
    if mode == "quick":
        names = ("Unconstrained", "Noise, published", "codes, exact") if data == "adult" else ("codes, exact",)
        table, seeds = {name: table[name][:1] for name in names}, range(1)
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
        for method, grid in table.items()
        for settings in grid
    ]


def selections(grid: pd.DataFrame) -> list[tuple[str, float | None, list[dict[str, Any]]]]:
    """Method, epsilon, and the chosen cell of each seed: among all settings (epsilon is None), and at each epsilon."""
    found = []
    for method, rows in grid.groupby("method", sort=False):
        epsilons = rows["settings"].map(lambda settings: settings.get("epsilon", math.inf))
        several = sorted(set(epsilons)) if epsilons.nunique() > 1 else []
        for epsilon in (None, *several):
            of = rows if epsilon is None else rows[epsilons == epsilon]
            found.append((method, epsilon, [chosen(one.to_dict("records")) for _, one in of.groupby("seed")]))
    return found


def name_of(cell: dict[str, Any]) -> str:
    """What a cell of the grid and the cell that follows it up have in common."""
    return f"{cell['seed']} {cell['method']} {cell['settings']}"


def follow_up(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The chosen settings, each once, for their leakage and description length."""
    picks = [pick for _, _, of in selections(frame[frame["stage"] == "grid"]) for pick in of]
    wanted = {name_of(pick): pick for pick in picks}
    names = ("data", "method", "settings", "training", "seed")
    return [{"stage": "chosen", **{name: pick[name] for name in names}} for pick in wanted.values()]


def measure(cell: dict[str, Any]) -> dict[str, Any]:
    """Train; then accuracy and gap on both parts, or what the representation gives away."""
    from skfairdp.exceptions import OverclaimedPrivacyWarning

    parts = _parts(cell["data"], cell["seed"])
    with warnings.catch_warnings():
        if cell["settings"].get("calibration") == "published":
            warnings.simplefilter("ignore", OverclaimedPrivacyWarning)
        model = _model(cell, parts)
    if cell["stage"] == "grid":
        epsilon = (
            model.privacy_.epsilon if hasattr(model, "privacy_") else 0.0 if cell["method"] == "Random" else math.inf
        )
        return {
            "valid": accuracy_and_gap(model, parts[1]),
            "test": accuracy_and_gap(model, parts[2]),
            "exact_epsilon": epsilon,
            "majority": 100 * float(pd.Series(parts[2][2]).value_counts(normalize=True).max()),
        }
    from skfairdp.metrics import online_code_length

    rows, _, groups = parts[2]
    length = online_code_length(
        model.transform(rows), groups, n_orders=1, reference_compatible=True, random_state=cell["seed"]
    )
    return {"leakage": leakage(model, parts, cell["seed"]), "mdl": length.kbits}


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

    def __init__(self, plain: Any, n_iterations: int, part: tuple):
        from sklearn.linear_model import LogisticRegression

        from skfairdp import INLPEraser

        rows, labels, groups = part
        hidden = plain.transform(rows)
        self._plain = plain
        self._eraser = INLPEraser(n_iterations=n_iterations).fit(hidden, sensitive_features=groups)
        self._head = LogisticRegression(max_iter=1000).fit(self._eraser.transform(hidden), labels)

    def transform(self, X: np.ndarray) -> np.ndarray:
        return self._eraser.transform(self._plain.transform(X))

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self._head.predict(self.transform(X))


def _model(cell: dict[str, Any], parts: list) -> Any:
    data, method, settings, seed = (cell[name] for name in ("data", "method", "settings", "seed"))
    if method == "Random":
        return _Random(seed)
    if method == "INLP":
        return _Erased(_plain(data, seed), settings["n_iterations"], parts[0])
    return fit(data, settings, seed, parts)


@lru_cache(maxsize=1)
def _plain(data: str, seed: int) -> Any:
    return fit(data, methods(data)["Unconstrained"][0], seed, _parts(data, seed))


@lru_cache(maxsize=1)
def _parts(data: str, seed: int) -> list:
    return load(data, seed)
