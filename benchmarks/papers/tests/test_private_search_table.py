"""The table of private searches on Adult: how it is made, and what the guide says of it."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.papers import private_search
from benchmarks.papers._shipped import TABLES
from benchmarks.papers._tables import frame_of
from benchmarks.papers.private_search import GRID, N_CANDIDATES, SEARCHES
from skfairdp.mechanisms import selection_mechanism

DOCS = Path(__file__).resolve().parents[3] / "docs"


def fits(held, test):
    return [{"candidate": {"n": i}, "held": h, "test": t} for i, (h, t) in enumerate(zip(held, test))]


def row(kind, held, test):
    return {"cell": {"kind": kind, "epsilon": 1.0, "seed": 0}, "result": {"fits": fits(held, test)}}


def test_grid_has_the_candidates_that_share_a_budget():
    assert np.prod([len(values) for values in GRID.values()]) == N_CANDIDATES


def test_search_is_the_expectation_over_trials():
    kind, (eta, mean) = next(iter(SEARCHES.items()))
    held = np.random.default_rng(0).permutation(N_CANDIDATES)
    test = 50.0 + 3 * held  # as good on test rows as on held-out ones
    table = private_search.tables(frame_of([row(kind, held, test)]))["adult"]
    trials = selection_mechanism(1.0, private_search.DELTA, expected_trials=mean, eta=eta).trials
    numbers = np.arange(1, 2000)
    draws = np.random.default_rng(1).choice(numbers, p=trials.pmf(numbers) / trials.pmf(numbers).sum(), size=20_000)
    best = [50.0 + 3 * np.random.default_rng(k).integers(N_CANDIDATES, size=n).max() for k, n in enumerate(draws)]
    assert float(table["epsilon 1"].iloc[0]) == pytest.approx(np.mean(best), abs=0.4)  # five standard errors


def test_held_out_rows_choose_and_test_rows_judge():
    held, test = np.arange(N_CANDIDATES), 60.0 + np.arange(N_CANDIDATES)[::-1]
    table = private_search.tables(frame_of([row("shared", held, test)]))["adult"]
    assert table["epsilon 1"].tolist() == ["60.0"]  # the best on held-out rows is the worst on test rows


def test_guide_says_what_the_table_says():
    table = pd.read_csv(TABLES / "private-search-full-adult.csv", index_col=0)
    rule, best, _, blind, search, other, shared = table.map(lambda cell: float(cell.split(" ± ")[0])).to_numpy()
    page = " ".join((DOCS / "guide" / "private_search.md").read_text(encoding="utf-8").split())
    assert "2.7 points better than the search at epsilon 1 and 1.3 at 3" in page
    assert np.round(rule - search, 1).tolist() == [2.7, 1.3]
    assert "within half a point of the best of the twelve" in page
    assert (np.round(best - rule, 1) <= 0.5).all()
    assert "gains 1.2 points over one drawn blindly at epsilon 1, and half a point at 3" in page
    assert np.round(search - blind, 1).tolist() == [1.2, 0.5]
    assert "twelve fixed fits are about as good" in page
    assert (abs(shared - search) < 0.5).all()
    assert (other < search).all()  # eta = 1 is the default
