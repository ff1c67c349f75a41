"""How our pictures look: a palette that colour-blind readers can tell apart, quiet axes, and rows of panels."""

from typing import Any

import numpy as np

#: Okabe and Ito's palette, without its yellow, which is too pale for lines on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")

#: Colour is never the only sign: every series has a marker of its own too.
MARKERS = ("o", "s", "^", "D", "v", "P", "X")

#: For values on a scale; legible in print and for colour-blind readers.
COLOUR_MAP = "viridis"


def colour_of(number: int) -> str:
    """Return the colour of the series with this number."""
    return COLOURS[number % len(COLOURS)]


def marker_of(number: int) -> str:
    """Return the marker of the series with this number."""
    return MARKERS[number % len(MARKERS)]


def axes_of(ax: Any = None) -> Any:
    """Return the axes given, or new ones."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    _, ax = plt.subplots(layout="constrained")
    return ax


def quieten(ax: Any) -> None:
    """Remove the frame where it says nothing, and lay a faint grid behind the data."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(True, color="0.9", linewidth=0.8)
    ax.set_axisbelow(True)


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
