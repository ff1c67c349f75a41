"""The rates of every group, with their intervals."""

from typing import Any

import numpy as np
import pandas as pd

from skfairdp.inspection._display_style import axes_of, colour_of, marker_of, quieten
from skfairdp.metrics import group_rates


class GroupRatesDisplay:
    """Accuracy, true and false positive rate and selection rate of every group, with intervals.

    Make it with :meth:`from_estimator` or :meth:`from_predictions`.

    Parameters
    ----------
    table : DataFrame
        What :func:`~skfairdp.metrics.group_rates` gives with ``form="long"`` and an interval.
    names : tuple of str
        The sensitive columns in it.
    rates : tuple of str
        Which rates to show.
    pos_label : object
        The class whose rates are shown; ``None`` for the last class.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes, Figure
        Where it was drawn last.

    Examples
    --------
    >>> from skfairdp.inspection import GroupRatesDisplay
    >>> y, predicted, sex = [1, 0, 1, 0], [1, 0, 0, 0], ["f", "f", "m", "m"]
    >>> display = GroupRatesDisplay.from_predictions(y, predicted, sensitive_features=sex)
    >>> display.table.query("rate == 'accuracy'")["value"].tolist()
    [1.0, 0.5]
    """

    def __init__(
        self,
        table: pd.DataFrame,
        names: tuple[str, ...],
        *,
        rates: tuple[str, ...] = ("accuracy", "tpr", "fpr", "selection_rate"),
        pos_label: Any = None,
    ):
        self.table = table
        self.names = names
        self.rates = rates
        self.pos_label = pos_label

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        sensitive_features: Any,
        rates: tuple[str, ...] = ("accuracy", "tpr", "fpr", "selection_rate"),
        pos_label: Any = None,
        interval: str = "exact",
        confidence_level: float = 0.95,
        ax: Any = None,
    ) -> "GroupRatesDisplay":
        """Predict and draw.

        Parameters
        ----------
        estimator : fitted classifier
            ``predict`` is called once; for a private classifier that is one release of each row.
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            True labels.
        sensitive_features : array-like
            One column or several, which are crossed.
        rates : tuple of {"accuracy", "tpr", "fpr", "selection_rate"}
            Which rates to show.
        pos_label : object
            The class whose rates are shown; ``None`` for the last class.
        interval : {"exact", "wilson", "bootstrap"}
            Kind of the confidence intervals.
        confidence_level : float
            Their level.
        ax : matplotlib Axes or None
            Where to draw; ``None`` makes a new figure.

        Returns
        -------
        GroupRatesDisplay
        """
        return cls.from_predictions(
            y,
            estimator.predict(X),
            sensitive_features=sensitive_features,
            rates=rates,
            pos_label=pos_label,
            interval=interval,
            confidence_level=confidence_level,
            ax=ax,
        )

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_pred: Any,
        *,
        sensitive_features: Any,
        rates: tuple[str, ...] = ("accuracy", "tpr", "fpr", "selection_rate"),
        pos_label: Any = None,
        interval: str = "exact",
        confidence_level: float = 0.95,
        ax: Any = None,
    ) -> "GroupRatesDisplay":
        """Draw the rates of predictions.

        Parameters
        ----------
        y_true, y_pred : array-like of shape (n_samples,)
            True and predicted labels.
        sensitive_features : array-like
            One column or several, which are crossed.
        rates : tuple of {"accuracy", "tpr", "fpr", "selection_rate"}
            Which rates to show.
        pos_label : object
            The class whose rates are shown; ``None`` for the last class.
        interval : {"exact", "wilson", "bootstrap"}
            Kind of the confidence intervals.
        confidence_level : float
            Their level.
        ax : matplotlib Axes or None
            Where to draw; ``None`` makes a new figure.

        Returns
        -------
        GroupRatesDisplay
        """
        table = group_rates(
            y_true,
            y_pred,
            sensitive_features=sensitive_features,
            interval=interval,
            confidence_level=confidence_level,
            form="long",
        )
        known = set(table["rate"])
        if not rates or not set(rates) <= known:
            raise ValueError(f"rates must be chosen from {sorted(known)}; got {rates!r}.")
        names = tuple(table.columns[: table.columns.get_loc("rate")])
        classes = [label for label in table["class"].unique() if label is not None and label == label]
        if pos_label is not None and pos_label not in classes:
            raise ValueError(f"pos_label must be one of the labels {classes}; got {pos_label!r}.")
        shown = classes[-1] if pos_label is None else pos_label
        return cls(table, names, rates=tuple(rates), pos_label=shown).plot(ax=ax)

    def plot(self, ax: Any = None) -> "GroupRatesDisplay":
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes or None
            Where to draw; ``None`` makes a new figure.

        Returns
        -------
        GroupRatesDisplay
            This object.
        """
        ax = axes_of(ax)
        groups = list(dict.fromkeys(self.table[list(self.names)].itertuples(index=False, name=None)))
        offsets = np.linspace(-0.3, 0.3, len(groups)) if len(groups) > 1 else np.zeros(1)
        for number, (group, offset) in enumerate(zip(groups, offsets)):
            rows = self.table[(self.table[list(self.names)] == list(group)).all(axis=1)]
            for place, rate in enumerate(self.rates):
                of_class = rows["rate"].eq(rate) & (rows["class"].eq(self.pos_label) | (rate == "accuracy"))
                row = rows[of_class].iloc[0]
                # An undefined rate leaves its place empty: it is not 0.
                ax.errorbar(
                    place + offset,
                    row["value"],
                    yerr=[[row["value"] - row["lower"]], [row["upper"] - row["value"]]],
                    color=colour_of(number),
                    marker=marker_of(number),
                    markersize=7,
                    capsize=4,
                    linestyle="none",
                    label=" x ".join(map(str, group)) if place == 0 else None,
                )
        names = {"tpr": "true\npositive rate", "fpr": "false\npositive rate", "selection_rate": "selection\nrate"}
        ax.set_xticks(range(len(self.rates)), [names.get(rate, rate) for rate in self.rates])
        ax.set_xlim(-0.5, len(self.rates) - 0.5)
        ax.set_ylim(-0.02, 1.02)
        ax.set_ylabel(f"rate (positive class: {self.pos_label})")
        quieten(ax)
        ax.grid(False, axis="x")
        ax.legend(title=" x ".join(self.names), frameon=False)
        self.ax_, self.figure_ = ax, ax.figure
        return self
