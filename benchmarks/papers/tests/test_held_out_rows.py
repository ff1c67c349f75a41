"""No experiment lets anybody learn from the rows that it is judged by: small made-up data in place of the real ones.

Where somebody learns and is judged, test rows follow the opposite rule of the others and outnumber them: whoever has
learned from the right rows is wrong about nearly every test row, and whoever has seen test rows is not.
"""

import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import MinMaxScaler

from benchmarks.papers import _federate_fits, _pate_redraws, dpnr, ome
from skfairdp import adversarial, datasets, ensemble


class Same:
    """A model that releases rows as they are."""

    def transform(self, X):
        return X


def opposite_rules(n_learned, n_judged, seed=0):
    """Two columns of rows whose label is the sign of the first one, and rows whose label is the other sign."""
    X = np.random.default_rng(seed).normal(size=(n_learned + n_judged, 2)).astype(np.float32)
    X[:, 0] += 3 * np.sign(X[:, 0])
    judged = np.arange(len(X)) >= n_learned
    return X, ((X[:, 0] > 0) ^ judged).astype(int), judged


def test_federate_attacker_learns_from_validation_rows():
    X, group, judged = opposite_rules(200, 400)
    nothing = (None, None, None)  # training rows are not looked at
    parts = [nothing, *((X[part], None, group[part]) for part in (~judged, judged))]
    assert _federate_fits._leaks(Same(), parts, 0)["leakage"] < 10


class RememberingScaler(MinMaxScaler):
    def fit(self, X, y=None):
        self.fitted_on_ = set(np.asarray(X)[:, 0])
        return super().fit(X)


def test_federate_preparation_learns_from_training_rows(monkeypatch):
    numbers = np.arange(500.0)
    preprocessor = RememberingScaler(feature_range=(0, 499), copy=True)
    made = SimpleNamespace(
        data=pd.DataFrame({"number": numbers}),
        target=np.tile([0, 1], 250),
        sensitive_features=np.repeat(["a", "b"], 250),
        preprocessor=preprocessor,
    )
    monkeypatch.setattr(datasets, "fetch_adult", lambda **arguments: made)
    _federate_fits._parts.cache_clear()
    try:
        parts = _federate_fits._parts("adult", 0)
    finally:
        _federate_fits._parts.cache_clear()  # other tests want the real rows
    rows = [set(np.round(preprocessor.inverse_transform(part[0])[:, 0]).astype(int)) for part in parts]
    assert [len(one) for one in rows] == [300, 100, 100]
    assert set().union(*rows) == set(range(500))
    assert preprocessor.fitted_on_ == rows[0]


@pytest.mark.parametrize("protocol", ["none", "ome"])
def test_ome_encoder_learns_from_training_rows(monkeypatch, protocol):
    X, y, judged = opposite_rules(100, 150)
    monkeypatch.setattr(ome, "_vectors", lambda data: (X, y, judged))
    learned = []
    make = ome._encoder

    def remembering(cell, train):
        encoder = make(cell, train)
        fit = encoder.fit
        monkeypatch.setattr(encoder, "fit", lambda X, *rest: (learned.append(np.asarray(X)), fit(X, *rest))[1])
        return encoder

    monkeypatch.setattr(ome, "_encoder", remembering)
    cell = {"data": "made", "protocol": protocol, "epsilon": 400.0, "factor": None, "calibration": "exact"}
    found = ome.measure({**cell, "hidden": 16, "max_epochs": 10, "seed": 0})
    assert len(learned) == 1
    np.testing.assert_array_equal(learned[0], X[~judged])
    assert found["accuracy"] < 30  # nor has the classifier seen rows of the other rule


def test_ome_parts_do_not_overlap(monkeypatch):
    X = np.arange(200.0)[:, None]
    monkeypatch.setattr(ome, "_vectors", lambda data: (X, np.arange(200), None))
    train, y_train, test, y_test = ome._split("made", 3)
    assert (len(train), len(test)) == (160, 40)
    assert sorted([*train[:, 0], *test[:, 0]]) == list(range(200))
    np.testing.assert_array_equal([*train[:, 0], *test[:, 0]], [*y_train, *y_test])


