"""Turn a table as it comes into features, target and groups, say what was done to it, and divide its rows."""

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skfairdp._validation import check_choice, check_option
from skfairdp.table_audit._column_kinds import (
    as_numbers,
    as_text,
    is_numeric,
    number_of_rows,
    reason_to_drop,
)

MAX_CLASSES = 50  # a target with more values is a number or a text, not a class
MAX_GROUPS = 20  # the same for one sensitive column
MIN_ROWS = 50  # with fewer, the test rows say nothing
MIN_CLASS_ROWS = 10  # rows of each class, so that every fold and the test rows have some
MAX_CATEGORIES = 25  # of one column; all rarer categories become one
MAX_STRATA = 50  # of one control column
#: What "fair" means, and the metric that tells how far a model is from it.
FAIRNESS_METRICS = {
    "equal_opportunity": "tpr_gap",
    "equalized_odds": "equalized_odds_gap",
    "demographic_parity": "demographic_parity_gap",
    "calibration": "calibration_gap",
}


@dataclass(frozen=True)
class PreparedTable:
    """What is left of a table.

    Attributes
    ----------
    X : DataFrame
        Features: float columns, and text columns without missing values.
    y : ndarray
        Class labels.
    sensitive : DataFrame
        Sensitive columns.
    raw : DataFrame
        The same rows as they came, for models that know their own columns.
    classes : tuple
        Class labels, sorted.
    pos_label : object
        The favourable class; None with more than two classes if none was named.
    target : str
        Name of the target column.
    notes : tuple of str
        What was left out or filled in, one sentence each.
    fairness : str
        Name of the metric that tells how unfair a model is.
    assumed_positive : bool
        Whether the favourable class was assumed, because nobody named it.
    weight : ndarray or None
        Weight of each row.
    control : DataFrame or None
        Strata within which groups are compared, as text.
    person : ndarray of int or None
        Whose each row is.
    roles : dict of str to str
        What the user said of columns: ``"target"``, ``"sensitive"``, ``"weights"``, ``"person"``, ``"decision"`` or
        ``"dropped"``. A column that is not here may be a feature.
    left_out : dict of str to str
        Columns that are no features for what is in them, with the reason.
    """

    X: pd.DataFrame
    y: np.ndarray
    sensitive: pd.DataFrame
    raw: pd.DataFrame
    classes: tuple[Any, ...]
    pos_label: Any
    target: str
    notes: tuple[str, ...]
    fairness: str = "tpr_gap"
    assumed_positive: bool = False
    weight: np.ndarray | None = None
    control: pd.DataFrame | None = None
    person: np.ndarray | None = None
    roles: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)

    def take(self, rows: np.ndarray) -> "PreparedTable":
        """Return some of the rows, for models that look at features, groups and labels alone: ``raw`` is left out."""
        return replace(
            self,
            X=self.X.iloc[rows],
            y=self.y[rows],
            sensitive=self.sensitive.iloc[rows],
            raw=self.raw.iloc[:0],
            weight=None if self.weight is None else self.weight[rows],
            control=None if self.control is None else self.control.iloc[rows],
            person=None if self.person is None else self.person[rows],
        )

    def preprocessor(self) -> ColumnTransformer:
        """Return an unfitted transformer of ``X`` into numbers; it learns from training rows only."""
        numeric = [name for name in self.X if pd.api.types.is_numeric_dtype(self.X[name])]
        categorical = [name for name in self.X if name not in numeric]
        imputer = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
        encoder = OneHotEncoder(
            handle_unknown="infrequent_if_exist", max_categories=MAX_CATEGORIES, sparse_output=False
        )
        return ColumnTransformer(
            [("numbers", make_pipeline(imputer, StandardScaler()), numeric), ("categories", encoder, categorical)],
            verbose_feature_names_out=False,
        )


