"""Cheap attackers for tests of audits that are not about leakage."""

import pytest

from skfairdp.metrics import _attackers

STRONG = _attackers.POOL
#: Two attackers that train nothing costly: networks and boosting take most of the time of a small audit.
CHEAP = ("linear", "neighbors")


@pytest.fixture(scope="module", autouse=True)
def cheap_attackers():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_attackers, "POOL", CHEAP)
        yield


@pytest.fixture
def all_attackers(monkeypatch):
    """Attack with the whole pool, as an audit does outside of these tests."""
    monkeypatch.setattr(_attackers, "POOL", STRONG)
