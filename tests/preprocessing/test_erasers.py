"""The theorems of concept erasure, each with a control: the attack works before."""

import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV, cross_val_score
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


def whitened_advantage(X, z):
    """The same of a probe that blows every direction up to unit variance, however small it is."""
    U, _, _ = np.linalg.svd(StandardScaler().fit_transform(X), full_matrices=False)
    whitened = U * np.sqrt(len(U))
    model = LogisticRegression(C=1e6, max_iter=5000).fit(whitened, z)
    return model.score(whitened, z) - np.bincount(z).max() / len(z)


#: Units that no one would mix by intent, and every table of raw columns does.
UNITS = np.logspace(-10, 10, 8)


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


def test_leace_moves_rows_least():
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


@pytest.mark.parametrize("units", [1.0, UNITS], ids=["one unit", "mixed units"])
@pytest.mark.parametrize("n_groups", [2, 4])
def test_leace_equals_concept_erasure(n_groups, units):
    with warnings.catch_warnings():  # it compiles with what torch now deprecates
        warnings.simplefilter("ignore", DeprecationWarning)
        from concept_erasure import LeaceFitter
    X, z = biased_rows(n_groups=n_groups)
    Z = torch.nn.functional.one_hot(torch.tensor(z)).double()
    theirs = LeaceFitter.fit(torch.tensor(X), Z, shrinkage=False, svd_tol=1e-6, constrain_cov_trace=False).eraser
    ours = LEACEEraser().fit_transform(X * units, sensitive_features=z) / units
    np.testing.assert_allclose(ours, theirs(torch.tensor(X)).numpy(), atol=1e-9)


def test_leace_in_batches_equals_leace_at_once():
    X, z = biased_rows(n_groups=3)
    order = np.argsort(z)  # the third group appears in the last batches only
    X, z = X[order] + 1e6, z[order]  # a large offset must not eat the digits
    streamed = LEACEEraser()
    for rows in np.array_split(np.arange(len(X)), 7):
        streamed.partial_fit(X[rows], sensitive_features=z[rows])
    at_once = LEACEEraser().fit(X, sensitive_features=z)
    np.testing.assert_allclose(streamed.transform(X), at_once.transform(X), rtol=0, atol=1e-9)
    assert streamed.n_samples_seen_ == len(X)
    assert streamed.fit(X[:100], sensitive_features=z[100:200]).n_samples_seen_ == 100


@given(st.integers(0, 10**6), st.integers(2, 4), st.integers(2, 6))
@settings(max_examples=30, deadline=None)
def test_leace_projection_is_idempotent(seed, n_groups, n_features):
    X, z = biased_rows(200, n_features, n_groups, seed)
    moments = GroupMoments(n_features)
    moments.add(X, z[:, None], [list(range(n_groups))])
    np.testing.assert_allclose(moments.covariance * np.outer(moments.unit, moments.unit), np.cov(X.T), atol=1e-9)
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
def test_inlp_projection_is_idempotent_and_symmetric(base):
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


def test_refused_batch_changes_nothing():
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


def test_no_residue_of_the_arithmetic_betrays_the_groups():
    betrayed = []
    for seed in range(6):
        X, z = biased_rows(4000, seed=seed)
        eraser = LEACEEraser().fit(X, sensitive_features=z)
        residue = X - (1 - 1e-12) * ((X - eraser.mean_) @ eraser.right_.T) @ eraser.left_.T
        betrayed.append(whitened_advantage(residue, z))
        assert whitened_advantage(eraser.transform(X), z) < 0.05
    # In bare floating point a residue of the removed direction survives. The size of it depends on the processor; a
    # whitening probe finds one that is planted.
    assert min(betrayed) > 0.1


@pytest.mark.parametrize("n_groups", [2, 3])
def test_leace_erases_whatever_the_units_of_the_columns(n_groups):
    X, z = biased_rows(4000, n_groups=n_groups)
    X = X * UNITS
    assert linear_advantage(X, z) > 0.2
    erased = LEACEEraser().fit_transform(X, sensitive_features=z)
    assert linear_advantage(erased, z) < 0.005
    assert whitened_advantage(erased, z) < 0.05


