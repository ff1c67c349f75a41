"""The account within one process: totals, budgets, record sets, files, and scikit-learn's checks."""

import copy
import gc
import json
import math
import os
import pickle
import sqlite3
import stat
import time
from contextlib import closing

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from skfairdp.accounting import (
    PrivacyGuarantee,
    PrivacyLedger,
    ReleaseEvent,
    gaussian_epsilon,
    gaussian_mu,
)
from skfairdp.dp import _ledger_file, charge
from skfairdp.exceptions import BudgetExceededError
from skfairdp.random import SeedIdentity
from tests.accounting._noisy import Noisy

X = np.random.default_rng(0).normal(size=(40, 3))


def pure(epsilon, **words):
    return PrivacyGuarantee(epsilon, mechanism="laplace", **words)


def gaussian(mu, delta=1e-5):
    return PrivacyGuarantee.of(ReleaseEvent(gaussian_epsilon(delta, mu), delta, gaussian_mu=mu), mechanism="gaussian")


class SilentNoisy(Noisy):
    """Only for scikit-learn's checks, which compare outputs: the noise is left away."""

    def transform(self, X):
        super().transform(X)
        return np.asarray(X, dtype=float)


@parametrize_with_checks([SilentNoisy()])
def test_mixin_passes_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


@parametrize_with_checks([SilentNoisy()])
def test_mixin_passes_the_checks_under_a_ledger(estimator, check):
    with PrivacyLedger():
        check(estimator)


def test_nothing_happens_without_a_ledger():
    noisy = Noisy().fit(X)
    assert noisy.transform(X).shape == X.shape
    assert set(noisy.__getstate__()) == set(noisy.__dict__)


def test_total_is_the_sum_of_pure_releases():
    with PrivacyLedger() as ledger:
        pipeline = make_pipeline(Noisy(0.5), LogisticRegression()).fit(X, X[:, 0] > 0)
        pipeline.predict(X)
        clone(pipeline).fit(X, X[:, 0] > 0)
        copy.deepcopy(pipeline).predict(X)
        pickle.loads(pickle.dumps(pipeline)).predict(X)
    assert ledger.total().epsilon == 2.5
    assert ledger.total().releases == len(ledger) == 5
    pipeline.predict(X)
    assert len(ledger) == 5  # it has been left


def test_cross_validation_is_charged_for_fits_and_scores():
    with PrivacyLedger() as ledger:
        cross_val_score(make_pipeline(Noisy(), LogisticRegression()), X, X[:, 0] > 0, cv=4)
    assert ledger.total().epsilon == 8


def test_gaussian_releases_are_priced_exactly():
    ledger = PrivacyLedger(delta=1e-6)
    for _ in range(25):
        ledger.charge(gaussian(0.1))
    assert ledger.total().epsilon == pytest.approx(gaussian_epsilon(1e-6, 0.5), rel=1e-9)
    ledger.charge(pure(1.0))
    assert ledger.total().epsilon <= gaussian_epsilon(1e-6, 0.5) + 1


def test_budget_is_spent_to_the_last_and_not_further():
    ledger = PrivacyLedger(budget=0.3)
    for _ in range(3):
        ledger.charge(pure(0.1))  # 3 * 0.1 > 0.3 in floating point
    with pytest.raises(BudgetExceededError, match=r"'laplace' \(epsilon=1e-06\).*epsilon=0.3.*3 earlier"):
        ledger.charge(pure(1e-6))
    assert len(ledger) == 3
    assert ledger.remaining == 0


def test_gaussian_budget_is_spent_exactly():
    share = gaussian_mu(1.0, 1e-5) / 4
    ledger = PrivacyLedger(budget=1.0, delta=1e-5)
    for _ in range(16):
        ledger.charge(gaussian(share))
    assert ledger.total().epsilon == pytest.approx(1.0, rel=1e-9)
    with pytest.raises(BudgetExceededError):
        ledger.charge(gaussian(share / 100))


def test_refused_release_is_not_made():
    noisy = Noisy(2.0).fit(X)
    with PrivacyLedger(budget=3.0) as ledger:
        noisy.transform(X)
        with pytest.raises(BudgetExceededError):
            noisy.transform(X)
    assert ledger.total().epsilon == 2
    assert ledger.remaining == 1


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.one_of(st.floats(0.01, 2).map(pure), st.floats(0.05, 1).map(gaussian)), max_size=8),
    st.floats(0.5, 5),
)
def test_total_never_exceeds_the_budget(releases, budget):
    ledger = PrivacyLedger(budget=budget, delta=1e-4)
    for release in releases:
        try:
            ledger.charge(release)
        except BudgetExceededError:
            continue
    assert ledger.total().epsilon <= budget * (1 + 1e-6)
    assert ledger.total().delta <= 1e-4


