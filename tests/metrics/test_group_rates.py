"""The table by group: what stands in it, against fairlearn and by hand."""

import fairlearn.metrics
import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import accuracy_score

from skfairdp.exceptions import UndefinedGroupMetricWarning
from skfairdp.metrics import group_rates

Y_TRUE = [1, 1, 1, 1, 0, 0, 1, 1, 0, 0, 0, 0]
Y_PRED = [1, 1, 1, 0, 0, 1, 1, 0, 0, 0, 0, 1]
GROUP = list("aaaaaabbbbbb")


def test_a_table_worked_out_by_hand():
    table = group_rates(Y_TRUE, Y_PRED, sensitive_features=pd.Series(GROUP, name="sex"))
    expected = pd.DataFrame(
        {
            "count": [6, 6],
            "accuracy": [4 / 6, 4 / 6],
            "tpr_0": [1 / 2, 3 / 4],
            "fpr_0": [1 / 4, 1 / 2],
            "selection_rate_0": [2 / 6, 4 / 6],
            "ppv_0": [1 / 2, 3 / 4],
            "tpr_1": [3 / 4, 1 / 2],
            "fpr_1": [1 / 2, 1 / 4],
            "selection_rate_1": [4 / 6, 2 / 6],
            "ppv_1": [3 / 4, 1 / 2],
        },
        index=pd.Index(["a", "b"], name="sex"),
    )
    pd.testing.assert_frame_equal(table, expected)


@pytest.mark.parametrize("weighted", [False, True])
def test_equals_metric_frame(weighted):
    rng = np.random.default_rng(3)
    n = 500
    y_true, y_pred = rng.integers(0, 2, n), rng.integers(0, 2, n)
    groups = pd.DataFrame({"sex": rng.choice(["f", "m"], n), "race": rng.choice(["p", "q", "r"], n)})
    weight = rng.random(n) if weighted else None
    metrics = {
        "accuracy": accuracy_score,
        "tpr_1": fairlearn.metrics.true_positive_rate,
        "fpr_1": fairlearn.metrics.false_positive_rate,
        "selection_rate_1": fairlearn.metrics.selection_rate,
    }
    params = {name: {"sample_weight": weight} for name in metrics} if weighted else None
    frame = fairlearn.metrics.MetricFrame(
        metrics=metrics, y_true=y_true, y_pred=y_pred, sensitive_features=groups, sample_params=params
    ).by_group
    ours = group_rates(y_true, y_pred, sensitive_features=groups, sample_weight=weight)
    assert ours.index.names == ["sex", "race"]
    pd.testing.assert_frame_equal(ours[list(metrics)], frame.astype(float), check_dtype=False, rtol=1e-12)
    assert ours["count"].tolist() == groups.groupby(["sex", "race"]).size().tolist()
    assert ("weight" in ours) == weighted


def test_undefined_rates_are_nan_and_named():
    group = pd.Series(pd.Categorical(list("aabb"), categories=list("abz")))
    with pytest.warns(UndefinedGroupMetricWarning) as caught:
        table = group_rates([1, 0, 1, 1], [1, 0, 1, 0], sensitive_features=group)
    assert table.loc["z", "count"] == 0
    assert table.loc["z"].drop("count").isna().all()
    assert np.isnan(table.loc["b", "tpr_0"])
    assert np.isnan(table.loc["b", "fpr_1"])
    assert table.loc["b", "tpr_1"] == 0.5
    text = " ".join(str(warning.message) for warning in caught)
    for part in (
        "accuracy is undefined in group 'z'",
        "class 0 is undefined in group 'b' (it has no row of that class)",
    ):
        assert part in text
    assert "fewer than" not in text
    assert {warning.filename for warning in caught} == {__file__}


def test_many_undefined_rates_make_a_short_warning():
    n = 30
    with pytest.warns(UndefinedGroupMetricWarning, match="more like these") as caught:
        group_rates(np.arange(n), np.arange(n), sensitive_features=np.arange(n) % 2)
    assert all(len(str(warning.message)) < 1200 for warning in caught)


def test_long_form_says_the_same():
    wide = group_rates(Y_TRUE, Y_PRED, sensitive_features={"sex": GROUP}, interval="exact")
    long = group_rates(Y_TRUE, Y_PRED, sensitive_features={"sex": GROUP}, interval="exact", form="long")
    assert list(long.columns) == ["sex", "rate", "class", "value", "trials", "lower", "upper"]
    assert len(long) == 2 * 9
    for row in long.itertuples(index=False):
        name = row.rate if row.rate == "accuracy" else f"{row.rate}_{row[2]}"
        assert wide.loc[row.sex, name] == row.value
        assert (wide.loc[row.sex, f"{name}_lower"], wide.loc[row.sex, f"{name}_upper"]) == (row.lower, row.upper)
    trials = long.set_index(["sex", "rate", "class"])["trials"]
    assert trials["a", "tpr", 1] == 4
    assert trials["a", "fpr", 1] == 2
    assert trials["b", "selection_rate", 0] == 6


def test_weights_are_summed():
    weight = np.arange(1.0, 13.0)
    table = group_rates(Y_TRUE, Y_PRED, sensitive_features=GROUP, sample_weight=weight)
    assert table["count"].tolist() == [6, 6]
    assert table["weight"].tolist() == [21.0, 57.0]
    assert table.loc["a", "tpr_1"] == pytest.approx((1 + 2 + 3) / 10)


def test_labels_that_are_tuples_stay_one_group():
    groups = [("x", 1), ("x", 1), ("y", 2), ("y", 2)]
    table = group_rates([1, 0, 1, 0], [1, 0, 0, 0], sensitive_features=groups)
    assert table.index.tolist() == [("x", 1), ("y", 2)]
    assert table["accuracy"].tolist() == [1.0, 0.5]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"interval": "normal"}, "interval"),
        ({"form": "tall"}, "form must be 'wide' or 'long'"),
        ({"confidence_level": 1.0}, "confidence_level"),
        ({"n_draws": 0}, "n_draws"),
        ({"interval": "exact", "sample_weight": np.ones(12)}, "use interval='bootstrap' with sample_weight"),
    ],
)
def test_bad_input_is_named(change, message):
    with pytest.raises(ValueError, match=message):
        group_rates(Y_TRUE, Y_PRED, sensitive_features=GROUP, **change)
