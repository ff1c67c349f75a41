"""Columns are prepared as the notes say, and what cannot be audited is refused with a sentence."""

import numpy as np
import pandas as pd
import pytest

from skfairdp.table_audit._column_kinds import GIVEN_NUMBERS, MISSING, given_out
from skfairdp.table_audit._prepared_table import hold_out, prepare_table, validation_folds


def people(n=200, **columns):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.normal(40, 10, n).round(),
            "job": rng.choice(["cook", "nurse", "pilot"], n),
            "sex": rng.choice(["f", "m"], n),
            "income": rng.choice(["high", "low"], n),
        }
    )
    return frame.assign(**columns)


def prepared(frame, **arguments):
    return prepare_table(frame, "income", "sex", **arguments)


def test_sensitive_column_is_no_feature():
    assert list(prepared(people()).X) == ["age", "job"]
    assert list(prepared(people(), keep_sensitive=True).X) == ["age", "job", "sex"]
    assert any("Not used as a feature: 'sex'" in note for note in prepared(people()).notes)


@pytest.mark.parametrize(
    ("values", "note"),
    [
        (pd.date_range("2020-01-01", periods=200), "dates and times: 'extra'"),
        (pd.date_range("2020-01-01", periods=200).astype(str), "dates and times: 'extra'"),
        ([f"{k % 28 + 1}/03/19{k % 90 + 10}" for k in range(200)], "dates and times: 'extra'"),
        (["same"] * 200, "the same value in every row: 'extra'"),
        ([np.nan] * 200, "no value at all: 'extra'"),
        ([f"person {k}" for k in range(200)], "an identifier or free text): 'extra'"),
        (range(200), "numbers of the rows: 'extra'"),
        (np.random.default_rng(0).permutation(600)[:200], "given out rather than measured (an identifier): 'extra'"),
        (np.random.default_rng(0).permutation(600)[:200] + 0.0, "rather than measured (an identifier): 'extra'"),
        (np.random.default_rng(0).integers(10**9, 10**10, 200), "rather than measured (an identifier): 'extra'"),
        (np.random.default_rng(0).integers(2**62, size=200), "rather than measured (an identifier): 'extra'"),
        ([[k] for k in range(200)], "neither numbers nor labels: 'extra'"),
    ],
)
def test_useless_columns_are_left_out_with_a_note(values, note):
    table = prepared(people(extra=values))
    assert "extra" not in table.X
    assert any(note in text for text in table.notes), table.notes


def test_dates_are_told_from_numbers_and_codes():
    table = prepared(people(version=["1.2", "1.3"] * 100, code=["A-1", "B-2"] * 100))
    assert {"version", "code"} <= set(table.X)


def test_missing_values_are_filled_and_told():
    frame = people()
    frame.loc[:9, "age"] = np.nan
    frame.loc[5:14, "job"] = None
    table = prepared(frame)
    assert (table.X["job"] == MISSING).sum() == 10
    numbers = table.preprocessor().fit_transform(table.X)
    assert np.isfinite(numbers).all()
    assert numbers.shape[1] == 1 + 1 + 4  # age, "age was missing", three jobs and the missing one
    assert any("Missing values in 'age', 'job'" in note for note in table.notes)


def test_preprocessor_learns_from_fitted_rows_only():
    frame = people()
    frame.loc[199, "job"], frame.loc[199, "age"] = "never seen", 1e9
    table = prepared(frame)
    fitted = table.preprocessor().fit(table.X.iloc[:199])
    assert fitted.transform(table.X.iloc[:199])[:, 0].max() < 5
    assert (fitted.transform(table.X.iloc[[199]])[0, 1:] == 0).all()


def test_rows_without_target_or_group_are_dropped():
    frame = people()
    frame.loc[:2, "income"] = None
    frame.loc[2:4, "sex"] = None
    table = prepared(frame)
    assert len(table.y) == 195
    assert "5 rows without target or sensitive value left out." in table.notes


def test_huge_numbers_are_missing_values():
    frame = people()
    frame.loc[0, "age"], frame.loc[1, "age"] = np.inf, -1e300
    table = prepared(frame)
    assert table.X["age"].isna().sum() == 2
    assert any(note.startswith("2 rows of 'age' with infinity") for note in table.notes)


