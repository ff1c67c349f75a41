"""What imports cost, each in a new process: ours over those of scikit-learn and fairlearn, in processor time.

The clock would measure the disk and whatever else runs on the machine; a fresh process shows both.
"""

import resource
import statistics
import subprocess
import sys

from benchmarks import Quantities, case


def _seconds(statement: str) -> float:
    def used() -> float:
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return children.ru_utime + children.ru_stime

    before = used()
    subprocess.run([sys.executable, "-c", statement], check=True)
    return used() - before


def _ratio(ours: str, other: str, repeats: int = 3) -> Quantities:
    """Take turns, and compare medians; the first round only warms the files."""
    rounds = [(_seconds(ours), _seconds(other)) for _ in range(repeats + 1)][1:]
    mine, theirs = (statistics.median(side) for side in zip(*rounds))
    print(f"  {mine:.2f} s against {theirs:.2f} s", flush=True)
    return Quantities(mine / theirs)


@case("imports", "import skfairdp, over import sklearn", at_most=0.5)
def package() -> Quantities:
    return _ratio("import skfairdp", "import sklearn")


@case("imports", "all metrics, over fairlearn.metrics", at_most=1.5)
def metrics() -> Quantities:
    return _ratio("import skfairdp.metrics", "import fairlearn.metrics")


@case("imports", "a privatizer, over a scaler of scikit-learn", at_most=1.5)
def privatizer() -> Quantities:
    return _ratio("from skfairdp import LaplacePrivatizer", "from sklearn.preprocessing import StandardScaler")


_FIRST_SEARCH = """
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from {package} import {transformer}
model = make_pipeline({transformer}(), LogisticRegression())
search = GridSearchCV(model, {{"logisticregression__C": [0.1, 1, 10]}}, n_jobs=2)
search.fit(*load_iris(return_X_y=True))
"""


@case("imports", "a first search by two processes with a privatizer, over one with a scaler", at_most=1.5)
def first_parallel_search() -> Quantities:
    """Each process of joblib loads what the search needs, which is most of what a small search takes."""
    return _ratio(
        _FIRST_SEARCH.format(package="skfairdp", transformer="LaplacePrivatizer"),
        _FIRST_SEARCH.format(package="sklearn.preprocessing", transformer="StandardScaler"),
    )
