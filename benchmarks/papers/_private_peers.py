"""Other libraries' private training, run as a script by the Python of an environment of their own.

It reads lines with the names of two files, a request and the answer to be written, and answers until its input ends.
It imports nothing of this project. Every peer gets private rows and labels, and returns for each epsilon what it thinks
of the test rows: the probability of class 1. One thread; one setting for all data sets, chosen on made tables
(``make_classification``, 4,000 to 30,000 rows, 40 columns, epsilon 1 and 8) and not on those of the experiment: length
of rows and penalty for diffprivlib; batch, passes and step for DP-SGD. What is public for all: mean and deviation of
each column (of public rows, which PATE takes too), smallest and largest value, the categories, and the number of
private rows.
"""

import json
import os
import sys
import time
import traceback
import warnings
from importlib import import_module
from importlib.metadata import version
from itertools import pairwise
from typing import Any

import numpy as np

VERSIONS_OF = ("diffprivlib", "opacus", "interpret-core", "torch", "scikit-learn", "numpy")

#: Rows are cut to the length that half of the public rows have: longer ones would set the noise for all.
NORM_QUANTILE = 0.5
PENALTY = {"C": 0.1}

#: DP-SGD: passes, and the length to which gradients are cut; expected rows per step and Adam's step, with few rows and
#: with many.
EPOCHS, CLIP = 20, 1.0
FEW, MANY, MANY_ROWS = (256, 0.01), (1024, 0.02), 10_000
HIDDEN = (32, 16)


def diffprivlib_logistic(rows: dict[str, np.ndarray], epsilon: float, delta: float, seed: int) -> np.ndarray:
    """Objective perturbation (Chaudhuri, Monteleoni and Sarwate, 2011), which has delta 0.

    Its theorem is for rows of length at most one and a penalty on all weights. So rows are divided by the public norm,
    and a constant column takes the place of the intercept, which the library would leave without a penalty.
    """
    from diffprivlib.models import LogisticRegression

    norm = np.sqrt(1 + np.quantile(np.linalg.norm(rows["public"], axis=1), NORM_QUANTILE) ** 2)

    def prepared(X: np.ndarray) -> np.ndarray:
        X = np.column_stack([X, np.ones(len(X))]) / norm
        return X / np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))

    model = LogisticRegression(
        epsilon=epsilon, data_norm=1.0, fit_intercept=False, max_iter=1000, random_state=seed, **PENALTY
    )
    model.fit(prepared(rows["X"]), rows["y"])
    return model.predict_proba(prepared(rows["X_test"]))[:, 1]


def noise_of_dp_sgd(rows: dict[str, np.ndarray], epsilon: float, delta: float, seed: int) -> float:
    """Noise over clip length, by Opacus's PRV accountant: seconds of search that depend on the number of rows alone."""
    from opacus.accountants.utils import get_noise_multiplier

    rate = 1 / _steps_per_epoch(int(rows["n_rows"]))
    return get_noise_multiplier(
        target_epsilon=epsilon, target_delta=delta, sample_rate=rate, epochs=EPOCHS, accountant="prv"
    )


def _batch_and_step(n_rows: int) -> tuple[int, float]:
    return FEW if n_rows < MANY_ROWS else MANY


