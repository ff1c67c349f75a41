"""The reference is what people use, and a method is chosen only where validation rows are sure that it is fairer."""

import numpy as np
import pandas as pd
import pytest

from skfairdp.table_audit._chosen_method import choose_method, choose_reference, score_to_choose_by


def validation(**methods):
    """Rows of (accuracy, gap, change, half width of its interval), and words for what rules a method out."""
    rows = {}
    for name, (accuracy, gap, change, half, *words) in methods.items():
        rows[name] = {
            "accuracy": accuracy,
            "tpr_gap": gap,
            "tpr_gap_change": change,
            "tpr_gap_change_lower": change - half,
            "tpr_gap_change_upper": change + half,
            "constant": "constant" in words,
            "needs_groups": "needs_groups" in words,
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def choose(table, threshold=0.01):
    return choose_method(table, "trees", "tpr_gap", "accuracy", threshold)


TREES = (0.85, 0.10, 0.0, 0.0)


def test_the_fairest_within_the_threshold_is_chosen():
    table = validation(trees=TREES, fair=(0.845, 0.02, -0.08, 0.03), fairer=(0.80, 0.00, -0.10, 0.03))
    assert choose(table) == "fair"
    assert choose(table, threshold=0.06) == "fairer"
    assert choose(table, threshold=0.001) == "trees"
    assert choose(table, threshold=0.0051) == "fair"
    assert choose(table, threshold=0.0049) == "trees"


def test_the_reference_wins_ties():
    half = 1.96 * 0.02  # one standard error is 0.02
    assert choose(validation(trees=TREES, fair=(0.85, 0.085, -0.015, half))) == "trees"
    assert choose(validation(trees=TREES, fair=(0.85, 0.075, -0.025, half))) == "fair"


@pytest.mark.parametrize("word", ["constant", "needs_groups"])
def test_some_methods_are_never_chosen(word):
    ruled_out = (0.85, 0.0, -0.10, 0.01, word)
    assert choose(validation(trees=TREES, other=ruled_out)) == "trees"
    assert choose(validation(trees=TREES, other=ruled_out[:4])) == "other"


def test_an_undefined_gap_is_not_chosen():
    assert choose(validation(trees=TREES, fair=(0.85, np.nan, np.nan, np.nan))) == "trees"


def test_equal_gaps_are_decided_by_accuracy():
    table = validation(trees=TREES, one=(0.845, 0.02, -0.08, 0.01), two=(0.849, 0.02, -0.08, 0.01))
    assert choose(table) == "two"


def test_the_reference_is_what_people_use():
    table = validation(trees=(0.85, 0, 0, 0), logistic=(0.86, 0, 0, 0), leace=(0.9, 0, 0, 0), mine=(0.7, 0, 0, 0))
    known = (["mine"], ["trees", "logistic"])
    assert choose_reference(table, ["vendor"], *known, "accuracy", 10_000) == "vendor"
    assert choose_reference(table, [], *known, "accuracy", 10_000) == "mine"
    assert choose_reference(table, [], [], known[1], "accuracy", 10_000) == "logistic"
    assert choose_reference(table, [], [], known[1], "accuracy", 1000) == "trees"  # one point may be chance
    assert choose_reference(table.loc[["leace"]], [], [], known[1], "accuracy", 10_000) == "leace"


def test_unequal_classes_are_judged_by_balanced_accuracy():
    assert score_to_choose_by(np.repeat([0, 1], [45, 55]), 2) == "accuracy"
    assert score_to_choose_by(np.repeat([0, 1], [25, 75]), 2) == "balanced_accuracy"
    assert score_to_choose_by(np.repeat([0, 1, 2], [30, 30, 40]), 3) == "accuracy"
    assert score_to_choose_by(np.repeat([0, 1, 2], [10, 10, 80]), 3) == "balanced_accuracy"
