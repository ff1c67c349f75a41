"""Flipping probabilities, excessive risk, and the bounds of the PATE fairness analysis, checked against simulation."""

import numpy as np
import pytest

from skfairdp.ensemble._students import solve_students, student_probabilities, with_ones
from skfairdp.metrics._pate_analysis import (
    closeness_to_boundary,
    excessive_risk,
    excessive_risk_bound,
    excessive_risk_gap,
    flipping_probability,
    hard_label_bounds,
    model_sensitivity,
    soft_label_bounds,
)

REFERENCE = [
    ([150, 0], 50, 0.01694743),
    ([20, 0], 50, 0.38864871),
    ([90, 60], 50, 0.33568662),
    ([76, 74], 50, 0.48871771),
    ([150, 0, 0], 50, 0.03120452),
    ([100, 30, 20], 20, 0.00865468),
    ([100, 100, 50], 20, 0.50423256),
    ([250] + [0] * 9, 40, 0.00004329),
]


@pytest.mark.parametrize(("votes", "sigma", "expected"), REFERENCE)
def test_flipping_probability_has_the_reference_values(votes, sigma, expected):
    assert flipping_probability([votes], sigma)[0] == pytest.approx(expected, abs=6e-9)


def test_flipping_probability_equals_simulation():
    rng = np.random.default_rng(0)
    votes = np.array([[50, 45, 40, 15], [60, 60, 20, 10], [149, 1, 0, 0]])
    n = 200_000
    noisy = votes[:, None, :] + 20 * rng.standard_normal((3, n, 4))
    rate = (noisy.argmax(axis=2) != votes.argmax(axis=1)[:, None]).mean(axis=1)
    exact = flipping_probability(votes, 20)
    error = np.sqrt(exact * (1 - exact) / n) + 1e-6
    assert (np.abs(rate - exact) < 5 * error).all()
    from scipy.stats import norm

    union = norm.cdf(-(votes[0, 0] - votes[0, 1:]) / (np.sqrt(2) * 20)).sum()
    assert abs(rate[0] - union) > 5 * error[0]


def test_flipping_probability_at_its_edges():
    assert flipping_probability([[5, 5]], 0.0) == [0.0]
    assert flipping_probability([[5, 5]], 3.0) == [0.5]
    assert flipping_probability([[7]], 3.0) == [0.0]
    assert flipping_probability(np.zeros((0, 3)), 1.0).shape == (0,)
    many = np.tile([[10, 9, 8]], (5000, 1))
    assert np.ptp(flipping_probability(many, 4.0)) < 1e-14
    for bad in (-1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="noise_scale"):
            flipping_probability([[1, 2]], bad)
    with pytest.raises(ValueError, match="votes must hold vote counts"):
        flipping_probability([[1, -2]], 1.0)
    with pytest.raises(ValueError, match="votes"):
        flipping_probability([1, 2], 1.0)


def test_closeness_refuses_what_is_no_probability():
    with pytest.raises(ValueError, match="sum to 1"):
        closeness_to_boundary([[0.5, 0.6]])
    with pytest.raises(ValueError, match="proba"):
        closeness_to_boundary([[1.0]])


def test_excessive_risk_by_group_is_the_mean_over_its_rows():
    rng = np.random.default_rng(0)
    private, clean = rng.random((50, 9)), rng.random(9)
    z = np.array(list("abcabcabc"))
    table = excessive_risk(private, clean, sensitive_features=z)
    for label in "abc":
        rows = (private - clean)[:, z == label].mean(axis=1)
        assert table.loc[label, "risk"] == pytest.approx(rows.mean())
        assert table.loc[label, "standard_error"] == pytest.approx(rows.std(ddof=1) / np.sqrt(50))
    assert excessive_risk_gap(private, clean, sensitive_features=z) == pytest.approx(np.ptp(table["risk"]))
    assert excessive_risk(private, clean)["risk"].to_numpy() == pytest.approx((private - clean).mean(axis=0))


def test_bad_losses_are_named():
    with pytest.raises(ValueError, match="n_repeats, n_samples"):
        excessive_risk([0.1, 0.2], [0.1, 0.2])
    with pytest.raises(ValueError, match="finite"):
        excessive_risk([[np.nan]], [0.1])
    with pytest.raises(ValueError, match="sensitive_features"):
        excessive_risk_gap([[0.1, 0.2]], [0.1, 0.2], sensitive_features=["f", "f"])
    with pytest.raises(ValueError, match="n_repeats"):
        model_sensitivity([[1.0]], [1.0, 2.0])