@pytest.fixture
def made_redraw(monkeypatch):
    """Rows whose first column is their number, and records of who is shown which of them."""
    rng = np.random.default_rng(0)
    X = np.column_stack([np.arange(1200.0), rng.normal(size=(1200, 2))])
    y, z = (X[:, 1] > 0).astype(int), rng.choice(["a", "b"], size=1200).astype(object)
    monkeypatch.setattr(_pate_redraws, "load", lambda data: (X, y, z))
    monkeypatch.setattr(_pate_redraws, "PENALTIES", (20.0,))
    monkeypatch.setattr(_pate_redraws, "EPSILONS", (10.0,))
    shown = {"private": set(), "queried": set(), "judged": set()}

    class Remembering(ensemble.PATEClassifier):
        def fit(self, X, y, public=None):
            shown["private"] |= set(X[:, 0])
            super().fit(X, y, public=public)
            shown["queried"] |= set(public[self.query_indices_, 0])
            return self

    judge = ensemble.pate_fairness

    def remembering_judge(pate, X, *, y=None, sensitive_features, **settings):
        if isinstance(sensitive_features, dict):
            part = sensitive_features["part"]
            shown["judged"] |= set(X[part == "test", 0])
            assert set(X[part == "train", 0]) == shown["queried"]
        elif y is not None:
            shown["judged"] |= set(X[:, 0])
        settings["n_repeats"] = 5
        return judge(pate, X, y=y, sensitive_features=sensitive_features, **settings)

    monkeypatch.setattr(ensemble, "PATEClassifier", Remembering)
    monkeypatch.setattr(ensemble, "pate_fairness", remembering_judge)
    return shown


@pytest.mark.parametrize("figure", ["sweep", "labels"])
def test_pate_test_rows_are_nobody_elses(made_redraw, figure):
    cell = {"figure": figure, "data": "made", "n_teachers": 20, "student": "logistic", "postprocess": "affine"}
    _pate_redraws.measure({**cell, "seed": 0})
    assert {name: len(rows) for name, rows in made_redraw.items()} == {"private": 900, "queried": 200, "judged": 100}
    assert len(set().union(*made_redraw.values())) == 1200


@pytest.fixture
def made_news(monkeypatch):
    """Documents of four topics and five persons, whose test part follows the opposite rule."""
    X, sign, judged = opposite_rules(300, 600)
    wide = np.hstack([X, np.zeros((len(X), 3), dtype=np.float32)])
    news = SimpleNamespace(
        data=np.arange(len(X)),
        target=3 * sign,
        sensitive_features=np.tile(sign[:, None], (1, 5)),
        subset=np.where(judged, "test", "train"),
    )
    monkeypatch.setattr(dpnr, "_news", lambda: news)
    monkeypatch.setattr(dpnr, "mean_vectors", lambda documents: wide[np.asarray(documents)])
    cached = (dpnr._documents, dpnr._rows, dpnr._encoded)
    for function in cached:
        function.cache_clear()
    yield judged
    for function in cached:  # other tests want the real documents
        function.cache_clear()


def dpnr_cell(noise, attack=True):
    epsilon = math.inf if noise == "none" else 20.0
    return {"noise": noise, "epsilon": epsilon, "rate": 0.0, "attack": attack, "max_epochs": 8, "seed": 0}


def test_dpnr_reader_and_attackers_learn_from_training_rows(made_news):
    found = dpnr.measure(dpnr_cell("none"))
    assert found["accuracy"] < 10
    assert all(found[f"attack_{kind}_{k}"] < 10 for kind in ("absent", "present") for k in range(1, 6))


def test_dpnr_codes_learn_from_training_rows(made_news):
    assert dpnr.measure(dpnr_cell("codes", attack=False))["accuracy"] < 10


@pytest.mark.parametrize("noise", ["none", "codes", "adversary"])
def test_dpnr_encoders_learn_from_training_rows(made_news, monkeypatch, noise):
    learned = []

    class Remembering(adversarial.FederateClassifier):
        def fit(self, X, y, sensitive_features=None):
            learned.append(np.asarray(X))
            return super().fit(X, y, sensitive_features=sensitive_features)

    make = adversarial.published_federate
    monkeypatch.setattr(adversarial, "published_federate", lambda *a, **k: Remembering(**make(*a, **k).get_params()))
    dpnr.measure(dpnr_cell(noise, attack=False))
    rows = dpnr._rows(0.0, 0)
    assert len(learned) == 1
    np.testing.assert_array_equal(learned[0], rows[~made_news])
    np.testing.assert_allclose(rows[~made_news].mean(axis=0), 0, atol=1e-5)
    assert np.abs(rows[:, :2].mean(axis=0)).max() > 1e-3  # the planted fault: standardised by all rows
