"""A release is on record before it exists, wherever it is made."""

import gc
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.ensemble import BaggingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from skfairdp import GaussianPrivatizer, LaplacePrivatizer
from skfairdp.accounting import PrivacyGuarantee, PrivacyLedger, _registry, gaussian_epsilon
from skfairdp.exceptions import BudgetExceededError
from tests.accounting._noisy import Forgetful, Noisy

ROOT = Path(__file__).parents[2]
ONE = PrivacyGuarantee(1.0, mechanism="laplace")


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    return X, (X[:, 0] > 0).astype(int)


def run(code, *args, **options):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, args)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


# -- a crash ----------------------------------------------------------------------------------------------------------

KILLED = """
    import os, signal, sys
    import numpy as np
    from skfairdp.accounting import PrivacyLedger
    from tests.accounting._noisy import Forgetful, Noisy

    class Killed(Noisy):
        def _spend(self, guarantee):
            if sys.argv[2] == "before":
                super()._spend(guarantee)
            os.kill(os.getpid(), signal.SIGKILL)  # the instant before an output could be computed

    X = np.eye(3)
    with PrivacyLedger(path=sys.argv[1]):
        noisy = Killed().fit(X)
        Noisy.transform(Noisy().fit(X), X)
        noisy.transform(X)
"""


@pytest.mark.parametrize(("when", "recorded"), [("before", 2), ("after", 1)])
def test_record_survives_kill(tmp_path, when, recorded):
    # "after" is the planted fault: a ledger that commits once the output exists forgets the release.
    path = tmp_path / "ledger.sqlite"
    process = run(KILLED, path, when)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL, errors
    assert PrivacyLedger(path=path).total().epsilon == recorded


def test_ledger_goes_on_after_a_crash(tmp_path):
    path = tmp_path / "ledger.sqlite"
    ledger = PrivacyLedger(budget=2.0, path=path).__enter__()
    ledger.charge(ONE)
    _registry.leave((ledger.path, ledger._session))  # forgotten, but never left: its session stays open in the file
    with PrivacyLedger(path=path) as ledger:  # the budget stays with the file
        ledger.charge(ONE)
        with pytest.raises(BudgetExceededError):
            ledger.charge(ONE)
    assert len(PrivacyLedger(path=path)) == 2


# -- a race -----------------------------------------------------------------------------------------------------------

RACE = """
    import os, sys, time
    from skfairdp.accounting import PrivacyGuarantee, PrivacyLedger, _store
    from skfairdp.exceptions import BudgetExceededError

    folder, rounds, fault = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    if fault == "planted":  # read first, lock later
        from collections import Counter
        true_spending = _store.spending
        def late(connection, records):
            connection.commit()
            spent = true_spending(connection, records)
            time.sleep(0.01)
            connection.execute("BEGIN IMMEDIATE")
            return spent
        _store.spending = late
    release = PrivacyGuarantee(1.0, mechanism="laplace")
    ledger = PrivacyLedger(budget=1.5, path=f"{folder}/ledger.sqlite")
    won = 0
    for i in range(rounds):
        open(f"{folder}/round{i}.{os.getpid()}", "w").close()
        while len([f for f in os.listdir(folder) if f.startswith(f"round{i}.")]) < 2:
            time.sleep(0.0005)
        try:
            ledger.charge(release, records=str(i))  # each set has the whole budget
            won += 1
        except BudgetExceededError:
            pass
    print(won)
"""


def race(folder, rounds, fault):
    processes = [run(RACE, folder, rounds, fault) for _ in range(2)]
    outputs = [process.communicate(timeout=120) for process in processes]
    assert all(process.returncode == 0 for process in processes), outputs
    return sum(int(out) for out, _ in outputs)


def test_only_one_process_gets_the_last_of_a_budget(tmp_path):
    assert race(tmp_path, 40, "none") == 40
    assert all(total.releases == 1 for total in PrivacyLedger(path=tmp_path / "ledger.sqlite").totals().values())


