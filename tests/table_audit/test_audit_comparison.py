"""Two audits of the same system: what changed, what may be chance, and what cannot be compared."""

import json
import math
from dataclasses import replace

import pytest

from skfairdp.cli import main
from skfairdp.table_audit import compare_audits
from tests.table_audit._made_audits import made_audit, with_figures


@pytest.fixture(scope="module")
def before():
    return made_audit(systems=("decision",))


def later(before, **figures):
    return with_figures(before, "decision", **figures)


GREW = {"tpr_gap": 0.30, "tpr_gap_lower": 0.26, "tpr_gap_upper": 0.34}


def test_changes_have_intervals_in_quadrature(before):
    after = later(before, **GREW)
    row = compare_audits(before, after).table.loc["decision"]
    old = before.table.loc["decision"]
    assert row["tpr_gap_change"] == pytest.approx(0.30 - old["tpr_gap"])
    down = math.hypot(0.30 - 0.26, old["tpr_gap_upper"] - old["tpr_gap"])
    up = math.hypot(0.34 - 0.30, old["tpr_gap"] - old["tpr_gap_lower"])
    assert row["tpr_gap_change_lower"] == pytest.approx(row["tpr_gap_change"] - down)
    assert row["tpr_gap_change_upper"] == pytest.approx(row["tpr_gap_change"] + up)
    for figure in ("accuracy", "selection_ratio", "leakage", "leakage_auc"):
        assert row[f"{figure}_change"] == 0
        assert row[f"{figure}_change_lower"] < 0 < row[f"{figure}_change_upper"]


def test_growth_beyond_chance_fails(before):
    grown = compare_audits(before, later(before, **GREW))
    (reason,) = grown.reasons_to_fail()
    assert reason.startswith("the TPR gap of decision grew by 12.0 points (+")
    assert "Decision: the TPR gap grew from 18.0 points to 30.0 points" in grown.to_text()
    assert grown.reasons_to_fail(20) == []
    assert grown.reasons_to_fail(5) == ["the TPR gap of decision grew by 12.0 points, and 5 are allowed"]
    same = compare_audits(before, before)
    assert same.reasons_to_fail() == same.reasons_to_fail(0) == []
    shrunk = compare_audits(later(before, **GREW), before)
    assert shrunk.reasons_to_fail() == []
    assert "shrank" in shrunk.to_text()


def test_chance_does_not_fail_and_is_said(before):
    unsure = compare_audits(before, later(before, **GREW | {"tpr_gap_lower": 0.0}))
    assert unsure.reasons_to_fail() == []
    assert "which may be chance" in unsure.sentences[0]
    assert len(unsure.reasons_to_fail(5)) == 1  # points are points


def test_methods_that_were_trained_again_do_not_fail(before):
    """Twelve methods at 95% would fail every third time by chance; the gate is about what decides."""
    after = with_figures(before, "logistic", **GREW | {"tpr_gap": 0.9, "tpr_gap_lower": 0.8, "tpr_gap_upper": 1.0})
    assert compare_audits(before, after).reasons_to_fail() == []
    trained = made_audit()
    assert compare_audits(trained, trained).guarded == ("trees",)
    worse = with_figures(trained, "trees", tpr_gap=0.9, tpr_gap_lower=0.8, tpr_gap_upper=1.0)
    assert len(compare_audits(trained, worse).reasons_to_fail()) == 1


def test_what_is_undefined_fails(before):
    undefined = later(before, **dict.fromkeys(GREW, math.nan))
    (reason,) = compare_audits(before, undefined).reasons_to_fail()
    assert reason == "the TPR gap of decision is undefined in one of the audits"


