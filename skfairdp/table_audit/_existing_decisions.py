"""Systems that exist already: decisions and scores that are columns of the table, and models that come fitted.

Nothing of them is trained here, so that every row of the table can judge them.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from skfairdp._validation import check_number
from skfairdp.table_audit._prepared_table import PreparedTable
from skfairdp.table_audit._table_checks import TableCheck

#: A difference of this size, in the share of a group that nothing was decided about, is named.
_UNEVEN = 0.1


@dataclass(frozen=True)
class DecisionColumns:
    """Where the decisions of a system are found in a table.

    Attributes
    ----------
    name : str
        What the system is called.
    predictions : str or None
        The column of its decisions, each a class of the target.
    scores : str or None
        The column of its scores; larger speaks for the favourable class.
    """

    name: str
    predictions: str | None = None
    scores: str | None = None

    @property
    def columns(self) -> list[str]:
        """The columns of the table that belong to the system."""
        return [column for column in (self.predictions, self.scores) if column is not None]


@dataclass(frozen=True)
class ExistingSystem:
    """What a system decided about the rows of a table.

    Attributes
    ----------
    name : str
        What it is called.
    rows : ndarray of int
        The rows that it decided about.
    predicted : ndarray
        Its decisions about them.
    scores : ndarray or None
        Its scores of them between 0 and 1, if it has any: how likely it holds the favourable class to be.
    model : object
        The fitted model; None if the decisions were in the table.
    summary : str
        What it is, in one sentence.
    notes : tuple of str
        What was left out or assumed.
    """

    name: str
    rows: np.ndarray
    predicted: np.ndarray
    scores: np.ndarray | None
    model: Any
    summary: str
    notes: tuple[str, ...] = ()


def name_decision_columns(predictions: Any, scores: Any) -> list[DecisionColumns]:
    """Bring decisions and scores of the same name together.

    Parameters
    ----------
    predictions, scores : str, list of str, dict of name to column, or None
        A column without a name is called by its own.

    Returns
    -------
    list of DecisionColumns
    """
    decided, scored = _named_columns(predictions, "predictions"), _named_columns(scores, "scores")
    return [DecisionColumns(name, decided.get(name), scored.get(name)) for name in dict.fromkeys([*decided, *scored])]


def _named_columns(given: Any, argument: str) -> dict[str, str]:
    if given is None:
        return {}
    if isinstance(given, str):
        given = [given]
    if not isinstance(given, Mapping):
        columns = list(given)
        given = {str(column): column for column in columns}
        if len(given) < len(columns):
            raise ValueError(f"{argument} names a column twice: {columns}.")
    if not given:
        raise ValueError(f"{argument} is empty; name a column, or leave it out.")
    return {str(name): str(column) for name, column in given.items()}


def read_decisions(table: PreparedTable, columns: DecisionColumns, threshold: float | None) -> ExistingSystem:
    """Read decisions from a table; scores without decisions become decisions at a threshold.

    Parameters
    ----------
    table : PreparedTable
        The table, prepared with these columns as ``decisions``.
    columns : DecisionColumns
        Where to look.
    threshold : float or None
        Scores from this on are decisions for the favourable class; None is 0.5 for scores between 0 and 1.

    Returns
    -------
    ExistingSystem
    """
    notes: list[str] = []
    scores = None if columns.scores is None else _score_values(table, columns)
    known = np.ones(len(table.y), dtype=bool) if scores is None else np.isfinite(scores)
    if columns.predictions is not None:
        labels, given = _as_classes(table, table.raw[columns.predictions], columns)
        known &= given
    else:
        labels, at = _decisions_at_threshold(table, columns, scores, threshold)
        notes.append(f"{columns.name}: decisions are scores of {columns.scores!r} from {at:g} on.")
    rows = np.flatnonzero(known)
    if not len(rows):
        raise ValueError(f"{columns.name}: no row has a value in {' and '.join(map(repr, columns.columns))}.")
    if len(rows) < len(known):
        notes.append(f"{columns.name}: {len(known) - len(rows):,} rows without a decision or score are left out.")
    if scores is not None and (scores[rows].min() < 0 or scores[rows].max() > 1):
        notes.append(f"{columns.name}: calibration is not judged, because scores lie outside of 0 and 1.")
        scores = None
    found = " and ".join(
        f"{what} in column {column!r}"
        for what, column in (("decisions", columns.predictions), ("scores", columns.scores))
        if column is not None
    )
    return ExistingSystem(
        columns.name,
        rows,
        labels[rows],
        None if scores is None else scores[rows],
        None,
        f"What exists already: {found}.",
        tuple(notes),
    )


def check_missing_decisions(table: PreparedTable, system: ExistingSystem) -> list[TableCheck]:
    """Say if decisions are missing more often in one group than in another: then rates compare unlike people."""
    missing = ~np.isin(np.arange(len(table.y)), system.rows)
    found = []
    for name in table.sensitive:
        share = pd.Series(missing).groupby(table.sensitive[name].to_numpy()).mean()
        if share.max() - share.min() < _UNEVEN:
            continue
        sentence = (
            f"Decisions of {system.name} are missing for {share.max():.0%} of group {share.idxmax()!s} of {name!r} and "
            f"for {share.min():.0%} of group {share.idxmin()!s}: those who are judged may not be like the others."
        )
        found.append(TableCheck("missing_decisions", (name,), True, sentence, "Find out why before you compare them."))
    return found


def ask_fitted_model(table: PreparedTable, name: str, model: Any) -> ExistingSystem:
    """Let a model that came fitted decide about every row, by the columns that it knows.

    Parameters
    ----------
    table : PreparedTable
        The table.
    name : str
        What the model is called.
    model : object
        With ``predict``; ``predict_proba`` and ``classes_`` give scores.

    Returns
    -------
    ExistingSystem
    """
    X = columns_of_model(model, table, np.arange(len(table.y)), name)
    labels, known = _as_classes(table, pd.Series(np.asarray(model.predict(X))), DecisionColumns(name))
    if not known.all():
        raise ValueError(f"{name} predicts nothing for row {int(np.argmin(known))}.")
    return ExistingSystem(
        name,
        np.arange(len(labels)),
        labels,
        positive_scores(model, X, table),
        model,
        f"What exists already: a fitted {type(model).__name__}, used as it is.",
        (
            f"{name} came fitted and is judged on all rows. On rows that it was trained on it looks better than it "
            "is: give a table that it has not seen.",
        ),
    )


def columns_of_model(model: Any, table: PreparedTable, rows: np.ndarray, name: str) -> pd.DataFrame:
    """Return rows with the columns that a fitted model was trained on, if it names them."""
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return table.X.iloc[rows]
    missing = [str(column) for column in names if column not in table.raw]
    if missing:
        raise ValueError(f"{name} was fitted on columns that the table does not have: {', '.join(map(repr, missing))}.")
    return table.raw[list(names)].iloc[rows]


def positive_scores(model: Any, X: Any, table: PreparedTable) -> np.ndarray | None:
    """Return how likely a model holds the favourable class to be; None if it does not say."""
    if table.pos_label is None or not hasattr(model, "predict_proba") or not hasattr(model, "classes_"):
        return None
    place = np.flatnonzero(np.asarray(model.classes_) == table.pos_label)
    if len(place) != 1:
        return None
    return np.asarray(model.predict_proba(X), dtype=float)[:, place[0]]


def _score_values(table: PreparedTable, columns: DecisionColumns) -> np.ndarray:
    column = table.raw[columns.scores]
    if not pd.api.types.is_numeric_dtype(column.dtype):
        raise ValueError(f"scores: column {columns.scores!r} must hold numbers; its first is {column.iloc[0]!r}.")
    if table.pos_label is None:
        raise ValueError(
            f"scores: column {columns.scores!r} speaks for one class, and the target has {len(table.classes)}; name "
            "the favourable one with pos_label."
        )
    values = column.to_numpy(dtype=float, na_value=np.nan)
    if np.isinf(values).any():
        raise ValueError(
            f"scores: column {columns.scores!r} holds infinity, first in row {int(np.argmax(np.isinf(values)))}; put a "
            "largest score in its place."
        )
    return values


def _decisions_at_threshold(
    table: PreparedTable, columns: DecisionColumns, scores: Any, threshold: float | None
) -> tuple[np.ndarray, float]:
    if len(table.classes) > 2:
        raise ValueError(
            f"scores: column {columns.scores!r} cannot decide between {len(table.classes)} classes; give the decisions "
            "as predictions too."
        )
    present = scores[np.isfinite(scores)]
    if threshold is None:
        if present.size and (present.min() < 0 or present.max() > 1):
            raise ValueError(
                f"score_threshold is missing: column {columns.scores!r} goes from {present.min():g} to "
                f"{present.max():g}, so that 0.5 would mean nothing. Say from which score on a decision is favourable."
            )
        threshold = 0.5
    threshold = check_number(threshold, "score_threshold", "finite", np.isfinite)
    other = next(label for label in table.classes if label != table.pos_label)
    chosen = np.array([other, table.pos_label], dtype=table.y.dtype)
    return chosen[(scores >= threshold).astype(int)], threshold


def _as_classes(table: PreparedTable, column: pd.Series, columns: DecisionColumns) -> tuple[np.ndarray, np.ndarray]:
    """Return decisions as classes of the target, which may be written in another way, and which rows have one."""
    indices, found = pd.factorize(column)
    places = []
    for label in found:
        label = label.item() if isinstance(label, np.generic) else label
        places_of = [k for k, known in enumerate(table.classes) if label == known]
        places_of += [k for k, known in enumerate(table.classes) if _same_label(label, known)]
        place = places_of[0] if places_of else None
        if place is None:
            if columns.predictions is None:
                raise ValueError(f"{columns.name} predicts {label!r}, which is no class of {table.target!r}.")
            raise ValueError(
                f"predictions: column {columns.predictions!r} holds {label!r}, which is no class of "
                f"{table.target!r} ({', '.join(map(repr, table.classes[:5]))}). Numbers between 0 and 1 are scores."
            )
        places.append(place)
    values = np.array(table.classes, dtype=table.y.dtype)
    known = indices >= 0
    return values[np.array([*places, 0])[indices]], known


def _same_label(one: Any, other: Any) -> bool:
    """Say whether two labels are the same, as numbers or as text: 1 and 1.0 and "1" are."""
    if str(one) == str(other):
        return True
    if isinstance(one, str) and isinstance(other, str):
        return False  # "01" and "1" are two names
    try:
        return float(one) == float(other)
    except (TypeError, ValueError):
        return False


def load_model(path: str | os.PathLike[str]) -> Any:
    """Load a fitted model from a file of skops (``.skops``) or joblib.

    A joblib file can run any program when it is opened: open only files you trust. A skops file is refused if it holds
    types that skops does not know to be harmless.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    object
        With ``predict``.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}.")
    model = _load_skops(path) if path.suffix == ".skops" else _load_joblib(path)
    if isinstance(model, type) or not hasattr(model, "predict"):
        raise ValueError(f"{path} holds a {type(model).__name__}, which cannot predict.")
    return model


def _load_joblib(path: Path) -> Any:
    import joblib

    try:
        return joblib.load(path)
    except Exception as error:
        raise ValueError(
            f"{path} cannot be opened as a model ({type(error).__name__}: {error}). It must be written by joblib.dump, "
            "with the same versions of the libraries inside."
        ) from None


def _load_skops(path: Path) -> Any:
    try:
        from skops import io
    except ImportError:
        raise ValueError(f"{path} needs skops: pip install skops, or give a file of joblib.") from None
    try:
        unknown = io.get_untrusted_types(file=path)
        if not unknown:
            return io.load(path)
    except Exception as error:
        raise ValueError(f"{path} cannot be opened as a model of skops ({type(error).__name__}: {error}).") from None
    raise ValueError(
        f"{path} holds types that skops does not trust: {', '.join(unknown)}. Load it yourself, if you trust its "
        "author, and give the model to audit_table."
    )
