"""Columns are prepared as the notes say, and what cannot be audited is refused with a sentence."""

import numpy as np
import pandas as pd
import pytest

from skfairdp.table_audit._prepared_table import MISSING, hold_out, prepare_table, validation_folds


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


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (people().drop(columns=["age", "job"]), "has 2 columns"),
        (people(income="low"), "the target 'income' is constant: every row is 'low'"),
        (people(sex="f"), "'sex' has one group only: every row is 'f'"),
        (people(sex=range(200)), "'sex' has 200 different values"),
        (people(income=[str(k) for k in range(200)]), "'income' has 200 different values"),
        (
            people(income=["rare"] * 3 + ["low", "high"] * 98 + ["low"]),
            "class 'rare' of the target 'income' has 3 rows",
        ),
        (people(20), "the table has 20 rows to work with"),
        (people(0), "the table has 0 rows to work with"),
        (people(income=None), "every row lacks a value in 'income' or 'sex'"),
        (people(age=np.nan, job=None), "no column is left to predict from"),
        (people(sex=[["f"], ["m"]] * 100), "'sex' holds values that are no labels"),
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
    with pytest.raises(ValueError, match="cannot be the target and sensitive at once"):
        prepare_table(people(), "income", ["income"])
    with pytest.raises(ValueError, match="names a column twice"):
        prepare_table(people(), "income", ["sex", "sex"])
    with pytest.raises(ValueError, match="pos_label must be one of the classes"):
        prepared(people(), pos_label="medium")
    with pytest.raises(TypeError, match="frame must be a pandas or polars DataFrame; got list"):
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
