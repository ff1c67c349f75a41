"""Gaps as estimates: they cover the truth for any number of groups, and small groups decide nothing."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import skfairdp.metrics
from skfairdp.metrics import (
    bootstrap_interval,
    estimate_gap,
    estimate_gap_change,
    estimate_selection_ratio,
    proportion_bounds,
)
from skfairdp.metrics._simultaneous_bounds import gap_interval, gap_lower, normal_multiplier

METRICS = ["tpr_gap", "grms", "accuracy_gap", "demographic_parity_gap", "equalized_odds_gap"]
UNEQUAL = np.array([2000, 1000, 500, 100, 25, 12])


def draw(rng, sizes, rates):
    """Rows of class 1, predicted with the rate of their group."""
    groups = np.repeat([f"g{k:02}" for k in range(len(sizes))], sizes)
    return groups, (rng.random(len(groups)) < np.repeat(rates, sizes)).astype(int)


def tpr_estimate(groups, predicted, estimate=estimate_gap, **settings):
    truth = np.ones(len(groups), dtype=int)
    return estimate("tpr_gap", truth, predicted, sensitive_features=groups, labels=[0, 1], **settings)


def three_classes(seed=0, n=900, n_groups=3):
    rng = np.random.default_rng(seed)
    truth, groups = rng.integers(0, 3, n), rng.integers(0, n_groups, n)
    predicted = np.where(rng.random(n) < 0.5 + 0.1 * groups, truth, rng.integers(0, 3, n))
    return truth, predicted, np.array(list("abcdefgh"))[groups]


def share_covered(rng, sizes, rates, estimate, repeats, **settings):
    true = np.ptp(rates)
    hits = 0
    for _ in range(repeats):
        found = tpr_estimate(*draw(rng, sizes, rates), estimate, **settings)
        hits += found.lower <= true + 1e-12 and true <= found.upper + 1e-12
    return hits / repeats


def far_below(share, level, repeats):
    """Whether a share of successes contradicts a chance of at least ``level`` (one error in a thousand)."""
    return proportion_bounds(share * repeats, repeats, 0.001)[1] < level


@pytest.mark.parametrize("rates", [np.full(6, 0.5), np.linspace(0.4, 0.6, 6), np.array([0.1] * 5 + [0.3])])
def test_six_unequal_groups_are_covered(rates):
    rng = np.random.default_rng(3)
    covered = share_covered(rng, UNEQUAL, rates, estimate_gap, 150)
    assert not far_below(covered, 0.95, 150)


def test_the_bootstrap_is_seen_to_miss():
    """The same samples and the same test reject a percentile interval."""
    covered = share_covered(np.random.default_rng(3), UNEQUAL, np.full(6, 0.5), bootstrap_interval, 60, random_state=0)
    assert far_below(covered, 0.95, 60)


def test_fair_groups_have_no_large_gap():
    """Eight fair groups of 400 rows: measured 7 points on average, estimated below 2; the lower end is 0."""
    rng = np.random.default_rng(0)
    found = [tpr_estimate(*draw(rng, np.full(8, 400), np.full(8, 0.5))) for _ in range(60)]
    assert np.mean([one.measured for one in found]) > 0.06
    assert np.mean([one.value for one in found]) < 0.02
    assert np.mean([one.lower for one in found]) < 0.002


@pytest.mark.parametrize("n_groups", [2, 8])
def test_a_true_gap_is_not_taken_away(n_groups):
    rng = np.random.default_rng(1)
    rates = np.linspace(0.35, 0.65, n_groups)
    found = [tpr_estimate(*draw(rng, np.full(n_groups, 300), rates)) for _ in range(60)]
    assert np.mean([one.value for one in found]) == pytest.approx(0.3, abs=0.02)
    assert np.mean([one.lower for one in found]) > 0.1
    assert max(one.p_value for one in found) < 0.01


def test_the_p_value_is_valid_for_small_counts():
    """Four groups of 10 to 40 rows with a rate of 0.1: at most 5 % of p-values are at most 0.05, and so on."""
    rng = np.random.default_rng(5)
    p_values = np.array(
        [tpr_estimate(*draw(rng, np.array([10, 12, 20, 40]), np.full(4, 0.1))).p_value for _ in range(200)]
    )
    for level in (0.05, 0.2, 0.5):
        assert not proportion_bounds((p_values <= level).sum(), 200, 0.001)[0] > level
    assert (p_values <= 0.999).mean() > 0.5, "a p-value that is always 1 is valid and useless"


def test_two_groups_have_a_classic_interval():
    """Newcombe (1998) has 0.0524 to 0.3339 for these counts, the plain normal interval 0.0575 to 0.3425."""
    groups = ["a"] * 70 + ["b"] * 80
    gap = tpr_estimate(groups, [1] * 56 + [0] * 14 + [1] * 48 + [0] * 32)
    assert (gap.lower, gap.upper) == pytest.approx((0.0524, 0.3339), abs=0.004)
    assert (gap.highest, gap.lowest, gap.rate, gap.label) == ("a", "b", "tpr", 1)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("weighted", [False, True])
def test_measured_is_the_metric(metric, weighted):
    truth, predicted, groups = three_classes()
    weight = np.random.default_rng(1).random(len(truth)) if weighted else None
    gap = estimate_gap(metric, truth, predicted, sensitive_features=groups, sample_weight=weight)
    plain = getattr(skfairdp.metrics, metric)(truth, predicted, sensitive_features=groups, sample_weight=weight)
    assert gap.measured == pytest.approx(plain, abs=1e-12)
    assert 0 <= gap.lower <= gap.value <= gap.upper <= 1
    assert gap.lower <= gap.measured <= gap.upper


@pytest.mark.parametrize("average", ["max", "mean", "rms", "binary"])
def test_averages_of_classes(average):
    truth, predicted, groups = three_classes()
    settings = {"average": average, "pos_label": 1 if average == "binary" else None, "sensitive_features": groups}
    gap = estimate_gap("tpr_gap", truth, predicted, **settings)
    assert gap.measured == pytest.approx(skfairdp.metrics.tpr_gap(truth, predicted, **settings))
    assert gap.lower <= gap.value <= gap.upper
    if average == "rms":
        assert gap == estimate_gap("grms", truth, predicted, sensitive_features=groups)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 6), st.sampled_from(METRICS), st.sampled_from([0.5, 0.8, 0.95]))
def test_figures_never_contradict_each_other(seed, n_groups, metric, level):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(20, 300))
    groups = rng.choice(n_groups, n, p=rng.dirichlet(np.ones(n_groups)))
    truth = rng.integers(0, 2, n)
    predicted = np.where(rng.random(n) < rng.random(n_groups)[groups], truth, 1 - truth)
    gap = estimate_gap(
        metric, truth, predicted, sensitive_features=groups, confidence_level=level, labels=[0, 1], min_rows=3
    )
    if np.isnan(gap.value):
        assert gap.highest is None
        assert np.isnan([gap.lower, gap.upper, gap.p_value]).all()
        return
    assert 0 <= gap.lower <= gap.value <= gap.upper <= 1
    assert (gap.lower > 0) == (gap.p_value <= 1 - level)
    assert gap.highest != gap.lowest
    assert not {gap.highest, gap.lowest} & set(gap.too_few)


def test_names_and_order_of_rows_do_not_matter():
    groups, predicted = draw(np.random.default_rng(2), np.array([60, 40, 80]), np.array([0.2, 0.5, 0.8]))
    gap = tpr_estimate(groups, predicted)
    order = np.random.default_rng(0).permutation(len(groups))
    assert tpr_estimate(groups[order], predicted[order]) == gap
    named = tpr_estimate(pd.Series(groups).map({"g00": "x", "g01": "y", "g02": "z"}), predicted)
    assert (named.lowest, named.highest) == ("x", "z")
    assert dataclasses.replace(named, highest="g02", lowest="g00") == gap


def test_small_groups_decide_nothing():
    groups, predicted = draw(np.random.default_rng(2), np.array([60, 40, 80]), np.array([0.3, 0.5, 0.6]))
    gap = tpr_estimate(groups, predicted)
    more = tpr_estimate(np.append(groups, ["tiny"] * 9), np.append(predicted, [0] * 9))
    assert more.too_few == ("tiny",)
    assert more.measured > gap.measured, "the plain metric does follow them"
    assert dataclasses.replace(more, measured=gap.measured, too_few=()) == gap
    enough = tpr_estimate(np.append(groups, ["tiny"] * 10), np.append(predicted, [0] * 10))
    assert enough.too_few == ()
    assert enough.lowest == "tiny"
    assert tpr_estimate(groups, predicted, min_rows=50).too_few == ("g01",)


def test_a_rate_without_rows_is_named():
    """Group c has enough negatives and too few positives: it is compared by its false positive rate alone."""
    truth = np.repeat([1, 0, 1, 0, 1, 0], [50, 50, 50, 50, 3, 50])
    groups = np.repeat(["a", "b", "c"], [100, 100, 53])
    predicted = np.random.default_rng(0).integers(0, 2, len(truth))
    gap = estimate_gap("equalized_odds_gap", truth, predicted, sensitive_features=groups)
    assert gap.too_few == ()
    assert gap.partly_too_few == (("c", "tpr", 1),)


def test_one_group_says_nothing():
    gap = tpr_estimate(["a"] * 30 + ["b"] * 4, [1, 0] * 17)
    assert np.isnan([gap.value, gap.lower, gap.upper, gap.p_value]).all()
    assert (gap.highest, gap.lowest, gap.too_few) == (None, None, ("b",))
    change = tpr_estimate(["a"] * 30, [1, 0] * 15, lambda *a, **k: estimate_gap_change(*a, [1] * 30, **k))
    assert np.isnan(change).all()


def test_a_tie_names_two_groups():
    gap = tpr_estimate(["a", "b", "c"] * 40, [1] * 120)
    assert (gap.measured, gap.value, gap.lower, gap.p_value) == (0, 0, 0, 1)
    assert gap.highest != gap.lowest


def test_weights_count_as_effective_rows():
    groups, predicted = draw(np.random.default_rng(0), np.array([300, 200]), np.array([0.3, 0.5]))
    plain = tpr_estimate(groups, predicted)
    equal = tpr_estimate(groups, predicted, sample_weight=np.full(500, 7.3))
    assert equal.lower == pytest.approx(plain.lower, abs=1e-9)
    assert equal.upper == pytest.approx(plain.upper, abs=1e-9)
    assert equal.p_value == pytest.approx(plain.p_value, abs=1e-9)
    # Nine of ten rows weigh nothing, nearly: so many rows fewer.
    weight = np.where(np.arange(500) % 10 == 0, 1.0, 1e-9)
    light = tpr_estimate(groups, predicted, sample_weight=weight)
    heavy = tpr_estimate(groups[::10], predicted[::10])
    assert (light.lower, light.upper) == pytest.approx((heavy.lower, heavy.upper), abs=1e-6)
    few = tpr_estimate(groups, predicted, sample_weight=np.where(np.arange(500) % 50 == 0, 1.0, 1e-9))
    assert set(few.too_few) == {"g00", "g01"}


def test_weights_that_depend_on_the_outcome_cover():
    """Selected rows are heavier and their number is thinned: Kish's number alone would be too large."""
    rng, covered = np.random.default_rng(0), 0
    for _ in range(120):
        groups, predicted = draw(rng, np.array([150, 150]), np.array([0.5, 0.5]))
        weight = np.where(predicted == 1, 9.0, 1.0)  # weighted rates are 0.9
        gap = tpr_estimate(groups, predicted, sample_weight=weight)
        covered += gap.lower == 0
    assert not far_below(covered / 120, 0.95, 120)


