"""Figures of the PATE fairness paper: what the settings do (2, 4, 7), and which rows noisy votes harm (3, 5, 6)."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from skfairdp.ensemble import PATEFairness
from skfairdp.inspection._display_style import COLOURS, PanelDisplay, draw_cloud, draw_error_bars, series_style

_AXIS_LABELS = {
    "regularization": "regularisation (lambda)",
    "n_teachers": "teachers (k)",
    "epsilon": "epsilon (exact)",
    "noise_scale": "noise scale (sigma)",
}


class PATESweepDisplay(PanelDisplay):
    """Model sensitivity, excessive risk of each group and accuracy, over one setting (figures 2 and 4).

    Parameters
    ----------
    table : DataFrame
        One line per analysis: the setting, ``sensitivity``, ``sensitivity_se``, ``accuracy``, ``accuracy_se`` and
        the columns ``risk <group>`` and ``risk_se <group>``.
    parameter : str
        Name of the setting.

    Attributes
    ----------
    axes_, figure_ : ndarray of Axes, Figure
        Where it was drawn last.

    Examples
    --------
    >>> import pandas as pd
    >>> from skfairdp.inspection import PATESweepDisplay
    >>> table = pd.DataFrame({"regularization": [0.1, 1.0], "sensitivity": [0.4, 0.1], "sensitivity_se": [0.02, 0.01],
    ...                       "accuracy": [0.8, 0.78], "accuracy_se": [0.01, 0.01],
    ...                       "risk f": [0.2, 0.1], "risk_se f": [0.01, 0.01]})
    >>> PATESweepDisplay(table, parameter="regularization").plot().axes_[1].get_ylabel()
    'excessive risk'
    """

    _n_panels = 3

    def __init__(self, table: pd.DataFrame, *, parameter: str):
        self.table = table
        self.parameter = parameter

    @classmethod
    def from_analyses(
        cls, analyses: Iterable[PATEFairness], *, parameter: str = "regularization", ax: Any = None
    ) -> "PATESweepDisplay":
        """Draw analyses that differ in one setting.

        Parameters
        ----------
        analyses : iterable of PATEFairness
            At least one; with accuracy where true labels were given.
        parameter : {"regularization", "n_teachers", "epsilon", "noise_scale"}
            The setting they differ in.
        ax : Axes, array of three Axes, or None
            Where to draw; ``None`` makes a new figure, and one of Axes is divided.

        Returns
        -------
        PATESweepDisplay
        """
        return cls(_sweep_table(analyses, parameter), parameter=parameter).plot(ax=ax)

    def _draw(self, axes: np.ndarray) -> None:
        _plot_series(axes[0], self.table, self.parameter, "sensitivity", 0, None)
        for number, group in enumerate(_group_names(self.table)):
            _plot_series(axes[1], self.table, self.parameter, f"risk {group}", number, group)
        _plot_series(axes[2], self.table, self.parameter, "accuracy", 0, None)
        _label_sweep(axes, self.parameter, self.table[self.parameter])
        axes[1].legend(frameon=False)


class SoftLabelDisplay(PanelDisplay):
    """Hard against soft labels over epsilon: model sensitivity, excessive risk of each group, accuracy (figure 7).

    Parameters
    ----------
    tables : dict
        For each kind of labels a table as :class:`PATESweepDisplay` has it, over ``epsilon``.

    Attributes
    ----------
    axes_, figure_ : ndarray of Axes, Figure
        Where it was drawn last.

    Examples
    --------
    >>> import pandas as pd
    >>> from skfairdp.inspection import SoftLabelDisplay
    >>> table = pd.DataFrame({"epsilon": [0.1, 1.0], "sensitivity": [0.4, 0.1], "sensitivity_se": [0.02, 0.01],
    ...                       "accuracy": [0.8, 0.78], "accuracy_se": [0.01, 0.01],
    ...                       "risk f": [0.2, 0.1], "risk_se f": [0.01, 0.01]})
    >>> SoftLabelDisplay({"hard": table, "soft": table / 2}).plot().axes_[1].get_ylabel()
    'excessive risk'
    """

    _n_panels = 3

    def __init__(self, tables: dict[str, pd.DataFrame]):
        self.tables = tables

    @classmethod
    def from_analyses(cls, analyses: Iterable[PATEFairness], *, ax: Any = None) -> "SoftLabelDisplay":
        """Draw analyses of two or more kinds of labels at several budgets.

        Parameters
        ----------
        analyses : iterable of PATEFairness
            Told apart by their ``labels`` and ``epsilon``.
        ax : Axes, array of three Axes, or None
            Where to draw; ``None`` makes a new figure, and one of Axes is divided.

        Returns
        -------
        SoftLabelDisplay
        """
        found = _check_analyses(analyses)
        kinds = list(dict.fromkeys(one.labels for one in found))
        return cls(
            {kind: _sweep_table([one for one in found if one.labels == kind], "epsilon") for kind in kinds}
        ).plot(ax=ax)

    def _draw(self, axes: np.ndarray) -> None:
        for number, (kind, table) in enumerate(self.tables.items()):
            _plot_series(axes[0], table, "epsilon", "sensitivity", number, kind)
            for line, group in zip(("-", "--", ":", "-."), _group_names(table)):
                _plot_series(axes[1], table, "epsilon", f"risk {group}", number, f"{kind}, {group}", line=line)
            _plot_series(axes[2], table, "epsilon", "accuracy", number, kind)
        _label_sweep(axes, "epsilon", pd.concat([table["epsilon"] for table in self.tables.values()]))
        for panel in axes:
            panel.legend(frameon=False, fontsize="small")


def _sweep_table(analyses: Iterable[PATEFairness], parameter: str) -> pd.DataFrame:
    """Collect what the panels show, one line per analysis, in the order of the setting."""
    if parameter not in _AXIS_LABELS:
        raise ValueError(f"parameter must be one of {sorted(_AXIS_LABELS)}; got {parameter!r}.")
    lines = []
    for one in _check_analyses(analyses):
        line: dict[str, Any] = {
            parameter: getattr(one, parameter),
            "sensitivity": one.sensitivity["mean"],
            "sensitivity_se": one.sensitivity["standard_error"],
        }
        # nan where no true labels were given
        measured = one.performance.reindex(index=["accuracy"], columns=["private", "standard_error"])
        line["accuracy"], line["accuracy_se"] = measured.loc["accuracy"]
        for group, row in one.groups.iterrows():
            line[f"risk {group}"], line[f"risk_se {group}"] = row["risk"], row["standard_error"]
        lines.append(line)
    return pd.DataFrame(lines).sort_values(parameter, kind="stable", ignore_index=True)


def _label_sweep(axes: np.ndarray, parameter: str, values: pd.Series) -> None:
    """Label the panels of a sweep; its axis is logarithmic, but for numbers of teachers."""
    ticks = None if parameter == "n_teachers" else np.unique(values[np.isfinite(values)])
    for panel, label in zip(axes, ("model sensitivity", "excessive risk", "accuracy")):
        _label_panel(panel, parameter, label, ticks=ticks)
    axes[1].axhline(0, color="0.6", linewidth=0.8)


def _group_names(table: pd.DataFrame) -> Sequence[str]:
    return [name[len("risk ") :] for name in table.columns if name.startswith("risk ")]


def _plot_series(
    ax: Any, table: pd.DataFrame, parameter: str, quantity: str, number: int, label: str | None, line: str = "-"
) -> None:
    errors = quantity.replace("risk ", "risk_se ") if quantity.startswith("risk ") else f"{quantity}_se"
    style = {"linestyle": line, "markersize": 4, "label": label}
    draw_error_bars(ax, table[parameter], table[quantity], table[errors], number, **style)


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

    _n_panels = 2

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
        found = sorted(_check_analyses(analyses), key=lambda one: one.n_teachers)
        lines = []
        for one in found:
            p = one.rows["flipping_probability"]
            lines.append((one.n_teachers, p.mean(), p.quantile(0.25), p.quantile(0.75)))
        table = pd.DataFrame(lines, columns=["n_teachers", "mean", "low", "high"])
        return cls(table, found[-1].rows[["norm", "gradient_norm"]]).plot(ax=ax)

    def _draw(self, axes: np.ndarray) -> None:
        k = self.flipping["n_teachers"]
        low, high = self.flipping["low"], self.flipping["high"]
        axes[0].fill_between(k, low, high, color=COLOURS[0], alpha=0.2, label="quartiles")
        axes[0].plot(k, self.flipping["mean"], label="mean", **series_style(0))
        axes[0].set_ylim(bottom=0)
        axes[0].legend(frameon=False)
        _label_panel(axes[0], "n_teachers", "flipping probability")
        _scatter_rows(axes[1], self.rows, "norm", "gradient_norm", "input norm", "gradient norm")


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

    _n_panels = 2

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

    def _draw(self, axes: np.ndarray) -> None:
        bins = self.bins
        draw_error_bars(axes[0], bins["norm"], bins["sensitivity"], bins["standard_error"], 0, label="measured")
        if bins["bound"].notna().any():
            axes[0].plot(bins["norm"], bins["bound"], linestyle="--", label="bound", **series_style(1))
        axes[0].set_yscale("log")
        axes[0].legend(frameon=False)
        _label_panel(axes[0], "mean input norm of the rows trained on", "model sensitivity")
        _scatter_rows(axes[1], self.rows, "norm", "risk", "input norm", "excessive risk", rho=self.rho)


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

    _n_panels = 2

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

    def _draw(self, axes: np.ndarray) -> None:
        flipping, closeness = "flipping probability", "closeness to the boundary"
        _scatter_rows(axes[0], self.rows, "closeness", "flipping_probability", closeness, flipping, rho=self.rho[0])
        _scatter_rows(axes[1], self.rows, "flipping_probability", "risk", flipping, "excessive risk", rho=self.rho[1])


def _scatter_rows(
    ax: Any, rows: pd.DataFrame, x: str, y: str, x_label: str, y_label: str, rho: float | None = None
) -> None:
    # In the order of their names, so that a group has one colour in every panel.
    names = sorted(rows["group"].unique(), key=str) if "group" in rows else [None]
    parts = [
        (name, rows if name is None else rows[rows["group"].map(lambda g, name=name: g == name)]) for name in names
    ]
    for number, (group, part) in enumerate(parts):
        draw_cloud(ax, part[x], part[y], number, size=12, label=group)
    if rho is not None:
        ax.set_title(f"Spearman's rho = {rho:.2f}", fontsize="medium")
    if "group" in rows:
        ax.legend(frameon=False)
    _label_panel(ax, x_label, y_label)


def _check_analyses(analyses: Iterable[PATEFairness]) -> list[PATEFairness]:
    found = list(analyses)
    if not found:
        raise ValueError("analyses must hold at least one PATEFairness; got none.")
    return found


def _label_panel(ax: Any, x_label: str, y_label: str, *, ticks: Any = None) -> None:
    """Label a panel; with ticks, its horizontal axis is logarithmic and marked at these values."""
    if ticks is not None:
        ax.set_xscale("log")
        ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        ax.minorticks_off()
    ax.set(xlabel=_AXIS_LABELS.get(x_label, x_label), ylabel=y_label)
