"""How our pictures look: a palette that colour-blind readers can tell apart, and quiet axes."""

from typing import Any

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
