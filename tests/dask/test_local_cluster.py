"""A cluster of processes on this machine: workers die in the middle, and nothing is released or charged twice."""

import json

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from skfairdp import FairPrivateClassifier, LaplacePrivatizer, OMEEncoder, PATEClassifier, PrivacyLedger, leakage_score
from skfairdp.dask import group_counts, release_to_parquet
from skfairdp.datasets import make_biased_classification
from skfairdp.metrics import group_rates
from skfairdp.table_files import file_digest
from tests.dask import _in_workers

pytest.importorskip("distributed")
dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")

# Dask 2026.8 calls what pandas 3.1 has deprecated.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:The inplace keyword")]

N_ROWS, N_PARTS, ROW = 6_000, 6, np.array([0.5, -0.25, 0.25])
NAMES = ["a", "b", "c"]


#: Imported once by a server that forks the workers: one that was killed is back at once.
PRELOADED = ["distributed", "sklearn.tree", "skfairdp.dask", "skfairdp.postprocessing", "skfairdp.ensemble", "pyarrow"]


@pytest.fixture(scope="module")
def cluster_client():
    from distributed import Client, LocalCluster
    from distributed.utils import get_mp_context

    with dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}):
        get_mp_context().set_forkserver_preload(PRELOADED)
        with (
            LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
            Client(cluster) as client,
        ):
            yield client


@pytest.fixture
def client(cluster_client):
    cluster_client.wait_for_workers(2)  # one that was killed comes back
    return cluster_client


@pytest.fixture(scope="module")
def equal_rows():
    return dd.from_pandas(pd.DataFrame(np.tile(ROW, (N_ROWS, 1)), columns=NAMES), npartitions=N_PARTS)


def parts_of(folder):
    return {path.name: pd.read_parquet(path) for path in sorted(folder.glob("part-*.parquet"))}


def largest_correlation(parts):
    """Noise of any two partitions, entry by entry: 0 in expectation if it is independent, 1 if it is shared."""
    noise = np.corrcoef([np.ravel(np.asarray(part) - ROW) for part in parts])
    return np.abs(noise - np.eye(len(noise))).max()


# Of 3,000 entries each: a correlation of independent noise has a standard deviation of 0.018, so that one of the 15
# pairs passes 0.1 with a probability below 1e-6.
INDEPENDENT = 0.1


