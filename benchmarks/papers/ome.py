"""OME (Lyu, Li, He and Xiao, SIGIR 2020), tables 1 and 2: accuracy on randomised bits.

Mean GloVe vectors of 100 dimensions (the paper: 50 dimensions for reviews, BERT for the other two), 1 + 4 + 5 bits
for each. The classifier is the paper's: one hidden layer, dropout of a half on its input, 50 epochs (20 for
the other two) of stochastic gradient descent with momentum. ``published`` are the paper's rates and ``exact`` those
that keep the epsilon.
"""

import math
import warnings
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import brentq

from benchmarks.papers._experiment import Experiment
from benchmarks.papers._tables import cell_text, number, pick, save_figure
from benchmarks.papers._word_vectors import mean_vectors

REVIEWS = ("imdb", "amazon", "yelp")
NAMES = {"imdb": "IMDb", "amazon": "Amazon", "yelp": "Yelp", "intent": "Intent", "mrpc": "MRPC"}

#: Table 1, and the two other protocols of table 2: accuracy in percent for (protocol, epsilon, lambda).
PUBLISHED = {
    ("none", math.inf, None): (70.67, 67.50, 66.00, 94.17, 68.38),
    ("ome", 0.5, 100): (65.33, 68.00, 64.54, 91.28, 66.91),
    ("ome", 1.0, 100): (67.33, 69.50, 66.73, 91.35, 67.15),
    ("ome", 5.0, 100): (67.80, 71.00, 67.50, 91.57, 70.10),
    ("ome", 10.0, 100): (69.33, 72.50, 68.10, 91.87, 70.15),
    ("ome", 1.0, 1): (48.00, 45.50, 42.50, 13.00, 64.95),
    ("ome", 1.0, 10): (64.00, 65.46, 57.81, 85.43, 66.66),
    ("ome", 1.0, 50): (66.67, 69.21, 66.50, 90.57, 66.91),
    ("sue", 1.0, None): (55.33, 45.50, 48.00),
    ("oue", 1.0, None): (50.67, 54.00, 51.00),
}

FIGURE_3_BITS = 500  # the paper's reviews: 50 numbers, ten bits each
HIDDEN = {"imdb": 128, "amazon": 128, "yelp": 128, "intent": 768, "mrpc": 768}


def cells(mode: str) -> list[dict[str, Any]]:
    """Every published setting with the published rates, the same epsilon kept, and the best at what was spent."""
    if mode == "quick":
        plan = [(data, seed, 20) for data in REVIEWS for seed in range(2)]
        settings = [("none", math.inf, None, "exact")]
        settings += [("ome", 1.0, 100, "published"), ("ome", 1.0, None, "exact"), ("optimal", 1.0, None, "exact")]
    else:
        # The other two have many rows and wide networks, and a test part that is the same in all runs.
        plan = [(data, seed, 50) for seed in range(20) for data in REVIEWS]
        plan += [(data, seed, 20) for seed in range(3) for data in ("intent", "mrpc")]
        settings = [(*setting, "exact" if setting[0] == "none" else "published") for setting in PUBLISHED]
        settings += [("ome", epsilon, None, "exact") for epsilon in (0.5, 1.0, 5.0, 10.0)]
        settings += [("sue", 1.0, None, "exact"), ("oue", 1.0, None, "exact")]
        settings += [("optimal", epsilon, None, "exact") for epsilon in (1.0, 10.0)]
        settings += [("optimal", "as ome", factor, "exact") for factor in (1, 10, 50, 100)]
        settings += [("optimal", "as sue", None, "exact"), ("optimal", "as oue", None, "exact")]
    names = ("protocol", "epsilon", "factor", "calibration")
    return [
        {"data": data, **dict(zip(names, setting)), "hidden": HIDDEN[data], "max_epochs": epochs, "seed": seed}
        for data, seed, epochs in plan
        for setting in settings
        if data in REVIEWS or not {"sue", "oue", "as sue", "as oue"} & set(setting)
    ]


