"""Imports only go down: the floors of the package, read from its source."""

import ast
import re
from pathlib import Path

import pytest

import skfairdp

PACKAGE = Path(skfairdp.__file__).parent

FLOORS = {
    "__init__": 0,
    "exceptions": 0,
    "_sklearn": 0,
    "_process": 0,
    "_parallel": 0,
    "random": 0,
    "_validation": 0,
    "_base": 0,
    "mechanisms": 1,
    "accounting": 1,
    "neural": 1,
    "release": 2,
    "metrics": 2,
    "preprocessing": 3,
    "adversarial": 3,
    "ensemble": 3,
    "postprocessing": 3,
    "model_selection": 4,
    "epsilon_audit": 4,
    "inspection": 4,
    "datasets": 4,
    "table_files": 4,
    "dask": 5,
    "table_audit": 5,
    "cli": 5,
    "_cli_options": 5,
}


def room_of(module: str) -> str:
    """``skfairdp.metrics._leakage`` -> ``metrics``; the package itself -> ``__init__``."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def imported_modules(source: str) -> list[str]:
    """Every module that the source imports, wherever the import stands; ``from a import b`` gives ``a.b``."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: write absolute imports, so that the floor can be read"
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    return found


def imports_at_load(source: str) -> list[str]:
    """Modules imported when the file itself is imported: not inside functions or ``if TYPE_CHECKING``."""
    found = []

    def visit(body):
        for node in body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                found.extend(imported_modules(ast.unparse(node)))
            elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
                visit(node.orelse)
            elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                for block in ("body", "orelse", "finalbody", "handlers"):
                    visit(getattr(node, block, []))

    visit(ast.parse(source).body)
    return found


def complaints(room: str, source: str) -> list[str]:
    """What a source file that stands in a room may not do."""
    found = []
    for module in imported_modules(source):
        top = module.split(".")[0]
        if top == "skfairdp":
            target = room_of(module)
            floor = FLOORS.get(target, 0)  # names of the package itself, such as __version__
            if floor > FLOORS[room]:
                found.append(f"{module}: floor {FLOORS[room]} imports floor {floor}")
        if top in ("torch", "skorch") and room != "neural":
            found.append(f"{module}: only neural/ imports torch or skorch")
        if top in ("transformers", "tokenizers", "safetensors", "huggingface_hub") and room != "neural":
            found.append(f"{module}: only neural/ imports transformers")
        if top == "sklearn" and room != "_sklearn" and any(part.startswith("_") for part in module.split(".")):
            found.append(f"{module}: private scikit-learn names belong into _sklearn.py")
    for module in imports_at_load(source):
        if module.split(".")[0] in ("matplotlib", "transformers"):
            found.append(f"{module}: {module.split('.')[0]} is imported inside functions")
        if module.startswith("skfairdp.neural") and room != "neural":
            found.append(f"{module}: neural/ is imported inside functions, so that torch loads only when needed")
    return found


def private_names(room: str, source: str) -> list[str]:
    """What a source file takes from another room past its front door: a file or a name that starts with ``_``."""
    found = []
    for module in imported_modules(source):
        parts = module.split(".")
        foreign = parts[0] == "skfairdp" and len(parts) > 2 and parts[1] != room and parts[1] in ROOMS
        if foreign and any(part.startswith("_") for part in parts[2:]):
            found.append(module)
    return found


def import_graph() -> dict[str, set[str]]:
    """Which of our files each of our files imports, in functions too; imports for type checkers do not count."""
    files = {".".join(("skfairdp", *p.relative_to(PACKAGE).with_suffix("").parts)): p for p in SOURCES}
    graph: dict[str, set[str]] = {}
    for name, path in files.items():
        module = name.removesuffix(".__init__")
        graph[module] = set()
        for target in imported_modules(without_type_checking(path.read_text(encoding="utf-8"))):
            while target and target not in files and f"{target}.__init__" not in files:
                target = target.rpartition(".")[0]
            if target and target not in ("skfairdp", module):
                graph[module].add(target)
    return graph


