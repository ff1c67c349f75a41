"""Accuracy against fairness, with privacy as colour."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skfairdp.inspection._display_style import COLOUR_MAP, COLOURS, AxesDisplay, label_points
from skfairdp.model_selection import Metric, Results, undominated_rows


class TradeoffDisplay(AxesDisplay):
    """Candidates by accuracy and fairness, the front that none of them beats, and the one a rule chose.

    Make it with :meth:`from_estimator` (the curve of a fitted :class:`~skfairdp.postprocessing.FairPrivateClassifier`),
    :meth:`from_cv_results` (a search) or :meth:`from_table` (any table of methods).

    Parameters
    ----------
    accuracy, fairness : Metric
        What the axes show.
    colour : Metric or None
        What the colour shows, leakage or epsilon for instance.
    labels : sequence of str or None
        A name beside each point.
    chosen : int or None
        The position of the candidate that a rule chose.
    band : (float, float) or None
        The accuracies among which the rule looked for the fairest.
    interval : (ndarray, ndarray) or None
        Lower and upper end of an interval of each candidate's fairness.
    private : ndarray of bool or None
        Which candidates have a finite epsilon: they are drawn as squares, and the others as open circles.

    Attributes
    ----------
    front : ndarray of bool
        Which candidates no other candidate beats in both accuracy and fairness.
    ax_, figure_ : matplotlib Axes, Figure
        Where it was drawn last.

    Examples
    --------
    >>> from skfairdp.inspection import TradeoffDisplay
    >>> from skfairdp.model_selection import RelaxationThreshold
    >>> table = {"accuracy": [0.90, 0.895, 0.86], "tpr_gap": [0.20, 0.05, 0.10]}
    >>> display = TradeoffDisplay.from_table(table, rule=RelaxationThreshold(0.01))
    >>> display.chosen, display.front.tolist()
    (1, [True, True, False])
    """

    def __init__(
        self,
        accuracy: Metric,
        fairness: Metric,
        *,
        colour: Metric | None = None,
        labels: Sequence[str] | None = None,
        chosen: int | None = None,
        band: tuple[float, float] | None = None,
        interval: tuple[np.ndarray, np.ndarray] | None = None,
        private: np.ndarray | None = None,
    ):
        self.accuracy = accuracy
        self.fairness = fairness
        self.colour = colour
        self.labels = labels
        self.chosen = chosen
        self.band = band
        self.interval = interval
        self.private = private
        self.shown = np.isfinite(accuracy.score) & np.isfinite(fairness.score)
        self.front = np.zeros(len(self.shown), dtype=bool)
        self.front[self.shown] = undominated_rows(np.column_stack([accuracy.score, fairness.score])[self.shown])

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> "TradeoffDisplay":
        """Draw the whole trade-off of one fit, with intervals of the gap and the point that was taken.

        Parameters
        ----------
        estimator : FairPrivateClassifier
            Fitted with sensitive features.
        ax : matplotlib Axes or None
            Where to draw; ``None`` makes a new figure.

        Returns
        -------
        TradeoffDisplay
        """
        check_is_fitted(estimator, "tradeoff_")
        table = estimator.tradeoff_
        fairness = next((name for name in table.columns if name.endswith("_gap")), None)
        if fairness is None:
            raise ValueError("estimator has no trade-off to draw: it was fitted without sensitive_features.")
        display = cls(
            *(Results(table, None).metric(name) for name in ("accuracy", fairness)),
            chosen=int(np.flatnonzero(table["strength"] == estimator.strength_)[0]),
            interval=tuple(table[f"{fairness}_{end}"].to_numpy() for end in ("lower", "upper")),
        )
        return display.plot(ax=ax)

    @classmethod
    def from_cv_results(
        cls,
        cv_results: Any,
        *,
        accuracy: str = "accuracy",
        fairness: str = "tpr_gap",
        colour: str | None = None,
        rule: Any = None,
        directions: Mapping[str, str] | None = None,
        ax: Any = None,
    ) -> "TradeoffDisplay":
        """Draw the candidates of a search.

        Parameters
        ----------
        cv_results : dict or DataFrame
            ``search.cv_results_``.
        accuracy, fairness : str
            Keys of ``scoring``.
        colour : str or None
            A key of ``scoring``, or a column such as ``"param_laplaceprivatizer__epsilon"``.
        rule : RelaxationThreshold, DistanceToOptimum, ParetoFront or None
            What was given as ``refit``; marks its choice and, for a relaxation threshold, its band.
        directions : dict of str to {"min", "max"} or None
            Which metrics are better small, where the name does not tell.
        ax : matplotlib Axes or None
            Where to draw; ``None`` makes a new figure.

        Returns
        -------
        TradeoffDisplay
        """
        metrics = {"accuracy": accuracy, "fairness": fairness, "colour": colour}
        return cls.from_table(cv_results, **metrics, rule=rule, directions=directions, ax=ax)

    @classmethod
    def from_table(
        cls,
        table: Any,
        *,
        accuracy: str = "accuracy",
        fairness: str = "tpr_gap",
        colour: str | None = None,
        label: str | None = None,
        rule: Any = None,
        directions: Mapping[str, str] | None = None,
        interval: tuple[str, str] | None = None,
        epsilon: str | None = None,
        ax: Any = None,
    ) -> "TradeoffDisplay":
        """Draw the rows of a table, one method or candidate each.

        Parameters
        ----------
        table : dict or DataFrame
            One row per method or candidate.
        accuracy, fairness : str
            Names of columns.
        colour : str or None
            Name of a column.
        label : str or None
            Name of the column whose text is written beside each point.
        rule : RelaxationThreshold, DistanceToOptimum, ParetoFront or None
            Marks its choice and, for a relaxation threshold, its band.
        directions : dict of str to {"min", "max"} or None
            Which columns are better small, where the name does not tell.
        interval : (str, str) or None
            Names of the columns with the lower and the upper end of an interval of the fairness.
        epsilon : str or None
            Name of the column of epsilons: where it is finite, a point is a square, and elsewhere an open circle.
        ax : matplotlib Axes or None
            Where to draw; ``None`` makes a new figure.

        Returns
        -------
        TradeoffDisplay
        """
        # The colour has no direction of its own to be known, and none is needed to show it.
        known = {**({} if colour is None else {colour: "max"}), **(directions or {})}
        results = Results(table, directions)
        accuracies = results.metric(accuracy)
        chosen, band = None, None
        if rule is not None:
            chosen = int(rule(table))
            threshold = getattr(rule, "threshold", None)
            if threshold is not None:
                best = float(np.nanmax(accuracies.value))
                band = (best - threshold, best)
        return cls(
            accuracies,
            results.metric(fairness),
            colour=None if colour is None else _as_read(Results(table, known), colour),
            labels=None if label is None else [str(text) for text in table[label]],
            chosen=chosen,
            band=band,
            interval=None if interval is None else tuple(np.asarray(table[end], dtype=float) for end in interval),
            private=None if epsilon is None else np.isfinite(np.asarray(table[epsilon], dtype=float)),
        ).plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        x, y = self.accuracy.value, self.fairness.value
        if self.band is not None:
            ax.axvspan(*self.band, color="0.92", zorder=0, label="relaxation band")
        on_front = np.flatnonzero(self.front)
        on_front = on_front[np.argsort(x[on_front])]
        ax.plot(x[on_front], y[on_front], color="0.45", linestyle="--", linewidth=1, zorder=1, label="Pareto front")
        if self.interval is not None:
            lower, upper = self.interval
            ax.vlines(x[self.shown], lower[self.shown], upper[self.shown], color="0.65", linewidth=1.2, zorder=1)
        if self.private is not None:
            here, open_ones = self.shown & self.private, self.shown & ~self.private
            ax.scatter(x[here], y[here], s=60, marker="s", color=COLOURS[2], zorder=2, label="finite epsilon")
            style = {"facecolors": "white", "edgecolors": COLOURS[0], "linewidths": 2.2}
            ax.scatter(x[open_ones], y[open_ones], s=60, zorder=2, label="no privacy", **style)
        elif self.colour is None:
            ax.scatter(x[self.shown], y[self.shown], s=45, color=COLOURS[0], zorder=2)
        else:
            style = {"cmap": COLOUR_MAP, "s": 45, "edgecolors": "0.3", "linewidths": 0.5, "zorder": 2}
            points = ax.scatter(x[self.shown], y[self.shown], c=self.colour.value[self.shown], **style)
            ax.figure.colorbar(points, ax=ax, label=_readable_name(self.colour.name))
        if self.chosen is not None:
            style = {"s": 190, "facecolors": "none", "edgecolors": COLOURS[1], "linewidths": 2.2, "zorder": 3}
            ax.scatter(x[self.chosen], y[self.chosen], label="chosen", **style)
        ax.set_xlabel(_readable_name(self.accuracy.name))
        ax.set_ylabel(f"{_readable_name(self.fairness.name)}{' (smaller is fairer)' if self.fairness.negated else ''}")
        ax.margins(0.12)
        ax.legend(frameon=False)
        if self.labels is not None:
            shown = np.flatnonzero(self.shown)
            label_points(ax, [(x[k], y[k]) for k in shown], [self.labels[k] for k in shown])


def _as_read(results: Results, name: str) -> Metric:
    """Read a metric for its value alone: the score of a leakage is negative, its colour is not."""
    metric = results.metric(name)
    finite = metric.value[np.isfinite(metric.value)]
    return Metric(name, np.abs(metric.value), False) if finite.size and (finite <= 0).all() else metric


def _readable_name(name: str) -> str:
    words = name.removeprefix("mean_test_").removeprefix("param_").split("__")[-1].split("_")
    return " ".join(word.upper() if word in ("tpr", "fpr", "grms", "mdl") else word for word in words)
