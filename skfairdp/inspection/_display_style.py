"""How our pictures look: a palette that colour-blind readers can tell apart, quiet axes, and rows of panels."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

#: Okabe and Ito's palette, without its yellow, which is too pale for lines on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")

#: Colour is never the only sign: every series has a marker of its own too.
MARKERS = ("o", "s", "^", "D", "v", "P", "X")

#: For values on a scale; legible in print and for colour-blind readers.
COLOUR_MAP = "viridis"


def series_style(number: int) -> dict[str, str]:
    """Return the colour and the marker of the series with this number, as matplotlib takes them."""
    return {"color": COLOURS[number % len(COLOURS)], "marker": MARKERS[number % len(MARKERS)]}


def draw_error_bars(ax: Any, x: Any, y: Any, errors: Any, number: int, **style: Any) -> None:
    """Draw the series with this number as a line whose points have error bars."""
    ax.errorbar(x, y, yerr=errors, capsize=3, **series_style(number) | style)


def draw_cloud(ax: Any, x: Any, y: Any, number: int, *, size: float, label: Any) -> None:
    """Draw the series with this number as many small points, through which others can be seen."""
    ax.scatter(x, y, s=size, alpha=0.6, linewidths=0, label=label, **series_style(number))


def _quieten_axes(ax: Any) -> None:
    """Remove the frame where it says nothing, and lay a faint grid behind the data."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(True, color="0.9", linewidth=0.8)
    ax.set_axisbelow(True)


def shortened_label(text: Any, most: int = 24) -> str:
    """Write a label of at most ``most`` characters, none of which moves what follows."""
    shown = "".join(character if character.isprintable() else "�" for character in str(text))
    return shown if len(shown) <= most else shown[: most - 1] + "…"


#: Where a label may stand beside its point: offset in points, horizontal and vertical alignment. The first that is
#: free is taken; those farther away come last.
_PLACES = (
    (10, 0, "left", "center"),
    (-10, 0, "right", "center"),
    (0, 9, "center", "bottom"),
    (0, -9, "center", "top"),
    (7, 7, "left", "bottom"),
    (-7, 7, "right", "bottom"),
    (7, -7, "left", "top"),
    (-7, -7, "right", "top"),
    (0, 24, "center", "bottom"),
    (0, -24, "center", "top"),
    (10, 24, "left", "bottom"),
    (10, -24, "left", "top"),
)


def label_points(ax: Any, points: Sequence[tuple[float, float]], labels: Sequence[str]) -> None:
    """Write a label beside each point, where it hides neither another label nor a point, if there is such a place.

    Call it last: the places are found in the axes as they are then.
    """
    from matplotlib.transforms import Bbox

    layout = ax.figure.get_layout_engine()
    if layout is not None:  # it also brings the limits up to date
        layout.execute(ax.figure)
    else:
        ax.autoscale_view()
    pixels = ax.figure.dpi / 72  # to a point, the unit of letters
    around = 7 * pixels  # of each point
    places = ax.transData.transform(np.asarray(points, dtype=float).reshape(-1, 2))
    frame = ax.get_window_extent()
    taken = [Bbox([place - around, place + around]) for place in places]
    for point, text in zip(points, labels):
        note = ax.annotate(shortened_label(text), point, xytext=(0, 0), textcoords="offset points", va="bottom")
        note.set_in_layout(False)
        box = note.get_window_extent()
        boxes = [_box_when_moved(box, place, pixels) for place in _PLACES]
        outside = [not (frame.contains(*box.min) and frame.contains(*box.max)) for box in boxes]
        # A label that leaves the axes is worse than one that touches two others.
        costs = [box.count_overlaps(taken) + 3 * leaves for box, leaves in zip(boxes, outside)]
        best = costs.index(min(costs))
        taken.append(boxes[best])
        dx, dy, horizontal, vertical = _PLACES[best]
        note.set(position=(dx, dy), ha=horizontal, va=vertical)


def _box_when_moved(box: Any, place: tuple[float, float, str, str], pixels: float) -> Any:
    """Return the pixels that a label covers at a place; ``box`` is what it covers above its point and to its right.

    Computed, because matplotlib lays the letters out again whenever it is asked where a label lies.
    """
    dx, dy, horizontal, vertical = place
    left = {"left": 0.0, "center": 0.5, "right": 1.0}[horizontal] * box.width
    down = {"bottom": 0.0, "center": 0.5, "top": 1.0}[vertical] * box.height
    return box.translated(dx * pixels - left, dy * pixels - down)


class AxesDisplay(ABC):
    """A picture in one pair of axes, and where it was drawn."""

    ax_: Any
    figure_: Any

    def plot(self, ax: Any = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes or None
            Where to draw; ``None`` makes a new figure.

        Returns
        -------
        Display
            This object.
        """
        if ax is None:
            import matplotlib.pyplot as plt

            _, ax = plt.subplots(layout="constrained")
        _quieten_axes(ax)
        self._draw(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    @abstractmethod
    def _draw(self, ax: Any) -> None:
        """Draw into quiet axes."""


class PanelDisplay(ABC):
    """Several panels, and where they were drawn."""

    axes_: np.ndarray
    figure_: Any

    @property
    @abstractmethod
    def _n_panels(self) -> int:
        """Number of panels, side by side."""

    def plot(self, ax: Any = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, sequence of one for each panel, or None
            Where to draw; one is divided among the panels, ``None`` makes a new figure.

        Returns
        -------
        Display
            This object.
        """
        axes = _axes_of_panels(ax, self._n_panels)
        for panel in axes:
            _quieten_axes(panel)
        self._draw(axes)
        self.axes_, self.figure_ = axes, axes[0].figure
        return self

    @abstractmethod
    def _draw(self, axes: np.ndarray) -> None:
        """Draw into quiet axes, one for each panel."""


def _axes_of_panels(ax: Any, n_panels: int) -> np.ndarray:
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
    return axes
