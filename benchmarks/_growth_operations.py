"""The operations whose growth is measured: each makes its data for a number of rows, and returns what is measured."""

import contextlib
import io
import resource
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow
from pyarrow import parquet

MILLION, TEN_MILLION = 10**6, 10**7
N_COLUMNS = 10


@dataclass
class Operation:
    """An operation, the sizes at which it is measured, and why its cost per row grows, where it does."""

    name: str
    make: Callable[[int], Callable[[], Any]]
    sizes: tuple[int, ...]
    reason: str = ""


OPERATIONS: dict[str, Operation] = {}


def operation(name: str, *, up_to: int = MILLION, sizes: tuple[int, ...] | None = None, reason: str = "") -> Callable:
    """Register an operation by what it is called in the table."""

    def register(make: Callable[[int], Callable[[], Any]]) -> Callable:
        every = (10**4, 10**5, MILLION, TEN_MILLION)
        OPERATIONS[name] = Operation(name, make, sizes or tuple(n for n in every if n <= up_to), reason)
        return make

    return register


def _rows(n: int, columns: int = N_COLUMNS) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(n, columns))


def _people(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    from skfairdp.datasets import make_biased_classification

    made = make_biased_classification(n, N_COLUMNS, label_bias=0.3, group_shift=1.5, random_state=0)
    return made.data, made.target, made.sensitive_features


def _warm(estimator: Any, X: np.ndarray) -> Any:
    """Fit, and make what is made once however many rows follow."""
    estimator.fit(X[:100]).transform(X[:100])
    return estimator


@operation("LaplacePrivatizer.transform", up_to=TEN_MILLION)
def laplace(n: int) -> Callable[[], Any]:
    from skfairdp import LaplacePrivatizer

    X = _rows(n)
    privatizer = _warm(LaplacePrivatizer(), X)
    return lambda: privatizer.transform(X)


@operation("GaussianPrivatizer.transform", up_to=TEN_MILLION)
def gaussian(n: int) -> Callable[[], Any]:
    from skfairdp import GaussianPrivatizer

    X = _rows(n)
    privatizer = _warm(GaussianPrivatizer(), X)
    return lambda: privatizer.transform(X)


@operation("OMEEncoder.transform", up_to=TEN_MILLION)
def ome(n: int) -> Callable[[], Any]:
    from skfairdp import OMEEncoder

    X = _rows(n)
    encoder = _warm(OMEEncoder(), X)
    return lambda: encoder.transform(X)


@operation("transform_in_blocks, Laplace, from disk to disk", up_to=TEN_MILLION)
def in_blocks(n: int) -> Callable[[], Any]:
    from skfairdp import LaplacePrivatizer
    from skfairdp.pipeline import transform_in_blocks

    folder = tempfile.TemporaryDirectory()
    arrays = [
        np.lib.format.open_memmap(Path(folder.name) / name, "w+", np.float64, (n, N_COLUMNS)) for name in ("X", "out")
    ]
    generator = np.random.default_rng(0)
    for start in range(0, n, 10**5):
        arrays[0][start : start + 10**5] = generator.normal(size=(min(10**5, n - start), N_COLUMNS))
    privatizer = _warm(LaplacePrivatizer(), arrays[0])

    def run() -> None:
        with folder:
            transform_in_blocks(privatizer, *arrays, block_rows=50_000)

    return run


@operation("LEACEEraser.fit")
def leace_fit(n: int) -> Callable[[], Any]:
    from skfairdp import LEACEEraser

    X, _, groups = _people(n)
    return lambda: LEACEEraser().fit(X, sensitive_features=groups)


@operation(
    "LEACEEraser.transform",
    up_to=TEN_MILLION,
    reason="the first touch of new memory, 0.2 microseconds for an output row on the machine that measured this, costs "
    "more than the erasure; in blocks of a million rows, whose memory is used again, the cost is flat",
)
def leace_transform(n: int) -> Callable[[], Any]:
    from skfairdp import LEACEEraser

    X = _rows(n)
    eraser = LEACEEraser().fit(X[:10_000], sensitive_features=X[:10_000, 0] > 0)
    return lambda: eraser.transform(X)


def _answers(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    y = generator.integers(0, 2, n)
    names = np.array([f"group {g}" for g in range(50)], dtype=object)
    return y, np.where(generator.random(n) < 0.8, y, 1 - y), names[generator.integers(0, 50, n)]


@operation("group_rates, 50 groups, 1,000 bootstrap draws", up_to=TEN_MILLION)
def rates(n: int) -> Callable[[], Any]:
    from skfairdp import group_rates

    y, p, groups = _answers(n)
    return lambda: group_rates(y, p, sensitive_features=groups, interval="bootstrap", random_state=0)


@operation("GroupCounts, 50 groups, blocks of 50,000", up_to=TEN_MILLION)
def counts(n: int) -> Callable[[], Any]:
    from skfairdp.metrics import GroupCounts

    y, p, groups = _answers(n)

    def run() -> Any:
        total = GroupCounts()
        for start in range(0, n, 50_000):
            part = slice(start, start + 50_000)
            total.update(y[part], p[part], sensitive_features=groups[part])
        return total.rates()

    return run


@operation("leakage_score, linear attacker")
def leakage(n: int) -> Callable[[], Any]:
    from skfairdp import leakage_score

    X, _, groups = _people(n)
    return lambda: leakage_score(X, groups, probe="linear", random_state=0)


def _fair() -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    from skfairdp import FairPrivateClassifier

    return FairPrivateClassifier(HistGradientBoostingClassifier(max_iter=30, random_state=0), random_state=0)


@operation("FairPrivateClassifier.fit, boosted trees")
def fair_fit(n: int) -> Callable[[], Any]:
    X, y, groups = _people(n)
    return lambda: _fair().fit(X, y, sensitive_features=groups)


@operation("FairPrivateClassifier.predict, boosted trees")
def fair_predict(n: int) -> Callable[[], Any]:
    X, y, groups = _people(n)
    model = _fair().fit(X[:10_000], y[:10_000], sensitive_features=groups[:10_000])
    return lambda: model.predict(X)


def _federate() -> Any:
    from skfairdp import FederateClassifier

    return FederateClassifier(max_epochs=1, batch_size=512, random_state=0)


@operation("FederateClassifier.fit, 1 epoch")
def federate_fit(n: int) -> Callable[[], Any]:
    X, y, groups = _people(n)
    _federate().fit(X[:2_000], y[:2_000], sensitive_features=groups[:2_000])  # torch is loaded and warm
    return lambda: _federate().fit(X, y, sensitive_features=groups)


@operation("FederateClassifier.predict")
def federate_predict(n: int) -> Callable[[], Any]:
    X, y, groups = _people(n)
    model = _federate().fit(X[:10_000], y[:10_000], sensitive_features=groups[:10_000])
    return lambda: model.predict(X)


@operation("PATEClassifier.fit, 100 logistic teachers")
def pate(n: int) -> Callable[[], Any]:
    from sklearn.linear_model import LogisticRegression

    from skfairdp import PATEClassifier

    X, y, _ = _people(n)
    public = _rows(2_000)
    return lambda: PATEClassifier(LogisticRegression(), n_teachers=100, random_state=0).fit(X, y, public=public)


@operation("audit_epsilon, trials instead of rows")
def epsilon(n: int) -> Callable[[], Any]:
    from skfairdp import LaplacePrivatizer, audit_epsilon

    privatizer = _warm(LaplacePrivatizer(1.0), _rows(200, 4))
    return lambda: audit_epsilon(privatizer, n_trials=n, random_state=0)


def _charges(n: int, **settings: Any) -> Callable[[], Any]:
    from skfairdp import PrivacyGuarantee, PrivacyLedger

    ledger = PrivacyLedger(**settings)
    guarantee = PrivacyGuarantee(1e-6, mechanism="laplace")

    def run() -> None:
        for _ in range(n):
            ledger.charge(guarantee)

    return run


@operation("PrivacyLedger.charge, charges instead of rows", sizes=(10**2, 10**3, 10**4))
def ledger(n: int) -> Callable[[], Any]:
    return _charges(n)


@operation(
    "PrivacyLedger.charge within a budget, charges instead of rows",
    sizes=(10**2, 10**3, 3 * 10**3),
    reason="a charge counts the entries of its record set again, so that the budget is that of the file and not of a "
    "number beside it",
)
def budget(n: int) -> Callable[[], Any]:
    return _charges(n, budget=1e9)


def _command(kind: str, words: list[str], blocks: Iterable[pd.DataFrame]) -> Callable[[], Any]:
    """Write a table block by block; return a run of the ``skfairdp`` command on it."""
    from skfairdp.cli import main

    folder = tempfile.TemporaryDirectory()
    path = Path(folder.name) / f"people.{kind}"
    writer: Any = None
    for block in blocks:
        if kind == "csv":
            block.to_csv(path, index=False, mode="a", header=not path.exists())
            continue
        table = pyarrow.Table.from_pandas(block, preserve_index=False)
        writer = writer or parquet.ParquetWriter(path, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()

    def run() -> None:
        with folder, contextlib.redirect_stdout(io.StringIO()), contextlib.chdir(folder.name):
            code = main([words[0], path.name, *words[1:]])
        if code:
            raise RuntimeError(f"skfairdp {words[0]} ended with exit code {code}")

    return run


def _privatize(n: int, kind: str) -> Callable[[], Any]:
    words = ["privatize", f"noisy.{kind}", "--columns", "x0,x1,x2,x3", "--epsilon", "4"]
    return _command(kind, words, (_four_columns(min(10**5, n - start)) for start in range(0, n, 10**5)))


def _four_columns(n: int) -> pd.DataFrame:
    return pd.DataFrame(_rows(n, 4), columns=["x0", "x1", "x2", "x3"]).round(3)


@operation("skfairdp privatize, CSV", up_to=TEN_MILLION)
def privatize_csv(n: int) -> Callable[[], Any]:
    return _privatize(n, "csv")


@operation("skfairdp privatize, Parquet", up_to=TEN_MILLION)
def privatize_parquet(n: int) -> Callable[[], Any]:
    return _privatize(n, "parquet")


@operation("dask: release_to_parquet, Laplace, from disk to disk")
def dask_release(n: int) -> Callable[[], Any]:
    import dask
    import dask.dataframe as dd

    from skfairdp import LaplacePrivatizer
    from skfairdp.dask import release_to_parquet

    folder = tempfile.TemporaryDirectory()
    source = Path(folder.name) / "rows"
    source.mkdir()
    for start in range(0, n, 10**5):
        rows = pd.DataFrame(_rows(min(10**5, n - start)), columns=[f"x{j}" for j in range(N_COLUMNS)])
        rows.to_parquet(source / f"{start:010d}.parquet")
    privatizer = _warm(LaplacePrivatizer(), _rows(100))

    def run() -> None:
        with folder, dask.config.set(scheduler="synchronous"):
            release_to_parquet(dd.read_parquet(source), Path(folder.name) / "noisy", privatizer)

    return run


def _audit(n: int, kind: str) -> Callable[[], Any]:
    from benchmarks.case_audit import people

    words = "audit --target target --positive 1 --sensitive group --predictions decision --seed 0 --quiet --jobs 1"
    return _command(kind, words.split(), [people(n)])


@operation("skfairdp audit, CSV")
def audit_csv(n: int) -> Callable[[], Any]:
    return _audit(n, "csv")


@operation("skfairdp audit, Parquet")
def audit_parquet(n: int) -> Callable[[], Any]:
    return _audit(n, "parquet")


def measured(name: str, n: int) -> dict[str, float]:
    """Run one operation at one size in this process; return processor seconds, and megabytes beyond its data."""
    warnings.simplefilter("ignore")
    run = OPERATIONS[name].make(n)
    once = any(word in name for word in ("skfairdp ", "disk", "charge"))  # what changes files
    seconds: list[float] = []
    with PeakMemory() as memory:
        while not seconds or (not once and len(seconds) < 3 and sum(seconds) < 5):
            start = time.process_time() + resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
            run()
            seconds.append(time.process_time() + resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - start)
    return {"seconds": min(seconds), "megabytes": memory.megabytes}


class PeakMemory:
    """Look every few milliseconds at the memory that is this process's own; pages of mapped files are not."""

    def __enter__(self) -> "PeakMemory":
        self._before = self._peak = _own_memory()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def _watch(self) -> None:
        while not self._ended.wait(0.002):
            self._peak = max(self._peak, _own_memory())

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._thread.join()
        self.megabytes = (self._peak - self._before) / 1e6


def _own_memory() -> int:
    line = next(row for row in Path("/proc/self/status").read_text().splitlines() if row.startswith("RssAnon"))
    return 1024 * int(line.split()[1])


def frame_of(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """The measurements as a table, in the order of the operations."""
    frame = pd.DataFrame(rows)
    order = {name: i for i, name in enumerate(OPERATIONS)}
    return frame.sort_values(["operation", "rows"], key=lambda c: c.map(order) if c.name == "operation" else c)
