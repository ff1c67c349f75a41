"""Rows on disk are released block by block, at the price of one release and in the memory of one block."""

import tracemalloc
from typing import ClassVar

import numpy as np
import pytest
from sklearn.pipeline import FeatureUnion, make_pipeline

from skfairdp import GaussianPrivatizer, LaplacePrivatizer, LEACEEraser, OMEEncoder, PrivacyLedger, PublicScaler
from skfairdp.exceptions import BudgetExceededError
from skfairdp.pipeline import paid_before, price_of_new_rows, transform_in_blocks


def on_disk(tmp_path, name, shape, dtype=np.float64):
    return np.lib.format.open_memmap(tmp_path / f"{name}.npy", "w+", dtype, shape)


@pytest.mark.parametrize(
    "estimator",
    [
        LaplacePrivatizer(),
        GaussianPrivatizer(),
        OMEEncoder(standardize=False),
        make_pipeline(PublicScaler(bounds=(-4, 4)), LaplacePrivatizer(norm="clip")),
    ],
    ids=lambda one: type(one).__name__,
)
def test_blocks_are_one_release(estimator):
    X = np.random.default_rng(0).normal(size=(50, 3))
    out = np.full(estimator.fit(X).transform(X).shape, np.nan)
    with PrivacyLedger() as ledger:
        guarantee = transform_in_blocks(estimator, X, out, block_rows=7)
    assert len(ledger) == 1
    assert ledger.total().epsilon == pytest.approx(guarantee.epsilon)
    assert np.isfinite(out).all()


def test_blocks_share_no_noise():
    X, out = np.ones((4000, 3)), np.empty((4000, 3))
    transform_in_blocks(LaplacePrivatizer(1.0, random_state=0).fit(X), X, out, block_rows=1000)
    noise = np.corrcoef((out - 1 / 3).reshape(4, -1))
    assert np.abs(noise - np.eye(4)).max() < 0.1  # 0.018 is a standard deviation
    planted = np.tile((out - 1 / 3)[:1000], (4, 1)).reshape(4, -1)
    assert not np.abs(np.corrcoef(planted) - np.eye(4)).max() < 0.1


def test_memory_is_that_of_a_block(tmp_path):
    shape = (200_000, 20)  # 32 MB on either side
    X, out = on_disk(tmp_path, "X", shape), on_disk(tmp_path, "out", shape)
    X[:] = np.random.default_rng(0).normal(size=shape)
    groups = np.arange(len(X)) % 2
    eraser = LEACEEraser()
    for start in range(0, len(X), 10_000):
        part = slice(start, start + 10_000)
        eraser.partial_fit(X[part], sensitive_features=groups[part])
    for estimator in (LaplacePrivatizer().fit(X[:2]), eraser):
        peaks = {5_000: [], 200_000: []}
        # The least of several runs: tables of the noise are made once, some of them for values that are rare.
        for block_rows in (5_000, 5_000, 200_000, 5_000, 5_000):
            tracemalloc.start()
            transform_in_blocks(estimator, X, out, block_rows=block_rows)
            peaks[block_rows].append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
        assert min(peaks[5_000]) < 8e6 < 30e6 < peaks[200_000][0]


def test_an_eraser_fitted_by_blocks_erases_as_one():
    generator = np.random.default_rng(0)
    groups = generator.integers(0, 2, 300)
    X = generator.normal(size=(300, 4)) + groups[:, None]
    whole, parts, out = LEACEEraser().fit(X, sensitive_features=groups), LEACEEraser(), np.empty(X.shape)
    for part in (slice(0, 90), slice(90, 300)):
        parts.partial_fit(X[part], sensitive_features=groups[part])
    assert transform_in_blocks(parts, X, out, block_rows=40) is None
    np.testing.assert_allclose(out, whole.transform(X), atol=1e-9)


