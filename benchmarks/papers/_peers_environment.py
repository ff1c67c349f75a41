"""An environment of their own for other libraries: where it is, how it is made, and how one of them is asked.

Its Python is ``$SKFAIRDP_PEERS_PYTHON``, or that of ``benchmarks/results/peers``, which a full run makes from
``private_peers.txt`` when it is missing. Answers are kept beside it, by what was asked to the last byte of the rows
and by the script and its requirements: a change of the package does not ask again.
"""

import atexit
import json
import os
import subprocess
import sys
import venv
from functools import cache
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

HERE = Path(__file__).resolve().parent
SCRIPT, REQUIREMENTS = HERE / "_private_peers.py", HERE / "private_peers.txt"
FOLDER = HERE.parent / "results" / "peers"
VARIABLE = "SKFAIRDP_PEERS_PYTHON"
MISSING = (
    "The peers are left out: they need an environment of their own, which a full run makes, or whose Python "
    f"${VARIABLE} names (pip install -r {REQUIREMENTS.relative_to(HERE.parents[1])})."
)


def peers_python() -> Path | None:
    """Return the Python of the environment, or None if there is none."""
    if given := os.environ.get(VARIABLE):
        if not Path(given).exists():
            raise FileNotFoundError(f"${VARIABLE} is {given!r}, which does not exist.")
        return Path(given)
    made = FOLDER / "venv" / "bin" / "python"
    return made if (FOLDER / "venv" / "complete").exists() else None


def make_environment() -> Path:
    """Install what the requirements pin."""
    place = FOLDER / "venv"
    venv.create(place, with_pip=True, clear=True)
    python = place / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", "-r", REQUIREMENTS], check=True)
    (place / "complete").touch()
    return python


def ask(request: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Let a peer answer, by its own Python; take the kept answer where the same was asked before."""
    content = sha256(SCRIPT.read_bytes() + REQUIREMENTS.read_bytes())
    for name, array in sorted(request.items()):
        content.update(f"{name} {array.dtype} {array.shape}".encode())
        content.update(np.ascontiguousarray(array).tobytes())
    kept = FOLDER / "answers" / f"{content.hexdigest()[:32]}.npz"
    if not kept.exists():
        python = peers_python() or make_environment()
        kept.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=kept.parent) as folder:
            asked, answered = Path(folder, "request.npz"), Path(folder, "answer.npz")
            np.savez(asked, **request)
            if failure := _answer_of_process(python, asked, answered):
                raise RuntimeError(f"{request['peer']} failed: {failure.strip()[-2000:]}")
            answered.replace(kept)  # at once: a killed run leaves no half of an answer
    with np.load(kept) as file:
        return dict(file)


def _answer_of_process(python: Path, asked: Path, answered: Path) -> str | None:
    """Wait for an answer; return why there is none, if there is none."""
    process = _process(python, os.getpid())
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps([str(asked), str(answered)]) + "\n")
    process.stdin.flush()
    line = process.stdout.readline()
    return json.loads(line) if line else "its process has ended."


@cache
def _process(python: Path, owner: int) -> "subprocess.Popen[str]":
    """Start the script once for each process of ours: importing its libraries takes longer than many a fit."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [python, SCRIPT],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    atexit.register(_end, process)
    return process


def _end(process: "subprocess.Popen[str]") -> None:
    """Close its input, at which it ends by itself."""
    for end in (process.stdin, process.stdout):
        if end is not None:
            end.close()
    process.wait()


def say_missing() -> None:
    """Say on the terminal that the peers are left out, and what to do about it."""
    print(MISSING, file=sys.stderr)
