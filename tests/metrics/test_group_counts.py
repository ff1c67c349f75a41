"""Counts that are updated and merged, in any order, are the counts of all rows together."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skfairdp.metrics import GroupCounts, demographic_parity_gap, equalized_odds_gap, grms, group_rates, tpr_gap

GAPS = {f.__name__: f for f in (tpr_gap, grms, demographic_parity_gap, equalized_odds_gap)}


def table(n=400, n_classes=2):
    generator = np.random.default_rng(0)
    y, p = generator.integers(0, n_classes, (2, n))
    groups = pd.DataFrame({"sex": generator.choice(["f", "m"], n), "old": generator.integers(0, 2, n)})
    return y, p, groups, generator.random(n)


@settings(max_examples=25)
@given(cuts=st.lists(st.integers(1, 399), max_size=5), order=st.randoms())
def test_blocks_in_any_order_are_the_whole(cuts, order):
    y, p, groups, _ = table()
    blocks = np.split(np.arange(400), sorted(set(cuts)))
    order.shuffle(blocks)
    parts = [GroupCounts().update(y[b], p[b], sensitive_features=groups.iloc[b]) for b in blocks]
    total = GroupCounts()
    for part in parts:
        total.merge(part)
    pd.testing.assert_frame_equal(total.rates(), group_rates(y, p, sensitive_features=groups))
    assert total.n_rows == 400


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_gaps_and_intervals_are_those_of_all_rows(weighted, n_classes):
    y, p, groups, weight = table(n_classes=n_classes)
    weight = weight if weighted else None
    counts = GroupCounts()
    for b in np.split(np.arange(400), [100, 101]):
        part = None if weight is None else weight[b]
        counts.update(y[b], p[b], sensitive_features=groups.iloc[b], sample_weight=part)
    for name, function in GAPS.items():
        whole = function(y, p, sensitive_features=groups, sample_weight=weight)
        assert counts.gap(name) == pytest.approx(whole, abs=1e-12)
    settings = {"interval": "bootstrap", "random_state": 0, "n_draws": 50, "form": "long"}
    whole = group_rates(y, p, sensitive_features=groups, sample_weight=weight, **settings)
    pd.testing.assert_frame_equal(counts.rates(**settings), whole)


def test_a_class_that_only_a_block_lacks_is_not_made_up():
    counts = GroupCounts().update([0, 0], [0, 0], sensitive_features=["a", "b"])  # may be 0 and 1, or not
    counts.update([2, 0], [2, 2], sensitive_features=["a", "b"])
    assert counts.table().classes == (0, 2)


def test_memory_is_that_of_the_groups():
    counts = GroupCounts()
    for _ in range(50):
        counts.update(*table()[:2], sensitive_features=table()[2])
    assert (counts.n_rows, len(counts._cells)) == (20_000, 16)


def test_empty_groups_and_listed_labels_stay():
    column = pd.Series(pd.Categorical(["a", "a"], categories=["a", "b"]))
    counts = GroupCounts(labels=["no", "yes"]).update(["no", "no"], ["no", "no"], sensitive_features=column)
    found = counts.table()
    assert (found.groups, found.classes) == (("a", "b"), ("no", "yes"))


def test_blocks_that_do_not_fit_are_refused():
    counts = GroupCounts().update([0, 1], [0, 1], sensitive_features={"sex": ["f", "m"]})
    before = counts.table().counts.copy()
    with pytest.raises(ValueError, match=r"same names in all blocks; got \('sex',\) and \('age',\)"):
        counts.update([0, 1], [0, 1], sensitive_features={"age": [1, 2]})
    with pytest.raises(ValueError, match="sample_weight must be given for all blocks or for none"):
        counts.update([0, 1], [0, 1], sensitive_features={"sex": ["f", "m"]}, sample_weight=[1.0, 2.0])
    with pytest.raises(ValueError, match="labels must be the same in both"):
        counts.merge(GroupCounts(labels=[0, 1]))
    with pytest.raises(TypeError, match="other must be a GroupCounts; got dict"):
        counts.merge({})
    with pytest.raises(ValueError, match="no row has been counted yet"):
        GroupCounts().table()
    np.testing.assert_array_equal(counts.table().counts, before)
    assert counts.merge(GroupCounts()).n_rows == 2
