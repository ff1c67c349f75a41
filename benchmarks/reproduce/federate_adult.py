"""Table 3 of the FEDERATE paper: Adult Income. See ``_federate``."""

from functools import partial
from pathlib import Path

import pandas as pd

from benchmarks.reproduce._federate import cells_of, figures_of, follow_up, measure, tables

__all__ = ["cells", "figures", "follow_up", "measure", "tables"]

cells = partial(cells_of, "adult")


def figures(frame: pd.DataFrame, folder: Path) -> None:
    """Gap over accuracy of every setting."""
    figures_of(frame, folder / "federate-adult.svg")
