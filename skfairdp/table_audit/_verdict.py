"""The findings in plain words.

Everything said here is read from the tables of the audit, so that a sentence cannot contradict them: the figures
are of the test rows, or of all rows for a system that exists already; validation rows are named where they speak.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from skfairdp.model_selection import RelaxationThreshold
from skfairdp.table_audit._gap_findings import WidestDifference, gap_state, widest_difference
from skfairdp.table_audit._next_steps import next_steps
from skfairdp.table_audit._plain_words import (
    capital,
    count,
    difference_of_independent,
    fairness_words,
    listed,
    p_text,
    percent,
    points,
    span,
)

if TYPE_CHECKING:
    from skfairdp.table_audit._table_audit import TableAudit

FOUR_FIFTHS = 0.8


@dataclass(frozen=True)
class Verdict:
    """What a reader should know first.

    Attributes
    ----------
    headline : str
        One line.
    sentences : tuple of str
        A few sentences, the headline not among them.
    private : str or None
        The choice among methods with a finite epsilon.
    next_steps : tuple of str
        What to do next, the most urgent first.

    Examples
    --------
    >>> from skfairdp import audit_table
    >>> from skfairdp.datasets import make_biased_classification
    >>> frame = make_biased_classification(400, group_shift=3.0, as_frame=True, random_state=0).frame
    >>> frame["vendor"] = (frame["x0"] > 0).astype(int)
    >>> roles = {"target": "target", "sensitive": "group", "predictions": "vendor", "pos_label": 1}
    >>> audit = audit_table(frame, **roles, methods="none", random_state=0, verbose=False)
    >>> "vendor" in audit.verdict.headline + " ".join(audit.verdict.sentences)
    True
    """

    headline: str
    sentences: tuple[str, ...]
    private: str | None
    next_steps: tuple[str, ...] = ()


def make_verdict(result: "TableAudit") -> Verdict:
    """Put the findings into words."""
    private = _best_private(result)
    alternative = _alternative(result)
    sentences = [
        _trust(result),
        *_finding(result, result.reference),
        _four_fifths(result, result.reference),
        _assumed(result),
        _choice(result, alternative),
        _threshold(result),
        *(_other_system(result, name) for name in result.systems if name != result.reference),
        _within_strata(result),
        _too_few(result),
        *(_leak(result, name) for name in dict.fromkeys([result.reference, result.best])),
        _privacy(result, private),
    ]
    return Verdict(
        _headline(result, alternative),
        tuple(sentence for sentence in sentences if sentence),
        private,
        next_steps(
            result,
            gap_state(result, result.reference),
            alternative,
            private,
            result.best != result.reference and _narrower(result, result.best),
        ),
    )


def has_methods(result: "TableAudit") -> bool:
    """Tell whether anything was trained beside the systems that exist already."""
    return bool((result.table["kind"] != "system").any())


def called(result: "TableAudit", method: str) -> str:
    """Return what a method is called within a sentence."""
    kind = result.table.loc[method, "kind"]
    if kind == "system":
        return f"the existing system {method}"
    return f"the reference model {method}" if method == result.reference else method


def _best_private(result: "TableAudit") -> str | None:
    table = result.table
    usable = ~(table["constant"].astype(bool) | table["needs_groups"].astype(bool)) & (table["kind"] != "system")
    private = table[np.isfinite(table["epsilon"].astype(float)) & usable]
    if private.empty:
        return None
    accuracy, fairness = f"validation_{_measure(result)}", f"validation_{result.fairness}"
    if not np.isfinite(private[fairness]).any():
        return str(private[accuracy].idxmax())
    rule = RelaxationThreshold(
        result.settings["relaxation_threshold"],
        accuracy=accuracy,
        fairness=fairness,
        directions={accuracy: "max", fairness: "min"},
    )
    return str(private.index[rule(private)])


def _measure(result: "TableAudit") -> str:
    """The column by which methods count as accurate when one is chosen."""
    return result.settings.get("chosen_by", "accuracy")


def _interval(result: "TableAudit", method: str) -> str:
    row = result.table.loc[method]
    return span(row[f"{result.fairness}_lower"], row[f"{result.fairness}_upper"])


def _rows(result: "TableAudit", method: str) -> str:
    """The rows that figures are of: "all 3,000 rows", "900 test rows"."""
    row = result.table.loc[method]
    which = str(row["rows"])
    return f"all {count(row['n_rows'], 'row')}" if which == "all rows" else f"{round(row['n_rows']):,} {which}"


def _trust(result: "TableAudit") -> str:
    serious = [check for check in result.checks if check.serious]
    if not serious:
        return ""
    more = f" (and {len(serious) - 1} more below)" if len(serious) > 1 else ""
    return f"Before you trust this: {serious[0].sentence.rstrip('.')}{more}."


def _headline(result: "TableAudit", alternative: str | None) -> str:
    words = fairness_words(result.fairness)
    subject, state = called(result, result.reference), gap_state(result, result.reference)
    value = points(result.table.loc[result.reference, result.fairness])
    if state == "undefined":
        return (
            "No gap between groups can be computed: fewer than two groups have enough rows of what it compares"
            f"{' or scores to compare' if result.fairness == 'calibration_gap' else ''}."
        )
    interval = _interval(result, result.reference)
    told = f"{value} ({interval})"
    widest = widest_difference(result, result.reference)
    if state == "chance":
        finding = f"No gap between groups can be told from chance in {subject} ({words.name} {value}, {interval})"
    elif state == "unclear":
        finding = f"{capital(subject)} may treat groups unequally: {words.one} of {told}, hardly told from chance"
    elif widest is None or (loser := _loser(result, widest)) is None:
        finding = f"{capital(subject)} treats groups unequally: {words.one} of {told}"
    else:
        finding = f"Group {loser} loses in {subject}: {words.one} of {told}"
    return f"{finding}.{_headline_within_strata(result)}{_headline_of_choice(result, alternative)}"


def _headline_within_strata(result: "TableAudit") -> str:
    """Say what is left of a gap among people who are alike in the control columns."""
    row = _adjusted(result)
    if row is None:
        return ""
    controls = listed(result.settings.get("control", ()))
    return f" Within {controls} it is {points(row['gap'])} ({span(row['lower'], row['upper'])})."


def _adjusted(result: "TableAudit") -> pd.Series | None:
    """The gap of the reference within strata, if there is one."""
    if result.strata is None:
        return None
    mine = result.strata[result.strata["method"] == result.reference]
    return None if mine.empty or math.isnan(mine["gap"].iloc[0]) else mine.iloc[0]


def _loser(result: "TableAudit", widest: WidestDifference) -> str | None:
    if result.settings["pos_label"] is None:
        return None
    # Scores that lie below what happens are too low, for the group in which most happens above them.
    return widest.high[0] if widest.rate == "calibration" else widest.low[0]


def _headline_of_choice(result: "TableAudit", alternative: str | None) -> str:
    metric, best = result.fairness, result.table.loc[result.best]
    if len(result.table) == 1 or not has_methods(result):
        return ""
    if gap_state(result, result.reference) == "chance":
        return ""  # where no gap can be seen there is none to be narrowed; the sentences tell what was chosen
    if result.best != result.reference and _narrower(result, result.best):
        return f" {capital(result.best)} narrows it{_from_to(result, result.best)}."
    if alternative is not None:
        return f" {capital(alternative)} narrows it{_from_to(result, alternative)}, but was not chosen."
    if result.best == result.reference:
        return " No method can be told to be fairer at a cost within the threshold."
    if best[metric] < result.table.loc[result.reference, metric]:
        return f" {capital(result.best)} is chosen; its gap of {points(best[metric])} may be narrower by chance."
    return f" {capital(result.best)} is chosen, but on the test rows its gap is no narrower ({points(best[metric])})."


def _from_to(result: "TableAudit", method: str) -> str:
    """Say to how much a gap is narrowed; where the figures are of different rows, only the paired change is fair."""
    row, reference = result.table.loc[method], result.table.loc[result.reference]
    if row["rows"] == reference["rows"] and row[result.fairness] < reference[result.fairness]:
        return f" to {points(row[result.fairness])}"
    lower, upper = (row[f"{result.fairness}_change_{end}"] for end in ("lower", "upper"))
    return f" by {span(-upper, -lower)} points on the rows that both answer"


def _narrower(result: "TableAudit", method: str) -> bool:
    return bool(result.table.loc[method, f"{result.fairness}_change_upper"] < 0)


def _cost(result: "TableAudit", method: str) -> float:
    return float(result.table.loc[result.reference, "accuracy"] - result.table.loc[method, "accuracy"])


def _surely_fairer(result: "TableAudit") -> list[str]:
    """Methods whose gap is narrower than the reference's beyond chance, the cheapest first."""
    table = result.table
    usable = (table["kind"] != "system") & ~table["constant"].astype(bool) & (table.index != result.reference)
    names = table.index[usable & (table[f"{result.fairness}_change_upper"] < 0)]
    return sorted(map(str, names), key=lambda name: _cost(result, name))


