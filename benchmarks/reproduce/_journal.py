"""A file with one line for each finished cell, which survives a kill at any moment."""

import fcntl
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self


def key_of(cell: Mapping[str, Any]) -> str:
    """Name a cell by its settings, whatever their order; a changed setting is another cell."""
    return json.dumps(cell, sort_keys=True)


class Journal:
    """Finished cells and their results. Opened with ``with``, it may be written, by one process at a time."""

    def __init__(self, path: os.PathLike[str] | str):
        self.path = Path(path)
        self._file: int | None = None

    def rows(self) -> list[dict[str, Any]]:
        """Return the finished cells, each with its result; a last line that was cut off is no result."""
        content = self.path.read_bytes() if self.path.exists() else b""
        return [json.loads(line) for line in content[: content.rfind(b"\n") + 1].splitlines()]

    def finished(self, cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the lines of these cells, in the order in which they were finished."""
        wanted = {key_of(cell) for cell in cells}
        return [row for row in self.rows() if key_of(row["cell"]) in wanted]

    def missing(self, cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the cells that are not finished."""
        done = {key_of(row["cell"]) for row in self.rows()}
        return [cell for cell in cells if key_of(cell) not in done]

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
        line = (json.dumps({"cell": dict(cell), "result": dict(result)}) + "\n").encode()
        if os.write(self._file, line) != len(line):
            raise OSError(f"{self.path}: a line could not be written whole; is the disk full?")
        os.fsync(self._file)