def test_control_features_take_a_paradox_away():
    """Within each department both sexes are admitted alike; women apply where few are admitted."""
    cells = [("f", "hard", 800, 0.2), ("f", "easy", 200, 0.8), ("m", "hard", 200, 0.2), ("m", "easy", 800, 0.8)]
    groups = np.concatenate([[sex] * n for sex, _, n, _ in cells])
    department = np.concatenate([[where] * n for _, where, n, _ in cells])
    admitted = np.concatenate([np.arange(n) < rate * n for _, _, n, rate in cells]).astype(int)
    settings = {"sensitive_features": groups}
    crude = estimate_gap("demographic_parity_gap", admitted, admitted, **settings)
    within = estimate_gap("demographic_parity_gap", admitted, admitted, control_features=department, **settings)
    assert crude.lower > 0.3
    assert within.measured == pytest.approx(0, abs=1e-12)
    assert (within.lower, within.missing_strata) == (0, ())
    assert within.p_value > 0.9
    ratio = estimate_selection_ratio(admitted, admitted, control_features=department, **settings)
    assert ratio.upper == 1
    assert ratio.measured == pytest.approx(1)
    assert estimate_selection_ratio(admitted, admitted, **settings).upper < 0.6


def test_one_stratum_changes_nothing():
    groups, predicted = draw(np.random.default_rng(2), np.array([60, 40, 80]), np.array([0.3, 0.5, 0.6]))
    assert tpr_estimate(groups, predicted, control_features=["x"] * 180) == tpr_estimate(groups, predicted)


