"""Empirical privacy: hand-made counts, the published majority value, and the roles of accuracy and F1."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import f1_score

from skfairdp.metrics import empirical_privacy_score, leakage_score
from skfairdp.metrics._empirical_privacy import _strongest_claims


class ReadsColumn(ClassifierMixin, BaseEstimator):
    """Says whatever stands in the first column of the representation."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return X[:, 0].astype(int)


def test_attributes_average_the_attackers_of_the_columns():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"sex": rng.choice(["f", "m"], 400), "age": rng.choice(["old", "young"], 400)})
    H = 3.0 * (table[["sex"]] == "f").to_numpy() + rng.normal(size=(400, 1))
    each = [
        leakage_score(H[:300], table[c][:300], H_test=H[300:], sensitive_features_test=table[c][300:], probe="linear")
        for c in table
    ]
    score = empirical_privacy_score(
        H[:300], table[:300], H_test=H[300:], sensitive_features_test=table[300:], probe="linear"
    )
    assert score == pytest.approx(1 - np.mean(each))
    assert each[0] > 0.9 > 0.65 > each[1]


def test_entities_by_hand():
    """Attackers of both entities say 1, 1, 0, 0. Found 1 + 2, mentions 1 + 3, claims 2 + 2: F = 2 * 3 / 8."""
    H_test = np.array([[1.0], [1.0], [0.0], [0.0]])
    mentioned = np.array([[1, 1], [0, 1], [0, 1], [0, 0]])
    H, known = np.array([[0.0], [1.0]]), np.array([[0, 1], [1, 0]])
    score = empirical_privacy_score(
        H, known, kind="entities", probe=ReadsColumn(), H_test=H_test, sensitive_features_test=mentioned
    )
    assert score == pytest.approx(1 - 6 / 8)
    said = np.repeat(H_test.astype(int), 2, axis=1)
    assert score == pytest.approx(1 - f1_score(mentioned, said, average="micro"))
    assert score != pytest.approx(1 - f1_score(mentioned, said, average="macro"))
    by_accuracy = empirical_privacy_score(
        H, known, probe=ReadsColumn(), H_test=H_test, sensitive_features_test=mentioned
    )
    assert by_accuracy == pytest.approx(1 - np.mean([3 / 4, 3 / 4]))


def test_booleans_and_absent_entities():
    rng = np.random.default_rng(0)
    mentioned = np.column_stack([rng.random(200) < 0.4, np.zeros(200, dtype=bool)])
    H = mentioned[:, :1] + 0.1 * rng.normal(size=(200, 1))
    assert empirical_privacy_score(H, mentioned, kind="entities", probe="linear", random_state=0) < 0.02
    nobody = np.zeros((200, 2), dtype=int)
    assert empirical_privacy_score(H, nobody, kind="entities", probe="linear", random_state=0) == 1.0


def test_noise_is_as_private_as_not_looking():
    rng = np.random.default_rng(0)
    H, z = rng.normal(size=(500, 10)), rng.choice(2, p=[0.8, 0.2], size=500)
    floor = empirical_privacy_score(H, z, probe="majority", random_state=0)
    assert floor == pytest.approx(np.mean(z == 1))
    assert abs(empirical_privacy_score(H, z, random_state=0) - floor) < 0.03


def test_strongest_of_several_attackers_is_taken():
    """The sign of a product: the linear attacker sees nothing of it, and the pool does."""
    H = np.random.default_rng(0).normal(size=(400, 4))
    hidden = (H[:, 0] * H[:, 1] > 0).astype(int)
    train_and_test = {"H_test": H[200:], "sensitive_features_test": hidden[200:], "random_state": 0}
    for kind in ("attributes", "entities"):
        linear, pool, default = (
            empirical_privacy_score(H[:200], hidden[:200], kind=kind, **probe, **train_and_test)
            for probe in ({"probe": "linear"}, {"probe": "pool"}, {})
        )
        assert pool < 0.25 < 0.3 < linear
        assert pool == default


def test_attackers_of_entities_are_chosen_by_f1():
    """Of a rare entity, whoever never claims it is right more often, and finds nothing."""
    rng = np.random.default_rng(0)
    there = rng.random(1000) < 0.1
    never, often = np.zeros(1000, dtype=bool), there | (rng.random(1000) < 0.15)
    assert np.mean(never == there) > np.mean(often == there)
    for claims in ([never, often], [often, never]):
        np.testing.assert_array_equal(_strongest_claims(claims, there, np.arange(1000) % 5), often)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kind": "names"}, "kind must be 'attributes' or 'entities'"),
        ({"kind": "entities", "sensitive_features": ["a", "b"] * 10}, "zeros and ones"),
        ({"sensitive_features": [1] * 20}, "sensitive_features"),
    ],
)
def test_bad_input_is_named(arguments, message):
    good = {"H": np.zeros((20, 1)), "sensitive_features": [0, 1] * 10}
    with pytest.raises(ValueError, match=message):
        empirical_privacy_score(**{**good, **arguments})


@pytest.mark.data
def test_majority_guess_on_ag_news_as_published():
    """Table 4 of the paper has 49.34: the micro average of presence, and no other, gives it."""
    folder = os.environ.get("SKFAIRDP_DATA")
    if not folder:
        pytest.skip("SKFAIRDP_DATA is not set")
    parts: list[list[list[int]]] = [[]]
    for line in (Path(folder) / "ag_news" / "ag_data.txt").read_text(encoding="utf-8").split("\n"):
        if line and not line.strip("="):
            parts.append([])
        elif line:
            parts[-1].append([int(entity) for entity in line.split("\t")[2].split()])
    train, test = (np.array([[k in row for k in range(5)] for row in part]) for part in (parts[0], parts[2]))
    score = empirical_privacy_score(
        np.zeros((len(train), 1)),
        train,
        kind="entities",
        probe="majority",
        H_test=np.zeros((len(test), 1)),
        sensitive_features_test=test,
    )
    assert round(100 * score, 2) == 49.34