def test_infinite_losses():
    ledger = PrivacyLedger(budget=1e300, delta=1e-5)
    with pytest.raises(BudgetExceededError):
        ledger.charge(pure(math.inf))
    free = PrivacyLedger(budget=math.inf)
    free.charge(pure(math.inf))
    free.charge(gaussian(1.0))
    assert free.total().epsilon == free.remaining == math.inf


def test_pure_budget_explains_why_it_refuses_a_delta():
    with pytest.raises(BudgetExceededError, match="give delta="):
        PrivacyLedger(budget=10.0).charge(gaussian(0.1))


def test_word_guarantee_is_no_record_guarantee():
    word = pure(0.1, unit="word", neighbours="two texts")
    with pytest.raises(BudgetExceededError, match="words"):
        PrivacyLedger(budget=10.0).charge(word)
    ledger = PrivacyLedger(budget=pure(1.5, unit="word"))
    ledger.charge(word)
    ledger.charge(pure(1.0))  # what holds for records holds for words
    assert ledger.total().epsilon == pytest.approx(1.1)
    assert ledger.total().unit == "word"


def test_record_sets_are_charged_apart():
    with PrivacyLedger(budget=2.0) as ledger:
        noisy = Noisy().fit(X)
        noisy.transform(X)
        with ledger.records("a"):
            noisy.transform(X)
            with ledger.records("b"):
                noisy.transform(X)
            noisy.transform(X)
            with pytest.raises(BudgetExceededError, match="'a'"):
                noisy.transform(X)
        noisy.transform(X)
        ledger.charge(pure(1.5), records="c")
    assert {name: t.epsilon for name, t in ledger.totals().items()} == {"a": 2, "b": 1, "c": 1.5, "default": 2}
    assert ledger.total().epsilon == 2
    assert ledger.total("b").epsilon == 1
    assert ledger.total("nobody").epsilon == 0


def test_releases_share_records_unless_declared():
    with PrivacyLedger() as ledger:
        noisy = Noisy().fit(X)
        noisy.transform(X[:20])
        noisy.transform(X[20:])
    assert ledger.total().epsilon == 2


def test_nested_ledgers_are_both_charged_or_neither():
    noisy = Noisy().fit(X)
    with PrivacyLedger() as outer:
        noisy.transform(X)
        with PrivacyLedger(budget=1.0) as inner:
            noisy.transform(X)
            with pytest.raises(BudgetExceededError):
                noisy.transform(X)
        noisy.transform(X)
    assert outer.total().epsilon == 3
    assert inner.total().epsilon == 1


def test_two_ledgers_on_one_file_charge_it_once(tmp_path):
    path = tmp_path / "ledger.sqlite"
    noisy = Noisy().fit(X)
    outer = PrivacyLedger(path=path, create=True)
    with outer, PrivacyLedger(budget=1.0, path=tmp_path / "." / "ledger.sqlite"):
        noisy.transform(X)
        with pytest.raises(BudgetExceededError):
            noisy.transform(X)
    assert outer.total().epsilon == 1


def test_entered_twice_is_refused_and_again_is_fine():
    ledger = PrivacyLedger()
    with ledger, pytest.raises(RuntimeError, match="active already"):
        ledger.__enter__()
    assert not ledger.active
    with ledger:
        Noisy().fit_transform(X)
    assert len(ledger) == 1


def test_file_keeps_history_budget_and_privacy(tmp_path):
    path = tmp_path / "it's 100 % ours?.sqlite"
    PrivacyLedger(budget=2.0, path=path, create=True).charge(pure(1.0))
    again = PrivacyLedger(path=path)
    assert again.total().epsilon == 1
    assert again.budget.epsilon == 2
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


# -- an account does not forget ---------------------------------------------------------------------------------------


def test_missing_account_is_not_made_anew(tmp_path):
    path = tmp_path / "ledger.sqlite"
    with pytest.raises(FileNotFoundError, match="create=True"):
        PrivacyLedger(path=path)
    assert not path.exists()
    PrivacyLedger(budget=1.0, path=path, create=True).charge(pure(1.0))
    with pytest.raises(FileExistsError, match="new accounts only"):
        PrivacyLedger(path=path, create=True)
    path.unlink()
    with pytest.raises(FileNotFoundError, match="forget what has been spent"):
        PrivacyLedger(budget=1.0, path=path)
    with pytest.raises(ValueError, match="path="):
        PrivacyLedger(create=True)  # as when a setting for the path is missing


def test_file_cut_to_nothing_is_refused(tmp_path):
    path = tmp_path / "ledger.sqlite"
    ledger = PrivacyLedger(budget=1.0, path=path, create=True)
    ledger.charge(pure(1.0))
    os.truncate(path, 0)
    with pytest.raises(ValueError, match="empty"):
        PrivacyLedger(path=path)
    with pytest.raises(RuntimeError, match="could not be written"):
        ledger.charge(pure(1.0))
    assert path.stat().st_size == 0


