"""How far it is, and how long it will still take."""

import sys
import time
from typing import Any


class Progress:
    """One line that is written anew on a terminal, and a line per finished method elsewhere.

    Parameters
    ----------
    total : float
        Work to be done, in any unit.
    verbose : bool
        False is silent.
    stream : file
        Where to write; standard error by default, so that results can be piped.
    """

    def __init__(self, total: float, verbose: bool = True, stream: Any = None):
        self.total = total
        self.done = 0.0
        self.verbose = verbose
        self.stream = sys.stderr if stream is None else stream
        self.redraws = bool(verbose and getattr(self.stream, "isatty", lambda: False)())
        self.started = time.monotonic()

    def step(self, work: float, doing: str) -> None:
        """Note that ``work`` is done."""
        self.done += work
        if self.redraws:
            share = min(1.0, self.done / self.total)
            bar = "#" * round(24 * share)
            self.stream.write(f"\r\x1b[2K[{bar:<24}] {share:4.0%}  {self._left()}  {doing}")
            self.stream.flush()

    def say(self, sentence: str) -> None:
        """Tell a milestone where lines cannot be redrawn."""
        if self.verbose and not self.redraws:
            self.stream.write(f"{sentence}  ({self._left()})\n")
            self.stream.flush()

    def close(self) -> None:
        """Clear the line."""
        if self.redraws:
            self.stream.write("\r\x1b[2K")
            self.stream.flush()

    def _left(self) -> str:
        if self.done <= 0:
            return "estimating"
        elapsed = time.monotonic() - self.started
        return f"{duration(elapsed * max(0.0, self.total - self.done) / self.done)} left"


def duration(seconds: float) -> str:
    """Write a time as a person would say it."""
    if seconds < 0.95:
        return f"{seconds:.1f} s"
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes / 60:.1f} h"
