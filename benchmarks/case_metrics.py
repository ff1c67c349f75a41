"""Speed of metrics: group rates from one count table against fairlearn's MetricFrame."""

import warnings
from time import perf_counter

import numpy as np
from fairlearn.metrics import MetricFrame, false_positive_rate, true_positive_rate

from benchmarks import Quantities, Timings, case
from skfairdp.exceptions import ContinuousSensitiveFeatureWarning
from skfairdp.metrics import group_rates

N_ROWS, N_GROUPS = 1_000_000, 50


def _rates(*args, **settings):
    """Our group rates, without the warning that fifty different numbers may be measurements: here they are names."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ContinuousSensitiveFeatureWarning)
        return group_rates(*args, **settings)


def _data(names: bool):
    rng = np.random.default_rng(0)
    y_true = rng.integers(0, 2, N_ROWS)
    y_pred = np.where(rng.random(N_ROWS) < 0.8, y_true, 1 - y_true)
    groups = rng.integers(0, N_GROUPS, N_ROWS)
    return y_true, y_pred, np.array([f"group {g}" for g in range(N_GROUPS)], dtype=object)[groups] if names else groups


def _against_fairlearn(names: bool) -> Timings:
    y_true, y_pred, groups = _data(names)
    metrics = {"tpr": true_positive_rate, "fpr": false_positive_rate}

    def ours(rows: slice = slice(None)):
        return _rates(y_true[rows], y_pred[rows], sensitive_features=groups[rows])[["tpr_1", "fpr_1"]]

    few = slice(N_ROWS // 5)  # of the slow side, whose time grows with the rows

    def theirs():
        given = {"y_true": y_true[few], "y_pred": y_pred[few], "sensitive_features": groups[few]}
        return MetricFrame(metrics=metrics, **given).by_group

    np.testing.assert_allclose(ours(few).to_numpy(), theirs().to_numpy(dtype=float), rtol=1e-12)
    return Timings(ours=ours, other=theirs, ours_work=N_ROWS, other_work=N_ROWS // 5, repeats=3)


@case(
    "metrics", "two rates, 10^6 rows, 50 groups (integers), per row, against fairlearn.MetricFrame", speedup_at_least=50
)
def integer_groups():
    return _against_fairlearn(names=False)


@case(
    "metrics", "two rates, 10^6 rows, 50 groups (strings), per row, against fairlearn.MetricFrame", speedup_at_least=50
)
def named_groups():
    return _against_fairlearn(names=True)


@case("metrics", "1,000 bootstrap draws of all rates, 10^6 rows, 50 groups: seconds", at_most=1.5)
def bootstrap():
    y_true, y_pred, groups = _data(names=False)
    seconds = []
    for seed in range(3):
        start = perf_counter()
        _rates(y_true, y_pred, sensitive_features=groups, interval="bootstrap", random_state=seed)
        seconds.append(perf_counter() - start)
    return Quantities(ours=float(np.median(seconds)))