def test_replaced_account_stops_releases(tmp_path):
    path, copy_path = tmp_path / "ledger.sqlite", tmp_path / "copy.sqlite"
    noisy = Noisy(log=str(tmp_path / "log")).fit(X)
    ledger = PrivacyLedger(path=path, create=True)
    copy_path.write_bytes(path.read_bytes())
    with ledger:
        noisy.transform(X)
        whole = path.read_bytes()
        path.write_bytes(copy_path.read_bytes())  # a copy from before, which has not heard of this session
        with pytest.raises(RuntimeError, match="not the one that was entered"):
            noisy.transform(X)
        path.write_bytes(whole)
    assert (tmp_path / "log").stat().st_size == len(ledger) == 1


def test_budget_binds_handles_that_are_older_than_it(tmp_path):
    path = tmp_path / "ledger.sqlite"
    old = PrivacyLedger(path=path, create=True)
    PrivacyLedger(budget=1.0, path=path)
    old.charge(pure(1.0))
    with old, pytest.raises(BudgetExceededError):
        Noisy().fit_transform(X)
    with pytest.raises(BudgetExceededError):
        old.charge(pure(1.0))
    assert old.total().epsilon == 1
    assert old.budget.epsilon == 1


def test_spending_is_known_for_one_set_and_for_all():
    ledger = PrivacyLedger()
    for name in ("a", "b", "b"):
        ledger.charge(pure(1.0), records=name)
    with ledger._transaction() as connection:
        assert _ledger_file.recorded_releases(connection, "b") == {pure(1.0): 2}
        assert _ledger_file.recorded_releases(connection) == {pure(1.0): 3}


@pytest.mark.parametrize(
    "larger",
    [
        {"budget": 1.5, "delta": 1e-6},
        {"budget": 1.0, "delta": 1e-5},
        {"budget": 0.5, "delta": 1e-5},  # neither is within the other
        {"budget": PrivacyGuarantee(1.0, 1e-6, mechanism="budget", unit="word")},
    ],
)
def test_budget_is_not_raised_by_opening_the_account(tmp_path, larger):
    path = tmp_path / "ledger.sqlite"
    ledger = PrivacyLedger(budget=1.0, delta=1e-6, path=path, create=True)
    with pytest.raises(ValueError, match="raise_budget"):
        PrivacyLedger(path=path, **larger)
    assert (ledger.budget.epsilon, ledger.budget.delta, ledger.budget.unit) == (1.0, 1e-6, "record")


def test_budget_is_tightened_by_opening_and_raised_on_purpose(tmp_path):
    path = tmp_path / "ledger.sqlite"
    ledger = PrivacyLedger(budget=2.0, path=path, create=True)
    PrivacyLedger(budget=1.0, path=path)
    PrivacyLedger(budget=1.0, path=path)
    with pytest.raises(BudgetExceededError):
        ledger.charge(pure(1.5))
    PrivacyLedger(path=path).raise_budget(5.0)
    ledger.charge(pure(1.5))
    assert ledger.remaining == 3.5
    with closing(sqlite3.connect(path)) as connection:
        kept = connection.execute("SELECT time, guarantee FROM budgets ORDER BY rowid").fetchall()
    assert [json.loads(text)["epsilon"] for _, text in kept] == [2.0, 1.0, 5.0]
    assert sorted(kept) == kept
    assert all(abs(moment - time.time()) < 600 for moment, _ in kept)


def test_temporary_file_goes_with_its_ledger():
    ledger = PrivacyLedger()
    path = ledger.path
    assert os.path.exists(path)
    del ledger
    gc.collect()
    assert not os.path.exists(os.path.dirname(path))


@pytest.mark.parametrize("content", [b"this is not a database, " * 100, b"SQLite format 3\0" + b"\xff" * 4080])
def test_damaged_file_is_refused(tmp_path, content):
    path = tmp_path / "ledger.sqlite"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="damaged"):
        PrivacyLedger(path=path)
    assert path.read_bytes() == content


def test_file_that_breaks_later_stops_releases(tmp_path):
    path = tmp_path / "ledger.sqlite"
    noisy = Noisy(log=str(tmp_path / "log")).fit(X)
    ledger = PrivacyLedger(path=path, create=True)
    with ledger:
        noisy.transform(X)
        whole = path.read_bytes()
        path.write_bytes(whole[:100] + b"\xff" * (len(whole) - 100))
        with pytest.raises(ValueError, match="damaged"):
            noisy.transform(X)
        path.write_bytes(whole)
    assert (tmp_path / "log").stat().st_size == len(ledger) == 1


