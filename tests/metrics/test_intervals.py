"""Intervals: exact coverage of the binomial ones, and a bootstrap on tables that equals one on rows."""

import numpy as np
import pytest
from scipy import stats

from skfairdp.exceptions import UndefinedGroupMetricWarning
from skfairdp.metrics import _intervals as intervals
from skfairdp.metrics import bootstrap_interval, group_rates
from skfairdp.metrics._group_table import group_table

TRIALS = (1, 2, 5, 17, 60)
RATES = np.linspace(0.003, 0.997, 150)


def coverage(interval, n: int, level: float) -> np.ndarray:
    """Exact probability, for each true rate, that the interval of a binomial count holds the rate."""
    k = np.arange(n + 1)
    lower, upper = interval(k, np.full(n + 1, n), level)
    holds = (lower[:, None] <= RATES) & (upper[:, None] >= RATES)
    return (stats.binom.pmf(k[:, None], n, RATES) * holds).sum(axis=0)


def wald(k, n, level):
    p = k / n
    half = stats.norm.ppf((1 + level) / 2) * np.sqrt(p * (1 - p) / n)
    return p - half, p + half


@pytest.mark.parametrize("level", [0.8, 0.95])
@pytest.mark.parametrize("n", TRIALS)
def test_the_exact_interval_never_covers_less_than_its_level(n, level):
    def exact(k, n, level):
        return intervals.binomial_interval(k, n, level, "exact")

    assert coverage(exact, n, level).min() >= level - 1e-12
    assert coverage(wald, n, level).min() < level - 0.05, "the test must see an interval that is too short"


@pytest.mark.parametrize("n", [17, 60])
def test_wilson_covers_its_level_on_average(n):
    mean = coverage(lambda k, n, level: intervals.binomial_interval(k, n, level, "wilson"), n, 0.95).mean()
    assert mean == pytest.approx(0.95, abs=0.012)
    assert coverage(wald, n, 0.95).mean() < 0.93


@pytest.mark.parametrize(("method", "name"), [("exact", "exact"), ("wilson", "wilson")])
def test_binomial_intervals_equal_those_of_scipy(method, name):
    for n in TRIALS:
        lower, upper = intervals.binomial_interval(np.arange(n + 1), np.full(n + 1, n), 0.9, method)
        for k in range(n + 1):
            peer = stats.binomtest(k, n).proportion_ci(0.9, method=name)
            assert (lower[k], upper[k]) == pytest.approx((peer.low, peer.high), abs=1e-9)


def test_no_trial_no_interval():
    for method in ("exact", "wilson"):
        lower, upper = intervals.binomial_interval(np.array([0, 1]), np.array([0, 2]), 0.95, method)
        assert np.isnan([lower[0], upper[0]]).all()
        assert 0 <= lower[1] < 0.5 < upper[1] <= 1


def data(n=600, seed=0):
    rng = np.random.default_rng(seed)
    y_true = rng.integers(0, 3, n)
    y_pred = np.where(rng.random(n) < 0.7, y_true, rng.integers(0, 3, n))
    return y_true, y_pred, rng.choice(["a", "b", "c"], n, p=[0.6, 0.3, 0.1]), rng


def rows_bootstrap(y_true, y_pred, groups, weights, n_draws, rng):
    """Resample rows, and count each time: what the draws on the table stand for."""
    table = group_table(y_true, y_pred, sensitive_features=groups)
    cells = []
    for _ in range(n_draws):
        rows = rng.integers(0, len(y_true), len(y_true))
        resampled = group_table(
            y_true[rows],
            y_pred[rows],
            sensitive_features=groups[rows],
            sample_weight=None if weights is None else weights[rows],
            labels=[0, 1, 2],
        )
        cells.append(resampled.counts.ravel())
    return np.array(cells).reshape(n_draws, *table.counts.shape)


@pytest.mark.parametrize("weighted", [False, True])
def test_drawing_tables_is_drawing_rows(weighted):
    """Mean and standard deviation of every cell agree within 5 standard errors (54 comparisons)."""
    y_true, y_pred, groups, rng = data()
    weights = rng.exponential(size=len(y_true)) if weighted else None
    by_rows = rows_bootstrap(y_true, y_pred, groups, weights, 1500, rng).reshape(1500, -1)
    table = group_table(y_true, y_pred, sensitive_features=groups, sample_weight=weights)
    draws = intervals.bootstrap_statistic(table, lambda counts: counts, 1500, 1).reshape(1500, -1)

    def agrees(other):
        scale = by_rows.std(axis=0) + 1e-9
        shift = np.abs(by_rows.mean(axis=0) - other.mean(axis=0)) / scale
        spread = np.abs(other.std(axis=0) / scale - 1)
        return shift.max() < 5 * np.sqrt(2 / 1500) and spread.max() < 5 * np.sqrt(1 / 1500) * (2 if weighted else 1)

    assert agrees(draws)
    assert not agrees(1.1 * draws), "10 % too many rows must be seen"
    assert not agrees(draws.mean(axis=0) + 0.75 * (draws - draws.mean(axis=0))), (
        "a spread that is too small must be seen"
    )