def prepare_table(
    frame: Any,
    target: Any,
    sensitive: Any,
    *,
    pos_label: Any = None,
    keep_sensitive: bool = False,
    fairness: str = "equal_opportunity",
    weights: Any = None,
    control: Any = (),
    person: Any = None,
    drop: Any = (),
    features: Any = None,
    decisions: Any = (),
) -> PreparedTable:
    """Check the roles of the columns, drop what cannot be used, and note it.

    Parameters
    ----------
    frame : pandas or polars DataFrame
        The table, as it comes.
    target : str
        Column to predict.
    sensitive : str or list of str
        Columns whose groups are compared.
    pos_label : label, optional
        The favourable class; without it the larger of two labels is assumed.
    keep_sensitive : bool, default=False
        Whether sensitive columns are features too.
    fairness : {"equal_opportunity", "equalized_odds", "demographic_parity", "calibration"}
        What fair means.
    weights : str, optional
        Column with the weight of each row.
    control : str or list of str, default=()
        Columns within whose values groups are compared; numbers are cut into quarters.
    person : str, optional
        Column that tells which rows are of one person.
    drop : str or list of str, default=()
        Columns that are no features.
    features : str or list of str, optional
        The only columns that may be features.
    decisions : str or list of str, default=()
        Columns with somebody's predictions or scores: never features.

    Returns
    -------
    PreparedTable
        Without any feature only if there are decisions to look at.
    """
    frame = _check_frame(frame)
    target, names = _check_roles(frame, target, sensitive)
    check_option(fairness, "fairness", list(FAIRNESS_METRICS))
    single = {"weights": weights, "person": person}
    lists = {"control": control, "drop": drop, "decisions": decisions}
    chosen = {role: _names(frame, [] if given is None else [given], role) for role, given in single.items()}
    chosen |= {role: _names(frame, given, role) for role, given in lists.items()}
    roles = _roles(target, names, chosen)
    allowed = (
        None if features is None else _allowed_features(_names(frame, features, "features"), roles, keep_sensitive)
    )
    notes: list[str] = []
    needed = [target, *names, *chosen["weights"]]
    known = frame[needed].notna().all(axis=1).to_numpy()
    if len(frame) and not known.any():
        *first, last = map(repr, needed)
        raise ValueError(f"every row lacks a value in {', '.join(first)} or {last}.")
    if not known.all():
        what = "target or sensitive value" if weights is None else "target, sensitive value or weight"
        notes.append(f"{number_of_rows(int((~known).sum()))} without {what} left out.")
        frame = frame[known]
    frame = frame.reset_index(drop=True)
    if len(frame) < MIN_ROWS:
        raise ValueError(
            f"the table has {number_of_rows(len(frame))} to work with; an audit needs at least {MIN_ROWS}."
        )
    y, classes = _target_classes(frame[target], target)
    positive, assumed = _positive_class(classes, pos_label)
    metric = _fairness_metric(fairness, positive, classes)
    for name in names:
        _check_groups(frame[name], name, notes)
    weight = None if weights is None else _row_weights(frame[chosen["weights"][0]])
    persons = None if person is None else _persons(frame[chosen["person"][0]], y, notes)
    strata = _strata(frame[chosen["control"]], notes) if chosen["control"] else None
    kept = [name for name in frame if name not in roles or (keep_sensitive and roles[name] == "sensitive")]
    kept = [name for name in kept if name not in chosen["drop"] and (allowed is None or name in allowed)]
    if not keep_sensitive:
        notes.append(f"Not used as a feature: {', '.join(map(repr, names))} (sensitive).")
    for role, why in (("drop", "as told"), ("decisions", "decisions or scores of a system")):
        if chosen[role]:
            notes.append(f"Not used as a feature: {', '.join(map(repr, chosen[role]))} ({why}).")
    X, left_out = _feature_columns(frame[kept], notes)
    if X.shape[1] == 0:
        if not chosen["decisions"]:
            raise ValueError("no column is left to predict from: " + " ".join(notes))
        notes.append("No column is left to predict from: no model can be trained, only decisions can be looked at.")
    return PreparedTable(
        X,
        y,
        frame[names],
        frame,
        classes,
        positive,
        target,
        tuple(notes),
        fairness=metric,
        assumed_positive=assumed,
        weight=weight,
        control=strata,
        person=persons,
        roles=roles,
        left_out=left_out,
    )


def _check_frame(frame: Any) -> pd.DataFrame:
    """Return the table as pandas with text column names, each once."""
    if hasattr(frame, "to_pandas") and not isinstance(frame, pd.DataFrame):
        frame = frame.to_pandas()
    if not isinstance(frame, pd.DataFrame):
        raise TypeError(f"frame must be a pandas or polars DataFrame; got {type(frame).__name__}.")
    frame = frame.set_axis([str(column) for column in frame.columns], axis=1)
    twice = sorted(set(frame.columns[frame.columns.duplicated()]))
    if twice:
        raise ValueError(f"the table has two columns of the same name: {', '.join(map(repr, twice))}.")
    if frame.shape[1] < 3:
        raise ValueError(
            f"the table has {frame.shape[1]} column{'s' * (frame.shape[1] != 1)} "
            f"({', '.join(map(repr, frame.columns)) or 'none'}); an audit needs at least three: target, sensitive, "
            "and something to predict from. Is the separator right?"
        )
    return frame


