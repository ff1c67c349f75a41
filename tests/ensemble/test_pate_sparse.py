"""Sparse rows: the same votes and the same student as from arrays, in any step of a pipeline."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import get_tags

from skfairdp import PATEClassifier, _base, pate_fairness
from skfairdp.ensemble import _teachers


def table(n=600, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 8)) * (rng.random((n, 8)) < 0.4)
    return X, (X[:, 0] + X[:, 1] > X[:, 2]).astype(int)


def fit(X, y, public, **parameters):
    settings = {"n_teachers": 15, "epsilon": 20.0, "n_queries": 80, "random_state": 0}
    return PATEClassifier(**{**settings, **parameters}).fit(X, y, public=public)


TEACHERS = [None, LogisticRegression(), GaussianNB(), DecisionTreeClassifier(max_depth=3)]


@pytest.fixture
def small_blocks(monkeypatch):
    """A few rows at a time, so that blocks have ends."""
    monkeypatch.setattr(_base, "BLOCK_VALUES", 100)
    monkeypatch.setattr(_teachers, "_VALUES_AT_ONCE", 1000)


@pytest.mark.parametrize(
    ("estimator", "container", "scale"),
    [
        *product(TEACHERS, [sparse.csr_matrix], ["public", None]),
        (None, sparse.csc_array, "public"),
        (LogisticRegression(), sparse.coo_matrix, None),
        *(
            pytest.param(*choice, marks=pytest.mark.slow)
            for choice in product(TEACHERS, [sparse.csc_array, sparse.coo_matrix], ["public", None])
        ),
    ],
)
def test_sparse_teachers_vote_as_dense_ones(small_blocks, container, scale, estimator):
    (X, y), public = table(), table(120, 9)[0]
    given = {"estimator": estimator, "scale": scale}
    dense, found = fit(X, y, public, **given), fit(container(X), y, container(public), **given)
    np.testing.assert_array_equal(found.teacher_votes(container(X)), dense.teacher_votes(X))
    np.testing.assert_allclose(found.student_targets_, dense.student_targets_, atol=1e-12)
    np.testing.assert_allclose(found.predict_proba(container(X)), dense.predict_proba(X), atol=1e-6)
    np.testing.assert_allclose(found.student_.predict_proba(container(X)), dense.predict_proba(X), atol=1e-6)
    np.testing.assert_allclose(found.predict_proba(X), dense.predict_proba(X), atol=1e-6)


@pytest.mark.parametrize("student", ["logistic", "network", LogisticRegression()])
@pytest.mark.parametrize("scale", ["public", None])
def test_sparse_students_equal_dense_ones(small_blocks, student, scale):
    (X, y), public = table(), table(120, 9)[0]
    given = {"student": student, "scale": scale, "labels": "hard"}
    dense, found = fit(X, y, public, **given), fit(sparse.csr_array(X), y, sparse.csr_array(public), **given)
    np.testing.assert_allclose(found.predict_proba(sparse.csr_array(X)), dense.predict_proba(X), atol=1e-5)


def test_blocks_of_networks_change_no_vote(monkeypatch):
    (X, y), public = table(), table(120, 9)[0]
    whole = fit(X, y, public).teacher_votes(X)
    monkeypatch.setattr(_teachers, "_VALUES_AT_ONCE", 1)  # one teacher at a time
    np.testing.assert_array_equal(fit(X, y, public).teacher_votes(X), whole)


def test_private_and_public_rows_in_other_containers():
    (X, y), public = table(), table(120, 9)[0]
    dense = fit(X, y, public).predict_proba(X)
    for one, other in ((sparse.csr_array(X), public), (X, sparse.csr_array(public))):
        np.testing.assert_allclose(fit(one, y, other).predict_proba(X), dense, atol=1e-6)


def test_same_rows_are_refused_when_sparse():
    X, y = table()
    with pytest.raises(ValueError, match="public holds the same rows as X"):
        fit(rows := sparse.csr_array(X), y, rows)


def test_student_that_takes_no_sparse_rows():
    (X, y), public = table(), table(120, 9)[0]
    given = {"student": GaussianNB(), "labels": "hard"}
    sparse_rows, sparse_public = sparse.csr_array(X), sparse.csr_array(public)
    with pytest.raises(ValueError, match=r"GaussianNB does not. Use scale='clipped'.*TruncatedSVD"):
        fit(sparse_rows, y, sparse_public, scale=None, **given)
    assert not get_tags(PATEClassifier(scale=None, **given)).input_tags.sparse
    scaled = fit(sparse_rows, y, sparse_public, **given)
    np.testing.assert_array_equal(scaled.predict(sparse_rows), fit(X, y, public, **given).predict(X))


def test_fairness_of_sparse_rows():
    (X, y), (public, labels) = table(), table(120, 9)
    given = {"sensitive_features": (public[:, 3] > 0).astype(int), "y": labels, "n_repeats": 5, "random_state": 0}
    dense = pate_fairness(fit(X, y, public), public, **given)
    found = pate_fairness(fit(sparse.csr_array(X), y, sparse.csr_array(public)), sparse.csr_array(public), **given)
    pd.testing.assert_frame_equal(found.rows, dense.rows, rtol=1e-6)


def routed(encoder, **parameters):
    pate = PATEClassifier(n_teachers=15, epsilon=50.0, random_state=0, **parameters).set_fit_request(public=True)
    return Pipeline([("encoder", encoder), ("pate", pate)], transform_input=["public"])


def test_pipeline_with_one_hot_encoder():
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"a": rng.choice(list("xyz"), 900), "b": rng.choice(list("pq"), 900)})
    y = (rows["a"] == "x").to_numpy().astype(int)
    kinds = [["x", "y", "z"], ["p", "q"]]
    found = {}
    with sklearn.config_context(enable_metadata_routing=True):
        for sparse_output in (True, False):
            model = routed(OneHotEncoder(categories=kinds, sparse_output=sparse_output))
            found[sparse_output] = model.fit(rows[:700], y[:700], public=rows[700:]).predict_proba(rows)
            assert model.score(rows, y) > 0.95
    np.testing.assert_allclose(found[True], found[False], atol=1e-6)


@pytest.mark.parametrize("scale", ["public", None])
def test_pipeline_with_tfidf(scale):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 900)
    words = np.array([["bad", "dull", "film", "plot"], ["good", "fine", "film", "plot"]])
    documents = [" ".join(rng.choice(words[label], 5)) for label in y]
    # The vocabulary is public: it is learned from the public documents alone.
    vocabulary = TfidfVectorizer().fit(documents[700:]).vocabulary_
    parameters = {"estimator": LogisticRegression(), "scale": scale}
    with sklearn.config_context(enable_metadata_routing=True):
        model = routed(TfidfVectorizer(vocabulary=vocabulary), **parameters)
        model.fit(documents[:700], y[:700], public=documents[700:])
    assert model.score(documents, y) > 0.95
    rows = model[0].transform(documents).toarray()
    dense = PATEClassifier(n_teachers=15, epsilon=50.0, random_state=0, **parameters)
    dense.fit(rows[:700], y[:700], public=rows[700:])
    np.testing.assert_allclose(model.predict_proba(documents), dense.predict_proba(rows), atol=1e-5)
