"""A release is on record before its values exist, in whatever process it is made.

Tests that start interpreters or pools of workers are ``slow``. In the default run forked workers are charged, a forked
child neither counts twice nor closes the ledger of its parent, and of two processes one gets the last of a budget.
"""

import multiprocessing
import os
import pickle
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import joblib
import numpy as np
import pytest
from joblib import Parallel, delayed
from joblib.externals.loky import get_reusable_executor
from sklearn.base import clone
from sklearn.ensemble import BaggingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from skfairdp import GaussianPrivatizer, LaplacePrivatizer
from skfairdp.accounting import PrivacyGuarantee, PrivacyLedger, gaussian_epsilon
from skfairdp.dp import _ledger_file, _open_ledgers
from skfairdp.exceptions import BudgetExceededError
from tests.accounting._noisy import Noisy

# Python 3.12 and later warn of a fork where there are threads.
pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")

ROOT = Path(__file__).parents[2]
ONE = PrivacyGuarantee(1.0, mechanism="laplace")


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    return X, (X[:, 0] > 0).astype(int)


def run(code, *args, temporary=None):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    if temporary is not None:  # where a process that is killed leaves things behind
        environment["TMPDIR"] = str(temporary)
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, args)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


# -- a crash ----------------------------------------------------------------------------------------------------------

KILLED = """
    import os, signal, sys
    import numpy as np
    from skfairdp.accounting import PrivacyLedger
    from tests.accounting._noisy import Noisy

    class Killed(Noisy):
        def _release(self, values, receipt=None):
            if sys.argv[2] == "before":
                self._charge(self.privacy_)
            os.kill(os.getpid(), signal.SIGKILL)  # the instant before an output could be computed

    X = np.eye(3)
    with PrivacyLedger(path=sys.argv[1], create=True):
        noisy = Killed().fit(X)
        Noisy.transform(Noisy().fit(X), X)
        noisy.transform(X)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("when", "recorded"), [("before", 2), ("after", 1)])
def test_record_survives_kill(tmp_path, when, recorded):
    # "after" is the planted fault: a ledger that commits once the output exists forgets the release.
    path = tmp_path / "ledger.sqlite"
    process = run(KILLED, path, when, temporary=tmp_path)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL, errors
    assert PrivacyLedger(path=path).total().epsilon == recorded


CRASHED = """
    import os, signal, sys
    from skfairdp.accounting import PrivacyGuarantee, PrivacyLedger

    with PrivacyLedger(budget=2.0, path=sys.argv[1], create=True) as ledger, ledger.records("a"):
        ledger.charge(PrivacyGuarantee(1.0, mechanism="laplace"), records="default")
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
def test_ledger_goes_on_after_a_crash(data, tmp_path):
    X, _ = data
    path = tmp_path / "ledger.sqlite"
    run(CRASHED, path, temporary=tmp_path).communicate(timeout=60)
    with PrivacyLedger(path=path) as ledger, ThreadPoolExecutor(1) as pool:
        pool.submit(Noisy().fit(X).transform, X).result()  # the set that was open then is closed by now
        with pytest.raises(BudgetExceededError):  # the budget stays with the file
            ledger.charge(ONE)
    assert {name: total.epsilon for name, total in ledger.totals().items()} == {"default": 2}