def _check_roles(frame: pd.DataFrame, target: Any, sensitive: Any) -> tuple[str, list[str]]:
    """Check the names of target and sensitive columns."""
    known = list(frame.columns)
    target = check_choice(str(target), known, "column")
    given = [sensitive] if isinstance(sensitive, str) else list(sensitive)
    if not given:
        raise ValueError("sensitive must name at least one column.")
    names = [check_choice(str(name), known, "column") for name in given]
    if len(set(names)) < len(names):
        raise ValueError(f"sensitive names a column twice: {names}.")
    if target in names:
        raise ValueError(f"column {target!r} cannot be the target and sensitive at once.")
    return target, names


def _names(frame: pd.DataFrame, given: Any, role: str) -> list[str]:
    """Return column names that were given as one name or as several."""
    given = [given] if isinstance(given, str) else list(given)
    names = [check_choice(str(name), list(frame.columns), "column") for name in given]
    if len(set(names)) < len(names):
        raise ValueError(f"{role} names a column twice: {names}.")
    return names


def _roles(target: str, sensitive: list[str], chosen: dict[str, list[str]]) -> dict[str, str]:
    """Give every column that is no feature its role; refuse two roles that contradict each other."""
    roles = {target: "target"} | dict.fromkeys(sensitive, "sensitive")
    for role, word in (("weights", "weights"), ("person", "person"), ("decisions", "decision")):
        for name in chosen[role]:
            if name in roles:
                raise ValueError(f"column {name!r} cannot be {roles[name]} and {word} at once; {role} names it.")
            roles[name] = word
    for name in chosen["control"]:
        if name in roles:
            raise ValueError(f"column {name!r} cannot be {roles[name]} and control at once; control names it.")
    for name in chosen["drop"]:
        if name == target:
            raise ValueError(f"drop names {name!r}, the target; it is no feature anyway.")
        roles.setdefault(name, "dropped")
    return roles


def _allowed_features(names: list[str], roles: dict[str, str], keep_sensitive: bool) -> set[str]:
    if not names:
        raise ValueError("features must name at least one column; leave it out to use all.")
    for name in names:
        if name in roles and not (keep_sensitive and roles[name] == "sensitive"):
            hint = " Set keep_sensitive, if a model may use it." if roles[name] == "sensitive" else ""
            raise ValueError(f"features names {name!r}, whose role is {roles[name]!r}: it is no feature.{hint}")
    return set(names)


def _target_classes(column: pd.Series, name: str) -> tuple[np.ndarray, tuple[Any, ...]]:
    if not (pd.api.types.is_numeric_dtype(column.dtype) or pd.api.types.is_bool_dtype(column.dtype)):
        column = column.astype(object).map(str)  # a class is a name; text and numbers in one column have no order
    class_indices, found = pd.factorize(column, sort=True)
    labels = [label.item() if isinstance(label, np.generic) else label for label in found]
    if len(labels) < 2:
        raise ValueError(f"the target {name!r} is constant: every row is {labels[0]!r}.")
    if len(labels) > MAX_CLASSES:
        raise ValueError(
            f"the target {name!r} has {len(labels):,} different values; an audit knows up to {MAX_CLASSES} classes. "
            + (_how_to_cut(column, name) if is_numeric(column) else "Merge them into a few classes first.")
        )
    _refuse_twins(labels, name)
    counts = np.bincount(class_indices)
    if counts.min() < MIN_CLASS_ROWS:
        rare = labels[int(counts.argmin())]
        looks_continuous = is_numeric(column) and len(labels) > 10
        raise ValueError(
            f"class {rare!r} of the target {name!r} has {number_of_rows(int(counts.min()))}; each class needs at "
            f"least {MIN_CLASS_ROWS}. "
            + (_how_to_cut(column, name) if looks_continuous else "Merge rare classes or drop their rows.")
        )
    values = np.array(labels, dtype=object if isinstance(labels[0], str) else None)
    return values[class_indices], tuple(labels)


def _refuse_twins(labels: list[Any], name: str) -> None:
    """Refuse classes that differ in capitals and spaces alone: they are one class, written in two ways."""
    seen: dict[str, Any] = {}
    for label in labels:
        if isinstance(label, str) and (twin := seen.setdefault(label.strip().casefold(), label)) != label:
            raise ValueError(
                f"classes {twin!r} and {label!r} of the target {name!r} differ in capitals or spaces alone; write them "
                f"in one way first, for example frame[{name!r}] = frame[{name!r}].str.strip().str.lower()."
            )


