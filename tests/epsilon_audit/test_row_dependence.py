"""The test of independence: exact where it can be counted, valid with ties, and every way of copying noise is found."""

import math
import re

import numpy as np
import pytest
from scipy.stats import hypergeom

from skfairdp.epsilon_audit import audit_epsilon
from skfairdp.epsilon_audit._row_dependence import Run, describe_outputs, find_dependence, independence_bounds

N = 600


def bits_with(both, ones, others, n):
    """Paired bits with a given table."""
    first = np.arange(n) < ones
    second = np.zeros(n, dtype=bool)
    second[:both] = True
    second[ones : ones + others - both] = True
    return first[np.newaxis], second[np.newaxis]


@pytest.mark.parametrize(("n", "ones", "others"), [(30, 15, 15), (30, 4, 20), (40, 40, 3), (25, 1, 24)])
def test_bounds_are_never_below_the_exact_probability(n, ones, others):
    """All tables with these margins: P(bound <= a) <= a for every a, and not by being useless."""
    tables = np.arange(max(0, ones + others - n), min(ones, others) + 1)
    mass = hypergeom(n, ones, others).pmf(tables)
    bounds = np.array([independence_bounds(*bits_with(k, ones, others, n))[0] for k in tables])
    for bound in bounds:
        assert mass[bounds <= bound].sum() <= bound + 1e-12
    if (ones, others) == (15, 15):
        exact = np.array([min(1.0, 2 * min(mass[: i + 1].sum(), mass[i:].sum())) for i in range(len(mass))])
        far = exact < 0.05
        assert far.sum() > 5
        assert (bounds[far] < 1.5 * exact[far]).all()


def runs(draw, n=N, rows_per_call=10**6):
    """Two inputs, drawn twice."""
    return [Run(record, describe_outputs(draw(record, n)), rows_per_call) for record in (0, 1, 0, 1)]


def honest_draws(kind, rng):
    def draw(record, n):
        if kind == "continuous":
            return record + rng.laplace(size=(n, 3))
        if kind == "bits":
            return (rng.random((n, 5)) < 0.3 + 0.4 * record).astype(float)
        if kind == "rare":
            return (rng.random((n, 1)) < 0.02).astype(float)
        if kind == "constant":
            return np.full((n, 2), float(record))
        if kind == "not finite":
            return np.where(rng.random((n, 2)) < 0.3, rng.choice([np.nan, np.inf, -np.inf], (n, 2)), 1.0)
        return np.array([" ".join(w if rng.random() < 0.5 else "*" for w in ("my", "cat", "sleeps")) for _ in range(n)])

    return draw


@pytest.mark.parametrize("kind", ["continuous", "bits", "rare", "constant", "not finite", "words"])
def test_independent_outputs_are_rarely_accused(kind):
    """At a level of 1/2, where the share of each single test is largest: 60 tries, and hardly ever half of them."""
    rng = np.random.default_rng(0)
    draw = honest_draws(kind, rng)
    found = sum(find_dependence(runs(draw, 200), 0.5) is not None for _ in range(60))
    assert found <= 30


