"""The same system at two dates: what has changed, and whether that is more than chance."""

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from skfairdp._validation import check_choice, check_number
from skfairdp.table_audit._plain_words import (
    FAIRNESS_WORDS,
    capital,
    difference_of_independent,
    fairness_words,
    listed,
    percent,
    points,
    span,
)
from skfairdp.table_audit._table_audit import SCHEMA_VERSION, TableAudit

#: Figures that are compared beside the gap; each has an interval in an audit.
_FIGURES = ("accuracy", "selection_ratio", "leakage", "leakage_auc")
_ENDS = ("", "_lower", "_upper")


@dataclass(frozen=True)
class AuditComparison:
    """What changed between two audits.

    Attributes
    ----------
    table : DataFrame
        One row for each method or system that both audits have. For the gap, ``accuracy``, ``selection_ratio``,
        ``leakage`` and ``leakage_auc``: ``_before``, ``_after``, and ``_change`` with ``_change_lower`` and
        ``_change_upper``.
    fairness : str
        The fairness metric.
    guarded : tuple of str
        The rows that decide whether things got worse: systems that exist already, or without one the reference.
    sentences : tuple of str
        The changes in words.

    Examples
    --------
    >>> from skfairdp import audit_table
    >>> from skfairdp.datasets import make_biased_classification
    >>> from skfairdp.table_audit import compare_audits
    >>> frame = make_biased_classification(300, group_shift=3.0, as_frame=True, random_state=0).frame
    >>> frame["vendor"] = (frame["x0"] > 0).astype(int)
    >>> roles = {"target": "target", "sensitive": "group", "predictions": "vendor", "methods": "none", "pos_label": 1}
    >>> audit = audit_table(frame, **roles, random_state=0, verbose=False)
    >>> compare_audits(audit, audit).guarded
    ('vendor',)
    """

    table: pd.DataFrame
    fairness: str
    guarded: tuple[str, ...]
    sentences: tuple[str, ...] = field(repr=False)

    def reasons_to_fail(self, most_points: float | None = None) -> list[str]:
        """Say which of the guarded gaps grew.

        Parameters
        ----------
        most_points : float or None
            Growth in percentage points that is allowed. None allows what may be chance: growth whose 95% interval
            holds 0.

        Returns
        -------
        list of str
            Reasons; empty if no gap grew. A gap that is undefined cannot be checked, and is a reason too.
        """
        if most_points is not None:
            check_number(most_points, "most_points", "a number of at least 0", lambda number: number >= 0)
        name, reasons = fairness_words(self.fairness).name, []
        for method in self.guarded:
            row = self.table.loc[method]
            change, lower, upper = (row[f"{self.fairness}_change{end}"] for end in _ENDS)
            if math.isnan(change):
                reasons.append(f"the {name} of {method} is undefined in one of the audits")
            elif most_points is None and lower > 0:
                reasons.append(f"the {name} of {method} grew by {points(change)} ({span(lower, upper, '+')})")
            elif most_points is not None and 100 * change > most_points:
                reasons.append(f"the {name} of {method} grew by {points(change)}, and {most_points:g} are allowed")
        return reasons

    def to_text(self) -> str:
        """Write the changes as plain text."""
        return "\n".join(self.sentences)


def compare_audits(a: Any, b: Any) -> AuditComparison:
    """Compare two audits of the same system, an earlier and a later one.

    Parameters
    ----------
    a : TableAudit, dict or path
        The earlier audit: the result itself, ``result.to_dict()``, or the file that ``result.to_json`` wrote.
    b : TableAudit, dict or path
        The later one.

    Returns
    -------
    AuditComparison
        Changes with 95% intervals.

    Raises
    ------
    ValueError
        The audits cannot be compared: they are of another version of the document, of another target, favourable label,
        fairness metric or groups, or they have no system and no reference in common.

    Notes
    -----
    The two audits are taken as independent: their intervals are combined in quadrature, each end of a change from
    the ends that pull it there [1]_. Audits that share rows mostly err together; the interval is then wider than it
    need be.

    References
    ----------
    .. [1] G. Y. Zou, A. Donner, "Construction of Confidence Limits About Effect Measures: a General Approach",
       Statistics in Medicine 2008.

    Examples
    --------
    >>> from skfairdp import audit_table
    >>> from skfairdp.datasets import make_biased_classification
    >>> from skfairdp.table_audit import compare_audits
    >>> frame = make_biased_classification(300, group_shift=3.0, as_frame=True, random_state=0).frame
    >>> roles = {"target": "target", "sensitive": "group", "methods": ["leace"], "verbose": False}
    >>> audit = audit_table(frame, **roles, random_state=0)
    >>> comparison = compare_audits(audit, audit)
    >>> float(comparison.table.loc["leace", "tpr_gap_change"]), comparison.reasons_to_fail()
    (0.0, [])
    """
    before, after = _document(a, "a"), _document(b, "b")
    try:
        return _compare_documents(before, after)
    except (TypeError, KeyError, AttributeError, IndexError) as error:  # a document that somebody has changed
        raise ValueError(
            "the audits cannot be compared: one of them is not as an audit writes it "
            f"({type(error).__name__}: {error})."
        ) from None


