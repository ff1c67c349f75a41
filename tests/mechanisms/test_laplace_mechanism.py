"""Discrete Laplace noise has the probabilities that its proof needs; faults of a tenth are noticed."""

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from scipy import stats

from skfairdp.mechanisms import _laplace_mechanism as module
from skfairdp.mechanisms import (
    discrete_laplace,
    exact_laplace_epsilon,
    l1_sensitivity,
    laplace_mechanism,
    laplace_release,
    normalise,
)
from skfairdp.mechanisms._alias_table import WHOLE
from skfairdp.mechanisms._laplace_mechanism import LaplaceNoise, laplace_scale, laplace_tables
from skfairdp.mechanisms._normalise import normalise_to_grid
from skfairdp.random import random_stream

ALARM = 1e-4  # chance that a correct sampler fails a test of fit; seeds are fixed, so it either does or does not


def fit_p_value(sample, scale):
    """Chi-square p-value of a sample against the discrete Laplace distribution, in about 200 equally likely bins."""
    t = math.exp(-1 / scale)
    edges = np.unique(np.round(stats.laplace.ppf(np.linspace(0.005, 0.995, 199), scale=scale)))
    below = np.where(edges >= 0, 1 - t ** (np.abs(edges) + 1) / (1 + t), t ** np.abs(edges) / (1 + t))
    expected = np.diff(np.concatenate([[0], below, [1]])) * sample.size
    observed = np.bincount(np.searchsorted(edges, sample, side="left"), minlength=len(edges) + 1)
    return stats.chisquare(observed, expected).pvalue


def exact_mass(scale, k):
    t = (Decimal(-1) / Decimal(scale)).exp()
    return (1 - t) / (1 + t) * (Decimal(-abs(k)) / Decimal(scale)).exp()


