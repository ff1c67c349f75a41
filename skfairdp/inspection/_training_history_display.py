"""Losses of classifier and adversary over the epochs."""

from typing import Any

import pandas as pd

from skfairdp.inspection._display_style import COLOURS, AxesDisplay

_SERIES = {
    "classifier_loss": ("classifier", "-"),
    "valid_loss": ("validation", ":"),
    "adversary_loss": ("adversary", "--"),
}


class TrainingHistoryDisplay(AxesDisplay):
    """Losses of classifier and adversary over the epochs, and what an adversary at chance would have.

    Make it with :meth:`from_estimator`. An adversary's line that never leaves the line of chance has learned nothing:
    because the noise hides the groups, or because it is cut off. One that falls while the classifier's
    falls too is winning.

    Parameters
    ----------
    history : DataFrame
        ``history_`` of a fitted estimator: one row per epoch.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes, Figure
        Where it was drawn last.

    Examples
    --------
    >>> import pandas as pd
    >>> from skfairdp.inspection import TrainingHistoryDisplay
    >>> history = pd.DataFrame({"classifier_loss": [0.7, 0.4], "adversary_loss": [0.69, 0.68],
    ...                         "adversary_advantage": [0.0, 0.01]}, index=[1, 2])
    >>> TrainingHistoryDisplay(history).plot().ax_.get_xlabel()
    'epoch'
    """

    def __init__(self, history: pd.DataFrame):
        self.history = history

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> "TrainingHistoryDisplay":
        """Draw the history of a fitted estimator.

        Parameters
        ----------
        estimator : FederateClassifier or Pipeline that ends in one
            Fitted, with ``history_``.
        ax : matplotlib Axes or None
            Where to draw; ``None`` makes a new figure.

        Returns
        -------
        TrainingHistoryDisplay
        """
        last = estimator[-1] if hasattr(estimator, "steps") else estimator
        if not hasattr(last, "history_"):
            raise ValueError(f"estimator must be fitted and keep a history_; {type(last).__name__} has none.")
        return cls(last.history_).plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        for colour, (column, (label, style)) in zip(COLOURS, _SERIES.items()):
            if column in self.history:
                ax.plot(self.history.index, self.history[column], style, color=colour, label=label)
        if "adversary_advantage" in self.history:
            chance = (self.history["adversary_loss"] + self.history["adversary_advantage"]).mean()
            ax.axhline(chance, color="0.5", linewidth=1, label="adversary at chance")
        ax.set(xlabel="epoch", ylabel="cross-entropy (nats)")
        ax.legend(frameon=False)
