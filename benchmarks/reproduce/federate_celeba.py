"""Table 2 of the FEDERATE paper: attributes of CelebA. See ``_federate``."""

from functools import partial
from pathlib import Path

import pandas as pd

from benchmarks.reproduce._federate import cells_of, figures_of, follow_up, measure, tables

__all__ = ["cells", "figures", "follow_up", "measure", "tables"]

cells = partial(cells_of, "celeba")


def figures(frame: pd.DataFrame, folder: Path) -> None:
    """Gap over accuracy of every setting."""
    figures_of(frame, folder / "federate-celeba.svg")