def test_partitions_share_no_noise(client, equal_rows, tmp_path):
    for name, privatizer in {
        "ours": LaplacePrivatizer(1.0),
        "seeded": LaplacePrivatizer(1.0, random_state=0),
        "planted": _in_workers.RepeatingPrivatizer(1.0),
    }.items():
        release_to_parquet(equal_rows, tmp_path / name, privatizer.fit(np.eye(3)))
        correlation = largest_correlation(list(parts_of(tmp_path / name).values()))
        assert correlation == pytest.approx(1.0) if name == "planted" else correlation < INDEPENDENT


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_killed_worker_repeats_nothing(client, equal_rows, tmp_path, when):
    flag, folder = tmp_path / "died", tmp_path / "noisy"
    privatizer = LaplacePrivatizer(1.0).fit(np.eye(3))
    if when == "before":
        privatizer = _in_workers.DyingPrivatizer(1.0).fit(np.eye(3))
        privatizer.flag = str(flag)
    else:
        client.run(_in_workers.die_after_publishing, str(flag))
    with PrivacyLedger() as ledger:
        guarantee, n_rows = release_to_parquet(equal_rows, folder, privatizer)
    assert flag.exists(), "no worker was killed"
    assert (len(ledger), ledger.total().epsilon, guarantee.epsilon, n_rows) == (1, 1.0, 1.0, N_ROWS)
    parts = parts_of(folder)
    assert [len(part) for part in parts.values()] == [N_ROWS // N_PARTS] * N_PARTS
    assert largest_correlation(list(parts.values())) < INDEPENDENT
    whole = json.loads((folder / "_guarantee.json").read_text())
    assert "unfinished" not in whole
    assert {part["file"]: part["sha256"] for part in whole["parts"]} == {n: file_digest(folder / n) for n in parts}
    if when == "after":  # what the world may have seen before the crash is what it sees now
        name, digest = flag.read_text().split()
        assert file_digest(folder / name) == digest
    assert [path.name for path in tmp_path.iterdir() if "unfinished" in path.name] == []


def test_a_lazy_release_is_charged_as_often_as_it_is_drawn(client, equal_rows):
    privatizer = LaplacePrivatizer(1.0).set_output(transform="pandas").fit(pd.DataFrame(np.eye(3), columns=NAMES))
    meta = pd.DataFrame(columns=NAMES, dtype=float)
    with PrivacyLedger() as ledger:
        lazy = equal_rows.map_partitions(privatizer.transform, meta=meta)
        draws = [np.split(lazy.compute().to_numpy(), N_PARTS) for _ in range(2)]
    # The scheduler may still hold a partition from the first time, and hand it out again.
    assert len(ledger) == sum(len({first.tobytes(), second.tobytes()}) for first, second in zip(*draws)) >= N_PARTS
    assert largest_correlation(draws[0]) < INDEPENDENT


@pytest.mark.parametrize("moment", ["fit", "predict"])
def test_pate_survives_a_killed_worker(client, tmp_path, moment):
    generator = np.random.default_rng(0)
    X, public = generator.normal(size=(3_000, 5)), generator.normal(size=(200, 5))
    y = (X[:, 0] + 0.3 * generator.normal(size=len(X)) > 0).astype(int)

    def fitted(**settings):
        model = PATEClassifier(_in_workers.DyingTree(max_depth=3), n_teachers=10, random_state=0, **settings)
        return model.fit(X, y, public=public)

    alone = fitted()
    client.run(_in_workers.let_trees_die, moment, str(tmp_path / "died"))
    with joblib.parallel_config(backend="dask"), PrivacyLedger() as ledger:
        model = fitted(n_jobs=2)
    client.run(_in_workers.let_trees_die, "", "")
    assert (tmp_path / "died").exists(), "no worker was killed"
    np.testing.assert_array_equal(model.predict_proba(public), alone.predict_proba(public))
    assert len(ledger) == 1
    assert ledger.total().epsilon == pytest.approx(model.privacy_.epsilon)


def test_a_search_on_workers_pays_for_each_release_once(client):
    made = make_biased_classification(300, 4, random_state=0)
    model = make_pipeline(LaplacePrivatizer(4.0), LogisticRegression())

    def entries(n_jobs):
        with PrivacyLedger() as ledger:
            GridSearchCV(model, {"logisticregression__C": [0.1, 1.0]}, cv=3, n_jobs=n_jobs).fit(made.data, made.target)
        return ledger.entries

    serial = entries(None)
    with joblib.parallel_config(backend="dask"):
        cluster = entries(2)
    assert len(serial) == len(cluster) == 2 * 3 * 2 + 1  # fit and score of each fold, and the last fit
    assert cluster["process"].nunique() > serial["process"].nunique() == 1


def test_repeated_analyses_on_workers_say_the_same(client):
    made = make_biased_classification(600, 4, group_shift=1.5, random_state=0)
    settings = {"probe": "linear", "random_state": 0}
    alone = leakage_score(made.data, made.sensitive_features, **settings)
    with joblib.parallel_config(backend="dask"):
        assert leakage_score(made.data, made.sensitive_features, n_jobs=2, **settings) == alone


def test_bits_answers_and_counts_on_workers(client, tmp_path):
    made = make_biased_classification(2_000, 4, group_shift=1.5, as_frame=True, random_state=0)
    names = list(made.data.columns)
    frame = dd.from_pandas(made.data.assign(y=made.target, group=made.sensitive_features), npartitions=4)
    encoder = OMEEncoder(8.0, standardize=False).fit(made.data)
    release_to_parquet(frame, tmp_path / "bits", encoder, names)
    bits = pd.read_parquet(tmp_path / "bits")
    assert bits.shape == (2_000, 4 * encoder.n_bits_)
    assert set(np.unique(bits)) == {0, 1}
    fair = FairPrivateClassifier(LogisticRegression(), epsilon=4.0)
    fair.fit(made.data, made.target, sensitive_features=made.sensitive_features)
    with PrivacyLedger() as ledger:
        release_to_parquet(frame, tmp_path / "answers", fair, names, keep=["y", "group"], method="predict")
    assert len(ledger) == 1
    answers = dd.read_parquet(tmp_path / "answers")
    counts = group_counts(answers["y"], answers["prediction"], sensitive_features=answers[["group"]])
    local = answers.compute()
    expected = group_rates(local["y"], local["prediction"], sensitive_features=local[["group"]])
    pd.testing.assert_frame_equal(counts.rates(), expected)