def _how_to_cut(column: pd.Series, name: str) -> str:
    """Say how a number becomes classes, with a threshold that halves this one."""
    middle = float(column.median())
    return (
        "It looks like a number: cut it at a threshold first, for example "
        f"frame[{name!r}] = (frame[{name!r}] > {middle:g}).map({{True: 'high', False: 'low'}}), or into equal parts, "
        f"frame[{name!r}] = pd.qcut(frame[{name!r}], 4, duplicates='drop').astype(str)."
    )


def _positive_class(classes: tuple[Any, ...], pos_label: Any) -> tuple[Any, bool]:
    """Return the favourable class, and whether it is assumed."""
    if pos_label is None:
        return (classes[-1], True) if len(classes) == 2 else (None, False)
    for label in classes:
        if label == pos_label or str(label) == str(pos_label):
            return label, False
    raise ValueError(f"pos_label must be one of the classes {list(classes)}; got {pos_label!r}.")


def _fairness_metric(fairness: str, positive: Any, classes: tuple[Any, ...]) -> str:
    if positive is None and fairness == "equal_opportunity":
        return "grms"
    if positive is None and fairness == "calibration":
        raise ValueError(
            f"fairness='calibration' is about the scores of one class; name it with pos_label, one of {list(classes)}."
        )
    return FAIRNESS_METRICS[fairness]


def _row_weights(column: pd.Series) -> np.ndarray:
    if not is_numeric(column):
        raise ValueError(f"weights: column {column.name!r} must hold numbers; its first value is {column.iloc[0]!r}.")
    weight = column.to_numpy(dtype=np.float64)
    if not (np.isfinite(weight).all() and weight.min() >= 0 and weight.max() > 0):
        raise ValueError(
            f"weights: column {column.name!r} must hold numbers from 0 on that are not all 0; it goes from "
            f"{weight.min():g} to {weight.max():g}."
        )
    return weight


def _persons(column: pd.Series, y: np.ndarray, notes: list[str]) -> np.ndarray:
    """Return the number of each row's person; a row without a name is a person of its own."""
    try:
        person, found = pd.factorize(column)
    except TypeError:
        raise ValueError(f"person: column {column.name!r} holds values that are no labels (lists or dicts).") from None
    nameless = person < 0
    person[nameless] = len(found) + np.arange(nameless.sum())
    pairs = pd.DataFrame({"person": person, "y": y}).drop_duplicates()
    per_class = pairs["y"].value_counts()
    if per_class.min() < MIN_CLASS_ROWS:
        raise ValueError(
            f"person: class {per_class.idxmin()!r} has rows of {int(per_class.min())} different values of "
            f"{column.name!r} only; with all rows of a person on one side, each class needs at least {MIN_CLASS_ROWS}."
        )
    n_persons = len(found) + int(nameless.sum())
    notes.append(
        f"{len(y):,} rows of {n_persons:,} different {column.name!r}: all rows of one are on one side of every split. "
        "Intervals take rows as independent; where rows of one agree, they are too narrow."
    )
    return person


def _strata(frame: pd.DataFrame, notes: list[str]) -> pd.DataFrame:
    """Return control columns as text, numbers with many values cut into quarters."""
    strata = {}
    for name in frame:
        column = frame[name]
        try:
            n_distinct = column.nunique()
        except TypeError:
            raise ValueError(f"control: column {name!r} holds values that are no labels (lists or dicts).") from None
        if is_numeric(column) and not pd.api.types.is_bool_dtype(column.dtype) and n_distinct > 10:
            column = _quarters(as_numbers(column, name, []))
            notes.append(f"Control {name!r} is cut into {column.nunique()} ranges of about equal numbers of rows.")
        elif n_distinct > MAX_STRATA:
            raise ValueError(
                f"control: column {name!r} has {n_distinct:,} different values; an audit compares within up to "
                f"{MAX_STRATA}. Merge them first."
            )
        strata[name] = as_text(column)
    return pd.DataFrame(strata, index=frame.index)


def _quarters(values: pd.Series) -> pd.Series:
    """Cut numbers into quarters; if one value fills most of them, into that value and all others."""
    cut = pd.qcut(values, 4, duplicates="drop")
    if cut.nunique() > 1:
        return cut
    usual = values.median()
    return (values == usual).map({True: f"{usual:g}", False: f"not {usual:g}"}).where(values.notna())


