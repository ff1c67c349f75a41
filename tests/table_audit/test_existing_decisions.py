"""Decisions that are in a table, and fitted models, are judged as they are, on all rows."""

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from skfairdp import audit_table, group_rates, tpr_gap
from skfairdp.datasets import make_biased_classification
from skfairdp.table_audit import load_model
from skfairdp.table_audit._existing_decisions import name_decision_columns, read_decisions
from skfairdp.table_audit._prepared_table import prepare_table


def people(n=400, seed=0):
    """A table with a vendor's score and decision that are harder on group 1."""
    frame = make_biased_classification(n, 4, group_shift=1.0, as_frame=True, random_state=seed).frame
    noise = np.random.default_rng(seed).normal(size=n)
    raw = 1.5 * frame["x0"] + frame["target"] * 2 - 1 - 3.0 * frame["group"] + 0.5 * noise
    frame["score"] = 1 / (1 + np.exp(-raw))
    frame["decision"] = np.where(frame["score"] >= 0.5, "yes", "no")
    frame["target"] = frame["target"].map({0: "no", 1: "yes"})
    return frame


def audit(frame, **arguments):
    given = {
        "target": "target",
        "sensitive": "group",
        "methods": "none",
        "random_state": 0,
        "n_repeats": 1,
        "verbose": False,
    }
    return audit_table(frame, **{**given, **arguments})


def test_decisions_are_judged_on_all_rows():
    frame = people()
    result = audit(frame, predictions="decision")
    row = result.table.loc["decision"]
    known = {"sensitive_features": frame["group"]}
    assert (row["kind"], row["rows"], row["n_rows"]) == ("system", "all rows", len(frame))
    assert row["accuracy"] == pytest.approx((frame["decision"] == frame["target"]).mean())
    assert row["tpr_gap_measured"] == pytest.approx(tpr_gap(frame["target"], frame["decision"], **known))
    assert row["tpr_gap_lower"] > 0
    assert row["tpr_gap_p_value"] < 0.001
    assert row["lowest_group"] == "1"
    assert result.reference == result.best == "decision"
    assert result.systems == ("decision",)
    rates = group_rates(frame["target"], frame["decision"], interval="exact", **known)
    shown = result.group_rates.query("rate == 'ppv' and `class` == 'yes'").set_index("group")
    np.testing.assert_allclose(shown["value"], rates["ppv_yes"])
    selected = rates["selection_rate_yes"]
    assert row["selection_ratio"] == pytest.approx(selected.min() / selected.max(), abs=0.05)
    assert result.calibration is None
    assert "decision" not in result.settings["features"]


def test_scores_become_decisions_and_calibration():
    frame = people()
    result = audit(frame, scores="score", pos_label="yes")
    assert result.table.loc["score", "accuracy"] == pytest.approx((frame["decision"] == frame["target"]).mean())
    everybody = result.calibration.query("bin == 'all'").set_index("group")
    for group, rows in frame.groupby("group"):
        assert everybody.loc[str(group), "mean_score"] == pytest.approx(rows["score"].mean())
        assert everybody.loc[str(group), "observed"] == pytest.approx((rows["target"] == "yes").mean())
    assert any("decisions are scores of 'score' from 0.5 on" in note for note in result.notes)
    stricter = audit(frame, scores="score", pos_label="yes", score_threshold=0.8)
    chosen = np.where(frame["score"] >= 0.8, "yes", "no")
    assert stricter.table.loc["score", "accuracy"] == pytest.approx((chosen == frame["target"]).mean())
    judged = audit(frame, scores="score", pos_label="yes", fairness="calibration")
    assert judged.fairness == "calibration_gap"
    assert judged.table.loc["score", "calibration_gap_lower"] > 0


def test_decisions_and_scores_of_one_name_are_one_system():
    frame = people().assign(other=lambda table: table["target"])
    result = audit(frame, predictions={"vendor": "decision", "oracle": "other"}, scores={"vendor": "score"})
    assert list(result.table.index) == ["vendor", "oracle"]
    assert result.table.loc["oracle", "accuracy"] == 1
    assert set(result.calibration["method"]) == {"vendor"}
    assert set(result.leakage["method"]) == {"(columns)", "vendor", "oracle"}


def test_methods_are_told_against_the_system():
    frame = people(800)
    result = audit(frame, predictions={"vendor": "decision"}, methods=["logistic", "fair trees"], pos_label="yes")
    assert result.reference == "vendor"
    assert result.table["rows"].tolist() == ["all rows", "test rows", "test rows"]
    assert result.table.loc["logistic", "n_rows"] == result.settings["n_test"] < len(frame)
    assert result.table.loc["vendor", "tpr_gap_change"] == 0
    assert result.table.loc["fair trees", "tpr_gap_change_upper"] < 0
    assert result.best in ("logistic", "fair trees")
    assert not {"score", "decision"} & set(result.models["logistic"].feature_names_in_) - {"score"}


