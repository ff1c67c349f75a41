"""Speed of concept erasure: LEACE against concept-erasure, INLP against the loop that its paper describes."""

import warnings

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from benchmarks import Timings, case
from skfairdp import INLPEraser, LEACEEraser

with warnings.catch_warnings():  # how it names its types is not the reader's concern
    warnings.simplefilter("ignore")
    from concept_erasure import LeaceFitter


def _rows(n: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    groups = generator.integers(0, 2, n)
    return generator.normal(size=(n, columns)) + 0.5 * groups[:, None] * generator.normal(size=columns), groups


@case("erasure", "LEACE, fit and transform, 100,000 x 100, against concept-erasure", ratio_at_most=1.5)
def leace() -> Timings:
    X, groups = _rows(100_000, 100)
    x, z = torch.from_numpy(X), torch.nn.functional.one_hot(torch.from_numpy(groups), 2).to(torch.float64)

    def theirs():
        fitter = LeaceFitter(X.shape[1], 2, dtype=torch.float64)
        return fitter.update(x, z).eraser(x)

    return Timings(lambda: LEACEEraser().fit(X, sensitive_features=groups).transform(X), theirs, repeats=3)


@case("erasure", "INLP, 20,000 x 50, against a plain loop of as many rounds", ratio_at_most=1.5)
def inlp() -> Timings:
    X, groups = _rows(20_000, 50)
    eraser = INLPEraser(n_iterations=10).fit(X, sensitive_features=groups)
    rounds = eraser.n_iter_  # it stops when nothing is left to find

    def loop():
        """Ravfogel et al., Algorithm 1, with the classifier that INLPEraser uses."""
        rows = StandardScaler().fit_transform(X)
        projection = np.eye(X.shape[1])
        removed = []
        for _ in range(rounds):
            removed.append(LogisticRegression().fit(rows @ projection, groups).coef_[0])
            basis = np.linalg.qr(np.transpose(removed))[0]
            projection = np.eye(X.shape[1]) - basis @ basis.T
        return rows @ projection

    print(f"  {rounds} rounds", flush=True)
    return Timings(lambda: eraser.fit(X, sensitive_features=groups).transform(X), loop, repeats=5)
