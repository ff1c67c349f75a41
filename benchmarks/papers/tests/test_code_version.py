"""The version of the code that a new measurement records: it changes with any source, and with nothing else."""

from importlib.metadata import version

import pytest

from benchmarks.papers._code_version import PACKAGES, code_version

SOURCES = ("skfairdp/__init__.py", "skfairdp/mechanisms/_draw.py", "benchmarks/papers/one.py")


@pytest.fixture
def tree(tmp_path):
    """A small tree of sources."""
    for name in SOURCES:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("SCALE = 2.0\n")
    return tmp_path


@pytest.mark.parametrize("name", SOURCES)
def test_code_version_changes_with_a_source(tree, name):
    before = code_version(tree)
    (tree / name).write_text("SCALE = 3.0\n")
    assert code_version(tree) != before


def test_code_version_changes_with_names_of_sources(tree):
    path = tree / SOURCES[1]
    versions = {code_version(tree)}
    path.rename(path.with_name("_other.py"))
    versions.add(code_version(tree))
    path.write_text("")
    versions.add(code_version(tree))
    assert len(versions) == 3


def test_code_version_stays_without_changed_sources(tree):
    before = code_version(tree)
    for name in (
        "skfairdp/__pycache__/_draw.cpython-311.pyc",
        "benchmarks/papers/tables/one.csv",
        "benchmarks/papers/tests/test_one.py",
        "tests/test_two.py",
    ):
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("new")
    assert code_version(tree) == before


def test_code_version_names_packages():
    text = code_version()
    assert text.startswith("source ")
    assert all(f"{name} {version(name)}" in text for name in PACKAGES)
