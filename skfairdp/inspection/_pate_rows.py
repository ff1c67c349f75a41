"""Rows that noisy votes harm: figures 3, 5 and 6 of the PATE fairness paper."""

from collections.abc import Iterable
from typing import Any

import pandas as pd

from skfairdp.ensemble import PATEFairness
from skfairdp.inspection._panels import PanelDisplay, finish, several
from skfairdp.inspection._style import colour_of, marker_of


class FlippingDisplay(PanelDisplay):
    """Flipping probability over the number of teachers, and gradient norm over input norm (figure 3).

    Parameters
    ----------
    flipping : DataFrame
        Columns ``n_teachers``, ``mean``, ``low`` and ``high`` (quartiles over rows).
    rows : DataFrame
        Columns ``norm`` and ``gradient_norm``, of the largest ensemble.

    Attributes
    ----------
    axes_, figure_ : ndarray of Axes, Figure
        Where it was drawn last.

    Examples
    --------
    >>> import pandas as pd
    >>> from skfairdp.inspection import FlippingDisplay
    >>> flipping = pd.DataFrame({"n_teachers": [20, 150], "mean": [0.4, 0.1], "low": [0.3, 0.0], "high": [0.5, 0.2]})
    >>> rows = pd.DataFrame({"norm": [1.0, 2.0], "gradient_norm": [0.4, 0.9]})
    >>> len(FlippingDisplay(flipping, rows).plot().axes_)
    2
    """

    def __init__(self, flipping: pd.DataFrame, rows: pd.DataFrame):
        self.flipping = flipping
        self.rows = rows

    @classmethod
    def from_analyses(cls, analyses: Iterable[PATEFairness], *, ax: Any = None) -> "FlippingDisplay":
        """Draw analyses of ensembles of different sizes.

        Parameters
        ----------
        analyses : iterable of PATEFairness
            At least one.
        ax : Axes, array of two Axes, or None
            Where to draw; ``None`` makes a new figure, and one of Axes is divided.

        Returns
        -------
        FlippingDisplay
        """
        found = sorted(several(analyses), key=lambda one: one.n_teachers)
        lines = []
        for one in found:
            p = one.rows["flipping_probability"]
            lines.append((one.n_teachers, p.mean(), p.quantile(0.25), p.quantile(0.75)))
        table = pd.DataFrame(lines, columns=["n_teachers", "mean", "low", "high"])
        return cls(table, found[-1].rows[["norm", "gradient_norm"]]).plot(ax=ax)

    def plot(self, ax: Any = None) -> "FlippingDisplay":
        """Draw.

        Parameters
        ----------
        ax : Axes, array of two Axes, or None
            Where to draw.

        Returns
        -------
        FlippingDisplay
            This object.
        """
        axes = self._panels(ax, 2)
        k = self.flipping["n_teachers"]
        axes[0].fill_between(
            k, self.flipping["low"], self.flipping["high"], color=colour_of(0), alpha=0.2, label="quartiles"
        )
        axes[0].plot(k, self.flipping["mean"], marker=marker_of(0), color=colour_of(0), label="mean")
        axes[0].set_ylim(bottom=0)
        axes[0].legend(frameon=False)
        finish(axes[0], "n_teachers", "flipping probability")
        _scatter(axes[1], self.rows, "norm", "gradient_norm", "input norm", "gradient norm")
        return self


