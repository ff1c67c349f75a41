"""The noise that a budget needs, the price of given noise, and an auditor who checks both."""

import math
from dataclasses import replace

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from skfairdp import PATEClassifier, audit_epsilon
from skfairdp.accounting import binary_vote_rdp, gaussian_epsilon, gaussian_mu, renyi_epsilon
from skfairdp.ensemble._students import student_targets
from skfairdp.ensemble._teachers import partition_rows
from skfairdp.mechanisms import vote_mechanism
from skfairdp.random import random_stream


def plan(labels, *, epsilon=1.0, delta=1e-5, noise_scale=None, m=200, n_classes=2, k=150, asked=None, **more):
    return vote_mechanism(
        labels,
        epsilon=epsilon,
        delta=delta,
        noise_scale=noise_scale,
        n_asked=asked or m,
        n_answered=m,
        n_classes=n_classes,
        n_voting=k,
        **more,
    )


@pytest.mark.parametrize(
    ("epsilon", "sigma"), [(0.5, 140.636534), (1, 74.612633), (2, 39.876249), (4, 21.623237), (8, 12.004581)]
)
@pytest.mark.parametrize(("labels", "n_classes"), [("soft", 2), ("soft", 5), ("hard", 3)])
def test_noise_from_a_target(labels, n_classes, epsilon, sigma):
    made = plan(labels, epsilon=epsilon, n_classes=n_classes)
    assert made.noise_scale == pytest.approx(sigma, rel=1e-6)
    assert made.noise_scale >= math.sqrt(400) / gaussian_mu(epsilon, 1e-5)  # never too little
    assert made.epsilon == epsilon
    assert made.mu == pytest.approx(math.sqrt(400) / sigma, rel=1e-6)
    assert made.mu >= math.sqrt(400) / made.noise_scale  # later releases compose with no less


@pytest.mark.parametrize(("sigma", "epsilon"), [(20, 4.377178), (50, 1.554982), (100, 0.725522)])
def test_the_price_of_given_noise(sigma, epsilon):
    assert plan("soft", noise_scale=sigma).epsilon == pytest.approx(epsilon, abs=1e-6)


@pytest.mark.parametrize(("sigma", "epsilon"), [(20, 3.6616), (50, 1.3232), (100, 0.6227)])
def test_hard_labels_of_two_classes_cost_less(sigma, epsilon):
    made = plan("hard", noise_scale=sigma)
    assert made.epsilon == pytest.approx(epsilon, abs=2e-4)
    assert made.mu is None  # this is not the Gaussian bound, and must not be composed as if it were


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 5.0, 30.0])
def test_hard_labels_get_the_least_noise(epsilon):
    made = plan("hard", epsilon=epsilon)

    def price(sigma):
        by_counts = gaussian_epsilon(1e-5, math.sqrt(400) / sigma)
        return min(by_counts, renyi_epsilon(200 * binary_vote_rdp(150, sigma), 1e-5))

    assert made.noise_scale < plan("soft", epsilon=epsilon).noise_scale
    assert price(made.noise_scale) <= epsilon
    assert price(0.99 * made.noise_scale) > epsilon


def test_takes_the_cheaper_of_two_bounds():
    made = plan("hard", noise_scale=50.0, delta=0.05)  # Renyi bounds are loose where delta is large
    assert made.mu == pytest.approx(0.4)
    assert made.epsilon == pytest.approx(gaussian_epsilon(0.05, 0.4), abs=1e-6)


def test_confident_labels():
    given = {"noise_scale": 40.0, "threshold_noise_scale": 150.0}
    made = plan("confident", m=200, asked=1000, **given)
    assert made.epsilon == pytest.approx(2.184069, abs=1e-6)
    assert made.threshold == 100
    solved = plan("confident", epsilon=2.0, m=200, asked=1000, threshold_noise_scale=150.0)
    assert solved.threshold_noise_scale == pytest.approx(150.0)
    exact = math.sqrt(1000 / 150.0**2 + 400 / solved.noise_scale**2)
    assert exact == pytest.approx(gaussian_mu(2.0, 1e-5), rel=1e-6)
    assert exact <= solved.mu == gaussian_mu(2.0, 1e-5)
    halved = plan("confident", epsilon=2.0, m=200, asked=1000)
    asking, answering = 1000 / halved.threshold_noise_scale**2, 400 / halved.noise_scale**2
    assert asking == pytest.approx(answering, rel=1e-9)
    assert math.sqrt(asking + answering) <= gaussian_mu(2.0, 1e-5)