def _compare_documents(before: dict[str, Any], after: dict[str, Any]) -> AuditComparison:
    _check_comparable(before, after)
    fairness = before["fairness"]
    rows = [{row["method"]: row for row in document["table"]} for document in (before, after)]
    common = [method for method in rows[0] if method in rows[1]]
    guarded = tuple(name for name in before["systems"] if name in after["systems"])
    if not guarded:
        references = dict.fromkeys([before["reference"], after["reference"]])
        guarded = tuple(name for name in references if name in common)
    if not guarded:
        raise ValueError(
            f"the audits have no system and no reference in common: a has {listed(rows[0])}, b has {listed(rows[1])}."
        )
    changes = {method: _changes(rows[0][method], rows[1][method], (fairness, *_FIGURES)) for method in common}
    table = pd.DataFrame(list(changes.values()), index=pd.Index(common, name="method"))
    sentences = [sentence for method in common for sentence in _sentences(method, table.loc[method], fairness)]
    sentences += _remarks(before, after, rows, common)
    return AuditComparison(table, fairness, guarded, tuple(sentences))


def _document(audit: Any, name: str) -> dict[str, Any]:
    """Return an audit as the document that JSON holds."""
    if isinstance(audit, TableAudit):
        return audit.to_dict()
    if isinstance(audit, str | os.PathLike):
        name = str(audit)
        with open(audit, encoding="utf-8") as file:
            try:
                audit = json.load(file)
            except ValueError as error:  # neither text nor JSON
                raise ValueError(f"{name} is not the JSON of an audit: {error}") from None
    if not isinstance(audit, Mapping):
        raise ValueError(f"{name} is not the JSON of an audit; make one with `skfairdp audit ... --json FILE`.")
    version = str(audit.get("schema_version", "none"))
    if version.split(".")[0] != SCHEMA_VERSION.split(".")[0]:
        raise ValueError(
            f"{name} has schema version {version}, and this skfairdp reads {SCHEMA_VERSION}: write it again with "
            "`skfairdp audit ... --json FILE`."
        )
    missing = [
        key for key in ("table", "fairness", "settings", "systems", "reference", "group_rates") if key not in audit
    ]
    if missing:
        raise ValueError(f"{name} is not a whole audit: it lacks {listed(missing)}.")
    _check_whole(audit, name)
    return dict(audit)


def _check_whole(document: Mapping[str, Any], name: str) -> None:
    """Refuse a document that was torn or written by hand, by the first thing that it lacks."""
    fairness = check_choice(str(document["fairness"]), list(FAIRNESS_WORDS), "fairness metric")
    figures = [f"{figure}{end}" for figure in (fairness, *_FIGURES) for end in _ENDS]
    for key, wanted in (("table", ["method", *figures]), ("group_rates", ["attribute", "group"])):
        rows = document[key]
        if not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
            raise ValueError(f"{name} is not a whole audit: its {key} is no list of rows.")
        if not rows:
            raise ValueError(f"{name} is not a whole audit: its {key} is empty.")
        missing = next((column for row in rows for column in wanted if column not in row), None)
        if missing is not None:
            raise ValueError(f"{name} is not a whole audit: a row of its {key} lacks {missing}.")
    settings = document["settings"]
    if not isinstance(settings, Mapping):
        raise ValueError(f"{name} is not a whole audit: its settings are no mapping.")
    missing = [setting for setting in ("target", "sensitive", "pos_label", "classes") if setting not in settings]
    if missing:
        raise ValueError(f"{name} is not a whole audit: its settings lack {listed(missing)}.")


