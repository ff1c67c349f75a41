"""DP-SGD by Opacus as a method of the audit: what it is asked for, what the receipt says, and what it costs."""

import importlib.util
import json
import math
from importlib.metadata import version

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from skfairdp.accounting import PrivacyLedger
from skfairdp.datasets import make_biased_classification
from skfairdp.dp import REPLACE_ONE_RECORD
from skfairdp.exceptions import BudgetExceededError
from skfairdp.pipeline import pipeline_guarantee
from skfairdp.table_audit import _methods_compared, audit_table
from skfairdp.table_audit._methods_compared import METHODS, choose_methods, method_names
from skfairdp.table_audit._models_of_others import OpacusClassifier

needs_opacus = pytest.mark.skipif(importlib.util.find_spec("opacus") is None, reason="needs the extra dp")


@pytest.fixture
def no_opacus(monkeypatch):
    monkeypatch.setattr(_methods_compared.importlib.util, "find_spec", lambda name: None)


@pytest.mark.usefixtures("no_opacus")
def test_missing_extra_is_named():
    with pytest.raises(ValueError, match=r"'dp-sgd' needs opacus: pip install 'skfairdp\[dp\]'"):
        choose_methods(["logistic", "dp-sgd"])


@pytest.mark.usefixtures("no_opacus")
def test_all_are_those_that_are_there():
    assert "dp-sgd" in METHODS
    assert "dp-sgd" not in method_names(everything=True)
    assert "dp-sgd" not in [method.name for method in choose_methods("all")[0]]


def test_never_taken_by_itself():
    assert "dp-sgd" not in method_names()


def test_price_without_end_is_refused():
    X = np.zeros((4, 2))
    with pytest.raises(ValueError, match="epsilon"):
        OpacusClassifier(math.inf).fit(X, [0, 1, 0, 1], public=X + 1)


@pytest.fixture(scope="module")
def rows():
    data = make_biased_classification(3000, random_state=0)
    return data.data[:2000], data.target[:2000], data.data[2000:2500], data.data[2500:], data.target[2500:]


@pytest.fixture
def biased_frame():
    data = make_biased_classification(400, random_state=0)
    frame = pd.DataFrame(np.asarray(data.data)).rename(columns=lambda k: f"x{k}")
    return frame.assign(group=np.asarray(data.sensitive_features), target=np.asarray(data.target))


def small(**params):
    return OpacusClassifier(**{"epsilon": 4.0, "max_epochs": 3, "random_state": 0} | params)


@needs_opacus
def test_learns(rows):
    X, y, public, X_test, y_test = rows
    model = small(max_epochs=10).fit(X, y, public=public)
    assert (model.predict(X_test) == y_test).mean() > max(y_test.mean(), 1 - y_test.mean()) + 0.05
    assert model.predict_proba(X_test).sum(axis=1) == pytest.approx(1)
    again = clone(model).fit(X, y, public=public)
    assert np.array_equal(again.predict_proba(X_test), model.predict_proba(X_test))


@needs_opacus
def test_claim_about_added_records_becomes_one_about_replaced_ones(rows, monkeypatch):
    """(e, d) for one step from neighbour to neighbour is (2 e, (1 + exp(e)) d) for two."""
    import skfairdp.neural

    asked = {}

    def train(*_, epsilon, delta, **__):
        asked.update(epsilon=epsilon, delta=delta)
        return []

    monkeypatch.setattr(skfairdp.neural, "train_by_opacus", train)
    X, y, public, *_ = rows
    receipt = small(delta=1e-6).fit(X, y, public=public).privacy_
    assert receipt.neighbours == REPLACE_ONE_RECORD
    assert 2 * asked["epsilon"] == pytest.approx(receipt.epsilon)
    assert (1 + math.exp(asked["epsilon"])) * asked["delta"] == pytest.approx(receipt.delta)


@needs_opacus
def test_receipt_says_whose_claim_it_is(rows):
    X, y, public, *_ = rows
    model = small(random_state=None, max_epochs=1).fit(X, y, public=public)
    assert f"claimed by Opacus {version('opacus')}" in model.privacy_.mechanism
    assert any("nobody has proved or audited it here" in scope for scope in model.privacy_.does_not_cover)
    assert pipeline_guarantee(model, rows="fitted").epsilon == 4.0
    assert math.isinf(pipeline_guarantee(model, rows="new").epsilon)  # it protects nobody whom it judges


@needs_opacus
def test_ledger_is_charged_before_training(rows, monkeypatch):
    import skfairdp.neural

    X, y, public, *_ = rows
    with PrivacyLedger() as ledger:
        small(random_state=None, max_epochs=1).fit(X, y, public=public)
    assert ledger.total().epsilon == 4.0
    monkeypatch.setattr(skfairdp.neural, "train_by_opacus", lambda *_, **__: pytest.fail("trained without a budget"))
    with PrivacyLedger(1.0, 1e-4), pytest.raises(BudgetExceededError, match="budget"):
        small().fit(X, y, public=public)


@needs_opacus
def test_in_an_audit(biased_frame):
    result = audit_table(
        biased_frame,
        target="target",
        sensitive="group",
        methods=["dp-sgd"],
        n_splits=2,
        n_repeats=1,
        epsilon=4.0,
        n_jobs=1,
        verbose=False,
    )
    assert result.table.loc["dp-sgd", "epsilon"] == 4.0
    assert result.table.loc["dp-sgd", "protects"] == "the training rows, except the quarter taken as public"
    (receipt,) = result.guarantees["dp-sgd"]
    assert "claimed by Opacus" in json.dumps(receipt.to_dict())