SURVIVOR = """
    import os, signal, sys, time
    import numpy as np
    from skfairdp.accounting import PrivacyLedger
    from tests.accounting._noisy import Noisy

    def wait_for(path):
        while not os.path.exists(path):
            time.sleep(0.01)

    folder, durable = sys.argv[1], sys.argv[2] == "durable"
    where = {"path": f"{folder}/ledger.sqlite", "create": True} if durable else {}
    with PrivacyLedger(**where) as ledger:
        if os.fork() == 0:
            wait_for(f"{folder}/go")
            print(Noisy().fit_transform(np.eye(3)).shape, flush=True)
            os._exit(0)
        with open(f"{folder}/where", "w") as file:
            file.write(ledger.path)
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.parametrize("kind", ["durable", "temporary"])
def test_workers_of_a_killed_process(tmp_path, kind):
    process = run(SURVIVOR, tmp_path, kind, temporary=tmp_path)
    assert process.wait(60) == -signal.SIGKILL
    path = (tmp_path / "where").read_text()
    if kind == "temporary":
        shutil.rmtree(os.path.dirname(path))
    (tmp_path / "go").touch()
    output, errors = process.communicate(timeout=60)  # ends when the worker does
    if kind == "durable":  # the account goes on to be charged
        assert output == "(3, 3)\n", errors
        assert PrivacyLedger(path=path).total().epsilon == 1
    else:  # a ledger that cannot be reached lets nothing out
        assert output == ""
        assert "cannot be reached" in errors


# -- a race -----------------------------------------------------------------------------------------------------------

RACE = """
    import os, sys, time
    from skfairdp.accounting import PrivacyGuarantee, PrivacyLedger
    from skfairdp.dp import _ledger_file
    from skfairdp.exceptions import BudgetExceededError

    folder, rounds, fault = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    if fault == "planted":  # read first, lock later
        from collections import Counter
        true_spending = _ledger_file.recorded_releases
        def late(connection, records=None):
            connection.commit()
            spent = true_spending(connection, records)
            time.sleep(0.01)
            connection.execute("BEGIN IMMEDIATE")
            return spent
        _ledger_file.recorded_releases = late
    release = PrivacyGuarantee(1.0, mechanism="laplace")
    ledger = PrivacyLedger(path=f"{folder}/ledger.sqlite")
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
    PrivacyLedger(budget=1.5, path=folder / "ledger.sqlite", create=True)
    processes = [run(RACE, folder, rounds, fault) for _ in range(2)]
    outputs = [process.communicate(timeout=120) for process in processes]
    assert all(process.returncode == 0 for process in processes), outputs
    return sum(int(out) for out, _ in outputs)


@pytest.mark.slow
def test_only_one_process_gets_the_last_of_a_budget(tmp_path):
    assert race(tmp_path, 40, "none") == 40
    assert all(total.releases == 1 for total in PrivacyLedger(path=tmp_path / "ledger.sqlite").totals().values())


@pytest.mark.slow
def test_race_test_finds_a_check_outside_the_transaction(tmp_path):
    assert race(tmp_path, 20, "planted") > 20


def charge_in_turns(path, barrier, won, rounds):
    ledger = PrivacyLedger(path=path)
    for i in range(rounds):
        barrier.wait(60)
        try:
            ledger.charge(ONE, records=str(i))  # each set has the whole budget
        except BudgetExceededError:
            continue
        with won:
            won.value += 1


def read_before_the_transaction(monkeypatch):
    """The planted fault: what was spent is read first, and the file locked later."""
    true_spending = _ledger_file.recorded_releases

    def late(connection, records=None):
        connection.commit()
        spent = true_spending(connection, records)
        time.sleep(0.02)
        connection.execute("BEGIN IMMEDIATE")
        return spent

    monkeypatch.setattr(_ledger_file, "recorded_releases", late)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.parametrize("fault", [None, read_before_the_transaction])
