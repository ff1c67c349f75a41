"""What all estimators share: parameters that nothing reads, rows that may be sparse, one sentence for a bad epsilon."""

import math

import numpy as np
import pytest
from scipy import sparse

from skfairdp import GaussianPrivatizer, LaplacePrivatizer, OMEEncoder, PATEClassifier, PrivateScaler
from skfairdp._base import SkfairdpEstimator, dense_blocks


class Example(SkfairdpEstimator):
    def __init__(self, mode="a", size=3, factor=None):
        self.mode = mode
        self.size = size
        self.factor = factor


def test_refuses_what_was_changed_and_nothing_else():
    Example()._refuse_unused("mode='a'", "size", "factor")
    Example(size=3.0, factor=None)._refuse_unused("mode='a'", "size", "factor")
    with pytest.raises(ValueError, match=r"size=4 does nothing with mode='a': leave size at its default, 3, or choose"):
        Example(size=4)._refuse_unused("mode='a'", "factor", "size")


@pytest.mark.parametrize("n_rows", [1, 7, 40])
def test_blocks_are_all_rows_in_order(monkeypatch, n_rows):
    monkeypatch.setattr("skfairdp._base.BLOCK_VALUES", 35)
    X = np.random.default_rng(0).normal(size=(n_rows, 5))
    for given in (X, sparse.csr_array(X)):
        blocks = list(dense_blocks(given))
        np.testing.assert_array_equal(np.concatenate([rows for _, rows in blocks]), X)
        assert all(np.array_equal(X[part], rows) and len(rows) <= 7 for part, rows in blocks)


@pytest.mark.parametrize("epsilon", [0, -1.0, math.nan])
@pytest.mark.parametrize(
    "kind", [LaplacePrivatizer, GaussianPrivatizer, OMEEncoder, PATEClassifier, PrivateScaler], ids=lambda k: k.__name__
)
def test_every_estimator_refuses_a_bad_epsilon_alike(kind, epsilon):
    estimator = kind(epsilon=epsilon, **({"bounds": (-1, 1)} if kind is PrivateScaler else {}))
    expected = rf"epsilon must be a number greater than 0 \(infinity switches the noise off\); got {epsilon!r}\."
    with pytest.raises(ValueError, match=expected):
        estimator.fit(np.eye(4), [0, 1, 0, 1])


@pytest.mark.parametrize("kind", [LaplacePrivatizer, GaussianPrivatizer, OMEEncoder])
def test_local_estimators_have_one_default_epsilon(kind):
    assert kind().epsilon == 8.0
