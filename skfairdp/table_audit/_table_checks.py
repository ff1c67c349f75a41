"""What to know of a table before trusting what is learned from it: columns that give the target away, and the like."""

import shlex
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from skfairdp._validation import check_sensitive_features
from skfairdp.table_audit._column_kinds import (
    DATES,
    GIVEN_NUMBERS,
    IDENTIFIER,
    ROW_NUMBERS,
    is_numeric,
)
from skfairdp.table_audit._column_names import (
    comes_later,
    names_person,
    perhaps_later,
    perhaps_names_person,
    perhaps_weighs_rows,
    speaks_of_bodies,
    weighs_rows,
)
from skfairdp.table_audit._one_column import ToldAlone, told_alone, told_by_thresholds, value_indices
from skfairdp.table_audit._prepared_table import PreparedTable
from skfairdp.table_audit._repeated_rows import alike_by_chance, repeated_rows, rows_of_one_person

SAMPLED_ROWS = 20_000  # rows by which a column is judged, at most
SCREENED_CELLS = 3_000_000  # a wide table is looked at in fewer rows first, and its best columns again
SCREENED_ROWS = 1000  # but never in fewer than this
LOOKED_AT_AGAIN = 100  # columns, the strongest ones
MIN_LABEL_ROWS = 10  # of a class or group among the rows looked at, to say how well it is told
NAMED = 5  # columns that a sentence tells with their numbers

# On a scale from guessing, 0, to a copy, 1: a copy in which 3 of 100 values are wrong is at 0.94. The strongest honest
# columns of tables about people are far below (of Adult 0.53, of Credit default 0.37).
ALMOST_ALONE = 0.9
ALMOST_ALONE_AT_LEAST = 0.8  # the same with two standard errors less
STRONG = 0.75
STRONG_AUC = 0.92
SURE = 0.3  # share of a class that is named by values of a column which no other class has
PREDICTIVE_AUC = 0.85  # from which on a name that speaks of outcomes is more than a name
NOT_WITHOUT_POWER = 0.75  # the same for a name that may mean something else
PROXY = 0.5  # half-way between guessing a group and knowing it
PROXY_AUC = 0.85


@dataclass(frozen=True)
class TableCheck:
    """One thing to know before an audit of a table is trusted.

    Attributes
    ----------
    kind : str
        ``"gives_target_away"``, ``"after_outcome"``, ``"identifier"``, ``"proxy"``, ``"survey_weight"``,
        ``"duplicates"`` or ``"person_on_both_sides"``.
    columns : tuple of str
        Columns that it is about.
    serious : bool
        Whether figures are likely to mislead; otherwise somebody should have a look.
    sentence : str
        What was found, with numbers.
    advice : str
        What to do, with the option of the command line.
    """

    kind: str
    columns: tuple[str, ...]
    serious: bool
    sentence: str
    advice: str


def check_table(table: PreparedTable, generator: np.random.Generator) -> tuple[TableCheck, ...]:
    """Look at a table before anything is trained; serious findings come first.

    Parameters
    ----------
    table : PreparedTable
        As :func:`prepare_table` returns it.
    generator : numpy.random.Generator
        Draws the rows that columns are judged by, and halves them.

    Returns
    -------
    tuple of TableCheck
        Nothing, for a table without a flaw that can be seen from outside.
    """
    looks = _Looks(table, generator)
    y = pd.factorize(table.y, sort=True)[0]
    of_target = looks.of(y, lambda told: told.auc >= NOT_WITHOUT_POWER or told.sure > 0 or told.certainty > PROXY)
    checks = [*_gives_target_away(table, of_target), *_later_dates(table, looks.rows)]
    controls = () if table.control is None else tuple(table.control)
    for name in table.sensitive:
        groups = pd.factorize(table.sensitive[name], sort=True)[0]
        told = looks.of(groups, lambda told: told.certainty > 0.4 or told.auc > 0.8)
        # Groups are compared within the values of control columns, which are related to them by intention.
        checks += _proxies(name, {column: one for column, one in told.items() if column not in controls})
    checks += [
        *_identifiers(table),
        *_survey_weights(table, of_target),
        *_repetitions(table, looks.rows[: looks.n_screened]),
    ]
    return tuple(sorted(checks, key=lambda check: not check.serious))


