"""Bounds for the largest difference: against tables and scipy, and by exact enumeration."""

import numpy as np
import pytest
from scipy import stats

from skfairdp.metrics import _simultaneous_bounds as bounds


@pytest.mark.parametrize("n_groups", [2, 3, 8, 13, 50])
def test_the_range_is_that_of_scipy(n_groups):
    for q in (0.5, 2.0, 3.6, 5.5):
        ours = bounds.range_probability(q / np.sqrt(2), n_groups)
        assert ours == pytest.approx(stats.studentized_range.cdf(q, n_groups, np.inf), abs=1e-8)


def test_the_multiplier_of_two_groups_is_the_normal_one():
    assert bounds.range_multiplier(0.95, (2,)) == pytest.approx(1.959964, abs=1e-5)
    assert bounds.normal_multiplier(0.025) == pytest.approx(1.959964, abs=1e-5)
    assert bounds.range_multiplier(0.95, (2, 2)) == pytest.approx(stats.norm.ppf((1 + 0.95**0.5) / 2), abs=1e-5)
    assert bounds.range_multiplier(0.95, (5,)) == pytest.approx(3.858 / np.sqrt(2), abs=1e-3)  # Tukey's table


def test_the_interval_of_a_rate_holds_wilsons():
    """Agresti and Coull's has the same centre and is nowhere shorter; with many rows they are the same."""
    for k, n in ((0, 12), (5, 12), (12, 12), (4000, 10_000)):
        lower, upper = bounds.rate_ends(np.array([k / n]), np.array([n]), bounds.normal_multiplier(0.025))
        peer = stats.binomtest(k, n).proportion_ci(0.95, method="wilson")
        assert lower[0] <= peer.low + 1e-12
        assert peer.high <= upper[0] + 1e-12
        if n > 1000:
            assert (lower[0], upper[0]) == pytest.approx((peer.low, peer.high), abs=1e-5)
    # By hand: 10 of 20 and z = 2 give 12 of 24, whose standard error is 0.5 / sqrt(24).
    ends = bounds.rate_ends(np.array([0.5]), np.array([20]), 2.0)
    assert (ends[0][0], ends[1][0]) == pytest.approx((0.5 - 1 / np.sqrt(24), 0.5 + 1 / np.sqrt(24)))


@pytest.mark.parametrize(("counts", "ends"), [((56, 70, 48, 80), (0.0524, 0.3339)), ((9, 10, 3, 10), (0.1705, 0.8090))])
def test_pairs_are_close_to_the_published_examples(counts, ends):
    """Newcombe (1998), table II, method 10, which takes slightly shorter intervals of the rates."""
    a, m, b, n = counts
    rates, sizes, z = np.array([a / m, b / n]), np.array([m, n]), bounds.normal_multiplier(0.025)
    lower, upper = bounds.gap_lower(rates, sizes, z), bounds.gap_upper(rates, sizes, z)
    assert lower <= ends[0] + 1e-4
    assert upper >= ends[1] - 1e-4
    assert upper - lower < 1.1 * (ends[1] - ends[0])


def two_group_coverage(ends, n: tuple[int, int]) -> np.ndarray:
    """Exact probability, for pairs of true rates, that the interval of |p - q| holds it."""
    first, second = np.arange(n[0] + 1), np.arange(n[1] + 1)
    intervals = np.array([[ends(np.array([a / n[0], b / n[1]]), np.array(n)) for b in second] for a in first])
    chances = []
    for p in np.linspace(0.03, 0.97, 12):
        for q in np.linspace(0.03, 0.97, 12):
            true = abs(p - q)
            holds = (intervals[..., 0] <= true + 1e-12) & (intervals[..., 1] >= true - 1e-12)
            weight = np.outer(stats.binom.pmf(first, n[0], p), stats.binom.pmf(second, n[1], q))
            chances.append((weight * holds).sum())
    return np.array(chances)


def test_two_groups_are_covered_exactly():
    z = bounds.normal_multiplier(0.025)

    def ours(rates, sizes):
        return bounds.gap_lower(rates, sizes, z), bounds.gap_upper(rates, sizes, z)

    def wald(rates, sizes):
        gap, half = abs(rates[0] - rates[1]), z * np.sqrt((rates * (1 - rates) / sizes).sum())
        return max(0.0, gap - half), gap + half

    for sizes in ((25, 15), (10, 20), (12, 60)):
        coverage = two_group_coverage(ours, sizes)
        assert coverage.min() > 0.93
        assert coverage.mean() < 0.985, "an interval that is always right is too long"
    assert two_group_coverage(wald, (25, 15)).min() < 0.85, "the test must see an interval that is too short"