def _alternative(result: "TableAudit") -> str | None:
    """A method that was not chosen though the test rows show it to be fairer at a cost within the threshold."""
    if result.best != result.reference and _narrower(result, result.best):
        return None
    threshold = result.settings["relaxation_threshold"]
    cheap = [name for name in _surely_fairer(result) if _cost(result, name) <= threshold and name != result.best]
    return min(cheap, key=lambda name: result.table.loc[name, result.fairness]) if cheap else None


def _finding(result: "TableAudit", method: str) -> list[str]:
    """Tell the rates of the two groups, then the gap, and whether chance explains it."""
    row, metric, state = result.table.loc[method], result.fairness, gap_state(result, method)
    if state == "undefined":
        return []
    sentences = []
    widest = widest_difference(result, method)
    if widest is not None:
        loser = _loser(result, widest) if state == "there" else None
        sentences.append(_two_rates(result, method, widest) + (f": group {loser} loses." if loser else "."))
    elif len(result.group_rates):
        sentences.append(f"No two groups differ in what {called(result, method)} gives them.")
    gap = (
        f"The {fairness_words(metric).name} is {points(row[metric])} ({_interval(result, method)} with 95% confidence, "
        f"{_rows(result, method)})"
    )
    # Of the groups that are counted: the plain measure also looks at those with too few rows.
    measured = math.nan if widest is None else widest.high[1] - widest.low[1]
    if metric != "grms" and measured - row[metric] >= 0.0005:
        gap += f"; as measured it is {points(measured)}, of which chance explains a part"
    chance = p_text(row[f"{metric}_p_value"])
    ends = {
        "there": f". Chance alone hardly makes such a gap ({chance}).",
        "unclear": f". Whether chance alone makes such a gap is not clear ({chance}).",
        "chance": f". No gap can be told from chance ({chance}).",
    }
    sentences.append(gap + ends[state])
    if bool(row["constant"]) and metric != "demographic_parity_gap":
        sentences.append(
            f"{capital(called(result, method))} tells {result.settings['target']} no better than one answer for "
            f"everybody (balanced accuracy {percent(row['balanced_accuracy'])}): its gap says little."
        )
    return [" ".join(sentences)]