def test_rare_categories_share_a_place():
    rng = np.random.default_rng(1)
    table = prepared(people(5000, city=[f"city {k}" for k in rng.integers(1000, size=5000)]))
    assert table.preprocessor().fit_transform(table.X[["age", "job", "city"]]).shape[1] <= 1 + 3 + 25


@pytest.mark.parametrize("kind", ["category", "boolean", "Int64", "bool"])
def test_every_kind_of_column_is_read(kind):
    values = pd.Series([0, 1] * 100).astype(kind)
    table = prepared(people(extra=values))
    assert "extra" in table.X
    assert np.isfinite(table.preprocessor().fit_transform(table.X)).all()


def test_polars_is_read():
    polars = pytest.importorskip("polars")
    assert list(prepared(polars.from_pandas(people())).X) == ["age", "job"]


def test_classes_and_positive_label():
    assert prepared(people()).pos_label == "low"
    assert prepared(people(), pos_label="high").pos_label == "high"
    assert prepared(people(income=[0, 1] * 100), pos_label="0").pos_label == 0  # as the command line gives it
    assert prepared(people(income=[True, False] * 100)).classes == (False, True)
    three = prepared(people(income=["a", "b", "c", "b"] * 50))
    assert three.fairness == "grms"
    assert three.pos_label is None


def test_a_favourable_class_is_assumed_or_named():
    assert prepared(people()).assumed_positive
    assert not prepared(people(), pos_label="low").assumed_positive
    three = people(income=["a", "b", "c", "b"] * 50)
    assert not prepared(three).assumed_positive  # all classes count alike: nothing is assumed
    named = prepared(three, pos_label="b")
    assert (named.pos_label, named.fairness, named.assumed_positive) == ("b", "tpr_gap", False)


@pytest.mark.parametrize(
    ("fairness", "metric"),
    [
        ("equal_opportunity", "tpr_gap"),
        ("equalized_odds", "equalized_odds_gap"),
        ("demographic_parity", "demographic_parity_gap"),
        ("calibration", "calibration_gap"),
    ],
)
def test_each_definition_has_its_metric(fairness, metric):
    assert prepared(people(), fairness=fairness).fairness == metric


def test_unknown_definition_is_refused():
    with pytest.raises(ValueError, match="fairness"):
        prepared(people(), fairness="equality")
    with pytest.raises(ValueError, match="pos_label"):
        prepared(people(income=["a", "b", "c", "b"] * 50), fairness="calibration")


def test_measured_numbers_are_no_identifiers():
    rng = np.random.default_rng(3)
    for _ in range(100):
        n = int(rng.integers(60, 5000))
        scale = 10 ** rng.uniform(1, 7)
        for values in (
            rng.normal(0, scale, n).round(),
            rng.exponential(scale, n).round(),
            rng.integers(int(scale) + 2, size=n),
            np.exp(rng.normal(10, rng.uniform(0.1, 2), n)).round(),
        ):
            assert not given_out(pd.Series(values))


def test_numbers_given_out_are_identifiers():
    rng = np.random.default_rng(3)
    ids = rng.permutation(20_000)[:2000]
    assert given_out(pd.Series(ids))
    assert given_out(pd.Series(np.append(ids, 10**9)))  # an outlier does not hide them
    assert given_out(pd.Series(np.append(ids, ids[:5])))  # nor do a few rows that came twice
    assert not given_out(pd.Series(rng.integers(20_000, size=2000)))  # the same range with chance: measured
    assert prepared(people(2000, number=ids)).left_out == {"number": GIVEN_NUMBERS}


def test_dropped_columns_are_no_features():
    table = prepared(people(extra=1.5), drop="job")
    assert list(table.X) == ["age"]
    assert table.roles == {"income": "target", "sex": "sensitive", "job": "dropped"}
    assert table.left_out == {"extra": "the same value in every row"}
    assert "job" in table.raw
    assert list(prepared(people(), drop=["sex", "job"], keep_sensitive=True).X) == ["age"]


