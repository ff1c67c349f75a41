"""Displays of several panels, and what the figures of the PATE analysis share."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from skfairdp.ensemble import PATEFairness
from skfairdp.inspection._style import quieten

PARAMETERS = {
    "regularization": "regularisation (lambda)",
    "n_teachers": "teachers (k)",
    "epsilon": "epsilon (exact)",
    "noise_scale": "noise scale (sigma)",
}


class PanelDisplay:
    """Several panels, and where they were drawn."""

    axes_: np.ndarray
    figure_: Any

    def _panels(self, ax: Any, n_panels: int) -> np.ndarray:
        """Return axes for the panels: new ones, those given, or the place of one given divided among them."""
        import matplotlib.pyplot as plt
        from matplotlib.axes import Axes
        from matplotlib.gridspec import GridSpecFromSubplotSpec

        if ax is None:
            _, ax = plt.subplots(1, n_panels, figsize=(4.2 * n_panels, 3.4), layout="constrained")
        if isinstance(ax, Axes) and n_panels > 1:
            place = ax.get_subplotspec()
            if place is None:
                raise ValueError(f"ax must be {n_panels} axes, or one that was made by subplots.")
            ax.set_axis_off()
            grid = GridSpecFromSubplotSpec(1, n_panels, subplot_spec=place)
            ax = np.array([ax.figure.add_subplot(grid[0, i]) for i in range(n_panels)])
        axes = np.atleast_1d(np.asarray(ax, dtype=object)).ravel()
        if len(axes) != n_panels:
            raise ValueError(f"ax must be {n_panels} axes, one for each panel; got {len(axes)}.")
        self.axes_, self.figure_ = axes, axes[0].figure
        return axes


def several(analyses: Iterable[PATEFairness]) -> list[PATEFairness]:
    found = list(analyses)
    if not found:
        raise ValueError("analyses must hold at least one PATEFairness; got none.")
    return found


def finish(ax: Any, x_label: str, y_label: str, *, ticks: Any = None) -> None:
    """Label a panel; with ticks, its horizontal axis is logarithmic and marked at these values."""
    if ticks is not None:
        ax.set_xscale("log")
        ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        ax.minorticks_off()
    ax.set_xlabel(PARAMETERS.get(x_label, x_label))
    ax.set_ylabel(y_label)
    quieten(ax)
