"""Private training beside other libraries: how they are asked, and that a quick run does without them."""

import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.reproduce import _peers_environment
from benchmarks.reproduce._experiment import reproduce
from benchmarks.reproduce._journal import Journal
from benchmarks.reproduce._peers_environment import REQUIREMENTS, VARIABLE, ask, peers_python
from benchmarks.reproduce._private_peers import MODULES, PEERS
from benchmarks.reproduce.private_training import DATA, EPSILONS, TAKEN, _split, cells

ROOT = Path(__file__).resolve().parents[2]
REQUEST = {"peer": np.array("DP-EBM"), "X": np.zeros((3, 2)), "seed": np.array(0)}


@pytest.fixture
def no_environment(monkeypatch, tmp_path):
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(_peers_environment, "FOLDER", tmp_path / "peers")


@pytest.mark.usefixtures("no_environment")
def test_without_peers_a_quick_run_says_so(capsys):
    methods = {cell["method"] for cell in cells("quick")}
    assert "PATE" in methods
    assert not methods & set(PEERS)
    said = capsys.readouterr().err
    assert "peers are left out" in said
    assert VARIABLE in said


@pytest.mark.data
@pytest.mark.usefixtures("no_environment")
def test_quick_run_without_peers(data_home, tmp_path):
    text = reproduce("private-training", "quick", tmp_path)
    assert "| PATE | 8 |" in text
    assert "DP-SGD" not in text
    rows = Journal(tmp_path / "private-training-quick.jsonl").rows()
    accuracy = {row["cell"]["method"]: [line["accuracy"] for line in row["result"]["lines"]] for row in rows}
    assert 0.45 < accuracy["largest class"][0] < 0.58
    assert accuracy["boosted trees"][0] > 0.9
    assert all(0.45 < found < 0.75 for found in accuracy["PATE"])  # linear, as logistic regression is
    assert len(accuracy["PATE"]) == len(EPSILONS)


def test_with_peers_all_are_asked(monkeypatch):
    monkeypatch.setenv(VARIABLE, sys.executable)
    assert set(PEERS) < {cell["method"] for cell in cells("quick")}
    assert set(MODULES) == set(PEERS)


@pytest.mark.usefixtures("no_environment")
def test_full_run_has_all_cells_whatever_is_installed():
    assert set(PEERS) < {cell["method"] for cell in cells("full")}
    assert {cell["data"] for cell in cells("full")} == set(DATA)
    assert len({cell["seed"] for cell in cells("full")}) >= 5


@pytest.mark.usefixtures("no_environment")
def test_python_that_is_not_there_is_named(monkeypatch):
    assert peers_python() is None
    monkeypatch.setenv(VARIABLE, "no/such/python")
    with pytest.raises(FileNotFoundError, match="no/such/python"):
        peers_python()


@pytest.mark.usefixtures("no_environment")
def test_failure_of_a_peer_is_told(monkeypatch):
    monkeypatch.setenv(VARIABLE, sys.executable)
    for _ in range(2):  # and the process goes on
        with pytest.raises(RuntimeError, match=r"no such peer failed: (.|\n)*KeyError"):
            ask(REQUEST | {"peer": np.array("no such peer")})
    assert not list(_peers_environment.FOLDER.rglob("*.npz"))


@pytest.mark.usefixtures("no_environment")
def test_same_question_is_asked_once(monkeypatch):
    """A change of any row asks again."""
    asked = []

    def process(python, question, answer):
        asked.append(question)
        np.savez(answer, scores=np.array([len(asked)]))

    monkeypatch.setenv(VARIABLE, sys.executable)
    monkeypatch.setattr(_peers_environment, "_answer_of_process", process)
    answers = [int(ask(REQUEST)["scores"][0]) for _ in range(2)]
    changed = REQUEST | {"X": np.eye(3, 2)}
    assert [*answers, int(ask(changed)["scores"][0])] == [1, 1, 2]


def test_peers_are_shown_no_answers():
    """Neither labels nor groups of test rows, nor labels of public rows."""
    assert not {"y_test", "groups_test", "y_public"} & set(TAKEN)


@pytest.mark.data
def test_parts_share_no_row(data_home):
    rows = _split("Parkinsons", 0)
    parts = [{row.tobytes() for row in rows[part]} for part in ("X", "public", "X_test")]
    assert sum(map(len, parts)) == len(set.union(*parts))
    assert np.allclose(rows["public"].mean(axis=0), 0, atol=1e-9)
    assert not np.allclose(rows["X"].mean(axis=0), 0, atol=1e-9)  # private rows have no say in the scale


def test_peers_have_the_same_torch():
    """Their numbers are of pinned versions, and torch is ours."""
    pins = [line for line in REQUIREMENTS.read_text().splitlines() if not line.startswith("#")]
    assert all("==" in line for line in pins)
    ours = (ROOT / "constraints.txt").read_text().splitlines()
    assert next(line for line in pins if line.startswith("torch==")) in ours