def test_strata_without_rows_are_named():
    rng = np.random.default_rng(0)
    groups = np.repeat(["a", "b", "c"], [300, 300, 100])
    stratum = rng.choice(["x", "y", "z"], 700)
    stratum[(groups == "b") & (stratum == "z")] = "y"  # b has no row in z
    stratum[groups == "c"] = "z"  # c lives in z alone: it cannot be compared within strata
    predicted = rng.integers(0, 2, 700)
    gap = tpr_estimate(groups, predicted, control_features=stratum)
    assert gap.missing_strata == (("z", "b"),)
    assert gap.too_few == ("c",)
    kept = stratum != "z"
    assert gap.upper == tpr_estimate(groups[kept], predicted[kept], control_features=stratum[kept]).upper


def two_models(rng, sizes, rates, other, agreement=0.8):
    groups, first = draw(rng, sizes, rates)
    _, fresh = draw(rng, sizes, other)
    second = np.where(rng.random(len(groups)) < agreement, first, fresh)
    return groups, first, second, np.ptp(rates) - np.ptp(agreement * rates + (1 - agreement) * other)


def tpr_change(groups, first, second, **settings):
    truth = np.ones(len(groups), dtype=int)
    return estimate_gap_change("tpr_gap", truth, first, second, sensitive_features=groups, labels=[0, 1], **settings)