class InputNormDisplay(PanelDisplay):
    """Model sensitivity of students on rows of similar norm, and risk over input norm (figure 5).

    Parameters
    ----------
    bins : DataFrame
        Columns ``norm``, ``sensitivity``, ``standard_error`` and ``bound``.
    rows : DataFrame
        Columns ``norm``, ``risk`` and ``group``.
    rho : float
        Spearman's correlation of norm and risk.

    Attributes
    ----------
    axes_, figure_ : ndarray of Axes, Figure
        Where it was drawn last.

    Examples
    --------
    >>> import pandas as pd
    >>> from skfairdp.inspection import InputNormDisplay
    >>> bins = pd.DataFrame({"norm": [1, 2], "sensitivity": [0.1, 0.2], "standard_error": [0.01, 0.01],
    ...                      "bound": [1, 2]})
    >>> rows = pd.DataFrame({"norm": [1.0, 2.0], "risk": [0.0, 0.1], "group": ["f", "m"]})
    >>> InputNormDisplay(bins, rows, rho=1.0).plot().axes_[1].get_title()
    "Spearman's rho = 1.00"
    """

    def __init__(self, bins: pd.DataFrame, rows: pd.DataFrame, *, rho: float):
        self.bins = bins
        self.rows = rows
        self.rho = rho

    @classmethod
    def from_analysis(cls, analysis: PATEFairness, *, ax: Any = None) -> "InputNormDisplay":
        """Draw one analysis of a logistic student.

        Parameters
        ----------
        analysis : PATEFairness
            What to draw.
        ax : Axes, array of two Axes, or None
            Where to draw; ``None`` makes a new figure, and one of Axes is divided.

        Returns
        -------
        InputNormDisplay
        """
        if analysis.norm_bins.empty:
            raise ValueError("analysis must be of a logistic student: others are not trained on ranges of norms.")
        rho = float(analysis.correlations["rho"]["norm", "risk"])
        return cls(analysis.norm_bins, analysis.rows[["norm", "risk", "group"]], rho=rho).plot(ax=ax)

    def plot(self, ax: Any = None) -> "InputNormDisplay":
        """Draw.

        Parameters
        ----------
        ax : Axes, array of two Axes, or None
            Where to draw.

        Returns
        -------
        InputNormDisplay
            This object.
        """
        axes = self._panels(ax, 2)
        axes[0].errorbar(
            self.bins["norm"],
            self.bins["sensitivity"],
            yerr=self.bins["standard_error"],
            color=colour_of(0),
            marker=marker_of(0),
            capsize=3,
            label="measured",
        )
        if self.bins["bound"].notna().any():
            axes[0].plot(
                self.bins["norm"], self.bins["bound"], color=colour_of(1), marker=marker_of(1), ls="--", label="bound"
            )
        axes[0].set_yscale("log")
        axes[0].legend(frameon=False)
        finish(axes[0], "mean input norm of the rows trained on", "model sensitivity")
        _scatter(axes[1], self.rows, "norm", "risk", "input norm", "excessive risk", rho=self.rho)
        return self


class BoundaryDisplay(PanelDisplay):
    """Flipping probability over closeness to the boundary, and risk over flipping probability (figure 6).

    Parameters
    ----------
    rows : DataFrame
        Columns ``closeness``, ``flipping_probability``, ``risk`` and ``group``.
    rho : tuple of two floats
        Spearman's correlations of the two panels.

    Attributes
    ----------
    axes_, figure_ : ndarray of Axes, Figure
        Where it was drawn last.

    Examples
    --------
    >>> import pandas as pd
    >>> from skfairdp.inspection import BoundaryDisplay
    >>> rows = pd.DataFrame({"closeness": [0.1, 0.5], "flipping_probability": [0.0, 0.4], "risk": [0.0, 0.1],
    ...                      "group": ["f", "m"]})
    >>> BoundaryDisplay(rows, rho=(1.0, 1.0)).plot().axes_[0].get_xlabel()
    'closeness to the boundary'
    """

    def __init__(self, rows: pd.DataFrame, *, rho: tuple[float, float]):
        self.rows = rows
        self.rho = rho

    @classmethod
    def from_analysis(cls, analysis: PATEFairness, *, ax: Any = None) -> "BoundaryDisplay":
        """Draw one analysis.

        Parameters
        ----------
        analysis : PATEFairness
            What to draw.
        ax : Axes, array of two Axes, or None
            Where to draw; ``None`` makes a new figure, and one of Axes is divided.

        Returns
        -------
        BoundaryDisplay
        """
        rho = analysis.correlations["rho"]
        pair = (float(rho["closeness", "flipping_probability"]), float(rho["flipping_probability", "risk"]))
        return cls(analysis.rows[["closeness", "flipping_probability", "risk", "group"]], rho=pair).plot(ax=ax)

    def plot(self, ax: Any = None) -> "BoundaryDisplay":
        """Draw.

        Parameters
        ----------
        ax : Axes, array of two Axes, or None
            Where to draw.

        Returns
        -------
        BoundaryDisplay
            This object.
        """
        axes = self._panels(ax, 2)
        flipping, closeness = "flipping probability", "closeness to the boundary"
        _scatter(axes[0], self.rows, "closeness", "flipping_probability", closeness, flipping, rho=self.rho[0])
        _scatter(axes[1], self.rows, "flipping_probability", "risk", flipping, "excessive risk", rho=self.rho[1])
        return self


def _scatter(ax: Any, rows: pd.DataFrame, x: str, y: str, x_label: str, y_label: str, rho: float | None = None) -> None:
    # In the order of their names, so that a group has one colour in every panel.
    names = sorted(rows["group"].unique(), key=str) if "group" in rows else [None]
    parts = [
        (name, rows if name is None else rows[rows["group"].map(lambda g, name=name: g == name)]) for name in names
    ]
    for number, (group, part) in enumerate(parts):
        ax.scatter(
            part[x],
            part[y],
            s=12,
            color=colour_of(number),
            marker=marker_of(number),
            alpha=0.6,
            linewidths=0,
            label=group,
        )
    if rho is not None:
        ax.set_title(f"Spearman's rho = {rho:.2f}", fontsize="medium")
    if "group" in rows:
        ax.legend(frameon=False)
    finish(ax, x_label, y_label)