@pytest.mark.parametrize("kind", ["continuous", "bits", "words"])
def test_copies_are_found_in_outputs_of_any_kind(kind):
    """Every second output repeats the one before, which for equal rows is what shared noise looks like."""
    draw = honest_draws(kind, np.random.default_rng(0))
    found = find_dependence(runs(lambda record, n: draw(record, n)[np.arange(n) // 2 * 2]), 1e-6)
    assert found is not None
    assert "1 row apart" in found


def test_a_faint_dependence_is_found_by_more_rows():
    """A tenth of the rows repeats the row before: seen in 10,000 rows, not in 100."""
    rng = np.random.default_rng(0)

    def draw(record, n):
        y = rng.normal(size=(n, 1))
        copied = 1 + np.flatnonzero(rng.random(n - 1) < 0.1)
        y[copied] = y[copied - 1]
        return y

    assert find_dependence(runs(draw, 100), 5e-4) is None
    assert find_dependence(runs(draw, 10_000), 5e-4) is not None


def test_a_distance_that_nobody_named_is_looked_for():
    rng = np.random.default_rng(0)
    found = find_dependence(runs(lambda record, n: rng.normal(size=(37, 2))[np.arange(n) % 37]), 1e-6)
    distance = int(re.search(r"(\d+) rows apart", found)[1])
    assert distance % 37 == 0


def test_the_place_in_successive_calls_is_compared():
    rng = np.random.default_rng(0)

    def draw(record, n):
        return np.concatenate([np.tile(rng.normal(size=(20, 1)), (2, 1)) for _ in range(n // 40)])

    assert "successive calls" in find_dependence(runs(draw, 400, rows_per_call=20), 1e-6)


def test_calls_that_differ_from_each_other_are_found():
    rng = np.random.default_rng(0)
    shift = iter([0.0, 0.0, 3.0, 3.0])
    assert "later outputs differ" in find_dependence(
        runs(lambda record, n: next(shift) + rng.normal(size=(n, 1))), 1e-6
    )


def shared_by_pairs(rng):
    """Randomised response on bits whose coin is tossed once for two rows."""

    def release(X):
        coin = np.repeat(rng.random((len(X) + 1) // 2), 2)[: len(X), None]
        return np.where(coin < 0.75, X, 1 - X)

    return release


def test_an_audit_convicts_by_dependence_alone():
    """Each single answer keeps ln 3, and the claim of 3 is far above; two answers that share their coin do not."""
    rng = np.random.default_rng(0)
    audit = audit_epsilon(shared_by_pairs(rng), [0], [1], claimed=3.0, n_trials=2000, random_state=0)
    assert audit.epsilon_lower < 3
    assert audit.contradicts
    assert "1 row apart" in audit.dependence
    assert "the claim of epsilon = 3 for each row is false" in audit.verdict
    assert "1 row apart" in audit._repr_html_()
    honest = audit_epsilon(
        lambda X: np.where(rng.random(X.shape) < 0.75, X, 1 - X), [0], [1], claimed=3.0, n_trials=2000, random_state=0
    )
    assert honest.dependence is None
    assert not honest.contradicts
    assert "none found" in honest._repr_html_()


@pytest.mark.parametrize(("claimed", "words"), [(None, "nothing was claimed"), (math.inf, "claims no protection")])
def test_what_claims_nothing_is_not_contradicted_by_dependence(claimed, words):
    audit = audit_epsilon(
        shared_by_pairs(np.random.default_rng(0)), [0], [1], claimed=claimed, n_trials=1000, random_state=0
    )
    assert audit.dependence is not None
    assert not audit.contradicts
    assert words in audit.verdict


def test_calls_of_one_row_are_compared_with_each_other():
    """Noise that is drawn afresh only in every second call, one row in a call; fresh noise in every call passes."""
    rng = np.random.default_rng(0)
    kept = []

    def reuse(X):
        kept.append(kept[-1] if len(kept) % 2 else rng.laplace(0, 2.0, X.shape))
        return X + kept[-1]

    arguments = {"n_trials": 400, "claimed": 5.0, "rows_per_call": 1, "score": lambda y: y[:, 0]}
    audit = audit_epsilon(reuse, [1.0], [-1.0], **arguments)
    assert audit.contradicts
    assert "call apart" in audit.dependence
    fresh = audit_epsilon(lambda X: X + rng.laplace(0, 2.0), [1.0], [-1.0], **arguments)
    assert fresh.dependence is None


def test_few_trials_show_copies_already():
    audit = audit_epsilon(
        shared_by_pairs(np.random.default_rng(0)), [0], [1], claimed=3.0, n_trials=200, random_state=0
    )
    assert audit.contradicts
