"""What "auto" means in PATE: numbers in, numbers out, and the least risk by the formula that the rule comes from."""

import inspect
import math

import numpy as np
import pytest

from skfairdp.accounting import gaussian_mu
from skfairdp.ensemble import _budget_rule
from skfairdp.ensemble._budget_rule import (
    FEW_QUERIES,
    FEWEST_TEACHERS,
    LASTING_RISK,
    SIGNAL_VARIANCE,
    choose_labels,
    choose_n_queries,
    choose_n_teachers,
    choose_penalty,
)
from skfairdp.ensemble._students import solve_students, student_logits

MU = gaussian_mu(1.0, 1e-5)


def risk(k, m, n, p, c, mu):
    """Nats that noise, few queries and few rows per teacher cost."""
    return c * (c - 1) * p / (mu * k) ** 2 + (c - 1) * p / (8 * m) + LASTING_RISK * p * k / (2 * n)


@pytest.mark.parametrize("n_private", [5000, 30_000, 10**6])
@pytest.mark.parametrize("n_classes", [2, 3, 10])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 8.0])
def test_no_other_number_of_teachers_has_less_risk(n_private, n_classes, epsilon):
    mu = gaussian_mu(epsilon, 1e-5)
    chosen = choose_n_teachers(n_private, n_classes, mu)
    assert FEWEST_TEACHERS < chosen < n_private // 3
    found = risk(np.arange(1, n_private // 3), 1000, n_private, 50, n_classes, mu)
    assert abs(1 + found.argmin() - chosen) <= 1


def test_noise_costs_a_student_the_same_for_any_number_of_queries():
    """The first term of the risk, by simulation: labels at chance, so that all that is learned is noise."""
    rng = np.random.default_rng(0)
    p, k, mu = 4, 300, 1.0
    test = rng.normal(size=(2000, p))
    for m in (1000, 4000):
        rows = rng.normal(size=(m, p))
        noise = rng.normal(scale=math.sqrt(2 * m) / mu / k / math.sqrt(2), size=(200, m))
        theta = solve_students(rows, np.stack([0.5 - noise, 0.5 + noise], axis=2), 1e-9)
        logits = student_logits(theta, test)[..., 0]
        lost = np.mean(np.logaddexp(0, logits) - 0.5 * logits) - math.log(2)
        assert lost == pytest.approx(2 * (p + 1) / (mu * k) ** 2, rel=0.15)


def test_the_penalty_is_the_best_for_the_signal_that_it_supposes():
    rng = np.random.default_rng(1)
    p, k, m, mu = 20, 60, 2000, 0.5
    rows, test = rng.normal(size=(m, p)), rng.normal(size=(1000, p))
    truth = rng.normal(scale=math.sqrt(SIGNAL_VARIANCE / p), size=(40, p))
    shares = 1 / (1 + np.exp(-rows @ truth.T)).T
    noise = rng.normal(scale=math.sqrt(m) / mu / k, size=shares.shape)
    targets = np.stack([1 - shares - noise, shares + noise], axis=2)
    chosen = choose_penalty(p, 2, k, m, mu)
    goal = test @ truth.T

    def error(strength):
        return np.square(student_logits(solve_students(rows, targets, strength), test)[..., 0].T - goal).mean()

    assert error(chosen) < min(error(4 * chosen), error(chosen / 4))


def test_choices_follow_the_numbers():
    rising = [choose_n_teachers(n, 2, MU) for n in (100, 1000, 10_000, 100_000)]
    assert rising == sorted(set(rising))
    falling = [choose_n_teachers(30_000, 2, gaussian_mu(epsilon, 1e-5)) for epsilon in (0.1, 0.5, 1, 3, 8, 30)]
    assert falling == sorted(set(falling), reverse=True)
    assert choose_n_teachers(30_000, 2, gaussian_mu(1.0, 1e-8)) > choose_n_teachers(30_000, 2, MU)
    assert choose_n_teachers(30_000, 5, MU) > choose_n_teachers(30_000, 2, MU)
    more = [choose_n_queries(10**6, 10, 2, k, MU, averages=True) for k in (100, 300, 1000)]
    assert more == sorted(set(more))
    weaker = [choose_penalty(10, 2, k, 1000, MU) for k in (50, 100, 1000)]
    assert weaker == sorted(set(weaker), reverse=True)
    assert choose_penalty(10, 2, 100, 4000, MU) < choose_penalty(10, 2, 100, 400, MU)
    assert choose_penalty(10, 3, 100, 400, MU) > choose_penalty(10, 2, 100, 400, MU)


def test_choices_stay_within_the_table():
    for n_private in (1, 2, 7, 59, 10**7):
        for n_classes in (1, 2, 100):
            for mu in (1e-300, 1e-6, 1.0, 1e6, math.inf):
                k = choose_n_teachers(n_private, n_classes, mu)
                assert 1 <= k <= max(1, n_private // 3)
                for averages in (True, False):
                    assert 1 <= choose_n_queries(3, 10, n_classes, k, mu, averages=averages) <= 3
                assert 0 < choose_penalty(10, n_classes, k, 3, mu) < math.inf
    assert choose_n_teachers(30_000, 2, math.inf) == FEWEST_TEACHERS
    assert choose_n_queries(10**7, 10, 2, 20, math.inf, averages=True) == 10**7


def test_students_that_do_not_average_are_asked_less():
    few, many = (choose_n_queries(10**6, 30, 2, 1000, MU, averages=averages) for averages in (False, True))
    assert FEW_QUERIES < few < many
    assert math.sqrt(2 * few) / MU / 1000 == pytest.approx(0.25, rel=0.01)
    assert choose_n_queries(10**6, 30, 2, 20, MU, averages=False) == FEW_QUERIES


def test_the_rule_cannot_look_at_rows():
    """Numbers are all that the functions take."""
    for name, function in inspect.getmembers(_budget_rule, inspect.isfunction):
        kinds = {parameter.annotation for parameter in inspect.signature(function).parameters.values()}
        assert kinds <= {int, float, bool}, name


def test_shares_unless_the_student_cannot_weigh_rows():
    assert (choose_labels(True), choose_labels(False)) == ("soft", "hard")