def test_other_databases_are_refused(tmp_path):
    path = tmp_path / "other.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE t (x)")
    connection.commit()
    connection.close()
    with pytest.raises(ValueError, match="not a privacy ledger"):
        PrivacyLedger(path=path)
    with pytest.raises(FileNotFoundError, match="path"):
        PrivacyLedger(path=tmp_path / "nowhere" / "ledger.sqlite", create=True)


def test_deleted_ledger_does_not_come_back_empty(tmp_path):
    path = tmp_path / "ledger.sqlite"
    ledger = PrivacyLedger(path=path, create=True)
    ledger.charge(pure(1.0))
    path.unlink()
    with pytest.raises(RuntimeError, match="cannot be reached"):
        ledger.charge(pure(1.0))
    assert not path.exists()


def test_deleted_file_of_an_active_ledger_stops_releases(tmp_path):
    path = tmp_path / "ledger.sqlite"
    noisy = Noisy(log=str(tmp_path / "log")).fit(X)
    ledger = PrivacyLedger(path=path, create=True).__enter__()
    moved = path.rename(tmp_path / "moved")
    with pytest.raises(RuntimeError, match="cannot be reached"):
        noisy.transform(X)
    assert not (tmp_path / "log").exists()
    moved.rename(path)
    ledger.__exit__(None, None, None)


def test_entries_and_views(tmp_path):
    with PrivacyLedger(budget=5.0, delta=1e-5) as ledger:
        with ledger.records("<b>"):
            Noisy().fit_transform(X)
        ledger.charge(gaussian(0.1))
        assert "active" in repr(ledger)
    frame = ledger.entries
    assert frame["records"].tolist() == ["<b>", "default"]
    assert frame["source"].tolist() == ["Noisy", "charge"]
    assert frame["mechanism"].tolist() == ["noisy", "gaussian"]
    assert str(frame["time"].dt.tz) == "UTC"
    assert "2 release(s)" in repr(ledger)
    assert "<b>" not in ledger._repr_html_()
    assert bool(PrivacyLedger())
    assert PrivacyLedger().entries.empty
    assert repr(PrivacyLedger()) == "<PrivacyLedger, not active: 0 release(s), epsilon spent 0, budget none>"


def test_copies_are_handles_on_one_account():
    ledger = PrivacyLedger(budget=2.0)
    twin = copy.deepcopy(ledger)
    twin.charge(pure(1.0))
    pickle.loads(pickle.dumps(ledger)).charge(pure(1.0))
    with pytest.raises(BudgetExceededError):
        ledger.charge(pure(1.0))


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: PrivacyLedger(budget=-1.0), "budget"),
        (lambda: PrivacyLedger(budget="8"), "budget"),
        (lambda: PrivacyLedger(delta=1.0), "delta"),
        (lambda: PrivacyLedger(budget=pure(1.0), delta=1e-5), "delta"),
        (lambda: PrivacyLedger().raise_budget(None), "budget"),
        (lambda: PrivacyLedger().charge(1.0), "guarantee"),
        (lambda: PrivacyLedger().charge(pure(1.0), records=""), "records"),
        (lambda: PrivacyLedger().charge(pure(1.0), records=3), "records"),
        (lambda: PrivacyLedger().records("").__enter__(), "records"),
    ],
)
def test_bad_arguments_are_named(call, name):
    with pytest.raises((ValueError, TypeError), match=name):
        call()


def test_a_charge_wants_a_guarantee():
    with pytest.raises(TypeError, match="guarantee"):
        charge(1.0, source="test")


# -- seeds ------------------------------------------------------------------------------------------------------------


def seeded(seed, stream):
    event = ReleaseEvent(0.1, seed=SeedIdentity(seed, stream))
    return PrivacyGuarantee.of(event, mechanism="laplace")


def test_one_seed_costs_infinity_across_record_sets():
    ledger = PrivacyLedger()
    ledger.charge(seeded("a", "1"), records="Lille")
    ledger.charge(seeded("a", "1"), records="Lille")  # one stream goes on with fresh noise
    ledger.charge(pure(1.0), records="Paris")
    assert ledger.total().epsilon == 1.0
    ledger.charge(seeded("a", "2"), records="Lyon")
    assert ledger.total().epsilon == math.inf
    totals = ledger.totals()
    assert totals["Lille"].epsilon == totals["Lyon"].epsilon == math.inf
    assert totals["Paris"].epsilon == 1.0


def test_a_budget_refuses_noise_that_repeats():
    ledger = PrivacyLedger(budget=5.0)
    ledger.charge(seeded("a", "1"), records="Lille")
    with pytest.raises(BudgetExceededError, match="same seed"):
        ledger.charge(seeded("a", "2"), records="Lyon")
    ledger.charge(seeded("b", "2"), records="Lyon")
    assert len(ledger) == 2
