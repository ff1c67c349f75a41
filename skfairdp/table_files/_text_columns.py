"""Columns of text that are numbers in another notation: 3,14 and 1.234,50 and $1,200. They are converted, and told."""

import re
from collections.abc import Sequence

import numpy as np
import pandas as pd

from skfairdp.table_files._table_address import listed

_SAMPLE = 500  # values that are looked at first, spread over the column
_MOSTLY = 0.8  # share of numbers from which a column of text is told
_GROUPS = " '’\u00a0\u202f"  # besides point or comma, what may stand between thousands
_COMMA = rf"[-+]?(?:[0-9]+|[1-9][0-9]{{0,2}}(?:[.{_GROUPS}][0-9]{{3}})+)(?:,[0-9]+)?"
_POINT = rf"[-+]?(?:[0-9]+|[1-9][0-9]{{0,2}}(?:[,{_GROUPS}][0-9]{{3}})+)(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?"
_PLAIN = r"[-+]?[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?"
_CODE = r"[-+]?0[0-9].*"  # 00501 is no number: the zeros in front belong to it
_NUMBER = re.compile(rf"(?:{_COMMA}|{_POINT})")
_UNIT = re.compile(r"([-+]?)\s*([€$£¥]?)\s*([-+]?[0-9].*?)\s*([€$£¥%]?)")
_UNIT_SIGNS = "€$£¥%"
_FORMULA = re.compile(r"=[A-Za-z(+\-\d]")

#: Notations that are converted, and how they are told.
_WORDS = {
    "comma": "numbers with a decimal comma",
    "point": "numbers with separated thousands or a unit",
    "same": "numbers with separated thousands or a unit, without decimals",
    "plain": "numbers, although they are stored as text",
}


