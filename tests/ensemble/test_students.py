"""Batched students reach the same optimum as scikit-learn, one by one, and the theory's optimum otherwise."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

from skfairdp.ensemble._students import (
    _student_losses,
    _student_objective,
    solve_students,
    student_logits,
    student_probabilities,
    with_ones,
)
from skfairdp.mechanisms import soft_labels


def rows(m=120, d=5, seed=0):
    return np.random.default_rng(seed).normal(size=(m, d))


def one_hot(labels, n_classes):
    return np.eye(n_classes)[labels]


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_hard_targets_give_scikit_learns_optimum(n_classes):
    X = rows()
    labels = np.random.default_rng(1).integers(0, n_classes, (7, len(X)))
    lam = 0.05
    theta = solve_students(X, one_hot(labels, n_classes), lam)
    # scikit-learn: |w|^2 / 2 + C sum loss; the intercept is penalised as a column of ones.
    model = LogisticRegression(C=1 / (2 * lam * len(X)), fit_intercept=False, tol=1e-12, max_iter=10_000)
    for student, y in zip(theta, labels):
        expected = model.fit(with_ones(X), y).coef_
        np.testing.assert_allclose(student - student.mean(axis=0) if n_classes > 2 else student, expected, atol=2e-6)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_targets_outside_the_simplex(n_classes):
    rng = np.random.default_rng(2)
    X = rows()
    targets = rng.normal(size=(3, len(X), n_classes))
    targets += (1 - targets.sum(axis=2, keepdims=True)) / n_classes  # they sum to one, and some are negative
    assert targets.min() < -1
    theta = solve_students(X, targets, 0.1)
    for r in range(3):
        shape = theta[r : r + 1].shape
        best = minimize(
            lambda t, r=r, shape=shape: _student_objective(t.reshape(shape), with_ones(X), targets[r : r + 1], 0.1)[0],
            rng.normal(size=theta[r].size),
            tol=1e-12,
        )
        np.testing.assert_allclose(theta[r].ravel(), best.x, atol=1e-4)


def test_targets_of_any_sum_reach_a_stationary_point():
    rng = np.random.default_rng(3)
    X, targets = rows(60, 3), rng.normal(size=(5, 60, 2))
    theta = solve_students(X, targets, 0.05)
    for r in range(5):
        value = _student_objective(theta[r : r + 1], with_ones(X), targets[r : r + 1], 0.05)[0]
        for _ in range(20):
            nearby = theta[r : r + 1] + 1e-4 * rng.normal(size=theta[r : r + 1].shape)
            assert _student_objective(nearby, with_ones(X), targets[r : r + 1], 0.05)[0] > value - 1e-12


def test_losses_and_probabilities_agree():
    X = rows(30, 2)
    for n_classes in (2, 3):
        targets = np.random.default_rng(0).dirichlet(np.ones(n_classes), (4, 30))
        theta = solve_students(X, targets, 0.01)
        probabilities = student_probabilities(theta, X)
        np.testing.assert_allclose(probabilities.sum(axis=2), 1)
        losses = _student_losses(student_logits(theta, X), targets)
        np.testing.assert_allclose(losses, -(targets * np.log(probabilities)).sum(axis=2))


def test_a_planted_wrong_penalty_is_noticed():
    X = rows()
    labels = np.random.default_rng(1).integers(0, 2, (1, len(X)))
    right, wrong = (solve_students(X, one_hot(labels, 2), lam) for lam in (0.05, 0.055))
    assert np.abs(right - wrong).max() > 1e-3


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("limit", ["_MOST_PRODUCTS", "_MOST_PARAMETERS"])
def test_large_problems_reach_the_same_optimum(monkeypatch, n_classes, limit):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    targets = soft_labels(rng.normal(20, 30, size=(4, 60, n_classes)), 20 * n_classes, "affine")
    expected = solve_students(X, targets, 0.05)
    monkeypatch.setattr(f"skfairdp.ensemble._students.{limit}", 1)
    np.testing.assert_allclose(solve_students(X, targets, 0.05), expected, atol=1e-6)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_more_features_than_rows(n_classes):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 30))
    targets = soft_labels(rng.normal(20, 30, size=(3, 12, n_classes)), 20 * n_classes, "affine")
    theta = solve_students(X, targets, 0.05)
    design = with_ones(X)
    assert theta.shape[2] == 31
    for nudge in rng.normal(scale=1e-4, size=(20, *theta.shape)):  # no point near by is better
        better = _student_objective(theta + nudge, design, targets, 0.05) < _student_objective(
            theta, design, targets, 0.05
        )
        assert not better.any()
