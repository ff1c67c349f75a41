"""Accuracy and leakage over epsilon."""

from typing import Any

import numpy as np
import pandas as pd

from skfairdp.inspection._display_style import AxesDisplay, draw_error_bars, series_style


class PrivacyCurveDisplay(AxesDisplay):
    """Accuracy and leakage over the exact epsilon, one line each per method.

    Make it with :meth:`from_table`. Solid lines and left-hand readings are accuracy, dashed lines are
    leakage; both are shares, so that they have one axis in common.

    Parameters
    ----------
    table : DataFrame
        Columns ``method``, ``epsilon``, ``accuracy``, ``leakage`` and, where rows were averaged,
        ``accuracy_std`` and ``leakage_std``; one row per method and epsilon.
    majority : float or None
        The share of the largest group: what an attacker reaches who sees nothing.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes, Figure
        Where it was drawn last.

    Examples
    --------
    >>> import pandas as pd
    >>> from skfairdp.inspection import PrivacyCurveDisplay
    >>> runs = pd.DataFrame({"epsilon": [1, 1, 8, 8], "accuracy": [0.6, 0.7, 0.8, 0.9],
    ...                      "leakage": [0.5, 0.5, 0.6, 0.7]})
    >>> display = PrivacyCurveDisplay.from_table(runs, majority=0.5)
    >>> display.table["accuracy"].round(2).tolist()
    [0.65, 0.85]
    """

    def __init__(self, table: pd.DataFrame, *, majority: float | None = None):
        self.table = table
        self.majority = majority

    @classmethod
    def from_table(
        cls,
        table: Any,
        *,
        epsilon: str = "epsilon",
        accuracy: str = "accuracy",
        leakage: str = "leakage",
        method: str | None = None,
        majority: float | None = None,
        ax: Any = None,
    ) -> "PrivacyCurveDisplay":
        """Draw the curves of a table of runs.

        Parameters
        ----------
        table : DataFrame or dict of columns
            One row per run; runs of the same method and epsilon are averaged, with their standard
            deviation as an error bar.
        epsilon, accuracy, leakage : str
            Names of the columns.
        method : str or None
            Name of the column that tells methods apart; ``None`` for a single one.
        majority : float or None
            The share of the largest group, drawn as a line.
        ax : matplotlib Axes or None
            Where to draw; ``None`` makes a new figure.

        Returns
        -------
        PrivacyCurveDisplay
        """
        frame = pd.DataFrame(table)
        wanted = [name for name in (epsilon, accuracy, leakage, method) if name is not None]
        unknown = [name for name in wanted if name not in frame.columns]
        if unknown:
            raise ValueError(f"table has no column {unknown}; it has {list(frame.columns)}.")
        plain = pd.DataFrame(
            {
                "method": frame[method] if method is not None else "",
                "epsilon": frame[epsilon].astype(float),
                "accuracy": frame[accuracy].astype(float),
                "leakage": frame[leakage].astype(float),
            }
        )
        grouped = plain.groupby(["method", "epsilon"], sort=False)[["accuracy", "leakage"]]
        spread = grouped.std().rename(columns=lambda name: f"{name}_std")
        summary = grouped.mean().join(spread).reset_index().sort_values("epsilon", kind="stable")
        return cls(summary, majority=majority).plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        finite = self.table.loc[np.isfinite(self.table["epsilon"]), "epsilon"]
        # Infinity has no place on a logarithmic axis: it gets one, two steps to the right, with its own tick.
        without_noise = float(finite.max()) * 4 if len(finite) else 1.0
        for number, name in enumerate(self.table["method"].unique()):
            rows = self.table[self.table["method"] == name]
            place = rows["epsilon"].where(np.isfinite(rows["epsilon"]), without_noise)
            filled = series_style(number)["color"]
            for quantity, line, inside in (("accuracy", "-", filled), ("leakage", "--", "white")):
                style = {"linestyle": line, "markerfacecolor": inside, "label": f"{name} {quantity}".strip()}
                draw_error_bars(ax, place, rows[quantity], rows.get(f"{quantity}_std"), number, **style)
        if self.majority is not None:
            ax.axhline(self.majority, color="0.4", linewidth=1, linestyle=":", label="largest group")
        ax.set_xscale("log")
        ticks = sorted(finite.unique())
        labels = [f"{tick:g}" for tick in ticks]
        if not np.isfinite(self.table["epsilon"]).all():
            ticks, labels = [*ticks, without_noise], [*labels, "no noise"]
        ax.set_xticks(ticks, labels)
        ax.minorticks_off()
        ax.set(xlabel="epsilon (exact)", ylabel="share correct")
        ax.legend(frameon=False)
