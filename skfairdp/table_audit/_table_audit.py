"""What an audit found."""

import html
import importlib.metadata
import json
import math
import os
import platform
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from skfairdp import __version__
from skfairdp.accounting import PrivacyGuarantee
from skfairdp.table_audit._terminal_summary import terminal_summary
from skfairdp.table_audit._verdict import Verdict, make_verdict
from skfairdp.table_files import write_text

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
        One row per method, measured on the test rows: ``accuracy``, ``balanced_accuracy``, ``tpr_gap`` (or ``grms``
        with more than two classes) with its interval and its change from the reference, further gaps,
        ``leakage`` (accuracy of the strongest attacker) beside ``majority`` (what guessing reaches),
        ``code_bits``, exact ``epsilon`` and ``delta``, whom it ``protects``, ``seconds`` of training. The
        ``validation_`` columns are what the choice was made by.
    best : str
        The fairest method among those almost as accurate as the most accurate one.
    reference : str
        The method that others are compared with: ``"unconstrained"``, or without it the most accurate.
    fairness : {"tpr_gap", "grms"}
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

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the models, as values that JSON knows."""
        return _plain(
            {
                "best": self.best,
                "reference": self.reference,
                "best_private": self.best_private,
                "verdict": self.verdict.sentences,
                "fairness": self.fairness,
                "table": self.table.reset_index().to_dict("records"),
                "candidates": self.candidates.reset_index(level="method").to_dict("records"),
                "group_rates": self.group_rates.to_dict("records"),
                "leakage": self.leakage.to_dict("records"),
                "guarantees": {name: [g.to_dict() for g in given] for name, given in self.guarantees.items()},
                "notes": self.notes,
                "settings": self.settings,
                "versions": self.versions,
                "command": self.command,
            }
        )

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
        shown = self.table[["accuracy", self.fairness, "leakage", "majority", "epsilon", "protects"]]
        words = "".join(f"<p>{html.escape(sentence)}</p>" for sentence in self.verdict.sentences)
        return words + shown.to_html(float_format="{:.3g}".format, escape=True)


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
