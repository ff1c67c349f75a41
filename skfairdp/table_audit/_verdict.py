"""The findings in plain words."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from skfairdp.model_selection import RelaxationThreshold

if TYPE_CHECKING:
    from skfairdp.table_audit._table_audit import TableAudit

_FEW_ROWS = 30  # below, a rate is known to about 18 points at best
_SMALL_GAP = 0.02  # below two points, and not distinguishable from none, a gap is called small


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
    """

    headline: str
    sentences: tuple[str, ...]
    private: str | None


def make_verdict(result: "TableAudit") -> Verdict:
    """Put the findings into words."""
    reference = result.reference
    private = _best_private(result)
    sentences = [_unfairness(result, reference), _leak(result, reference), _choice(result, reference)]
    sentences.append(_privacy(result, private))
    return Verdict(_headline(result, reference), tuple(s for s in sentences if s), private)


def _best_private(result: "TableAudit") -> str | None:
    private = result.table[np.isfinite(result.table["epsilon"])]
    if private.empty:
        return None
    accuracy, fairness = "validation_accuracy", f"validation_{result.fairness}"
    if not np.isfinite(private[fairness]).any():
        return str(private[accuracy].idxmax())
    rule = RelaxationThreshold(
        result.settings["relaxation_threshold"],
        accuracy=accuracy,
        fairness=fairness,
        directions={accuracy: "max", fairness: "min"},
    )
    return str(private.index[rule(private)])


def points(value: float) -> str:
    """Write a difference of rates in percentage points."""
    if math.isnan(value):
        return "undefined"
    text = f"{100 * value:.1f}"
    return f"{text} point" if text == "1.0" else f"{text} points"


def percent(value: float) -> str:
    """Write a rate."""
    return "undefined" if math.isnan(value) else f"{100 * value:.1f}%"


def _headline(result: "TableAudit", reference: str) -> str:
    row, best = result.table.loc[reference], result.table.loc[result.best]
    gap = row[result.fairness]
    if math.isnan(gap):
        return "No gap between groups can be computed: a class is missing in all groups but one."
    if len(result.table) == 1:
        return f"The gap between groups is {points(gap)}."
    if reference == result.best:
        return (
            f"No method is fairer without giving up more than {points(result.settings['relaxation_threshold'])} of "
            f"accuracy; the gap is {points(gap)}."
        )
    if best[f"{result.fairness}_change_upper"] < 0:
        return f"{_name(result.best)} narrows the gap from {points(gap)} to {points(best[result.fairness])}."
    if best[result.fairness] < gap:
        return (
            f"{_name(result.best)} is chosen; its gap of {points(best[result.fairness])} instead of {points(gap)} may "
            "still be chance."
        )
    return f"{_name(result.best)} is chosen, but on the test rows its gap is no narrower than {points(gap)}."


def _name(method: str) -> str:
    return method.upper() if method in ("leace", "inlp", "pate", "federate") else method[:1].upper() + method[1:]


def _extremes(result: "TableAudit", method: str) -> tuple[Any, Any] | None:
    """The groups with the largest and the smallest true positive rate."""
    rates = result.group_rates
    attribute = " x ".join(result.settings["sensitive"])
    rows = rates[
        (rates["method"] == method)
        & (rates["attribute"] == attribute)
        & (rates["rate"] == "tpr")
        & (rates["class"] == result.settings["pos_label"])
        & rates["value"].notna()
    ]
    if len(rows) < 2:
        return None
    return rows.loc[rows["value"].idxmax()], rows.loc[rows["value"].idxmin()]


def _unfairness(result: "TableAudit", reference: str) -> str:
    row = result.table.loc[reference]
    gap, low, high = (row[f"{result.fairness}{end}"] for end in ("", "_lower", "_upper"))
    found = _extremes(result, reference)
    if math.isnan(gap):
        return ""
    interval = f"{100 * low:.1f} to {100 * high:.1f} with 95% confidence"
    if found is None:
        return (
            f"Between groups, the true positive rates of the {reference} model have a root mean square gap (GRMS) of "
            f"{points(gap)} ({interval})."
        )
    most, least = found
    sentence = (
        f"Of the people whose {result.settings['target']} is {result.settings['pos_label']}, the {reference} model "
        f"finds {percent(most['value'])} in group {most['group']} and {percent(least['value'])} in group "
        f"{least['group']}: a gap of {points(gap)} ({interval})."
    )
    fewest = most if most["trials"] < least["trials"] else least
    if fewest["trials"] < _FEW_ROWS:
        return sentence + (
            f" Only {int(fewest['trials'])} of them are in group {fewest['group']}: chance alone moves this gap a lot. "
            "Merge small groups, or audit one column at a time."
        )
    if low < _SMALL_GAP / 2 and gap < _SMALL_GAP:
        sentence += " That is small, and may be chance."
    return sentence


def _leak(result: "TableAudit", reference: str) -> str:
    row = result.table.loc[reference]
    attribute = " and ".join(result.settings["sensitive"])
    share = f"{percent(row['leakage'])} of the people"
    if row["leakage_lower"] <= row["majority"]:
        return (
            f"From what the {reference} model gives away, the strongest attacker tells the {attribute} of {share}, "
            f"which is no better than always naming the largest group ({percent(row['majority'])})."
        )
    return (
        f"From what the {reference} model gives away, an attacker tells the {attribute} of {share}; always naming the "
        f"largest group is right for {percent(row['majority'])}."
    )


def _choice(result: "TableAudit", reference: str) -> str:
    best, row = result.table.loc[result.best], result.table.loc[reference]
    if result.best == reference:
        return ""
    cost = row["accuracy"] - best["accuracy"]
    price = f"costs {points(cost)} of accuracy" if cost > 0 else f"costs no accuracy ({points(-cost)} more)"
    low, high = (100 * best[f"{result.fairness}_change_{end}"] for end in ("lower", "upper"))
    return (
        f"The fairest method within {points(result.settings['relaxation_threshold'])} of the best accuracy is "
        f"{result.best}: its gap is {points(best[result.fairness])} (a change of {low:+.1f} to {high:+.1f} with 95% "
        f"confidence), and it {price}."
    )


def _privacy(result: "TableAudit", private: str | None) -> str:
    row = result.table.loc[result.best]
    if private is None:
        return "None of these methods protects anybody: no epsilon is finite."
    chosen = result.table.loc[private]
    level = f"epsilon = {chosen['epsilon']:.4g}" + (f", delta = {chosen['delta']:.0e}" if chosen["delta"] > 0 else "")
    if private == result.best:
        return f"It protects {row['protects']}, at {level}."
    cost = row["accuracy"] - chosen["accuracy"]
    price = f"{points(cost)} less accurate" if cost > 0 else "no less accurate"
    lacks = f"{_name(result.best)} protects nobody. " if math.isinf(row["epsilon"]) else ""
    return (
        f"{lacks}The choice among the private methods is {private}: it protects {chosen['protects']} ({level}), is "
        f"{price} than {result.best}, and has a gap of {points(chosen[result.fairness])}."
    )
