"""A release is charged to the record set that it concerns, or to all sets that it may concern."""

import asyncio
import contextvars
import copy
import multiprocessing
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from joblib import Parallel, delayed

from skfairdp.accounting import PrivacyGuarantee, PrivacyLedger
from skfairdp.dp import _open_ledgers
from skfairdp.exceptions import BudgetExceededError
from tests.accounting._noisy import Noisy

X = np.eye(3)
ONE = PrivacyGuarantee(1.0, mechanism="laplace")


def epsilons(ledger):
    return {name: total.epsilon for name, total in ledger.totals().items()}


def in_thread(function, *args):
    with ThreadPoolExecutor(1) as pool:  # its thread starts with an empty context
        return pool.submit(function, *args).result()


def let_through(noisy, times=10):
    """Count the releases that the ledger does not refuse."""
    count = 0
    for _ in range(times):
        try:
            noisy.transform(X)
        except BudgetExceededError:
            break
        count += 1
    return count


# -- threads ----------------------------------------------------------------------------------------------------------


def released_while_another_thread_changes_sets():
    """Release the same rows ten times from one thread, while the set of another thread is a new one each time."""
    noisy, count = Noisy().fit(X), 0
    with PrivacyLedger(budget=3.0) as ledger:
        for i in range(10):
            with ledger.records(f"set {i}"):
                count += in_thread(let_through, noisy, 1)
    return count


def test_thread_does_not_spend_from_the_sets_of_another():
    assert released_while_another_thread_changes_sets() == 3


def test_thread_test_finds_a_process_wide_set(monkeypatch):
    def set_opened_last(path):
        return [_open_ledgers.records_being_worked_on(path)[-1]]

    monkeypatch.setattr(_open_ledgers, "records_of_running_code", set_opened_last)
    assert released_while_another_thread_changes_sets() == 10


def test_owner_does_not_spend_from_the_sets_of_a_thread():
    noisy, count = Noisy().fit(X), 0
    with PrivacyLedger(budget=3.0) as ledger, ThreadPoolExecutor(1) as pool:
        for i in range(10):
            block = ledger.records(f"set {i}")
            pool.submit(block.__enter__).result()
            count += let_through(noisy, 1)
            pool.submit(block.__exit__, None, None, None).result()
    assert count == 3
    assert epsilons(ledger) == {"default": 3}


def test_threads_in_different_sets_at_once():
    noisy, barrier = Noisy().fit(X), threading.Barrier(4, timeout=60)
    with PrivacyLedger(budget=3.0) as ledger:

        def work(name):
            with ledger.records(name):
                barrier.wait()
                count = let_through(noisy)
                barrier.wait()
            return count

        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(work, "abcd")) == [3, 3, 3, 3]
    assert epsilons(ledger) == {"a": 3, "b": 3, "c": 3, "d": 3}


def test_thread_of_a_pool_charges_all_sets_unless_it_is_told():
    noisy = Noisy().fit(X)
    with PrivacyLedger() as ledger, ledger.records("outer"), ledger.records("inner"):
        in_thread(noisy.transform, X)
        assert epsilons(ledger) == {"default": 1, "outer": 1, "inner": 1}
        in_thread(ledger.charge, ONE)
        assert epsilons(ledger) == {"default": 2, "outer": 2, "inner": 2}
        in_thread(contextvars.copy_context().run, noisy.transform, X)
        assert epsilons(ledger) == {"default": 2, "outer": 2, "inner": 3}
    in_thread(ledger.charge, ONE)
    assert epsilons(ledger) == {"default": 3, "outer": 2, "inner": 3}


def test_copy_made_in_the_process_tells_its_threads_nothing():
    noisy = Noisy().fit(X)
    with PrivacyLedger() as ledger, ledger.records("a"):
        in_thread(copy.deepcopy(noisy).transform, X)
        copy.deepcopy(ledger)
        in_thread(noisy.transform, X)
    assert epsilons(ledger) == {"default": 2, "a": 2}


def test_inherited_thread_context_is_not_trusted(monkeypatch):
    # So it is from Python 3.14 on where threads inherit: a pool keeps the context of whoever used it first.
    monkeypatch.setattr(_open_ledgers, "_THREADS_INHERIT", True)
    noisy = Noisy().fit(X)
    with PrivacyLedger() as ledger:
        with ledger.records("a"):
            noisy.transform(X)
            inherited = contextvars.copy_context()
        with ledger.records("b"):
            in_thread(inherited.run, noisy.transform, X)
    assert epsilons(ledger) == {"a": 1, "b": 1, "default": 1}


# -- tasks ------------------------------------------------------------------------------------------------------------


