"""However often a partition is drawn, it is published once; whatever cannot be released is refused before it costs."""

import json
import os
import threading
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from skfairdp import FairPrivateClassifier, LaplacePrivatizer, PATEClassifier, PrivacyLedger, PublicScaler
from skfairdp.dask import _written_once, release_to_parquet
from skfairdp.dask._written_once import METADATA_KEY, PartitionContent, ReleasePlan, check_partition, write_partition
from skfairdp.exceptions import BudgetExceededError
from skfairdp.pipeline import price_of_new_rows
from tests.dask import _in_workers

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

# Dask 2026.8 calls what pandas 3.1 has deprecated.
pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword")

NAMES = ["a", "b"]


@pytest.fixture(autouse=True)
def one_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture
def rows():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 2)), columns=NAMES)
    return dd.from_pandas(frame.assign(city=["x", "y"] * 20), npartitions=4)


@pytest.fixture
def privatizer():
    return LaplacePrivatizer(1.0).fit(np.eye(2))


def bytes_of(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.glob("part-*.parquet"))}


class Interrupted(LaplacePrivatizer):
    """Fails after some partitions."""

    _row_wise_methods: ClassVar[dict] = {"transform": ()}

    left = 2

    def transform(self, X):
        if self.left == 0:
            raise InterruptedError("out of power")
        self.left -= 1
        return super().transform(X)


def test_readers_see_one_draw_for_ever(rows, privatizer, tmp_path):
    with PrivacyLedger() as ledger:
        guarantee, n_rows = release_to_parquet(rows, tmp_path / "noisy", privatizer, NAMES, keep=["city"])
    assert (len(ledger), guarantee.epsilon, n_rows) == (1, 1.0, 40)
    assert any("city" in sentence for sentence in guarantee.does_not_cover)
    lazy = dd.read_parquet(tmp_path / "noisy")
    pd.testing.assert_frame_equal(lazy.compute(), lazy.compute())
    released = pd.read_parquet(tmp_path / "noisy")
    assert list(released) == [*NAMES, "city"]
    assert released["city"].tolist() == ["x", "y"] * 20
    assert np.isclose(released[NAMES], rows.compute()[NAMES]).mean() < 0.1


def test_partitions_share_no_noise(tmp_path):
    """Of equal rows; the planted fault starts every partition from the same seed."""
    equal = dd.from_pandas(pd.DataFrame(np.tile([0.5, -0.25], (3000, 1)), columns=NAMES), npartitions=3)
    for name, privatizer in {
        "ours": LaplacePrivatizer(1.0),
        "seeded": LaplacePrivatizer(1.0, random_state=0),
        "planted": _in_workers.RepeatingPrivatizer(1.0),
    }.items():
        release_to_parquet(equal, tmp_path / name, privatizer.fit(np.eye(2)))
        parts = [pd.read_parquet(path) - [0.5, -0.25] for path in sorted((tmp_path / name).glob("part-*.parquet"))]
        correlation = np.abs(np.corrcoef([np.ravel(part) for part in parts]) - np.eye(3)).max()
        # 2,000 entries each: the standard deviation is 0.022, and one of 3 pairs passes 0.15 with a probability
        # below 1e-9.
        assert correlation == pytest.approx(1.0) if name == "planted" else correlation < 0.15


def test_a_lazy_graph_draws_at_every_compute(rows):
    """What the folder is there for: noise that is drawn again averages out, and is paid for again."""
    privatizer = LaplacePrivatizer(1.0).set_output(transform="pandas").fit(pd.DataFrame(np.eye(2), columns=NAMES))
    with PrivacyLedger() as ledger:
        lazy = rows[NAMES].map_partitions(privatizer.transform, meta=pd.DataFrame(columns=NAMES, dtype=float))
        same = np.isclose(lazy.compute(), lazy.compute())
    assert same.mean() < 0.2  # on a grid of 1/256 two draws meet now and then
    assert (len(ledger), ledger.total().epsilon) == (8, 8.0)


def test_every_part_carries_its_receipt(rows, privatizer, tmp_path):
    from pyarrow import parquet

    release_to_parquet(rows, tmp_path / "noisy", privatizer, NAMES)
    whole = json.loads((tmp_path / "noisy" / "_guarantee.json").read_text())
    for number, path in enumerate(sorted((tmp_path / "noisy").glob("part-*.parquet"))):
        inside = json.loads(parquet.read_schema(path).metadata[METADATA_KEY])
        beside = json.loads(path.with_name(f"_{path.stem}.guarantee.json").read_text())
        assert inside["guarantee"] == beside["guarantee"] == whole["guarantee"]
        assert (inside["release"], inside["partition"]) == (whole["release"], number)
        assert (beside["rows"], beside["sha256"]) == (10, whole["parts"][number]["sha256"])


