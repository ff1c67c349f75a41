"""The rates of every group, with their intervals."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from skfairdp.inspection._display_style import AxesDisplay, series_style, shortened_label
from skfairdp.metrics import group_rates

_NAMES = {"tpr": "true positive rate", "fpr": "false positive rate", "selection_rate": "selection rate"}


class GroupRatesDisplay(AxesDisplay):
    """Accuracy, true and false positive rate and selection rate of every group, with intervals.

    The rates of one model are drawn with the groups side by side, those of several models with a line for each group
    on which the models can be compared.

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
    model : str or None
        The column with the name of the model, where the table is of several models.

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
        model: str | None = None,
    ):
        self.table = table
        self.names = names
        self.rates = rates
        self.pos_label = pos_label
        self.model = model

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
        y_true : array-like of shape (n_samples,)
            True labels.
        y_pred : array-like of shape (n_samples,), or dict of str to array-like
            Predicted labels; a dict compares the models that its keys name.
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
        several = isinstance(y_pred, Mapping)
        known = {"sensitive_features": sensitive_features, "confidence_level": confidence_level}
        frames = [
            # In brackets, so that it is not the name of a sensitive column.
            group_rates(y_true, predicted, interval=interval, form="long", **known).assign(**{"(model)": name})
            for name, predicted in (y_pred.items() if several else [(None, y_pred)])
        ]
        table = pd.concat(frames, ignore_index=True)
        measured = set(table["rate"])
        if not rates or not set(rates) <= measured:
            raise ValueError(f"rates must be chosen from {sorted(measured)}; got {rates!r}.")
        names = tuple(table.columns[: table.columns.get_loc("rate")])
        classes = [label for label in table["class"].unique() if label is not None and label == label]
        if pos_label is not None and pos_label not in classes:
            raise ValueError(f"pos_label must be one of the labels {classes}; got {pos_label!r}.")
        shown = classes[-1] if pos_label is None else pos_label
        model = "(model)" if several else None
        return cls(table, names, rates=tuple(rates), pos_label=shown, model=model).plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        if self.model is None:
            self._draw_one_model(ax)
        else:
            self._draw_models(ax)

    def _rows_of(self, rows: pd.DataFrame, rate: str) -> pd.DataFrame:
        """Return the rows of a rate; the accuracy is of all classes, the others of the positive class."""
        return rows[rows["rate"].eq(rate) & (rows["class"].eq(self.pos_label) | (rate == "accuracy"))]

    def _draw_models(self, ax: Any) -> None:
        """Draw a line for each rate and group, on which the models lie."""
        models = list(dict.fromkeys(self.table[self.model]))
        labels = self.table[list(self.names)].astype(str).agg(" x ".join, axis=1)
        groups = list(dict.fromkeys(labels))
        offsets = np.linspace(-0.18, 0.18, len(models)) if len(models) > 1 else np.zeros(1)
        for number, (model, offset) in enumerate(zip(models, offsets)):
            mine = self.table[self.table[self.model] == model]
            rows = pd.concat([self._rows_of(mine, rate) for rate in self.rates])
            block, line = rows["rate"].map(self.rates.index), labels[rows.index].map(groups.index)
            places = block * (len(groups) + 1) + 1 + line + offset
            style = {**series_style(number), "markersize": 7, "linestyle": "none", "elinewidth": 2.2}
            ax.errorbar(rows["value"], places, xerr=_error_bars(rows), label=shortened_label(model), **style)
        shown = [shortened_label(group) for group in groups]
        texts = [text for rate in self.rates for text in (_NAMES.get(rate, rate), *shown)]
        ax.set_yticks(range(len(texts)), texts)
        for name_of_rate in ax.get_yticklabels()[:: len(groups) + 1]:
            name_of_rate.set_fontweight("bold")
        ax.tick_params(axis="y", length=0)
        ax.set_ylim(len(texts) - 0.4, -0.6)
        ax.set_xlim(-0.02, 1.02)
        ax.grid(False, axis="y")
        ax.spines["left"].set_visible(False)
        ax.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, 1.0), ncols=len(models))

    def _draw_one_model(self, ax: Any) -> None:
        """Draw the rates side by side, and in each of them the groups."""
        groups = list(dict.fromkeys(self.table[list(self.names)].itertuples(index=False, name=None)))
        offsets = np.linspace(-0.3, 0.3, len(groups)) if len(groups) > 1 else np.zeros(1)
        for number, (group, offset) in enumerate(zip(groups, offsets)):
            rows = self.table[(self.table[list(self.names)] == list(group)).all(axis=1)]
            for place, rate in enumerate(self.rates):
                row = self._rows_of(rows, rate)
                label = " x ".join(map(str, group)) if place == 0 else None
                style = {**series_style(number), "markersize": 7, "linestyle": "none", "capsize": 4}
                # An undefined rate leaves its place empty: it is not 0.
                ax.errorbar(place + offset, row["value"], yerr=_error_bars(row), label=label, **style)
        names = [_NAMES.get(rate, rate).replace(" ", "\n", 1) for rate in self.rates]
        ax.set_xticks(range(len(self.rates)), names)
        ax.set_xlim(-0.5, len(self.rates) - 0.5)
        ax.set_ylim(-0.02, 1.02)
        ax.set_ylabel(f"rate (positive class: {self.pos_label})")
        ax.grid(False, axis="x")
        ax.legend(title=" x ".join(self.names), frameon=False)


def _error_bars(rows: pd.DataFrame) -> np.ndarray:
    """Return how far the intervals reach below and above the values.

    As an array: matplotlib 3.8 makes numbers of columns of one row in a way that pandas 2.1 warns about.
    """
    return np.array([rows["value"] - rows["lower"], rows["upper"] - rows["value"]])
