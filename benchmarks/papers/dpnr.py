"""DPNR (Lyu, He and Li, Findings of EMNLP 2020) on AG news: tables 2, 3, 4, 5 and 7, and figures 3 and 4.

The encoder is the mean of GloVe vectors with trained layers behind it (the paper: BERT), 64 outputs (the paper: 768).
Encoders are trained with the noise that follows (algorithm 1), on rows that are mapped onto [0, 1]:

- ``scalar``: one draw for the whole row, which is what the public code does; the row minus its least value
  is the row without noise, so that no epsilon holds;
- ``recovered``: the same after subtracting the least value of each released row, as an attacker would;
- ``iid``: Lap(1 / epsilon) for each coordinate, as printed; the exact epsilon is 64 times the claimed one;
- ``exact``: Lap(64 / epsilon) for each coordinate, which keeps epsilon;
- ``codes``: the learned codes of ``FederateClassifier`` at the same epsilon, trained with their noise;
- ``none``, and ``adversary``: no noise, and adversaries for the five persons instead, of three weights.
"""

import math
import warnings
from functools import lru_cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import nn

from benchmarks.papers._experiment import Experiment
from benchmarks.papers._tables import cell_text, number, pick, save_figure
from benchmarks.papers._word_vectors import mean_vectors

DIMENSIONS = 64
EPSILONS = (0.05, 0.1, 0.5, 1.0, 5.0)
RATES = (0.1, 0.3, 0.5, 0.8)
NOISES = ("scalar", "iid", "exact", "codes")
ADVERSARIES = {"adversary": 1.0, "adversary 10": 10.0, "adversary 100": 100.0}  # and their weights

TABLE_2 = {math.inf: 78.75, 0.05: 80.87, 0.1: 80.78, 0.5: 79.71, 1.0: 79.36, 5.0: 79.59}
TABLE_3 = {0.1: 80.71, 0.3: 79.18, 0.5: 77.42, 0.8: 69.57}
#: Main task and empirical privacy; the paper gives the last two relative to NON-PRIV.
TABLE_4 = {"majority": (57.79, 49.34), "none": (78.75, 23.24), "adversary": (57.04, 49.67), "scalar": (80.87, 54.37)}
#: Attack on absence and presence of entities 3, 4, 5; then accuracy of the main task, presence relative to absence.
TABLE_5 = {
    "none": (96.71, 81.99, 99.43, 47.20, 96.93, 68.29),
    "adversary": (98.57, 39.71, 100.00, 0.00, 99.87, 12.96),
    "scalar": (90.86, 8.46, 100.00, 0.00, 100.00, 0.00),
}
TABLE_7 = {
    "none": (82.67, -18.82, 80.86, -15.44, 80.22, -10.78),
    "adversary": (48.92, 7.82, 49.64, 6.67, 49.43, 9.60),
    "scalar": (83.60, -16.93, 81.79, -12.22, 81.04, -6.04),
}
#: Of whom, and at which epsilons, figure 4 is drawn; the paper has age groups of a data set that is not to be had.
MAPPED_PERSON, MAPPED_EPSILONS, MAPPED_ROWS = 3, (0.05, math.inf), 300
#: What the paper has not: the strongest of several attackers for each person.
STRONGEST = "1 - F, strongest attacker"
LABELS = {
    "none": "NON-PRIV",
    "adversary": "ADV, weight 1",
    "adversary 10": "ADV, weight 10",
    "adversary 100": "ADV, weight 100",
    "scalar": "DPNR, one draw per row (public code)",
    "recovered": "the same, least value of each row subtracted",
    "iid": "DPNR, Lap(1/ε) per coordinate (as printed)",
    "exact": "DPNR, Lap(64/ε) per coordinate (exact)",
    "codes": "codes (exact)",
}
STYLES = {
    "scalar": ("#E69F00", "--"),
    "recovered": ("#E69F00", "-"),
    "iid": ("#D55E00", "--"),
    "exact": ("#D55E00", "-"),
    "codes": ("#0072B2", "-"),
}