@pytest.mark.parametrize("scale", [1 / 16, 0.7, 37.0, 512.0, 700.5, 1023.9])
def test_table_probabilities_are_right_to_2_to_the_minus_100(scale):
    table = LaplaceNoise(scale)._main
    with localcontext() as context:
        context.prec = 90
        inner = range(table.first + 1, table.first + len(table.counts) - 1)
        for k in list(inner)[:: max(1, len(inner) // 300)]:
            error = Decimal(table.counts[k - table.first]) / (exact_mass(scale, k) * WHOLE) - 1
            assert abs(error) < Decimal(2) ** -100
        t = (Decimal(-1) / Decimal(scale)).exp()
        top = table.first + len(table.counts) - 1
        tail = (Decimal(-top) / Decimal(scale)).exp() / (1 + t)
        assert abs(Decimal(table.counts[-1]) / (tail * WHOLE) - 1) < Decimal(2) ** -100


def test_coarse_counts_are_refused():
    with pytest.raises(ArithmeticError, match="lost more than"):
        module._to_counts([Decimal(1) - Decimal("1e-40"), Decimal("1e-40")])


@pytest.mark.parametrize("scale", [1024.0, 5000.3, 2.5e6, 3e8, 1e12])
def test_digits_multiply_to_the_probability_of_the_whole(scale):
    noise = LaplaceNoise(scale)
    m, main = noise._step, noise._main
    assert 512 <= scale / m < 1024
    rng = np.random.default_rng(0)
    with localcontext() as context:
        context.prec = 90
        for k in [0, -1, 1, m, -m, m - 1, -m - 1, *rng.integers(-3 * int(scale), 3 * int(scale), 60).tolist()]:
            q, r = divmod(k, m)
            if k < 0:
                r = m - 1 - r
            mass = Decimal(main.counts[q - main.first]) / WHOLE
            for weight, table in noise._digits:
                mass *= Decimal(table.counts[r // weight % len(table.counts)]) / WHOLE
            assert abs(mass / exact_mass(scale, k) - 1) < Decimal(2) ** -97


@pytest.mark.parametrize("scale", [3.0, 40.0, 512.0, 700.0, 1023.9, 1500.0, 1e6, 1e10])
def test_samples_fit_and_a_tenth_too_little_noise_does_not(scale):
    sample = discrete_laplace(150_000, scale, random_stream(7))
    assert fit_p_value(sample, scale) > ALARM
    assert fit_p_value(discrete_laplace(150_000, 0.9 * scale, random_stream(7)), scale) < 1e-12


def test_the_tail_has_no_end_and_the_right_shape():
    sample = discrete_laplace(3_000_000, 1023.9, random_stream(1))
    beyond = np.abs(sample[np.abs(sample) >= 8192]) - 8192
    expected = 3_000_000 * math.exp(-8192 / 1023.9)
    assert abs(beyond.size - expected) < 4 * math.sqrt(expected)
    assert stats.kstest(beyond, stats.expon(0, 1023.9).cdf).pvalue > ALARM
    assert stats.kstest(beyond, stats.expon(0, 0.8 * 1023.9).cdf).pvalue < 1e-6


def test_short_table_gives_the_whole_distribution(monkeypatch):
    # With 64 cells for a scale of 20 a fifth of all draws end in the tail, and some of those draw again.
    monkeypatch.setattr(module, "_CELLS", 64)
    noise, sample = LaplaceNoise(20.0), np.empty(400_000, dtype=np.int64)
    noise.fill(sample, random_stream(2))
    assert len(noise._main.counts) == 64
    assert np.abs(sample).max() > 150
    assert fit_p_value(sample, 20.0) > ALARM
    monkeypatch.setattr(LaplaceNoise, "_geometric", lambda self, n, stream: np.zeros(n, dtype=np.int64))
    noise.fill(sample, random_stream(2))
    assert fit_p_value(sample, 20.0) < 1e-12


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 8.0])
def test_no_outcome_tells_more_than_epsilon(epsilon):
    """The theorem itself, in integers: over the table, counts at distance 2N have a ratio of at most e**epsilon."""
    plan = laplace_mechanism(epsilon, "l1", 1)
    table = laplace_tables(plan.scale)._main
    with localcontext() as context:
        context.prec = 60
        bound = Decimal(epsilon).exp()
        inner = table.counts[1:-1]
        worst = max(Decimal(a) / b for a, b in zip(inner[: -2 * plan.grid], inner[2 * plan.grid :]))
        assert worst <= bound
        assert worst > Decimal(epsilon * (1 - 1e-12)).exp()  # and no more noise than that needs


def test_noise_is_independent():
    def dependence(noise):
        """Largest correlation, in standard errors, of magnitudes and of values between columns, rows and calls."""
        n = noise.shape[0] * noise.shape[1] // 2
        found = []
        for values in (noise.astype(float), np.abs(noise.astype(float))):
            flat = values.reshape(-1)
            pairs = [(values[:, 0::2], values[:, 1::2]), (values[0::2], values[1::2]), (flat[:n], flat[n : 2 * n])]
            found += [abs(np.corrcoef(a.reshape(-1), b.reshape(-1))[0, 1]) * math.sqrt(n) for a, b in pairs]
        return max(found)

    stream = random_stream(5)
    first, second = discrete_laplace((20_000, 10), 700.0, stream), discrete_laplace((20_000, 10), 700.0, stream)
    assert dependence(first) < 4.5
    assert dependence(np.vstack([first[:10_000], second[:10_000]])) < 4.5
    shared = np.broadcast_to(first[:, :1], first.shape)  # one value for all coordinates, as in DPNR's public code
    assert dependence(shared) > 100
    assert dependence(np.vstack([first[:10_000], first[:10_000]])) > 100


def test_os_entropy_never_repeats():
    a, b = (discrete_laplace((50, 20), 700.0, random_stream(None)) for _ in range(2))
    assert (a != b).mean() > 0.9
    stream = random_stream(None)
    assert (discrete_laplace(1000, 700.0, stream) != discrete_laplace(1000, 700.0, stream)).mean() > 0.9


def test_a_seed_repeats():
    a, b = (discrete_laplace((50, 20), 1e5, random_stream(3)) for _ in range(2))
    assert np.array_equal(a, b)


@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, math.inf, 1e-3, 1e14])
def test_bad_scales_are_refused_by_name(scale):
    with pytest.raises(ValueError, match="scale"):
        discrete_laplace(3, scale, random_stream(0))