def plan_for(tmp_path, privatizer):
    for name in ("noisy", "drafts"):
        (tmp_path / name).mkdir()
    folder, drafts = str(tmp_path / "noisy"), str(tmp_path / "drafts")
    return ReleasePlan(folder, drafts, "r", tuple(NAMES), (), "transform", price_of_new_rows(privatizer))


def test_a_task_that_runs_again_changes_nothing(rows, privatizer, tmp_path, monkeypatch):
    plan, block = plan_for(tmp_path, privatizer), rows.get_partition(0).compute()
    content = check_partition(block, 0, plan, gaps_allowed=False)

    def bytes_after_another_run():
        write_partition(block, 0, content, privatizer, plan)
        return bytes_of(tmp_path / "noisy")

    first = bytes_after_another_run()
    assert bytes_after_another_run() == first
    # Also if it began before the other had finished, and has not seen its file.
    monkeypatch.setattr(_written_once.Path, "exists", lambda path: False)
    assert bytes_after_another_run() == first
    assert os.listdir(plan.drafts) == []
    monkeypatch.setattr(_written_once, "publish_once", os.replace)  # the planted fault: the last draw wins
    assert bytes_after_another_run() != first


def test_of_two_workers_at_once_one_wins(rows, tmp_path):
    both = threading.Barrier(2)

    class Waiting(LaplacePrivatizer):
        def transform(self, X):
            drawn = super().transform(X)
            both.wait()
            return drawn

    privatizer = Waiting(1.0).fit(np.eye(2))
    plan, block = plan_for(tmp_path, privatizer), rows.get_partition(0).compute()
    content = check_partition(block, 0, plan, gaps_allowed=False)
    receipts = []
    threads = [
        threading.Thread(target=lambda: receipts.append(write_partition(block, 0, content, privatizer, plan)))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert receipts[0] == receipts[1]
    assert len(bytes_of(tmp_path / "noisy")) == 1


def test_rows_that_change_between_computations_are_refused(rows, privatizer, tmp_path):
    shuffled = rows.map_partitions(_in_workers.in_another_order, meta=rows._meta)
    with pytest.raises(RuntimeError, match="holds other rows than when it was checked"):
        release_to_parquet(shuffled, tmp_path / "noisy", privatizer, NAMES)
    assert bytes_of(tmp_path / "noisy") == {}


def test_digest_sees_values_order_and_kept_columns(privatizer):
    plan = ReleasePlan("", "", "", ("a",), ("city",), "transform", price_of_new_rows(privatizer))
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "city": ["x", "y", "z"]})
    others = [frame.iloc[::-1], frame.assign(a=[1.0, 2.0, 4.0]), frame.assign(city=["x", "y", "y"]), frame.iloc[:2]]
    digests = {check_partition(one, 0, plan, gaps_allowed=False).digest for one in (frame, frame.copy(), *others)}
    assert len(digests) == 5


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_bad_row_costs_nothing(rows, privatizer, tmp_path, value):
    bad = rows.assign(b=rows["b"].where(rows["b"] < rows["b"].max().compute(), value))
    with PrivacyLedger() as ledger, pytest.raises(ValueError, match="column 'b'"):
        release_to_parquet(bad, tmp_path / "noisy", privatizer, NAMES)
    assert (len(ledger), list(tmp_path.iterdir())) == (0, [])


def test_a_refused_release_leaves_nothing(rows, privatizer, tmp_path):
    with PrivacyLedger(budget=0.5), pytest.raises(BudgetExceededError, match="budget"):
        release_to_parquet(rows, tmp_path / "noisy", privatizer, NAMES)
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_release_is_resumed_at_no_cost(rows, tmp_path):
    folder, failing = tmp_path / "noisy", Interrupted(1.0).fit(np.eye(2))
    with PrivacyLedger() as ledger:
        with pytest.raises(InterruptedError, match="power"):
            release_to_parquet(rows, folder, failing, NAMES)
        before = bytes_of(folder)
        assert len(before) == 2
        assert json.loads((folder / "_guarantee.json").read_text())["unfinished"]
        with pytest.raises(FileExistsError, match="resume=True"):
            release_to_parquet(rows, folder, failing, NAMES)
        for other, message in [
            ((rows, folder, LaplacePrivatizer(2.0).fit(np.eye(2)), NAMES), "begun with guarantee="),
            ((rows, folder, LaplacePrivatizer(1.0).fit([[0.0]]), ["a"]), "begun with columns="),
            ((rows.repartition(npartitions=2), folder, failing, NAMES), "begun with partitions=4, not 2"),
        ]:
            with pytest.raises(ValueError, match=message):
                release_to_parquet(*other, resume=True)
        failing.left = -1
        changed = rows.assign(a=rows["a"] + 1)
        with pytest.raises(RuntimeError, match="holds other rows than when it was checked"):
            release_to_parquet(changed, folder, failing, NAMES, resume=True)
        guarantee, n_rows = release_to_parquet(rows, folder, failing, NAMES, resume=True)
    assert (len(ledger), guarantee.epsilon, n_rows) == (1, 1.0, 40)
    after = bytes_of(folder)
    assert len(after) == 4
    assert {name: after[name] for name in before} == before
    assert os.listdir(tmp_path) == ["noisy"]


