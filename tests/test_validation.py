"""The questions that floor 0 asks of arguments."""

import math
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from skfairdp import FairPrivateClassifier, LaplacePrivatizer, PATEClassifier, tpr_gap
from skfairdp._validation import check_count, check_delta, check_documents, check_epsilon, check_sensitive_features
from skfairdp.exceptions import ContinuousSensitiveFeatureWarning

SEX = ["f", "m", "m", "f"]


def test_warnings_point_at_the_line_of_the_user():
    X, y = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 2
    fair = FairPrivateClassifier(LogisticRegression(), epsilon=8.0, fairness=None, cv=2).fit(X, X[:, 0] > 0)
    calls = [
        lambda: LaplacePrivatizer(norm="minmax", calibration="published").fit(X),
        lambda: PATEClassifier(n_teachers=3, epsilon=8.0).fit(X, y),
        lambda: fair.set_epsilon(1e-3),
        lambda: tpr_gap([1, 0], [1, 0], sensitive_features=["a", "b"]),
        lambda: check_sensitive_features(np.arange(100) / 7, 100),
    ]
    for call in calls:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call()
        assert caught
        assert {warning.filename for warning in caught} == {__file__}


@pytest.mark.parametrize(
    "column",
    [
        SEX,
        tuple(SEX),
        np.array(SEX),
        np.array(SEX, dtype=object),
        np.array(SEX).reshape(-1, 1),
        pd.Series(SEX),
        pd.Series(SEX, dtype="category"),
        pd.Categorical(SEX),
        pd.DataFrame({"sex": SEX}),
        pl.Series("sex", SEX),
        pl.DataFrame({"sex": SEX}),
        pl.Series("sex", SEX, dtype=pl.Categorical),
        {"sex": SEX},
        [[label] for label in SEX],
    ],
    ids=lambda c: type(c).__module__.split(".")[0] + "." + type(c).__name__,
)
def test_one_column_from_every_container(column):
    groups = check_sensitive_features(column, 4)
    assert groups.indices.tolist() == [[0], [1], [1], [0]]
    assert groups.labels == (("f", "m"),)
    assert groups.names in (("sex",), ("sensitive_features",))


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, dict])
def test_several_columns_keep_their_names_and_cross(make):
    frame = make({"sex": SEX, "age": [30, 30, 60, 60]})
    groups = check_sensitive_features(frame, 4)
    assert groups.names == ("sex", "age")
    assert groups.labels == (("f", "m"), (30, 60))
    assert groups.indices.tolist() == [[0, 0], [1, 0], [1, 1], [0, 1]]
    crossed = check_sensitive_features(frame, 4, intersection=True)
    assert crossed.names == ("sex x age",)
    assert crossed.labels == ((("f", 30), ("f", 60), ("m", 30), ("m", 60)),)
    assert crossed.indices.ravel().tolist() == [0, 2, 3, 1]


def test_rows_of_lists_are_columns_and_tuples_are_labels():
    assert check_sensitive_features([["f", 1], ["m", 2]]).n_columns == 2
    assert check_sensitive_features([("f", 1), ("m", 2)]).labels == ((("f", 1), ("m", 2)),)


def test_labels_of_different_types_have_a_stable_order():
    first = check_sensitive_features(["b", 2, ("x",), 2])
    again = check_sensitive_features([("x",), 2, "b"])
    assert first.labels == again.labels


def test_an_unobserved_category_is_no_group():
    column = pd.Series(pd.Categorical(["a", "b"], categories=["a", "b", "c"]))
    assert check_sensitive_features(column).labels == (("a", "b"),)


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA, pd.NaT])
def test_missing_values_are_refused_by_name(missing):
    with pytest.raises(ValueError, match=r"column 'sex', 1 of 3 rows, the first at row 1"):
        check_sensitive_features(pd.Series(["f", missing, "m"], name="sex", dtype=object))


def test_missing_values_of_polars_are_refused():
    with pytest.raises(ValueError, match="column 'sex'"):
        check_sensitive_features(pl.Series("sex", ["f", None, "m"]))


@pytest.mark.parametrize(
    ("given_value", "error", "sentence"),
    [
        (None, ValueError, "sensitive_features is missing"),
        ("female", TypeError, "the single value 'female'"),
        (3, TypeError, "the single value 3"),
        ([], ValueError, "is empty"),
        (np.zeros((4, 0)), ValueError, r"got shape \(4, 0\)"),
        (np.zeros((2, 2, 2)), ValueError, r"got shape \(2, 2, 2\)"),
        (pd.DataFrame(index=range(4)), ValueError, "has no column"),
        ([{"a": 1}, {"a": 2}], TypeError, "hashable"),
        ([["f", 1], ["m"]], ValueError, "rows of different lengths"),
        ({"sex": ["f"], "age": [1, 2]}, ValueError, "columns of different lengths"),
        (["f", "m"], ValueError, "4 expected, 2 given"),
    ],
)
def test_errors_say_what_was_given(given_value, error, sentence):
    with pytest.raises(error, match=sentence):
        check_sensitive_features(given_value, 4)