def test_only_allowed_features_are_used():
    assert list(prepared(people(), features=["job"]).X) == ["job"]
    assert list(prepared(people(), features=["job", "sex"], keep_sensitive=True).X) == ["job", "sex"]
    with pytest.raises(ValueError, match=r"features names 'sex', whose role is 'sensitive'.* Set keep_sensitive"):
        prepared(people(), features=["job", "sex"])
    with pytest.raises(ValueError, match="features"):
        prepared(people(), features=[])


def test_decisions_are_kept_but_no_features():
    frame = people(says=["low", "high"] * 100)
    table = prepared(frame, decisions=["says"])
    assert "says" not in table.X
    assert "says" in table.raw
    alone = prepared(frame[["says", "sex", "income"]], decisions="says")
    assert alone.X.shape == (200, 0)
    assert alone.notes[-1].startswith("No column is left to predict from")


def test_weights_are_read_and_checked():
    rng = np.random.default_rng(0)
    weight = rng.uniform(0, 9, 200)
    weight[:3] = np.nan
    table = prepared(people(w=weight), weights="w")
    assert np.array_equal(table.weight, weight[3:])
    assert "w" not in table.X
    assert "3 rows without target, sensitive value or weight left out." in table.notes
    assert prepared(people()).weight is None
    for wrong, message in (
        (["heavy"] * 200, "'w' .*'heavy'"),
        ([-1.0] + [1.0] * 199, "-1 to 1"),
        ([0.0] * 200, "'w'"),
        ([np.inf] + [1.0] * 199, "to inf"),
    ):
        with pytest.raises(ValueError, match=message):
            prepared(people(w=wrong), weights="w")


def test_control_columns_become_strata():
    frame = people(code=np.arange(200) % 3, many=[f"town {k % 60}" for k in range(200)])
    frame.loc[:3, "age"] = np.nan
    table = prepared(frame, control=["age", "code", "job"])
    assert list(table.control) == ["age", "code", "job"]
    assert table.control["age"].nunique() == 5  # quarters, and the missing ones
    assert (table.control["age"] == MISSING).sum() == 4
    assert set(table.control["code"]) == {"0", "1", "2"}
    assert {"age", "code", "job"} <= set(table.X)
    assert "Control 'age' is cut into 4 ranges of about equal numbers of rows." in table.notes
    with pytest.raises(ValueError, match="'many' has 60 "):
        prepared(frame, control="many")
    mostly_zero = prepared(people(gain=[0.0] * 180 + list(range(1, 21))), control="gain")
    assert set(mostly_zero.control["gain"]) == {"0", "not 0"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"weights": "income"}, "'income' .* target and weights"),
        ({"person": "sex"}, "'sex' .* sensitive and person"),
        ({"weights": "age", "person": "age"}, "'age' .* weights and person"),
        ({"control": "sex"}, "'sex' .* sensitive and control"),
        ({"drop": "income"}, "drop .*'income'"),
        ({"drop": ["age", "age"]}, "drop"),
        ({"decisions": ["ages"]}, "'ages'.*'age'"),
        ({"features": ["age"], "drop": ["age"]}, "features .*'age'"),
        ({"person": "job"}, "'job'"),
    ],
)
def test_contradicting_roles_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        prepared(people(), **arguments)


def test_persons_are_numbered():
    names = pd.Series([f"p{k // 2}" for k in range(200)], dtype=object)
    names[:4] = None  # a row without a name is a person of its own
    table = prepared(people(name=names), person="name")
    assert "name" not in table.X
    assert len(np.unique(table.person)) == 4 + 98
    assert (table.person[4::2] == table.person[5::2]).all()