def test_inlp_erases_whatever_the_units_of_the_columns():
    X, z = biased_rows(4000)
    X = X * UNITS
    eraser = INLPEraser(7).fit(X, sensitive_features=z)
    assert eraser.advantages_[0] > 0.2
    assert eraser.rank_ == eraser.n_iter_ == 7
    erased = eraser.transform(X)
    assert linear_advantage(erased, z) < 0.005
    assert whitened_advantage(erased, z) < 0.05


@pytest.mark.parametrize("eraser", [LEACEEraser(), INLPEraser(3)])
def test_erasing_and_changing_the_units_commute(eraser):
    X, z = biased_rows()
    plain = eraser.fit_transform(X, sensitive_features=z)
    rescaled = eraser.fit_transform(X * UNITS, sensitive_features=z) / UNITS
    np.testing.assert_allclose(rescaled, plain, rtol=0, atol=1e-6 if isinstance(eraser, INLPEraser) else 1e-10)
    # Powers of two lose nothing on the way, up to where squares would overflow or vanish: the same bits come out.
    powers = 2.0 ** np.linspace(-700, 700, 8).astype(int)
    np.testing.assert_array_equal(eraser.fit_transform(X * powers, sensitive_features=z) / powers, plain)


def test_leace_projection_is_the_same_map_in_any_units():
    X, z = biased_rows(n_groups=3)
    covariance, cross = np.cov(X.T), (X - X.mean(axis=0)).T @ np.eye(3)[z] / (len(X) - 1)
    left, right = leace_projection(covariance, cross)
    in_units = leace_projection(covariance * np.outer(UNITS, UNITS), cross * UNITS[:, None])
    np.testing.assert_allclose(in_units[0] @ in_units[1] * UNITS / UNITS[:, None], left @ right, atol=1e-10)


@pytest.mark.parametrize("eraser", [LEACEEraser(), INLPEraser(3)])
def test_the_fitted_attributes_describe_the_map(eraser):
    X, z = biased_rows()
    X = X * UNITS + 3 * UNITS
    erased = eraser.fit_transform(X, sensitive_features=z)
    if isinstance(eraser, LEACEEraser):
        described = X - (X - eraser.mean_) @ eraser.right_.T @ eraser.left_.T
    else:
        described = eraser.mean_ + ((X - eraser.mean_) / eraser.scale_) @ eraser.projection_ * eraser.scale_
        np.testing.assert_allclose(eraser.scale_, X.std(axis=0))
    np.testing.assert_allclose(eraser.mean_, X.mean(axis=0))
    np.testing.assert_allclose(erased / UNITS, described / UNITS, rtol=0, atol=1e-9)


def test_leace_erases_narrow_directions():
    X, z = biased_rows(4000)
    rotation, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(8, 8)))
    X = X * np.logspace(-10, 0, 8) @ rotation  # the covariance, at 1e-20 of its largest value, has forgotten the first
    assert whitened_advantage(X, z) > 0.4
    eraser = LEACEEraser().fit(X, sensitive_features=z)
    assert eraser.rank_ == 1
    assert whitened_advantage(eraser.transform(X), z) < 0.05


@pytest.mark.parametrize("eraser", [LEACEEraser(), INLPEraser(1)])
def test_column_of_nanoseconds_leaves_others_alone(eraser):
    data = load_breast_cancer()
    rng = np.random.default_rng(0)
    z, seconds = rng.integers(0, 2, len(data.target)), rng.integers(1_600_000_000, 1_750_000_000, len(data.target))
    X = np.column_stack([data.data, seconds * 1e9])
    erased = eraser.fit_transform(X, sensitive_features=z)
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    assert cross_val_score(model, erased, data.target).mean() >= 0.95
    assert linear_advantage(X, z) > 0.02
    assert eraser.rank_ == 1
    if isinstance(eraser, LEACEEraser):
        assert linear_advantage(erased, z) < 0.005


