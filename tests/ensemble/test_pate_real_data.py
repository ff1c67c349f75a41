"""Soft labels against hard ones on the paper's data: a smaller gap where noise is moderate, and no loss of accuracy."""

import numpy as np
import pandas as pd
import pytest

from skfairdp import PATEClassifier, pate_fairness
from skfairdp.datasets import fetch_credit_default, fetch_parkinsons

pytestmark = [pytest.mark.data, pytest.mark.slow]


@pytest.mark.parametrize("fetch", [fetch_credit_default, fetch_parkinsons])
def test_soft_labels_narrow_the_gap(data_home, fetch):
    data = fetch(preset="pate", data_home=data_home)
    X, y, z = np.asarray(data.data, dtype=float), np.asarray(data.target), pd.Series(data.sensitive_features).to_numpy()
    gaps = {"hard": [], "soft": []}
    accuracies = {"hard": [], "soft": []}
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(len(X))
        public, private = np.split(order, [len(X) // 4])
        settings = {"n_teachers": 150, "n_queries": 200, "student_regularization": 0.1, "scale": "public"}
        pate = PATEClassifier(epsilon=3.0, random_state=seed, **settings)
        pate.fit(X[private], y[private], public=X[public])
        train = public[pate.query_indices_]
        test = public[~np.isin(public, train)][:2000]
        for labels in ("hard", "soft"):
            inside = pate_fairness(pate, X[train], sensitive_features=z[train], labels=labels, random_state=seed)
            gaps[labels].append(inside.gap)
            assert inside.sensitivity["mean"] < inside.sensitivity["bound"]
            outside = pate_fairness(
                pate, X[test], sensitive_features=z[test], y=y[test], labels=labels, random_state=seed
            )
            accuracies[labels].append(outside.performance.loc["accuracy", "private"])
    assert np.mean(gaps["soft"]) < 0.4 * np.mean(gaps["hard"])
    assert np.mean(accuracies["soft"]) > np.mean(accuracies["hard"]) - 0.015