def cells(mode: str) -> list[dict[str, Any]]:
    """Epsilons without dropout, which are attacked, and dropout rates at epsilon 1."""
    if mode == "quick":
        plan = [("none", math.inf, 0.0, False), ("scalar", 0.05, 0.0, False), ("exact", 0.05, 0.0, False)]
        plan += [("iid", 5.0, 0.0, False), ("codes", 5.0, 0.0, False), ("scalar", 1.0, 0.8, False)]
        seeds, epochs = 1, 6
    else:
        plan = [(noise, math.inf, 0.0, True) for noise in ("none", *ADVERSARIES)]
        plan += [(noise, epsilon, 0.0, True) for epsilon in EPSILONS for noise in (*NOISES, "recovered")]
        plan += [(noise, 1.0, rate, False) for rate in RATES for noise in NOISES]
        seeds, epochs = 5, 15
    names = ("noise", "epsilon", "rate", "attack")
    return [{**dict(zip(names, one)), "max_epochs": epochs, "seed": seed} for seed in range(seeds) for one in plan]


def measure(cell: dict[str, Any]) -> dict[str, Any]:
    """Release the rows once, read the topic from them, and attack them."""
    train, _, test, labels, persons, dropout = _documents(cell["rate"], cell["seed"])
    representation, predict, privacy = _release(cell)
    right = predict[test] == labels[test]
    found = {
        "accuracy": 100 * right.mean(),
        "majority": 100 * np.bincount(labels[test]).max() / test.sum(),
        "exact_epsilon": math.inf if privacy is None else privacy.epsilon,
        "word_epsilon": math.inf if privacy is None else dropout.amplify(privacy).epsilon,
    }
    for k, there in enumerate(persons[test].T.astype(bool), start=1):
        found |= {f"absent_{k}": 100 * right[~there].mean(), f"present_{k}": 100 * right[there].mean()}
        found |= {f"rows_absent_{k}": int((~there).sum()), f"rows_present_{k}": int(there.sum())}
    if cell["attack"]:
        found |= _attack(representation, persons, train, test, cell["seed"])
        if cell["seed"] == 0 and cell["epsilon"] in MAPPED_EPSILONS:
            found["map"] = _map(representation[test], persons[test][:, MAPPED_PERSON - 1].astype(bool))
    return found