def _two_rates(result: "TableAudit", method: str, widest: WidestDifference) -> str:
    subject, target, label = called(result, method), result.settings["target"], widest.label
    (high, high_value, n_high), (low, low_value, n_low) = widest.high, widest.low
    if widest.rate == "calibration":
        above, below = (f"{points(value)} above" if value >= 0 else f"{points(-value)} below" for value in
                        (high_value, low_value))  # fmt: skip
        return (
            f"Of group {high}, the share whose {target} is {label} lies {above} the mean score of {subject} "
            f"({count(n_high, 'row')}), of group {low} {below} it ({count(n_low, 'row')})"
        )
    both = (
        f"{percent(high_value)} in group {high} (of {round(n_high):,}) and {percent(low_value)} in group {low} "
        f"(of {round(n_low):,})"
    )
    if widest.rate == "selection_rate":
        return f"{capital(subject)} answers {label} for {both}"
    if widest.rate == "fpr":
        return f"Of the people whose {target} is not {label}, {subject} answers {label} for {both}"
    most = "" if result.settings["pos_label"] is not None else ", the widest difference of all classes"
    return f"Of the people whose {target} is {label}, {subject} recognises {both}{most}"


def _four_fifths(result: "TableAudit", method: str) -> str:
    row = result.table.loc[method]
    ratio, lower, upper = (row[f"selection_ratio{end}"] for end in ("", "_lower", "_upper"))
    if math.isnan(ratio) or result.settings["pos_label"] is None:
        return ""
    told = (
        f"Four-fifths rule: the group that is answered {result.settings['pos_label']} least often gets {ratio:.2f} of "
        f"the rate of the group that gets it most often ({lower:.2f} to {upper:.2f}, {_rows(result, method)})"
    )
    if upper < FOUR_FIFTHS:
        return f"{told}, which is below 0.8."
    return f"{told}, which is not below 0.8." if lower >= FOUR_FIFTHS else f"{told}; it may lie on either side of 0.8."


