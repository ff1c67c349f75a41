"""Selection rules on hand-made tables, against a slow version, and on results of every shape."""

import copy
import math
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skfairdp.model_selection import DistanceToOptimum, ParetoFront, RelaxationThreshold, pareto_front

RULES = [RelaxationThreshold(0.01), DistanceToOptimum(), ParetoFront()]

#: accuracy, gap, leakage; the best choice changes with the threshold: 0 -> 0, 0.01 -> 2, 0.05 -> 4
TABLE = {
    "accuracy": [0.90, 0.895, 0.89, 0.87, 0.85],
    "tpr_gap": [0.20, 0.15, 0.05, 0.06, 0.01],
    "leakage": [0.90, 0.80, 0.70, 0.60, 0.80],
}


def as_cv_results(table, negate=("tpr_gap", "leakage")):
    """What a search makes of it: mean_test columns in which larger is better."""
    results = {f"mean_test_{k}": np.array(v) * (-1 if k in negate else 1) for k, v in table.items()}
    n = len(next(iter(table.values())))
    return {"params": [{"C": k} for k in range(n)], "mean_fit_time": np.zeros(n), **results}


SHAPES = {
    "dict": dict,
    "frame": pd.DataFrame,
    "frame with an index": lambda t: pd.DataFrame(t, index=[f"run {k}" for k in range(len(t["accuracy"]))]),
    "polars": pl.DataFrame,
    "cv_results_": as_cv_results,
    "frame of cv_results_": lambda t: pd.DataFrame(as_cv_results(t)),
}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize(("threshold", "chosen"), [(0, 0), (0.005, 1), (0.01, 2), (0.03, 2), (0.05, 4), (math.inf, 4)])
def test_the_fairest_in_the_band(shape, threshold, chosen):
    assert RelaxationThreshold(threshold)(shape(TABLE)) == chosen


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_the_choice_is_a_plain_int(shape):
    for rule in RULES:
        assert type(rule(shape(TABLE))) is int


def slow_choice(accuracy, gap, leakage, threshold):
    """The definition, in exact fractions of a thousand."""
    usable = [k for k in range(len(accuracy)) if accuracy[k] is not None and gap[k] is not None]
    best = max(accuracy[k] for k in usable)
    band = [k for k in usable if best - threshold <= accuracy[k] <= best]
    return min(band, key=lambda k: (gap[k], leakage[k], -accuracy[k], k))


@st.composite
def tables(draw):
    n = draw(st.integers(1, 12))

    def column(low, high, missing=True):
        value = st.integers(low, high)
        return draw(st.lists(st.one_of(st.none(), value) if missing else value, min_size=n, max_size=n))

    accuracy, gap = column(800, 830), column(0, 5)
    accuracy[0], gap[0] = accuracy[0] or 815, gap[0] or 0
    return accuracy, gap, column(500, 503, missing=False), draw(st.integers(0, 20))


def thousandths(column):
    return np.array([np.nan if v is None else v / 1000 for v in column])


def rule_agrees(rule_of_threshold, data) -> bool:
    accuracy, gap, leakage, threshold = data
    results = as_cv_results(
        {"accuracy": thousandths(accuracy), "tpr_gap": thousandths(gap), "leakage": thousandths(leakage)}
    )
    return rule_of_threshold(threshold / 1000)(results) == slow_choice(*data)


@settings(max_examples=100, deadline=None)
@given(tables())
def test_relaxation_threshold_equals_its_definition(data):
    assert rule_agrees(lambda t: RelaxationThreshold(t, privacy="leakage"), data)


def test_planted_faults_are_seen():
    class OpenBand:  # leaves rounding to chance: 0.9 - 0.01 > 0.89
        def __init__(self, threshold):
            self.threshold = threshold

        def __call__(self, results):
            accuracy, fairness = results["mean_test_accuracy"], results["mean_test_tpr_gap"]
            band = accuracy >= np.nanmax(accuracy) - self.threshold
            return int(np.nanargmax(np.where(band, fairness, np.nan)))

    faults = [OpenBand, lambda t: RelaxationThreshold(t), lambda t: RelaxationThreshold(0.0, privacy="leakage")]
    rng = np.random.default_rng(0)
    for fault in faults:
        agreed = []
        for _ in range(200):
            n = rng.integers(2, 9)
            data = rng.integers(800, 830, n), rng.integers(0, 5, n), rng.integers(500, 503, n)
            agreed.append(rule_agrees(fault, (*(column.tolist() for column in data), int(rng.integers(0, 20)))))
        assert not all(agreed)


