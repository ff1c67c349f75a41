"""Drawing releases: inputs and outputs of every kind, and what is refused."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from skfairdp.epsilon_audit._attack import Draws, check_different, read_outputs, release_function
from skfairdp.epsilon_audit._worst_case_pairs import read_record


def test_released_method_order():
    scaler, model = StandardScaler(), LogisticRegression()
    assert release_function(scaler) == scaler.transform
    assert release_function(model) == model.predict_proba
    assert release_function(len) is len
    mechanism = SimpleNamespace(release=lambda X, stream: (X, stream.secure), log_likelihood_ratio=len)
    assert release_function(mechanism)(3) == (3, True), "a mechanism draws from the operating system"
    with pytest.raises(TypeError, match=r"release must be a fitted transformer.*got 3 of type int"):
        release_function(3)


@pytest.mark.parametrize(
    "row", [[1.0, 2.0], np.array([[1.0, 2.0]]), pd.Series([1.0, 2.0]), pd.DataFrame([[1.0, 2.0]]), (1.0, 2.0)]
)
def test_records_of_any_container(row):
    np.testing.assert_array_equal(read_record(row, "x"), [1.0, 2.0])


def test_a_sparse_row_a_number_and_a_document_are_records():
    np.testing.assert_array_equal(read_record(sparse.csr_array([[0.0, 2.0]]), "x"), [0.0, 2.0])
    np.testing.assert_array_equal(read_record(3.0, "x"), [3.0])
    assert read_record("a document", "x") == "a document"


def test_records_that_are_none_are_refused():
    with pytest.raises(ValueError, match="x_prime"):
        read_record(None, "x_prime")
    with pytest.raises(ValueError, match=r"x must be one record .* got shape \(2, 2\)"):
        read_record([[1, 2], [3, 4]], "x")


def test_pairs_that_show_nothing_are_refused():
    row = np.array([1.0, np.nan])
    for pair in (("a", "a"), (row, row.copy())):
        with pytest.raises(ValueError, match="x_prime"):
            check_different(*pair)
    with pytest.raises(ValueError, match="equally many values; got 2 and 1"):
        check_different(row, row[:1])
    with pytest.raises(ValueError, match="both be documents"):
        check_different("a", row)
    check_different(np.array([0.0, np.nan]), row)


def test_outputs_become_numbers_or_strings():
    assert read_outputs(pd.DataFrame({"a": [1, 2]}), 2).dtype == np.float64
    assert read_outputs(sparse.csr_array(np.eye(2)), 2).shape == (2, 2)
    assert read_outputs(np.array([True, False]), 2).shape == (2, 1)
    assert read_outputs(np.array([1 + 2j, 3.0]), 2).tolist() == [[1.0, 2.0], [3.0, 0.0]]
    assert read_outputs(np.zeros((2, 3, 4)), 2).shape == (2, 12)
    assert read_outputs(np.array([[1, 2.5]], dtype=object), 1).tolist() == [[1.0, 2.5]]
    assert read_outputs(["b", "a"], 2).tolist() == ["b", "a"]
    assert read_outputs([["the", "cat"], ["a"]], 2).tolist() == ["the cat", "a"]
    assert read_outputs(np.array([["red", "big"]]), 1).tolist() == ["0=red 1=big"]
    with pytest.raises(ValueError, match=r"one output per row: 3 rows were given, shape \(2,\) came back"):
        read_outputs([1, 2], 3)


def test_blocks_add_up_and_respect_the_rows_per_call():
    sizes = []

    def release(X):
        sizes.append(len(X))
        return X

    assert Draws(release, np.zeros(2), 7).take(20).shape == (20, 2)
    assert sizes == [7, 7, 6]


def test_feature_names_are_handed_over():
    seen = []
    Draws(lambda X: seen.append(list(X.columns)) or X, np.zeros(2), None, ["a", "b"]).take(3)
    assert seen == [["a", "b"]]
