"""What an audit found."""

import importlib.metadata
import json
import math
import os
import platform
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from skfairdp import __version__
from skfairdp.dp import PrivacyGuarantee
from skfairdp.table_audit._table_checks import TableCheck
from skfairdp.table_audit._terminal_summary import terminal_summary
from skfairdp.table_audit._verdict import Verdict, make_verdict
from skfairdp.table_files import write_text

#: Of the JSON document. The first number grows when a reader of an earlier version would misread it.
SCHEMA_VERSION = "1.0"
_SHOWN = ("numpy", "scipy", "pandas", "scikit-learn", "torch", "skorch")


def versions() -> dict[str, str]:
    """Return the versions of what a result depends on."""
    found = {"skfairdp": __version__, "python": platform.python_version()}
    return found | {name: importlib.metadata.version(name) for name in _SHOWN}


@dataclass(frozen=True)
class TableAudit:
    """The findings of :func:`audit_table`.

    Attributes
    ----------
    table : DataFrame
        One row per method or existing system; ``n_rows`` and ``rows`` (``"all rows"`` or ``"test rows"``) say what it
        was measured on. ``accuracy`` with its interval (``_lower``, ``_upper``), ``balanced_accuracy``; the fairness
        metric, corrected for the chance that widens a largest difference, with ``_lower``, ``_upper``, ``_p_value``
        (of no gap at all), ``_measured`` (as it came out, uncorrected) and ``_change`` from the reference with its
        interval; ``highest_group`` and ``lowest_group`` at the ends of the gap; ``selection_ratio`` (four-fifths
        rule) with its interval, further gaps; ``leakage`` (accuracy of the strongest attacker), its ``advantage``
        over naming the largest group (``majority``) and ``leakage_auc``, each with its interval; ``code_bits``, exact
        ``epsilon`` and ``delta``, whom it ``protects``, ``seconds`` of training. ``kind`` is ``"system"`` (exists
        already), ``"reference"`` or ``"method"``; ``needs_groups`` tells what must be told the group when it answers,
        ``constant`` what is no better than one answer for everybody. The ``validation_`` columns are what the choice
        was made by.
    best : str
        The fairest method among those almost as accurate as the most accurate one; the reference wins ties.
    reference : str
        What others are compared with: the system that exists already if there is one, else the best reference model.
    fairness : {"tpr_gap", "grms", "equalized_odds_gap", "demographic_parity_gap", "calibration_gap"}
        The fairness metric.
    candidates : DataFrame
        Every candidate of every method, with its validation figures.
    group_rates : DataFrame
        Rates of every group with exact 95% intervals, per method.
    leakage : DataFrame
        What every attacker found in what every method gives away, and in the columns themselves.
    guarantees : dict of str to list of PrivacyGuarantee
        Receipts of each method; empty where nothing is protected.
    summaries : dict of str to str
        What each method does.
    models : dict of str to estimator
        The fitted models.
    notes : tuple of str
        What was left out, filled in or undefined.
    settings : dict
        Arguments, seed and sizes.
    versions : dict of str to str
        Of skfairdp and what it stands on.
    command : str
        How to repeat it.
    title : str
        Of the report.
    systems : tuple of str
        Names of systems that exist already: their decisions are in the table that was audited.
    checks : tuple of TableCheck
        What to know of the table before its figures are trusted.
    calibration : DataFrame or None
        Where there are scores: ``method``, ``attribute``, ``group``, ``bin`` (``"all"`` for the whole group), ``n``,
        ``mean_score``, ``observed`` share of the favourable label, ``lower``, ``upper``.
    strata : DataFrame or None
        Where strata are compared within: ``method``, ``gap``, ``lower``, ``upper``, ``p_value``, ``highest_group``,
        ``lowest_group``, and further columns that are shown as they are.
    too_few : dict of str to tuple of str
        For each sensitive attribute the groups with too few rows to say anything; no gap is about them.

    Examples
    --------
    >>> from skfairdp import audit_table
    >>> from skfairdp.datasets import make_biased_classification
    >>> frame = make_biased_classification(400, group_shift=3.0, as_frame=True, random_state=0).frame
    >>> frame["vendor"] = (frame["x0"] > 0).astype(int)
    >>> roles = {"target": "target", "sensitive": "group", "predictions": "vendor", "pos_label": 1}
    >>> audit = audit_table(frame, **roles, methods="none", random_state=0, verbose=False)
    >>> audit.table.index.tolist(), audit.fairness
    (['vendor'], 'tpr_gap')
    """

    table: pd.DataFrame
    best: str
    reference: str
    fairness: str
    candidates: pd.DataFrame = field(repr=False)
    group_rates: pd.DataFrame = field(repr=False)
    leakage: pd.DataFrame = field(repr=False)
    guarantees: dict[str, list[PrivacyGuarantee]] = field(repr=False)
    summaries: dict[str, str] = field(repr=False)
    models: dict[str, Any] = field(repr=False)
    notes: tuple[str, ...] = field(repr=False)
    settings: dict[str, Any] = field(repr=False)
    versions: dict[str, str] = field(repr=False)
    command: str = ""
    title: str = "Audit"
    systems: tuple[str, ...] = ()
    checks: tuple[TableCheck, ...] = field(default=(), repr=False)
    calibration: pd.DataFrame | None = field(default=None, repr=False)
    strata: pd.DataFrame | None = field(default=None, repr=False)
    too_few: dict[str, tuple[str, ...]] = field(default_factory=dict, repr=False)

    @property
    def verdict(self) -> Verdict:
        """The findings in plain words."""
        return make_verdict(self)

    @property
    def best_private(self) -> str | None:
        """The choice among methods with a finite epsilon; None if there is none."""
        return self.verdict.private

    def plot(self, ax: Any = None) -> Any:
        """Draw accuracy against the gap with its interval, with the private methods and the chosen one marked.

        Parameters
        ----------
        ax : matplotlib Axes or None
            Where to draw; ``None`` makes a new figure.

        Returns
        -------
        TradeoffDisplay
        """
        from skfairdp.inspection import TradeoffDisplay

        chosen = int(self.table.index.get_loc(self.best))
        return TradeoffDisplay.from_table(
            self.table.reset_index(),
            fairness=self.fairness,
            label="method",
            rule=lambda _: chosen,
            interval=(f"{self.fairness}_lower", f"{self.fairness}_upper"),
            epsilon="epsilon",
            ax=ax,
        )

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """Write the report: one file that needs no other, for screens, phones and paper.

        Parameters
        ----------
        path : path, optional
            Where to write; nothing is left half-written. None writes nothing.

        Returns
        -------
        str
            The page.
        """
        from skfairdp.table_audit._html_report import write_html_page

        text = write_html_page(self)
        if path is not None:
            write_text(path, text)
        return text

    def to_text(self, *, colour: bool = False) -> str:
        """Write verdict and table as plain text, as wide as the terminal.

        Parameters
        ----------
        colour : bool, default=False
            Whether to colour it for a terminal.

        Returns
        -------
        str
            Several lines.
        """
        return terminal_summary(self, colour)

    def to_markdown(self, path: str | os.PathLike[str] | None = None) -> str:
        """Write verdict, tables and model card as Markdown, for a pull request or a wiki.

        Parameters
        ----------
        path : path, optional
            Where to write; nothing is left half-written. None writes nothing.

        Returns
        -------
        str
            The document.
        """
        from skfairdp.table_audit._markdown_report import write_markdown

        text = write_markdown(self)
        if path is not None:
            write_text(path, text)
        return text

    def to_model_card(self, method: str | None = None) -> str:
        """Write a model card section: intended use, data, figures by group, guarantees and caveats, as Markdown.

        Parameters
        ----------
        method : str, optional
            A row of ``table``; None is the chosen method.

        Returns
        -------
        str
            The section.
        """
        from skfairdp.table_audit._markdown_report import write_model_card

        return write_model_card(self, self.best if method is None else method)

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the models, as values that JSON knows; ``audit.schema.json`` describes it."""
        verdict = self.verdict
        return _plain(
            {
                "schema_version": SCHEMA_VERSION,
                "title": self.title,
                "headline": verdict.headline,
                "verdict": verdict.sentences,
                "next_steps": verdict.next_steps,
                "checks": [asdict(check) for check in self.checks],
                "systems": self.systems,
                "best": self.best,
                "reference": self.reference,
                "best_private": verdict.private,
                "fairness": self.fairness,
                "too_few": self.too_few,
                "table": self.table.reset_index(names="method").to_dict("records"),
                "candidates": [] if self.candidates.empty else self._candidate_records(),
                "group_rates": self.group_rates.to_dict("records"),
                "calibration": None if self.calibration is None else self.calibration.to_dict("records"),
                "strata": None if self.strata is None else self.strata.to_dict("records"),
                "leakage": self.leakage.to_dict("records"),
                "guarantees": {name: [g.to_dict() for g in given] for name, given in self.guarantees.items()},
                "notes": self.notes,
                "settings": self.settings,
                "versions": self.versions,
                "command": self.command,
            }
        )

    def _candidate_records(self) -> list[dict]:
        return self.candidates.reset_index(level="method").to_dict("records")

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """Write everything but the models as JSON; infinity is ``"inf"``, what is undefined ``null``.

        Parameters
        ----------
        path : path, optional
            Where to write; nothing is left half-written. None writes nothing.

        Returns
        -------
        str
            The document.
        """
        text = json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        if path is not None:
            write_text(path, text)
        return text

    def _repr_html_(self) -> str:
        from skfairdp.table_audit._html_report import write_notebook_summary

        return write_notebook_summary(self)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return None if math.isnan(value) else value if math.isfinite(value) else str(value)
    return value if value is None or isinstance(value, bool | int | str) else str(value)