def _check_comparable(before: dict[str, Any], after: dict[str, Any]) -> None:
    one, other = before["settings"], after["settings"]
    asked = [
        ("target", one["target"], other["target"]),
        ("sensitive columns", one["sensitive"], other["sensitive"]),
        ("fairness metric", before["fairness"], after["fairness"]),
        ("favourable label", one["pos_label"], other["pos_label"]),
    ]
    if before["fairness"] == "grms":
        asked.append(("classes", sorted(map(str, one["classes"])), sorted(map(str, other["classes"]))))
    for what, here, there in asked:
        if here != there:
            raise ValueError(f"the audits cannot be compared: the {what} of a: {here!r}, of b: {there!r}.")
    groups, others = _counted_groups(before), _counted_groups(after)
    if groups != others:
        parts = [
            f"only {name} has enough rows of {listed(sorted(only))}"
            for name, only in (("a", groups - others), ("b", others - groups))
            if only
        ]
        raise ValueError(
            f"the audits cannot be compared, because their gaps are between other groups: {'; '.join(parts)}."
        )


def _counted_groups(document: dict[str, Any]) -> set[str]:
    """The groups that a gap may be about."""
    attribute = " x ".join(map(str, document["settings"]["sensitive"]))
    few = set(document.get("too_few", {}).get(attribute, ()))
    return {row["group"] for row in document["group_rates"] if row["attribute"] == attribute} - few


def _number(value: Any) -> float:
    return math.nan if value is None else float(value)


def _changes(before: dict[str, Any], after: dict[str, Any], figures: tuple[str, ...]) -> dict[str, float]:
    found: dict[str, float] = {}
    for name in figures:
        one, other = ([_number(row[f"{name}{end}"]) for end in _ENDS] for row in (before, after))
        for value, lower, upper in (one, other):
            if lower > upper or value < lower or value > upper:
                found = f"{value:g}, outside of its interval {lower:g} to {upper:g}"
                raise ValueError(f"the audits cannot be compared: {name} of {before['method']} is {found}.")
        found |= {f"{name}_before": one[0], f"{name}_after": other[0]}
        found |= dict(zip((f"{name}_change{end}" for end in _ENDS), difference_of_independent(one, other)))
    return found


def _sentences(method: str, row: pd.Series, fairness: str) -> list[str]:
    name = fairness_words(fairness).name
    gap, lower, upper = (row[f"{fairness}_change{end}"] for end in _ENDS)
    if math.isnan(gap):
        first = f"{capital(method)}: the {name} is undefined in one of the audits."
    else:
        went = "grew" if gap > 0 else "shrank" if gap < 0 else "stayed"
        chance = ", which may be chance" if lower <= 0 <= upper else ""
        ends = f"from {points(row[f'{fairness}_before'])} to {points(row[f'{fairness}_after'])}"
        first = f"{capital(method)}: the {name} {went} {ends}, a change of {span(lower, upper, '+')}{chance}."
    others = [
        f"{word} {show(row[f'{figure}_before'])} to {show(row[f'{figure}_after'])} "
        f"({_ends(figure, row)}{_chance(row, figure)})"
        for figure, word, show in (
            ("accuracy", "accuracy", percent),
            ("selection_ratio", "four-fifths ratio", "{:.2f}".format),
            ("leakage", "leakage", percent),
            ("leakage_auc", "its AUC", "{:.2f}".format),
        )
        if not math.isnan(row[f"{figure}_change"])
    ]
    return [f"{first} {capital('; '.join(others))}." if others else first]


def _ends(figure: str, row: pd.Series) -> str:
    lower, upper = row[f"{figure}_change_lower"], row[f"{figure}_change_upper"]
    return span(lower, upper, "+") + " points" if figure in ("accuracy", "leakage") else f"{lower:+.2f} to {upper:+.2f}"


def _chance(row: pd.Series, figure: str) -> str:
    return "" if row[f"{figure}_change_lower"] <= 0 <= row[f"{figure}_change_upper"] else ", more than chance"


def _remarks(before: dict[str, Any], after: dict[str, Any], rows: list[dict[str, Any]], common: list[str]) -> list[str]:
    remarks = []
    digests = [document["settings"].get("file_sha256") for document in (before, after)]
    if digests[0] is not None and digests[0] == digests[1]:
        remarks.append("Both audits read the same file: what differs is chance or the settings, not the data.")
    for setting in ("weights", "control", "person", "score_threshold"):
        one, other = (document["settings"].get(setting) for document in (before, after))
        if one != other:
            remarks.append(f"The audits differ in {setting}: {one!r} in a, {other!r} in b.")
    for name, mine in zip(("a", "b"), rows):
        if alone := [method for method in mine if method not in common]:
            remarks.append(f"Only in {name}: {listed(alone)}.")
    return remarks
