"""Shipped journals: whole, of one version of the code, and the source of the tables that the documents show."""

import json
import lzma

import pytest

from benchmarks.papers import _shipped
from benchmarks.papers._experiment import Experiment, experiment_of
from benchmarks.papers._journal import Journal
from benchmarks.papers._shipped import JOURNALS, TABLES, ship, shipped_names, shipped_rows, tables_of_shipped
from benchmarks.papers._tables import frame_of
from tests._checks import assert_same_document


@pytest.mark.parametrize("name", shipped_names())
def test_documents_show_what_the_journal_holds(name, tmp_path):
    """Every table and figure of a shipped journal is made again, byte by byte."""
    tables_of_shipped(name, tmp_path)
    made = sorted(tmp_path.iterdir())
    assert made
    for path in made:
        assert_same_document(path, TABLES / path.name)


def test_every_table_has_a_journal():
    """The first test makes tables again; this one finds those that no journal would make. Growth has its own file."""
    made = {
        f"{name}-full-{table}.csv"
        for name in shipped_names()
        for table in experiment_of(name).tables(frame_of(shipped_rows(name)))
    }
    assert {path.name for path in TABLES.glob("*.csv")} - {"growth.csv"} == made


@pytest.mark.parametrize("name", shipped_names())
def test_lines_name_what_measured_them(name):
    for row in shipped_rows(name):
        assert row["code"].startswith("source ")
        assert "torch" in row["code"]
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
    ship("small", tmp_path, tmp_path / "journals")
    assert [row["code"] for row in shipped_rows("small", tmp_path / "journals")] == ["new"] * 3
    assert shipped_names(tmp_path / "journals") == ["small"]


@pytest.mark.usefixtures("small")
def test_foreign_and_mixed_journals_are_refused(tmp_path):
    finish(tmp_path, "new", 1, 2, 12)
    path = ship("small", tmp_path, tmp_path)
    lines = lzma.decompress(path.read_bytes()).decode().splitlines()
    path.write_bytes(lzma.compress("\n".join(lines[:2]).encode()))
    with pytest.raises(ValueError, match="1 of its cells are missing"):
        shipped_rows("small", tmp_path)
    mixed = json.loads(lines[0]) | {"code": "other"}
    path.write_bytes(lzma.compress("\n".join([json.dumps(mixed), *lines[1:]]).encode()))
    with pytest.raises(ValueError, match="several versions"):
        shipped_rows("small", tmp_path)


def test_shipped_journals_are_of_experiments():
    assert JOURNALS.is_dir()
    for name in shipped_names():
        assert experiment_of(name).cells("full")
