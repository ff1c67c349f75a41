"""What a release costs: receipts, the ledger, and an audit that convicts missing noise."""

import math
import warnings

import numpy as np
import pytest
import torch
from sklearn.exceptions import ConvergenceWarning

from skfairdp import FederateClassifier, PrivacyLedger, audit_epsilon
from skfairdp.exceptions import BudgetExceededError, OverclaimedPrivacyWarning
from skfairdp.mechanisms import LaplaceMechanism, code_mechanism


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=400)
    return rng.normal(size=(400, 3)) + 4.0 * y[:, None], y


def fit(data, **settings):
    given = {
        "adversary_weight": 0.0,
        "batch_size": 50,
        "max_epochs": 15,
        "learning_rate": 0.01,
        "random_state": 0,
        **settings,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # what is released is judged here, not what was learned
        return FederateClassifier(**given).fit(*data)


@pytest.mark.parametrize(
    ("settings", "epsilon", "mechanism"),
    [
        ({"epsilon": 2.5}, 2.5, "codes"),
        ({"epsilon": 2.5, "channel": "laplace"}, 2.5, "laplace"),
        ({"epsilon": 2.5, "channel": "laplace", "norm": "l2"}, 2.5, "laplace"),
        ({"epsilon": 2.5, "channel": "laplace", "calibration": "published"}, 2.5, "laplace"),
        ({"epsilon": 2.5, "channel": "codes", "n_codes": 5}, 2.5, "codes"),
        ({"epsilon": math.inf}, math.inf, "none"),
        ({"epsilon": math.inf, "channel": "codes"}, math.inf, "none"),
    ],
)
def test_receipt(data, settings, epsilon, mechanism):
    privacy = fit(data, max_epochs=1, **settings).privacy_
    assert privacy.epsilon == pytest.approx(epsilon, rel=1e-12)
    assert privacy.epsilon <= epsilon
    assert privacy.mechanism == mechanism
    assert privacy.pure
    assert privacy.published_epsilon is None
    assert any("training data" in line for line in privacy.does_not_cover)


def test_published_calibration_warns(data):
    with pytest.warns(OverclaimedPrivacyWarning, match=r"exact epsilon is 4 \(sqrt\(4\)"):
        clf = fit(
            data, epsilon=2.0, channel="laplace", norm="l2", calibration="published", n_components=4, max_epochs=1
        )
    assert clf.privacy_.epsilon == 4.0
    assert clf.privacy_.published_epsilon == 2.0


@pytest.mark.parametrize("channel", ["laplace", "codes"])
def test_every_answer_is_charged_once(data, channel):
    clf = fit(data, epsilon=1.0, channel=channel, max_epochs=1)
    X, y = data
    with PrivacyLedger(budget=4.0) as ledger:
        fit(data, epsilon=1.0, max_epochs=1)  # training releases nothing
        assert ledger.total().epsilon == 0
        for answer in (clf.predict, clf.predict_proba, clf.transform):
            answer(X)
        clf.score(X, y)
        assert ledger.total().epsilon == pytest.approx(4.0)
        with pytest.raises(ValueError, match="features"):
            clf.predict(X[:, :2])
        with pytest.raises(BudgetExceededError):
            clf.predict(X)
        assert ledger.total().epsilon == pytest.approx(4.0)


def worst_pair(clf, X):
    """The two training rows whose clean representations are farthest apart."""
    module = clf.net_.module_
    with torch.no_grad():
        u = module.encoder(torch.tensor(X, dtype=torch.float32))
    u = torch.nn.functional.normalize(u, p=1.0, dim=1)
    distance = torch.cdist(u, u, p=1.0)
    i, j = divmod(int(distance.argmax()), len(X))
    return X[i], X[j]


@pytest.mark.parametrize("channel", ["laplace", "codes"])
@pytest.mark.parametrize("method", ["transform", "predict_proba"])
def test_audit_finds_no_more_than_the_claim(data, channel, method):
    clf = fit(data, epsilon=1.5, channel=channel)
    pair = worst_pair(clf, data[0])
    audit = audit_epsilon(getattr(clf, method), *pair, claimed=clf.privacy_, n_trials=20_000, random_state=0)
    assert not audit.contradicts
    assert audit.epsilon_lower > 0.7  # the attack has teeth


def test_audit_convicts_a_missing_noise_layer(data, monkeypatch):
    clf = fit(data, epsilon=1.5, channel="laplace")
    pair = worst_pair(clf, data[0])

    def forgetful(self, u, stream):
        return u / np.abs(u).sum(axis=1, keepdims=True)

    monkeypatch.setattr(LaplaceMechanism, "draw", forgetful)
    assert audit_epsilon(clf.transform, *pair, claimed=clf.privacy_, n_trials=20_000, random_state=0).contradicts


def test_audit_convicts_half_the_noise(data):
    clf = fit(data, epsilon=1.5, channel="codes")
    pair = worst_pair(clf, data[0])
    honest = clf.privacy_
    clf._freeze(code_mechanism(2, 3.0), clf._frozen.stream)
    assert audit_epsilon(clf.transform, *pair, claimed=honest, n_trials=20_000, random_state=0).contradicts
