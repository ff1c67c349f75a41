"""How well attackers read a sensitive attribute, beside what guessing reaches."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from skfairdp.inspection._display_style import COLOURS, AxesDisplay, shortened_label
from skfairdp.metrics import leakage_report


class LeakageDisplay(AxesDisplay):
    """Accuracy of the strongest attacker on one representation or several, with intervals.

    Make it with :meth:`from_representations`. A bar beyond the dashed line is a leak; a bar at the line
    is no proof that there is none, because a stronger attacker may come.

    Parameters
    ----------
    table : DataFrame
        One row per representation: ``accuracy`` of an attacker, ``accuracy_lower``, ``accuracy_upper``, and
        ``majority``, which always naming the largest group reaches.
    labels : list of str
        What each row is called.
    chosen : str or None
        The label whose bar is marked.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes, Figure
        Where it was drawn last.

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp.inspection import LeakageDisplay
    >>> rng = np.random.default_rng(0)
    >>> sex = np.repeat(["f", "m"], 100)
    >>> told, hidden = rng.normal(size=(200, 2)) + 3 * (sex == "f")[:, None], rng.normal(size=(200, 2))
    >>> display = LeakageDisplay.from_representations({"told": told, "hidden": hidden}, sensitive_features=sex,
    ...                                               probe="linear", random_state=0)
    >>> (display.table["accuracy"] > 0.9).tolist()
    [True, False]
    """

    def __init__(self, table: pd.DataFrame, labels: list[str], *, chosen: str | None = None):
        self.table = table
        self.labels = labels
        self.chosen = chosen

    @classmethod
    def from_representations(
        cls,
        representations: Any,
        *,
        sensitive_features: Any,
        chosen: str | None = None,
        ax: Any = None,
        **probe_params: Any,
    ) -> "LeakageDisplay":
        """Attack representations of the same rows, and draw what the strongest attacker reaches.

        Parameters
        ----------
        representations : array of shape (n_samples, n_components), or dict of str to array
            One bar per array; the keys are the labels.
        sensitive_features : array-like
            One column, or several, which are crossed.
        chosen : str or None
            The key whose bar is marked.
        ax : matplotlib Axes or None
            Where to draw; ``None`` makes a new figure.
        **probe_params : dict
            Arguments of :func:`~skfairdp.metrics.leakage_report`, such as ``probe`` and ``random_state``.

        Returns
        -------
        LeakageDisplay
        """
        views = representations if isinstance(representations, Mapping) else {"": representations}
        if not views:
            raise ValueError("representations is empty; give at least one array.")
        reports = [leakage_report(view, sensitive_features, **probe_params).iloc[-1] for view in views.values()]
        return cls(pd.DataFrame(reports).reset_index(drop=True), list(views), chosen=chosen).plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        accuracy, lower, upper = (self.table[f"accuracy{end}"].to_numpy(float) for end in ("", "_lower", "_upper"))
        places = range(len(self.table))
        colours = [COLOURS[1] if label == self.chosen else COLOURS[4] for label in self.labels]
        ax.barh(places, accuracy, height=0.55, color=colours)
        style = {"linestyle": "none", "ecolor": "black", "elinewidth": 1.8}
        # As one array: matplotlib 3.8 makes numbers of lists of one value in a way that numpy warns about.
        ax.errorbar(accuracy, places, xerr=np.array([accuracy - lower, upper - accuracy]), **style)
        for place, value, end in zip(places, accuracy, upper):
            ax.annotate(f"{value:.0%}", (end, place), xytext=(5, 0), textcoords="offset points", va="center")
        majority = float(self.table["majority"].iloc[0])
        ax.axvline(majority, color="0.25", linestyle="--", linewidth=1.6)
        ax.annotate(
            f"guessing {majority:.0%}",
            (majority, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(0, 3),
            textcoords="offset points",
            ha="right" if majority > 0.7 else "left" if majority < 0.3 else "center",
            fontweight="bold",
        )
        ax.set_yticks(places, [shortened_label(label) for label in self.labels])
        ax.tick_params(axis="y", length=0)
        ax.set_ylim(len(self.table) - 0.5, -0.5)
        ax.set_xlim(0, 1.08)  # room for the percentage of a bar that fills the axis
        ax.set_xticks([0, 0.2, 0.4, 0.6, 0.8, 1])
        ax.grid(False, axis="y")
        ax.spines["left"].set_visible(False)
