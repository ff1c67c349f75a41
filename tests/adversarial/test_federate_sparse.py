"""Sparse rows: the same answers as dense ones, and never a dense copy of the whole."""

import math

import numpy as np
import pytest
from scipy import sparse
from sklearn.compose import make_column_transformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils import get_tags

from skfairdp import BagOfEmbeddingsEncoder, FederateClassifier

SETTINGS = {"max_epochs": 4, "batch_size": 50, "random_state": 0}


def table(n=300):
    rng = np.random.default_rng(0)
    y, z = rng.integers(2, size=n), rng.integers(2, size=n)
    X = (rng.random((n, 30)) < 0.1 + 0.3 * (y[:, None] == np.arange(30) % 2)).astype(float)
    return X, y, z


@pytest.mark.parametrize("channel", ["laplace", "codes"])
def test_sparse_equals_dense(channel):
    X, y, z = table()
    settings = {**SETTINGS, "channel": channel, "fairness_penalty": 0.1, "early_stopping": True}
    dense = FederateClassifier(**settings).fit(X, y, sensitive_features=z)
    released = [getattr(dense, method)(X) for method in ("predict", "predict_proba", "transform")]
    for form in (sparse.csr_array, sparse.csr_matrix, sparse.csc_array, sparse.coo_matrix):
        thin = form(X)
        other = FederateClassifier(**settings).fit(thin, y, sensitive_features=z)
        for method, expected in zip(("predict", "predict_proba", "transform"), released):
            assert np.array_equal(getattr(other, method)(thin), expected), form
        assert np.array_equal(form(X).toarray(), thin.toarray())


def test_sparse_and_dense_models_take_both():
    X, y, _ = table()
    clf = FederateClassifier(**SETTINGS, epsilon=math.inf, adversary_weight=0.0).fit(sparse.csr_array(X), y)
    assert np.array_equal(clf.predict(X), clf.predict(sparse.csc_matrix(X)))
    encoder, _ = clf.split()
    assert np.array_equal(encoder.transform(X), encoder.transform(sparse.csr_array(X)))
    assert np.array_equal(clf.net_.predict(X), clf.net_.predict(sparse.csr_array(X)))


def test_sparse_is_never_made_dense_as_a_whole(monkeypatch):
    X, y, _ = table(1000)
    largest = []
    honest = sparse.csr_array.toarray

    def watched(self, *args, **kwargs):
        largest.append(self.shape[0])
        return honest(self, *args, **kwargs)

    monkeypatch.setattr(sparse.csr_array, "toarray", watched)
    monkeypatch.setattr(sparse.csr_matrix, "toarray", watched)
    monkeypatch.setattr("skfairdp.neural._federate_net._VALUES_AT_ONCE", 100 * 30)
    clf = FederateClassifier(**SETTINGS, adversary_weight=0.0, early_stopping=True, validation_fraction=0.5)
    clf.fit(sparse.csr_array(X), y).predict(sparse.csr_matrix(X))
    assert max(largest) == 100


def test_one_hot_encoder_in_a_pipeline():
    rng = np.random.default_rng(0)
    X = np.array(["red", "green", "blue"])[rng.integers(3, size=(400, 3))]
    y = (X[:, 0] == "red") | (X[:, 1] == "blue")
    # Only 27 rows differ: merged, they are one batch and one step of an epoch.
    clf = FederateClassifier(**{**SETTINGS, "max_epochs": 80}, channel="codes", adversary_weight=0.0)
    encode = make_column_transformer((OneHotEncoder(sparse_output=True), [0, 1, 2]), sparse_threshold=1.0)
    assert make_pipeline(encode, clf).fit(X, y).score(X, y) > 0.95


def test_tfidf_vectorizer_in_a_pipeline():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=300)
    words = np.array([["good", "fine"], ["bad", "dull"]])
    texts = [f"{rng.choice(words[label])} film number {rng.integers(50)}" for label in y]
    clf = FederateClassifier(**{**SETTINGS, "max_epochs": 15}, adversary_weight=0.0)
    assert make_pipeline(TfidfVectorizer(), clf).fit(texts, y).score(texts, y) > 0.9


def test_sparse_tag():
    assert get_tags(FederateClassifier()).input_tags.sparse
    assert not get_tags(FederateClassifier(encoder=BagOfEmbeddingsEncoder())).input_tags.sparse


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_sparse_refuses_broken_values(bad):
    X, y, _ = table()
    thin = sparse.csr_array(X)
    thin.data[3] = bad
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        FederateClassifier(adversary_weight=0.0).fit(thin, y)
