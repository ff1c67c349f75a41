"""Normalised rows keep their bound in integers, whatever floating point does."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from skfairdp._base import dense
from skfairdp.mechanisms import l1_sensitivity, l2_sensitivity, normalise
from skfairdp.mechanisms._normalise import FINEST_GRID, NORMS, add_noise, inner_radius, normalise_to_grid
from skfairdp.random import random_stream

GRIDS = {"l1": [1, 2, 64, 4096, 2**40], "l2": [32, 1000, 2**26], "minmax": [1, 512, 2**40], "clip": [1, 512, 2**40]}

# Any float at all, and the extremes on purpose: denormals, the largest, whole rows of them.
numbers = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True, width=64),
    st.sampled_from([0.0, -0.0, 5e-324, -5e-324, 1e-310, 2.2e-308, 1.7e308, -1.7e308, 1e-160, 1e160, 1.0, -1.0]),
)
matrices = hnp.arrays(np.float64, st.tuples(st.integers(1, 4), st.integers(1, 9)), elements=numbers)


def whole(Z):
    """The rows as Python integers; fails if a value is none."""
    assert np.array_equal(Z, np.round(Z))
    return [[int(value) for value in row] for row in Z]


@pytest.mark.parametrize(("norm", "grid"), [(norm, grid) for norm in NORMS for grid in GRIDS[norm]])
@settings(max_examples=40, deadline=None)
@given(X=matrices, seed=st.integers(0, 2**32 - 1))
def test_grid_rows_keep_their_bound_in_integers(norm, grid, X, seed):
    rows = whole(normalise_to_grid(X, norm, grid, random_stream(seed), clip_norm=0.7))
    finite = np.isfinite(X).all(axis=1)
    for x, z, usable in zip(X, rows, finite):
        if norm == "l1":
            assert sum(map(abs, z)) == (grid if usable and np.any(x) else 0)
            assert all(v == 0 or (v > 0) == (a > 0) for v, a in zip(z, x))
        elif norm == "l2":
            assert sum(v * v for v in z) <= grid * grid
        elif norm == "minmax":
            assert 0 <= min(z) <= max(z) <= grid
        else:
            assert -grid <= min(z) <= max(z) <= grid
        if not usable:
            assert not any(z)


@pytest.mark.parametrize("norm", NORMS)
@settings(max_examples=60, deadline=None)
@given(X=matrices)
def test_real_rows_keep_their_bound(norm, X):
    Y = normalise(X, norm, 3.0)
    assert np.isfinite(Y).all()
    usable = np.isfinite(X).all(axis=1) & np.any(X != 0, axis=1)
    if norm == "l1":
        np.testing.assert_allclose(np.abs(Y).sum(axis=1), 3.0 * usable, rtol=1e-12)
    elif norm == "l2":
        np.testing.assert_allclose(np.sqrt((Y**2).sum(axis=1)), 3.0 * usable, rtol=1e-12)
    elif norm == "minmax":
        assert (Y >= 0).all()
        assert (Y <= 3.0).all()
        varied = np.isfinite(X).all(axis=1) & (X.max(axis=1) > X.min(axis=1))
        assert np.array_equal(Y.max(axis=1), 3.0 * varied)
    else:
        assert np.abs(Y).max() <= 3.0


@pytest.mark.parametrize("norm", NORMS)
@settings(max_examples=40, deadline=None)
@given(
    X=hnp.arrays(np.float64, (3, 6), elements=st.floats(-1e3, 1e3, allow_subnormal=False)),
    grid=st.sampled_from([64, 1024, 2**20]),
    seed=st.integers(0, 2**32 - 1),
)
def test_rounding_moves_a_value_by_at_most_a_step(norm, X, grid, seed):
    Z = normalise_to_grid(X, norm, grid, random_stream(seed))
    radius = inner_radius(grid, 6) if norm == "l2" else grid
    assert np.abs(Z - radius * normalise(X, norm)).max() <= 1 + 1e-9 * grid


@pytest.mark.parametrize(("norm", "grid"), [("l1", 1), ("l1", 7), ("l2", 40), ("minmax", 1), ("clip", 3)])
def test_rounding_is_unbiased(norm, grid):
    x = np.array([0.1, 0.2, -0.7])
    Z = normalise_to_grid(np.tile(x, (200_000, 1)), norm, grid, random_stream(0))
    radius = inner_radius(grid, 3) if norm == "l2" else grid
    assert np.abs(Z.mean(axis=0) - radius * normalise(x[None], norm)[0]).max() < 4 * 0.5 / math.sqrt(200_000)
    nearest = np.round(radius * normalise(x[None], norm)[0])  # what plain rounding would give, every time
    assert np.abs(nearest - radius * normalise(x[None], norm)[0]).max() > 0.05


def test_rounding_each_value_alone_breaks_the_l1_bound():
    """The planted fault: nearest rounding of N x / ||x|| has another norm than N, so the sensitivity 2N is wrong."""
    X = np.random.default_rng(0).normal(size=(500, 20))
    nearest = np.round(64 * normalise(X, "l1"))
    assert np.abs(nearest).sum(axis=1).max() > 64
    assert (np.abs(normalise_to_grid(X, "l1", 64, random_stream(0))).sum(axis=1) == 64).all()


def test_dividing_by_a_plain_sum_would_lose_extreme_rows():
    X = np.array([[1.7e308, -1.7e308], [5e-324, 5e-324], [1e-200, 0.0]])
    with np.errstate(over="ignore"):
        assert (X[0] / np.abs(X[0]).sum()).tolist() == [0.0, -0.0]
        assert math.isinf(1 / 5e-324)
    assert normalise(X, "l1").tolist() == [[0.5, -0.5], [0.5, 0.5], [1.0, 0.0]]
    assert normalise(X, "minmax").tolist() == [[1.0, 0.0], [0.0, 0.0], [1.0, 0.0]]


def test_rows_outside_the_ball_are_pulled_back():
    # Equal coordinates are the worst case; on a coarse grid many rows leave the ball before the check.
    X = np.ones((20_000, 50))
    Z = normalise_to_grid(X, "l2", 12, random_stream(0))
    assert (np.square(Z).sum(axis=1) <= 144).all()
    u = random_stream(0).generator.random(X.shape)
    unchecked = np.floor(X * inner_radius(12, 50) / math.sqrt(50) + u)
    assert (np.square(unchecked).sum(axis=1) > 144).any()


@pytest.mark.parametrize("d", [1, 2, 4, 5])
def test_sensitivities_are_attained_and_not_exceeded(d):
    for norm in NORMS:
        corners = list(itertools.product([-2.0, 0.0, 2.0], repeat=d))
        Y = normalise(np.vstack([corners, np.random.default_rng(d).normal(size=(200, d))]), norm, 1.5)
        gaps = Y[:, None, :] - Y[None, :, :]
        one, two = np.abs(gaps).sum(axis=2).max(), np.sqrt(np.square(gaps).sum(axis=2).max())
        if norm == "minmax" and d == 1:
            assert one == 0.0  # a single value always becomes 0, and the bound stays safe
            continue
        assert one == pytest.approx(l1_sensitivity(norm, d, 1.5))
        assert two == pytest.approx(l2_sensitivity(norm, d, 1.5))


def test_noise_must_have_the_shape_of_the_data():
    with pytest.raises(ValueError, match=r"shape of the data, \(4, 3\); got \(4, 1\)"):
        add_noise(np.zeros((4, 3)), np.ones((4, 1)))
    with pytest.raises(ValueError, match="shape of the data"):
        add_noise(np.zeros((4, 1)), np.ones(4))


@pytest.mark.parametrize("norm", NORMS)
def test_grids_out_of_range_are_refused(norm):
    for grid in (0, 2 * FINEST_GRID[norm]):
        with pytest.raises(ValueError, match="grid"):
            normalise_to_grid(np.ones((1, 2)), norm, grid, random_stream(0))


def test_a_grid_too_coarse_for_the_width_is_refused():
    with pytest.raises(ValueError, match="1000 features"):
        inner_radius(10, 1000)


def test_sparse_blocks_become_dense():
    X = sparse.csr_matrix([[0.0, 2.0], [1.0, 0.0]])
    assert dense(X).tolist() == [[0.0, 2.0], [1.0, 0.0]]