@pytest.mark.parametrize(("best", "threshold", "edge"), [(0.9, 0.01, 0.89), (0.3, 0.1, 0.2), (0.85, 0.05, 0.8)])
def test_band_includes_its_lower_end_despite_rounding(best, threshold, edge):
    table = {"accuracy": [best, edge, edge - 1e-6], "tpr_gap": [0.3, 0.1, 0.0]}
    assert RelaxationThreshold(threshold)(table) == 1


def test_ties_go_to_privacy_then_accuracy_then_order():
    table = {"accuracy": [0.90, 0.895, 0.899, 0.899], "tpr_gap": [0.1] * 4, "leakage": [0.9, 0.6, 0.7, 0.7]}
    assert RelaxationThreshold(0.01)(table) == 0
    assert RelaxationThreshold(0.01, privacy="leakage")(table) == 1
    assert RelaxationThreshold(0.001, privacy="leakage")(table) == 2
    table["leakage"][1] = float("nan")  # a privacy that is not known loses the tie
    assert RelaxationThreshold(0.01, privacy="leakage")(table) == 2


def test_equal_up_to_rounding_is_a_tie():
    table = {"accuracy": [0.90, 0.90], "tpr_gap": [0.1 + 0.2, 0.3], "leakage": [0.5, 0.9]}
    assert table["tpr_gap"][0] != table["tpr_gap"][1]
    assert RelaxationThreshold(0.01, privacy="leakage")(table) == 0


def test_privacy_may_be_a_parameter():
    results = as_cv_results({"accuracy": [0.9, 0.9, 0.9], "tpr_gap": [0.1, 0.1, 0.1]})
    results["param_noise__epsilon"] = np.ma.MaskedArray([8.0, 1.0, None], mask=[False, False, True], dtype=object)
    assert RelaxationThreshold(0.01, privacy="param_noise__epsilon")(results) == 1


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_nan_candidates_are_skipped_and_all_nan_raises(rule):
    table = {"accuracy": [np.nan, 0.99, 0.90, np.inf, 0.89], "tpr_gap": [0.0, np.nan, 0.2, 0.0, 0.05]}
    assert rule(as_cv_results(table)) in (2, 4)
    explained = rule.explain(as_cv_results(table))
    skipped = explained["verdict"].str.startswith("skipped")
    assert skipped.tolist() == [True, True, False, True, False]
    everything = {"accuracy": [0.9, np.nan], "tpr_gap": [np.nan, 0.1]}
    with pytest.raises(ValueError, match="tpr_gap"):
        rule(everything)


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_of_a_halving_search_only_the_last_iteration_counts(rule):
    results = as_cv_results({"accuracy": [0.99, 0.90, 0.80, 0.81, 0.79], "tpr_gap": [0.0, 0.0, 0.3, 0.2, 0.4]})
    results["iter"] = np.array([0, 0, 1, 1, 1])
    results["n_resources"] = np.array([10, 10, 30, 30, 30])
    assert rule(results) == 3
    assert (rule.explain(results)["verdict"][:2] == "skipped: eliminated in an earlier iteration").all()
    del results["iter"]
    assert rule(results) == 0


def test_explain_says_what_was_given_up_and_won():
    table = RelaxationThreshold(0.03, privacy="leakage").explain(as_cv_results(TABLE))
    assert list(table.columns) == [
        "params",
        "accuracy",
        "tpr_gap",
        "leakage",
        "in_band",
        "accuracy_given_up",
        "gap_won",
        "chosen",
        "verdict",
    ]
    np.testing.assert_allclose(table["tpr_gap"], TABLE["tpr_gap"])
    np.testing.assert_allclose(table["leakage"], TABLE["leakage"])
    np.testing.assert_allclose(table["accuracy_given_up"], [0, 0.005, 0.01, 0.03, 0.05], atol=1e-12)
    np.testing.assert_allclose(table["gap_won"], [0, 0.05, 0.15, 0.14, 0.19], atol=1e-12)
    assert table["in_band"].tolist() == [True, True, True, True, False]
    assert table["chosen"].tolist() == [False, False, True, False, False]
    assert table["verdict"].tolist()[2:] == ["chosen", "in the band, but not chosen", "accuracy below the band"]


