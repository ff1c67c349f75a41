"""The probe against scikit-learn's network: faster, and never a weaker attacker."""

import os
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks import Quantities, Timings, case
from skfairdp.metrics import online_code_length
from skfairdp.neural import ProbeClassifier


def peer(seed: int = 0):
    return make_pipeline(StandardScaler(), MLPClassifier(alpha=1, max_iter=1000, random_state=seed))


def representations(n_train: int, n_test: int, seed: int, *, real_data: bool = True) -> dict[str, tuple]:
    """Representations that hide a group in different ways: name -> H, groups, H of the test rows, their groups."""
    rng = np.random.default_rng(seed)
    n = n_train + n_test
    made = {}

    def normal(d: int) -> np.ndarray:
        return rng.normal(size=(n, d))

    def add(name: str, H: np.ndarray, z: np.ndarray, rows: int = n_train) -> None:
        made[name] = (H[:rows], z[:rows], H[n_train:], z[n_train:])

    coin = rng.integers(0, 2, n)
    direction = rng.normal(size=100)
    add("linear", normal(100) + 0.7 * np.outer(2 * coin - 1, direction / np.linalg.norm(direction)), coin)

    H = normal(40)
    add("exclusive or", H, (H[:, 0] > 0) ^ (H[:, 1] > 0))

    H = normal(20)
    add("radial", H, (H[:, :5] ** 2).sum(axis=1) > 4.35)

    coin = rng.integers(0, 2, n)
    rates = np.clip(0.03 + np.outer(2 * coin - 1, 0.02 * rng.normal(size=300)), 0, 1)
    add("sparse counts", (rng.random((n, 300)) < rates).astype(float), coin)

    coin = rng.integers(0, 2, n)
    H = normal(50)
    H[:, :5] += 1.5 * (2 * coin[:, None] - 1)
    H /= np.abs(H).sum(axis=1, keepdims=True)
    add("Laplace noise, epsilon 20", H + rng.laplace(scale=0.1, size=H.shape), coin)

    many = rng.integers(0, 20, n)
    add("twenty groups", 0.6 * rng.normal(size=(20, 64))[many] + normal(64), many)

    coin = rng.integers(0, 2, n)
    H = normal(100)
    H[:, :10] += 0.35 * (2 * coin[:, None] - 1)
    add("few rows", H, coin, rows=min(200, n_train))

    rare = (rng.random(n) < 0.1).astype(int)
    H = normal(60)
    H[:, :6] += 0.8 * rare[:, None]
    H[:, 6] += rare * rng.choice([-2, 2], n)
    add("rare group", H, rare)

    coin = rng.integers(0, 2, n)
    latent = normal(10)
    latent[:, 0] += 0.8 * (2 * coin - 1)
    add("encoder of 300 columns", np.tanh(latent @ rng.normal(size=(10, 300)) / 3) + 0.5 * normal(300), coin)

    latent = normal(10)
    waves = np.sin(2 * latent[:, 0]) + latent[:, 1] * latent[:, 2] + 0.5 * rng.normal(size=n) > 0
    rotated = latent @ np.linalg.qr(rng.normal(size=(10, 10)))[0]
    add("waves, rotated", np.hstack([rotated, normal(10)]), waves.astype(int) + (latent[:, 3] > 1))

    folder = os.environ.get("SKFAIRDP_DATA")
    if real_data and folder and (Path(folder) / "adult" / "adult.data").exists():
        table = pd.read_csv(Path(folder) / "adult" / "adult.data", header=None, skipinitialspace=True, na_values="?")
        table = table.dropna().sample(n, random_state=seed)
        # Column 9 is sex; column 7, the relationship, says it outright.
        add("Adult", pd.get_dummies(table.drop(columns=[9, 7])).to_numpy(float), (table[9] == "Male").to_numpy())
    return made


@cache
def rows_10000_by_300(shift: float) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    z = rng.integers(0, 2, 10_000)
    H = rng.normal(size=(10_000, 300))
    H[:, :20] += shift * (2 * z[:, None] - 1)
    return H, z


@cache
def mean_accuracies() -> tuple[float, float]:
    """Percentages, ours and the peer's, on the same rows."""
    ours, other = [], []
    for seed in (0, 1):
        for H, z, H_test, z_test in representations(n_train=4000, n_test=4000, seed=seed).values():
            ours.append(ProbeClassifier(random_state=seed).fit(H, z).score(H_test, z_test))
            other.append(peer(seed).fit(H, z).score(H_test, z_test))
    return 100 * float(np.mean(ours)), 100 * float(np.mean(other))


@case("probe", "Attacker, 10,000 x 300, against MLPClassifier(alpha=1): clear signal", speedup_at_least=20)
def probe_on_a_clear_signal():
    H, z = rows_10000_by_300(0.5)
    return Timings(lambda: ProbeClassifier(random_state=0).fit(H, z), lambda: peer().fit(H, z), repeats=1)


@case("probe", "Attacker, 10,000 x 300, against MLPClassifier(alpha=1): faint signal", speedup_at_least=20)
def probe_on_a_faint_signal():
    H, z = rows_10000_by_300(0.1)
    return Timings(lambda: ProbeClassifier(random_state=0).fit(H, z), lambda: peer().fit(H, z), repeats=1)


@case("probe", "Attacker, 10,000 x 300, against MLPClassifier(alpha=1): no signal", speedup_at_least=20)
def probe_on_noise():
    H, z = rows_10000_by_300(0.0)
    return Timings(lambda: ProbeClassifier(random_state=0).fit(H, z), lambda: peer().fit(H, z), repeats=1)


@case("probe", "Mean attack accuracy over ten or more representations, in points", study=True, shortfall_at_most=0.5)
def probe_strength():
    ours, other = mean_accuracies()
    return Quantities(ours, other)


@cache
def code_length(whose: str) -> float:
    H, z = rows_10000_by_300(0.1)
    return online_code_length(H, z, n_orders=1, random_state=0, probe=peer() if whose == "other" else None).compression


@case("probe", "Compression of the online code, 10,000 x 300 (larger: a stronger attacker)", shortfall_at_most=0.0)
def code_length_strength():
    return Quantities(code_length("ours"), code_length("other"))


@case("probe", "Online code length, 10,000 x 300, one order, against MLPClassifier(alpha=1)", speedup_at_least=20)
def code_length_speed():
    run = code_length.__wrapped__
    return Timings(lambda: run("ours"), lambda: run("other"), repeats=1)
