"""What predictions are worth: accuracy, gaps with intervals, rates of every group, calibration of scores."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import accuracy_score, balanced_accuracy_score

from skfairdp.metrics import (
    GapEstimate,
    calibration_by_group,
    estimate_calibration_gap,
    estimate_gap,
    estimate_gap_change,
    estimate_selection_ratio,
    group_rates,
    proportion_bounds,
    shrunken_rates,
    worst_group_accuracy,
)
from skfairdp.table_audit._prepared_table import PreparedTable

#: Gaps that are told beside the one that an audit is about.
_FURTHER_GAPS = ("equalized_odds_gap", "demographic_parity_gap", "accuracy_gap")
#: Rows behind a rate below which a group decides nothing, as long as two larger groups remain: a share of so many rows
#: is known to about 18 points at best.
_FEW_ROWS = 30
#: A model whose balanced accuracy is within this of guessing is no better than one answer for everybody.
_LEAST_GAIN = 0.02
_Z = 1.959964  # 95 % of a normal distribution


@dataclass(frozen=True)
class Answers:
    """What somebody says about some rows of a table.

    Attributes
    ----------
    rows : ndarray of int
        The rows.
    predicted : ndarray
        A class for each of them.
    scores : ndarray or None
        How likely the favourable class is, between 0 and 1.
    """

    rows: np.ndarray
    predicted: np.ndarray
    scores: np.ndarray | None = None

    def about(self, rows: np.ndarray) -> "Answers":
        """Return the same answers with rows of the whole table, of which these were a part."""
        return Answers(rows[self.rows], self.predicted, self.scores)

    def among(self, rows: np.ndarray) -> "Answers":
        """Return the answers about those of the given rows that were answered."""
        kept = np.isin(self.rows, rows)
        return Answers(self.rows[kept], self.predicted[kept], None if self.scores is None else self.scores[kept])


def gap_of(table: PreparedTable, answers: Answers, seed: int, metric: str | None = None) -> GapEstimate:
    """Estimate the gap that an audit is about, or another one."""
    return _gap(table, answers, seed, table.fairness if metric is None else metric, table.sensitive)


def _gap(table: PreparedTable, answers: Answers, seed: int, metric: str, sensitive: Any, **more: Any) -> GapEstimate:
    y, known = table.y[answers.rows], _known(table, answers.rows, sensitive) | more

    def estimate(**min_rows: int) -> GapEstimate:
        if metric != "calibration_gap":
            told = {"labels": list(table.classes), "random_state": seed, **_positive(table, metric), **known}
            return estimate_gap(metric, y, answers.predicted, **told, **min_rows)
        if answers.scores is None:
            raise ValueError("calibration is about scores, and it has none.")
        return estimate_calibration_gap(
            y, answers.scores, pos_label=table.pos_label, random_state=seed, **known, **min_rows
        )

    found = estimate(min_rows=_FEW_ROWS)
    return estimate() if math.isnan(found.value) else found


def _known(table: PreparedTable, rows: np.ndarray, sensitive: pd.DataFrame) -> dict[str, Any]:
    weight = None if table.weight is None else table.weight[rows]
    return {"sensitive_features": sensitive.iloc[rows], "sample_weight": weight}


def _positive(table: PreparedTable, metric: str) -> dict[str, Any]:
    """Return the favourable class for metrics that know one."""
    return {} if metric in ("grms", "accuracy_gap") else {"pos_label": table.pos_label}


def change_of_gap(table: PreparedTable, answers: Answers, reference: Answers, seed: int) -> tuple[float, float, float]:
    """Estimate the gap of answers minus that of others about the same rows, with the ends of its interval."""
    common = np.intersect1d(answers.rows, reference.rows)
    one, other = answers.among(common), reference.among(common)
    if np.array_equal(one.predicted, other.predicted) and _same_scores(one, other):
        return 0.0, 0.0, 0.0
    if table.fairness == "calibration_gap":
        first, second = gap_of(table, one, seed), gap_of(table, other, seed)
        value = first.value - second.value
        # Scores of the same rows err together, so that this interval is wider than it would have to be.
        below = math.hypot(first.value - first.lower, second.upper - second.value)
        above = math.hypot(first.upper - first.value, second.value - second.lower)
        return value, value - below, value + above
    known = {"labels": list(table.classes), "random_state": seed, **_positive(table, table.fairness)}
    known |= _known(table, common, table.sensitive)
    both = (table.fairness, table.y[common], one.predicted, other.predicted)
    found = estimate_gap_change(*both, **known, min_rows=_FEW_ROWS)
    if math.isnan(found.value):
        found = estimate_gap_change(*both, **known)
    return found.value, found.lower, found.upper


def _same_scores(one: Answers, other: Answers) -> bool:
    if one.scores is None or other.scores is None:
        return one.scores is other.scores
    return np.array_equal(one.scores, other.scores)


def accuracy_figures(table: PreparedTable, answers: Answers) -> dict[str, float]:
    """Compute accuracy with its interval, balanced accuracy, and whether one answer for everybody would do as well."""
    y, predicted = table.y[answers.rows], answers.predicted
    weight = np.ones(len(y)) if table.weight is None else table.weight[answers.rows]
    n_effective = weight.sum() ** 2 / (weight**2).sum()
    accuracy = float(accuracy_score(y, predicted, sample_weight=weight))
    balanced = float(balanced_accuracy_score(y, predicted, sample_weight=weight))
    lower, upper = proportion_bounds(accuracy * n_effective, n_effective, 0.025)
    return {
        "accuracy": accuracy,
        "accuracy_lower": float(lower),
        "accuracy_upper": float(upper),
        "balanced_accuracy": balanced,
        "constant": _is_constant(y, predicted, balanced, len(table.classes)),
    }


def _is_constant(y: np.ndarray, predicted: np.ndarray, balanced: float, n_classes: int) -> bool:
    """Say whether predictions tell no more than one answer for everybody, beyond what chance explains."""
    _, sizes = np.unique(y, return_counts=True)
    shares = np.unique(predicted, return_counts=True)[1] / len(predicted)
    # The mean of the classes' recalls, each a share of so many rows.
    deviation = math.sqrt((0.25 / sizes).sum()) / len(sizes)
    return bool(shares.max() > 0.995 or balanced < 1 / n_classes + max(_LEAST_GAIN, _Z * deviation))


def figures_of(table: PreparedTable, answers: Answers, seed: int) -> dict[str, Any]:
    """Compute all figures of answers that stand in the table of methods."""
    values: dict[str, Any] = accuracy_figures(table, answers)
    further = _FURTHER_GAPS if table.pos_label is None else ("tpr_gap", *_FURTHER_GAPS)
    for metric in dict.fromkeys([table.fairness, *further]):
        found = gap_of(table, answers, seed, metric)
        values |= {
            metric: found.value,
            f"{metric}_lower": found.lower,
            f"{metric}_upper": found.upper,
            f"{metric}_measured": found.measured,
            f"{metric}_p_value": found.p_value,
        }
        if metric == table.fairness:
            values |= {"highest_group": _group_name(found.highest), "lowest_group": _group_name(found.lowest)}
    y = table.y[answers.rows]
    known = _known(table, answers.rows, table.sensitive)
    values["worst_group_accuracy"] = worst_group_accuracy(y, answers.predicted, **known)
    ratio = (math.nan, math.nan, math.nan)
    if table.pos_label is not None:
        found = estimate_selection_ratio(
            y, answers.predicted, labels=list(table.classes), pos_label=table.pos_label, random_state=seed, **known
        )
        ratio = (found.value, found.lower, found.upper)
    return values | dict(zip(("selection_ratio", "selection_ratio_lower", "selection_ratio_upper"), ratio))


def _group_name(group: Any) -> str | None:
    if group is None:
        return None
    return " x ".join(map(str, group)) if isinstance(group, tuple) else str(group)


def attributes_of(table: PreparedTable) -> dict[str, pd.DataFrame]:
    """Return the sensitive columns that are looked at: each by itself, and all of several crossed."""
    parts = [[name] for name in table.sensitive]
    if len(parts) > 1:
        parts.append(list(table.sensitive))
    # A column may be called "rate" or "class", as columns of the tables that are made of them.
    return {
        " x ".join(names): table.sensitive[names].set_axis([f"column_{j}" for j in range(len(names))], axis=1)
        for names in parts
    }


def groups_with_too_few_rows(table: PreparedTable, answers: Answers, seed: int) -> dict[str, tuple[str, ...]]:
    """List, for each attribute, the groups of which too few rows are known to say anything."""
    return {
        attribute: tuple(str(_group_name(group)) for group in _gap(table, answers, seed, table.fairness, frame).too_few)
        for attribute, frame in attributes_of(table).items()
    }


def rates_of(table: PreparedTable, answers: Answers, seed: int) -> pd.DataFrame:
    """Compute the rates of every group with intervals: of each sensitive column, and of all crossed."""
    frames = []
    for attribute, frame in attributes_of(table).items():
        rates = group_rates(
            table.y[answers.rows],
            answers.predicted,
            labels=list(table.classes),
            interval="exact" if table.weight is None else "bootstrap",
            random_state=seed,
            form="long",
            **_known(table, answers.rows, frame),
        )
        if table.weight is not None:  # how many rows a rate is of, not what they weigh
            known = {"sensitive_features": frame.iloc[answers.rows], "labels": list(table.classes), "form": "long"}
            rates["trials"] = group_rates(table.y[answers.rows], answers.predicted, **known)["trials"]
        groups = rates[list(frame)].astype(str).agg(" x ".join, axis=1)
        rates = rates.drop(columns=list(frame))
        rates.insert(0, "group", groups)
        rates.insert(0, "attribute", attribute)
        frames.append(_with_steadied_rates(table, answers, frame, rates))
    return pd.concat(frames, ignore_index=True)


def _with_steadied_rates(
    table: PreparedTable, answers: Answers, frame: pd.DataFrame, rates: pd.DataFrame
) -> pd.DataFrame:
    """Add what the rates of crossed groups, which are small, are by what the single columns say of them."""
    names = ["steadied", "steadied_lower", "steadied_upper"]
    rates = rates.assign(**dict.fromkeys(names, math.nan))
    if frame.shape[1] == 1 or table.pos_label is None:
        return rates
    known = {"labels": list(table.classes), **_known(table, answers.rows, frame)}
    for rate in dict.fromkeys(rates["rate"]):
        positive = {} if rate == "accuracy" else {"pos_label": table.pos_label}
        found = shrunken_rates(rate, table.y[answers.rows], answers.predicted, **positive, **known)
        found.index = [_group_name(group) for group in found.index]
        here = (rates["rate"] == rate) & ((rates["class"] == table.pos_label) | (rate == "accuracy"))
        rates.loc[here, names] = found.reindex(rates.loc[here, "group"])[["value", "lower", "upper"]].to_numpy()
    return rates


def calibration_of(table: PreparedTable, answers: Answers) -> pd.DataFrame:
    """Compare scores with what came true, by group and range of scores."""
    frames = []
    for attribute, frame in attributes_of(table).items():
        known = _known(table, answers.rows, frame)
        found = calibration_by_group(table.y[answers.rows], answers.scores, pos_label=table.pos_label, **known)
        found["group"] = [_group_name(group) for group in found["group"]]
        frames.append(found.assign(attribute=attribute))
    return pd.concat(frames, ignore_index=True)


def strata_of(table: PreparedTable, answers: Answers, seed: int) -> pd.DataFrame:
    """Estimate the gap within each stratum of the control columns, and with all strata weighted alike."""
    strata = table.control.iloc[answers.rows].agg(" x ".join, axis=1).to_numpy()  # type: ignore[union-attr]
    rows = []
    if table.fairness != "calibration_gap":
        adjusted = _gap(table, answers, seed, table.fairness, table.sensitive, control_features=strata)
        rows.append({"stratum": "all, compared within strata", **_gap_row(adjusted, len(strata))})
    for stratum in np.unique(strata):
        inside = answers.among(answers.rows[strata == stratum])
        if len(np.unique(table.sensitive.iloc[inside.rows].astype(str).agg(" x ".join, axis=1))) < 2:
            rows.append({"stratum": stratum, "n_rows": len(inside.rows)})
        else:
            rows.append({"stratum": stratum, **_gap_row(gap_of(table, inside, seed), len(inside.rows))})
    return pd.DataFrame(rows)


def _gap_row(found: GapEstimate, n_rows: int) -> dict[str, Any]:
    return {
        "n_rows": n_rows,
        "gap": found.value,
        "lower": found.lower,
        "upper": found.upper,
        "p_value": found.p_value,
        "highest_group": _group_name(found.highest),
        "lowest_group": _group_name(found.lowest),
    }
