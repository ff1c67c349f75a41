"""Plant faults into copies of the tree, run the tests that must find them, and tell which were found."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from tests.mutants._mutant import ROOT, Mutant

#: Seconds after which tests are ended: a fault may make a loop endless.
PATIENCE = 900
#: One thread each: several mutants run side by side.
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_TESTS_PASSED, _TESTS_FAILED = 0, 1  # pytest's exit codes; all others mean that tests were not run as they should be


@dataclass(frozen=True)
class Outcome:
    """What became of a mutant: killed, survived, stale, broken or skipped."""

    mutant: Mutant
    fate: str
    seconds: float
    output: str = ""

    @property
    def is_fine(self) -> bool:
        """Tell whether nobody has to do anything about it."""
        return self.fate in ("killed", "skipped")


def copy_tree(target: Path, root: Path = ROOT) -> None:
    """Copy what git tracks or would track, as it is in the working tree."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        if (root / name).is_file():  # not one that was deleted and is still tracked
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(root / name, target / name)


def run_tests(tests: list[str], root: Path, n_jobs: int = 1) -> tuple[str, str]:
    """Run tests in a tree; return passed, failed, skipped (if all are) or broken, and what pytest printed."""
    results = root / "mutant-results.xml"
    command = [sys.executable, "-m", "pytest", "-q", "--tb=short", "-n", str(n_jobs if n_jobs > 1 else 0)]
    command += ["-p", "no:cacheprovider", f"--junitxml={results}", *tests]
    # Of several places that hold the package, the copy must come first, in processes that tests start as well.
    environment = {**os.environ, **dict.fromkeys(_THREADS, "1"), "MPLBACKEND": "Agg", "PYTHONPATH": str(root)}
    try:
        done = subprocess.run(
            command, cwd=root, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
    except subprocess.TimeoutExpired:
        return "broken", f"the tests did not end within {PATIENCE} seconds"
    output = done.stdout + done.stderr
    if done.returncode == _TESTS_FAILED:
        return "failed", output
    if done.returncode != _TESTS_PASSED:
        return "broken", output
    suite = next(ElementTree.parse(results).getroot().iter("testsuite"))
    return ("skipped" if suite.get("tests") == suite.get("skipped") else "passed"), output


def judge(mutant: Mutant, root: Path = ROOT) -> Outcome:
    """Plant one fault into a fresh copy and run its tests there."""
    started = time.perf_counter()
    if not mutant.applies(root):
        return Outcome(mutant, "stale", 0.0, f"its text must stand exactly once in {mutant.file}")
    # A fresh copy for each: a file that changes twice within a second may be taken for its compiled predecessor.
    with tempfile.TemporaryDirectory(prefix="skfairdp-mutant-") as folder:
        copy = Path(folder).resolve()
        copy_tree(copy, root)
        mutant.plant(copy)
        found, output = run_tests(list(mutant.tests), copy)
    fate = {"failed": "killed", "passed": "survived"}.get(found, found)
    return Outcome(mutant, fate, time.perf_counter() - started, output)


def unchanged_tree_passes(mutants: list[Mutant], n_jobs: int, root: Path = ROOT) -> tuple[bool, str]:
    """Run every named test on a copy without a fault; return whether none fails, and what pytest printed."""
    with tempfile.TemporaryDirectory(prefix="skfairdp-no-mutant-") as folder:
        copy = Path(folder).resolve()
        copy_tree(copy, root)
        tests = list(dict.fromkeys(test for mutant in mutants for test in mutant.tests))
        found, output = run_tests(tests, copy, n_jobs)
    return found in ("passed", "skipped"), output


def hunt(mutants: list[Mutant], n_jobs: int, root: Path = ROOT) -> Iterator[Outcome]:
    """Judge all of them, several at a time; yield each as soon as it is judged."""
    with ThreadPoolExecutor(n_jobs) as pool:
        for future in as_completed([pool.submit(judge, mutant, root) for mutant in mutants]):
            yield future.result()
