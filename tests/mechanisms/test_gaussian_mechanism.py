"""Rounded Gaussian noise keeps the error bounds that its proof uses; faults of a tenth are noticed."""

import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr

from skfairdp.accounting import gaussian_delta, gaussian_mu
from skfairdp.mechanisms import _gaussian_mechanism as module
from skfairdp.mechanisms import gaussian_mechanism, gaussian_release, normalise, rounded_gaussian
from skfairdp.mechanisms._alias_table import WHOLE
from skfairdp.mechanisms._gaussian_mechanism import (
    ETA,
    TABLE_REACH,
    TABLE_SCALE,
    TAU,
    GaussianNoise,
    gaussian_table,
    scale_of_level_sum,
)
from skfairdp.random import random_stream

ALARM = 1e-4  # chance that a correct sampler fails a test of fit; seeds are fixed, so it either does or does not


def fit_p_value(sample, scale):
    """Chi-square p-value of a sample against the rounded normal distribution, in about 200 equally likely bins."""
    edges = np.unique(np.round(stats.norm.ppf(np.linspace(0.005, 0.995, 199), scale=scale)))
    expected = np.diff(np.concatenate([[0], ndtr((edges + 0.5) / scale), [1]])) * sample.size
    observed = np.bincount(np.searchsorted(edges, sample, side="left"), minlength=len(edges) + 1)
    return stats.chisquare(observed, expected).pvalue


@pytest.mark.parametrize("scale", [16.0, 42.0, 300.0, TABLE_SCALE])
def test_masses_are_those_of_the_rounded_normal(scale):
    masses = module._rounded_normal_masses(scale)
    k = np.arange(min(len(masses), int(6 * scale)))
    expected = ndtr(-(k - 0.5) / scale) - ndtr(-(k + 0.5) / scale)  # upper tails: no cancellation away from 0
    np.testing.assert_allclose([float(mass) for mass in masses[: k.size]], expected, rtol=1e-11)
    with localcontext() as context:
        context.prec = 80
        # A series cut short, or a density off by a digit, would show here: the whole is 1 but for what lies beyond.
        assert abs(masses[0] + 2 * sum(masses[1:]) - 1) < Decimal("1e-44")


def test_pi_is_pi():
    with localcontext() as context:
        context.prec = 80
        assert str(module._decimal_pi())[:52] == "3.14159265358979323846264338327950288419716939937510"


@pytest.mark.parametrize("scale", [42.0, 555.0, TABLE_SCALE])
def test_tables_err_only_to_the_safe_side(scale):
    table, masses = gaussian_table(scale), module._rounded_normal_masses(scale)
    assert table.first == -TABLE_REACH
    counts = table.counts
    assert counts == counts[::-1]
    upper = counts[TABLE_REACH:]
    with localcontext() as context:
        context.prec = 80
        for k in range(0, TABLE_REACH + 1, 7):
            mass = masses[k] * WHOLE if k < len(masses) else Decimal(0)
            assert upper[k] >= mass * (1 - Decimal(ETA))
            if k <= 11 * scale:
                assert upper[k] <= mass * (1 + Decimal(ETA))
    assert 2 * sum(upper[math.floor(11 * scale) + 1 :]) <= TAU * WHOLE


@pytest.mark.parametrize("digits", [6, 28])
def test_total_variation_in_any_decimal_context(digits):
    """The bound that sums of levels account for; counts of 28 digits, Python's default, miss it by 2**45."""
    with localcontext(Context(prec=digits)):
        counts = gaussian_table.__wrapped__(300.0).counts[TABLE_REACH:]
        masses = module._rounded_normal_masses(300.0)
        careless = [math.ceil(mass * WHOLE) for mass in masses]
    exact = [Fraction(mass) * WHOLE for mass in masses] + [0] * (TABLE_REACH + 1 - len(masses))

    def distance(counts):
        return (abs(counts[0] - exact[0]) + 2 * sum(abs(a - b) for a, b in zip(counts[1:], exact[1:]))) / 2 / WHOLE

    assert distance(counts) <= module.TOTAL_VARIATION
    assert all(a >= b for a, b in zip(counts[1:], exact[1:]))
    assert distance(careless) > 2**40 * module.TOTAL_VARIATION


