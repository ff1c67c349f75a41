"""Sparse rows give what dense ones give, in every transformer and in the pipelines where they arise."""

import math

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils import get_tags

from skfairdp import (
    GaussianPrivatizer,
    INLPEraser,
    LaplacePrivatizer,
    LEACEEraser,
    OMEEncoder,
    PrivateScaler,
    PublicScaler,
    _base,
)
from skfairdp.model_selection import route_sensitive_features
from skfairdp.preprocessing import _eraser

CONTAINERS = [sparse.csr_matrix, sparse.csc_array, sparse.coo_array]
ERASERS = [LEACEEraser(), INLPEraser(3)]


def rows(n=400, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 6)) * (rng.random((n, 6)) < 0.4)
    X[:, :2] += z[:, None] * (rng.random((n, 2)) < 0.5)
    X[:, 5] = 0.0
    return X, z


@pytest.fixture
def small_blocks(monkeypatch):
    """A few rows at a time, so that blocks have ends."""
    monkeypatch.setattr(_base, "BLOCK_VALUES", 100)


@pytest.mark.parametrize(
    "transformer",
    [
        LaplacePrivatizer(random_state=0),
        LaplacePrivatizer(norm="clip", random_state=0),
        GaussianPrivatizer(random_state=0),
        OMEEncoder(random_state=0),
        OMEEncoder(math.inf, standardize=False),
        PublicScaler(bounds=(-4, 4)),
        PrivateScaler(bounds=(-4, 4), random_state=0),
    ],
    ids=repr,
)
@pytest.mark.parametrize("container", CONTAINERS)
def test_row_wise_transformers_equal_dense(transformer, container):
    X, _ = rows()
    dense = transformer.fit(X).transform(X)
    found = transformer.fit(container(X)).transform(container(X))
    assert isinstance(found, np.ndarray)
    np.testing.assert_array_equal(found, dense)
    assert get_tags(transformer).input_tags.sparse


@pytest.mark.parametrize("eraser", ERASERS)
@pytest.mark.parametrize("container", CONTAINERS)
def test_erasers_equal_dense(small_blocks, eraser, container):
    X, z = rows()
    dense = eraser.fit(X, sensitive_features=z).transform(X)
    found = eraser.fit(container(X), sensitive_features=z).transform(container(X))
    assert isinstance(found, np.ndarray)
    assert eraser.rank_ > 0
    np.testing.assert_allclose(found, dense, atol=1e-6)
    np.testing.assert_allclose(eraser.transform(X), found, atol=1e-12)
    assert get_tags(eraser).input_tags.sparse


def test_leace_of_sparse_rows_erases(small_blocks):
    X, z = rows()
    erased = LEACEEraser().fit_transform(sparse.csr_array(X), sensitive_features=z)
    assert np.ptp([erased[z == g].mean(axis=0) for g in (0, 1)], axis=0).max() < 1e-10
    assert np.ptp([X[z == g].mean(axis=0) for g in (0, 1)], axis=0).max() > 0.2


def test_leace_streams_sparse_batches():
    X, z = rows()
    streamed = LEACEEraser()
    for part in np.array_split(np.arange(len(X)), 4):
        streamed.partial_fit(sparse.csr_array(X[part]), sensitive_features=z[part])
    at_once = LEACEEraser().fit(X, sensitive_features=z)
    np.testing.assert_allclose(streamed.transform(X), at_once.transform(X), atol=1e-9)


def test_leace_never_holds_all_rows_dense(small_blocks, monkeypatch):
    X, z = rows()
    sizes = []
    true = _base.dense
    monkeypatch.setattr(_base, "dense", lambda part: sizes.append(part.shape[0]) or true(part))
    LEACEEraser().fit(sparse.csr_array(X), sensitive_features=z)
    assert max(sizes) <= 16


@pytest.mark.parametrize("eraser", ERASERS)
def test_erasers_refuse_too_many_sparse_columns(eraser, monkeypatch):
    monkeypatch.setattr(_eraser, "MOST_SPARSE_COLUMNS", 5)
    X, z = rows()
    with pytest.raises(ValueError, match=r"6 columns.*at most 5 sparse ones.*TruncatedSVD"):
        eraser.fit(sparse.csr_array(X), sensitive_features=z)
    assert eraser.fit(X, sensitive_features=z).rank_ > 0


def groups_and_labels(n=500, seed=0):
    rng = np.random.default_rng(seed)
    z, y = rng.integers(0, 2, n), rng.integers(0, 2, n)
    return rng, z, y


@pytest.mark.parametrize("eraser", ERASERS)
def test_pipeline_of_one_hot_encoder_and_eraser(eraser):
    rng, z, y = groups_and_labels()
    table = pd.DataFrame({"a": np.where(rng.random(500) < 0.8, z, 2).astype(str), "b": rng.choice(list("pqr"), 500)})
    found = {}
    with sklearn.config_context(enable_metadata_routing=True):
        for output in (True, False):
            model = make_pipeline(OneHotEncoder(sparse_output=output), sklearn.base.clone(eraser), LogisticRegression())
            route_sensitive_features(model).fit(table, y, sensitive_features=z)
            found[output] = model.predict_proba(table)
    np.testing.assert_allclose(found[True], found[False], atol=1e-4)


@pytest.mark.parametrize("step", [*ERASERS, LaplacePrivatizer(random_state=0), OMEEncoder(random_state=0)], ids=repr)
def test_pipeline_of_tfidf(step):
    rng, z, y = groups_and_labels()
    documents = [" ".join(rng.choice([f"g{g}", f"l{label}", "the", "of"], 6)) for g, label in zip(z, y)]
    with sklearn.config_context(enable_metadata_routing=True):
        model = make_pipeline(TfidfVectorizer(), sklearn.base.clone(step), LogisticRegression())
        given = {}
        if hasattr(step, "set_fit_request"):
            route_sensitive_features(model)
            given["sensitive_features"] = z
        model.fit(documents, y, **given)
    rows = model[0].transform(documents).toarray()
    dense = sklearn.base.clone(step).fit(rows, **given).transform(rows)
    assert model.predict(documents).shape == (500,)
    if given:
        np.testing.assert_allclose(model[:-1].transform(documents), dense, atol=1e-5)
        assert model.score(documents, y) > 0.9
