"""A killed run goes on where it was: nothing is measured twice, nothing is lost, nothing half-written counts."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.papers._experiment import run_cells
from benchmarks.papers._journal import Journal, key_of

ROOT = Path(__file__).resolve().parents[3]

# Every measurement leaves a mark of its own, apart from the journal, so that repetitions can be counted.
PROGRAM = """
import sys, time
from pathlib import Path
from benchmarks.papers._experiment import run_cells
from benchmarks.papers._journal import Journal

folder, seconds, n_jobs = Path(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])

def measure(cell):
    time.sleep(seconds)
    with (folder / "marks").open("a") as marks:
        marks.write(f"{cell['seed']}\\n")
    return {"square": cell["seed"] ** 2}

run_cells(measure, [{"seed": seed} for seed in range(12)], Journal(folder / "run.jsonl", "one"), n_jobs=n_jobs)
"""


def start(folder, seconds, n_jobs=1):
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(folder), str(seconds), str(n_jobs)],
        cwd=ROOT,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # so that its workers can be killed with it, and nobody else
    )


def cut_off(folder, n_jobs, *, at_least=3):
    """Kill a run in the middle, without a warning, and return the seeds that it had finished."""
    journal = Journal(folder / "run.jsonl")
    process = start(folder, 0.3, n_jobs)
    deadline = time.monotonic() + 120
    try:
        while len(journal.rows()) < at_least:
            assert process.poll() is None, "the run ended before it could be killed"
            assert time.monotonic() < deadline, "the run did not get on"
            time.sleep(0.02)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return [row["cell"]["seed"] for row in journal.rows()]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_killed_run_resumes(tmp_path, n_jobs):
    done = cut_off(tmp_path, n_jobs)
    assert 3 <= len(done) < 12
    assert start(tmp_path, 0.0).wait(timeout=120) == 0
    rows = Journal(tmp_path / "run.jsonl").rows()
    assert sorted(row["cell"]["seed"] for row in rows) == list(range(12))
    assert all(row["result"]["square"] == row["cell"]["seed"] ** 2 for row in rows)
    marks = Counter(map(int, (tmp_path / "marks").read_text().split()))
    assert all(marks[seed] == 1 for seed in done)
    # Cells under way at the kill may have been measured without being written: at most one for each worker.
    assert sum(marks.values()) <= 12 + n_jobs


def test_torn_line_is_no_result(tmp_path):
    path = tmp_path / "run.jsonl"
    cells = [{"seed": seed} for seed in range(3)]
    whole = json.dumps({"cell": cells[0], "code": "", "result": {"value": 1}}) + "\n"
    path.write_text(whole + whole.replace('"seed": 0', '"seed": 1')[:-9])
    assert Journal(path).missing(cells) == cells[1:]
    assert run_cells(lambda cell: {"value": 2}, cells, Journal(path)) == 2
    assert [row["cell"]["seed"] for row in Journal(path).rows()] == [0, 1, 2]
    # The planted fault: whoever appends without cutting the torn line off makes a line that nobody can read.
    path.write_text(whole + whole[:-9])
    with path.open("a") as file:
        file.write(whole)
    with pytest.raises(json.JSONDecodeError):
        Journal(path).rows()


def test_changed_setting_is_another_cell(tmp_path):
    journal = Journal(tmp_path / "run.jsonl")
    run_cells(lambda cell: {}, [{"seed": 0, "epochs": 5}], journal)
    assert journal.missing([{"epochs": 5, "seed": 0}]) == []
    assert journal.missing([{"seed": 0, "epochs": 6}]) == [{"seed": 0, "epochs": 6}]
    assert key_of({"sizes": (1, 2)}) == key_of({"sizes": [1, 2]})


def test_journal_refuses_second_run(tmp_path):
    path = tmp_path / "run.jsonl"
    with Journal(path), pytest.raises(RuntimeError, match="another run"):
        run_cells(lambda cell: {}, [{"seed": 0}], Journal(path))
    assert run_cells(lambda cell: {}, [{"seed": 0}], Journal(path)) == 1


def test_failing_cell_is_named(tmp_path):
    journal = Journal(tmp_path / "run.jsonl")

    def measure(cell):
        if cell["seed"] == 2:
            raise ValueError("no such luck")
        return {}

    with pytest.raises(RuntimeError, match=r"'seed': 2.*no such luck"):
        run_cells(measure, [{"seed": seed} for seed in range(4)], journal)
    assert [row["cell"]["seed"] for row in journal.rows()] == [0, 1]


def test_writing_needs_an_open_journal(tmp_path):
    with pytest.raises(RuntimeError, match="with"):
        Journal(tmp_path / "run.jsonl").append({}, {})


def test_old_code_is_measured_again(tmp_path, capsys):
    path, cells = tmp_path / "run.jsonl", [{"seed": seed} for seed in range(3)]
    run_cells(lambda cell: {"by": "one"}, cells[:2], Journal(path, "one"))
    assert capsys.readouterr().err.count("other code") == 0
    journal = Journal(path, "two")
    assert journal.missing(cells) == cells
    assert journal.of_other_code(cells) == 2
    assert run_cells(lambda cell: {"by": "two"}, cells, journal) == 3
    assert "2 of 3 cells were measured by other code; they are measured again" in capsys.readouterr().err
    assert [row["result"]["by"] for row in journal.finished(cells)] == ["two"] * 3
    assert journal.of_other_code(cells) == 0
    # Lines of the other code are still there for whoever goes back to it.
    assert [row["result"]["by"] for row in Journal(path, "one").finished(cells)] == ["one"] * 2


def test_old_code_is_accepted_on_request(tmp_path, capsys):
    path, cells = tmp_path / "run.jsonl", [{"seed": seed} for seed in range(3)]
    for code in ("one", "two"):
        run_cells(lambda cell, code=code: {"by": code}, cells[:2], Journal(path, code))
    run_cells(lambda cell: {"by": "three"}, cells[:1], Journal(path, "three"))
    capsys.readouterr()
    journal = Journal(path, "three", accept_old_code=True)
    assert run_cells(lambda cell: {"by": "three"}, cells, journal) == 1
    assert "1 of 3 cells were measured by other code; they are kept" in capsys.readouterr().err
    # Of several old lines the last one counts, and none where the cell has one of this code.
    assert [row["result"]["by"] for row in journal.finished(cells)] == ["three", "two", "three"]


def test_line_without_version_is_old(tmp_path):
    path = tmp_path / "run.jsonl"
    path.write_text(json.dumps({"cell": {"seed": 0}, "result": {"value": 1}}) + "\n")
    for code in ("one", ""):
        assert Journal(path, code).missing([{"seed": 0}]) == [{"seed": 0}]
        assert Journal(path, code).of_other_code([{"seed": 0}]) == 1
        assert Journal(path, code, accept_old_code=True).missing([{"seed": 0}]) == []


def test_changed_code_after_kill_starts_anew(tmp_path):
    done = cut_off(tmp_path, 1)
    cells = [{"seed": seed} for seed in range(12)]
    assert run_cells(lambda cell: {}, cells, Journal(tmp_path / "run.jsonl", "two")) == 12
    # The run of the first code goes on where it was, nevertheless.
    assert len(Journal(tmp_path / "run.jsonl", "one").missing(cells)) == 12 - len(done)