def test_gap_won_starts_at_fairest_of_most_accurate():
    table = {"accuracy": [0.9, 0.9, 0.89], "tpr_gap": [0.3, 0.2, 0.1]}
    np.testing.assert_allclose(RelaxationThreshold(0.01).explain(table)["gap_won"], [-0.1, 0.0, 0.1])


@pytest.mark.parametrize("rule", RULES, ids=repr)
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_explain_agrees_with_the_choice(rule, shape):
    explained = rule.explain(shape(TABLE))
    assert explained.index[explained["chosen"]].tolist() == [rule(shape(TABLE))]
    assert explained.index.name == "candidate"


def test_a_fairness_that_should_be_large():
    table = {"accuracy": [0.9, 0.895], "worst_group_accuracy": [0.5, 0.7]}
    rule = RelaxationThreshold(0.01, fairness="worst_group_accuracy")
    assert rule(table) == rule(as_cv_results(table)) == 1
    assert rule.explain(table)["gap_won"].tolist() == pytest.approx([0, 0.2])


def test_directions_are_read_from_names_or_given():
    table = {"accuracy": [0.9, 0.9], "oddness": [0.2, 0.1]}
    with pytest.raises(ValueError, match="oddness"):
        RelaxationThreshold(fairness="oddness")(table)
    assert RelaxationThreshold(fairness="oddness", directions={"oddness": "min"})(table) == 1
    assert RelaxationThreshold(fairness="oddness", directions={"oddness": "max"})(table) == 0
    results = as_cv_results(table, negate=())  # scikit-learn's convention: larger is better
    assert RelaxationThreshold(fairness="oddness")(results) == 0
    negative = as_cv_results(table, negate=("oddness",))
    assert RelaxationThreshold(fairness="oddness")(negative) == 1
    assert RelaxationThreshold(fairness="oddness").explain(negative)["oddness"].tolist() == [0.2, 0.1]


def test_gap_that_is_not_negated_is_refused():
    results = as_cv_results(TABLE, negate=())
    with pytest.raises(ValueError, match="mean_test_tpr_gap"):
        RelaxationThreshold()(results)
    assert RelaxationThreshold(0.01, directions={"tpr_gap": "min"})(results) == 2


# --- distance ------------------------------------------------------------------------------------------------------


def test_distance_to_the_best_of_each():
    table = {"accuracy": [0.9, 0.87, 0.6], "tpr_gap": [0.2, 0.05, 0.01]}
    explained = DistanceToOptimum().explain(table)
    np.testing.assert_allclose(explained["distance"], [0.19, math.hypot(0.03, 0.04), 0.3])
    assert DistanceToOptimum()(table) == 1


def test_distance_to_a_given_point_with_scale_and_weights():
    table = {"accuracy": [0.9, 0.7], "tpr_gap": [0.3, 0.05], "code_length": [100.0, 900.0]}
    for shape in (dict, lambda t: as_cv_results(t, negate=("tpr_gap",))):
        to_ideal = DistanceToOptimum(optimum={"accuracy": 1.0, "tpr_gap": 0.0})
        expected = [math.hypot(0.1, 0.3), math.hypot(0.3, 0.05)]
        np.testing.assert_allclose(to_ideal.explain(shape(table))["distance"], expected)
        weighted = DistanceToOptimum(optimum={"accuracy": 1.0, "tpr_gap": 0.0}, weights={"tpr_gap": 0.1})
        assert (to_ideal(shape(table)), weighted(shape(table))) == (1, 0)
        scaled = DistanceToOptimum(privacy="code_length", scale="range")
        np.testing.assert_allclose(scaled.explain(shape(table))["distance"], [math.sqrt(2), 1.0])


def test_a_metric_that_never_changes_has_no_range():
    table = {"accuracy": [0.9, 0.8], "tpr_gap": [0.1, 0.1]}
    assert DistanceToOptimum(scale="range")(table) == 0


# --- Pareto --------------------------------------------------------------------------------------------------------


def test_pareto_front_rule():
    table = {"accuracy": [0.90, 0.89, 0.80, 0.70, 0.89], "tpr_gap": [0.20, 0.05, 0.06, 0.01, 0.3]}
    assert ParetoFront()(table) == 1
    assert ParetoFront(prefer="accuracy")(table) == 0
    assert ParetoFront(prefer="fairness")(table) == 3
    explained = ParetoFront().explain(table)
    assert explained["on_front"].tolist() == [True, True, False, True, False]
    assert explained["verdict"].tolist()[2] == "dominated"
    table["leakage"] = [0.9, 0.9, 0.5, 0.9, 0.9]
    assert ParetoFront(privacy="leakage", prefer="privacy")(table) == 2


