"""The theorems of concept erasure, each with a control: the attack works before."""

import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from skfairdp import INLPEraser, LEACEEraser
from skfairdp.preprocessing._projections import GroupMoments, leace_projection, nullspace_projection


def biased_rows(n=1200, n_features=8, n_groups=2, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.integers(0, n_groups, n)
    mixing = rng.normal(size=(n_features, n_features))
    X = rng.normal(size=(n, n_features)) @ mixing + 2.0 * rng.normal(size=(n_groups, n_features))[z]
    return X, z


def linear_advantage(X, z):
    """How far the best linear classifier (least regularised) is above the largest group, on the rows themselves."""
    model = make_pipeline(StandardScaler(), LogisticRegression(C=1e6, max_iter=5000)).fit(X, z)
    return model.score(X, z) - np.bincount(z).max() / len(z)


@pytest.mark.parametrize("n_groups", [2, 3, 5])
def test_leace_leaves_linear_probes_at_chance(n_groups):
    X, z = biased_rows(n_groups=n_groups)
    assert linear_advantage(X, z) > 0.2
    eraser = LEACEEraser().fit(X, sensitive_features=z)
    erased = eraser.transform(X)
    assert eraser.rank_ == n_groups - 1
    assert linear_advantage(erased, z) < 0.005
    # The theorem itself: all group means coincide.
    means = np.array([erased[z == g].mean(axis=0) for g in range(n_groups)])
    assert np.ptp(means, axis=0).max() < 1e-10


def test_leace_moves_rows_less_than_any_other_perfect_eraser_tried():
    X, z = biased_rows()
    moved = np.mean((LEACEEraser().fit_transform(X, sensitive_features=z) - X) ** 2)
    difference = X[z == 1].mean(axis=0) - X[z == 0].mean(axis=0)
    rng = np.random.default_rng(0)
    centred = X - X.mean(axis=0)
    for _ in range(50):  # oblique projections along the difference of means: all of them perfect
        row = rng.normal(size=X.shape[1])
        other = X - np.outer(centred @ row, difference) / (difference @ row)
        assert np.ptp([other[z == g].mean(axis=0) for g in (0, 1)], axis=0).max() < 1e-8
        assert np.mean((other - X) ** 2) > moved


@pytest.mark.parametrize("n_groups", [2, 4])
def test_leace_equals_concept_erasure(n_groups):
    with warnings.catch_warnings():  # it compiles with what torch now deprecates
        warnings.simplefilter("ignore", DeprecationWarning)
        from concept_erasure import LeaceFitter
    X, z = biased_rows(n_groups=n_groups)
    Z = torch.nn.functional.one_hot(torch.tensor(z)).double()
    theirs = LeaceFitter.fit(torch.tensor(X), Z, shrinkage=False, svd_tol=1e-6, constrain_cov_trace=False).eraser
    ours = LEACEEraser().fit_transform(X, sensitive_features=z)
    np.testing.assert_allclose(ours, theirs(torch.tensor(X)).numpy(), atol=1e-9)


def test_leace_in_batches_equals_leace_at_once_even_with_late_groups():
    X, z = biased_rows(n_groups=3)
    order = np.argsort(z)  # the third group appears in the last batches only
    X, z = X[order] + 1e6, z[order]  # a large offset must not eat the digits
    streamed = LEACEEraser()
    for rows in np.array_split(np.arange(len(X)), 7):
        streamed.partial_fit(X[rows], sensitive_features=z[rows])
    at_once = LEACEEraser().fit(X, sensitive_features=z)
    np.testing.assert_allclose(streamed.transform(X), at_once.transform(X), rtol=0, atol=1e-5)
    assert streamed.n_samples_seen_ == len(X)
    assert streamed.fit(X[:100], sensitive_features=z[100:200]).n_samples_seen_ == 100


@given(st.integers(0, 10**6), st.integers(2, 4), st.integers(2, 6))
@settings(max_examples=30, deadline=None)
def test_leace_projection_is_idempotent_and_of_the_promised_rank(seed, n_groups, n_features):
    X, z = biased_rows(200, n_features, n_groups, seed)
    moments = GroupMoments(n_features)
    moments.add(X, z[:, None], [list(range(n_groups))])
    np.testing.assert_allclose(moments.covariance, np.cov(X.T), atol=1e-9)
    left, right = leace_projection(moments.covariance, moments.cross_covariance)
    P = np.eye(n_features) - left @ right
    assert left.shape[1] == min(n_groups - 1, n_features)
    np.testing.assert_allclose(P @ P, P, atol=1e-7)


def test_leace_handles_constant_and_duplicate_features():
    X, z = biased_rows()
    X = np.column_stack([X, X[:, 0], np.ones(len(X))])
    erased = LEACEEraser().fit_transform(X, sensitive_features=z)
    np.testing.assert_allclose(erased[:, -1], 1.0)
    np.testing.assert_allclose(erased[:, -2], erased[:, 0], atol=1e-8)
    assert linear_advantage(erased, z) < 0.005


def test_several_columns_are_erased_together():
    X, z = biased_rows(n_groups=4)
    frame = pd.DataFrame({"sex": z % 2, "race": z // 2})
    for eraser in (LEACEEraser(), INLPEraser(20)):
        erased = eraser.fit_transform(X, sensitive_features=frame)
        for column in frame:
            assert linear_advantage(X, frame[column].to_numpy()) > 0.15
            assert linear_advantage(erased, frame[column].to_numpy()) < 0.03


@pytest.mark.parametrize("base", [None, RidgeClassifier()])
def test_inlp_projection_is_idempotent_symmetric_and_of_the_promised_rank(base):
    X, z = biased_rows(n_features=12)
    for rounds in (1, 3):
        eraser = INLPEraser(rounds, estimator=base).fit(X, sensitive_features=z)
        P = eraser.projection_
        np.testing.assert_allclose(P @ P, P, atol=1e-10)
        np.testing.assert_allclose(P, P.T, atol=1e-12)
        assert eraser.rank_ == rounds == eraser.n_iter_
        assert np.linalg.matrix_rank(P) == 12 - rounds


@pytest.mark.parametrize("n_groups", [2, 3])
def test_inlp_leaves_linear_probes_at_chance(n_groups):
    X, z = biased_rows(n_features=12, n_groups=n_groups)
    assert linear_advantage(X, z) > 0.2
    eraser = INLPEraser(8).fit(X, sensitive_features=z)
    assert eraser.advantages_[0] > 0.2
    assert linear_advantage(eraser.transform(X), z) < 0.03


def test_inlp_stops_when_nothing_is_found():
    rng = np.random.default_rng(0)
    X, z = rng.normal(size=(4000, 5)), rng.integers(0, 2, 4000)
    assert INLPEraser(10, tol=0.05).fit(X, sensitive_features=z).rank_ == 0


def test_nullspace_of_dependent_directions():
    directions = np.array([[1.0, 0, 0], [2.0, 0, 0], [0, 0, 0]])
    P, rank = nullspace_projection(directions)
    assert rank == 1
    np.testing.assert_allclose(P, np.diag([0.0, 1.0, 1.0]), atol=1e-12)


@pytest.mark.parametrize("eraser", [LEACEEraser(), INLPEraser()])
def test_an_eraser_that_is_told_nothing_refuses(eraser):
    X, z = biased_rows(60, 3)
    advice = r"sensitive_features is None.*enable_metadata_routing=True.*route_sensitive_features"
    methods = [eraser.fit, eraser.fit_transform] + ([eraser.partial_fit] if hasattr(eraser, "partial_fit") else [])
    for method in methods:
        with pytest.raises(ValueError, match=advice):
            method(X, z)
    # Where a warning would be lost: inside a pipeline, inside a search that runs on whatever still fits.
    pipeline = make_pipeline(eraser, LogisticRegression())
    with pytest.raises(ValueError, match=advice):
        pipeline.fit(X, z)
    with pytest.raises(ValueError, match=advice):
        GridSearchCV(pipeline, {"logisticregression__C": [0.1, 1.0]}, cv=2).fit(X, z)


def test_a_batch_without_groups_is_refused_and_changes_nothing():
    X, z = biased_rows(100, 3)
    eraser = LEACEEraser().fit(X, sensitive_features=z)
    before = eraser.transform(X)
    with pytest.raises(ValueError, match="sensitive_features is None"):
        eraser.partial_fit(X)
    assert eraser.n_samples_seen_ == 100
    np.testing.assert_array_equal(eraser.transform(X), before)


@pytest.mark.parametrize("eraser", [LEACEEraser(), INLPEraser()])
def test_one_group_erases_nothing(eraser):
    X, _ = biased_rows(50)
    assert eraser.fit(X, sensitive_features=np.zeros(50)).rank_ == 0


def test_names_and_bad_input():
    X, z = biased_rows(60, 3)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    eraser = LEACEEraser().set_output(transform="pandas").fit(frame, sensitive_features=z)
    assert eraser.transform(frame).columns.tolist() == ["a", "b", "c"]
    with pytest.raises(ValueError, match="60 expected, 59 given"):
        LEACEEraser().fit(X, sensitive_features=z[:-1])
    with pytest.raises(ValueError, match="NaN"):
        INLPEraser().fit(np.full((4, 2), np.nan), sensitive_features=[0, 1, 0, 1])
    with pytest.raises(TypeError, match="coef_"):
        INLPEraser(estimator=DecisionTreeClassifier()).fit(X, sensitive_features=z)


def test_a_failed_batch_leaves_the_eraser_as_it_was():
    X, z = biased_rows(100, 3)
    eraser = LEACEEraser().fit(X, sensitive_features=z)
    before = eraser.transform(X)
    with pytest.raises(ValueError, match="missing values"):
        eraser.partial_fit(X, sensitive_features=[None] * 100)
    with pytest.raises(ValueError, match="missing values"):
        eraser.fit(X, sensitive_features=[None] * 100)
    np.testing.assert_array_equal(eraser.transform(X), before)


def whitened_advantage(X, z):
    """A probe that blows every direction up to unit variance, however small it is."""
    U, _, _ = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    whitened = U * np.sqrt(len(U))
    model = LogisticRegression(C=1e6, max_iter=5000).fit(whitened, z)
    return model.score(whitened, z) - np.bincount(z).max() / len(z)


def test_no_residue_of_the_arithmetic_betrays_the_groups():
    X, z = biased_rows(4000)
    eraser = LEACEEraser().fit(X, sensitive_features=z)
    # In bare floating point the removed direction survives, 1e-16 of its size, and a whitening probe finds it.
    bare = X - ((X - eraser.mean_) @ eraser.right_.T) @ eraser.left_.T
    assert whitened_advantage(bare, z) > 0.1
    assert whitened_advantage(eraser.transform(X), z) < 0.05
