"""Counts of partitions are the counts of the whole; every row is as likely as any other to be drawn."""

import numpy as np
import pandas as pd
import pytest

from skfairdp.dask import group_counts, sample_rows
from skfairdp.metrics import group_rates

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

# Dask 2026.8 calls what pandas 3.1 has deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword")


@pytest.fixture(autouse=True)
def one_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def test_counts_are_those_of_the_whole():
    generator = np.random.default_rng(0)
    frame = pd.DataFrame({"y": generator.integers(0, 3, 500), "p": generator.integers(0, 3, 500)})
    frame["g"], frame["w"] = generator.choice(["a", "b", "c"], 500), generator.random(500)
    lazy = dd.from_pandas(frame, npartitions=40)
    lazy = lazy[lazy["y"] + lazy["p"] > 0]  # some partitions may lose a class
    frame = frame[frame["y"] + frame["p"] > 0]
    for weight in (None, "w"):
        theirs = {"sensitive_features": frame[["g"]], "sample_weight": None if weight is None else frame[weight]}
        ours = {"sensitive_features": lazy[["g"]], "sample_weight": None if weight is None else lazy[weight]}
        counts = group_counts(lazy["y"], lazy["p"], **ours)
        assert counts.n_rows == len(frame)
        pd.testing.assert_frame_equal(counts.rates(), group_rates(frame["y"], frame["p"], **theirs))


def test_arrays_are_counted_too_and_must_have_the_same_blocks():
    y, p, g = (np.random.default_rng(seed).integers(0, 2, 100) for seed in range(3))
    blocks = [da.from_array(values, chunks=30) for values in (y, p, g)]
    counted = group_counts(*blocks[:2], sensitive_features=blocks[2])
    pd.testing.assert_frame_equal(counted.rates(), group_rates(y, p, sensitive_features=g))
    with pytest.raises(ValueError, match="blocks"):
        group_counts(*blocks[:2], sensitive_features=da.from_array(g, chunks=50))


def test_every_row_is_as_likely_as_any_other():
    numbers = da.from_array(np.arange(100)[:, None], chunks=((70, 20, 10), 1))

    def share_of_the_large_block(sample):
        return np.mean([(sample(seed) < 70).mean() for seed in range(50)])

    # Of 50 samples of 20 rows; the standard deviation of the mean is 0.013.
    fair = share_of_the_large_block(lambda seed: sample_rows(numbers, 20, random_state=seed)[:, 0])
    assert abs(fair - 0.7) < 0.07
    planted = share_of_the_large_block(lambda seed: np.array([0] * 7 + [80] * 13))  # the same number from every block
    assert abs(planted - 0.7) > 0.07


def test_no_row_is_drawn_twice_and_seeds_repeat():
    frame = dd.from_pandas(pd.DataFrame({"a": np.arange(50)}), npartitions=7)
    sample = sample_rows(frame, 30, random_state=0)
    assert sample["a"].is_unique
    assert sample["a"].is_monotonic_increasing
    pd.testing.assert_frame_equal(sample, sample_rows(frame, 30, random_state=0))
    assert len(sample_rows(frame, 1000)) == 50
