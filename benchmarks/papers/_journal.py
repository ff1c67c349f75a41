"""A file with one line for each finished cell, which survives a kill at any moment and knows the code of each line."""

import fcntl
import json
import os
import platform
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Self


def key_of(cell: Mapping[str, Any]) -> str:
    """Name a cell by its settings, whatever their order; a changed setting is another cell."""
    return json.dumps(cell, sort_keys=True)


@cache
def cpu_name() -> str:
    """Name the processor: the last digits of a sum of floats are those of one kind of processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


class Journal:
    """Finished cells and their results. Opened with ``with``, it may be written, by one process at a time.

    A line is found by its cell and by the version of the code that measured it.

    Parameters
    ----------
    path : path
        The file.
    code : str
        The version of the code that measures now. Lines of other code stay in the file, but do not count as finished.
        Lines that were written before journals knew versions have none, and are of other code.
    accept_old_code : bool
        Let a line of other code count where a cell has none of this code; the last one, if there are several.
    """

    def __init__(self, path: os.PathLike[str] | str, code: str = "", *, accept_old_code: bool = False):
        self.path = Path(path)
        self.code = code
        self.accept_old_code = accept_old_code
        self._file: int | None = None

    def rows(self) -> list[dict[str, Any]]:
        """Return all lines, of whatever code; a last line that was cut off is no result."""
        content = self.path.read_bytes() if self.path.exists() else b""
        return [json.loads(line) for line in content[: content.rfind(b"\n") + 1].splitlines()]

    def finished(self, cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the lines of these cells that count, in the order of the cells."""
        current, other = self._last_lines()
        lines = other | current if self.accept_old_code else current
        return [lines[key] for key in map(key_of, cells) if key in lines]

    def missing(self, cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the cells of which no line counts."""
        done = {key_of(row["cell"]) for row in self.finished(cells)}
        return [cell for cell in cells if key_of(cell) not in done]

    def of_other_code(self, cells: list[dict[str, Any]]) -> int:
        """Return how many of these cells were finished by other code only."""
        current, other = self._last_lines()
        return sum(key in other and key not in current for key in map(key_of, cells))

    def _last_lines(self) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
        """Return the last line of each cell, once among those of this code and once among all others."""
        current: dict[str, dict[str, Any]] = {}
        other: dict[str, dict[str, Any]] = {}
        for row in self.rows():
            (current if row.get("code") == self.code else other)[key_of(row["cell"])] = row
        return current, other

    def __enter__(self) -> Self:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(file)
            raise RuntimeError(
                f"{self.path} is being written by another run; wait for it, or use another folder."
            ) from error
        content = self.path.read_bytes()
        os.ftruncate(file, content.rfind(b"\n") + 1)  # what a killed run left half written
        self._file = file
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            os.close(self._file)
        self._file = None

    def append(self, cell: Mapping[str, Any], result: Mapping[str, Any]) -> None:
        """Write one finished cell, and return when it is on the disk."""
        if self._file is None:
            raise RuntimeError("open the journal with `with` before writing into it.")
        content = {"cell": dict(cell), "code": self.code, "cpu": cpu_name(), "result": dict(result)}
        line = (json.dumps(content) + "\n").encode()
        if os.write(self._file, line) != len(line):
            raise OSError(f"{self.path}: a line could not be written whole; is the disk full?")
        os.fsync(self._file)
