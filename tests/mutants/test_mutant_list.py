"""The list of planted faults keeps up with the code, and the command that plants them tells the truth."""

import ast
import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from tests.mutants import __main__ as command
from tests.mutants import _hunt
from tests.mutants._hunt import hunt, judge, unchanged_tree_passes
from tests.mutants._mutant import ROOT, Mutant, read_mutants

MUTANTS = read_mutants()


def names_of_tests(path):
    return {node.name for node in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(node, ast.FunctionDef)}


def faults_of(mutant):
    """What keeps an entry from being of use."""
    if not mutant.applies():
        return [f"{mutant.old!r} must stand exactly once in {mutant.file}"]
    try:
        compile(mutant.source(), mutant.file, "exec")
    except SyntaxError as error:
        return [f"every test finds a fault that cannot be imported: {error}"]
    found = [] if mutant.source() != (ROOT / mutant.file).read_text(encoding="utf-8") else ["nothing changes"]
    found += [] if mutant.tests and mutant.why.endswith(".") else ["name a test, and say why in a sentence"]
    for test in mutant.tests:
        path, _, name = test.partition("::")
        if not (ROOT / path).is_file() or name not in names_of_tests(ROOT / path):
            found.append(f"there is no test {test}")
    return found


@pytest.mark.repository
def test_entries_keep_up_with_the_code():
    assert {mutant.name: found for mutant in MUTANTS if (found := faults_of(mutant))} == {}


@pytest.mark.repository
def test_stale_entries_are_found():
    known = MUTANTS[0]
    assert faults_of(known) == []
    assert len(faults_of(replace(known, old="no such text"))) == 1
    assert len(faults_of(replace(known, new="("))) == 1
    assert (
        len(faults_of(replace(known, tests=("tests/test_base.py::test_nothing", "tests/none.py::test"), why=""))) == 3
    )


@pytest.mark.slow
def test_names_are_different_and_choose():
    names = Counter(mutant.name for mutant in MUTANTS)
    assert max(names.values()) == 1
    assert [mutant.name for mutant in read_mutants(only="White")] == ["datasets: White and Non-White exchanged"]
    assert read_mutants(only="no such word") == []


@pytest.mark.slow
def test_incomplete_entry_is_named(tmp_path):
    path = tmp_path / "mutants.toml"
    path.write_text("[[mutant]]\nname = 'half'\nfile = 'a.py'\n")
    with pytest.raises(ValueError, match="'half' must have"):
        read_mutants(path)


SUM = "def add(a, b):\n    return a + b\n"
TESTS = """
import pytest
from package.sums import add

def test_numbers():
    assert add(2, 3) == 5

def test_zero():
    assert add(0, 0) == 0

@pytest.mark.skip
def test_skipped():
    assert add(1, 1) == 2
"""


@pytest.fixture
def tree(tmp_path):
    """A repository with a package, its tests, and a file that git leaves out."""
    for name, text in {
        "package/sums.py": SUM,
        "tests/test_sums.py": TESTS,
        ".gitignore": "*.log\n",
        "run.log": "",
        "pyproject.toml": "[tool.pytest.ini_options]\n",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    return tmp_path


def planted(new, tests=("test_numbers",), old="a + b"):
    return Mutant("one", "package/sums.py", old, new, tuple(f"tests/test_sums.py::{test}" for test in tests), "Why.")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mutant", "fate"),
    [
        (planted("a - b"), "killed"),
        (planted("a - b", ["test_zero"]), "survived"),
        (planted("a - b", old="a * b"), "stale"),
        (planted("b", old="a"), "stale"),  # more than once
        (planted("a +"), "broken"),
        (planted("a - b", ["test_skipped"]), "skipped"),
    ],
)
def test_fate_of_a_mutant(tree, mutant, fate):
    outcome = judge(mutant, tree)
    assert outcome.fate == fate, outcome.output
    assert outcome.is_fine is (fate in ("killed", "skipped"))
    assert (tree / "package/sums.py").read_text() == SUM


@pytest.mark.slow
def test_endless_loop_is_ended(tree, monkeypatch):
    monkeypatch.setattr(_hunt, "PATIENCE", 4)
    outcome = judge(planted("[1 for _ in iter(int, 1)]"), tree)
    assert (outcome.fate, outcome.is_fine) == ("broken", False)


@pytest.mark.slow
def test_tree_itself_is_never_changed():
    with pytest.raises(ValueError, match="into a copy"):
        MUTANTS[0].plant(Path(ROOT))


@pytest.mark.slow
def test_copy_is_what_git_would_track(tree, tmp_path_factory):
    copy = tmp_path_factory.mktemp("copy")
    _hunt.copy_tree(copy, tree)
    found = {path.relative_to(copy).as_posix() for path in copy.rglob("*") if path.is_file()}
    assert found == {".gitignore", "package/sums.py", "tests/test_sums.py", "pyproject.toml"}


@pytest.mark.slow
def test_failing_tests_find_nothing(tree):
    """Without a fault all named tests must pass, or they would seem to find every fault."""
    assert unchanged_tree_passes([planted("a - b")], 1, tree)[0]
    (tree / "package/sums.py").write_text(SUM.replace("a + b", "a * b"))
    assert not unchanged_tree_passes([planted("a - b", old="a * b")], 1, tree)[0]


@pytest.mark.slow
@pytest.mark.parametrize(("tests", "code"), [(["test_numbers"], 0), (["test_zero"], 1)])
def test_command_tells_and_ends_with_a_code(tree, monkeypatch, capsys, tests, code):
    mutants = [planted("a - b", tests)]
    monkeypatch.setattr(command, "read_mutants", lambda only: mutants)
    monkeypatch.setattr(command, "unchanged_tree_passes", lambda mutants, n_jobs: (True, ""))
    monkeypatch.setattr(command, "hunt", lambda mutants, n_jobs: hunt(mutants, n_jobs, tree))
    assert command.main(["--n-jobs", "1"]) == code
    told = capsys.readouterr().out
    assert f"[1/1] {'survived' if code else 'killed'}" in told
    assert ("Why." in told) is bool(code)


@pytest.mark.slow
def test_command_refuses_to_hunt_nothing(monkeypatch, capsys):
    assert command.main(["--only", "no such word"]) == 1
    assert "no mutant has 'no such word' in its name" in capsys.readouterr().out
    monkeypatch.setattr(command, "unchanged_tree_passes", lambda mutants, n_jobs: (False, "1 failed"))
    assert command.main(["--only", "White"]) == 1
    assert "fail without any fault" in capsys.readouterr().out