def _steps_per_epoch(n_rows: int) -> int:
    return -(-n_rows // _batch_and_step(n_rows)[0])


def dp_sgd_logistic(rows: dict[str, np.ndarray], epsilon: float, delta: float, seed: int) -> np.ndarray:
    """A linear model by Opacus."""
    return _dp_sgd(rows, epsilon, delta, seed, hidden=())


def dp_sgd_network(rows: dict[str, np.ndarray], epsilon: float, delta: float, seed: int) -> np.ndarray:
    """A network with the layers of PATE's teachers by Opacus."""
    return _dp_sgd(rows, epsilon, delta, seed, hidden=HIDDEN)


def _dp_sgd(
    rows: dict[str, np.ndarray], epsilon: float, delta: float, seed: int, *, hidden: tuple[int, ...]
) -> np.ndarray:
    """DP-SGD with Poisson sampling, with the noise that was found before."""
    import torch
    from opacus import PrivacyEngine
    from torch import nn

    torch.manual_seed(seed)
    torch.set_num_threads(1)
    batch, step = _batch_and_step(len(rows["X"]))
    sizes = [rows["X"].shape[1], *hidden]
    layers: list[nn.Module] = []
    for before, after in pairwise(sizes):
        layers += [nn.Linear(before, after), nn.Tanh()]
    model: Any = nn.Sequential(*layers, nn.Linear(sizes[-1], 1))
    loader = torch.utils.data.DataLoader(
        _Rows(torch.tensor(rows["X"], dtype=torch.float32), torch.tensor(rows["y"], dtype=torch.float32)),
        batch_size=batch,
        collate_fn=_as_it_is,
    )
    noise = rows["noise"][list(rows["epsilons"]).index(epsilon)]
    engine = PrivacyEngine(accountant="prv")
    model, optimizer, criterion, loader = engine.make_private(
        module=model,
        optimizer=torch.optim.Adam(model.parameters(), lr=step),
        data_loader=loader,
        noise_multiplier=float(noise),
        max_grad_norm=CLIP,
        noise_generator=torch.Generator().manual_seed(seed),
        criterion=nn.BCEWithLogitsLoss(),
        grad_sample_mode="ghost",  # the same gradients, without keeping one for each row
    )
    for _ in range(EPOCHS):
        for X, y in loader:
            optimizer.zero_grad()
            criterion(model(X)[:, 0], y).backward()
            optimizer.step()
    steps = sum(n for *_, n in engine.accountant.history)
    if steps != EPOCHS * _steps_per_epoch(len(rows["X"])):
        raise RuntimeError(f"Opacus has counted {steps} steps, others than the noise was found for.")
    with torch.no_grad():
        return torch.sigmoid(model(torch.tensor(rows["X_test"], dtype=torch.float32)))[:, 0].numpy()


class _Rows:
    """Rows that are taken as a batch, not one by one."""

    def __init__(self, X: Any, y: Any):
        self.X, self.y = X, y

    def __len__(self) -> int:
        return len(self.X)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        return self.X[index], self.y[index]

    def __getitems__(self, indices: list[int]) -> tuple[Any, Any]:
        return self.X[indices], self.y[indices]


def _as_it_is(batch: Any) -> Any:
    return batch


def dp_ebm(rows: dict[str, np.ndarray], epsilon: float, delta: float, seed: int) -> np.ndarray:
    """Boosting of one column at a time (Nori et al., 2021) with the library's settings, on columns before one-hot."""
    import pandas as pd
    from interpret.privacy import DPExplainableBoostingClassifier

    words = rows["categorical"].astype(bool)

    def prepared(values: np.ndarray) -> pd.DataFrame:
        frame = pd.DataFrame(np.clip(values, *rows["bounds"]))
        return pd.concat(
            [frame[column].astype(int).astype(str) if word else frame[column] for column, word in enumerate(words)],
            axis=1,
        ).rename(columns=str)

    model = DPExplainableBoostingClassifier(
        epsilon=epsilon,
        delta=delta,
        feature_types=["nominal" if word else "continuous" for word in words],
        privacy_bounds=rows["bounds"].T,
        n_jobs=1,
        random_state=seed,
    )
    model.fit(prepared(rows["columns"]), rows["y"].astype(int))
    return model.predict_proba(prepared(rows["columns_test"]))[:, 1]


PEERS = {
    "diffprivlib logistic": diffprivlib_logistic,
    "DP-SGD logistic": dp_sgd_logistic,
    "DP-SGD network": dp_sgd_network,
    "DP-EBM": dp_ebm,
}
MODULES = dict(zip(PEERS, ("diffprivlib.models", "opacus", "opacus", "interpret.privacy")))
NOISE = "noise of DP-SGD"


def answer(request: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Fit for each epsilon; return scores of the test rows (or the noise), and the seconds of one core for each fit."""
    peer, seed = str(request["peer"]), int(request["seed"])
    fit = noise_of_dp_sgd if peer == NOISE else PEERS[peer]
    import_module("opacus" if peer == NOISE else MODULES[peer])  # is not a part of a fit
    scores, seconds = [], []
    for epsilon in request["epsilons"]:
        begin = time.process_time()
        scores.append(fit(request, float(epsilon), float(request["delta"]), seed))
        seconds.append(time.process_time() - begin)
    versions = [f"{name} {version(name)}" for name in VERSIONS_OF]
    return {"scores": np.array(scores), "seconds": np.array(seconds), "versions": np.array(versions)}


def answer_until_the_end() -> None:
    """Read pairs of file names, answer each, and say when it is done or why it is not."""
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no answer
    for line in sys.stdin:
        asked, answered = json.loads(line)
        try:
            with np.load(asked) as file:
                np.savez_compressed(answered, **answer(dict(file)))
            failure = None
        except Exception:
            failure = traceback.format_exc()
        print(json.dumps(failure), file=channel, flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    answer_until_the_end()