def test_a_table_with_wrong_masses_is_refused(monkeypatch):
    right = module._rounded_normal_masses(100.0)
    monkeypatch.setattr(module, "_rounded_normal_masses", lambda scale: [m * (1 - Decimal("1e-15")) for m in right])
    with pytest.raises(ArithmeticError, match="misses its error bounds"):
        gaussian_table.__wrapped__(100.0)
    monkeypatch.setattr(module, "_rounded_normal_masses", lambda scale: right)
    gaussian_table.__wrapped__(100.0)


def test_a_sum_of_levels_is_a_dithered_gaussian():
    """P(m X1 + X2 = k) equals P(round(m G1 + G2 + V) = k), V uniform on [-m/2, m/2], to the last bit of float64."""
    scale, m = 64.0, 4
    sigma, k = scale * scale_of_level_sum(m, 2), np.arange(-4000, 4001)
    j = np.arange(-1200, 1201)

    def rounded(i, s):
        i = np.abs(i)
        return ndtr(-(i - 0.5) / s) - ndtr(-(i + 0.5) / s)

    total = sum(rounded(i, scale) * rounded(k - m * i, scale) for i in j)

    def integral(x):  # of the normal distribution function, from which the mean over V follows
        return x * ndtr(x / sigma) + sigma * stats.norm.pdf(x / sigma)

    def dithered(x):
        return (integral(x + m / 2) - integral(x - m / 2)) / m

    np.testing.assert_allclose(total, dithered(k + 0.5) - dithered(k - 0.5), atol=1e-12)
    assert np.abs(total - rounded(k, sigma)).max() > 1e-9  # without the dither it is another distribution


@pytest.mark.parametrize("scale", [16.0, 300.0, TABLE_SCALE, 5000.0, 1e5, 1e7])
def test_samples_fit_and_a_tenth_too_little_noise_does_not(scale):
    sample = rounded_gaussian(150_000, scale, random_stream(11))
    assert fit_p_value(sample, scale) > ALARM
    assert fit_p_value(np.round(0.9 * sample), scale) < 1e-12


def test_noise_is_independent():
    stream = random_stream(3)
    a, b = (rounded_gaussian((50_000, 2), TABLE_SCALE, stream) for _ in range(2))
    error = 1 / math.sqrt(50_000)
    correlations = np.abs(np.corrcoef(np.hstack([a, b]).T) - np.eye(4))
    assert correlations.max() < 4.5 * error
    shared = np.column_stack([a[:, 0], a[:, 0]])
    assert np.corrcoef(shared.T)[0, 1] > 100 * error
    assert (
        rounded_gaussian(100, 500.0, random_stream(None)) != rounded_gaussian(100, 500.0, random_stream(None))
    ).any()


@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, math.inf, 1.0])
def test_bad_scales_are_refused_by_name(scale):
    with pytest.raises(ValueError, match="scale"):
        rounded_gaussian(3, scale, random_stream(0))


