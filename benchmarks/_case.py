"""What a case is, the list of cases, and peers that live in environments of their own."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_PEER_HOME = Path(__file__).resolve().parent.parent / ".venv-bench"

# Runs inside the peer's environment: one timed call for each line that arrives.
_PEER_PROGRAM = """
import json, sys, time
setup, run = json.loads(sys.stdin.readline())
names = {}
exec(setup, names)
code = compile(run, "<peer>", "exec")
print("ready", flush=True)
for _ in sys.stdin:
    start = time.perf_counter()
    exec(code, names)
    print(time.perf_counter() - start, flush=True)
"""


class Peer:
    """A package to compare with: a process in ``.venv-bench/<name>`` that runs and times one statement on request.

    Parameters
    ----------
    name : str
        The environment's name; peers of the same name share it.
    requirements : list of str
        What pip installs there, pinned.
    setup, run : str
        Python source: ``setup`` runs once, ``run`` is timed.
    """

    def __init__(self, name: str, requirements: list[str], *, setup: str, run: str):
        self.name, self.requirements, self._code = name, requirements, (setup, run)
        self._process: subprocess.Popen | None = None

    def _python(self) -> str:
        folder = _PEER_HOME / self.name
        stamp, wanted = folder / "requirements.json", json.dumps(self.requirements)
        python = folder / "bin" / "python"
        if not stamp.exists() or stamp.read_text() != wanted:
            print(f"  making .venv-bench/{self.name}: {', '.join(self.requirements)}", flush=True)
            subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
            pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            subprocess.run([*pip, *self.requirements], check=True)
            stamp.write_text(wanted)
        return str(python)

    def __enter__(self) -> "Peer":
        self._process = subprocess.Popen(
            [self._python(), "-W", "ignore", "-c", _PEER_PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._say(json.dumps(self._code))
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        self._process.stdin.close()
        self._process.wait()

    def _say(self, line: str) -> str:
        assert self._process is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"the peer {self.name} stopped with exit code {self._process.wait()}")
        return answer

    def seconds(self) -> float:
        """Run the statement once and return the seconds it took, measured in the peer's process."""
        return float(self._say("run"))


@dataclass
class Timings:
    """Two callables to be timed in turn; ``*_work`` is the amount of work one call does."""

    ours: Callable[[], object]
    other: Callable[[], object] | Peer
    ours_work: float = 1.0
    other_work: float = 1.0
    repeats: int = 5


@dataclass
class Quantities:
    """Two measured numbers (an accuracy, an error); ``other`` may be absent."""

    ours: float
    other: float | None = None


@dataclass
class Case:
    """A registered case: ``make()`` returns what is timed or was measured, ``kind`` and ``target`` judge it.

    A ``study`` takes minutes and runs only when its topic is asked for. The ``reason`` is printed where the target is
    missed: what is known about cases that hold on some days only.
    """

    topic: str
    title: str
    make: Callable[[], Timings | Quantities]
    kind: str
    target: float
    study: bool = False
    reason: str = ""


CASES: list[Case] = []

_KINDS = ("ratio_at_most", "speedup_at_least", "shortfall_at_most", "at_most", "at_least")


def case(topic: str, title: str, *, study: bool = False, reason: str = "", **target: float) -> Callable:
    """Register a case; exactly one of the targets named in the package's docstring is given."""
    (kind, value), *rest = target.items()
    if rest or kind not in _KINDS:
        raise TypeError(f"give exactly one target of {_KINDS}; got {sorted(target)}")

    def register(make: Callable[[], Timings | Quantities]) -> Callable:
        CASES.append(Case(topic, title, make, kind, float(value), study, reason))
        return make

    return register
