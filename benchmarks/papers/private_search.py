"""What a private search reaches on Adult (docs/reproduction/private_search.md), beside what it has to beat.

PATE with logistic teachers and soft labels, twelve candidates, the same total epsilon for every line: all of it for one
candidate, a share of it for each of twelve, and searches. 60 % of the rows are private, 20 % public, 20 % to judge on.
A search is not drawn: its accuracy is the expectation over the number of trials and the candidates that they draw, from
one fit of every candidate at the epsilon of a trial, ranked by right answers on held-out private rows. The noise on
these counts is left out; it is a few answers of thousands.
"""

import math
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import brentq

from benchmarks.papers._experiment import Experiment
from benchmarks.papers._tables import number, spread

DELTA = 1e-5
EPSILONS = (1.0, 3.0)
SEEDS = range(5)
GRID = {"n_teachers": [50, 150, 600], "n_queries": [200, 4000], "student_regularization": [0.001, 0.1]}
N_CANDIDATES = 12
MIDDLING = {"n_teachers": 150, "n_queries": 200, "student_regularization": 0.1}
#: Shape and mean of the number of trials.
SEARCHES = {"search, eta = 1": (1.0, 10.0), "search, eta = 0": (0.0, 10.0)}
KINDS = ("rule", "alone", "shared", *SEARCHES)


def cells(mode: str) -> list[dict[str, Any]]:
    """Every way to spend a total, seed after seed."""
    epsilons, seeds, kinds = ((3.0,), range(1), ("rule",)) if mode == "quick" else (EPSILONS, SEEDS, KINDS)
    return [{"kind": kind, "epsilon": e, "seed": seed} for seed in seeds for e in epsilons for kind in kinds]


def measure(cell: dict[str, Any]) -> dict[str, Any]:
    """Fit every candidate at what this way leaves to it; right answers on held-out and on test rows."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import ParameterGrid

    from skfairdp.accounting import gaussian_epsilon, gaussian_mu
    from skfairdp.ensemble import PATEClassifier
    from skfairdp.mechanisms import selection_mechanism

    (rows, labels), public, (test, test_labels) = _parts(cell["seed"])
    kind, epsilon, delta = cell["kind"], cell["epsilon"], DELTA
    order = np.random.default_rng(cell["seed"]).permutation(len(rows))
    held, fitting = np.split(order, [len(rows) // 5])
    candidates = list(ParameterGrid(GRID))
    if kind in ("rule", "alone"):
        fitting = order
        candidates = [{}] if kind == "rule" else candidates
    elif kind == "shared":
        epsilon = gaussian_epsilon(delta, gaussian_mu(epsilon, delta) / math.sqrt(N_CANDIDATES))
    else:
        eta, mean = SEARCHES[kind]
        budget = selection_mechanism(epsilon, delta, expected_trials=mean, eta=eta).budget
        epsilon, delta = budget.gaussian_epsilon, budget.delta
    teacher = LogisticRegression(solver="liblinear")
    settings = {"labels": "soft", "epsilon": epsilon, "delta": delta, "random_state": cell["seed"]}
    found = []
    for candidate in candidates:
        model = PATEClassifier(teacher, **settings, **candidate).fit(rows[fitting], labels[fitting], public=public)
        right = [100 * model.score(rows[held], labels[held]), 100 * model.score(test, test_labels)]
        found.append({"candidate": candidate, "held": right[0], "test": right[1]})
    return {"epsilon_of_a_fit": epsilon, "fits": found}


@lru_cache(maxsize=1)
def _parts(seed: int) -> tuple[Any, Any, Any]:
    from skfairdp.datasets import fetch_adult

    adult = fetch_adult(preset="federate", as_frame=True)
    labels = np.asarray(adult.target)
    order = np.random.default_rng(seed).permutation(len(labels))
    private, public, test = np.split(order, [int(0.6 * len(order)), int(0.8 * len(order))])
    preparation = adult.preprocessor.fit(adult.data.iloc[public])
    rows = [np.asarray(preparation.transform(adult.data.iloc[part]), dtype=float) for part in (private, public, test)]
    return (rows[0], labels[private]), rows[1], (rows[2], labels[test])


def tables(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """One line for each way to spend the budget, mean and standard error over seeds."""
    lines: dict[str, dict[str, str]] = {}
    for epsilon, of in frame.groupby("epsilon"):
        for name, values in _accuracies(of).items():
            shown = spread(values)
            if len(values) > 1:
                shown = f"{np.mean(values):.1f} ± {np.std(values, ddof=1) / math.sqrt(len(values)):.1f}"
            lines.setdefault(name, {})[f"epsilon {number(epsilon)}"] = shown
    rows = [{"the whole budget is spent on": name, **line} for name, line in lines.items()]
    return {"adult": pd.DataFrame(rows).fillna("")}


def _accuracies(frame: pd.DataFrame) -> dict[str, list[float]]:
    """Accuracy of each way to spend one epsilon, seed by seed."""
    fits = {kind: of["fits"].tolist() for kind, of in frame.groupby("kind")}
    found = {}
    if "rule" in fits:
        found["one fit with the settings that the rule chooses"] = [one[0]["test"] for one in fits["rule"]]
    if "alone" in fits:
        alone = np.array([[fit["test"] for fit in seed] for seed in fits["alone"]])
        candidates = [fit["candidate"] for fit in fits["alone"][0]]
        best = int(alone.mean(axis=0).argmax())
        found["the candidate that is best on average, known beforehand"] = alone[:, best].tolist()
        found["a middling candidate (150 teachers, 200 queries, 0.1)"] = alone[:, candidates.index(MIDDLING)].tolist()
        found["a candidate drawn at random"] = alone.mean(axis=1).tolist()
    for kind, (eta, mean) in SEARCHES.items():
        if kind in fits:
            chance = chances_of_ranks(eta, mean)
            values = [float(chance @ [fit["test"] for fit in sorted(s, key=lambda f: f["held"])]) for s in fits[kind]]
            found[f"{kind}, {mean:g} trials expected"] = values
    if "shared" in fits:
        name = "all twelve, the best taken by held-out rows without noise, which nobody paid for"
        found[name] = [max(seed, key=lambda fit: fit["held"])["test"] for seed in fits["shared"]]
    return found


def chances_of_ranks(eta: float, mean: float) -> np.ndarray:
    """How likely each candidate is the best of the trials, from the worst to the best candidate.

    The number of trials is geometric (``eta=1``) or logarithmic (``eta=0``) with this mean.
    """
    reached = np.linspace(0, 1, N_CANDIDATES + 1)
    if eta == 1:
        gamma = 1 / mean
        return np.diff(gamma * reached / (1 - (1 - gamma) * reached))
    gamma = brentq(lambda g: (1 / g - 1) / math.log(1 / g) - mean, 1e-9, 1 - 1e-9)
    return np.diff(np.log1p(-(1 - gamma) * reached) / math.log(gamma))


EXPERIMENTS = {"private-search": Experiment("private-search", cells, measure, tables)}