def test_a_number_as_target_is_told_how_to_cut():
    frame = people(income=np.arange(200) * 10.0)
    with pytest.raises(ValueError, match="'income'") as refused:
        prepared(frame)
    advice = str(refused.value).split("for example ")[1].split(", or into equal parts, ")
    for line in (advice[0], advice[1].rstrip(".")):
        cut = frame.copy()
        exec(line, {"pd": pd}, {"frame": cut})
        assert len(prepared(cut).classes) in (2, 4)
    assert prepared(people(income=np.arange(200) % 7 * 0.5)).classes == (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0)


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (people().drop(columns=["age", "job"]), "has 2 columns"),
        (people(income="low"), "'income' is constant"),
        (people(sex="f"), "'sex' has one group"),
        (people(sex=range(200)), "'sex' has 200 "),
        (people(income=[str(k) for k in range(200)]), "'income' has 200 "),
        (
            people(income=["rare"] * 3 + ["low", "high"] * 98 + ["low"]),
            "'rare' .*'income' has 3 rows",
        ),
        (people(20), " 20 rows"),
        (people(0), " 0 rows"),
        (people(income=None), "'income' or 'sex'"),
        (people(age=np.nan, job=None), "no column is left"),
        (people(sex=[["f"], ["m"]] * 100), "'sex'"),
    ],
)
def test_what_cannot_be_audited_is_refused(frame, message):
    with pytest.raises(ValueError, match=message):
        prepared(frame)


def test_wrong_names_suggest_the_nearest():
    with pytest.raises(ValueError, match=r"there is no column 'Incom'\. Did you mean 'income'\?"):
        prepare_table(people(), "Incom", "sex")
    with pytest.raises(ValueError, match=r"there is no column 'xyz'\. There are: 'age', 'job', 'sex', 'income'"):
        prepare_table(people(), "income", ["xyz"])
    with pytest.raises(ValueError, match="target and sensitive"):
        prepare_table(people(), "income", ["income"])
    with pytest.raises(ValueError, match="sensitive"):
        prepare_table(people(), "income", ["sex", "sex"])
    with pytest.raises(ValueError, match="pos_label"):
        prepared(people(), pos_label="medium")
    with pytest.raises(TypeError, match="frame"):
        prepare_table([1], "income", "sex")


def test_hold_out_keeps_shares_of_strata():
    rng = np.random.default_rng(0)
    y, groups = rng.choice(["a", "b"], 997, p=[0.9, 0.1]), rng.integers(3, size=997)
    train, test = hold_out(y, groups, 0.3, np.random.default_rng(1))
    assert sorted([*train, *test]) == list(range(997))
    for label in ("a", "b"):
        for group in range(3):
            inside = (y == label) & (groups == group)
            assert abs(inside[test].sum() - 0.3 * inside.sum()) <= 1.5


def test_folds_part_the_rows_by_class():
    y = np.array(["common"] * 300 + ["rare"] * 6)
    parts = validation_folds(y, np.zeros(306, dtype=int), 3, np.random.default_rng(0))
    assert sorted(np.concatenate([valid for _, valid in parts])) == list(range(306))
    for fit, valid in parts:
        assert not set(fit) & set(valid)
        assert (y[valid] == "rare").sum() == 2


def rows_of_persons(seed=0, n_persons=400):
    """Persons with one to nine rows; a rare class and unequal groups."""
    rng = np.random.default_rng(seed)
    person = np.repeat(rng.permutation(n_persons) + 7, rng.integers(1, 10, n_persons))
    groups = (person % 5 == 0).astype(int)  # a person has one group
    y = rng.choice(["a", "b"], len(person), p=[0.93, 0.07])
    shuffled = rng.permutation(len(person))
    return y[shuffled], groups[shuffled], person[shuffled]


@pytest.mark.parametrize("seed", range(5))
def test_a_person_is_on_one_side(seed):
    y, groups, person = rows_of_persons(seed)
    train, test = hold_out(y, groups, 0.3, np.random.default_rng(seed), person=person)
    assert sorted([*train, *test]) == list(range(len(y)))
    assert not set(person[train]) & set(person[test])
    assert abs(len(test) / len(y) - 0.3) < 0.03
    for part in (y == "b", groups == 1):
        assert abs(part[test].sum() / part.sum() - 0.3) < 0.1
    folds = validation_folds(y[train], groups[train], 3, np.random.default_rng(seed), person=person[train])
    assert sorted(np.concatenate([valid for _, valid in folds])) == list(range(len(train)))
    for fit, valid in folds:
        assert not set(person[train][fit]) & set(person[train][valid])
        assert abs(len(valid) / len(train) - 1 / 3) < 0.03
    # without being told, the same rows part nearly every person
    train, test = hold_out(y, groups, 0.3, np.random.default_rng(seed))
    assert len(set(person[train]) & set(person[test])) > 100
