"""Honest releases of many kinds, audited by default arguments: no more alarms than stated."""

from functools import cache

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.base import clone

from skfairdp.epsilon_audit import audit_epsilon
from skfairdp.preprocessing import GaussianPrivatizer, LaplacePrivatizer, OMEEncoder
from tests.epsilon_audit._releases import RandomisedResponse

FEW_BITS = {"n_integer_bits": 0, "n_fraction_bits": 1, "standardize": False}
KINDS = [
    *(LaplacePrivatizer(epsilon=1.0, norm=norm) for norm in ("l1", "l2", "minmax", "clip")),
    GaussianPrivatizer(epsilon=1.0, delta=0.05),
    OMEEncoder(epsilon=1.0, **FEW_BITS),
    "randomised response",
]


def honest(seed):
    """A release and the arguments of its audit; the kind and the size go round with the seed."""
    kind, width = KINDS[seed % len(KINDS)], (2, 3, 8, 20)[seed // len(KINDS) % 4]
    if kind == "randomised response":
        return RandomisedResponse(1.0, width, seed), {"x": [0], "x_prime": [1], "claimed": 1.0}
    return clone(kind).set_params(random_state=seed).fit(np.zeros((1, width))), {}


@cache
def audit_of(seed):
    release, arguments = honest(seed)
    return audit_epsilon(release, n_trials=2000, random_state=seed, **arguments)


def check(n_audits):
    audits = [audit_of(seed) for seed in range(n_audits)]
    contradicted = sum(audit.contradicts for audit in audits)
    dependent = sum(audit.dependence is not None for audit in audits)
    print(f"{n_audits} honest audits: {contradicted} alarms, {dependent} of them about dependence")
    # at the stated rates more than this happens once in a thousand runs of this test
    assert contradicted <= binom.ppf(0.999, n_audits, 0.05)
    assert dependent <= binom.ppf(0.999, n_audits, 0.0005)


def test_honest_releases_are_rarely_contradicted():
    check(28)


def test_point_estimates_alone_would_be_contradicted():
    """The control: the ratio of the counts themselves, without bounds, accuses often."""

    def estimate(audit):
        return np.log(max(audit.count_more, 1) / max(audit.count_less, 1)) > audit.claimed_epsilon

    assert sum(estimate(audit_of(seed)) for seed in range(28)) > 3


@pytest.mark.slow
def test_three_hundred_honest_releases():
    check(300)
