"""How numbers, gaps and lists are put into words, on every page, terminal and document alike."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from skfairdp._validation import check_choice


@dataclass(frozen=True)
class FairnessWords:
    """What a fairness metric is called and means.

    Attributes
    ----------
    name : str
        For the header of a column and the label of an axis.
    definition : str
        The idea of fairness that it measures.
    meaning : str
        What it is; ``{positive}`` stands for the favourable label.
    rates : tuple of str
        The rates by group whose difference it is.
    """

    name: str
    definition: str
    meaning: str
    rates: tuple[str, ...]

    @property
    def one(self) -> str:
        """The name with its article."""
        return f"{'an' if self.name[0] in 'aeiou' else 'a'} {self.name}"


FAIRNESS_WORDS = {
    "tpr_gap": FairnessWords(
        "TPR gap",
        "equal opportunity",
        "the largest difference between two groups in the share of “{positive}” rows that are recognised",
        ("tpr",),
    ),
    "grms": FairnessWords(
        "GRMS",
        "equal opportunity in every class",
        "the root mean square, over the classes, of the largest difference between two groups in the share of rows of "
        "the class that are recognised",
        ("tpr",),
    ),
    "equalized_odds_gap": FairnessWords(
        "equalised-odds gap",
        "equalised odds",
        "the larger of two differences between groups: in the share of “{positive}” rows that are recognised, and in "
        "the share of other rows that are answered “{positive}”",
        ("tpr", "fpr"),
    ),
    "demographic_parity_gap": FairnessWords(
        "selection gap",
        "demographic parity",
        "the largest difference between two groups in the share of rows that are answered “{positive}”",
        ("selection_rate",),
    ),
    "calibration_gap": FairnessWords(
        "calibration gap",
        "calibration",
        "the largest difference between two groups in how far the share of “{positive}” rows lies above the mean score",
        (),
    ),
}

RATE_NAMES = {
    "selection_rate": "selected",
    "tpr": "true positive rate",
    "fpr": "false positive rate",
    "ppv": "precision (PPV)",
    "accuracy": "accuracy",
}


def fairness_words(metric: str) -> FairnessWords:
    """Return the words of a fairness metric."""
    return FAIRNESS_WORDS[check_choice(metric, list(FAIRNESS_WORDS), "fairness metric")]


def points(value: float) -> str:
    """Write a difference of rates in percentage points."""
    if math.isnan(value):
        return "undefined"
    text = _one_digit(value)
    return f"{text} point" if text in ("1.0", "-1.0") else f"{text} points"


def percent(value: float) -> str:
    """Write a rate."""
    return "undefined" if math.isnan(value) else f"{100 * value:.1f}%"


def span(lower: float, upper: float, sign: str = "") -> str:
    """Write the ends of an interval of a rate or of a difference of rates, in points."""
    if math.isnan(lower) or math.isnan(upper):
        return "interval undefined"
    return f"{_one_digit(lower, sign)} to {_one_digit(upper, sign)}"


def _one_digit(value: float, sign: str = "") -> str:
    text = f"{100 * value:{sign}.1f}"
    return text.replace("-0.0", "+0.0" if sign else "0.0") if float(text) == 0 else text  # there is no negative zero


def p_text(p_value: float) -> str:
    """Write a p-value."""
    return "p undefined" if math.isnan(p_value) else "p < 0.001" if p_value < 0.0005 else f"p = {p_value:.3f}"


def count(number: float, noun: str) -> str:
    """Write how many there are."""
    shown = f"{round(number):,}"
    return f"{shown} {noun}" if shown == "1" else f"{shown} {noun}s"


def listed(names: Iterable[Any], most: int = 8) -> str:
    """Write a list, of which at most ``most`` are named."""
    names = [str(name) for name in names]
    if len(names) > most:
        names = [*names[: most - 1], f"{len(names) - most + 1} more"]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}" if names else "none"


def capital(text: str) -> str:
    """Write the first letter large."""
    return text[:1].upper() + text[1:]


def group_name(value: Any) -> str | None:
    """Return a group as the tables by group call it; None where there is none."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    return " x ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def difference_of_independent(before: Sequence[float], after: Sequence[float]) -> tuple[float, float, float]:
    """Return a difference with its interval, of two (value, lower, upper) that were estimated on different rows.

    Each end is as far from the difference as the ends that pull it there, in quadrature (Zou and Donner,
    "Construction of confidence limits about effect measures: a general approach", Statistics in Medicine 2008,
    equation 1). Estimates on the same rows mostly err together, so that the true interval is narrower then.
    """
    (a, a_lower, a_upper), (b, b_lower, b_upper) = before, after
    change = b - a
    return change, change - math.hypot(b - b_lower, a_upper - a), change + math.hypot(b_upper - b, a - a_lower)