def measure(cell: dict[str, Any]) -> dict[str, Any]:
    """Encode, randomise once, train on randomised rows, and judge on randomised rows."""
    from sklearn.exceptions import ConvergenceWarning

    from skfairdp.exceptions import OverclaimedPrivacyWarning

    train, y_train, test, y_test = _split(cell["data"], cell["seed"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OverclaimedPrivacyWarning)
        encoder = _encoder(cell, train)
        released = encoder.fit_transform(train).astype(np.float32)
        warnings.simplefilter("ignore", ConvergenceWarning)  # the paper fixes the number of epochs
        model = _classifier(cell).fit(released, y_train)
    accuracy = 100 * model.score(encoder.transform(test).astype(np.float32), y_test)
    exact = math.inf if cell["protocol"] == "none" else encoder.privacy_.epsilon
    majority = 100 * np.bincount(y_test).max() / len(y_test)
    return {"accuracy": accuracy, "exact_epsilon": exact, "bits": released.shape[1], "majority": majority}


def tables(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """For every published cell: ours with its rates, with its epsilon kept, and the best at the epsilon it spends."""
    rows = []
    for column, data in enumerate(NAMES):
        of = pick(frame, data=data)
        for (protocol, epsilon, factor), published in PUBLISHED.items() if len(of) else ():
            calibration = "exact" if protocol == "none" else "published"
            ours = pick(of, protocol=protocol, epsilon=epsilon, factor=factor, calibration=calibration)
            kept = pick(of, protocol=protocol, epsilon=epsilon, factor=None, calibration="exact")
            best = pick(of, protocol="optimal", epsilon=f"as {protocol}", factor=factor)
            if len(ours):
                row = {"data": NAMES[data], "protocol": _name(protocol, factor), "claimed ε": number(epsilon)}
                row["published"] = number(published[column])
                row |= {
                    "exact ε": number(ours["exact_epsilon"].iloc[0]),
                    "published rates": cell_text(ours, "accuracy"),
                }
                row["claimed ε kept"] = cell_text(kept, "accuracy") if protocol != "none" else ""
                row["optimal at the exact ε"] = cell_text(best, "accuracy") if protocol != "none" else ""
                rows.append(row | {"runs": str(ours["seed"].nunique())})
        for epsilon in (1.0, 10.0):
            found = pick(of, protocol="optimal", epsilon=epsilon)
            if len(found):
                row = {"data": NAMES[data], "protocol": "optimal", "claimed ε": number(epsilon)}
                row |= {"exact ε": number(epsilon), "claimed ε kept": cell_text(found, "accuracy")}
                rows.append(row | {"runs": str(found["seed"].nunique())})
        if len(of):
            guess = {"data": NAMES[data], "protocol": "majority class", "claimed ε": "0", "exact ε": "0"}
            rows.append(guess | {"claimed ε kept": cell_text(of.drop_duplicates("seed"), "majority")})
    return {"accuracy": pd.DataFrame(rows).fillna("")}


def _name(protocol: str, factor: float | None) -> str:
    return (
        "no noise"
        if protocol == "none"
        else f"OME, λ\u00a0=\u00a0{factor:g}"
        if protocol == "ome"
        else protocol.upper()
    )


def _encoder(cell: dict[str, Any], train: np.ndarray) -> Any:
    from sklearn.preprocessing import StandardScaler

    from skfairdp.preprocessing import OMEEncoder

    protocol, epsilon, factor = cell["protocol"], cell["epsilon"], cell["factor"]
    if protocol == "none":
        return StandardScaler()
    if isinstance(epsilon, str):  # what the published rates of another protocol spend
        other = OMEEncoder(1.0, protocol=epsilon[3:], randomization_factor=factor, calibration="published")
        epsilon, factor = other.fit(train).privacy_.epsilon, None
    return OMEEncoder(
        epsilon,
        protocol=protocol,
        randomization_factor=factor,
        calibration=cell["calibration"],
        objective="posterior" if protocol == "optimal" else "unbiased",
        random_state=cell["seed"],
    )


def _classifier(cell: dict[str, Any]) -> Any:
    """The paper's network; an open channel makes a plain classifier of it."""
    from torch.optim import SGD

    from skfairdp.adversarial import published_federate

    return published_federate(
        math.inf,
        encoder=partial(_hidden_layer, width=cell["hidden"]),
        n_components=cell["hidden"],
        adversary_weight=0.0,
        optimizer=partial(SGD, momentum=0.9),
        learning_rate=0.01,
        batch_size=32,
        max_epochs=cell["max_epochs"],
        random_state=cell["seed"],
    )


def _hidden_layer(n_features: int, width: int) -> Any:
    from torch import nn

    return nn.Sequential(nn.Dropout(0.5), nn.Linear(n_features, width), nn.ReLU())


def _split(data: str, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    from sklearn.model_selection import train_test_split

    rows, labels, test = _vectors(data)
    if test is None:
        train, test = train_test_split(np.arange(len(rows)), test_size=0.2, random_state=seed)
    else:
        train, test = np.flatnonzero(~test), np.flatnonzero(test)
    return rows[train], labels[train], rows[test], labels[test]


@lru_cache(maxsize=5)
def _vectors(data: str) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Rows, labels, and which rows are the published test part."""
    from skfairdp.datasets import fetch_mrpc, fetch_sentiment_sentences, fetch_snips

    if data in REVIEWS:
        bunch = fetch_sentiment_sentences(source=data)
        return mean_vectors(bunch.data), np.asarray(bunch.target), None
    if data == "intent":
        bunch = fetch_snips(preset="ome")
        return mean_vectors(bunch.data), np.asarray(bunch.target), bunch.subset == "test"
    bunch = fetch_mrpc()
    first, second = (mean_vectors(column) for column in np.asarray(bunch.data).T)
    return np.hstack([np.abs(first - second), first * second]), np.asarray(bunch.target), bunch.subset == "test"


def printed_rates(epsilon: float, factor: float, n_bits: int = FIGURE_3_BITS) -> tuple[float, float, float]:
    """Rates of the paper's equations 2 and 3: a 1 stays 1 on even and on odd places, and a 0 becomes 1."""
    return factor / (1 + factor), 1 / (1 + factor**3), 1 / (1 + factor * math.exp(epsilon / n_bits))


def loss_of_rates(rates: tuple[float, float, float], n_bits: int = FIGURE_3_BITS) -> float:
    """The exact epsilon: any bit may differ, so the losses of all bits add."""
    *stays, becomes = rates
    losses = [max(abs(math.log(p / becomes)), abs(math.log((1 - p) / (1 - becomes)))) for p in stays]
    return n_bits / 2 * sum(losses)


def largest_factor(epsilon: float, n_bits: int = FIGURE_3_BITS) -> float:
    """The largest factor for which the printed rates keep epsilon."""
    budget = math.exp(2 * epsilon / n_bits)
    return brentq(lambda factor: factor**3 - factor**2 + factor - budget, 1.0, budget, xtol=1e-14)


def figures(frame: pd.DataFrame, folder: Path) -> None:
    """Figure 3: how likely bits are kept and set, over epsilon and over the factor, with the exact loss below.

    It needs no measurement: the rates are formulas.
    """
    import matplotlib.pyplot as plt

    epsilons, factors = np.geomspace(0.5, 10, 25), np.geomspace(1, 100, 25)
    figure, axes = plt.subplots(2, 2, figsize=(8, 5), layout="constrained", sharex="col")
    for (rates, loss), values, over, label in zip(
        axes.T, (epsilons, factors), ("epsilon", "factor"), ("claimed ε (λ = 100)", "λ (claimed ε = 1)")
    ):
        settings = [(value, 100.0) if over == "epsilon" else (1.0, value) for value in values]
        published = [printed_rates(epsilon, factor) for epsilon, factor in settings]
        even, odd, set_bits = zip(*published)
        rates.plot(values, even, "-", color="#0072B2", label="p₁: 1 stays 1, even places")
        rates.plot(values, odd, "--", color="#009E73", label="p₂: 1 stays 1, odd places")
        rates.plot(values, set_bits, "-.", color="#D55E00", label="q: 0 becomes 1")
        spent = [loss_of_rates(one) for one in published]
        loss.plot(values, spent, color="#D55E00", label="spent by the published rates")
        loss.plot(values, [epsilon for epsilon, _ in settings], ":", color="0.4", label="claimed")
        if over == "epsilon":
            even, odd, set_bits = zip(*[printed_rates(epsilon, largest_factor(epsilon)) for epsilon in values])
            rates.plot(values, even, color="0.7", label="p₁, p₂ and q if ε is kept")
            for rate in (odd, set_bits):
                rates.plot(values, rate, color="0.7")
        rates.set(xscale="log", ylabel="probability", ylim=(-0.03, 1.03))
        loss.set(xscale="log", yscale="log", xlabel=label, ylabel="exact ε")
    axes[0, 0].legend(frameon=False, fontsize=7, loc="center right", bbox_to_anchor=(1.0, 0.74))
    axes[1, 0].legend(frameon=False, fontsize=7)
    save_figure(figure, folder / "ome-figure-3.svg")


EXPERIMENTS = {"ome": Experiment("ome", cells, measure, tables, figures)}