def without_type_checking(source: str) -> str:
    """The source without what stands under ``if TYPE_CHECKING``."""
    tree = ast.parse(source)
    tree.body = [
        node for node in tree.body if not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test))
    ]
    return ast.unparse(tree)


def cycle_in(graph: dict[str, set[str]]) -> list[str]:
    """A cycle of imports, or nothing."""
    done: set[str] = set()

    def visit(node: str, path: list[str]) -> list[str]:
        if node in path:
            return [*path[path.index(node) :], node]
        if node not in done:
            for target in sorted(graph.get(node, ())):
                if found := visit(target, [*path, node]):
                    return found
            done.add(node)
        return []

    return next((found for node in sorted(graph) if (found := visit(node, []))), [])


SOURCES = sorted(PACKAGE.rglob("*.py"))
#: Folders; the single files of floor 0 are front doors themselves.
ROOMS = {p.parent.name for p in PACKAGE.glob("*/__init__.py")}


def test_no_file_imports_itself_through_others():
    assert cycle_in(import_graph()) == []
    assert cycle_in({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_rooms_are_entered_by_their_front_door(path):
    room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    assert private_names(room, path.read_text(encoding="utf-8")) == []


def test_a_side_door_is_found():
    planted = "from skfairdp.metrics._leakage import leakage_score\nfrom skfairdp.accounting import _ledger_file"
    assert len(private_names("table_audit", planted)) == 2
    assert private_names("metrics", planted) == ["skfairdp.accounting._ledger_file"]


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_only_go_down(path):
    relative = path.relative_to(PACKAGE)
    room = relative.parts[0].removesuffix(".py")
    assert room in FLOORS, f"{relative} stands on no floor: give it one in FLOORS"
    assert complaints(room, path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("room", "planted"),
    [
        ("mechanisms", "from skfairdp.preprocessing import LaplacePrivatizer"),
        ("metrics", "def f():\n    import skfairdp.table_audit"),
        ("random", "from skfairdp import accounting"),
        ("preprocessing", "def f():\n    import torch"),
        ("metrics", "from skorch import NeuralNet"),
        ("adversarial", "def f():\n    from transformers import AutoModel"),
        ("neural", "import transformers"),
        ("ensemble", "from sklearn.base import _fit_context"),
        ("metrics", "from sklearn.utils._param_validation import Interval"),
        ("inspection", "import matplotlib.pyplot as plt"),
        ("adversarial", "from skfairdp.neural import Probe"),
    ],
)
def test_a_planted_fault_is_found(room, planted):
    assert len(complaints(room, planted)) == 1


def test_what_is_allowed_passes():
    assert complaints("metrics", "def f():\n    from skfairdp.neural import Probe\n    import matplotlib") == []
    assert complaints("neural", "import torch\nfrom skfairdp.random import random_stream") == []
    assert complaints("table_audit", "from skfairdp.metrics import tpr_gap\nfrom sklearn.base import clone") == []


def code_lines(source: str) -> int:
    """Lines that are neither blank, nor comment, nor part of a docstring."""
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    prose: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            prose.update(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    lines = enumerate(source.splitlines(), 1)
    return sum(i not in prose and bool(line.strip()) and not line.lstrip().startswith("#") for i, line in lines)


def test_no_file_outgrows_its_room():
    assert code_lines('"""Two\nlines."""\n\n# why\nx = 1\n') == 1
    long = {str(p.relative_to(PACKAGE)): n for p in SOURCES if (n := code_lines(p.read_text())) > 400}
    assert long == {}, "a file past 400 lines of code wants a second room"


def test_no_two_files_share_a_name():
    names = [p.stem for p in SOURCES if p.stem != "__init__"]
    assert sorted({name for name in names if names.count(name) > 1}) == []


def test_the_map_shows_every_file():
    page = (PACKAGE.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert [p.stem for p in SOURCES if p.stem != "__init__" and f"`{p.stem}`" not in page] == []


def test_test_names_fit_into_a_list():
    tests = sorted(Path(__file__).parent.rglob("test_*.py"))
    names = [name for p in tests for name in re.findall(r"^def (test_\w+)", p.read_text(), flags=re.MULTILINE)]
    assert len(names) > 500
    assert [name for name in names if len(name) > 64] == []