def test_ratio_and_difference_agree():
    """The bounds of a ratio hold 1 where those of the difference hold 0."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        sizes = rng.integers(10, 60, 2)
        rates = rng.binomial(sizes, rng.random(2)) / sizes
        z = rng.uniform(1, 3.5)
        lower, upper = bounds.ratio_ends(rates, sizes, z)
        below = bounds.pair_lower(rates, sizes, z)
        assert (upper[0, 1] < 1) == (below[1, 0] > 1e-12)
        assert (lower[0, 1] > 1) == (below[0, 1] > 1e-12)
        if rates[1] > 0:
            assert lower[0, 1] <= rates[0] / rates[1] + 1e-12 <= upper[0, 1] + 1e-9


def test_ratio_bounds_of_many_rows_are_the_usual_ones():
    """Logarithms of rates: 30 % of 10,000 over 60 % of 8,000."""
    rates, sizes = np.array([0.3, 0.6]), np.array([10_000, 8_000])
    lower, upper = bounds.ratio_ends(rates, sizes, 1.96)
    error = 1.96 * np.sqrt(((1 - rates) / (rates * sizes)).sum())
    assert (lower[0, 1], upper[0, 1]) == pytest.approx((0.5 * np.exp(-error), 0.5 * np.exp(error)), abs=2e-4)


def test_shrinking_depends_on_what_is_noise():
    sizes = np.full(8, 100)
    alike = np.array([0.45, 0.55, 0.48, 0.52, 0.5, 0.44, 0.56, 0.5])  # no further apart than noise carries them
    assert np.ptp(bounds.shrink(alike, sizes)) < 0.2 * np.ptp(alike)
    apart = np.linspace(0.1, 0.9, 8)
    assert np.ptp(bounds.shrink(apart, sizes)) > 0.95 * np.ptp(apart)
    # Of two equal rates, the one of fewer rows is drawn further.
    one, other, *_ = bounds.shrink(np.array([0.8, 0.8, 0.4, 0.5]), np.array([20, 2000, 2000, 2000]))
    assert 0.4 < one < other <= 0.8


def exact_p_value(counts: tuple[int, int], sizes: tuple[int, int]) -> float:
    """Probability, by enumeration of all permutations, of a difference that is no smaller."""
    successes, first = sum(counts), np.arange(max(0, sum(counts) - sizes[1]), min(sizes[0], sum(counts)) + 1)
    gaps = np.abs(first / sizes[0] - (successes - first) / sizes[1])
    chances = stats.hypergeom.pmf(first, sum(sizes), successes, sizes[0])
    return float(chances[gaps >= abs(counts[0] / sizes[0] - counts[1] / sizes[1]) - 1e-9].sum())


def test_permutations_are_exact_for_small_counts():
    for counts, sizes in (((9, 3), (12, 11)), ((5, 1), (10, 14)), ((2, 2), (10, 40))):
        family = np.array([np.divide(counts, sizes)]), np.array([sizes]), np.ones(1)
        p_value = bounds.permutation_p_value([family], np.random.default_rng(0))
        exact = exact_p_value(counts, sizes)
        assert p_value == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / 1999) + 0.001)


def test_permutations_stay_within_strata():
    """All of the difference is between the strata: within them the groups are the same."""
    rates, sizes = np.array([[0.9, 0.9], [0.1, 0.1]]), np.array([[180, 20], [20, 180]])
    generator = np.random.default_rng(0)
    assert bounds.permutation_p_value([(rates, sizes, np.array([0.5, 0.5]))], generator) > 0.9
    crude = np.array([[(0.9 * 180 + 0.1 * 20) / 200, (0.9 * 20 + 0.1 * 180) / 200]])
    assert bounds.permutation_p_value([(crude, np.array([[200, 200]]), np.ones(1))], generator) < 0.001


def test_many_groups_are_compared_with_their_mean(monkeypatch):
    """One group among two hundred that is apart is seen."""
    rng = np.random.default_rng(0)
    sizes, one = np.full((1, 200), 80), np.ones(1)
    alike = rng.binomial(sizes, 0.5) / sizes
    apart = alike.copy()
    apart[0, 7] = 0.9
    assert bounds.permutation_p_value([(alike, sizes, one)], rng) > 0.05
    assert bounds.permutation_p_value([(apart, sizes, one)], rng) < 0.01
    monkeypatch.setattr(bounds, "_MOST_GROUPS_IN_PAIRS", 1)  # of two groups the distances are the difference
    family = np.array([[9 / 12, 3 / 11]]), np.array([[12, 11]]), one
    assert bounds.permutation_p_value([family], rng) == pytest.approx(exact_p_value((9, 3), (12, 11)), abs=0.02)


def test_everybody_or_nobody_succeeds():
    for rate in (0.0, 1.0):
        family = (np.full((1, 3), rate), np.full((1, 3), 20.0), np.ones(1))
        assert bounds.permutation_p_value([family], np.random.default_rng(0)) == 1.0


def test_blocks_do_not_matter(monkeypatch):
    rng = np.random.default_rng(0)
    rates, variances = rng.random((50, 7)), rng.random(7)
    whole = bounds._studentised_range(rates, variances)
    monkeypatch.setattr(bounds, "_BLOCK_PAIRS", 100)
    np.testing.assert_array_equal(bounds._studentised_range(rates, variances), whole)