def test_race_test_finds_a_check_outside_the_transaction(tmp_path):
    assert race(tmp_path, 20, "planted") > 20


# -- workers ----------------------------------------------------------------------------------------------------------


def warm_up(_):
    return os.getpid()


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_search_is_charged_for_every_release(data, tmp_path, n_jobs):
    X, y = data
    log = tmp_path / "log"
    Parallel(n_jobs=n_jobs)(delayed(warm_up)(i) for i in range(4))  # workers that are older than the ledger
    search = GridSearchCV(
        make_pipeline(Noisy(log=str(log)), LogisticRegression()),
        {"logisticregression__C": [0.1, 1.0]},
        cv=3,
        n_jobs=n_jobs,
        error_score="raise",
    )
    with PrivacyLedger() as ledger:
        search.fit(X, y)
    # 2 settings x 3 folds x (fit + score), and the refit.
    assert ledger.total().epsilon == log.stat().st_size == 13
    if n_jobs > 1:
        assert os.getpid() not in ledger.entries["process"].iloc[:-1].tolist()
    search.predict(X)  # after the ledger was left
    Parallel(n_jobs=n_jobs)(delayed(Noisy().fit(X).transform)(X) for _ in range(4))
    assert ledger.total().epsilon == 13


def test_a_transformer_that_forgets_its_ledgers_would_be_found(data, tmp_path):
    X, _ = data
    log = tmp_path / "log"
    # Fresh processes: a worker that has heard of the ledger through another estimator would charge it.
    with PrivacyLedger() as ledger, ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        pool.submit(Forgetful(log=str(log)).fit(X).transform, X).result()
        assert (ledger.total().epsilon, log.stat().st_size) == (0, 1)
        pool.submit(Noisy(log=str(log)).fit(X).transform, X).result()
        assert (ledger.total().epsilon, log.stat().st_size) == (1, 2)


@pytest.mark.parametrize("privatizer", [LaplacePrivatizer(epsilon=1.0), GaussianPrivatizer(epsilon=1.0, delta=1e-5)])
def test_search_over_our_own_privatizers(data, privatizer):
    X, y = data
    search = GridSearchCV(
        make_pipeline(privatizer, LogisticRegression()), {"logisticregression__C": [0.1, 1.0]}, n_jobs=2
    )
    with PrivacyLedger() as ledger:
        search.fit(X, y)
    assert len(ledger) == 21
    total, one = ledger.total(), search.best_estimator_[0].privacy_
    if one.gaussian_mu is None:
        assert total.epsilon == pytest.approx(21 * one.epsilon)
    else:
        assert total.epsilon == pytest.approx(gaussian_epsilon(1e-5, one.gaussian_mu * 21**0.5), rel=1e-6)
        assert total.epsilon < 21 * one.epsilon


def test_search_stops_at_the_budget(data, tmp_path):
    X, y = data
    log = tmp_path / "log"
    search = GridSearchCV(
        make_pipeline(Noisy(log=str(log)), LogisticRegression()),
        {"logisticregression__C": [0.1, 1.0]},
        cv=3,
        n_jobs=2,
        error_score="raise",
    )
    with PrivacyLedger(budget=5.0) as ledger, pytest.raises(BudgetExceededError):
        search.fit(X, y)
    assert ledger.total().epsilon == log.stat().st_size <= 5


def clone_and_release(estimator, X):
    fresh = clone(estimator).fit(X)
    fresh.transform(X)
    Noisy(log=estimator.log).fit(X).transform(X)  # never pickled at all
    return os.getpid()


def test_clones_and_newcomers_in_workers_are_charged_to_their_record_set(data, tmp_path):
    X, _ = data
    log = tmp_path / "log"
    with PrivacyLedger() as ledger, Parallel(n_jobs=2) as parallel:
        for name, times in (("a", 2), ("b", 4)):
            with ledger.records(name):
                where = parallel(delayed(clone_and_release)(Noisy(log=str(log)), X) for _ in range(times))
                assert os.getpid() not in where
    assert {name: total.epsilon for name, total in ledger.totals().items()} == {"a": 4.0, "b": 8.0}
    assert log.stat().st_size == 12


