"""Group metrics: hand-made tables, a slow version of their own definition, fairlearn, and invariances."""

import math
import warnings

import fairlearn.metrics
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from skfairdp.exceptions import UndefinedGroupMetricWarning
from skfairdp.metrics import (
    accuracy_gap,
    demographic_parity_gap,
    equalized_odds_gap,
    grms,
    tpr_gap,
    worst_group_accuracy,
)
from skfairdp.metrics._group_table import false_positive_rates

GAPS = [tpr_gap, grms, accuracy_gap, demographic_parity_gap, equalized_odds_gap]
METRICS = [*GAPS, worst_group_accuracy]


# --- an independent, slow version: rows in Python loops, straight from the definitions ---------------------------


def _rate(pairs):
    """Weighted share of True in a list of (hit, weight); nan for 0 of 0."""
    total = sum(w for _, w in pairs)
    return sum(w for hit, w in pairs if hit) / total if total > 0 else math.nan


def slow_rates(y_true, y_pred, groups, weights, kind, label=None):
    result = []
    for group in sorted(set(groups)):
        rows = [(t, p, w) for t, p, g, w in zip(y_true, y_pred, groups, weights) if g == group]
        if kind == "accuracy":
            result.append(_rate([(t == p, w) for t, p, w in rows]))
        elif kind == "tpr":
            result.append(_rate([(p == label, w) for t, p, w in rows if t == label]))
        elif kind == "fpr":
            result.append(_rate([(p == label, w) for t, p, w in rows if t != label]))
        else:
            result.append(_rate([(p == label, w) for _, p, w in rows]))
    return result


def slow_gap(rates):
    rates = [r for r in rates if not math.isnan(r)]
    return max(rates) - min(rates) if len(rates) >= 2 else math.nan


def slow_metric(name, y_true, y_pred, groups, weights):
    classes = sorted(set(y_true) | set(y_pred))
    if len(classes) == 1:
        classes = [0, 1]
    data = (y_true, y_pred, groups, weights)
    if name == "accuracy_gap":
        return slow_gap(slow_rates(*data, "accuracy"))
    if name == "worst_group_accuracy":
        return min(r for r in slow_rates(*data, "accuracy") if not math.isnan(r))
    kinds = {"demographic_parity_gap": ["selection"], "equalized_odds_gap": ["tpr", "fpr"]}.get(name, ["tpr"])
    per_class = []
    for label in classes:
        gaps = [slow_gap(slow_rates(*data, kind, label)) for kind in kinds]
        gaps = [g for g in gaps if not math.isnan(g)]
        per_class.append(max(gaps) if gaps else math.nan)
    if name == "grms":
        known = [g for g in per_class if not math.isnan(g)]
        return math.sqrt(sum(g * g for g in known) / len(known)) if known else math.nan
    if len(classes) == 2:
        return per_class[1]
    known = [g for g in per_class if not math.isnan(g)]
    return max(known) if known else math.nan


@st.composite
def predictions(draw, max_classes=4):
    n = draw(st.integers(1, 40))
    n_classes, n_groups = draw(st.integers(1, max_classes)), draw(st.integers(1, 4))

    def column(k):
        return draw(st.lists(st.integers(0, k - 1), min_size=n, max_size=n))

    weights = draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    if not any(weights):
        weights[0] = 1
    y_true, y_pred = column(n_classes), column(n_classes)
    if len({*y_true, *y_pred}) == 1:  # a lone label other than 0 and 1 is an error, tested below
        y_true = y_pred = [y_true[0] % 2] * n
    return y_true, y_pred, column(n_groups), weights


def quiet(metric, *args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedGroupMetricWarning)
        return metric(*args, **kwargs)


