"""One planted fault: read from the list, and written into a tree."""

import tomllib
from dataclasses import dataclass, fields
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIST = Path(__file__).with_name("mutants.toml")


@dataclass(frozen=True)
class Mutant:
    """A fault, and the tests that must find it; the package's docstring says more about each part."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    why: str

    def applies(self, root: Path = ROOT) -> bool:
        """Tell whether the text to replace stands exactly once in the file."""
        path = root / self.file
        return path.is_file() and path.read_text(encoding="utf-8").count(self.old) == 1

    def source(self, root: Path = ROOT) -> str:
        """Return the text of the file with the fault in it."""
        return (root / self.file).read_text(encoding="utf-8").replace(self.old, self.new)

    def plant(self, root: Path) -> None:
        """Write the fault into a tree, which must be a copy."""
        if root.resolve() == ROOT:
            raise ValueError("a fault is planted into a copy of the tree, never into the tree itself.")
        (root / self.file).write_text(self.source(root), encoding="utf-8")


def read_mutants(path: Path = LIST, only: str = "") -> list[Mutant]:
    """Read the list, or those of it whose name contains a word."""
    entries = tomllib.loads(path.read_text(encoding="utf-8"))["mutant"]
    wanted = {field.name for field in fields(Mutant)}
    for entry in entries:
        if set(entry) != wanted:
            name = entry.get("name", entry)
            raise ValueError(f"the entry {name!r} must have {', '.join(sorted(wanted))}; it has {', '.join(entry)}.")
    return [Mutant(**{**entry, "tests": tuple(entry["tests"])}) for entry in entries if only in entry["name"]]
