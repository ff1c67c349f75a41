"""Crossed groups: small ones lean on their columns, large ones speak for themselves."""

import numpy as np
import pandas as pd
import pytest

from skfairdp.metrics import group_rates, shrunken_rates

SEX, AGE = np.repeat([0.0, 0.15], 5), np.tile([0.0, 0.05, 0.1, 0.2, 0.3], 2)


def people(sizes, rates, rng):
    rows = np.repeat(np.arange(10), sizes)
    frame = pd.DataFrame({"sex": np.repeat(["f", "m"], 5)[rows], "age": np.tile(list("abcde"), 2)[rows]})
    return frame, (rng.random(len(rows)) < rates[rows]).astype(int)


def table_of(frame, predicted, **settings):
    return shrunken_rates("selection_rate", predicted, predicted, sensitive_features=frame, labels=[0, 1], **settings)


def test_small_groups_become_better_and_are_covered():
    """Additive effects with a little more: smaller errors than the measured rates, intervals that hold them."""
    rng = np.random.default_rng(0)
    sizes = np.array([400, 200, 100, 30, 8, 8, 30, 100, 200, 400])
    errors, measured_errors, covered = [], [], []
    for _ in range(60):
        rates = 0.3 + SEX + AGE + rng.normal(0, 0.03, 10)
        table = table_of(*people(sizes, rates, rng))
        errors.append((table["value"] - rates) ** 2)
        measured_errors.append((table["measured"] - rates) ** 2)
        covered.append((table["lower"] <= rates) & (rates <= table["upper"]))
    small = sizes < 50
    assert np.mean(errors, axis=0)[small].mean() < 0.5 * np.mean(measured_errors, axis=0)[small].mean()
    assert 0.92 < np.mean(covered) <= 0.99


def test_large_groups_speak_for_themselves():
    rng = np.random.default_rng(1)
    rates = 0.3 + SEX + AGE
    rates[3] = 0.9  # unlike what its columns predict
    table = table_of(*people(np.full(10, 20_000), rates, rng))
    np.testing.assert_allclose(table["value"], table["measured"], atol=0.01)
    assert abs(table["expected"].iloc[3] - 0.9) > 0.1


def test_one_column_is_drawn_towards_its_mean():
    rng = np.random.default_rng(2)
    groups, predicted = np.repeat(list("abcdefg"), [500, 12, *[500] * 5]), rng.integers(0, 2, 3012)
    predicted[500:512] = [1] * 9 + [0] * 3
    table = table_of(groups, predicted)
    assert np.ptp(table["expected"]) < 1e-12
    assert table.loc["b", "expected"] < table.loc["b", "value"] < 0.65
    assert table.loc["b", "upper"] - table.loc["b", "lower"] > table.loc["a", "upper"] - table.loc["a", "lower"]


@pytest.mark.parametrize("rate", ["accuracy", "tpr", "fpr", "selection_rate", "ppv"])
def test_measured_is_the_rate_of_the_table(rate):
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"sex": rng.choice(["f", "m"], 300), "age": rng.choice(list("abc"), 300)})
    truth, predicted = rng.integers(0, 2, 300), rng.integers(0, 2, 300)
    weight = rng.random(300)
    table = shrunken_rates(rate, truth, predicted, sensitive_features=frame, sample_weight=weight)
    wide = group_rates(truth, predicted, sensitive_features=frame, sample_weight=weight)
    column = rate if rate == "accuracy" else f"{rate}_1"
    np.testing.assert_allclose(table["measured"], wide[column])
    assert table.index.equals(wide.index)
    assert ((table["lower"] <= table["value"]) & (table["value"] <= table["upper"])).all()


def test_a_group_without_rows_gets_the_guess():
    rng = np.random.default_rng(4)
    frame, truth = people(np.full(10, 100), np.full(10, 0.5), rng)
    truth[:100] = 0  # nobody of the first group is of class 1: no true positive rate
    predicted = rng.integers(0, 2, 1000)
    table = shrunken_rates("tpr", truth, predicted, sensitive_features=frame)
    assert np.isnan(table["measured"].iloc[0])
    assert table["n"].iloc[0] == 0
    assert table["value"].iloc[0] == pytest.approx(table["expected"].iloc[0])
    assert table["lower"].iloc[0] < table["value"].iloc[0] < table["upper"].iloc[0]


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="rate"):
        shrunken_rates("gap", [0, 1], [0, 1], sensitive_features=[0, 1])
    with pytest.raises(ValueError, match="no group has a row in the denominator of 'ppv'"):
        shrunken_rates("ppv", [0, 1], [0, 0], sensitive_features=[0, 1])