@pytest.mark.parametrize("sizes", [np.array([200, 60]), UNEQUAL], ids=["two", "six"])
@pytest.mark.parametrize("kind", ["fair", "fairer", "turned"])
def test_a_change_is_covered(sizes, kind):
    rng = np.random.default_rng(4)
    rates = np.full(len(sizes), 0.5) if kind == "fair" else np.linspace(0.3, 0.7, len(sizes))
    other = rates[::-1] if kind == "turned" else np.full(len(sizes), 0.5)
    covered = 0
    for _ in range(100):
        groups, first, second, true = two_models(rng, sizes, rates, other, 0.3 if kind == "turned" else 0.8)
        change = tpr_change(groups, first, second)
        covered += change.lower <= true + 1e-12 and true <= change.upper + 1e-12
        assert change.lower <= change.value <= change.upper
    assert not far_below(covered / 100, 0.95, 100)


def test_pairs_of_rows_make_a_change_precise():
    """On the same rows the change is known far better than from the two gaps."""
    rng = np.random.default_rng(0)
    groups, first, second, true = two_models(rng, np.full(2, 1000), np.array([0.3, 0.7]), np.full(2, 0.5))
    change = tpr_change(groups, first, second)
    gaps = [tpr_estimate(groups, predicted) for predicted in (first, second)]
    assert change.lower < true < change.upper
    assert change.upper - change.lower < 0.6 * sum(gap.upper - gap.lower for gap in gaps)
    assert change.value == pytest.approx(gaps[0].value - gaps[1].value, abs=0.01)


@pytest.mark.parametrize("metric", METRICS)
def test_a_change_turned_round_has_the_other_sign(metric):
    truth, first, groups = three_classes()
    second = np.where(np.random.default_rng(8).random(len(truth)) < 0.7, first, truth)
    there = estimate_gap_change(metric, truth, first, second, sensitive_features=groups)
    back = estimate_gap_change(metric, truth, second, first, sensitive_features=groups)
    assert there == pytest.approx((-back.value, -back.upper, -back.lower), abs=1e-12)
    same = estimate_gap_change(metric, truth, first, first, sensitive_features=groups)
    assert same.value == 0
    assert same.lower == pytest.approx(-same.upper)
    assert same.upper < 0.1


def test_a_change_is_bounded_by_the_two_gaps():
    """The reference is right for everybody: which pair of its groups is at the ends says nothing."""
    groups, first = draw(np.random.default_rng(0), np.full(5, 200), np.linspace(0.2, 0.8, 5))
    change = tpr_change(groups, first, np.ones(1000, dtype=int))
    assert 0.3 < change.lower < 0.6 < change.upper < 0.8


def test_a_change_within_strata():
    groups, first, second, _ = two_models(
        np.random.default_rng(0), np.full(3, 200), np.linspace(0.3, 0.7, 3), np.full(3, 0.5)
    )
    plain = tpr_change(groups, first, second)
    assert tpr_change(groups, first, second, control_features=["x"] * 600) == pytest.approx(plain, abs=1e-12)
    halves = tpr_change(groups, first, second, control_features=np.arange(600) % 2)
    assert halves == pytest.approx(plain, abs=0.05)
    assert tpr_change(groups, first, second, sample_weight=np.full(600, 3.0)) == pytest.approx(plain, abs=1e-9)


