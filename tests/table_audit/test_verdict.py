"""The verdict follows the table, and never says what the table contradicts."""

import math
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from skfairdp.table_audit._gap_findings import gap_state, widest_difference
from skfairdp.table_audit._plain_words import (
    FAIRNESS_WORDS,
    difference_of_independent,
    fairness_words,
    listed,
    p_text,
    points,
    span,
)
from tests.table_audit._made_audits import FAIRNESS, LEAKY, TWINS, made_audit, strata_of, with_figures


def words(result):
    return " ".join([result.verdict.headline, *result.verdict.sentences])


def rate_of(result, method, group, rate="tpr", label="yes"):
    rates = result.group_rates
    row = rates[
        (rates["method"] == method) & (rates["group"] == group) & (rates["rate"] == rate) & (rates["class"] == label)
    ]
    return row.iloc[0]


def test_the_users_own_system_comes_first():
    result = made_audit(systems=("decision",))
    row = result.table.loc["decision"]
    text = result.verdict.sentences[0]
    assert result.verdict.headline.startswith("Group g1 loses in the existing system decision: a TPR gap of ")
    for group in ("g0", "g1"):
        rate = rate_of(result, "decision", group)
        assert f"{100 * rate['value']:.1f}% in group {group} (of {rate['trials']:,})" in text
    assert f"{points(row['tpr_gap'])} ({span(row['tpr_gap_lower'], row['tpr_gap_upper'])} with 95% confidence" in text
    assert "all 3,000 rows" in text
    assert "Chance alone hardly makes such a gap (p < 0.001)" in text
    assert f"as measured it is {points(row['tpr_gap_measured'])}" in text
    ratio = f"{row['selection_ratio']:.2f} of the rate"
    assert ratio in result.verdict.sentences[1]


def test_chance_is_called_chance():
    result = with_figures(made_audit(), "trees", tpr_gap_p_value=0.4, tpr_gap_lower=0.0)
    assert gap_state(result, "trees") == "chance"
    assert result.verdict.headline.startswith(
        "No gap between groups can be told from chance in the reference model trees"
    )
    assert "No gap can be told from chance (p = 0.400)" in words(result)
    assert "loses" not in words(result)
    assert "narrows it" not in result.verdict.headline  # there is none to be narrowed


@pytest.mark.parametrize(("p_value", "lower"), [(0.2, 0.03), (0.01, 0.0)])
def test_test_and_interval_may_disagree(p_value, lower):
    result = with_figures(made_audit(), "trees", tpr_gap_p_value=p_value, tpr_gap_lower=lower)
    assert gap_state(result, "trees") == "unclear"
    assert "hardly told from chance" in result.verdict.headline
    assert "loses" not in words(result)


def test_assumed_labels_are_called_assumed():
    assumed, given = made_audit(assumed=True), made_audit()
    assert "That yes is the favourable outcome is assumed" in words(assumed)
    assert "--positive LABEL" in words(assumed)
    assert any("--positive LABEL, one of no and yes" in step for step in assumed.verdict.next_steps)
    assert "assumed" not in words(given)
    assert "--positive" not in " ".join(given.verdict.next_steps)


def test_several_classes_tell_who_loses():
    favourable = made_audit(n_classes=4)
    assert "Group g1 loses" in favourable.verdict.headline
    assert "Of the people whose hired is yes" in words(favourable)
    none = made_audit(n_classes=4, fairness="grms")
    assert "loses" not in words(none)
    assert "treats groups unequally: a GRMS of" in none.verdict.headline
    widest = widest_difference(none, "trees")
    assert widest.label == "yes"  # where the bias is
    assert "the widest difference of all classes" in words(none)


def test_the_widest_class_is_found_slowly_too():
    result = with_figures(made_audit(n_classes=4, fairness="grms", n_groups=5), "trees", highest_group=None)
    rates = result.group_rates.query("method == 'trees' and rate == 'tpr'")
    slow = max(
        ((one["value"] - other["value"], one["class"], one["group"], other["group"]))
        for _, one in rates.iterrows()
        for _, other in rates.iterrows()
        if one["class"] == other["class"]
    )
    widest = widest_difference(result, "trees")
    assert (widest.label, widest.high[0], widest.low[0]) == slow[1:]