# -- the release -------------------------------------------------------------------------------------------------


def odd_last_bit(y):
    """The event of the floating-point leak: y in [1, 2) is an odd multiple of 2**-52."""
    inside = y[(y >= 1) & (y < 2)]
    return np.count_nonzero(np.round(inside * 2.0**52) % 2 == 1) / y.size


def test_low_bits_tell_nothing():
    n, rng = 100_000, np.random.default_rng(0)
    assert odd_last_bit(1 + rng.laplace(scale=2.0, size=n)) == pytest.approx(0.066, abs=0.005)
    assert odd_last_bit(-1 + rng.laplace(scale=2.0, size=n)) == 0.0
    for x in (1.0, -1.0):
        y = laplace_release(np.full((n, 1), x), epsilon=1.0, stream=random_stream(0))
        assert odd_last_bit(y) == 0.0
        assert np.array_equal(y * 256, np.round(y * 256))  # the grid is the same whatever the record


def test_the_sign_of_a_zero_tells_nothing():
    X = np.tile([-1.0, -1e-3], (60_000, 1))
    Z = normalise_to_grid(X, "l1", 4096, random_stream(0))
    assert np.signbit(Z).all()  # before the noise a negative value may well be rounded to -0
    assert (normalise_to_grid(X, "l1", 256, random_stream(0)) == 0).any()
    for epsilon in (16.0, 1000.0):
        released = laplace_release(X, epsilon=epsilon, stream=random_stream(0))
        assert (released == 0).sum() > 20
        assert not np.signbit(released[released == 0]).any()


@pytest.mark.parametrize("norm", ["l1", "l2", "minmax", "clip"])
@pytest.mark.parametrize("epsilon", [1e-9, 1e-4, 0.5, 8.0, 1e4])
def test_noise_has_the_scale_that_epsilon_needs(norm, epsilon):
    X = np.random.default_rng(0).normal(size=(12_000, 5))
    plan = laplace_mechanism(epsilon, norm, 5)
    needed = l1_sensitivity(norm, 5) / epsilon
    assert needed <= plan.noise_scale <= needed * (1.005 if norm == "l2" else 1 + 1e-12)
    noise = laplace_release(X, epsilon=epsilon, norm=norm, stream=random_stream(1)) - normalise(X, norm)
    assert stats.kstest(noise.reshape(-1), stats.laplace(0, plan.noise_scale).cdf).pvalue > ALARM
    assert stats.kstest(0.9 * noise.reshape(-1), stats.laplace(0, plan.noise_scale).cdf).pvalue < 1e-12


@pytest.mark.parametrize("epsilon", [0.004, 0.05, 1.0, 8.0, 1e4])
def test_the_grid_keeps_the_table_between_512_and_1024(epsilon):
    plan = laplace_mechanism(epsilon, "l1", 20)
    assert 512 <= plan.scale < 1024
    assert plan.grid & (plan.grid - 1) == 0


def test_huge_epsilon_gets_no_less_noise_than_needed():
    for norm in ("l1", "l2", "minmax", "clip"):
        plan = laplace_mechanism(1e30, norm, 4)
        assert l1_sensitivity(norm, 4) / 1e30 < plan.noise_scale < 1e-4
    with pytest.raises(ValueError, match="epsilon"):
        laplace_mechanism(1e-15, "l1", 4)


def test_integer_scale_keeps_a_reserve_for_the_tables():
    s = laplace_scale(512.0, 1.0, 1000)
    assert 512 / s + 2.0**-100 * (12 * 1000 + 512 / (15 * s)) < 1.0
    with pytest.raises(ValueError, match="epsilon"):
        laplace_scale(512.0, 1e-12, 10_000)


