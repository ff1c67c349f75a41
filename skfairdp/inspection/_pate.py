"""Settings of PATE and what they do: figures 2, 4 and 7 of the PATE fairness paper."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from skfairdp.ensemble import PATEFairness
from skfairdp.inspection._panels import PARAMETERS, PanelDisplay, finish, several
from skfairdp.inspection._style import colour_of, marker_of


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
        return cls(_sweep(analyses, parameter), parameter=parameter).plot(ax=ax)

    def plot(self, ax: Any = None) -> "PATESweepDisplay":
        """Draw.

        Parameters
        ----------
        ax : Axes, array of three Axes, or None
            Where to draw.

        Returns
        -------
        PATESweepDisplay
            This object.
        """
        axes = self._panels(ax, 3)
        _series(axes[0], self.table, self.parameter, "sensitivity", 0, None)
        for number, group in enumerate(_groups(self.table)):
            _series(axes[1], self.table, self.parameter, f"risk {group}", number, group)
        _series(axes[2], self.table, self.parameter, "accuracy", 0, None)
        ticks = _finite(self.table[self.parameter])
        for panel, label in zip(axes, ("model sensitivity", "excessive risk", "accuracy")):
            finish(panel, self.parameter, label, ticks=None if self.parameter == "n_teachers" else ticks)
        axes[1].axhline(0, color="0.6", linewidth=0.8)
        axes[1].legend(frameon=False)
        return self


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
        found = several(analyses)
        kinds = list(dict.fromkeys(one.labels for one in found))
        return cls({kind: _sweep([one for one in found if one.labels == kind], "epsilon") for kind in kinds}).plot(
            ax=ax
        )

    def plot(self, ax: Any = None) -> "SoftLabelDisplay":
        """Draw.

        Parameters
        ----------
        ax : Axes, array of three Axes, or None
            Where to draw.

        Returns
        -------
        SoftLabelDisplay
            This object.
        """
        axes = self._panels(ax, 3)
        for number, (kind, table) in enumerate(self.tables.items()):
            _series(axes[0], table, "epsilon", "sensitivity", number, kind)
            for line, group in zip(("-", "--", ":", "-."), _groups(table)):
                _series(axes[1], table, "epsilon", f"risk {group}", number, f"{kind}, {group}", line=line)
            _series(axes[2], table, "epsilon", "accuracy", number, kind)
        ticks = _finite(pd.concat([table["epsilon"] for table in self.tables.values()]))
        for panel, label in zip(axes, ("model sensitivity", "excessive risk", "accuracy")):
            finish(panel, "epsilon", label, ticks=ticks)
            panel.legend(frameon=False, fontsize="small")
        axes[1].axhline(0, color="0.6", linewidth=0.8)
        return self


def _sweep(analyses: Iterable[PATEFairness], parameter: str) -> pd.DataFrame:
    """Collect what the panels show, one line per analysis, in the order of the setting."""
    if parameter not in PARAMETERS:
        raise ValueError(f"parameter must be one of {sorted(PARAMETERS)}; got {parameter!r}.")
    lines = []
    for one in several(analyses):
        line: dict[str, Any] = {
            parameter: getattr(one, parameter),
            "sensitivity": one.sensitivity["mean"],
            "sensitivity_se": one.sensitivity["standard_error"],
        }
        known = "accuracy" in one.performance.index
        line["accuracy"] = one.performance.loc["accuracy", "private"] if known else np.nan
        line["accuracy_se"] = one.performance.loc["accuracy", "standard_error"] if known else np.nan
        for group, row in one.groups.iterrows():
            line[f"risk {group}"], line[f"risk_se {group}"] = row["risk"], row["standard_error"]
        lines.append(line)
    return pd.DataFrame(lines).sort_values(parameter, kind="stable", ignore_index=True)


def _finite(values: pd.Series) -> np.ndarray:
    return np.unique(values[np.isfinite(values)])


def _groups(table: pd.DataFrame) -> Sequence[str]:
    return [name[len("risk ") :] for name in table.columns if name.startswith("risk ")]


def _series(
    ax: Any, table: pd.DataFrame, parameter: str, quantity: str, number: int, label: str | None, line: str = "-"
) -> None:
    errors = quantity.replace("risk ", "risk_se ") if quantity.startswith("risk ") else f"{quantity}_se"
    ax.errorbar(
        table[parameter],
        table[quantity],
        yerr=table[errors],
        color=colour_of(number),
        marker=marker_of(number),
        linestyle=line,
        markersize=4,
        capsize=3,
        label=label,
    )
