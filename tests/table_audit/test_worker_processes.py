"""The processes of an audit: forked only where that is safe, and with the same results as one process."""

import json
import os
import subprocess
import sys
import threading

import pytest

from skfairdp.datasets import make_biased_classification
from skfairdp.table_audit import _worker_processes
from skfairdp.table_audit._worker_processes import WorkerProcesses, may_fork, start_in_copy

#: Run in a process of its own: that of the tests has threads, and must not be forked.
FORKED = """
import os
from joblib import effective_n_jobs
from skfairdp.table_audit._worker_processes import WorkerProcesses, declare_process_ours, may_fork, start_in_copy

PARENT = os.getpid()
TOO_FEW_PROCESSORS = effective_n_jobs(-1) < 2

def process_of(number):
    return number, os.getpid()

def fail():
    raise ValueError("a reason")

assert not may_fork()
declare_process_ours()
assert may_fork()
with WorkerProcesses(2, 100) as workers:
    results = dict(workers.results([(process_of, number) for number in range(20)]))
    assert {number: found[0] for number, found in results.items()} == {number: number for number in range(20)}
    assert os.getpid() not in {found[1] for found in results.values()}
    try:
        list(workers.results([(fail,), (process_of, 1)]))
    except ValueError as error:
        assert str(error) == "a reason"
    else:
        raise AssertionError("the error of a forked process did not arrive")
assert may_fork()
result = start_in_copy(lambda number: (number, os.getpid()), 3)  # a lambda cannot be pickled
assert result() == (3, PARENT) if TOO_FEW_PROCESSORS else result()[1] != PARENT
assert start_in_copy(lambda: os.getpid() == PARENT or os._exit(1))()  # the copy dies: the call is made here
try:
    start_in_copy(fail)()
except ValueError as error:
    assert str(error) == "a reason"
else:
    raise AssertionError("the error of a copy did not arrive")
"""


def process_of(number):
    return number, os.getpid()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux alone")
def test_forked_processes_return_results_and_errors():
    found = subprocess.run([sys.executable, "-c", FORKED], check=True, timeout=120, stderr=subprocess.PIPE, text=True)
    assert found.stderr == ""


def fail():
    raise ValueError("a reason")


def test_one_job_is_this_process():
    with WorkerProcesses(1, 10**9) as workers:
        assert list(workers.results([(process_of, 5)])) == [(0, (5, os.getpid()))]
        with pytest.raises(ValueError, match="a reason"):
            list(workers.results([(fail,), (process_of, 1)]))


def test_call_is_made_here_where_no_copy_may_be_made():
    assert not may_fork()
    assert start_in_copy(process_of, 5)() == (5, os.getpid())
    with pytest.raises(ValueError, match="a reason"):
        start_in_copy(fail)()


def test_nothing_is_forked_beside_other_threads_or_torch(monkeypatch):
    monkeypatch.setattr(_worker_processes, "_process_is_ours", True)
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.setattr(threading, "active_count", lambda: 1)
    assert may_fork() == (sys.platform == "linux")
    monkeypatch.setattr(threading, "active_count", lambda: 2)
    assert not may_fork()
    monkeypatch.setattr(threading, "active_count", lambda: 1)
    monkeypatch.setitem(sys.modules, "torch", os)
    assert not may_fork()
    with WorkerProcesses(None, 100) as workers:
        assert list(workers.results([(process_of, 5)])) == [(0, (5, os.getpid()))]


@pytest.mark.slow
def test_command_gives_the_same_figures_with_any_processes(tmp_path):
    made = make_biased_classification(600, group_shift=2.0, as_frame=True, random_state=0)
    made.frame.to_csv(tmp_path / "people.csv", index=False)
    words = "audit people.csv --target target --positive 1 --sensitive group --seed 0 --quiet --json a.json --methods"
    command = [sys.executable, "-m", "skfairdp.cli", *words.split(), "trees, fair private trees"]
    tables = []
    for jobs in ([], ["--jobs", "1"]):
        subprocess.run([*command, *jobs], cwd=tmp_path, check=True, stdout=subprocess.DEVNULL, timeout=300)
        rows = json.loads((tmp_path / "a.json").read_text())["table"]
        tables.append([{name: value for name, value in row.items() if "seconds" not in name} for row in rows])
    assert tables[0] == tables[1]