def test_the_ratio_of_four_fifths():
    hired = np.repeat([1, 0, 1, 0], [300, 200, 150, 350])
    sex = np.repeat(["m", "f"], 500)
    ratio = estimate_selection_ratio(hired, hired, sensitive_features=sex)
    assert ratio.measured == pytest.approx(0.5)
    assert ratio.value == pytest.approx(0.5, abs=0.01)
    assert 0.4 < ratio.lower < 0.45
    assert 0.55 < ratio.upper < 0.6
    assert (ratio.lowest, ratio.highest) == ("f", "m")
    assert ratio.p_value < 0.001
    turned = estimate_selection_ratio(hired, hired, sensitive_features=sex, pos_label=0)
    assert turned.measured == pytest.approx(0.4 / 0.7)
    nobody = estimate_selection_ratio([0, 1] * 20, [0] * 40, sensitive_features=["a", "b"] * 20)
    assert np.isnan([nobody.measured, nobody.value, nobody.upper]).all()


def test_the_ratio_covers_with_many_groups():
    rng, covered, rates = np.random.default_rng(0), 0, np.linspace(0.25, 0.4, 6)
    for _ in range(100):
        groups, chosen = draw(rng, UNEQUAL, rates)
        ratio = estimate_selection_ratio(chosen, chosen, sensitive_features=groups, labels=[0, 1])
        covered += ratio.lower <= 0.625 <= ratio.upper
        assert 0 <= ratio.lower <= ratio.value <= ratio.upper <= 1
        assert (ratio.upper < 1) == (ratio.p_value <= 0.05)
    assert not far_below(covered / 100, 0.95, 100)


def test_the_seed_decides_and_no_seed_is_one():
    groups, predicted = draw(np.random.default_rng(2), np.array([60, 40, 80]), np.array([0.3, 0.5, 0.6]))
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    assert tpr_estimate(groups, predicted) == tpr_estimate(groups, predicted)
    assert tpr_estimate(groups, predicted, random_state=3) == tpr_estimate(groups, predicted, random_state=3)
    assert tpr_estimate(groups, predicted, random_state=3) != tpr_estimate(groups, predicted, random_state=4)
    assert (np.random.get_state()[1] == state).all()  # noqa: NPY002 - the global stream is nobody's


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"metric": "gap"}, ValueError, "metric must be one of"),
        ({"metric": "worst_group_accuracy"}, ValueError, "metric must be one of"),
        ({"average": None}, ValueError, "average must reduce"),
        ({"min_rows": 0}, ValueError, "min_rows"),
        ({"min_rows": "ten"}, TypeError, "min_rows"),
        ({"confidence_level": 95}, ValueError, "confidence_level"),
        ({"control_features": [1]}, ValueError, "control_features"),
        ({"pos_label": 7}, ValueError, "pos_label"),
        ({"y_pred": [0, 1, 1]}, ValueError, "y_pred"),
    ],
)
def test_bad_input_is_named(change, error, message):
    given = {"metric": "tpr_gap", "y_true": [0, 1], "y_pred": [0, 1], "sensitive_features": [0, 1], **change}
    with pytest.raises(error, match=message):
        estimate_gap(**given)


def test_the_reference_is_named_when_it_is_wrong():
    with pytest.raises(ValueError, match="y_pred_reference"):
        estimate_gap_change("tpr_gap", [0, 1], [0, 1], [0], sensitive_features=[0, 1])


def test_the_lower_end_holds_for_all_pairs_of_groups_at_once():
    """Of six groups any two may be the furthest apart: the interval is that of the range, not of one pair."""
    sizes, hits = np.full(6, 200), np.array([90, 100, 104, 96, 140, 98])
    groups = np.repeat(np.arange(6), sizes)
    y_pred = np.concatenate([np.repeat([1, 0], [k, n - k]) for k, n in zip(hits, sizes)])
    found = estimate_gap("demographic_parity_gap", y_pred, y_pred, sensitive_features=groups, pos_label=1)
    lower, upper = gap_interval(hits / sizes, sizes.astype(float), 0.95)
    assert (found.lower, found.upper) == pytest.approx((lower, upper))
    assert lower < gap_lower(hits / sizes, sizes.astype(float), normal_multiplier(0.025)) - 0.03
