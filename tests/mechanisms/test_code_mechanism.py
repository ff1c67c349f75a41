"""The mechanism of learned codes: its closed form, its integers, and what the draws prove."""

import itertools
import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from skfairdp.mechanisms._code_mechanism import (
    _TOTAL,
    _cumulative_probabilities,
    code_mechanism,
    code_probabilities,
    draw_codes,
)
from skfairdp.random import random_stream


def integer_weights(s, epsilon):
    """The weights that draw_codes compares its word with, by plain Python integers."""
    weights = code_mechanism(s.shape[1], epsilon)
    rows = []
    for row in _cumulative_probabilities(s):
        rise = [min(math.floor(c * float(weights.spread)), weights.spread) for c in row[:-1]]
        rise = [0, *rise, weights.spread]
        rows.append([weights.floor + b - a for a, b in itertools.pairwise(rise)])
    return rows


@pytest.mark.parametrize(
    ("n_codes", "epsilon", "keep", "floor"),
    [
        (2, 1.0, 0.731059, None),
        (2, 2.0, 0.880797, None),
        (2, 4.0, 0.982014, None),
        (2, 8.0, 0.999665, None),
        (8, 4.0, 0.886360, 0.016234),
        (8, 8.0, 0.997657, 0.000335),
    ],
)
def test_closed_form_reference_values(n_codes, epsilon, keep, floor):
    p = code_probabilities(np.eye(n_codes), epsilon)
    assert p[0, 0] == pytest.approx(keep, abs=5e-7)
    assert p.sum(axis=1) == pytest.approx(np.ones(n_codes))
    if floor is not None:
        assert p[0, 1] == pytest.approx(floor, abs=5e-7)


def test_closed_form_at_the_ends():
    s = np.array([[0.25, 0.75, 0.0], [0.2, 0.3, 0.5]])
    assert code_probabilities(s, 1e-12) == pytest.approx(np.full((2, 3), 1 / 3))
    assert code_probabilities(s, math.inf) == pytest.approx(s)
    assert np.isfinite(code_probabilities(s, 1e6)).all()


@settings(max_examples=60, deadline=None)
@given(n_codes=st.integers(2, 500), epsilon=st.floats(1e-6, 200))
def test_exact_epsilon_never_exceeds_the_request(n_codes, epsilon):
    weights = code_mechanism(n_codes, epsilon)
    assert weights.n_codes * weights.floor + weights.spread == _TOTAL
    with localcontext() as context:
        context.prec = 120
        exact = (Decimal(weights.floor + weights.spread) / weights.floor).ln()
        assert exact <= Decimal(epsilon)
        assert exact <= Decimal(weights.epsilon)
    assert weights.epsilon <= epsilon
    if 1e-3 <= epsilon <= 20:  # and the rounding to integers gives next to nothing away
        assert weights.epsilon == pytest.approx(epsilon, rel=1e-8)


@settings(max_examples=100, deadline=None)
@given(
    epsilon=st.floats(0.01, 43),
    rows=st.lists(
        st.lists(
            st.one_of(st.floats(0, 1), st.sampled_from([math.nan, math.inf, -1.0, 1e308, 5e-324])),
            min_size=4,
            max_size=4,
        ),
        min_size=2,
        max_size=6,
    ),
)
def test_integer_weights_prove_the_guarantee_for_any_row(epsilon, rows):
    weights = code_mechanism(4, epsilon)
    drawn = integer_weights(np.array(rows), epsilon)
    for row in drawn:
        assert sum(row) == _TOTAL
        assert min(row) >= weights.floor
        assert max(row) <= weights.floor + weights.spread
    with localcontext() as context:
        context.prec = 120
        worst = max(Decimal(a[c]) / b[c] for a in drawn for b in drawn for c in range(4))
        assert worst.ln() <= Decimal(epsilon)


def chi_square_p(s, epsilon, codes):
    expected = code_probabilities(s[:1], epsilon)[0] * len(codes)
    return stats.chisquare(np.bincount(codes, minlength=s.shape[1]), expected).pvalue


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 6.0])
def test_draws_follow_the_closed_form_and_a_fault_is_seen(epsilon):
    s = np.tile([0.0, 0.2, 0.8, 0.0], (200_000, 1))
    codes = draw_codes(s, epsilon, random_stream(3))
    assert chi_square_p(s, epsilon, codes) > 1e-4
    # planted fault: 10 % too little noise must be rejected by the same test
    faulty = draw_codes(s, 1.1 * epsilon, random_stream(3))
    assert chi_square_p(s, epsilon, faulty) < 1e-4


def test_unsound_rows_are_drawn_uniformly():
    s = np.tile([[math.nan, 0.5], [0.0, 0.0], [math.inf, 1.0], [-0.1, 1.1]], (20_000, 1))
    codes = draw_codes(s, 8.0, random_stream(0)).reshape(-1, 4)
    assert np.abs(codes.mean(axis=0) - 0.5).max() < 0.02
    assert code_probabilities(s[:4], 8.0) == pytest.approx(np.full((4, 2), 0.5))


def test_draws_are_fresh_and_reproducible():
    s = np.full((2_000, 5), 0.2)
    stream = random_stream(1)
    first, second = draw_codes(s, 1.0, stream), draw_codes(s, 1.0, stream)
    assert (first != second).mean() > 0.5
    assert np.array_equal(first, draw_codes(s, 1.0, random_stream(1)))
    assert set(draw_codes(s, 1.0, random_stream(None))) == set(range(5))


def test_no_rows_and_bad_arguments():
    assert draw_codes(np.empty((0, 3)), 1.0, random_stream(0)).shape == (0,)
    with pytest.raises(ValueError, match="n_codes"):
        draw_codes(np.ones((3, 1)), 1.0, random_stream(0))
    with pytest.raises(ValueError, match="epsilon"):
        draw_codes(np.ones((3, 2)), math.inf, random_stream(0))
    with pytest.raises(ValueError, match="too small"):
        code_mechanism(3, 1e-19)
    with pytest.raises(ValueError, match="n_codes"):
        code_mechanism(1, 1.0)


@pytest.mark.parametrize("epsilon", [0.0, -1.0])
def test_epsilon_must_be_positive(epsilon):
    s = np.full((1, 2), 0.5)
    for use in (code_probabilities, lambda s, e: code_mechanism(2, e), lambda s, e: draw_codes(s, e, random_stream(0))):
        with pytest.raises(ValueError, match="epsilon"):
            use(s, epsilon)
