"""A package to compare with, in an environment of its own."""

import json
import subprocess
import sys
from pathlib import Path

_HOME = Path(__file__).resolve().parent.parent / ".venv-bench"

# Runs inside the peer's environment: one timed call for each line that arrives.
_SERVER = """
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
    """A process in the environment ``.venv-bench/<name>`` that runs and times one statement on request.

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
        folder = _HOME / self.name
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
            [self._python(), "-W", "ignore", "-c", _SERVER],
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
        """Run the statement once and return the seconds it took, measured over there."""
        return float(self._say("run"))