def complaint(metric, y_true, y_pred, groups, weights) -> str:
    """Say where a metric departs from the slow version; an empty string if nowhere."""
    got = quiet(metric, y_true, y_pred, sensitive_features=groups, sample_weight=weights)
    want = slow_metric(metric.__name__, y_true, y_pred, groups, weights)
    return "" if got == pytest.approx(want, abs=1e-12, nan_ok=True) else f"{got} instead of {want}"


@pytest.mark.parametrize("metric", METRICS)
@settings(max_examples=12, deadline=None)
@given(predictions())
def test_equals_the_slow_version(metric, data):
    assert complaint(metric, *data) == ""


def test_the_slow_version_rejects_planted_faults():
    def with_precision(y_true, y_pred, **kwargs):  # conditions on the prediction instead of the truth
        return tpr_gap(y_pred, y_true, **kwargs)

    def with_silent_zero(y_true, y_pred, *, sensitive_features, sample_weight):
        value = tpr_gap(y_true, y_pred, sensitive_features=sensitive_features, sample_weight=sample_weight)
        return 0.0 if math.isnan(value) else value

    def without_weights(y_true, y_pred, *, sensitive_features, sample_weight):
        return tpr_gap(y_true, y_pred, sensitive_features=sensitive_features)

    rng = np.random.default_rng(0)
    for fault in (with_precision, with_silent_zero, without_weights):
        fault.__name__ = "tpr_gap"
        found = []
        for _ in range(50):
            n = rng.integers(1, 12)
            data = [rng.integers(0, 2, n).tolist(), rng.integers(0, 2, n).tolist(), rng.integers(0, 3, n).tolist()]
            found.append(complaint(fault, *data, (1 + rng.integers(0, 3, n)).tolist()))
        assert any(found)


# --- hand-made tables ----------------------------------------------------------------------------------------------

Y_TRUE = [1, 1, 1, 1, 0, 0, 1, 1, 0, 0, 0, 0]
Y_PRED = [1, 1, 1, 0, 0, 1, 1, 0, 0, 0, 0, 1]
GROUP = list("aaaaaabbbbbb")  # a: TPR 3/4, FPR 1/2, accuracy 4/6; b: TPR 1/2, FPR 1/4, accuracy 4/6


@pytest.mark.parametrize(
    ("metric", "value"),
    [
        (tpr_gap, 3 / 4 - 1 / 2),
        (grms, math.sqrt((0.25**2 + 0.25**2) / 2)),  # TNR: 1/2 and 3/4
        (accuracy_gap, 0.0),
        (demographic_parity_gap, 4 / 6 - 2 / 6),
        (equalized_odds_gap, 0.25),
        (worst_group_accuracy, 4 / 6),
    ],
)
def test_a_table_worked_out_by_hand(metric, value):
    assert metric(Y_TRUE, Y_PRED, sensitive_features=GROUP) == pytest.approx(value, abs=1e-15)


def test_binary_grms_is_not_the_positive_gap():
    y_true, y_pred, group = [1, 1, 0, 0], [1, 0, 0, 0], ["a", "b", "a", "b"]
    assert tpr_gap(y_true, y_pred, sensitive_features=group) == 1.0
    assert grms(y_true, y_pred, sensitive_features=group) == pytest.approx(math.sqrt(1 / 2))
    assert tpr_gap(y_true, y_pred, sensitive_features=group, average="rms") == pytest.approx(math.sqrt(1 / 2))


def test_three_groups_give_the_largest_difference():
    y_true = [1] * 12
    y_pred = [1, 1, 1, 1] + [1, 1, 0, 0] + [1, 0, 0, 0]
    group = ["a"] * 4 + ["b"] * 4 + ["c"] * 4
    assert tpr_gap(y_true, y_pred, sensitive_features=group) == 0.75