@pytest.mark.parametrize("fairness", FAIRNESS)
def test_every_definition_has_words(fairness):
    result = made_audit(fairness=fairness, scores=True, n_classes=3 if fairness == "grms" else 2)
    text = words(result)
    assert fairness_words(fairness).name in text
    assert f'--fail-if "{fairness} > 0.05"' in " ".join(result.verdict.next_steps)
    assert "{" not in text
    assert "nan" not in text
    assert fairness_words(fairness).name in result.to_text()


def test_an_unknown_definition_is_refused():
    with pytest.raises(ValueError, match="'tpr_gap'"):
        fairness_words("tpr_gapp")
    assert set(FAIRNESS_WORDS) == set(FAIRNESS)


def test_who_loses_by_each_definition():
    assert "Group g1 loses" in made_audit(fairness="equalized_odds_gap").verdict.headline
    parity = made_audit(fairness="demographic_parity_gap")
    assert "Group g1 loses" in parity.verdict.headline
    assert "answers yes for" in words(parity)
    calibration = made_audit(fairness="calibration_gap", scores=True)
    assert "Group g1 loses" in calibration.verdict.headline  # more of it are "yes" than its scores say
    assert "lies 5.0 points above the mean score" in words(calibration)


def test_too_few_rows_are_listed_and_never_a_headline():
    result = made_audit(n_groups=3, tiny=True)
    assert "Too few rows to say anything of tiny (sex)" in words(result)
    assert "tiny" not in result.verdict.headline
    assert "group tiny" not in words(result)
    # Without ends given, the groups at the ends are looked for among those with enough rows.
    table = result.table.assign(highest_group=None, lowest_group=None)
    rates = result.group_rates.copy()
    rates.loc[(rates["group"] == "tiny") & (rates["rate"] == "tpr"), "value"] = 0.0
    searched = replace(result, table=table, group_rates=rates)
    assert widest_difference(searched, "trees").low[0] != "tiny"
    trusted = replace(searched, too_few={})
    assert widest_difference(trusted, "trees").low[0] == "tiny"  # the list decides, and nothing else


def test_ties_never_print_a_group_twice():
    result = made_audit()
    rates = result.group_rates.copy()
    rates.loc[rates["rate"] == "tpr", "value"] = 0.8
    tied = with_figures(
        replace(result, group_rates=rates), "trees", tpr_gap=0.0, tpr_gap_lower=0.0, tpr_gap_p_value=1.0,
        highest_group="g0", lowest_group="g0",
    )  # fmt: skip
    assert widest_difference(tied, "trees") is None
    assert not re.search(r"group (\w+)\b.* and .* in group \1\b", words(tied))
    assert "No two groups differ" in words(tied)


def unchosen(result, method, **figures):
    """The reference wins, though a method is fairer on the test rows."""
    return with_figures(replace(result, best=result.reference), method, **figures)


SURELY = {"tpr_gap": 0.02, "tpr_gap_change": -0.2, "tpr_gap_change_lower": -0.027, "tpr_gap_change_upper": -0.014}


def test_a_fairer_method_at_no_cost_is_never_denied():
    result = made_audit()
    accuracy = result.table.loc["trees", "accuracy"]
    cheap = unchosen(result, "fair trees", accuracy=accuracy - 0.001, **SURELY)
    assert "Fair trees narrows it to 2.0 points, but was not chosen" in cheap.verdict.headline
    assert not re.search("No (other )?method", words(cheap))
    assert "there it did not win" in words(cheap)
    assert any("Look at fair trees" in step for step in cheap.verdict.next_steps)


def without_change(result):
    """No method is surely fairer."""
    table = result.table.copy()
    table["tpr_gap_change_upper"] = 0.01
    return replace(result, table=table, best=result.reference)


def test_no_fairer_method_is_said_so():
    none = without_change(made_audit())
    assert "No method can be told to be fairer" in none.verdict.headline
    assert "No other method has a gap that can be told to be narrower" in words(none)
    costly = with_figures(none, "fair trees", **SURELY | {"accuracy": none.table.loc["trees", "accuracy"] - 0.05})
    assert "No method is surely fairer within 1.0 point of accuracy" in words(costly)
    assert "It costs 5.0 points of accuracy" in words(costly)