def _check_groups(column: pd.Series, name: str, notes: list[str]) -> None:
    if column.dtype == object and not column.map(lambda value: isinstance(value, Hashable)).all():
        raise ValueError(f"the sensitive column {name!r} holds values that are no labels (lists or dicts).")
    counts = column.value_counts()
    counts = counts[counts > 0]
    if len(counts) < 2:
        raise ValueError(f"the sensitive column {name!r} has one group only: every row is {counts.index[0]!r}.")
    if len(counts) > MAX_GROUPS:
        raise ValueError(
            f"the sensitive column {name!r} has {len(counts):,} different values; an audit knows up to {MAX_GROUPS} "
            "groups. Cut a number into ranges, or merge groups, first."
        )
    for label, count in counts[counts < 4 * MIN_CLASS_ROWS].items():
        notes.append(
            f"Group {label!r} of {name!r} has {number_of_rows(int(count))} only; what is said of it is uncertain."
        )


def _feature_columns(frame: pd.DataFrame, notes: list[str]) -> tuple[pd.DataFrame, dict[str, str]]:
    """Return the columns to predict from, and why the others are none."""
    kept: dict[str, pd.Series] = {}
    left_out: dict[str, str] = {}
    filled = []
    for name, column in frame.items():
        reason = reason_to_drop(column)
        if reason is not None:
            left_out[name] = reason
            continue
        if column.isna().any():
            filled.append(repr(name))
        kept[name] = as_numbers(column, name, notes) if is_numeric(column) else as_text(column)
    for reason in dict.fromkeys(left_out.values()):
        names = [repr(name) for name, why in left_out.items() if why == reason]
        notes.append(f"Left out, {reason}: {', '.join(names)}.")
    if filled:
        notes.append(
            f"Missing values in {', '.join(filled)}: numbers get the median and a column that says so, categories a "
            "category of their own."
        )
    return pd.DataFrame(kept, index=frame.index), left_out


def _in_strata_order(y: np.ndarray, groups: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Return the rows class by class, inside a class group by group, at random inside a group."""
    _, classes = np.unique(y, return_inverse=True)
    return np.lexsort((generator.permutation(len(y)), groups, classes))


def _persons_in_strata_order(
    y: np.ndarray, groups: np.ndarray, person: np.ndarray, generator: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return the place of each row's person in an order of persons by stratum and number of rows; and all sizes.

    The stratum of a person is the rarest class and group among the rows, so that rare ones come on every side; inside
    a stratum persons stand by their number of rows, so that every side gets as many rows as its share of persons.
    """
    _, person, sizes = np.unique(person, return_inverse=True, return_counts=True)
    _, classes = np.unique(y, return_inverse=True)
    strata = classes * (int(groups.max()) + 1) + groups
    rarity = np.argsort(np.argsort(np.bincount(strata), kind="stable"))[strata]
    rarest = np.full(len(sizes), len(y) + 1)
    np.minimum.at(rarest, person, rarity)
    order = np.lexsort((generator.permutation(len(sizes)), sizes, rarest))
    place = np.empty(len(sizes), dtype=np.intp)
    place[order] = np.arange(len(sizes))
    return place[person], sizes


def hold_out(
    y: np.ndarray,
    groups: np.ndarray,
    test_size: float,
    generator: np.random.Generator,
    person: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return training and test rows; with ``person``, all rows of one person are on one side.

    Every k-th row of the ordered rows is taken, so that the test rows of each class, and of each group inside
    it, are the nearest whole number to their share: no stratum can be too small to divide.
    """
    if person is None:
        order, n = _in_strata_order(y, groups, generator), len(y)
    else:
        places, sizes = _persons_in_strata_order(y, groups, person, generator)
        n = len(sizes)
    taken = np.diff(np.floor(np.arange(1, n + 1) * test_size + 1e-9), prepend=0.0) > 0  # 0.29 * 100 is below 29
    if person is not None:
        return np.flatnonzero(~taken[places]), np.flatnonzero(taken[places])
    return np.sort(order[~taken]), np.sort(order[taken])


def validation_folds(
    y: np.ndarray,
    groups: np.ndarray,
    n_splits: int,
    generator: np.random.Generator,
    person: np.ndarray | None = None,
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return ``n_splits`` pairs of training and validation rows; each row is validated once.

    With ``person``, all rows of one person are validated together.
    """
    if person is None:
        part = np.empty(len(y), dtype=np.intp)
        part[_in_strata_order(y, groups, generator)] = np.arange(len(y)) % n_splits
    else:
        part = _persons_in_strata_order(y, groups, person, generator)[0] % n_splits
    return [(np.flatnonzero(part != k), np.flatnonzero(part == k)) for k in range(n_splits)]
