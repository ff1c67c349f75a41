"""Which code a new measurement comes from: any change of a source is another version."""

from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("numpy", "scipy", "scikit-learn", "torch", "skorch")


def code_version(root: Path = ROOT) -> str:
    """One line for the journal: a hash of the sources, and versions of the packages that compute.

    The sources are all files of ``skfairdp`` and those of ``benchmarks/papers`` itself, not its tests and tables.
    """
    files = [*(root / "skfairdp").rglob("*"), *(root / "benchmarks" / "papers").glob("*")]
    hashes = [
        f"{path.relative_to(root).as_posix()} {sha256(path.read_bytes()).hexdigest()}"
        for path in sorted(files)
        if path.is_file() and "__pycache__" not in path.parts
    ]
    source = sha256("\n".join(hashes).encode()).hexdigest()[:16]
    return ", ".join([f"source {source}", *(f"{name} {version(name)}" for name in PACKAGES)])