def test_constant_methods_are_no_proof_of_fairness():
    result = with_figures(without_change(made_audit()), "noise", constant=True, **SURELY)
    assert "narrows" not in result.verdict.headline
    assert "No other method that is better than one answer for everybody" in words(result)
    assert result.best_private == "fair private trees"
    assert "noise (constant)" in result.to_text()
    mine = with_figures(result, "trees", constant=True)
    assert "no better than one answer for everybody (balanced accuracy" in words(mine)


def test_methods_that_need_the_group_say_so():
    result = made_audit(methods=("trees", "threshold optimizer"))
    result = unchosen(result, "threshold optimizer", accuracy=result.table.loc["trees", "accuracy"], **SURELY)
    assert "it must be told the group when it answers" in words(result)
    assert "threshold optimizer (needs the group)" in result.to_text()


def test_a_choice_that_is_no_narrower_says_so():
    result = made_audit()
    gap = result.table.loc["trees", "tpr_gap"]
    wider = with_figures(
        result, "fair trees", tpr_gap=gap + 0.01, tpr_gap_upper=gap + 0.05,
        tpr_gap_change=0.01, tpr_gap_change_lower=-0.01, tpr_gap_change_upper=0.03,
    )  # fmt: skip
    wider = with_figures(wider, "fair private trees", tpr_gap_change_upper=0.1)
    wider = with_figures(wider, "noise", tpr_gap_change_upper=0.1)
    assert "Fair trees is chosen, but on the test rows its gap is no narrower" in wider.verdict.headline
    assert f"which is not below the {points(gap)} of the reference model trees" in words(wider)
    assert "which may be chance" in words(wider)
    sure = with_figures(wider, "fair trees", tpr_gap_change_lower=0.005)
    assert ": it is wider" in words(sure)
    chance = with_figures(wider, "fair trees", tpr_gap=gap - 0.005)
    assert "may be narrower by chance" in chance.verdict.headline


def test_validation_and_test_costs_are_told_apart():
    result = made_audit()
    result = with_figures(result, "fair trees", accuracy=result.table.loc["trees", "accuracy"] - 0.017)
    result = with_figures(result, "trees", validation_accuracy=0.857)
    result = with_figures(result, "logistic", validation_accuracy=0.85)
    result = with_figures(result, "fair trees", validation_accuracy=0.853)
    text = words(result)
    assert "It costs 1.7 points of accuracy" in text
    assert "within 1.0 point of the accuracy of the reference model trees" in text
    assert "There fair trees is 0.4 points behind the reference model trees (85.3% against 85.7%)" in text
    better = with_figures(result, "fair trees", validation_accuracy=0.86)
    assert "There fair trees is 0.3 points ahead of the reference model trees" in words(better)


def test_cost_has_an_interval():
    result = made_audit()
    one, other = result.table.loc["trees"], result.table.loc["fair trees"]
    ends = [f"accuracy{end}" for end in ("", "_lower", "_upper")]
    change, lower, upper = difference_of_independent(one[ends].tolist(), other[ends].tolist())
    assert change > 0
    assert f"It costs no accuracy ({points(change)} more, {span(lower, upper, '+')}" in words(result)


@pytest.mark.parametrize(
    ("auc", "advantage", "end"),
    [
        ((0.52, 0.48, 0.56), (0.01, -0.02, 0.04), ", which these rows cannot tell from guessing."),
        ((0.60, 0.57, 0.63), (0.00, -0.01, 0.01), ", better than guessing."),  # accuracy alone would see nothing
        ((0.52, 0.48, 0.56), (0.05, 0.02, 0.08), ", better than guessing."),
        ((math.nan,) * 3, (0.00, -0.01, 0.01), "AUC undefined)."),
        ((0.40, 0.35, 0.45), (-0.05, -0.08, -0.02), "0.45)."),
    ],
)
def test_guessing_is_judged_by_area_and_advantage(auc, advantage, end):
    figures = {f"leakage_auc{e}": v for e, v in zip(("", "_lower", "_upper"), auc)}
    figures |= {f"advantage{e}": v for e, v in zip(("", "_lower", "_upper"), advantage)}
    result = with_figures(made_audit(), "trees", **figures)
    (told,) = [s for s in result.verdict.sentences if s.startswith("From what the reference model trees")]
    assert told.endswith(end)


