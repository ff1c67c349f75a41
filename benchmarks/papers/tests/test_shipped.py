"""Shipped journals: whole, of one version of the code, and the source of the tables that the documents show."""

import json
import lzma
import subprocess
import sys

import pytest

from benchmarks.papers import _shipped
from benchmarks.papers._code_version import ROOT
from benchmarks.papers._experiment import Experiment
from benchmarks.papers._journal import Journal
from benchmarks.papers._shipped import TABLES, ship, shipped_names, shipped_rows
from tests._checks import assert_same_document

# Makes the tables of one experiment after another, and fails at the first import of the package.
WITHOUT_PACKAGE = """
import sys
from pathlib import Path
sys.modules["skfairdp"] = None
from benchmarks.papers._shipped import shipped_names, tables_of_shipped
for name in shipped_names():
    tables_of_shipped(name, Path(sys.argv[1]))
"""


def test_tables_are_made_from_the_journals_alone(tmp_path):
    """Every table and figure is made again, byte by byte, and none depends on the package of today."""
    command = [sys.executable, "-W", "ignore", "-c", WITHOUT_PACKAGE, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {path.name for path in TABLES.iterdir()}
    for path in tmp_path.iterdir():
        assert_same_document(path, TABLES / path.name)


@pytest.mark.parametrize("name", shipped_names())
def test_lines_name_what_measured_them(name):
    for row in shipped_rows(name):
        assert "source " in row["code"]
        assert "torch " in row["code"]
        assert row["cpu"]
        assert "seed" in row["cell"]


@pytest.fixture
def small(monkeypatch):
    """An experiment of two cells, and of a third that follows from their result."""
    experiment = Experiment(
        "small",
        lambda mode: [{"x": x, "seed": 0} for x in (1, 2)],
        lambda cell: {"y": cell["x"]},
        lambda frame: {"one": frame[["x", "y"]]},
        follow_up=lambda frame: [{"x": int(frame["y"].max()) + 10, "seed": 0}],
    )
    monkeypatch.setattr(_shipped, "experiment_of", lambda name: experiment)


def finish(folder, code, *values):
    with Journal(folder / "small-full.jsonl", code) as journal:
        for x in values:
            journal.append({"x": x, "seed": 0}, {"y": x})


@pytest.mark.usefixtures("small")
def test_only_a_whole_journal_of_one_code_is_shipped(tmp_path):
    finish(tmp_path, "old", 1, 2)
    with pytest.raises(ValueError, match="no version of the code has finished all cells of small"):
        ship("small", tmp_path, tmp_path / "journals")
    finish(tmp_path, "new", 1, 2, 12)
    finish(tmp_path, "old", 12)
    ship("small", tmp_path, tmp_path / "journals")
    assert [row["code"] for row in shipped_rows("small", tmp_path / "journals")] == ["new"] * 3
    assert shipped_names(tmp_path / "journals") == ["small"]


@pytest.mark.usefixtures("small")
def test_journal_of_several_versions_is_refused(tmp_path):
    finish(tmp_path, "new", 1, 2, 12)
    path = ship("small", tmp_path, tmp_path)
    lines = lzma.decompress(path.read_bytes()).decode().splitlines()
    mixed = json.loads(lines[0]) | {"code": "other"}
    path.write_bytes(lzma.compress("\n".join([json.dumps(mixed), *lines[1:]]).encode()))
    with pytest.raises(ValueError, match="several versions"):
        shipped_rows("small", tmp_path)
