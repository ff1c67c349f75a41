"""The version of the code: it changes with what a measurement can reach, and with nothing else."""

import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from benchmarks.papers._code_version import PACKAGES, ROOT, code_version, fingerprint, sources_of
from benchmarks.papers._experiment import FILES, experiment_of

BENCHMARK = """
'''What is measured.'''
from skfairdp.mechanisms import draw
from benchmarks.tables import markdown

ROWS = 200  # of a part

def measure(cell):
    '''Measure it.'''
    return {"value": _helper(cell["seed"])}

def _helper(seed):
    from benchmarks.vectors import mean
    return mean(draw(seed), ROWS)

def tables(frame):
    return markdown(frame)
"""
FILES_OF_A_SMALL_TREE = {
    "benchmarks/one.py": BENCHMARK,
    "benchmarks/vectors.py": "SCALE = 2.0\nUNUSED = 1\n\ndef mean(x, n):\n    return SCALE * x / n\n",
    "benchmarks/tables.py": "def markdown(frame):\n    return str(frame)\n",
    "skfairdp/__init__.py": "__version__ = '1'\n",
    "skfairdp/_base.py": "from skfairdp import __version__\n",
    # The front door of neural loads its file by name: no import statement leads to it.
    "skfairdp/neural/__init__.py": "def __getattr__(name):\n    return __import__(f'skfairdp.neural.{name}')\n",
    "skfairdp/neural/_net.py": "RATE = 0.1\n",
    "skfairdp/mechanisms/__init__.py": "from skfairdp.mechanisms._draw import draw\n",
    "skfairdp/mechanisms/_draw.py": "def draw(seed):\n    from skfairdp.neural import RATE\n    return RATE * seed\n",
    "skfairdp/cli.py": "from skfairdp.mechanisms import draw\nTITLE = 'demo'\n",
}


@pytest.fixture
def tree(tmp_path):
    for name, text in FILES_OF_A_SMALL_TREE.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def changes(root, name, old, new):
    """Say whether replacing a text in a file changes the fingerprint."""
    path = root / name
    before, text = fingerprint("benchmarks.one", "measure", root), path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    return fingerprint("benchmarks.one", "measure", root) != before


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("benchmarks/one.py", "ROWS = 200", "ROWS = 300"),
        ("benchmarks/one.py", '"value":', '"values":'),
        ("benchmarks/vectors.py", "SCALE = 2.0", "SCALE = 3.0"),
        ("skfairdp/mechanisms/_draw.py", "* seed", "+ seed"),
        ("skfairdp/neural/_net.py", "0.1", "0.2"),
    ],
)
def test_changed_code_changes_version(tree, name, old, new):
    assert changes(tree, name, old, new)


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("benchmarks/one.py", "# of a part", "# of each part"),
        ("benchmarks/one.py", "What is measured.", "What is to be measured."),
        ("benchmarks/one.py", "Measure it.", "Measure one cell."),
        ("benchmarks/one.py", "ROWS = 200", "ROWS = (\n    200\n)"),
        ("benchmarks/one.py", "return markdown(frame)", "return None"),
        ("benchmarks/tables.py", "str(frame)", "repr(frame)"),
        ("benchmarks/vectors.py", "UNUSED = 1", "UNUSED = 2"),
        ("skfairdp/mechanisms/_draw.py", "return RATE", "# as printed\n    return RATE"),
        ("skfairdp/cli.py", "'demo'", "'show'"),
        ("skfairdp/__init__.py", "'1'", "'2'"),
    ],
)
def test_other_changes_keep_version(tree, name, old, new):
    assert not changes(tree, name, old, new)


def test_refuses_top_level_import(tree):
    path = tree / "benchmarks" / "one.py"
    for line in ("from skfairdp import draw", "import skfairdp"):
        path.write_text(f"{line}\n\ndef measure(cell):\n    return skfairdp.draw(draw(cell))\n")
        with pytest.raises(ValueError, match="import from the sub-package"):
            fingerprint("benchmarks.one", "measure", tree)


@pytest.mark.parametrize("name", FILES)
def test_version_leaves_tables_out(name):
    measure = experiment_of(name).measure
    sources = set(sources_of(measure.__module__, measure.__qualname__))
    assert {
        f"{measure.__module__}.measure",
        "skfairdp/neural/__init__.py",
        "skfairdp/accounting/__init__.py",
    } <= sources
    assert not {place for place in sources if "_tables" in place or place.endswith((".tables", ".figures"))}
    assert "skfairdp/cli.py" not in sources


# Measures one cell and prints the files of the package that this has loaded.
PROGRAM = """
import sys
from benchmarks.papers._experiment import experiment_of
experiment = experiment_of(sys.argv[1])
experiment.measure(experiment.cells("quick")[-1])
print(*(module.__file__ for name, module in sys.modules.items() if name.startswith("skfairdp.")), sep="\\n")
"""


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("name", ["ome", "dpnr", "federate-adult", "pate"])
def test_version_covers_loaded_files(data_home, name):
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM, name]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    loaded = {Path(line).relative_to(ROOT).as_posix() for line in answer.split()}
    measure = experiment_of(name).measure
    assert len(loaded) > 50
    assert loaded <= set(sources_of(measure.__module__, measure.__qualname__))


def test_package_comment_keeps_version(tmp_path):
    """On a copy of the real source: a comment and a docstring change nothing, a constant does."""
    for folder in ("skfairdp", "benchmarks"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__", "results"))
    place = ("benchmarks.papers.ome", "measure")
    before = fingerprint(*place)
    assert fingerprint(*place, tmp_path) == before
    path = tmp_path / "skfairdp" / "_validation.py"
    path.write_text(path.read_text() + "\n# nothing new\n")
    assert fingerprint(*place, tmp_path) == before
    path.write_text(path.read_text() + "\n_NEW = 1\n")
    assert fingerprint(*place, tmp_path) != before


def test_version_names_packages():
    text = code_version(experiment_of("ome").measure)
    assert text.startswith("source ")
    assert all(f"{name} {version(name)}" in text for name in PACKAGES)