def test_multiclass_gap_is_that_of_the_worst_class():
    y_true = list("xxyyzz") * 2
    y_pred = list("xxyyzz") + list("xyxxzz")
    group = ["a"] * 6 + ["b"] * 6
    per_class = tpr_gap(y_true, y_pred, sensitive_features=group, average=None)
    assert per_class.to_dict() == {"x": 0.5, "y": 1.0, "z": 0.0}
    assert tpr_gap(y_true, y_pred, sensitive_features=group) == 1.0
    assert tpr_gap(y_true, y_pred, sensitive_features=group, average="mean") == 0.5
    assert tpr_gap(y_true, y_pred, sensitive_features=group, pos_label="x") == 0.5
    assert grms(y_true, y_pred, sensitive_features=group) == pytest.approx(math.sqrt(1.25 / 3))


def test_positive_class_is_the_larger_label_unless_named():
    y_true, y_pred, group = ["no", "yes", "yes", "no"], ["no", "yes", "no", "no"], ["a", "a", "b", "b"]
    assert tpr_gap(y_true, y_pred, sensitive_features=group) == 1.0
    assert tpr_gap(y_true, y_pred, sensitive_features=group, pos_label="no") == 0.0
    assert tpr_gap(y_true, y_pred, sensitive_features=group, labels=["yes", "no"]) == 1.0
    assert tpr_gap([False, True] * 2, [False, True, False, False], sensitive_features=group) == 1.0
    assert tpr_gap([-1, 1] * 2, [-1, 1, -1, -1], sensitive_features=group) == 1.0


def test_several_columns_are_crossed():
    sex, race = ["f", "f", "m", "m"], ["p", "q", "p", "q"]
    y_true, y_pred = [1, 1, 1, 1], [1, 0, 0, 1]
    assert tpr_gap(y_true, y_pred, sensitive_features=sex) == 0.0
    assert tpr_gap(y_true, y_pred, sensitive_features=race) == 0.0
    for both in ({"sex": sex, "race": race}, np.column_stack([sex, race]), pd.DataFrame({"s": sex, "r": race})):
        assert tpr_gap(y_true, y_pred, sensitive_features=both) == 1.0


@pytest.mark.parametrize(
    "wrap",
    [
        list,
        np.array,
        lambda x: np.array(x, dtype=object),
        lambda x: np.array(x)[:, None],
        pd.Series,
        lambda x: pd.Series(x, index=range(100, 100 + len(x))),
        lambda x: pd.Series(x).astype("category"),
        lambda x: pd.Series(x).convert_dtypes(),
        pl.Series,
        tuple,
    ],
)
@pytest.mark.parametrize("rename", [lambda y: y, lambda y: ["no", "yes"][y], float, bool, lambda y: 10**9 * y - 5])
def test_containers_and_labels_do_not_matter(wrap, rename):
    y_true, y_pred = wrap([rename(y) for y in Y_TRUE]), wrap([rename(y) for y in Y_PRED])
    assert equalized_odds_gap(y_true, y_pred, sensitive_features=wrap(GROUP)) == pytest.approx(0.25)
    assert tpr_gap(y_true, y_pred, sensitive_features=wrap(GROUP)) == pytest.approx(0.25)


# --- fairlearn -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_equals_fairlearn(seed, weighted):
    rng = np.random.default_rng(seed)
    n = 400
    y_true, y_pred = rng.integers(0, 2, n), rng.integers(0, 2, n)
    group = rng.integers(0, 2 + seed, n)
    args = {"sensitive_features": group, "sample_weight": rng.random(n) if weighted else None}
    for ours, theirs in [
        (tpr_gap, fairlearn.metrics.equal_opportunity_difference),
        (demographic_parity_gap, fairlearn.metrics.demographic_parity_difference),
        (equalized_odds_gap, fairlearn.metrics.equalized_odds_difference),
    ]:
        assert ours(y_true, y_pred, **args) == pytest.approx(theirs(y_true, y_pred, **args), abs=1e-12)
    mean = fairlearn.metrics.equalized_odds_difference(y_true, y_pred, agg="mean", **args)
    assert equalized_odds_gap(y_true, y_pred, agg="mean", **args) == pytest.approx(mean, abs=1e-12)
    from sklearn.metrics import accuracy_score

    params = {"sample_weight": args["sample_weight"]} if weighted else None
    frame = fairlearn.metrics.MetricFrame(
        metrics=accuracy_score, y_true=y_true, y_pred=y_pred, sensitive_features=group, sample_params=params
    )
    assert accuracy_gap(y_true, y_pred, **args) == pytest.approx(frame.difference(), abs=1e-12)
    assert worst_group_accuracy(y_true, y_pred, **args) == pytest.approx(frame.group_min(), abs=1e-12)