@pytest.mark.parametrize("eraser", [LEACEEraser(), INLPEraser(3)])
def test_an_offset_does_not_eat_the_digits(eraser):
    X, z = biased_rows(n_features=4)
    X[:, 0] *= 1e7
    offset = np.array([1.7e18, 1e9, 0, 1e6])
    X = (X + offset) - offset  # what float64 can hold beside the offset
    plain = eraser.fit_transform(X, sensitive_features=z)
    moved = eraser.fit_transform(X + offset, sensitive_features=z)
    difference = (moved - offset) - plain
    difference -= difference.mean(axis=0)  # the mean is held no better than the offset; that shifts all rows alike
    tolerance = np.spacing(2 * offset.clip(1)) + (1e-6 if isinstance(eraser, INLPEraser) else 1e-10) * X.std(axis=0)
    assert (np.abs(difference) <= tolerance).all()
    assert linear_advantage(X + offset, z) > 0.2
    if isinstance(eraser, LEACEEraser):
        assert linear_advantage(moved, z) < 0.005


class Stubborn(LogisticRegression):
    """Gives weight to every column, whether it says something or not."""

    def fit(self, X, y):
        super().fit(X, y)
        self.coef_ = self.coef_ + 1.0
        return self


@pytest.mark.parametrize("eraser", [LEACEEraser(), INLPEraser(2), INLPEraser(2, estimator=Stubborn())])
def test_constant_columns_stay_as_they_are(eraser):
    X, z = biased_rows(600, 4)
    constants = [0.1, 1.7e18, 0.0, -1e-300]
    table = np.column_stack([X, np.tile(constants, (len(X), 1))])
    erased = eraser.fit_transform(table, sensitive_features=z)
    np.testing.assert_array_equal(erased[:, 4:], table[:, 4:])
    np.testing.assert_allclose(erased[:, :4], eraser.fit_transform(X, sensitive_features=z), atol=1e-9)
    # What they turn out to hold later is passed on, and moves nothing else.
    eraser.fit(table, sensitive_features=z)
    later = table.copy()
    later[:, 4:] += [0.25, 1e15, 1e-7, 1.0]
    np.testing.assert_array_equal(eraser.transform(later)[:, 4:], later[:, 4:])
    np.testing.assert_array_equal(eraser.transform(later)[:, :4], erased[:, :4])


def test_batches_may_change_their_scale():
    X, z = biased_rows(700, 4)
    X[:100, 0] = 0.1  # constant at first
    X[:100, 1] *= 1e-12  # narrow at first
    X[100:, 2] *= 1e-280
    X[:100, 2] *= 1e-288
    streamed = LEACEEraser()
    for rows in np.array_split(np.arange(len(X)), 7):
        streamed.partial_fit(X[rows], sensitive_features=z[rows])
    largest = np.abs(X).max(axis=0)
    erased = streamed.transform(X) / largest
    at_once = LEACEEraser().fit_transform(X / largest, sensitive_features=z)
    np.testing.assert_allclose(erased, at_once, rtol=0, atol=1e-10)
    assert linear_advantage(X / largest, z) > 0.2
    assert linear_advantage(erased, z) < 0.005


@pytest.mark.parametrize("values", [(-1.7e308, 1.7e308), (1e305, 0.0), (1e-300, 2e-300)])
def test_a_column_that_float64_has_no_room_for_is_named(values):
    X, z = biased_rows(100, 3)
    X[:, 1] = 0.0
    fitted = LEACEEraser().fit(X, sensitive_features=z)
    before = fitted.transform(X)
    wrong = X.copy()
    wrong[:2, 1] = values
    for refused in (LEACEEraser().fit, INLPEraser().fit, fitted.partial_fit):
        with pytest.raises(ValueError, match=r"in column 1; .*multiply or divide that column"):
            refused(wrong, sensitive_features=z)
    np.testing.assert_array_equal(fitted.transform(X), before)
