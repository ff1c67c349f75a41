"""From finished cells to tables: mean and standard deviation over seeds, as Markdown and CSV."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

PLUS_MINUS = "\u00a0±\u00a0"
NOTHING = "\u2013"  # a hyphen at the beginning of a cell would be read as a list


def frame_of(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """One row per finished cell: its settings and its results side by side."""
    return pd.DataFrame([{**row["cell"], **row["result"]} for row in rows])


def spread(values: Sequence[float], digits: int = 1, *, of_mean: bool = False) -> str:
    """Mean and standard deviation over the seeds (or standard error of the mean), which stay together on a line."""
    values = np.asarray(values, dtype=float)
    mean = f"{values.mean():.{digits}f}"
    if len(values) < 2:
        return mean
    deviation = values.std(ddof=1) / (math.sqrt(len(values)) if of_mean else 1)
    return f"{mean}{PLUS_MINUS}{deviation:.{digits}f}"


def number(value: float) -> str:
    """A published number or an epsilon, as short as it is exact enough."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return NOTHING
    return "∞" if math.isinf(value) else f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def pick(frame: pd.DataFrame, **settings: Any) -> pd.DataFrame:
    """The cells with these settings; None asks for a setting that is absent."""
    keep = np.ones(len(frame), dtype=bool)
    for name, value in settings.items():
        if value is None and name not in frame:
            continue
        keep &= (frame[name].isna() if value is None else frame[name] == value).to_numpy()
    return frame[keep]


def cell_text(frame: pd.DataFrame, column: str, digits: int = 1) -> str:
    """Text for the seeds in a frame, a dash where nothing was measured."""
    return spread(frame[column], digits) if len(frame) else NOTHING


def save_figure(figure: Any, path: Path) -> None:
    """Write and close a figure; the same numbers give the same file."""
    import matplotlib.pyplot as plt

    path.parent.mkdir(parents=True, exist_ok=True)
    metadata = {"Date": None} if path.suffix == ".svg" else {"Software": None}
    with plt.rc_context({"svg.hashsalt": path.stem}):
        figure.savefig(path, metadata=metadata)
    plt.close(figure)


def markdown(table: pd.DataFrame) -> str:
    """A table in Markdown, numbers as they are written in it."""
    lines = ["| " + " | ".join(map(str, table.columns)) + " |", "|" + "---|" * len(table.columns)]
    lines += ["| " + " | ".join(map(str, row)) + " |" for row in table.itertuples(index=False)]
    return "\n".join(lines)


def write_tables(
    tables: dict[str, pd.DataFrame], folder: Path, stem: str, output: Path | None = None, *, note: str = ""
) -> str:
    """Write tables and note as one Markdown file, each table as CSV (into ``output`` if given); return the Markdown."""
    output = folder if output is None else output
    folder.mkdir(parents=True, exist_ok=True)
    output.mkdir(parents=True, exist_ok=True)
    text = []
    for name, table in tables.items():
        table.to_csv(output / f"{stem}-{name}.csv", index=False)
        text += [f"### {stem}: {name}", "", markdown(table), ""]
    content = "\n".join([*text, *([note, ""] if note else [])])
    (folder / f"{stem}.md").write_text(content, encoding="utf-8")
    return content