def flipped_students(X, y, p, lam, repeats, seed):
    rng = np.random.default_rng(seed)
    flips = rng.random((repeats, len(y))) < p
    labels = np.where(flips, 1 - y, y)
    clean = solve_students(X, np.eye(2)[y][None], lam)
    return solve_students(X, np.eye(2)[labels], lam), clean


def test_corrected_bounds_hold_where_they_are_tight():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 10))
    y = rng.integers(0, 2, 200)
    p = np.full(200, 0.2)
    private, clean = flipped_students(X, y, p, 1.0, 400, 1)
    moved = model_sensitivity(private, clean[0])
    bounds = hard_label_bounds(with_ones(X), p, 1.0, labels=y)
    assert moved["mean"] <= bounds.first < bounds.triangle
    assert moved["mean_square"] <= bounds.second
    assert bounds.first < 1.5 * moved["mean"]  # sharp enough that half of it would be refuted
    assert bounds.published_first == pytest.approx(2 * bounds.triangle)
    residual = student_probabilities(clean, X)[0, :, 1] - y
    private_losses, clean_losses = (
        -(np.eye(2)[y] * np.log(student_probabilities(students, X))).sum(axis=2) for students in (private, clean)
    )
    risk = excessive_risk(private_losses, clean_losses[0])
    assert (risk["risk"] <= excessive_risk_bound(with_ones(X), residual, bounds.first, bounds.second)).all()


def test_published_corollary_2_is_refuted_exactly():
    # One row x = 1, label 0, lambda = 1: the flip moves the optimum by a fixed distance, with probability p.
    p, row = 0.01, np.array([[1.0]])
    theta = _solve_without_intercept([0.0, 1.0])
    exact = p * (theta[1] - theta[0]) ** 2
    bounds = hard_label_bounds(row, [p], 1.0)
    assert exact == pytest.approx(1.977109e-3, rel=1e-6)
    assert bounds.published_second == pytest.approx(1e-4)
    assert bounds.published_second < exact <= bounds.second == pytest.approx(2.5e-3)


def _solve_without_intercept(targets):
    from scipy.optimize import brentq
    from scipy.special import expit

    return [brentq(lambda t, a=a: expit(t) - a + 2 * t, -5, 5, xtol=1e-14) for a in targets]


def test_published_theorem_1_fails_for_the_sum_objective():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 10))
    y = rng.integers(0, 2, 200)
    p = np.full(200, 0.2)
    # The sum objective with lambda = 100 is the mean objective with lambda = 0.5.
    private, clean = flipped_students(X, y, p, 0.5, 200, 1)
    moved = model_sensitivity(private, clean[0])["mean"]
    bounds = hard_label_bounds(with_ones(X), p, 100.0, objective="sum")
    assert moved > 5 * bounds.published_first
    assert moved <= bounds.first


@pytest.mark.parametrize("n_classes", [2, 4])
def test_soft_label_bounds_hold(n_classes):
    rng = np.random.default_rng(0)
    X, k, sigma, lam = rng.normal(size=(200, 10)), 150, 50.0, 1.0
    shares = rng.dirichlet(np.ones(n_classes), 200)
    noisy = shares + sigma / k * rng.standard_normal((300, 200, n_classes))
    noisy += (1 - noisy.sum(axis=2, keepdims=True)) / n_classes
    clean = solve_students(X, shares[None], lam)[0]
    moved = model_sensitivity(solve_students(X, noisy, lam), clean)
    bounds = soft_label_bounds(with_ones(X), sigma, k, lam, n_classes=n_classes)
    assert moved["mean_square"] <= bounds.second
    assert moved["mean"] <= bounds.first < 2.5 * moved["mean"]


def test_bad_arguments_of_bounds_are_named():
    with pytest.raises(ValueError, match="regularization"):
        hard_label_bounds([[1.0]], [0.1], 0.0)
    with pytest.raises(ValueError, match="flip_probability"):
        hard_label_bounds([[1.0]], [1.1], 1.0)
    with pytest.raises(ValueError, match="objective"):
        hard_label_bounds([[1.0]], [0.1], 1.0, objective="median")
    with pytest.raises(ValueError, match="labels must hold"):
        hard_label_bounds([[1.0]], [0.1], 1.0, labels=[2])
    with pytest.raises(ValueError, match="n_teachers"):
        soft_label_bounds([[1.0]], 1.0, 0, 1.0)
