"""How long imports take, each in a new process: ours against those of scikit-learn and fairlearn."""

import subprocess
import sys

from benchmarks import Timings, case


def _import(statement: str):
    return lambda: subprocess.run([sys.executable, "-c", statement], check=True)


@case("imports", "import skfairdp, against import sklearn", ratio_at_most=1)
def package() -> Timings:
    return Timings(_import("import skfairdp"), _import("import sklearn"), repeats=5)


@case("imports", "all metrics, against fairlearn.metrics", ratio_at_most=1.5)
def metrics() -> Timings:
    return Timings(_import("import skfairdp.metrics"), _import("import fairlearn.metrics"), repeats=5)


@case("imports", "a privatizer, against a scaler of scikit-learn", ratio_at_most=1.5)
def privatizer() -> Timings:
    ours = _import("from skfairdp import LaplacePrivatizer")
    return Timings(ours, _import("from sklearn.preprocessing import StandardScaler"), repeats=5)