def test_two_columns_of_one_name_are_refused():
    frame = pd.DataFrame([[1, 2]], columns=["a", "a"])
    with pytest.raises(ValueError, match="two columns of the same name"):
        check_sensitive_features(frame)


def test_too_few_groups_are_refused_when_asked():
    with pytest.raises(ValueError, match="at least 2 groups; column 'sensitive_features' holds 1"):
        check_sensitive_features(["f", "f"], min_groups=2)


@given(st.lists(st.one_of(st.integers(), st.text(), st.booleans()), min_size=1, max_size=30), st.randoms())
def test_indices_give_back_the_labels_in_any_row_order(column, random):
    groups = check_sensitive_features(column)
    assert [groups.labels[0][code] for code in groups.indices[:, 0]] == column
    shuffled = random.sample(column, len(column))
    if len(set(map(type, column))) == 1:  # True == 1: the first of two equal labels names the group
        assert check_sensitive_features(shuffled).labels == groups.labels


@pytest.mark.parametrize("bad", [0, -1.0, math.nan, -math.inf])
def test_epsilon_must_be_positive(bad):
    with pytest.raises(ValueError, match=r"epsilon must be a number greater than 0 .*; got"):
        check_epsilon(bad)


@pytest.mark.parametrize("bad", ["1", None, True, [1.0]])
def test_epsilon_must_be_a_number(bad):
    with pytest.raises(TypeError, match="of type"):
        check_epsilon(bad)


def test_epsilon_at_its_edges():
    assert check_epsilon(np.float32(0.5)) == 0.5
    assert check_epsilon(math.inf) == math.inf
    assert check_epsilon(0, allow_zero=True) == 0.0
    with pytest.raises(ValueError, match="finite"):
        check_epsilon(math.inf, allow_inf=False)


@pytest.mark.parametrize("bad", [0, 1, -0.1, 2, math.nan])
def test_delta_lies_between_0_and_1(bad):
    with pytest.raises(ValueError, match=r"probability in \(0, 1\)"):
        check_delta(bad)
    assert check_delta(0.0, allow_zero=True) == 0.0


@pytest.mark.parametrize("value", [2, np.int64(2), np.uint8(2)])
def test_a_count_is_a_plain_int(value):
    assert type(check_count(value, "n_rows", 2, 2)) is int


@pytest.mark.parametrize("value", [0, -1, 3, 2.0, math.nan, True, np.True_, "2", None])
def test_what_is_no_count_is_named(value):
    with pytest.raises(ValueError, match=r"^n_rows must be a whole number of at least 1 and at most 2; got "):
        check_count(value, "n_rows", 1, 2)


TEXTS = ["a b", "", "c"]


@pytest.mark.parametrize(
    "container", [list, tuple, iter, np.array, pd.Series, pd.Index, pl.Series, lambda t: pd.Series(t, dtype="string")]
)
def test_documents_of_every_container(container):
    assert check_documents(container(TEXTS)) == TEXTS


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        ("one document", TypeError, r"^X must be a collection of documents \(strings\); got a single str"),
        (b"one", TypeError, "got a single bytes"),
        (3, TypeError, "got a single int"),
        (None, TypeError, "got a single NoneType"),
        (["a", None], TypeError, "^X must hold strings; row 1 holds None of type NoneType"),
        ([1, 2], TypeError, "row 0 holds 1 of type int"),
        (np.array([["a", "b"]]), ValueError, "^X must be one-dimensional, one document per row; got a ndarray"),
        (pd.DataFrame({"text": ["a"]}), ValueError, "got a DataFrame of columns"),
        (pl.DataFrame({"text": ["a"]}), ValueError, "got a DataFrame of columns"),
        ([], ValueError, "^X holds no document"),
    ],
    ids=str,
)
def test_bad_documents_are_named(X, error, message):
    with pytest.raises(error, match=message):
        check_documents(X)


AGES = [18 + i for i in range(68)]


@pytest.mark.parametrize("column", [AGES, np.array(AGES), np.array(AGES) / 2, pd.Series(AGES), pl.Series(AGES)])
def test_raw_ages_warn_and_say_how_to_bin(column):
    with pytest.warns(ContinuousSensitiveFeatureWarning, match=r"68 different numbers.*pandas\.qcut") as caught:
        check_sensitive_features(column)
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    "column", [AGES[:20] * 4, [str(age) for age in AGES], pd.qcut(pd.Series(AGES), 30), [(age, "f") for age in AGES]]
)
def test_groups_do_not_warn(column):
    check_sensitive_features(column)


def test_binned_ages_are_groups():
    assert check_sensitive_features(pd.qcut(pd.Series(AGES), 4)).n_groups == (4,)