def test_meta_estimator_with_inner_clones(data, tmp_path):
    X, y = data
    log = tmp_path / "log"
    model = BaggingClassifier(make_pipeline(Noisy(log=str(log)), LogisticRegression()), n_estimators=4, n_jobs=2)
    with PrivacyLedger() as ledger:
        model.fit(X, y).predict(X)
    assert ledger.total().epsilon == log.stat().st_size == 8


def test_fitted_estimator_that_comes_back_is_charged_once(data):
    X, _ = data
    with PrivacyLedger() as ledger:
        fitted = Parallel(n_jobs=2)(delayed(Noisy().fit)(X) for _ in range(2))
        with ledger.records("later"):
            fitted[0].transform(X)
    assert ledger.total("later").epsilon == 1
    assert len(ledger) == 1
    assert all(address.path != ledger.path for address in fitted[0].__dict__.get("_ledgers", ()))
    fitted[0].transform(X)
    assert len(ledger) == 1


@pytest.mark.parametrize("backend", ["threading", "multiprocessing"])
def test_other_backends(data, backend):
    X, _ = data
    noisy = Noisy().fit(X)
    with PrivacyLedger() as ledger:
        Parallel(n_jobs=2, backend=backend)(delayed(noisy.transform)(X) for _ in range(6))
    assert ledger.total().epsilon == 6


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_forked_child_charges_but_does_not_close(data):
    X, _ = data
    noisy = Noisy().fit(X)
    ledger = PrivacyLedger()
    context = multiprocessing.get_context("fork")

    def child():
        noisy.transform(X)
        with ledger.records("child"):
            noisy.transform(X)
        ledger.__exit__(None, None, None)
        ledger._finalize()
        noisy.transform(X)

    with ledger:
        process = context.Process(target=child)
        process.start()
        process.join(60)
        assert process.exitcode == 0
        noisy.transform(X)
    assert ledger.total("default").epsilon == 3
    assert ledger.total("child").epsilon == 1


def test_threads_share_one_budget(data):
    X, _ = data
    noisy = Noisy().fit(X)
    refused = []

    def work(_):
        try:
            noisy.transform(X)
        except BudgetExceededError:
            refused.append(1)

    with PrivacyLedger(budget=20) as ledger, ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(30)))
    assert ledger.total().epsilon == 20
    assert len(refused) == 10


def test_record_sets_of_two_threads_are_refused():
    entered, done = threading.Event(), threading.Event()
    ledger = PrivacyLedger()

    def other():
        with ledger.records("other"):
            entered.set()
            done.wait(30)

    thread = threading.Thread(target=other)
    thread.start()
    entered.wait(30)
    with pytest.raises(RuntimeError, match="another thread"), ledger.records("mine"):
        pass
    done.set()
    thread.join()
    with ledger.records("mine"):
        ledger.charge(ONE)
    assert ledger.total("mine").epsilon == 1


def charge_in_worker(ledger):
    ledger.charge(ONE, records="worker")
    return len(ledger)


def test_ledger_itself_can_be_sent():
    with PrivacyLedger() as ledger:
        Parallel(n_jobs=2)(delayed(charge_in_worker)(ledger) for _ in range(3))
    assert ledger.total("worker").epsilon == 3


def test_unreachable_ledger_of_another_machine_is_told(data, monkeypatch):
    X, _ = data
    with PrivacyLedger() as ledger:
        sent = pickle.dumps(Noisy().fit(X))
        del ledger
    monkeypatch.setattr(_registry, "_process_token", b"elsewhere")
    monkeypatch.setattr("socket.gethostname", lambda: "elsewhere")
    arrived = pickle.loads(sent)
    gc.collect()  # the temporary file goes with its ledger
    with pytest.warns(UserWarning, match="was not charged"):
        arrived.transform(X)
    arrived.transform(X)  # told once