def tables(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The five tables, as far as they were measured."""
    plain, shown = pick(frame, rate=0.0), {}
    rows = []
    for epsilon, published in TABLE_2.items():
        of = pick(plain, epsilon=epsilon)
        row = {"claimed ε": number(epsilon), "published": number(published)}
        for noise in NOISES if math.isfinite(epsilon) else ():
            row[LABELS[noise]] = _with_epsilon(pick(of, noise=noise))
        if math.isinf(epsilon):
            row[LABELS["scalar"]] = cell_text(pick(of, noise="none"), "accuracy") + " (no noise)"
        rows.append(row)
    shown["table-2"] = pd.DataFrame(rows).fillna("")
    rows = []
    for rate, published in TABLE_3.items():
        of = pick(frame, rate=rate, epsilon=1.0)
        row = {
            "μ": rate,
            "claimed word ε": number(math.log(rate + (1 - rate) * math.e)),
            "published": number(published),
        }
        for noise in NOISES:
            row[LABELS[noise]] = _with_epsilon(pick(of, noise=noise), "word_epsilon")
        rows.append(row)
    shown["table-3"] = pd.DataFrame(rows)
    if "privacy" in frame:
        attacked = frame[frame["privacy"].notna() & frame["epsilon"].isin([0.05, math.inf])]
        shown["table-4"] = _table_4(attacked)
        shown["table-5"] = _by_entity(attacked, TABLE_5, "attack_absent_{}", "attack_present_{}", relative=False)
        shown["table-7"] = _by_entity(attacked, TABLE_7, "absent_{}", "present_{}", relative=True)
        shown["table-7-significance"] = _significance(attacked)
    return shown


def _significance(frame: pd.DataFrame) -> pd.DataFrame:
    """Whether the two groups of each person differ less than without noise: p-values of table 7.

    Rows are what could have been others. So accuracies are means over the seeds, which share the rows, with the
    binomial variance of one; the difference of two differences over its standard error is compared with the normal law.
    """
    from scipy.stats import norm

    def difference(noise: str, k: int) -> tuple[float, float]:
        of = pick(frame, noise=noise)
        absent, present = of[f"absent_{k}"].mean() / 100, of[f"present_{k}"].mean() / 100
        n_absent, n_present = of[f"rows_absent_{k}"].iloc[0], of[f"rows_present_{k}"].iloc[0]
        variance = absent * (1 - absent) / n_absent + present * (1 - present) / n_present
        return abs(present - absent), variance

    rows = []
    for noise, label in LABELS.items():
        if noise != "none" and len(pick(frame, noise=noise)) and len(pick(frame, noise="none")):
            row = {"method": label}
            for k in (3, 4, 5):
                (ours, variance), (plain, plain_variance) = difference(noise, k), difference("none", k)
                z = (ours - plain) / math.sqrt(variance + plain_variance)
                row[f"entity {k}"] = f"{100 * (ours - plain):+.1f} points, p = {2 * norm.sf(abs(z)):.2g}"
            rows.append(row)
    return pd.DataFrame(rows)


def figures(frame: pd.DataFrame, folder: Path) -> None:
    """Figure 3: empirical privacy over the claimed epsilon. Figure 4: maps of what is released."""
    _figure_3(frame, folder / "dpnr-figure-3.svg")
    _figure_4(frame, folder / "dpnr-figure-4.svg")


def _figure_4(frame: pd.DataFrame, path: Path) -> None:
    """Maps of released rows, with and without one of the persons."""
    import matplotlib.pyplot as plt

    maps = frame[frame["map"].notna()] if "map" in frame else frame[:0]
    shown = [noise for noise in ("none", "adversary", "scalar", "recovered", "exact") if len(pick(maps, noise=noise))]
    if not shown:
        return
    figure, axes = plt.subplots(1, len(shown), figsize=(2.6 * len(shown), 3), layout="constrained", squeeze=False)
    for axis, noise in zip(axes[0], shown):
        places = np.array(pick(maps, noise=noise)["map"].iloc[0])
        for value, colour, name in ((0, "#0072B2", "absent"), (1, "#D55E00", "present")):
            of = places[places[:, 2] == value]
            axis.plot(of[:, 0], of[:, 1], ".", color=colour, markersize=3, alpha=0.6, label=f"entity 3 {name}")
        axis.set(xticks=[], yticks=[])
        axis.set_title(LABELS[noise].replace(", ", ",\n", 1), fontsize=8)
    handles = axes[0, 0].get_legend_handles_labels()
    figure.legend(*handles, frameon=False, fontsize=8, ncols=2, loc="outside lower center")
    save_figure(figure, path)


def _figure_3(frame: pd.DataFrame, path: Path) -> None:
    """Empirical privacy over the claimed epsilon, by the paper's attackers and by the strongest."""
    import matplotlib.pyplot as plt

    attacked = pick(frame, rate=0.0)
    attacked = attacked[attacked["privacy"].notna()] if "privacy" in attacked else attacked[:0]
    if not len(attacked):
        return
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained", sharey=True)
    columns = {"privacy": "networks, as in the paper", "strongest_privacy": "strongest attacker"}
    for axis, (column, title) in zip(axes, columns.items()):
        for noise, (colour, line) in STYLES.items():
            mean = pick(attacked, noise=noise).groupby("epsilon")[column].mean()
            axis.plot(mean.index, mean, line, color=colour, marker="o", markersize=4, label=LABELS[noise])
        for of, name in ((attacked["majority_privacy"], "guess"), (pick(attacked, noise="none")[column], "no noise")):
            axis.axhline(of.mean(), color="0.5", linestyle=":", linewidth=1)
            axis.annotate(name, (0.05, of.mean()), xytext=(0, 3), textcoords="offset points", fontsize=7)
        axis.set(xscale="log", xlabel="claimed ε", ylabel="empirical privacy 1 − F, %", title=title)
    handles = axes[0].get_legend_handles_labels()
    figure.legend(*handles, frameon=False, fontsize=7, handlelength=5, ncols=3, loc="outside lower center")
    save_figure(figure, path)


def _with_epsilon(frame: pd.DataFrame, column: str = "exact_epsilon") -> str:
    return cell_text(frame, "accuracy") + (f" (ε = {number(frame[column].iloc[0])})" if len(frame) else "")


def _table_4(frame: pd.DataFrame) -> pd.DataFrame:
    main, privacy = TABLE_4["majority"]
    row = {
        "method": "majority",
        "exact ε": "0",
        "main, published": number(main),
        "main, ours": cell_text(frame, "majority"),
    }
    rows = [row | {"1 - F, published": number(privacy), "1 - F, ours": cell_text(frame, "majority_privacy")}]
    for noise, label in LABELS.items():
        of, (main, privacy) = pick(frame, noise=noise), TABLE_4.get(noise, (math.nan, math.nan))
        if len(of):
            row = {"method": label, "exact ε": number(of["exact_epsilon"].iloc[0])}
            row |= {"main, published": number(main), "main, ours": cell_text(of, "accuracy")}
            row |= {"1 - F, published": number(privacy), "1 - F, ours": cell_text(of, "privacy")}
            rows.append(row | {STRONGEST: cell_text(of, "strongest_privacy")})
    return pd.DataFrame(rows).fillna("")


def _by_entity(frame: pd.DataFrame, published: dict, absent: str, present: str, *, relative: bool) -> pd.DataFrame:
    rows = []
    for noise, label in LABELS.items():
        of, row = pick(frame, noise=noise), {"method": label}
        for j, k in enumerate((3, 4, 5)):
            if len(of):
                there = of[present.format(k)] - (of[absent.format(k)] if relative else 0)
                for name, values, i in (("A", of[absent.format(k)], 0), ("P", there, 1)):
                    ours = cell_text(pd.DataFrame({"value": values}), "value")
                    row[f"entity {k}, {name}"] = f"{number(published.get(noise, [math.nan] * 6)[2 * j + i])} / {ours}"
        if len(of):
            rows.append(row)
    return pd.DataFrame(rows)


def _release(cell: dict[str, Any]) -> tuple[np.ndarray, np.ndarray, Any]:
    """Representations as released, the topics read from them, and their guarantee."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from skfairdp.adversarial import published_federate
    from skfairdp.exceptions import OverclaimedPrivacyWarning
    from skfairdp.preprocessing import LaplacePrivatizer

    noise, seed, settings = cell["noise"], cell["seed"], (cell["rate"], cell["seed"], cell["max_epochs"])
    if noise == "codes":
        train, _, _, labels, _, _ = _documents(*settings[:2])
        rows = _rows(*settings[:2])
        model = published_federate(
            cell["epsilon"], channel="codes", n_codes=4, adversary_weight=0, max_epochs=settings[2], random_state=seed
        ).fit(rows[train], labels[train])
        encoder, head = model.split()
        released = encoder.transform(rows)
        return released, head.predict(released), model.privacy_
    scale = _training_scale(noise, cell["epsilon"])
    hidden = _encoded(*settings, scale, noise in ("scalar", "recovered"), ADVERSARIES.get(noise, 0.0))
    train, _, _, labels, _, _ = _documents(*settings[:2])
    noisy = noise in ("iid", "exact")
    calibration = "published" if noise == "iid" else "exact"
    mechanism = LaplacePrivatizer(
        cell["epsilon"] if noisy else math.inf, norm="minmax", calibration=calibration, random_state=seed
    )
    with warnings.catch_warnings():
        if noise == "iid":
            warnings.simplefilter("ignore", OverclaimedPrivacyWarning)
        released = mechanism.fit(hidden).transform(hidden)
    if noise in ("scalar", "recovered"):  # no mechanism of the package: it protects nothing
        released = released + np.random.default_rng(seed).laplace(scale=1 / cell["epsilon"], size=(len(released), 1))
    if noise == "recovered":
        released = released - released.min(axis=1, keepdims=True)
    model = make_pipeline(StandardScaler(), LogisticRegression(C=100, max_iter=2000)).fit(
        released[train], labels[train]
    )
    return released, model.predict(released), mechanism.privacy_ if noisy else None


def _map(rows: np.ndarray, there: np.ndarray) -> list[list[float]]:
    """A map in two dimensions (t-SNE) of as many rows with a person as without: places, and 1 where the person is."""
    from sklearn.manifold import TSNE

    chosen = np.concatenate([np.flatnonzero(~there)[:MAPPED_ROWS], np.flatnonzero(there)[:MAPPED_ROWS]])
    places = TSNE(random_state=0).fit_transform(rows[chosen])
    return np.round(np.column_stack([places, there[chosen]]), 2).tolist()


def _attack(rows: np.ndarray, persons: np.ndarray, train: np.ndarray, test: np.ndarray, seed: int) -> dict[str, float]:
    """Read the five persons from released rows: one network with 512 hidden units for each, and the package's pool."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.metrics import f1_score
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from skfairdp.metrics import empirical_privacy_score

    said = np.empty_like(persons[test])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a fixed number of epochs
        for k in range(persons.shape[1]):
            network = MLPClassifier((512,), max_iter=10, batch_size=256, random_state=seed)
            attacker = make_pipeline(StandardScaler(), network).fit(rows[train], persons[train, k])
            said[:, k] = attacker.predict(rows[test])
    truth = persons[test]
    often = np.tile(persons[train].mean(axis=0) > 0.5, (len(truth), 1)).astype(int)
    strongest = empirical_privacy_score(
        rows[train],
        persons[train],
        kind="entities",
        H_test=rows[test],
        sensitive_features_test=persons[test],
        random_state=seed,
    )
    found = {
        "privacy": 100 * (1 - f1_score(truth, said, average="micro")),
        "strongest_privacy": 100 * strongest,
        "majority_privacy": 100 * (1 - f1_score(truth, often, average="micro")),
    }
    for k in range(persons.shape[1]):
        for name, value in (("absent", 0), ("present", 1)):
            found[f"attack_{name}_{k + 1}"] = 100 * float(np.mean(said[truth[:, k] == value, k] == value))
    return found


class RobustEncoder(nn.Module):
    """The paper's encoder (algorithm 1): outputs are mapped onto [0, 1] row by row; noise is added in training only.

    What is released is perturbed by a mechanism outside of the network, which has the guarantee.

    Parameters
    ----------
    n_features : int
        Width of the rows.
    n_outputs : int
        Width of the representation.
    scale : float
        Scale of the Laplace noise in training; 0 for none.
    one_draw : bool
        One draw for a whole row, which is what the public code does, instead of one for each coordinate.
    """

    def __init__(self, n_features: int, n_outputs: int, scale: float = 0.0, one_draw: bool = False):
        super().__init__()
        sizes, layers = (n_features, 100, 50), []
        for n_in, n_out in pairwise(sizes):
            layers += [nn.Linear(n_in, n_out), nn.ReLU(), nn.Dropout(0.1)]
        self.layers = nn.Sequential(*layers, nn.Linear(sizes[-1], n_outputs))
        self.scale = scale
        self.one_draw = one_draw

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Encode, map onto [0, 1], and perturb in training."""
        hidden = self.layers(rows)
        low, high = hidden.amin(dim=1, keepdim=True), hidden.amax(dim=1, keepdim=True)
        unit = (hidden - low) / (high - low).clamp_min(torch.finfo(hidden.dtype).tiny)
        if not self.training or self.scale == 0:
            return unit
        shape = (len(unit), 1) if self.one_draw else unit.shape
        noise = torch.empty(shape).exponential_() - torch.empty(shape).exponential_()
        return unit + self.scale * noise


@lru_cache(maxsize=2)
def _documents(rate: float, seed: int) -> tuple[Any, ...]:
    """Masks of training, validation and test rows, topics, persons, and the word dropout."""
    from skfairdp.preprocessing import WordDropout

    news = _news()
    parts = [news.subset == part for part in ("train", "valid", "test")]
    dropout = WordDropout(rate=rate, random_state=seed).fit()
    return *parts, np.asarray(news.target), np.asarray(news.sensitive_features), dropout


@lru_cache(maxsize=1)
def _news() -> Any:
    from skfairdp.datasets import fetch_ag_entities

    return fetch_ag_entities()


@lru_cache(maxsize=2)
def _rows(rate: float, seed: int) -> np.ndarray:
    """Mean vectors of the documents, some words masked, standardised by the training rows."""
    from sklearn.preprocessing import StandardScaler

    train, *_, dropout = _documents(rate, seed)
    rows = mean_vectors(dropout.transform(_news().data) if rate else _news().data)
    return StandardScaler().fit(rows[train]).transform(rows).astype(np.float32)


def _training_scale(noise: str, epsilon: float) -> float:
    """The scale of the noise that the encoder is trained with, which is that of what it will release."""
    if noise == "none" or noise in ADVERSARIES:
        return 0.0
    return (DIMENSIONS if noise == "exact" else 1) / epsilon


@lru_cache(maxsize=2)
def _encoded(
    rate: float, seed: int, max_epochs: int, scale: float, one_draw: bool, adversary_weight: float
) -> np.ndarray:
    """The layers behind the mean, trained on the topic with noise (or against the persons)."""
    from sklearn.exceptions import ConvergenceWarning

    from skfairdp.adversarial import published_federate

    train, _, _, labels, persons, _ = _documents(rate, seed)
    model = published_federate(
        math.inf,
        encoder=partial(RobustEncoder, n_outputs=DIMENSIONS, scale=scale, one_draw=one_draw),
        n_components=DIMENSIONS,
        adversary_weight=adversary_weight,
        max_epochs=max_epochs,
        random_state=seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the paper fixes the number of epochs
        model.fit(
            _rows(rate, seed)[train], labels[train], sensitive_features=persons[train] if adversary_weight else None
        )
    return model.transform(_rows(rate, seed))


EXPERIMENTS = {"dpnr": Experiment("dpnr", cells, measure, tables, figures)}
