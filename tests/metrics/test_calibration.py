"""Calibration by group: a table worked out by hand, and a gap that is covered."""

import numpy as np
import pandas as pd
import pytest

from skfairdp.metrics import calibration_by_group, calibration_gap, estimate_calibration_gap, proportion_bounds

Y_TRUE = np.array([0, 0, 1, 0, 1, 1, 0, 1, 1, 1])
SCORES = np.array([0.1, 0.1, 0.4, 0.6, 0.8, 0.2, 0.2, 0.5, 0.9, 1.0])
GROUP = np.array(list("aaaaabbbbb"))


def test_a_table_worked_out_by_hand():
    table = calibration_by_group(Y_TRUE, SCORES, sensitive_features=GROUP, n_bins=2)
    assert list(table.columns) == ["group", "bin", "n", "mean_score", "observed", "lower", "upper"]
    expected = pd.DataFrame(
        {
            "group": list("aaabbb"),
            "bin": ["0-0.5", "0.5-1", "all"] * 2,
            "n": [3, 2, 5, 2, 3, 5],
            "mean_score": [0.2, 0.7, 0.4, 0.2, 0.8, 0.56],
            "observed": [1 / 3, 1 / 2, 2 / 5, 1 / 2, 1.0, 4 / 5],
        }
    )
    pd.testing.assert_frame_equal(table[expected.columns.tolist()], expected, check_dtype=False)
    assert (table["lower"] <= table["observed"]).all()
    assert (table["observed"] <= table["upper"]).all()
    assert calibration_gap(Y_TRUE, SCORES, sensitive_features=GROUP) == pytest.approx(0.24)


def test_bins_without_rows_are_left_out():
    table = calibration_by_group([0, 1], [0.05, 0.95], sensitive_features=["a", "b"])
    assert table["bin"].tolist() == ["0-0.1", "all", "0.9-1", "all"]


def test_whole_weights_are_rows():
    weight = np.array([1, 2, 3, 1, 1, 2, 1, 1, 1, 4])
    table = calibration_by_group(Y_TRUE, SCORES, sensitive_features=GROUP, sample_weight=weight)
    rows = np.repeat(np.arange(10), weight)
    repeated = calibration_by_group(Y_TRUE[rows], SCORES[rows], sensitive_features=GROUP[rows])
    for column in ("group", "bin", "mean_score", "observed"):
        pd.testing.assert_series_equal(table[column], repeated[column])
    gaps = [
        calibration_gap(Y_TRUE, SCORES, sensitive_features=GROUP, sample_weight=weight),
        calibration_gap(Y_TRUE[rows], SCORES[rows], sensitive_features=GROUP[rows]),
    ]
    assert gaps[0] == pytest.approx(gaps[1])


def test_the_positive_class_is_chosen():
    labels = np.where(Y_TRUE == 1, "no", "yes")
    turned = calibration_gap(labels, 1 - SCORES, sensitive_features=GROUP)
    assert turned == pytest.approx(calibration_gap(Y_TRUE, SCORES, sensitive_features=GROUP))
    assert calibration_gap(labels, SCORES, sensitive_features=GROUP, pos_label="no") == pytest.approx(turned)


def sample(rng, sizes, off):
    groups = np.repeat(np.arange(len(sizes)), sizes)
    scores = rng.uniform(0.15, 0.85, len(groups))
    return (rng.random(len(groups)) < scores + off[groups]).astype(int), scores, groups


@pytest.mark.parametrize("off", [np.zeros(6), np.linspace(-0.1, 0.1, 6)], ids=["calibrated", "not"])
def test_the_true_gap_is_covered(off):
    rng, covered = np.random.default_rng(0), 0
    for _ in range(150):
        y_true, scores, groups = sample(rng, np.array([1000, 500, 200, 60, 25, 12]), off)
        gap = estimate_calibration_gap(y_true, scores, sensitive_features=groups)
        covered += gap.lower <= np.ptp(off) + 1e-12 and np.ptp(off) <= gap.upper
        assert 0 <= gap.lower <= gap.value <= gap.upper
        assert (gap.lower > 0) == (gap.p_value <= 0.05)
    assert not proportion_bounds(covered, 150, 0.001)[1] < 0.95


def test_scores_that_explain_make_it_precise():
    rng = np.random.default_rng(1)
    groups, sharp = rng.integers(0, 2, 2000), rng.choice([0.05, 0.95], 2000)
    y_true = (rng.random(2000) < sharp).astype(int)
    explained = estimate_calibration_gap(y_true, sharp, sensitive_features=groups)
    blunt = estimate_calibration_gap(y_true, np.full(2000, 0.5), sensitive_features=groups)
    assert explained.upper - explained.lower < 0.7 * (blunt.upper - blunt.lower)


def test_groups_with_few_rows_are_listed():
    y_true, scores, groups = sample(np.random.default_rng(0), np.array([200, 100, 5]), np.array([0, 0.1, 0.15]))
    gap = estimate_calibration_gap(y_true, scores, sensitive_features=groups)
    assert gap.too_few == (2,)
    assert {gap.highest, gap.lowest} == {0, 1}
    alone = estimate_calibration_gap(y_true, scores, sensitive_features=groups, min_rows=150)
    assert alone.too_few == (1, 2)
    assert np.isnan(alone.value)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"scores": SCORES * 2}, ValueError, "scores must lie between 0 and 1"),
        ({"scores": np.where(SCORES > 0.9, np.nan, SCORES)}, ValueError, "scores"),
        ({"scores": SCORES[:3]}, ValueError, r"scores must have shape \(10,\)"),
        ({"scores": list("abcdefghij")}, TypeError, "scores must hold one number per row"),
        ({"y_true": np.arange(10)}, ValueError, "pos_label"),
        ({"n_bins": 0}, ValueError, "n_bins"),
    ],
)
def test_bad_input_is_named(change, error, message):
    given = {"y_true": Y_TRUE, "scores": SCORES, "sensitive_features": GROUP, **change}
    with pytest.raises(error, match=message):
        calibration_by_group(**given)