def test_nothing_is_paid_before_the_last_row_is_checked():
    X, out = np.ones((20, 2)), np.zeros((20, 2))
    X[-1, 0] = np.nan
    with PrivacyLedger() as ledger, pytest.raises(ValueError, match="NaN"):
        transform_in_blocks(LaplacePrivatizer().fit(np.eye(2)), X, out, block_rows=5)
    assert (len(ledger), out.any()) == (0, False)


def test_a_refused_release_writes_nothing():
    X, out = np.ones((20, 2)), np.zeros((20, 2))
    with PrivacyLedger(budget=1.0), pytest.raises(BudgetExceededError):
        transform_in_blocks(LaplacePrivatizer(2.0).fit(X), X, out)
    assert not out.any()


@pytest.mark.parametrize(
    "other",
    [LaplacePrivatizer(np.inf), LaplacePrivatizer(3.0), GaussianPrivatizer(1.0)],
    ids=["infinite", "dearer", "another mechanism"],
)
def test_what_was_paid_covers_no_other_release(other):
    paid = price_of_new_rows(LaplacePrivatizer(1.0).fit(np.eye(2)))
    with paid_before(paid):
        LaplacePrivatizer(1.0, random_state=0).fit(np.eye(2)).transform(np.eye(2))
    with paid_before(paid), pytest.raises(RuntimeError, match="was paid for these rows, and no step was to release"):
        other.fit(np.eye(2)).transform(np.eye(2))


def test_what_was_paid_covers_one_release():
    privatizer = LaplacePrivatizer(1.0).fit(np.eye(2))
    with paid_before(price_of_new_rows(privatizer)):
        privatizer.transform(np.eye(2))
        with pytest.raises(RuntimeError, match="paid"):
            privatizer.transform(np.eye(2))


class RefittedMeanwhile(LaplacePrivatizer):
    """Becomes dearer with its third block, as if another thread had fitted it again."""

    _row_wise_methods: ClassVar[dict] = {"transform": ()}
    blocks = 0

    def transform(self, X):
        self.blocks += 1
        if self.blocks == 3:
            self.set_params(epsilon=50.0).fit(X)
        return super().transform(X)


def test_an_estimator_that_is_refitted_meanwhile_releases_no_more():
    X, out = np.ones((20, 2)), np.full((20, 2), np.nan)  # no release writes nan; noise may well give a zero
    with PrivacyLedger() as ledger, pytest.raises(RuntimeError, match="the estimator has changed since"):
        transform_in_blocks(RefittedMeanwhile(1.0).fit(X), X, out, block_rows=5)
    assert ledger.total().epsilon == 1.0
    assert np.isfinite(out[:10]).all(), "two blocks were released at the price that was paid"
    assert np.isnan(out[10:]).all()


def test_all_private_steps_of_a_pipeline_are_paid_for():
    """Behind one another the smaller epsilon holds for both; side by side both are paid."""
    X = np.random.default_rng(0).normal(size=(20, 2))
    behind = make_pipeline(LaplacePrivatizer(1.0), LaplacePrivatizer(3.0)).fit(X)
    beside = FeatureUnion([("one", LaplacePrivatizer(1.0)), ("two", LaplacePrivatizer(3.0))]).fit(X)
    for estimator, epsilon in ((behind, 1.0), (beside, 4.0)):
        out = np.full(estimator.transform(X).shape, np.nan)
        with PrivacyLedger() as ledger:
            transform_in_blocks(estimator, X, out, block_rows=6)
        assert (len(ledger), ledger.total().epsilon) == (1, pytest.approx(epsilon))
        assert np.isfinite(out).all()


def test_bad_arguments():
    X, privatizer = np.ones((20, 2)), LaplacePrivatizer().fit(np.eye(2))
    with pytest.raises(ValueError, match=r"^out\b.* 20 rows"):
        transform_in_blocks(privatizer, X, np.empty((19, 2)))
    with pytest.raises(ValueError, match=r"^out\b.* X"):
        transform_in_blocks(privatizer, X, X)
    with pytest.raises(ValueError, match="block_rows"):
        transform_in_blocks(privatizer, X, np.empty((20, 2)), block_rows=0)