def test_forked_processes_never_share_the_last_of_a_budget(tmp_path, monkeypatch, fault):
    if fault is not None:
        fault(monkeypatch)
    path, rounds, context = tmp_path / "ledger.sqlite", 8, multiprocessing.get_context("fork")
    PrivacyLedger(budget=1.5, path=path, create=True)
    barrier, won = context.Barrier(2), context.Value("i", 0)
    arguments = (path, barrier, won, rounds)
    processes = [context.Process(target=charge_in_turns, args=arguments) for _ in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
    assert (won.value == rounds) == (fault is None)


# -- workers ----------------------------------------------------------------------------------------------------------


def warm_up(_):
    return os.getpid()


@pytest.mark.slow
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
    assert ledger.total().epsilon == 13


# Both ways by which a process is told: with an estimator, or by the path of the ledger.


def send_and_release(noisy, X):
    return noisy.transform(X).shape


def clone_fit_and_release(noisy, X):
    return clone(noisy).fit_transform(X).shape


def open_and_release(path, log, X):
    with PrivacyLedger(path=path):
        return Noisy(log=log).fit_transform(X).shape


KINDS = ["loky", *multiprocessing.get_all_start_methods()]


def new_pool(kind):
    if kind == "loky":
        return get_reusable_executor(2)
    return ProcessPoolExecutor(2, mp_context=multiprocessing.get_context(kind))


@pytest.mark.parametrize(
    "kind", [kind if kind == "fork" else pytest.param(kind, marks=pytest.mark.slow) for kind in KINDS]
)
def test_workers_that_are_sent_an_estimator_are_charged(data, tmp_path, kind):
    X, _ = data
    log = tmp_path / "log"
    noisy = Noisy(log=str(log)).fit(X)
    with new_pool(kind) as pool:
        list(pool.map(warm_up, range(4)))  # workers that are older than the ledger
        with PrivacyLedger(path=tmp_path / "ledger.sqlite", create=True) as ledger:
            list(pool.map(send_and_release, [noisy] * 4, [X] * 4))
            assert len(ledger) == 4
            list(pool.map(clone_fit_and_release, [Noisy(log=str(log))] * 4, [X] * 4))
            list(pool.map(open_and_release, [ledger.path] * 2, [str(log)] * 2, [X] * 2))
        assert ledger.total().epsilon == len(ledger) == log.stat().st_size == 10
        # The same workers, after the ledger was left: what they were sent before charges nothing.
        list(pool.map(send_and_release, [noisy] * 2, [X] * 2))
        assert len(ledger) == 10


@pytest.fixture
def without_dask(monkeypatch):
    """As in a process that has not imported Dask, which pickles by plain pickle."""
    monkeypatch.delitem(sys.modules, "distributed", raising=False)


def test_pickles_in_files_carry_no_ledger(data, tmp_path, without_dask):
    X, _ = data
    noisy = Noisy().fit(X)
    with PrivacyLedger(path=tmp_path / "ledger.sqlite", create=True) as ledger:
        joblib.dump(noisy, tmp_path / "noisy.joblib")
        pickled = pickle.dumps(noisy)
        for content in (pickled, (tmp_path / "noisy.joblib").read_bytes()):
            assert b"ledger.sqlite" not in content
    pickle.loads(pickled).transform(X)
    assert len(ledger) == 0


def test_worker_that_cannot_reach_the_ledger_releases_nothing(data, tmp_path, monkeypatch, without_dask):
    """A backend that pickles without our reducers is an error, not a release that nobody is charged for."""
    X, _ = data
    log = tmp_path / "log"
    with PrivacyLedger():
        pickled = pickle.dumps(Noisy(log=str(log)).fit(X))
    monkeypatch.setattr(_open_ledgers, "process_token", lambda: b"another process")
    monkeypatch.setattr("skfairdp.dp._release.process_token", lambda: b"another process")
    arrived = pickle.loads(pickled)
    with joblib.parallel_config("threading", n_jobs=2):
        results = Parallel()(delayed(_error_of)(arrived, X) for _ in range(2))
    assert all("cannot reach the" in error for error in results)
    assert not log.exists()
    arrived.transform(X)  # not in a worker: the estimator was loaded from a file
    assert log.stat().st_size == 1


LOADED = """
    import sys
    if sys.argv[3] == "dask":
        import distributed
    import joblib
    import numpy as np
    from joblib import Parallel, delayed
    from skfairdp.accounting import PrivacyLedger
    from tests.accounting._noisy import Noisy

    def release(noisy):
        return noisy.transform(np.eye(3)).shape

    if __name__ == "__main__":
        if sys.argv[2] == "save":
            with PrivacyLedger():
                joblib.dump(Noisy().fit(np.eye(3)), sys.argv[1])
        else:
            noisy = joblib.load(sys.argv[1])
            print(release(noisy), *Parallel(n_jobs=2)(delayed(release)(noisy) for _ in range(2)))
"""


@pytest.mark.slow
@pytest.mark.parametrize("imported", ["dask", "nothing else"])
def test_models_saved_under_a_ledger_can_be_used_in_another_program(tmp_path, imported):
    """Their ledger was temporary, and is gone: neither the program that loads them nor its workers may miss it."""
    script, saved = tmp_path / "program.py", tmp_path / "noisy.joblib"
    script.write_text(textwrap.dedent(LOADED))
    for mode in ("save", "load"):
        command = [sys.executable, script, saved, mode, imported]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
    assert done.stdout == "(3, 3) (3, 3) (3, 3)\n"


def _error_of(noisy, X):
    try:
        noisy.transform(X)
    except RuntimeError as error:
        return str(error)
    return ""


@pytest.mark.slow
def test_worker_stops_when_the_ledger_file_is_gone(data, tmp_path):
    X, _ = data
    log, path = tmp_path / "log", tmp_path / "ledger.sqlite"
    noisy = Noisy(log=str(log)).fit(X)
    with (
        PrivacyLedger(path=path, create=True) as ledger,
        ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool,
    ):
        pool.submit(send_and_release, noisy, X).result()
        moved = path.rename(tmp_path / "moved")
        with pytest.raises(RuntimeError, match="cannot be reached"):
            pool.submit(send_and_release, noisy, X).result()
        moved.rename(path)
    assert len(ledger) == log.stat().st_size == 1


@pytest.mark.slow
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


@pytest.mark.slow
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
    clone(estimator).fit(X).transform(X)
    clone(clone(estimator)).fit(X).transform(X)
    return os.getpid()


@pytest.mark.slow
def test_clones_in_workers_are_charged_to_their_set(data, tmp_path):
    X, _ = data
    log = tmp_path / "log"
    with PrivacyLedger() as ledger, Parallel(n_jobs=2) as parallel:
        for name, times in (("a", 2), ("b", 4)):
            with ledger.records(name):
                where = parallel(delayed(clone_and_release)(Noisy(log=str(log)), X) for _ in range(times))
                assert os.getpid() not in where
    assert {name: total.epsilon for name, total in ledger.totals().items()} == {"a": 4.0, "b": 8.0}
    assert log.stat().st_size == 12


@pytest.mark.slow
def test_meta_estimator_with_inner_clones(data, tmp_path):
    X, y = data
    log = tmp_path / "log"
    model = BaggingClassifier(make_pipeline(Noisy(log=str(log)), LogisticRegression()), n_estimators=4, n_jobs=2)
    with PrivacyLedger() as ledger:
        model.fit(X, y).predict(X)
    assert ledger.total().epsilon == log.stat().st_size == 8


@pytest.mark.slow
def test_fitted_estimator_that_comes_back_is_charged_once(data):
    X, _ = data
    with PrivacyLedger() as ledger:
        fitted = Parallel(n_jobs=2)(delayed(Noisy().fit)(X) for _ in range(2))
        with ledger.records("later"):
            fitted[0].transform(X)
    assert ledger.total("later").epsilon == 1
    assert len(ledger) == 1
    fitted[0].transform(X)
    assert len(ledger) == 1


@pytest.mark.slow
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


def charge_in_worker(ledger):
    ledger.charge(ONE, records="worker")
    return len(ledger)


@pytest.mark.slow
def test_ledger_itself_can_be_sent():
    with PrivacyLedger() as ledger:
        Parallel(n_jobs=2)(delayed(charge_in_worker)(ledger) for _ in range(3))
    assert ledger.total("worker").epsilon == 3


@pytest.mark.slow
def test_import_makes_nothing(tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    code = "import numpy as np; from tests.accounting._noisy import Noisy; Noisy().fit_transform(np.eye(3))"
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, timeout=60)
    assert list(tmp_path.iterdir()) == []
