"""The best private answers: optimal against a brute-force linear program, exact in their integers, audited."""

import itertools
import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from skfairdp.epsilon_audit import audit_epsilon
from skfairdp.mechanisms import best_answers
from skfairdp.mechanisms._answer_mechanism import fill_greedily
from skfairdp.random import random_stream

_TOTAL = 2**63
# Five answers for which no randomised response on a subset is the best: integers over 3, found by search.
COUNTER_SEEDS = (15, 91)


def counter_example(seed):
    """An instance of the family in which unequal floors win, and its epsilon."""
    rng = np.random.default_rng(seed)
    n_answers, n_rows = int(rng.integers(3, 6)), int(rng.integers(3, 9))
    epsilon = float(rng.choice([1.0, 2.0, 3.0]))
    assert rng.integers(3) == 2
    utilities = rng.integers(0, 4, size=(n_rows, n_answers)) / 3
    weight = rng.dirichlet(np.ones(n_rows)) if rng.random() < 0.5 else np.full(n_rows, 1 / n_rows)
    return utilities, epsilon, weight


def largest_utility(utilities, epsilon, weight):
    """The optimum over all mechanisms of an epsilon: one linear program over every q(a | x) and every floor."""
    n, n_answers = utilities.shape
    ratio = math.exp(epsilon)
    size = n * n_answers
    rows = []
    for i, a in itertools.product(range(n), range(n_answers)):
        for sign, factor in ((-1.0, 1.0), (1.0, -ratio)):  # m_a <= q(a | x_i), q(a | x_i) <= e^epsilon m_a
            row = np.zeros(size + n_answers)
            row[i * n_answers + a], row[size + a] = sign, factor
            rows.append(row)
    one_answer = np.hstack([np.kron(np.eye(n), np.ones(n_answers)), np.zeros((n, n_answers))])
    gain = np.concatenate([-(weight[:, None] * utilities).ravel(), np.zeros(n_answers)])
    solved = linprog(gain, A_ub=np.array(rows), b_ub=np.zeros(len(rows)), A_eq=one_answer, b_eq=np.ones(n))
    return -solved.fun


def best_subset(utilities, epsilon, weight):
    """The best randomised response on a subset of the answers."""
    ratio, n_answers = math.exp(epsilon), utilities.shape[1]
    values = []
    for size in range(1, n_answers + 1):
        for subset in itertools.combinations(range(n_answers), size):
            named = utilities[:, subset]
            values.append(weight @ (named.sum(axis=1) + (ratio - 1) * named.max(axis=1)) / (size - 1 + ratio))
    return max(values)


def drawn_value(mechanism, utilities, weight):
    return float(weight @ (mechanism.probabilities(utilities) * utilities).sum(axis=1))


@pytest.mark.parametrize("n_answers", [2, 3, 4, 5])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0, 6.0])
def test_no_mechanism_is_better(n_answers, epsilon):
    for seed in range(8):
        rng = np.random.default_rng([seed, n_answers])
        utilities = rng.dirichlet(np.full(n_answers, 0.5), size=int(rng.integers(2, 15)))
        if seed % 2:
            utilities = rng.normal(size=utilities.shape)  # as after a correction for fairness: of any sign
        weight = rng.dirichlet(np.ones(len(utilities)))
        mechanism, value, bound = best_answers(utilities, epsilon, weight)
        optimum = largest_utility(utilities, epsilon, weight)
        assert drawn_value(mechanism, utilities, weight) == pytest.approx(optimum, abs=1e-6)
        assert value == pytest.approx(optimum, abs=1e-6)
        assert bound == pytest.approx(optimum, abs=1e-6)
        assert mechanism.epsilon <= epsilon


@pytest.mark.parametrize("seed", COUNTER_SEEDS)
def test_unequal_floors_can_beat_every_subset(seed):
    utilities, epsilon, weight = counter_example(seed)
    mechanism, value, bound = best_answers(utilities, epsilon, weight)
    optimum = largest_utility(utilities, epsilon, weight)
    assert value == pytest.approx(optimum, abs=1e-6)
    assert bound == pytest.approx(optimum, abs=1e-6)
    assert value > best_subset(utilities, epsilon, weight) + 1e-4
    assert len({floor for floor in mechanism.floors if floor}) > 1
    # The planted fault: without the search the best subset is all that is found.
    _, without, _ = best_answers(utilities, epsilon, weight, search_floors=False)
    assert without == pytest.approx(best_subset(utilities, epsilon, weight))


def test_two_answers_are_randomised_response_or_one_answer():
    utilities = np.array([[0.9, 0.1], [0.4, 0.6], [0.2, 0.8]])
    near = best_answers(utilities, 4.0)[0]
    assert near.probabilities(utilities)[0, 0] == pytest.approx(0.982014, abs=1e-6)
    same_for_all = best_answers(utilities + [[0.0, 0.9]], 0.5)[0]
    assert same_for_all.ceilings == (0, _TOTAL)
    assert same_for_all.epsilon == 0
    assert (same_for_all.release(same_for_all.shares(utilities), random_stream(0)) == 1).all()


def test_without_noise_everybody_gets_the_best_answer():
    utilities = np.random.default_rng(0).normal(size=(200, 4))
    mechanism, value, bound = best_answers(utilities, math.inf)
    assert np.array_equal(mechanism.release(mechanism.shares(utilities), random_stream(0)), utilities.argmax(axis=1))
    assert value == bound == pytest.approx(utilities.max(axis=1).mean())
    assert mechanism.epsilon == math.inf