def with_settings(result, **settings):
    return replace(result, settings=result.settings | settings)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda r: with_settings(r, target="fired"), "the target of a: 'hired', of b: 'fired'"),
        (lambda r: with_settings(r, sensitive=["race"]), r"the sensitive columns of a: \['sex'\], of b: \['race'\]"),
        (lambda r: with_settings(r, pos_label="no"), "the favourable label of a: 'yes', of b: 'no'"),
        (lambda r: made_audit(n_classes=3, fairness="grms"), "the fairness metric of a: 'tpr_gap', of b: 'grms'"),
        (lambda r: replace(r, too_few={"sex": ("g1",)}), "between other groups: only a has enough rows of g1"),
        (lambda r: r.to_dict() | {"schema_version": "2.0"}, "b has schema version 2.0, and this skfairdp reads 1.0"),
        (lambda r: {k: v for k, v in r.to_dict().items() if k != "schema_version"}, "schema version none"),
        (lambda r: {"schema_version": "1.0"}, "is not a whole audit: it lacks table, fairness"),
        (lambda r: [1, 2], "b is not the JSON of an audit"),
        (lambda r: made_audit(methods=("leace",)), "no system and no reference in common: a has decision, trees"),
    ],
)  # fmt: skip
def test_what_cannot_be_compared_is_refused(before, change, message):
    with pytest.raises(ValueError, match=message):
        compare_audits(before, change(before))


def test_added_keys_of_a_later_minor_version_are_read(before):
    newer = before.to_dict() | {"schema_version": "1.7", "further": 3}
    assert compare_audits(before, newer).reasons_to_fail() == []


def test_methods_of_one_audit_are_named(before):
    text = compare_audits(before, made_audit(systems=("decision",), methods=("trees",))).to_text()
    assert "Only in a: logistic, fair trees, fair private trees and noise." in text
    digest = {"file_sha256": "0" * 64}
    assert (
        "Both audits read the same file"
        in compare_audits(with_settings(before, **digest), with_settings(before, **digest)).to_text()
    )


@pytest.fixture
def files(before, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before.to_json("a.json")
    later(before, **GREW).to_json("b.json")


def test_command_compares(files, capsys):
    assert main(["compare", "a.json", "a.json"]) == 0
    assert capsys.readouterr().err == ""
    assert main(["compare", "a.json", "b.json"]) == 1
    out, err = capsys.readouterr()
    assert out.startswith("Decision: the TPR gap grew from 18.0 points to 30.0 points, a change of +")
    assert err.startswith("skfairdp: failed: the TPR gap of decision grew by 12.0 points")
    assert main(["compare", "a.json", "b.json", "--fail-if-worse", "20"]) == 0
    assert main(["compare", "a.json", "b.json", "--fail-if-worse", "10"]) == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not the JSON of an audit"),
        (b"\xff\xfe\x00", "is not the JSON of an audit"),
        (b"[]", "is not the JSON of an audit"),
        (b"{}", "has schema version none"),
        (b'{"schema_version": "1.0", "table": []}', "lacks fairness, settings"),
        (None, "No such file"),
    ],
)
def test_hostile_documents_give_one_line(files, tmp_path, capsys, content, message):
    if content is not None:
        (tmp_path / "c.json").write_bytes(content)
    assert main(["compare", "a.json", "c.json"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert err.count("\n") == 1
    assert err.startswith("skfairdp: ")


@pytest.mark.parametrize(
    ("place", "message"),
    [
        (("settings", "target"), "c.json is not a whole audit: its settings lack target"),
        (("settings", "pos_label"), "c.json is not a whole audit: its settings lack pos_label"),
        (("table", 1, "method"), "a row of its table lacks method"),
        (("table", 1, "tpr_gap_upper"), "a row of its table lacks tpr_gap_upper"),
        (("group_rates", 0, "group"), "a row of its group_rates lacks group"),
    ],
)
def test_torn_documents_give_one_line(files, tmp_path, capsys, place, message):
    document = json.loads((tmp_path / "a.json").read_text())
    part = document
    for key in place[:-1]:
        part = part[key]
    del part[place[-1]]
    (tmp_path / "c.json").write_text(json.dumps(document))
    assert main(["compare", "a.json", "c.json"]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(("key", "value"), [("table", 3), ("settings", []), ("group_rates", [1]), ("fairness", "tpr")])
def test_other_types_give_one_line(files, tmp_path, capsys, key, value):
    document = json.loads((tmp_path / "a.json").read_text())
    (tmp_path / "c.json").write_text(json.dumps(document | {key: value}))
    assert main(["compare", "a.json", "c.json"]) == 2
    assert capsys.readouterr().err.startswith("skfairdp: ")


@pytest.mark.parametrize("points", ["-1", "nan"])
def test_points_must_be_a_number(files, capsys, points):
    assert main(["compare", "a.json", "b.json", "--fail-if-worse", points]) == 2
    assert "--fail-if-worse must be a number of at least 0" in capsys.readouterr().err
