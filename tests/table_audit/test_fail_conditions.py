"""Conditions of --fail-if: how they are read, and when an audit fails."""

import math
import re

import pandas as pd
import pytest

from skfairdp.table_audit._fail_conditions import METRICS, FailCondition


class Result:
    best, reference = "my model", "leace"
    table = pd.DataFrame(
        {"tpr_gap": [0.2, 0.04, math.nan], "accuracy": [0.9, 0.8, 0.7], "epsilon": [math.inf, math.inf, 8.0]},
        index=["unconstrained", "leace", "my model"],
    )


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("tpr_gap > 0.03", True),
        ("tpr_gap>0.05", False),
        ("tpr_gap >= 0.04", True),
        ("tpr_gap != 0.04", False),
        ("accuracy < 0.85", True),
        ("unconstrained: accuracy < 0.85", False),
        ("epsilon > 10", True),
        ("my model: epsilon > 10", False),
        ("my model: tpr_gap > 0.5", True),  # what is undefined cannot pass
        ("epsilon == inf", True),
    ],
)
def test_conditions(text, holds):
    assert (FailCondition.parse(text).reason_to_fail(Result) is not None) == holds


@pytest.mark.parametrize("text", ["", "tpr_gap", "tpr_gap >", "> 0.5", "tpr_gap > nan", "tpr_gap > x", "a b > 1"])
def test_what_is_no_condition_is_refused(text):
    with pytest.raises(ValueError, match=re.escape(repr(text))):
        FailCondition.parse(text)


def test_wrong_names_in_conditions_are_refused():
    with pytest.raises(ValueError, match="'tpr_gap'"):
        FailCondition.parse("tprgap > 0.1")
    with pytest.raises(ValueError, match="'unconstrained'"):
        FailCondition.parse("unconstraint: accuracy > 0.1").reason_to_fail(Result)
    with pytest.raises(ValueError, match="'grms'"):
        FailCondition.parse("grms > 0.1").reason_to_fail(Result)


def test_condition_metrics_are_columns():
    from skfairdp import audit_table
    from skfairdp.datasets import make_biased_classification

    for n_classes in (2, 3):
        frame = make_biased_classification(150, 4, n_classes=n_classes, as_frame=True, random_state=0).frame
        result = audit_table(
            frame, target="target", sensitive="group", methods=["logistic"], n_repeats=1, random_state=0, verbose=False
        )
        missing = {name for name in METRICS if name not in result.table}
        others = ("grms" if n_classes == 2 else "tpr_gap", "calibration_gap", "within_strata_gap")
        assert missing == {name for name in METRICS if name.startswith(others)}


def test_absent_methods_are_refused_before_the_audit():
    known = (["trees", "leace"], "equal_opportunity", False)
    FailCondition.parse("trees: accuracy < 0.5").check_before(*known)
    FailCondition.parse("accuracy < 0.5").check_before(*known)
    with pytest.raises(ValueError, match="--fairness calibration"):
        FailCondition.parse("calibration_gap > 0.1").check_before(*known)
    with pytest.raises(ValueError, match="--control"):
        FailCondition.parse("within_strata_gap > 0.1").check_before(*known)
    with pytest.raises(ValueError, match=r"'threes'.*'trees'"):
        FailCondition.parse("threes: accuracy < 0.5").check_before(*known)
