"""Which code a result comes from: a fingerprint that comments, docstrings and layout do not change.

It covers what a measurement can reach, so that days of runs are not thrown away for an edit that cannot matter:

- in ``benchmarks``, the functions, classes and constants that ``measure`` names, directly or through others, but
  not the code that only makes tables and figures;
- in ``skfairdp``, every folder that these import from, and every folder that those import from, with all their files;
- the versions of the packages that compute.
"""

import ast
from collections.abc import Callable, Iterator
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("numpy", "scipy", "scikit-learn", "torch", "skorch")


def code_version(measure: Callable) -> str:
    """One line for the journal: the source's fingerprint, and versions of the packages that compute."""
    source = fingerprint(measure.__module__, measure.__qualname__)
    return ", ".join([f"source {source}", *(f"{name} {version(name)}" for name in PACKAGES)])


def fingerprint(module: str, name: str, root: Path = ROOT) -> str:
    """Hash what the definition of ``name`` in ``module`` can reach, in the source tree at ``root``."""
    sources = sorted(sources_of(module, name, root).items())
    return sha256("\n".join(f"{place}\n{source}" for place, source in sources).encode()).hexdigest()[:16]


def sources_of(module: str, name: str, root: Path = ROOT) -> dict[str, str]:
    """Return the sources themselves, by file of ``skfairdp`` or by name in ``benchmarks``."""
    found: dict[str, str] = {}
    files: dict[str, ast.Module] = {}
    waiting, seen = {(module, name)}, set()
    while waiting:
        module, name = one = waiting.pop()
        seen.add(one)
        package, *folders = module.split(".")
        if package == "skfairdp":
            used = _whole_folder(folders[0] if folders else name, root, found)
        elif package == "benchmarks":
            if module not in files:
                files[module] = _read(root.joinpath(package, *folders).with_suffix(".py"))
            used = _one_definition(module, name, files[module], found)
        else:
            continue
        waiting |= used - seen
    return found


def _whole_folder(name: str, root: Path, found: dict[str, str]) -> set[tuple[str, str]]:
    """Add all files of a folder of ``skfairdp``, or a file at its top; return what they import.

    Whole folders, because some load their files by name only when they are needed, which no import statement shows.
    """
    if name == "__version__":  # a label in documents, which changes no number
        return set()
    path = root / "skfairdp" / name
    files = sorted(path.rglob("*.py")) if name and path.is_dir() else [path.with_suffix(".py")]
    if not files[0].exists():
        raise ValueError(
            f"{name or 'skfairdp'!r} is imported from the top of skfairdp, where its code cannot be followed; "
            "import from the sub-package."
        )
    if files[0].relative_to(root).as_posix() in found:
        return set()
    trees = {file.relative_to(root).as_posix(): _read(file) for file in files}
    found |= {place: ast.unparse(tree) for place, tree in trees.items()}
    return {one for tree in trees.values() for one in _imports(tree)}


def _one_definition(module: str, name: str, tree: ast.Module, found: dict[str, str]) -> set[tuple[str, str]]:
    """Add the statements of a benchmark file that define a name; return what they use."""
    statements = [statement for statement in tree.body if name in _defined(statement)]
    if not statements:  # a local name, or one of Python's own
        return set()
    found[f"{module}.{name}"] = "\n".join(map(ast.unparse, statements))
    nodes = [node for statement in statements for node in ast.walk(statement)]
    names = {(module, node.id) for node in nodes if isinstance(node, ast.Name)}
    return names.union(*(_imports(statement) for statement in statements))


def _read(path: Path) -> ast.Module:
    """Parse a file and drop its docstrings; comments are no part of the tree."""
    tree = ast.parse(path.read_bytes())
    for node in ast.walk(tree):
        if isinstance(body := getattr(node, "body", None), list):
            node.body = [one for one in body if not _is_text(one)]
    return tree


def _is_text(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def _defined(statement: ast.stmt) -> set[str]:
    """Return the names that a statement at the top of a module gives a value."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return {statement.name}
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return {alias.asname or alias.name.split(".")[0] for alias in statement.names}
    return {node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def _imports(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield module and name of every import, wherever it stands."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield from ((node.module or "", alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