def _assumed(result: "TableAudit") -> str:
    if not result.settings["assumed_positive"]:
        return ""
    return (
        f"That {result.settings['pos_label']} is the favourable outcome is assumed: if it is not, who loses is told "
        "the wrong way round. Name the favourable one with --positive LABEL (pos_label= in Python)."
    )


def _other_system(result: "TableAudit", name: str) -> str:
    return " ".join([*_finding(result, name), _four_fifths(result, name)]).strip()


def _within_strata(result: "TableAudit") -> str:
    row = _adjusted(result)
    if row is None:
        return ""
    controls = listed(result.settings.get("control", ()))
    return (
        f"Among people with the same {controls}, the {fairness_words(result.fairness).name} of "
        f"{called(result, result.reference)} is {points(row['gap'])} ({span(row['lower'], row['upper'])}, "
        f"{p_text(row['p_value'])})."
    )


def _too_few(result: "TableAudit") -> str:
    parts = [f"{listed(names)} ({attribute})" for attribute, names in result.too_few.items() if len(names)]
    return f"Too few rows to say anything of {'; '.join(parts)}: no gap above is about them." if parts else ""


def _choice(result: "TableAudit", alternative: str | None) -> str:
    if len(result.table) == 1 or not has_methods(result):
        return ""
    if result.best != result.reference:
        return " ".join(filter(None, [_told_method(result, result.best, "chosen"), _passed_over(result, alternative)]))
    if alternative is not None:
        return _passed_over(result, alternative)
    fairer = _surely_fairer(result)
    if fairer:
        return (
            f"No method is surely fairer within {points(result.settings['relaxation_threshold'])} of accuracy. The "
            f"cheapest that is: {_told_method(result, fairer[0], '')}"
        )
    better = " that is better than one answer for everybody" if result.table["constant"].astype(bool).any() else ""
    return (
        f"No other method{better} has a gap that can be told to be narrower than that of {called(result, result.best)}."
    )


def _passed_over(result: "TableAudit", method: str | None) -> str:
    if method is None:
        return ""
    row = result.table.loc[method]
    if bool(row["needs_groups"]):
        why = "it must be told the group when it answers"
    else:
        why = "the choice is made on validation rows, and there it did not win"
    return f"{_told_method(result, method, '')} It was not chosen: {why}."


def _told_method(result: "TableAudit", method: str, chosen: str) -> str:
    """Gap, change and cost of a method against the reference."""
    row, reference, metric = result.table.loc[method], result.table.loc[result.reference], result.fairness
    change, lower, upper = (row[f"{metric}_change{end}"] for end in ("", "_lower", "_upper"))
    words = fairness_words(metric)
    told = f"{capital(method)} {f'is chosen: its {words.name}' if chosen else f'has {words.one}'}"
    if math.isnan(row[metric]):
        told = f"{capital(method)} is chosen by its accuracy: it has no gap that can be computed"
    else:
        told += (
            f"{' is' if chosen else ' of'} {points(row[metric])} ({_interval(result, method)}, {_rows(result, method)})"
        )
    if chosen and row[metric] >= reference[metric]:
        told += f", which is not below the {points(reference[metric])} of {called(result, result.reference)}"
    if not math.isnan(change):
        told += f", a change of {span(lower, upper, '+')} on the rows that both answer"
        if lower <= 0 <= upper:
            told += ", which may be chance"
        elif lower > 0:
            told += ": it is wider"
    ends = ("", "_lower", "_upper")
    gained = difference_of_independent(*([one[f"accuracy{end}"] for end in ends] for one in (reference, row)))
    if gained[0] < 0:
        price = f"It costs {points(-gained[0])} of accuracy ({span(-gained[2], -gained[1])}"
    else:
        price = f"It costs no accuracy ({points(gained[0])} more, {span(gained[1], gained[2], '+')}"
    accuracies = f"{percent(row['accuracy'])} instead of {percent(reference['accuracy'])}"
    if row["rows"] != reference["rows"]:
        accuracies += f", {_rows(result, method)} against {_rows(result, result.reference)}"
    return f"{told}. {price}; {accuracies})."