def numbers_in_other_notations(frame: pd.DataFrame) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Convert columns of text that are numbers with decimal commas, thousands or units; say so in notes.

    A column is converted only if all its values are numbers in one notation. 1,234 alone can be two numbers;
    then the other columns decide, and if they do not, the column stays text.
    """
    found = {
        place: column
        for place in range(frame.shape[1])
        if (column := _NumberColumn.of(frame.iloc[:, place])) is not None
    }
    formulas = [place for place, column in found.items() if column.formula]
    found = {place: column for place, column in found.items() if not column.formula}
    clear = {column.notation for column in found.values()} & {"comma", "point"}
    if len(clear) == 1:
        for column in found.values():
            if column.notation == "either":
                (column.notation,) = clear
    converted = {place: column for place, column in found.items() if column.notation in _WORDS}
    if converted:
        columns = [converted[p].numbers() if p in converted else frame.iloc[:, p] for p in range(frame.shape[1])]
        frame = pd.concat(columns, axis=1)
    return frame, tuple(_notes(frame, found, converted, formulas, "comma" in clear))


class _NumberColumn:
    """A column of text in which most values of a sample are numbers, or which holds formulas."""

    def __init__(self, column: pd.Series, formula: str | None):
        self.name = column.name
        self.index = column.index
        self.formula = formula
        self.notation = ""
        if formula:
            return
        self.codes, values = pd.factorize(column)
        self.texts = pd.Series(values).astype("str").str.strip()
        self.unit, bare = _without_unit(self.texts)
        self.bare = bare
        is_comma = bare.str.fullmatch(_COMMA).to_numpy(bool)
        is_point = bare.str.fullmatch(_POINT).to_numpy(bool)
        if not self.unit and bare.str.fullmatch(_PLAIN).all():
            # Typed formats keep numbers as text by mistake, and codes on purpose.
            self.notation = "code" if bare.str.fullmatch(_CODE).any() else "plain"
        elif is_comma.all() and is_point.all():
            self.notation = "either" if bare.str.contains("[.,]").any() else "same"
        elif is_comma.all():
            self.notation = "comma"
        elif is_point.all():
            self.notation = "point"
        fits = is_comma | is_point
        counts = np.bincount(self.codes[self.codes >= 0], minlength=len(self.texts))
        self.mostly = counts[fits].sum() >= _MOSTLY * counts.sum()
        shown = ~fits if not fits.all() else bare.str.contains("[.,]").to_numpy(bool)
        self.place = int(shown.argmax())
        self.example = self.texts[self.place]
        self.n_unfit = int(counts[~fits].sum())

    @classmethod
    def of(cls, column: pd.Series) -> "_NumberColumn | None":
        if not (column.dtype == object or isinstance(column.dtype, pd.StringDtype)):
            return None
        present = column.dropna()
        if present.empty:
            return None
        places = np.unique(np.linspace(0, len(present) - 1, _SAMPLE).astype(np.int64))
        sample = present.iloc[places]
        if not all(isinstance(value, str | int | float) for value in sample):
            return None
        texts = [str(value).strip() for value in sample]
        formula = next((text for text in texts if _FORMULA.match(text)), None)
        n_numbers = sum(_is_number(text) for text in texts)
        return cls(column, formula) if formula or 2 * n_numbers >= len(texts) else None

    def numbers(self) -> pd.Series:
        """Return the column as numbers."""
        grouping = f"[.{_GROUPS}]" if self.notation == "comma" else f"[,{_GROUPS}]"
        plain = self.bare
        if plain.str.contains(grouping).any():
            plain = plain.str.replace(grouping, "", regex=True)
        if self.notation == "comma":
            plain = plain.str.replace(",", ".", regex=False)
        values = pd.to_numeric(plain).to_numpy()
        if (self.codes < 0).any():
            values = np.append(values.astype(np.float64), np.nan)
        self.value = values[self.place]
        return pd.Series(values[self.codes], index=self.index, name=self.name)


def _is_number(text: str) -> bool:
    if _NUMBER.fullmatch(text):
        return True
    found = _UNIT.fullmatch(text)
    return found is not None and bool(_NUMBER.fullmatch(found[1] + found[3]))


def _without_unit(texts: pd.Series) -> tuple[str, pd.Series]:
    """Return the sign of money or percent that all values have, and the values without it."""
    unit = next((sign for sign in texts[0] if sign in _UNIT_SIGNS), "")
    if not unit:
        return "", texts
    parts = [_UNIT.fullmatch(text) for text in texts]
    if all(part is not None and part[2] + part[4] == unit and not (part[1] and part[3][0] in "+-") for part in parts):
        return unit, pd.Series([part[1] + part[3] for part in parts if part is not None]).astype("str")
    return "", texts


def _notes(
    frame: pd.DataFrame,
    found: dict[int, _NumberColumn],
    converted: dict[int, _NumberColumn],
    formulas: Sequence[int],
    commas: bool,
) -> list[str]:
    notes = []
    for notation, words in _WORDS.items():
        columns = [column for column in converted.values() if column.notation == notation]
        if columns:
            first = columns[0]
            notes.append(f"Read as {words} ({first.example!r} is {first.value:.12g}): {_names(columns)}.")
    unclear = [column for column in found.values() if column.notation == "either"]
    if unclear:
        example = unclear[0].example
        notes.append(
            f"Left as text, because {example!r} can be two numbers: {_names(unclear)}. Write them with a decimal point "
            "and without separated thousands."
        )
    for column in [column for column in found.values() if not column.notation and column.mostly][:20]:
        notes.append(
            f"Left as text, although most of it is numbers: {column.name!r}, because of {column.n_unfit:,} "
            f"{'row' if column.n_unfit == 1 else 'rows'} such as {column.example[:40]!r}."
        )
    if formulas:
        names = listed([str(frame.columns[place]) for place in formulas])
        notes.append(f"Formulas are read as text, and are not computed: {names}.")
    if commas:
        others = [place for place in range(frame.shape[1]) if place not in found]
        points = [str(frame.columns[place]) for place in others if _may_be_thousands(frame.iloc[:, place])]
        if points:
            notes.append(
                f"Read with a decimal point, although other columns have a decimal comma: {listed(points)}. If the "
                "point separates thousands there, write the numbers without it."
            )
    return notes


def _names(columns: Sequence[_NumberColumn]) -> str:
    return listed([str(column.name) for column in columns])


def _may_be_thousands(column: pd.Series) -> bool:
    """Say whether all numbers of a column have up to three places after the point, as 1.234 and 12.500 do."""
    if not pd.api.types.is_float_dtype(column.dtype):
        return False
    values = column.dropna().to_numpy(np.float64)
    values = values[values != np.round(values)]
    if not len(values) or np.abs(values).min() < 1 or np.abs(values).max() >= 1000:
        return False
    in_thousands = values * 1000
    return bool((np.abs(in_thousands - np.round(in_thousands)) < 1e-6).all())