class RefittedMeanwhile(LaplacePrivatizer):
    """Becomes dearer with its third partition, as if another thread had fitted it again."""

    _row_wise_methods: ClassVar[dict] = {"transform": ()}

    parts = 0

    def transform(self, X):
        self.parts += 1
        if self.parts == 3:
            self.set_params(epsilon=50.0).fit(X)
        return super().transform(X)


def test_an_estimator_that_is_refitted_meanwhile_releases_no_more(rows, tmp_path):
    privatizer = RefittedMeanwhile(1.0).fit(np.eye(2))
    with PrivacyLedger() as ledger, pytest.raises(RuntimeError, match="the estimator has changed since"):
        release_to_parquet(rows, tmp_path / "noisy", privatizer, keep=["city"])
    assert ledger.total().epsilon == 1.0
    assert len(bytes_of(tmp_path / "noisy")) == 2, "published at the price that was paid"
    assert list((tmp_path / ".noisy.unfinished").glob("*.draft")) == []


def test_arrays_pipelines_and_answers(tmp_path):
    values = np.random.default_rng(0).normal(size=(600, 2))
    blocks = da.from_array(values, chunks=(200, 1))  # cut through the rows as well
    model = make_pipeline(PublicScaler(bounds=(-3, 3)), LaplacePrivatizer(2.0, norm="clip")).fit(values)
    guarantee, _ = release_to_parquet(blocks, tmp_path / "noisy", model)
    assert guarantee.epsilon == 2.0
    assert pd.read_parquet(tmp_path / "noisy").shape == (600, 2)
    fair = FairPrivateClassifier(LogisticRegression(), epsilon=3.0).fit(
        values, values[:, 0] > 0, sensitive_features=np.arange(600) % 2
    )
    guarantee, _ = release_to_parquet(blocks, tmp_path / "answers", fair)
    assert guarantee.epsilon == fair.privacy_.epsilon
    assert pd.read_parquet(tmp_path / "answers")["prediction"].isin([False, True]).all()


def test_what_is_not_private_is_refused(rows, tmp_path):
    X = np.random.default_rng(0).normal(size=(200, 2))
    pate = PATEClassifier(LogisticRegression(), n_teachers=10, epsilon=1000.0).fit(X, X[:, 0] > 0, public=X + 0.1)
    for estimator in (pate, LogisticRegression().fit(X, X[:, 0] > 0), LaplacePrivatizer(np.inf).fit(X)):
        with pytest.raises(ValueError, match="has no finite guarantee for these rows"):
            release_to_parquet(rows, tmp_path / "noisy", estimator, NAMES)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"folder": "s3://bucket/noisy"}, "s3://"),
        ({"columns": ["a", "c"]}, "'c'"),
        ({"columns": ["a"], "keep": ["a"]}, "named twice"),
        ({"columns": "a"}, "lists of columns"),
        ({"method": "predict"}, "method"),
        ({"resume": True}, "unfinished"),
        ({"data": pd.DataFrame()}, "Dask"),
    ],
)
def test_bad_arguments(rows, privatizer, tmp_path, arguments, message):
    given = {"data": rows, "folder": tmp_path / "noisy", "estimator": privatizer, "columns": NAMES} | arguments
    with pytest.raises((ValueError, TypeError, FileNotFoundError), match=message):
        release_to_parquet(**given)


def test_foreign_parts_are_left_alone(rows, privatizer, tmp_path):
    plan, block = plan_for(tmp_path, privatizer), rows.get_partition(0).compute()
    content = check_partition(block, 0, plan, gaps_allowed=False)
    write_partition(block, 0, content, privatizer, plan)
    other = replace(plan, release="another")
    with pytest.raises(FileExistsError, match="belongs to another release"):
        write_partition(block, 0, PartitionContent(10, "any"), privatizer, other)
