"""What the tables of an audit say about a gap: whether it is there, and which groups it is about."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from skfairdp.table_audit._plain_words import fairness_words, group_name

if TYPE_CHECKING:
    from skfairdp.table_audit._table_audit import TableAudit

_SIGNIFICANT = 0.05


@dataclass(frozen=True)
class WidestDifference:
    """The two groups that a gap is about, and the rate in which they differ.

    Attributes
    ----------
    rate : str
        ``"tpr"``, ``"fpr"``, ``"selection_rate"`` or ``"calibration"``.
    label : object
        The class whose rate it is.
    high, low : (group, value, number of rows)
        The ends. They are different groups, or else there is no such difference.
    """

    rate: str
    label: Any
    high: tuple[str, float, float]
    low: tuple[str, float, float]


def gap_state(result: "TableAudit", method: str) -> str:
    """Tell whether a gap is ``"there"``, ``"unclear"``, ``"chance"`` or ``"undefined"``.

    The p-value and the interval answer slightly different questions; where they disagree, it is unclear.
    """
    row, metric = result.table.loc[method], result.fairness
    if math.isnan(row[metric]):
        return "undefined"
    p_value, apart = row[f"{metric}_p_value"], row[f"{metric}_lower"] > 0
    if math.isnan(p_value):
        return "there" if apart else "chance"
    if (p_value <= _SIGNIFICANT) != apart:
        return "unclear"
    return "there" if apart else "chance"


def widest_difference(result: "TableAudit", method: str) -> WidestDifference | None:
    """Find the two groups and the rate that a gap is about; None where no two groups differ.

    Groups with too few rows to say anything take no part.
    """
    row = result.table.loc[method]
    attribute = " x ".join(result.settings["sensitive"])
    ends = [group_name(row["highest_group"]), group_name(row["lowest_group"])]
    few = set(map(str, result.too_few.get(attribute, ())))
    if result.fairness == "calibration_gap":
        rates = _calibration_as_rates(result)
    else:
        rates = result.group_rates
        shown = rates["rate"].isin(fairness_words(result.fairness).rates)
        if result.settings["pos_label"] is not None:
            shown &= rates["class"] == result.settings["pos_label"]
        rates = rates[shown]
    rates = rates[(rates["method"] == method) & (rates["attribute"] == attribute) & rates["value"].notna()]
    rates = rates[rates["group"].isin(ends) if None not in ends else ~rates["group"].isin(few)]
    widest = None
    for (rate, label), part in rates.groupby(["rate", "class"], sort=False):
        high, low = part.loc[part["value"].idxmax()], part.loc[part["value"].idxmin()]
        if high["value"] > low["value"] and (widest is None or high["value"] - low["value"] > widest[0]):
            widest = (high["value"] - low["value"], rate, label, high, low)
    if widest is None:
        return None
    _, rate, label, high, low = widest
    return WidestDifference(
        rate, label, *((str(end["group"]), float(end["value"]), float(end["trials"])) for end in (high, low))
    )


def _calibration_as_rates(result: "TableAudit") -> pd.DataFrame:
    """How far each group's share of the favourable label lies above its mean score, laid out as a rate."""
    columns = ["method", "attribute", "group", "rate", "class", "value", "trials"]
    if result.calibration is None:
        return pd.DataFrame(columns=columns)
    whole = result.calibration[result.calibration["bin"].astype(str) == "all"]
    excess = whole["observed"] - whole["mean_score"]
    label = result.settings["pos_label"]
    return whole.assign(rate="calibration", value=excess, trials=whole["n"]).assign(**{"class": label})[columns]
