"""Private training beside other libraries: how they are asked, and that a quick run does without them."""

import sys
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.papers import _peers_environment
from benchmarks.papers._experiment import reproduce
from benchmarks.papers._journal import Journal
from benchmarks.papers._peers_environment import REQUIREMENTS, VARIABLE, ask, peers_python
from benchmarks.papers._private_peers import MODULES, PEERS
from benchmarks.papers._shipped import TABLES
from benchmarks.papers.private_training import DATA, EPSILONS, TAKEN, _split, cells

ROOT = Path(__file__).resolve().parents[3]
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


@cache
def table(name: str) -> pd.DataFrame:
    path = TABLES / f"private-training-full-{name}.csv"
    return pd.read_csv(path, keep_default_na=False, dtype=str)


def numbers(name: str, key: str, *settings: str, epsilon: str | None = None) -> np.ndarray:
    """First numbers of the cells, one row for each line with these settings, one column for each data set."""
    lines = table(name)
    lines = lines[lines[key].isin(settings)]
    lines = lines if epsilon is None else lines[lines["epsilon"] == epsilon]
    return lines[list(DATA)].map(lambda cell: float(cell.split("\u00a0")[0])).to_numpy()


def accuracy(method: str, epsilon: str | None = None, name: str = "accuracy") -> np.ndarray:
    return numbers(name, "method", method, epsilon=epsilon)


def one(name: str, method: str, data: str, epsilon: str | None = None) -> float:
    return float(accuracy(method, epsilon, name)[0, DATA.index(data)])


def span(values: np.ndarray) -> tuple[float, float]:
    return float(values.min()), float(values.max())


def step(data: str, epsilon: str, column: str) -> float:
    lines = table("pate-step-by-step")
    (cell,) = lines.loc[(lines["data"] == data) & (lines["epsilon"] == epsilon), column]
    return float(cell.split("\u00a0")[0])


SGD = ("DP-SGD logistic", "DP-SGD network")
LARGE = [data for data in DATA if data != "Parkinsons"]
IS_LARGE = np.array([data in LARGE for data in DATA])
INCOME, PARKINSONS, ADULT = (DATA.index(data) for data in ("Income", "Parkinsons", "Adult"))

#: Words of the page, and whether the tables bear them out.
STATEMENTS = {
    "on all five and at every epsilon, by 0.4 to 3.0 points on the four larger ones and by 3.6 to 12.7": lambda: (
        span(-numbers("pate-less-peers", "PATE less", *SGD)[:, IS_LARGE]) == (0.4, 3.0)
        and span(-numbers("pate-less-peers", "PATE less", *SGD)[:, PARKINSONS]) == (3.6, 12.7)
    ),
    "its lines at 0.5 are above PATE's at 1 everywhere": lambda: all(
        (accuracy(method, "0.5") > accuracy("PATE", "1")).all() for method in SGD
    ),
    "from epsilon 1 on, by 0.2 to 3.4 points; only on Credit card at 8 it is behind. At 0.5 it is behind on Income.": (
        lambda: _objective_is_ahead()
    ),
    "PATE is ahead of DP-EBM except on Parkinsons, by 0.2 to 3.8 points": lambda: (
        span(numbers("pate-less-peers", "PATE less", "DP-EBM")[:, IS_LARGE]) == (0.2, 3.8)
        and (numbers("pate-less-peers", "PATE less", "DP-EBM")[:, PARKINSONS] < 0).all()
    ),
    "(area under the curve on Adult at epsilon 1: 89.0, PATE 87.2)": lambda: (
        one("auc", "DP-EBM", "Adult", "1") == 89.0 and one("auc", "PATE", "Adult", "1") == 87.2
    ),
    "it says yes to few (19.4 per cent of those": lambda: one("tpr", "DP-EBM", "Adult", "1") == 19.4,
    "On Adult PATE's is 14.7 to 23.0 points, that of the logistic model by DP-SGD 7.4 to 8.3": lambda: (
        span(accuracy("PATE", name="tpr-gap")[:, ADULT]) == (14.7, 23.0)
        and span(accuracy(SGD[0], name="tpr-gap")[:, ADULT]) == (7.4, 8.3)
        and one("tpr-gap", "logistic regression", "Adult") == 8.1
    ),
    "PATE's is 7.3 to 9.0, those of DP-SGD are 11.8 to 20.1": lambda: (
        span(accuracy("PATE", name="tpr-gap")[:, INCOME]) == (7.3, 9.0)
        and span(numbers("tpr-gap", "method", *SGD)[:, INCOME]) == (11.8, 20.1)
    ),
    "all take less than five seconds": lambda: table("seconds")[list(DATA)].astype(float).to_numpy().max() < 5,
    "at epsilon 1 it takes at most 0.6 points, and votes take 0.9 to 2.2": lambda: (
        max(-step(data, "1", "by noise") for data in LARGE) == 0.6
        and span(np.array([-step(data, "1", "by votes") for data in LARGE])) == (0.9, 2.2)
    ),
    "281 teachers with 71 rows each": lambda: step("Bank", "1", "teachers") == 281 and round(20_000 / 281) == 71,
    "it finds 6.2 per cent of the rarer class, logistic regression 36.0": lambda: (
        one("tpr", "PATE", "Bank", "1") == 6.2 and one("tpr", "logistic regression", "Bank") == 36.0
    ),
    "3.7 points at epsilon 0.5": lambda: step("Parkinsons", "0.5", "by noise") == -3.7,
    "logistic regression has 62.8 per cent, boosted trees 97.7": lambda: (
        one("accuracy", "logistic regression", "Parkinsons") == 62.8
        and one("accuracy", "boosted trees", "Parkinsons") == 97.7
    ),
    "the network by DP-SGD comes to 75.3 at epsilon 8": lambda: one("accuracy", SGD[1], "Parkinsons", "8") == 75.3,
}


def _objective_is_ahead() -> bool:
    ahead = -numbers("pate-less-peers", "PATE less", "diffprivlib logistic")  # lines are the epsilons, in order
    behind = {(EPSILONS[line], DATA[column]) for line, column in np.argwhere(ahead < 0)}
    won = ahead[1:][ahead[1:] > 0]
    return behind == {(8.0, "Credit card"), (0.5, "Income")} and span(won) == (0.2, 3.4)


@pytest.mark.parametrize("words", STATEMENTS)
def test_page_says_what_the_tables_say(words):
    path = ROOT / "docs" / "reproduction" / "private_training.md"
    page = " ".join(path.read_text(encoding="utf-8").split())
    assert words in page
    assert STATEMENTS[words]()