def slow_front(scores):
    def beats(a, b):
        return all(x >= y for x, y in zip(a, b)) and any(x > y for x, y in zip(a, b))

    return {k for k, row in enumerate(scores) if not any(beats(other, row) for other in scores)}


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 3).flatmap(lambda d: st.lists(st.tuples(*[st.integers(0, 4)] * d), min_size=1, max_size=15)))
def test_pareto_front_equals_its_definition(scores):
    names = [f"score_{j}" for j in range(len(scores[0]))]
    table = {name: [row[j] for row in scores] for j, name in enumerate(names)}
    front = pareto_front(table, names)
    assert set(front.index) == slow_front(scores)
    assert front[names[0]].is_monotonic_decreasing


def test_pareto_front_as_a_table():
    for table, objectives in [
        (as_cv_results(TABLE), ["accuracy", "tpr_gap"]),
        (TABLE, ["accuracy", "tpr_gap"]),
        (TABLE, {"accuracy": "max", "tpr_gap": "min"}),
        (pd.DataFrame(TABLE), ("accuracy", "tpr_gap")),
    ]:
        front = pareto_front(table, objectives)
        assert front.index.tolist() == [0, 1, 2, 4]
        assert front["tpr_gap"].tolist() == pytest.approx([0.2, 0.15, 0.05, 0.01])
    assert pareto_front(as_cv_results(TABLE), ["accuracy", "tpr_gap"])["params"].tolist()[3] == {"C": 4}
    assert pareto_front(TABLE, ["accuracy", "tpr_gap", "leakage"]).index.tolist() == [0, 1, 2, 3, 4]
    with_nan = {**TABLE, "accuracy": [np.nan, *TABLE["accuracy"][1:]]}
    assert pareto_front(with_nan, ["accuracy", "tpr_gap"]).index.tolist() == [1, 2, 4]


# --- objects and bad input -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_rules_are_values(rule):
    for other in (pickle.loads(pickle.dumps(rule)), copy.deepcopy(rule), eval(repr(rule))):
        assert other == rule
        assert other(TABLE) == rule(TABLE)
    assert repr(RelaxationThreshold(0.02)).startswith("RelaxationThreshold(threshold=0.02, accuracy='accuracy'")


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: RelaxationThreshold(-0.1), ValueError, "threshold"),
        (lambda: RelaxationThreshold("1 %"), ValueError, "threshold"),
        (lambda: RelaxationThreshold(float("nan")), ValueError, "threshold"),
        (lambda: RelaxationThreshold(directions={"tpr_gap": "low"})(TABLE), ValueError, "directions"),
        (lambda: DistanceToOptimum(scale="best"), ValueError, "scale"),
        (lambda: DistanceToOptimum(optimum={"gap": 0}), ValueError, "optimum"),
        (lambda: DistanceToOptimum(weights={"tpr_gap": -1}), ValueError, "weights"),
        (lambda: ParetoFront(prefer="privacy"), ValueError, "prefer"),
        (
            lambda: RelaxationThreshold()({"mean_test_score": [1.0]}),
            KeyError,
            "no metric 'accuracy'; it holds .'score'",
        ),
        (lambda: RelaxationThreshold()([0.9, 0.8]), TypeError, "cv_results"),
        (lambda: RelaxationThreshold()({}), ValueError, "cv_results has no columns"),
        (lambda: RelaxationThreshold()({"accuracy": 0.9, "tpr_gap": 0.1}), TypeError, "'accuracy' is the single value"),
        (lambda: RelaxationThreshold()({"accuracy": [1], "tpr_gap": [1, 2]}), ValueError, "one entry per candidate"),
        (
            lambda: RelaxationThreshold()({"accuracy": ["a"], "tpr_gap": [1]}),
            TypeError,
            "'accuracy' .* must hold numbers",
        ),
        (lambda: RelaxationThreshold(fairness=3)(TABLE), TypeError, "a metric is given by its name; got 3"),
        (lambda: pareto_front(TABLE, "accuracy"), ValueError, "objectives"),
        (lambda: pareto_front(TABLE, []), ValueError, "objectives"),
    ],
)
def test_bad_input_is_named(make, error, message):
    with pytest.raises(error, match=message):
        make()