def test_labels_may_be_written_in_another_way():
    frame = people().assign(target=lambda table: (table["target"] == "yes").astype(int))
    as_text = frame.assign(decision=np.where(frame["score"] > 0.5, "1", "0"))
    as_float = frame.assign(decision=np.where(frame["score"] > 0.5, 1.0, 0.0))
    as_bool = frame.assign(decision=frame["score"] > 0.5)
    accuracies = {audit(f, predictions="decision").table["accuracy"].item() for f in (as_text, as_float, as_bool)}
    assert accuracies == {np.mean((frame["score"] > 0.5) == frame["target"])}


def test_labels_that_look_like_one_number_are_told_apart():
    frame = people().assign(target=lambda table: table["target"].map({"no": "01", "yes": "1"}))
    result = audit(frame.assign(decision=frame["target"]), predictions="decision")
    assert result.table.loc["decision", "accuracy"] == 1


def test_decisions_missing_in_one_group_are_told():
    frame = people()
    frame.loc[(frame["group"] == 1) & (frame.index % 2 == 0), "decision"] = None
    (check,) = [c for c in audit(frame, predictions="decision").checks if c.kind == "missing_decisions"]
    assert check.serious
    assert "of group 1 of 'group' and for 0% of group 0" in check.sentence
    frame = people()
    frame.loc[frame.index % 2 == 0, "decision"] = None
    assert not [c for c in audit(frame, predictions="decision").checks if c.kind == "missing_decisions"]


def test_rows_without_a_decision_are_left_out_and_told():
    frame = people()
    frame.loc[:99, "decision"] = None
    result = audit(frame, predictions="decision")
    assert result.table.loc["decision", "n_rows"] == 300
    assert "decision: 100 rows without a decision or score are left out." in result.notes
    known = frame[100:]
    assert result.table.loc["decision", "accuracy"] == pytest.approx((known["decision"] == known["target"]).mean())


def test_a_fitted_model_is_a_system():
    frame = people()
    model = HistGradientBoostingClassifier(random_state=0).fit(frame[["x1", "x0"]], frame["target"])
    result = audit(frame.drop(columns=["score", "decision"]), methods=[("ours", model)])
    predicted = model.predict(frame[["x1", "x0"]])
    row = result.table.loc["ours"]
    assert (row["kind"], row["n_rows"]) == ("system", len(frame))
    assert row["accuracy"] == pytest.approx(np.mean(predicted == frame["target"]))
    assert result.models["ours"] is model
    assert any("came fitted and is judged on all rows" in note for note in result.notes)


def test_models_are_loaded_from_files(tmp_path):
    frame = people()
    model = LogisticRegression().fit(frame[["x0"]], frame["target"])
    joblib.dump(model, tmp_path / "model.joblib")
    np.testing.assert_array_equal(load_model(tmp_path / "model.joblib").coef_, model.coef_)
    joblib.dump({"no": "model"}, tmp_path / "other.joblib")
    with pytest.raises(ValueError, match=r"other\.joblib holds a dict"):
        load_model(tmp_path / "other.joblib")
    (tmp_path / "text.joblib").write_text("hello")
    with pytest.raises(ValueError, match=r"text\.joblib"):
        load_model(tmp_path / "text.joblib")
    with pytest.raises(FileNotFoundError, match=r"gone\.joblib"):
        load_model(tmp_path / "gone.joblib")


@pytest.mark.parametrize(
    ("change", "arguments", "message"),
    [
        ({"decision": 0.3}, {"predictions": "decision"}, "0.3, .* of 'target'.* scores"),
        ({}, {"predictions": "desicion"}, "'decision'"),
        ({}, {"predictions": ["decision", "decision"]}, "predictions"),
        ({}, {"predictions": {}}, "predictions"),
        ({}, {"predictions": "target"}, "target and decision"),
        ({}, {"scores": "decision"}, "scores: column 'decision'"),
        ({"score": 700.0}, {"scores": "score"}, "score_threshold"),
        ({"score": np.inf}, {"scores": "score"}, "scores: column 'score'.* row 0"),
        ({"decision": None}, {"predictions": "decision"}, "'decision'"),
        ({}, {"predictions": "decision", "fairness": "calibration"}, "decision"),
        ({}, {}, "methods"),
    ],
)
def test_wrong_decisions_are_refused(change, arguments, message):
    with pytest.raises(ValueError, match=message):
        audit(people(200).assign(**change), **arguments)


def test_scores_need_a_favourable_class():
    frame = make_biased_classification(300, 4, n_classes=3, as_frame=True, random_state=0).frame
    frame["score"] = 0.5
    with pytest.raises(ValueError, match="pos_label"):
        audit(frame, scores="score")
    with pytest.raises(ValueError, match="3 classes"):
        audit(frame, scores="score", pos_label=1)
    decided = audit(frame.assign(said=frame["target"]), scores={"v": "score"}, predictions={"v": "said"}, pos_label=1)
    assert decided.table.loc["v", "accuracy"] == 1


def test_columns_are_read_apart():
    frame = people(200)
    (columns,) = name_decision_columns("decision", None)
    table = prepare_table(frame, "target", "group", decisions=["decision", "score"])
    assert not {"decision", "score"} & set(table.X)
    system = read_decisions(table, columns, None)
    np.testing.assert_array_equal(system.predicted, frame["decision"])
    pd.testing.assert_frame_equal(table.raw[["score"]], frame[["score"]])