def test_the_chosen_methods_leakage_is_told_too():
    told = [s for s in made_audit().verdict.sentences if "strongest attacker" in s]
    assert len(told) == 2
    assert told[1].startswith("From what fair trees gives away")


def test_undefined_gaps_are_said_so():
    result = made_audit(undefined=True)
    assert gap_state(result, "trees") == "undefined"
    assert result.verdict.headline.startswith("No gap between groups can be computed")
    assert "nan" not in words(result)
    assert "undefined" not in words(result).replace("AUC undefined", "")
    assert "--fail-if" not in " ".join(result.verdict.next_steps)


def test_checks_come_first_and_the_serious_ones_before():
    result = made_audit(checks=(TWINS, LEAKY))
    assert result.verdict.sentences[0] == "Before you trust this: The column 'stamp' predicts hired almost alone."
    assert result.verdict.next_steps[:2] == (LEAKY.advice, TWINS.advice)
    text = result.to_text()
    assert text.index("! The column 'stamp'") < text.index("- 12 rows occur twice")
    assert "Before you trust this" not in made_audit().to_text()


def test_only_systems_without_methods():
    result = made_audit(systems=("decision", "old decision"), methods=())
    text = words(result)
    assert "is chosen" not in text
    assert "epsilon" not in text
    assert "Of the people whose hired is yes, the existing system old decision recognises" in text
    assert result.best_private is None
    assert any("--methods none" in step for step in result.verdict.next_steps)


def test_systems_are_compared_on_rows_that_both_answer():
    result = made_audit(systems=("decision",))
    assert re.search(r"narrows it by [\d.]+ to [\d.]+ points on the rows that both answer", result.verdict.headline)
    assert "900 test rows against all 3,000 rows" in words(result)


def test_gaps_within_strata_are_told():
    text = words(strata_of(made_audit()))
    assert "Among people with the same education, the TPR gap of the reference model trees is" in text


def test_labels_of_any_kind_are_told():
    crossed = made_audit(groups=("a x b", "c x d"), attribute="sex x race")
    crossed = replace(crossed, settings=crossed.settings | {"sensitive": ["sex", "race"]})
    table = crossed.table.astype({"highest_group": object, "lowest_group": object})
    for name in table.index:
        table.at[name, "highest_group"], table.at[name, "lowest_group"] = ("a", "b"), ("c", "d")
    assert "Group c x d loses" in replace(crossed, table=table).verdict.headline
    assert "g9" not in words(made_audit(n_groups=2))


def test_numbers_in_words():
    assert points(0.01) == "1.0 point"
    assert points(-0.0001) == "0.0 points"
    assert points(math.nan) == "undefined"
    assert span(-0.0001, 0.02, "+") == "+0.0 to +2.0"
    assert span(math.nan, 0.1) == "interval undefined"
    assert (p_text(0.0001), p_text(0.0312), p_text(math.nan)) == ("p < 0.001", "p = 0.031", "p undefined")
    assert (listed(["a"]), listed("abc"), listed([])) == ("a", "a, b and c", "none")
    assert listed(range(20), 3) == "0, 1 and 18 more"


def test_differences_of_independent_estimates_cover():
    """Of 2,000 pairs of rates on different rows, 95% of the intervals hold the true difference, within 1.5%."""
    rng = np.random.default_rng(0)
    held = 0
    for _ in range(2000):
        pair = []
        for rate, n in ((0.3, 400), (0.4, 900)):
            value = rng.binomial(n, rate) / n
            half = 1.96 * math.sqrt(value * (1 - value) / n)
            pair.append((value, value - half, value + half))
        _, lower, upper = difference_of_independent(*pair)
        held += lower <= 0.1 <= upper
    assert held / 2000 == pytest.approx(0.95, abs=0.015)
    assert difference_of_independent((0.2, 0.1, 0.4), (0.2, 0.2, 0.2)) == pytest.approx((0.0, -0.2, 0.1))


def test_missing_columns_are_demanded():
    result = made_audit()
    with pytest.raises(KeyError, match="tpr_gap_p_value"):
        _ = replace(result, table=result.table.drop(columns="tpr_gap_p_value")).verdict
    assert isinstance(result.table, pd.DataFrame)