def test_tasks_belong_to_the_block_that_started_them():
    noisy = Noisy().fit(X)

    async def work(ledger, name, barrier):
        with ledger.records(name):
            barrier.append(name)
            while len(barrier) < 2:
                await asyncio.sleep(0)
            noisy.transform(X)
            await asyncio.to_thread(noisy.transform, X)
            late = asyncio.create_task(asyncio.to_thread(noisy.transform, X))
        await late  # it runs when the block was left, and still is of that block

    async def main(ledger):
        barrier = []
        await asyncio.gather(work(ledger, "a", barrier), work(ledger, "b", barrier))
        noisy.transform(X)

    with PrivacyLedger() as ledger:
        asyncio.run(main(ledger))
    assert epsilons(ledger) == {"a": 3, "b": 3, "default": 1}


# -- blocks -----------------------------------------------------------------------------------------------------------


def test_block_may_be_around_the_ledger():
    ledger, noisy = PrivacyLedger(), Noisy().fit(X)
    with ledger.records("a"):
        ledger.charge(ONE)
        with ledger:
            noisy.transform(X)
            with ledger.records("b"):
                noisy.transform(X)
        ledger.charge(ONE)
    assert epsilons(ledger) == {"a": 3, "b": 1}


def test_set_belongs_to_the_account_and_not_to_the_handle(tmp_path):
    path = tmp_path / "ledger.sqlite"
    ledger = PrivacyLedger(path=path, create=True)
    with ledger, PrivacyLedger(path=path).records("a"):
        Noisy().fit_transform(X)
        in_thread(Noisy().fit_transform, X)
    assert epsilons(ledger) == {"a": 2, "default": 1}


def test_two_accounts_have_their_own_sets():
    with PrivacyLedger() as first, PrivacyLedger() as second, first.records("a"):
        Noisy().fit_transform(X)
        with second.records("b"):
            Noisy().fit_transform(X)
    assert (epsilons(first), epsilons(second)) == ({"a": 2}, {"b": 1, "default": 1})


def test_block_is_left_even_if_it_fails():
    with PrivacyLedger() as ledger:
        with pytest.raises(ZeroDivisionError), ledger.records("a"):
            1 / 0  # noqa: B018
        in_thread(Noisy().fit_transform, X)
    assert epsilons(ledger) == {"default": 1}


# -- workers ----------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_process_does_not_spend_from_the_sets_of_its_parent():
    noisy, context = Noisy().fit(X), multiprocessing.get_context("fork")
    turns, answers = context.Queue(), context.Queue()

    def child():
        for _ in range(10):
            turns.get(timeout=60)
            answers.put(let_through(noisy, 1))

    with PrivacyLedger(budget=3.0) as ledger:
        process = context.Process(target=child)
        process.start()
        count = 0
        for i in range(10):
            with ledger.records(f"set {i}"):
                turns.put(None)
                count += answers.get(timeout=60)
        process.join(60)
    assert count == 3


def release(estimator):
    estimator.transform(X)


def test_workers_charge_the_sets_that_are_worked_on():
    noisy = Noisy().fit(X)
    with PrivacyLedger() as ledger:
        for name in ("a", "b"):
            with ledger.records(name), ledger.records(f"inner {name}"):
                Parallel(n_jobs=2)(delayed(release)(noisy) for _ in range(4))
        assert epsilons(ledger) == {"inner a": 4, "inner b": 4}


def enter_and_release(path):
    with PrivacyLedger(path=path):
        Noisy().fit_transform(X)


@pytest.mark.slow
def test_process_that_opens_the_account_declares_its_own_records(tmp_path):
    path = tmp_path / "ledger.sqlite"
    with PrivacyLedger(path=path, create=True) as ledger, ledger.records("a"):
        Parallel(n_jobs=2)(delayed(enter_and_release)(path) for _ in range(2))  # known to work on the default set
        enter_and_release(path)  # here, in the block of "a"
    assert epsilons(ledger) == {"a": 1, "default": 2}


def test_workers_of_two_threads_charge_both_sets():
    noisy, barrier = Noisy().fit(X), threading.Barrier(2, timeout=60)
    with PrivacyLedger() as ledger:

        def work(name):
            with ledger.records(name):
                barrier.wait()
                Parallel(n_jobs=2)(delayed(release)(noisy) for _ in range(2))
                barrier.wait()

        with ThreadPoolExecutor(2) as pool:
            list(pool.map(work, "ab"))
    assert epsilons(ledger) == {
        "a": 4,
        "b": 4,
        "default": 4,
    }  # the thread that entered the ledger is in the default set