@pytest.mark.parametrize("labels", ["soft", "hard", "confident"])
def test_large_budgets_draw_from_one_table(labels):
    made = plan(labels, epsilon=200.0, n_classes=3)
    assert made.one_table
    assert made.epsilon == 200.0
    assert not plan(labels, epsilon=20.0, n_classes=3).one_table


def test_partition_covers_everything():
    parts = partition_rows(103, 10, random_stream(0))
    assert sorted(np.concatenate(parts).tolist()) == list(range(103))
    assert {len(part) for part in parts} == {10, 11}
    assert sum(len(part) == 0 for part in partition_rows(3, 10, random_stream(0))) == 7


def _votes(X, y, queries, parts):
    """Votes of trees on given parts."""
    counts = np.zeros((len(queries), 2), dtype=int)
    for part in parts:
        tree = DecisionTreeClassifier(random_state=0).fit(X[part], y[part])
        counts[np.arange(len(queries)), tree.predict(queries)] += 1
    return counts


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # labels are coins: nothing to learn
def test_replacing_a_record_changes_one_vote():
    rng = np.random.default_rng(0)
    X, y, queries = rng.normal(size=(200, 3)), rng.integers(0, 2, 200), rng.normal(size=(50, 3))
    pate = PATEClassifier(DecisionTreeClassifier(), n_teachers=10, epsilon=1.0, random_state=0)
    before = pate.fit(X, y, public=queries).teacher_votes(queries)
    X_other, y_other = X.copy(), y.copy()
    X_other[17], y_other[17] = queries[0], 1 - y[17]
    after = pate.fit(X_other, y_other, public=queries).teacher_votes(queries)
    assert np.abs(after - before).max() == 1
    assert np.abs(after - before).sum(axis=1).max() == 2

    def stratified(labels):
        return [np.concatenate([np.flatnonzero(labels == c)[i::10] for c in (0, 1)]) for i in range(10)]

    moved = _votes(X_other, y_other, queries, stratified(y_other)) - _votes(X, y, queries, stratified(y))
    assert np.abs(moved).max() > 1


def _neighbouring_votes(labels, n_queries=5):
    """Votes of two real ensembles whose data differ in one label, in the worst case: a teacher that knows one row."""
    rng = np.random.default_rng(0)
    X, queries = rng.normal(size=(9, 2)), rng.normal(size=(n_queries, 2))
    y = np.array([0, 1, 0, 1, 0, 1, 0, 1, 0])
    votes = []
    for label in (0, 1):
        y[4] = label
        pate = PATEClassifier(n_teachers=9, labels=labels, epsilon=1.0, classes=[0, 1], random_state=0)
        votes.append(pate.fit(X, y, public=queries)._private.votes)
    assert np.abs(votes[0] - votes[1]).sum() == 2 * n_queries
    return votes


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # nine rows teach nothing
@pytest.mark.parametrize("labels", ["soft", "hard"])
def test_audit_convicts_a_tenth_less_noise(labels):
    # A large delta brings the event that separates best into the reach of sampling. Hard labels are audited against
    # the exact worst case of their two outcomes, because their Renyi bound is not tight at a large delta.
    epsilon, delta, m = 1.0, 0.1, 5
    votes, other = _neighbouring_votes(labels, m)
    honest = plan(labels, epsilon=epsilon, delta=delta, m=m, k=9)
    sigma = honest.noise_scale

    def audit(factor):
        made, stream = replace(honest, noise_scale=factor * sigma), random_stream(0)

        def release(rows):
            counts = np.asarray(rows, dtype=int).reshape(-1, 2)
            # All rows of a call in one draw: queries are released independently of each other.
            many = replace(made, n_asked=len(counts), n_answered=len(counts))
            _, released = many.release(counts, stream)
            return student_targets(released, labels, 2, 9, "none").reshape(len(rows), -1)

        return audit_epsilon(
            release,
            votes.ravel().astype(float),
            other.ravel().astype(float),
            claimed=epsilon,
            delta=delta,
            n_trials=300_000,
            score=lambda outputs: outputs @ (votes - other).ravel(),
            random_state=0,
        )

    assert audit(1.0).epsilon_lower <= epsilon
    if labels == "soft":
        assert audit(1.0).epsilon_lower > 0.9 * epsilon
        assert audit(0.9).epsilon_lower > epsilon
    else:
        assert audit(0.25).epsilon_lower > epsilon