# -- the release -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("epsilon", "delta", "ratio"),
    [
        (0.1, 1e-5, 30.749566),
        (0.5, 1e-5, 7.031827),
        (1.0, 1e-5, 3.730632),
        (1.0, 1e-10, 5.867778),
        (2.0, 1e-6, 2.230476),
        (4.0, 1e-5, 1.081162),
        (8.0, 1e-5, 0.600229),
        (8.0, 1e-10, 0.833989),
        (16.0, 1e-5, 0.344177),
        (50.0, 1e-6, 0.156593),
    ],
)
@pytest.mark.parametrize("d", [1, 50, 768])
def test_noise_is_the_least_that_epsilon_and_delta_allow(epsilon, delta, ratio, d):
    plan = gaussian_mechanism(epsilon, delta, d)
    assert ratio * (1 - 1e-6) <= plan.noise_scale / 2 <= ratio * 1.006
    if plan.noise.levels == 1:
        slack = d * TAU + 2 * d * ETA * delta
        assert 11 * plan.noise.table_scale + 2 * plan.grid <= TABLE_REACH
    else:
        slack = (1 + math.exp(epsilon)) * d * plan.noise.levels * module.TOTAL_VARIATION
    # The integer mechanism itself, not the formula: its own sensitivity over its own scale, plus the tables' slack.
    assert gaussian_delta(epsilon - 3 * d * ETA, 2 * plan.grid / plan.noise.scale) + slack <= delta
    assert gaussian_delta(epsilon, 1.1 * 2 * plan.grid / plan.noise.scale) > delta  # a tenth less noise would not do


@pytest.mark.parametrize(("epsilon", "delta"), [(1e-6, 1e-9), (0.3, 1e-5), (8.0, 1e-5), (500.0, 1e-8), (1e4, 1e-5)])
def test_released_noise_has_the_planned_scale(epsilon, delta):
    X = np.random.default_rng(0).normal(size=(12_000, 5))
    plan = gaussian_mechanism(epsilon, delta, 5, clip_norm=2.0)
    released = gaussian_release(X, epsilon=epsilon, delta=delta, clip_norm=2.0, stream=random_stream(1))
    noise = (released - normalise(X, "l2", 2.0)).reshape(-1)
    assert stats.kstest(noise, stats.norm(0, plan.noise_scale).cdf).pvalue > ALARM
    assert stats.kstest(0.9 * noise, stats.norm(0, plan.noise_scale).cdf).pvalue < 1e-12
    assert plan.noise_scale >= 4.0 / gaussian_mu(epsilon, delta)


def test_levels_are_added_only_where_the_grid_needs_them():
    assert gaussian_mechanism(8.0, 1e-5, 50).noise == GaussianNoise(TABLE_SCALE)
    fine = gaussian_mechanism(0.1, 1e-5, 50)
    assert fine.noise.levels == 2
    assert fine.grid >= 512
    assert gaussian_mechanism(8.0, 1e-5, 10**6).grid >= 8000


def test_infinite_epsilon_returns_the_normalised_rows():
    X = np.random.default_rng(0).normal(size=(30, 4))
    assert np.array_equal(
        gaussian_release(X, epsilon=math.inf, delta=1e-5, clip_norm=0.5, stream=random_stream(0)),
        normalise(X, "l2", 0.5),
    )


def test_a_broken_record_is_released_like_a_zero_record():
    bad = np.array([[1.0, np.nan, 2.0], [np.inf, 1.0, 0.0]])
    a = gaussian_release(bad, epsilon=1.0, delta=1e-5, stream=random_stream(4))
    b = gaussian_release(np.zeros((2, 3)), epsilon=1.0, delta=1e-5, stream=random_stream(4))
    assert np.array_equal(a, b)


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"epsilon": 0.0, "delta": 1e-5}, "epsilon"),
        ({"epsilon": math.nan, "delta": 1e-5}, "epsilon"),
        ({"epsilon": 1.0, "delta": 0.0}, "delta"),
        ({"epsilon": 1.0, "delta": 1.0}, "delta"),
        ({"epsilon": 1.0, "delta": 1e-30}, "delta"),
        ({"epsilon": 1e-12, "delta": 1e-26}, "epsilon"),
        ({"epsilon": 1.0, "delta": 1e-5, "clip_norm": -1.0}, "clip_norm"),
    ],
)
def test_bad_arguments_are_refused(kwargs, message):
    with pytest.raises(ValueError, match=message):
        gaussian_release(np.ones((2, 3)), stream=random_stream(0), **kwargs)