def integers_of(mechanism, s):
    """The weights that a release compares its word with."""
    return np.diff(mechanism._rise(s).astype(object), axis=1, prepend=0) + np.array(mechanism.floors, dtype=object)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.sampled_from(COUNTER_SEEDS),
    rows=st.lists(
        st.lists(
            st.one_of(st.floats(0, 1), st.sampled_from([math.nan, math.inf, -1.0, 1e308])), min_size=5, max_size=5
        ),
        min_size=2,
        max_size=5,
    ),
)
def test_integers_prove_the_epsilon_for_any_input(seed, rows):
    utilities, epsilon, weight = counter_example(seed)
    mechanism = best_answers(utilities, epsilon, weight)[0]
    drawn = integers_of(mechanism, np.array(rows))
    assert (drawn.sum(axis=1) == _TOTAL).all()
    for answer, (low, high) in enumerate(zip(mechanism.floors, mechanism.ceilings)):
        assert all(low <= weight <= high for weight in drawn[:, answer])
    with localcontext() as context:
        context.prec = 100
        ratios = [Decimal(high) / low for low, high in zip(mechanism.floors, mechanism.ceilings) if high]
        assert max(ratios).ln() <= Decimal(mechanism.epsilon) <= Decimal(epsilon)


@pytest.mark.parametrize("seed", COUNTER_SEEDS)
def test_every_order_of_answers_keeps_the_epsilon(seed):
    """Enumerate all that a record can say: its answers in any order of utility."""
    utilities, epsilon, weight = counter_example(seed)
    mechanism = best_answers(utilities, epsilon, weight)[0]
    orders = np.array(list(itertools.permutations(range(5))), dtype=float)
    drawn = integers_of(mechanism, mechanism.shares(orders))
    with localcontext() as context:
        context.prec = 100
        given = [a for a in range(5) if mechanism.ceilings[a]]
        worst = max((Decimal(int(max(drawn[:, a]))) / int(min(drawn[:, a]))).ln() for a in given)
        assert worst <= Decimal(mechanism.epsilon)
        assert float(worst) == pytest.approx(mechanism.epsilon, abs=1e-9)  # and it is reached
    # What is drawn is what was planned, up to the precision of doubles.
    planned = mechanism.probabilities(orders)
    assert (drawn / _TOTAL).astype(float) == pytest.approx(planned, abs=1e-12)


@pytest.mark.parametrize("seed", COUNTER_SEEDS)
def test_the_auditor_finds_no_more_than_epsilon(seed):
    utilities, epsilon, weight = counter_example(seed)
    mechanism = best_answers(utilities, epsilon, weight)[0]
    audit = audit_epsilon(mechanism, n_trials=20_000, confidence_level=0.9999, random_state=0)  # the OS draws answers
    assert 0.5 * epsilon < audit.epsilon_lower <= epsilon


def test_draws_follow_the_planned_probabilities():
    utilities, epsilon, weight = counter_example(15)
    mechanism = best_answers(utilities, epsilon, weight)[0]
    rows = np.repeat(utilities[:1], 100_000, axis=0)
    found = np.bincount(mechanism.release(mechanism.shares(rows), random_stream(1)), minlength=5) / len(rows)
    planned = mechanism.probabilities(utilities[:1])[0]
    assert found == pytest.approx(planned, abs=0.006)
    assert np.abs(found - planned[::-1]).max() > 0.05  # the same test rejects another order of answers


def test_a_record_without_a_belief_is_answered_by_chance():
    mechanism = best_answers(np.eye(3), 2.0)[0]
    unsound = np.full((30_000, 3), np.nan)
    found = np.bincount(mechanism.release(mechanism.shares(unsound), random_stream(0)), minlength=3) / len(unsound)
    assert found == pytest.approx(np.full(3, 1 / 3), abs=0.015)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10_000), n_answers=st.integers(2, 6))
def test_greedy_filling_takes_answers_in_order(seed, n_answers):
    rng = np.random.default_rng(seed)
    utilities, room = rng.normal(size=(6, n_answers)), rng.uniform(0.2, 1.2, size=n_answers)
    room *= max(1.0, 1.05 / room.sum())
    given = fill_greedily(utilities, room)
    assert given.sum(axis=1) == pytest.approx(np.ones(6))
    assert (given <= room + 1e-12).all()
    for row, order in zip(given, np.argsort(-utilities, axis=1)):
        last = np.flatnonzero(row[order] > 0)[-1]
        assert row[order][:last] == pytest.approx(np.minimum(room[order][:last], 1.0))


@pytest.mark.parametrize("epsilon", [0.3, 1.8, 5.0])
def test_equal_utilities_cost_nothing(epsilon):
    assert best_answers(np.full((5, 2), 0.1), epsilon)[0].epsilon == 0
    assert best_answers(np.full((7, 4), -0.3), epsilon)[0].epsilon == 0


def test_many_answers_grow_their_subset():
    rng = np.random.default_rng(0)
    utilities = rng.dirichlet(np.full(12, 0.2), size=300)
    mechanism, value, bound = best_answers(utilities, 3.0)
    assert value <= bound + 1e-9
    assert bound - value < 1e-3
    assert drawn_value(mechanism, utilities, np.full(300, 1 / 300)) == pytest.approx(value, abs=1e-6)