def test_bootstrap_equals_binomial_for_large_groups():
    y_true, y_pred, groups, _ = data(n=20_000)
    boot = group_rates(y_true, y_pred, sensitive_features=groups, interval="bootstrap", random_state=0, n_draws=2000)
    exact = group_rates(y_true, y_pred, sensitive_features=groups, interval="wilson")
    for column in exact.filter(regex="_(lower|upper)$").columns:
        np.testing.assert_allclose(boot[column], exact[column], atol=0.004)


def test_equal_weights_give_the_unweighted_draws():
    y_true, y_pred, groups, _ = data()
    plain = bootstrap_interval("tpr_gap", y_true, y_pred, sensitive_features=groups, random_state=5)
    for weight in (1.0, 0.1, 7.3):
        weights = np.full(len(y_true), weight)
        other = bootstrap_interval(
            "tpr_gap", y_true, y_pred, sensitive_features=groups, sample_weight=weights, random_state=5
        )
        assert other == pytest.approx(plain, abs=1e-9)


@pytest.mark.parametrize(
    "metric",
    ["tpr_gap", "grms", "accuracy_gap", "demographic_parity_gap", "equalized_odds_gap", "worst_group_accuracy"],
)
def test_every_metric_has_an_interval_around_its_value(metric):
    import skfairdp.metrics

    y_true, y_pred, groups, _ = data(n=5000)
    value, lower, upper = bootstrap_interval(metric, y_true, y_pred, sensitive_features=groups, random_state=0)
    assert value == pytest.approx(
        getattr(skfairdp.metrics, metric)(y_true, y_pred, sensitive_features=groups), abs=1e-12
    )
    assert lower <= value <= upper
    assert 0 < upper - lower < 0.2
    narrow = bootstrap_interval(metric, y_true, y_pred, sensitive_features=groups, random_state=0, confidence_level=0.5)
    assert narrow.upper - narrow.lower < upper - lower


@pytest.mark.parametrize("metric", ["tpr_gap", "accuracy_gap", "demographic_parity_gap", "worst_group_accuracy"])
def test_an_interval_holds_its_own_value(metric):
    """Eight small groups of equal rates: every resampled gap is larger than the gap, which is 0."""
    groups = np.repeat(np.arange(8), 10)
    y_true, y_pred = np.ones(80, dtype=int), np.tile([1, 0], 40)
    y_true[::10] = 0
    y_pred[::10] = 1
    value, lower, upper = bootstrap_interval(metric, y_true, y_pred, sensitive_features=groups, random_state=0)
    assert lower <= value <= upper

    table = group_table(y_true, y_pred, sensitive_features=groups)
    statistic = intervals._statistic_of(metric, table.classes, "auto", None)
    draws = intervals.bootstrap_statistic(table, statistic, 1000, 0)
    ends = intervals.percentile_interval(draws, 0.95)
    assert not ends[0] <= value <= ends[1], "the percentiles alone must miss it, or this is no test"
    assert (lower, upper) == (min(ends[0], value), max(ends[1], value))


def test_the_seed_decides_and_blocks_do_not_matter(monkeypatch):
    y_true, y_pred, groups, _ = data()
    args = {"sensitive_features": groups, "interval": "bootstrap", "n_draws": 200}
    first = group_rates(y_true, y_pred, random_state=3, **args)
    monkeypatch.setattr(intervals, "_BLOCK_CELLS", 27 * 30)
    assert first.equals(group_rates(y_true, y_pred, random_state=3, **args))
    assert not first.equals(group_rates(y_true, y_pred, random_state=4, **args))


def test_percentiles_leave_undefined_draws_out():
    draws = np.array([[0.0, np.nan], [1.0, np.nan], [np.nan, np.nan], [2.0, np.nan], [3.0, np.nan]])
    lower, upper = intervals.percentile_interval(draws, 0.8)
    assert (lower[0], upper[0]) == pytest.approx(tuple(np.nanquantile(draws[:, 0], [0.1, 0.9])))
    assert np.isnan([lower[1], upper[1]]).all()


def test_undefined_rates_have_no_interval():
    for interval in ("exact", "bootstrap"):
        with pytest.warns(UndefinedGroupMetricWarning):
            table = group_rates(
                [1, 1, 0, 1], [1, 0, 0, 1], sensitive_features=list("aabb"), interval=interval, random_state=0
            )
        assert table.loc["a", ["tpr_0", "tpr_0_lower", "tpr_0_upper"]].isna().all()


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="metric"):
        bootstrap_interval("gap", [0, 1], [0, 1], sensitive_features=[0, 1])
    with pytest.raises(ValueError, match="average"):
        bootstrap_interval("tpr_gap", [0, 1], [0, 1], sensitive_features=[0, 1], average=None)
    with pytest.raises(TypeError, match="confidence_level"):
        bootstrap_interval("tpr_gap", [0, 1], [0, 1], sensitive_features=[0, 1], confidence_level="high")
