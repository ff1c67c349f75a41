"""Table 3 of the FEDERATE paper: Adult Income. See ``_federate``."""

from functools import partial

from benchmarks.reproduce._federate import cells_of, follow_up, measure
from benchmarks.reproduce._federate_tables import figures_of, tables

__all__ = ["cells", "figures", "follow_up", "measure", "tables"]

cells = partial(cells_of, "adult")
figures = partial(figures_of, data="adult")
