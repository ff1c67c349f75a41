"""Find columns by name, and say which one was probably meant."""

import difflib
from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd


def nearest(name: str, known: Iterable[str]) -> str:
    """Return `` Did you mean 'income'?``, or nothing if no known name is near."""
    by_lower = {str(one).strip().lower(): str(one) for one in known}
    close = difflib.get_close_matches(name.strip().lower(), list(by_lower), n=1, cutoff=0.6)
    return f" Did you mean {by_lower[close[0]]!r}?" if close else ""


def check_choice(name: str, known: Sequence[str], what: str) -> str:
    """Return ``name`` if it is known, else raise with the nearest name."""
    if name in known:
        return name
    hint = nearest(name, known)
    listed = ", ".join(repr(one) for one in known[:20]) + (f" and {len(known) - 20} more" if len(known) > 20 else "")
    raise ValueError(f"there is no {what} {name!r}.{hint or f' There are: {listed}.'}")


def check_frame(frame: Any) -> pd.DataFrame:
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


def check_roles(frame: pd.DataFrame, target: Any, sensitive: Any) -> tuple[str, list[str]]:
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