# --- invariances ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", METRICS)
@settings(max_examples=12, deadline=None)
@given(data=predictions(), seed=st.integers(0, 2**32 - 1))
def test_renaming_groups_and_permuting_rows_changes_nothing(metric, data, seed):
    y_true, y_pred, groups, weights = map(np.array, data)
    rng = np.random.default_rng(seed)
    value = quiet(metric, y_true, y_pred, sensitive_features=groups, sample_weight=weights)
    names = rng.permutation(["u", "v", "w", "x"])[groups]
    order = rng.permutation(len(groups))
    again = quiet(metric, y_true[order], y_pred[order], sensitive_features=names[order], sample_weight=weights[order])
    assert again == pytest.approx(value, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("metric", METRICS)
@settings(max_examples=12, deadline=None)
@given(data=predictions())
def test_weights_are_repetitions(metric, data):
    y_true, y_pred, groups, weights = map(np.array, data)
    classes = sorted(set(y_true.tolist()) | set(y_pred.tolist()) | {0, 1})
    labels = {} if metric in (accuracy_gap, worst_group_accuracy) else {"labels": classes}
    assume(set(np.repeat(groups, weights).tolist()))
    weighted = quiet(metric, y_true, y_pred, sensitive_features=groups, sample_weight=weights, **labels)
    columns = [np.repeat(column, weights) for column in (y_true, y_pred, groups)]
    repeated = quiet(metric, *columns[:2], sensitive_features=columns[2], **labels)
    assert weighted == pytest.approx(repeated, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("metric", METRICS)
@settings(max_examples=12, deadline=None)
@given(data=predictions(), times=st.integers(2, 4))
def test_duplicating_all_rows_changes_nothing(metric, data, times):
    y_true, y_pred, groups, _ = map(np.array, data)
    once = quiet(metric, y_true, y_pred, sensitive_features=groups)
    more = quiet(metric, np.tile(y_true, times), np.tile(y_pred, times), sensitive_features=np.tile(groups, times))
    assert more == pytest.approx(once, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("metric", METRICS)
@settings(max_examples=12, deadline=None)
@given(data=predictions())
def test_merging_two_equal_groups_changes_nothing(metric, data):
    y_true, y_pred, groups, weights = map(np.array, data)
    twin = groups == 0  # group 9 is a copy of group 0: together they have the rates of either
    # A class that only the twins have would have a gap of 0 between them, and none when they are one.
    assume(twin.any() and len(set(groups.tolist())) >= 2 and spread_over_groups(y_true, y_pred, groups))
    columns = [np.concatenate([column, column[twin]]) for column in (y_true, y_pred, weights + 1)]
    apart = np.concatenate([groups, np.full(twin.sum(), 9)])
    together = np.where(apart == 9, 0, apart)
    value = quiet(metric, *columns[:2], sensitive_features=apart, sample_weight=columns[2])
    merged = quiet(metric, *columns[:2], sensitive_features=together, sample_weight=columns[2])
    assert merged == pytest.approx(value, abs=1e-12, nan_ok=True)


def spread_over_groups(y_true, y_pred, groups) -> bool:
    """Whether every class that occurs, and its complement, occurs in two groups at least, or in none."""
    for label in set(y_true.tolist()) | set(y_pred.tolist()):
        for rows in (y_true == label, y_true != label):
            if len(set(groups[rows].tolist())) == 1:
                return False
    return True


@settings(max_examples=12, deadline=None)
@given(data=predictions())
def test_gaps_lie_between_0_and_1(data):
    y_true, y_pred, groups, weights = data
    for metric in METRICS:
        value = quiet(metric, y_true, y_pred, sensitive_features=groups, sample_weight=weights)
        assert math.isnan(value) or 0 <= value <= 1
        if metric in GAPS and len(set(groups)) == 1:
            assert math.isnan(value)


def test_a_perfect_model_is_fair():
    for metric in GAPS:
        if metric is not demographic_parity_gap:
            assert metric(Y_TRUE, Y_TRUE, sensitive_features=GROUP) == 0
    assert demographic_parity_gap(Y_TRUE, Y_TRUE, sensitive_features=GROUP) == pytest.approx(4 / 6 - 2 / 6)


# --- edges: nan with a warning by name, never a silent 0 -----------------------------------------------------------


def test_a_class_that_a_group_lacks_is_left_out_by_name():
    y_true, y_pred, group = [1, 1, 1, 0, 0], [1, 1, 0, 0, 1], ["a", "b", "b", "c", "c"]
    with pytest.warns(UndefinedGroupMetricWarning, match=r"tpr_gap: the true positive rate of class 1 .* group 'c'"):
        assert tpr_gap(y_true, y_pred, sensitive_features=group) == 0.5


def test_one_group_with_the_class_gives_nan():
    with pytest.warns(UndefinedGroupMetricWarning, match="class 1"):
        assert math.isnan(tpr_gap([1, 0], [1, 0], sensitive_features=["a", "b"]))


@pytest.mark.parametrize("metric", GAPS)
def test_a_single_group_has_no_gap(metric):
    with pytest.warns(UndefinedGroupMetricWarning, match=f"{metric.__name__}: .*fewer than 2 groups"):
        assert math.isnan(metric([1, 0, 1], [1, 0, 0], sensitive_features=["a"] * 3))
    assert worst_group_accuracy([1, 0, 1], [1, 0, 0], sensitive_features=["a"] * 3) == pytest.approx(2 / 3)


def test_groups_of_one():
    y_true, y_pred, group = [1, 1, 0], [1, 0, 0], ["a", "b", "c"]
    assert accuracy_gap(y_true, y_pred, sensitive_features=group) == 1.0
    assert worst_group_accuracy(y_true, y_pred, sensitive_features=group) == 0.0


@pytest.mark.parametrize("metric", [accuracy_gap, demographic_parity_gap, worst_group_accuracy])
def test_an_empty_group_is_named(metric):
    group = pd.Categorical(list("aabb"), categories=["a", "b", "nobody"])
    with pytest.warns(UndefinedGroupMetricWarning, match=r"undefined in group 'nobody' \(it has no row\)"):
        value = metric([1, 0, 1, 0], [1, 0, 0, 0], sensitive_features=group)
    assert value == 0.5
    weights = [1, 1, 1, 1, 0]
    with pytest.warns(UndefinedGroupMetricWarning, match="group 'c'"):
        value = metric([1, 0, 1, 0, 1], [1, 0, 0, 0, 1], sensitive_features=list("aabbc"), sample_weight=weights)
    assert value == 0.5


def test_fold_without_positives_is_nan():
    with pytest.warns(UndefinedGroupMetricWarning, match="class 1"):
        assert math.isnan(tpr_gap([0, 0, 0], [0, 0, 0], sensitive_features=["a", "b", "b"]))
    with pytest.warns(UndefinedGroupMetricWarning, match="class 'yes'"):
        value = tpr_gap(["no"] * 3, ["no"] * 3, sensitive_features=["a", "b", "b"], labels=["no", "yes"])
    assert math.isnan(value)
    with pytest.raises(ValueError, match="pos_label cannot be guessed: 'no' is the only label"):
        tpr_gap(["no"] * 3, ["no"] * 3, sensitive_features=["a", "b", "b"])


@pytest.mark.parametrize("metric", GAPS)
def test_the_warning_points_at_the_caller(metric):
    with pytest.warns(UndefinedGroupMetricWarning) as caught:
        metric([1, 0], [1, 0], sensitive_features=["a", "a"])
    assert {warning.filename for warning in caught} == {__file__}


# --- bad input: errors that name the argument ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"y_pred": [0, 1]}, ValueError, "y_pred"),
        ({"sensitive_features": ["a"]}, ValueError, "sensitive_features"),
        ({"sensitive_features": None}, ValueError, "sensitive_features is missing"),
        ({"sample_weight": [1, 2]}, ValueError, r"sample_weight must have shape \(4,\)"),
        (
            {"sample_weight": [1, 1, -1, 1]},
            ValueError,
            "sample_weight",
        ),
        ({"sample_weight": [1, 1, np.nan, 1]}, ValueError, "sample_weight must be finite"),
        ({"sample_weight": [0, 0, 0, 0]}, ValueError, "sample_weight is zero in every row"),
        ({"sample_weight": ["a"] * 4}, TypeError, "sample_weight"),
        ({"y_true": None}, ValueError, "y_true"),
        ({"y_true": "0101"}, TypeError, "y_true must hold one class label per row"),
        ({"y_true": [0.0, 1.0, np.nan, 1.0]}, ValueError, "y_true"),
        ({"y_true": ["a", None, "b", "a"]}, ValueError, "y_true has missing values"),
        ({"y_pred": [0.2, 0.9, 0.1, 0.5]}, ValueError, "y_pred must hold class labels, not scores; got 0.2"),
        ({"y_pred": ["0", "1", "0", "1"]}, TypeError, "y_true"),
        ({"y_pred": [0, 1, "0", 1]}, TypeError, "one kind"),
        ({"y_pred": np.zeros((4, 2))}, ValueError, r"y_pred must have shape \(n_samples,\)"),
        ({"pos_label": 7}, ValueError, "pos_label"),
        ({"labels": [0, 2]}, ValueError, r"y_true holds labels that labels does not list: \[1\]"),
        ({"labels": [0, 0, 1]}, ValueError, "labels must list every class once"),
        ({"average": "macro"}, ValueError, "average"),
        ({"average": "max", "pos_label": 1}, ValueError, "pos_label=1 has no meaning with average='max'"),
        ({"average": "binary", "labels": [0, 1, 2]}, ValueError, "pos_label"),
        ({"y_true": [], "y_pred": []}, ValueError, "y_true is empty"),
    ],
)
def test_bad_input_is_named(change, error, message):
    arguments = {"y_true": [0, 1, 0, 1], "y_pred": [0, 1, 1, 1], "sensitive_features": list("aabb"), **change}
    with pytest.raises(error, match=message):
        tpr_gap(**arguments)


def test_identifiers_are_no_labels():
    n = 20_000
    with pytest.raises(ValueError, match="y_true"):
        tpr_gap(np.arange(n), np.arange(n), sensitive_features=np.arange(n) % 2)
    with pytest.raises(ValueError, match="agg must be"):
        equalized_odds_gap(Y_TRUE, Y_PRED, sensitive_features=GROUP, agg="max")


def test_rate_over_weights_of_zero_is_undefined():
    # 0.1 + 0.2 - 0.3 is not 0 in floating point; the false positive rate of a group without negatives is.
    counts = np.array([[[0.0, 0.0], [0.1, 0.2]], [[0.3, 0.1], [0.1, 0.2]]])
    rates = false_positive_rates(counts)
    assert math.isnan(rates[0, 1])
    assert rates[1, 1] == pytest.approx(0.25)