class _Looks:
    """Features of some rows, numbered once, to say how well each tells a label."""

    def __init__(self, table: PreparedTable, generator: np.random.Generator):
        self.X = table.X.drop(columns=list(table.sensitive), errors="ignore")
        n_rows = min(len(table.y), SAMPLED_ROWS)
        self.rows = generator.permutation(len(table.y))[:n_rows]
        self.n_screened = min(n_rows, max(SCREENED_ROWS, SCREENED_CELLS // max(1, self.X.shape[1])))
        screened = self.X.iloc[self.rows[: self.n_screened]]
        self.indices = {name: value_indices(column) for name, column in screened.items()}

    def of(self, labels: np.ndarray, again: Callable[[ToldAlone], bool]) -> dict[str, ToldAlone]:
        """Say how well each column tells labels; where ``again`` says so, by all sampled rows and thresholds."""
        place, halves = self._halves(labels[self.rows[: self.n_screened]])
        if place is None:
            return {}
        told = dict(zip(self.indices, told_alone([indices[place] for indices in self.indices.values()], *halves)))
        best = sorted((name for name in told if again(told[name])), key=lambda name: -told[name].auc)
        place, halves = self._halves(labels[self.rows])
        for name in best[:LOOKED_AT_AGAIN]:
            column = self.X[name].iloc[self.rows[place]]
            told[name] = told_alone([value_indices(column)], *halves)[0]
            if is_numeric(column):
                finer = told_by_thresholds(column.to_numpy(), *halves)
                told[name] = max(told[name], finer, key=lambda one: (one.certainty, one.auc))
        return told

    @staticmethod
    def _halves(labels: np.ndarray) -> tuple[np.ndarray | None, tuple[np.ndarray, np.ndarray]]:
        """Return rows whose label is not too rare, their labels from 0 on, and which of them are the first half."""
        counts = np.bincount(labels)
        place = np.flatnonzero(counts[labels] >= MIN_LABEL_ROWS)
        kept, numbered = np.unique(labels[place], return_inverse=True)
        # Every second row of each label, so that no label is on one side only.
        order = np.argsort(numbered, kind="stable")
        half = np.empty(len(place), dtype=bool)
        half[order] = np.arange(len(place)) % 2 == 0
        return (place if len(kept) > 1 else None), (numbered, half)


def _is_copy(told: ToldAlone) -> bool:
    return told.certainty >= ALMOST_ALONE and told.certainty_lower >= ALMOST_ALONE_AT_LEAST


def _gives_target_away(table: PreparedTable, told: dict[str, ToldAlone]) -> list[TableCheck]:
    """Columns by which the target is known, and columns whose names say that they come after it; each column once."""
    found: dict[str, dict[str, ToldAlone]] = {}
    for name, one in told.items():
        late = comes_later(name)
        if _is_copy(one):
            place = "copy"
        elif late and (one.auc >= PREDICTIVE_AUC or one.sure >= SURE):
            place = "late and telling"
        elif one.certainty >= STRONG or one.auc >= STRONG_AUC or one.sure >= SURE:
            place = "strong"
        elif late:
            place = "late"
        elif perhaps_later(name) and one.auc >= NOT_WITHOUT_POWER:
            place = "perhaps late"
        else:
            continue
        found.setdefault(place, {})[name] = one
    said = {
        "copy": (
            "gives_target_away",
            "Almost a copy of the target: ",
            " What is learned with it says nothing of people whose target is not known yet.",
        ),
        "late and telling": ("after_outcome", "By its name known only with the outcome, and it shows: ", ""),
        "strong": ("gives_target_away", "Much for one column: ", ""),
        "late": ("after_outcome", "By its name perhaps known only with the outcome: ", ""),
        "perhaps late": ("after_outcome", "Of a kind that is often known only with the outcome: ", ""),
    }
    checks = []
    for place in (place for place in said if place in found):
        kind, before, after = said[place]
        names = _strongest(found[place])
        checks.append(
            TableCheck(
                kind,
                tuple(names),
                place in ("copy", "late and telling"),
                f"{before}{_told(found[place], table.target)}.{after}",
                f"If it was not known before the outcome, leave it out: {_options('--drop', names)}; or name all "
                "columns that were, with --features.",
            )
        )
    return checks


def _later_dates(table: PreparedTable, rows: np.ndarray) -> list[TableCheck]:
    """Dates that lie after another date: what was written down then was not known before."""
    names = [name for name, why in table.left_out.items() if why == DATES][:50]
    dates = {name: _parsed(table.raw[name].iloc[rows]) for name in names if "birth" not in name.lower()}
    dates = {name: when for name, when in dates.items() if np.isfinite(when).sum() >= 20}
    if len(dates) < 2:
        return []
    earliest = min(dates, key=lambda name: float(np.nanmedian(dates[name])))
    later = {}
    for name, when in dates.items():
        days = when - dates[earliest]
        days = days[np.isfinite(days)]
        if name != earliest and len(days) >= 20 and (days >= 0).mean() >= 0.95 and (days > 0).mean() >= 0.5:
            later[name] = float(np.median(days))
    later = {name: days for name, days in later.items() if days < 15 * 365.25}  # otherwise a date of birth
    if not later:
        return []
    told = ", ".join(f"{name!r} ({days:.0f} days in the middle)" for name, days in list(later.items())[:NAMED])
    return [
        TableCheck(
            "after_outcome",
            tuple(later),
            False,
            f"Dates lie after {earliest!r}: {told}{_more(later)}. Dates are no features, but columns that were filled "
            "in then would be.",
            "Leave out columns that were filled in at the later date: --drop COLUMN.",
        )
    ]


def _parsed(column: pd.Series) -> np.ndarray:
    """Return days since 1970, with nan for what is no date; the day comes first if a first number is above 12."""
    if pd.api.types.is_timedelta64_dtype(column.dtype):
        return np.full(len(column), np.nan)
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        when = pd.to_datetime(column, utc=True)
    else:
        parts = column.astype(str).str.extract(r"^\s*(\d{1,4})[-/.](\d{1,2})[-/.](\d{1,4})").astype(np.float64)
        parts.columns = ["year", "month", "day"]
        if not parts["year"].max() > 31:
            order = ["day", "month", "year"] if parts["year"].max() > 12 else ["month", "day", "year"]
            parts.columns = order
            parts["year"] += np.select([parts["year"] < 70, parts["year"] < 100], [2000, 1900], 0)
        when = pd.to_datetime(parts, errors="coerce", utc=True)
    return ((when - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(days=1)).to_numpy(dtype=np.float64)


def _identifiers(table: PreparedTable) -> list[TableCheck]:
    names = [name for name, why in table.left_out.items() if why in (IDENTIFIER, ROW_NUMBERS, GIVEN_NUMBERS)]
    if not names:
        return []
    n_values = {name: table.raw[name].nunique() for name in names[:NAMED]}
    told = ", ".join(f"{name!r} ({n:,} different values)" for name, n in n_values.items())
    return [
        TableCheck(
            "identifier",
            tuple(names),
            False,
            f"Nearly every one of {len(table.y):,} rows has a value of its own in {told}{_more(names)}: "
            "identifiers or free text, left out of the features.",
            "Nothing to do; if a column names persons who have several rows, say so: --person COLUMN.",
        )
    ]


def _proxies(sensitive: str, told: dict[str, ToldAlone]) -> list[TableCheck]:
    """Columns by which a group is known."""
    copies = {name: one for name, one in told.items() if _is_copy(one)}
    strong = {
        name: one
        for name, one in told.items()
        if name not in copies and one.certainty_lower >= 0.4 and (one.certainty >= PROXY or one.auc >= PROXY_AUC)
    }
    return [
        TableCheck(
            "proxy",
            tuple(_strongest(found)),
            serious,
            f"{'Nearly a copy' if serious else 'A strong proxy'} of a sensitive column: {_told(found, sensitive)}. A "
            "model knows the group without being told.",
            f"Leave it out, unless a decision needs it: {_options('--drop', _strongest(found))}.",
        )
        for found, serious in ((copies, True), (strong, False))
        if found
    ]


def _survey_weights(table: PreparedTable, told: dict[str, ToldAlone]) -> list[TableCheck]:
    bodies = any(speaks_of_bodies(name) for name in table.raw)
    found = [
        name
        for name, one in told.items()
        if (weighs_rows(name) or (perhaps_weighs_rows(name) and not bodies))
        and _is_weight(table.X[name], one, sure_of_name=weighs_rows(name))
    ]
    if not found:
        return []
    name = found[0]
    least, most = table.X[name].min(), table.X[name].max()
    return [
        TableCheck(
            "survey_weight",
            tuple(found),
            False,
            f"{', '.join(map(repr, found))} looks like the weight of rows in a survey ({name!r}: {_short(least)} to "
            f"{_short(most)}, AUC {told[name].auc:.2f} for {table.target!r}), which says how many people a row stands "
            "for and nothing of the person.",
            f"Count rows by it, {_options('--weights', [name])}, or leave it out, {_options('--drop', found)}.",
        )
    ]


def _is_weight(column: pd.Series, told: ToldAlone, *, sure_of_name: bool) -> bool:
    """Whether numbers can be weights of rows: none negative, many different ones, unrelated to the target."""
    if not is_numeric(column) or not (column.dropna() >= 0).all() or column.nunique() < 20 or told.auc > 0.65:
        return False
    weighs_a_body = 30 <= column.median() <= 300  # kilograms or pounds
    return sure_of_name or (column.nunique() >= 100 and told.auc < 0.6 and not weighs_a_body)


def _repetitions(table: PreparedTable, rows: np.ndarray) -> list[TableCheck]:
    """Rows that are there twice, and rows of one person."""
    dates = [name for name, why in table.left_out.items() if why == DATES]
    columns = [column for _, column in table.X.items()]
    columns += [table.raw[name] for name in (*table.sensitive, *dates) if name not in table.X]
    repeated = repeated_rows(columns, table.y)
    checks = []
    if max(repeated.copies, repeated.contradictions) >= 0.01:
        # People of whom little is known are alike by chance, and then their targets differ as those of others do.
        chance = alike_by_chance([column.iloc[rows] for column in columns], len(table.y))
        chance = max(chance, repeated.contradictions)
        copied = repeated.copies > 20 * chance
        checks.append(
            TableCheck(
                "duplicates",
                (),
                bool(copied and repeated.copies >= 0.05),
                f"{repeated.copies:.1%} of the rows are exact copies of an earlier row, and "
                f"{repeated.contradictions:.1%} equal another row in everything but the target"
                + ("." if copied else "; with so few different values, people may be alike by chance."),
                "Copies come on both sides of the split: remove those that are no people of their own"
                + (", or say whose rows they are, --person COLUMN." if table.person is None else "."),
            )
        )
    return checks if table.person is not None else [*checks, *_persons(table, rows, repeated.first)]


def _persons(table: PreparedTable, rows: np.ndarray, first: np.ndarray) -> list[TableCheck]:
    """Columns that name persons who have several rows, by their names or by what their rows have in common."""
    groups = check_sensitive_features(table.sensitive, len(table.y), intersection=True).indices[first, 0]
    found = []
    for name, sample in table.raw.iloc[rows].items():
        if table.roles.get(name, "dropped") != "dropped" or table.left_out.get(name) == DATES:
            continue
        named, perhaps = names_person(name), perhaps_names_person(name)
        if not (named or perhaps or _may_name_persons(sample)):
            continue
        try:
            person = rows_of_one_person(table.raw[name][first], groups)
        except TypeError:  # lists or dicts
            continue
        if person.n_values < 20 or person.shared < 0.02 or person.n_pairs < 30:
            continue
        rows_each = len(groups) / person.n_values
        agree = person.agreement >= 0.98 and person.chance <= 0.9
        by_name = (named and rows_each < 200) or (perhaps and (rows_each < 3 or (rows_each < 200 and agree)))
        if by_name or (agree and rows_each < 20):
            found.append((by_name, person.agreement, name, person))
    found.sort(key=lambda one: (not one[0], -one[1], one[2]))
    return [
        TableCheck(
            "person_on_both_sides",
            (name,),
            named and person.shared >= 0.05,
            f"{name!r} looks like the name of a person: {person.n_values:,} different values in {len(table.y):,} rows; "
            f"{person.shared:.0%} of the rows share theirs with another row, and {person.agreement:.0%} of those are "
            f"of the same group (by chance: {person.chance:.0%}). The same person would be on both sides of the split.",
            f"Keep all rows of a person together: {_options('--person', [name])}.",
        )
        for named, _, name, person in found[:3]
    ]


def _may_name_persons(sample: pd.Series) -> bool:
    """Whether text or whole numbers have so many different values that they may stand for persons."""
    if pd.api.types.is_datetime64_any_dtype(sample.dtype):
        return False
    if is_numeric(sample):
        values = sample.to_numpy(dtype=np.float64, na_value=np.nan)
        values = values[~np.isnan(values)]
        if not (np.isfinite(values).all() and (values == np.floor(values)).all()):
            return False
    try:
        return bool(sample.nunique() >= max(20, 0.05 * len(sample)))
    except TypeError:  # lists or dicts
        return False


def _strongest(told: dict[str, ToldAlone]) -> list[str]:
    return sorted(told, key=lambda name: (-told[name].certainty, -told[name].auc))


def _told(told: dict[str, ToldAlone], what: str) -> str:
    """Say how well columns tell something, the strongest first."""
    names = _strongest(told)
    parts = []
    for name in names[:NAMED]:
        one = told[name]
        part = f"{name!r} alone tells {what!r}" if not parts else repr(name)
        part += f" with a balanced accuracy of {one.balanced:.1%}" if not parts else f" with {one.balanced:.1%}"
        part += f" (guessing: {1 / one.n_labels:.0%}; AUC {one.auc:.2f}" if not parts else f" (AUC {one.auc:.2f}"
        if one.sure >= SURE and not _is_copy(one):
            part += f"; {one.sure:.0%} of a class have values that no other class has"
        parts.append(part + ")")
    return ", ".join(parts) + _more(names)


def _short(number: float) -> str:
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.4g}"


def _more(names: Iterable[str]) -> str:
    n_more = len(list(names)) - NAMED
    return f" and {n_more:,} more" if n_more > 0 else ""


def _options(option: str, names: list[str]) -> str:
    """Write an option of the command line, once for each name."""
    return " ".join(f"{option} {shlex.quote(name)}" for name in names[:NAMED]) + _more(names)
