"""An environment of their own for other libraries: where it is, how it is made, and how one of them is asked.

Its Python is ``$SKFAIRDP_PEERS_PYTHON``, or that of ``benchmarks/results/peers``, which a full run makes from
``private_peers.txt`` when it is missing. Answers are kept beside it, by what was asked to the last byte of the rows
and by what the script does: a change of our own code does not ask again.
"""

import os
import subprocess
import sys
import venv
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.reproduce._code_version import fingerprint

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
    """Let a peer answer, in a process of its own Python; take the kept answer where the same was asked before."""
    code = fingerprint(f"benchmarks.reproduce.{SCRIPT.stem}", "answer")
    content = sha256(code.encode() + REQUIREMENTS.read_bytes())
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
            environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
            environment |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
            done = subprocess.run(
                [python, SCRIPT, asked, answered], env=environment, capture_output=True, text=True, check=False
            )
            if done.returncode:
                raise RuntimeError(f"{request['peer']} failed: {done.stderr.strip()[-2000:]}")
            answered.replace(kept)  # at once: a killed run leaves no half of an answer
    with np.load(kept) as file:
        return dict(file)


def say_missing() -> None:
    """Say on the terminal that the peers are left out, and what to do about it."""
    print(MISSING, file=sys.stderr)