def _threshold(result: "TableAudit") -> str:
    """Say how the choice was made, in the figures of the rows that it was made on."""
    if result.best == result.reference or not has_methods(result):
        return ""
    table, measure = result.table, _measure(result)
    name = f"validation_{measure}"
    words = measure.replace("_", " ")
    behind = float(table.loc[result.reference, name] - table.loc[result.best, name])
    if math.isnan(behind):
        return ""
    there = f"{points(abs(behind))} {'behind' if behind > 0 else 'ahead of'} {called(result, result.reference)}"
    return (
        f"The choice was made on validation rows: the narrowest gap, by more than one standard error, within "
        f"{points(result.settings['relaxation_threshold'])} of the {words} of {called(result, result.reference)}. "
        f"There {result.best} is {there} ({percent(table.loc[result.best, name])} against "
        f"{percent(table.loc[result.reference, name])}); the cost above is that of the rows that are named there."
    )


def _leak(result: "TableAudit", method: str) -> str:
    row = result.table.loc[method]
    if math.isnan(row["leakage"]):
        return ""
    attribute = " and ".join(result.settings["sensitive"])
    advantage, auc = (
        [row[f"{name}{end}"] for end in ("", "_lower", "_upper")] for name in ("advantage", "leakage_auc")
    )
    area = f"AUC {auc[0]:.2f}, {auc[1]:.2f} to {auc[2]:.2f}" if not math.isnan(auc[0]) else "AUC undefined"
    told = (
        f"From what {called(result, method)} gives away, the strongest attacker tells the {attribute} of "
        f"{percent(row['leakage'])} ({span(row['leakage_lower'], row['leakage_upper'])}): "
    )
    above = f"{points(abs(advantage[0]))} {'above' if advantage[0] >= 0 else 'below'}"
    told += f"{above} always naming the largest group ({span(*advantage[1:], sign='+')}; {area})"
    if auc[1] <= 0.5 <= auc[2] and advantage[1] <= 0 <= advantage[2]:
        return f"{told}, which these rows cannot tell from guessing."
    return f"{told}, better than guessing." if auc[1] > 0.5 or advantage[1] > 0 else f"{told}."


def _privacy(result: "TableAudit", private: str | None) -> str:
    if not has_methods(result):
        return ""
    row = result.table.loc[result.best]
    if private is None:
        if np.isfinite(result.table["epsilon"].astype(float)).any():
            return "No private method is better than one answer for everybody without being told the group."
        return "None of these methods protects anybody: no epsilon is finite."
    chosen = result.table.loc[private]
    level = f"epsilon = {chosen['epsilon']:.4g}" + (f", delta = {chosen['delta']:.0e}" if chosen["delta"] > 0 else "")
    if private == result.best:
        return f"{capital(private)} protects {row['protects']}, at {level}."
    cost = row["accuracy"] - chosen["accuracy"]
    price = f"{points(cost)} less accurate" if cost > 0 else "no less accurate"
    gap = f" and has a gap of {points(chosen[result.fairness])} ({_interval(result, private)})"
    gap = "" if math.isnan(chosen[result.fairness]) else gap
    lacks = f"{capital(called(result, result.best))} protects nobody. " if math.isinf(row["epsilon"]) else ""
    return (
        f"{lacks}The choice among the private methods is {private}: it protects {chosen['protects']} ({level}), is "
        f"{price} than {result.best}{gap}."
    )
