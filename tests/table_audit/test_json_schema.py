"""What an audit writes as JSON is what the published schema describes."""

import copy
import json
from importlib.resources import files

import numpy as np
import pytest

from skfairdp import audit_table
from skfairdp.datasets import make_biased_classification
from skfairdp.table_audit._table_audit import SCHEMA_VERSION
from tests.table_audit._made_audits import FAIRNESS, LEAKY, TWINS, made_audit, strata_of

jsonschema = pytest.importorskip("jsonschema")


@pytest.fixture(scope="module")
def validator():
    schema = json.loads((files("skfairdp.table_audit") / "audit.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


SHAPES = {
    "two groups": {},
    "eight groups": {"n_groups": 8, "tiny": True},
    "existing system with scores": {"systems": ("decision",), "scores": True, "checks": (LEAKY, TWINS)},
    "only a system": {"systems": ("decision",), "methods": ()},
    "several classes": {"n_classes": 4, "fairness": "grms"},
    "undefined gap": {"undefined": True},
    **{fairness: {"fairness": fairness, "scores": True} for fairness in FAIRNESS},
}


@pytest.mark.parametrize("shape", SHAPES)
def test_documents_follow_the_schema(validator, shape):
    result = strata_of(made_audit(**SHAPES[shape]))
    text = result.to_json()
    document = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert [error.message for error in validator.iter_errors(document)] == []
    assert document["schema_version"] == SCHEMA_VERSION == "1.0"
    assert document["headline"] == result.verdict.headline
    assert tuple(document["verdict"]) == result.verdict.sentences
    assert [check["kind"] for check in document["checks"]] == [check.kind for check in result.checks]
    assert document["systems"] == list(result.systems)


def test_documents_of_real_audits_follow_the_schema(validator):
    frame = make_biased_classification(200, 4, group_shift=2.0, as_frame=True, random_state=0).frame
    frame["score"] = 1 / (1 + np.exp(-frame["x0"]))
    frame["region"] = np.where(frame.index % 3 == 0, "north", "south")
    roles = {"target": "target", "sensitive": ["group", "region"], "scores": "score", "random_state": 0, "n_repeats": 1}
    for arguments in ({"methods": "none", "control": "x1"}, {"methods": ["logistic", "fair private trees"]}):
        text = audit_table(frame, **roles, **arguments, verbose=False).to_json()
        assert [error.message for error in validator.iter_errors(json.loads(text))] == []


def _without(*path):
    def fault(document):
        for key in path[:-1]:
            document = document[key]
        del document[path[-1]]

    return fault


def _with(value, *path):
    def fault(document):
        for key in path[:-1]:
            document = document[key]
        document[path[-1]] = value

    return fault


@pytest.fixture(scope="module")
def document(validator):
    document = made_audit(systems=("decision",), checks=(LEAKY,)).to_dict()
    assert validator.is_valid(document)
    return document


@pytest.mark.parametrize(
    "fault",
    [
        _without("headline"),
        _without("schema_version"),
        _without("checks", 0, "advice"),
        _without("table", 0, "n_rows"),
        _without("table", 1, "tpr_gap_p_value"),
        _without("settings", "assumed_positive"),
        _with("2.0", "schema_version"),
        _with("theil", "fairness"),
        _with("0.3", "table", 0, "tpr_gap_lower"),
        _with(float("inf"), "table", 0, "kind"),
        _with("training rows", "table", 0, "rows"),
        _with("recall", "group_rates", 0, "rate"),
        _with("-inf", "table", 0, "epsilon"),
    ],
)
def test_planted_faults_are_found(validator, document, fault):
    broken = copy.deepcopy(document)
    fault(broken)
    assert not validator.is_valid(broken)