def test_published_calibrations_and_what_they_cost():
    assert exact_laplace_epsilon("l1", 50, 1.0) == 1.0
    assert exact_laplace_epsilon("l2", 50, 1.0) == pytest.approx(7.071068, abs=5e-7)
    assert exact_laplace_epsilon("l2", 300, 8.0) == pytest.approx(138.564065, abs=5e-7)
    assert exact_laplace_epsilon("minmax", 768, 1.0) == 768.0
    assert laplace_mechanism(1.0, "l1", 50, calibration="published") == laplace_mechanism(1.0, "l1", 50)
    assert laplace_mechanism(2.0, "l2", 50, calibration="published").noise_scale == pytest.approx(1.0, rel=0.005)
    assert laplace_mechanism(2.0, "minmax", 50, calibration="published").noise_scale == pytest.approx(0.5)
    with pytest.raises(ValueError, match="norm"):
        exact_laplace_epsilon("clip", 5, 1.0)


def test_the_profile_of_one_coordinate():
    """delta(e) = 1 - exp((e - epsilon)/2): 0.221199 at epsilon 1, e 0.5 and 0.393469 at epsilon 8, e 7."""
    for epsilon, e, delta in ((1.0, 0.5, 0.221199), (8.0, 7.0, 0.393469)):
        plan = laplace_mechanism(epsilon, "l1", 1)
        table = laplace_tables(plan.scale)._main
        p = np.array([count / WHOLE for count in table.counts])
        shift = 2 * plan.grid
        got = np.maximum(p[:-shift] - math.exp(e) * p[shift:], 0).sum()
        assert got == pytest.approx(delta, abs=1e-3)  # the grid has 512 steps or more to the scale


@pytest.mark.parametrize("norm", ["l1", "l2", "minmax", "clip"])
def test_infinite_epsilon_returns_the_normalised_rows(norm):
    X = np.random.default_rng(0).normal(size=(30, 4))
    released = laplace_release(X, epsilon=math.inf, norm=norm, clip_norm=0.5, stream=random_stream(0))
    assert np.array_equal(released, normalise(X, norm, 0.5))


@pytest.mark.parametrize("norm", ["l1", "l2", "minmax", "clip"])
def test_a_broken_record_is_released_like_a_zero_record(norm):
    bad = np.array([[1.0, np.nan, 2.0], [np.inf, 1.0, 0.0], [0.0, -np.inf, np.nan]])
    a = laplace_release(bad, epsilon=1.0, norm=norm, stream=random_stream(4))
    b = laplace_release(np.zeros((3, 3)), epsilon=1.0, norm=norm, stream=random_stream(4))
    assert np.array_equal(a, b)
    assert np.isfinite(a).all()


@pytest.mark.parametrize("norm", ["l1", "l2", "minmax", "clip"])
def test_clip_norm_only_rescales(norm):
    X = np.random.default_rng(0).normal(size=(100, 4))
    a = laplace_release(X, epsilon=2.0, norm=norm, clip_norm=1.0, stream=random_stream(4))
    b = laplace_release(8 * X, epsilon=2.0, norm=norm, clip_norm=8.0, stream=random_stream(4))
    assert np.allclose(8 * a, b, rtol=1e-12)


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"epsilon": 1.0, "norm": "l3"}, "norm"),
        ({"epsilon": 1.0, "clip_norm": 0.0}, "clip_norm"),
        ({"epsilon": 1.0, "clip_norm": math.inf}, "clip_norm"),
        ({"epsilon": 1.0, "calibration": "hopeful"}, "calibration"),
    ],
)
def test_bad_arguments_are_refused(kwargs, message):
    with pytest.raises(ValueError, match=message):
        laplace_release(np.ones((2, 3)), stream=random_stream(0), **kwargs)


@pytest.mark.parametrize("X", [np.ones(3), np.ones((3, 0)), np.ones((2, 2, 2))])
def test_rows_and_columns_are_needed(X):
    with pytest.raises(ValueError, match="X must have shape"):
        laplace_release(X, epsilon=1.0, stream=random_stream(0))
