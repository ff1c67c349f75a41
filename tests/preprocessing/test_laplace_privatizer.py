"""LaplacePrivatizer: what it releases, what it says about it, and what it refuses."""

import math
import pickle
import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse, stats
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skfairdp import LaplacePrivatizer
from skfairdp.accounting import compose
from skfairdp.dp import _release
from skfairdp.exceptions import OverclaimedPrivacyWarning
from skfairdp.mechanisms import normalise


@pytest.fixture
def H():
    return np.random.default_rng(0).normal(size=(300, 8))


def test_the_receipt_is_that_of_what_runs(H):
    privatizer = LaplacePrivatizer(epsilon=8.0).fit(H)
    privacy = privatizer.privacy_
    assert (privacy.epsilon, privacy.delta, privacy.mechanism, privacy.unit) == (8.0, 0.0, "laplace", "record")
    assert privacy.published_epsilon is None
    assert not privacy.reproducible
    assert privatizer.noise_scale_ == pytest.approx(0.25)
    assert privatizer.sensitivity_ == 2.0


def test_a_seed_is_confessed(H):
    privacy = LaplacePrivatizer(epsilon=8.0, random_state=0).fit(H).privacy_
    assert privacy.reproducible
    assert any("seed" in sentence for sentence in privacy.does_not_cover)


@pytest.mark.parametrize(
    ("norm", "exact", "scale"), [("l2", math.sqrt(8), 2.0), ("minmax", 8.0, 1.0), ("l1", 1.0, 2.0)]
)
def test_published_noise_is_priced_exactly(H, norm, exact, scale):
    privatizer = LaplacePrivatizer(epsilon=1.0, norm=norm, calibration="published", radius=3.0)
    if norm == "l1":
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            privatizer.fit(H)
        assert privatizer.privacy_.published_epsilon is None
    else:
        with pytest.warns(OverclaimedPrivacyWarning, match=rf"claims epsilon=1, .* epsilon={exact:.6g}"):
            privatizer.fit(H)
        assert privatizer.privacy_.published_epsilon == 1.0
    assert privatizer.privacy_.epsilon == pytest.approx(exact)
    assert privatizer.noise_scale_ == pytest.approx(3 * scale, rel=0.005)


def test_nobody_published_clipping(H):
    with pytest.raises(ValueError, match="norm"):
        LaplacePrivatizer(norm="clip", calibration="published").fit(H)


@pytest.mark.parametrize("norm", ["l1", "l2", "minmax", "clip"])
def test_noise_has_the_scale_that_the_object_names(norm):
    H = np.random.default_rng(0).normal(size=(10_000, 6))
    privatizer = LaplacePrivatizer(epsilon=3.0, norm=norm, radius=2.0, random_state=1).fit(H)
    noise = (privatizer.transform(H) - normalise(H, norm, 2.0)).reshape(-1)
    assert stats.kstest(noise, stats.laplace(0, privatizer.noise_scale_).cdf).pvalue > 1e-4
    assert stats.kstest(noise, stats.laplace(0, 1.1 * privatizer.noise_scale_).cdf).pvalue < 1e-12


@pytest.mark.parametrize("norm", ["l1", "l2", "minmax", "clip"])
def test_infinite_epsilon_switches_the_noise_off(H, norm):
    privatizer = LaplacePrivatizer(epsilon=math.inf, norm=norm).fit(H)
    assert np.array_equal(privatizer.transform(H), normalise(H, norm))
    assert math.isinf(privatizer.privacy_.epsilon)
    assert privatizer.noise_scale_ == 0.0


@pytest.mark.parametrize("random_state", [None, 0])
def test_every_call_draws_fresh_noise(H, random_state):
    privatizer = LaplacePrivatizer(random_state=random_state).fit(H)
    first, second = privatizer.transform(H), privatizer.transform(H)
    assert (first != second).mean() > 0.99
    assert abs(np.corrcoef((first - second).reshape(-1), first.reshape(-1))[0, 1] - math.sqrt(0.5)) < 0.1


def test_seeds_repeat_and_entropy_does_not(H):
    def release(seed):
        return LaplacePrivatizer(random_state=seed).fit_transform(H)

    assert np.array_equal(release(3), release(3))
    assert not np.array_equal(release(3), release(4))
    assert not np.array_equal(release(None), release(None))


def test_a_pickled_copy_goes_on_and_a_clone_starts_anew(H):
    privatizer = LaplacePrivatizer(random_state=0).fit(H)
    privatizer.transform(H)
    copy = pickle.loads(pickle.dumps(privatizer))
    assert np.array_equal(copy.transform(H), privatizer.transform(H))
    assert compose([copy.privacy_, privatizer.privacy_]).epsilon == math.inf  # it is the same noise
    with pytest.raises(NotFittedError):
        clone(privatizer).transform(H)


def test_extreme_and_empty_rows_are_released_like_others():
    X = np.array([[0.0, 0.0], [5e-324, 0.0], [1.7e308, -1.7e308], [7.0, 7.0]])
    for norm in ("l1", "l2", "minmax", "clip"):
        released = LaplacePrivatizer(epsilon=1.0, norm=norm, random_state=0).fit_transform(X)
        assert np.isfinite(released).all()
        # A row that came out without noise would give itself away; a single value without any is rare, but no fault.
        assert (released != normalise(X, norm)).any(axis=1).all()


def test_one_feature_gets_one_noise_value_per_row():
    X = np.ones((400, 1))
    released = LaplacePrivatizer(epsilon=1.0).fit_transform(X)
    assert released.shape == (400, 1)
    assert len(np.unique(released)) > 200


def test_fit_learns_nothing_from_values(H):
    a = LaplacePrivatizer(random_state=0).fit(H).transform(H)
    b = LaplacePrivatizer(random_state=0).fit(100 * np.ones((2, 8))).transform(H)
    assert np.array_equal(a, b)


def test_containers_and_names(H):
    frame = pd.DataFrame(H, columns=[f"f{i}" for i in range(8)])
    privatizer = LaplacePrivatizer(random_state=0).set_output(transform="pandas")
    out = privatizer.fit_transform(frame)
    assert list(out.columns) == list(frame.columns)
    assert privatizer.get_feature_names_out().tolist() == list(frame.columns)
    as_polars = LaplacePrivatizer(random_state=0).set_output(transform="polars").fit_transform(pl.DataFrame(frame))
    assert as_polars.columns == list(frame.columns)
    plain = LaplacePrivatizer(random_state=0).fit_transform(H)
    assert np.array_equal(out.to_numpy(), plain)
    assert np.array_equal(as_polars.to_numpy(), plain)
    assert np.array_equal(LaplacePrivatizer(random_state=0).fit_transform(sparse.csr_matrix(H)), plain)
    narrow = LaplacePrivatizer(random_state=0).fit_transform(H.astype(np.float32))
    assert narrow.dtype == np.float32


def test_it_works_where_scikit_learn_puts_it(H):
    y = (H[:, 0] > 0).astype(int)
    pipe = make_pipeline(StandardScaler(), PCA(8), LaplacePrivatizer(random_state=0), LogisticRegression())
    search = GridSearchCV(pipe, {"laplaceprivatizer__epsilon": [0.01, 1000.0]}, cv=3).fit(H, y)
    assert search.best_params_ == {"laplaceprivatizer__epsilon": 1000.0}
    assert search.best_score_ > 0.9
    split = ColumnTransformer([("private", LaplacePrivatizer(), [0, 1, 2])], remainder="passthrough")
    assert np.array_equal(split.fit_transform(H)[:, 3:], H[:, 3:])


def test_draws_nothing_unpaid(H, monkeypatch):
    privatizer = LaplacePrivatizer(random_state=0).fit(H)
    expected = LaplacePrivatizer(random_state=0).fit(H).transform(H)
    seen = []

    def refuse(guarantee, **words):
        seen.append(guarantee)
        raise RuntimeError("no budget")

    monkeypatch.setattr(_release, "charge", refuse)
    with pytest.raises(RuntimeError, match="no budget"):
        privatizer.transform(H)
    assert seen == [privatizer.privacy_]
    monkeypatch.undo()
    assert np.array_equal(privatizer.transform(H), expected)


@pytest.mark.parametrize("norm", ["l1", "l2", "minmax", "clip"])
def test_likelihood_ratio_is_bounded_by_epsilon(norm):
    x, x_prime = np.array([3.0, 1.0, -2.0]), np.array([-1.0, -1.0, 2.0])
    privatizer = LaplacePrivatizer(epsilon=2.0, norm=norm, random_state=0).fit(x[None])
    from_x, from_other = (privatizer.transform(np.tile(row, (4000, 1))) for row in (x, x_prime))
    ratios = [privatizer.log_likelihood_ratio(y, x, x_prime) for y in (from_x, from_other)]
    assert np.abs(ratios).max() <= 2.0 + 1e-9
    assert ratios[0].mean() > 0.01
    assert ratios[1].mean() < -0.01
    # E[exp(-ratio)] under x is 1 for the right density ratio; a tenth less noise in the formula would not give it.
    assert np.exp(-ratios[0]).mean() == pytest.approx(1.0, abs=0.06)


def test_the_likelihood_ratio_of_a_release_without_noise():
    privatizer = LaplacePrivatizer(epsilon=math.inf).fit(np.ones((1, 2)))
    y = np.array([[0.5, 0.5], [1.0, 0.0], [0.3, 0.7]])
    assert privatizer.log_likelihood_ratio(y, [1, 1], [1, 0]).tolist() == [math.inf, -math.inf, 0.0]


def test_the_likelihood_ratio_names_what_does_not_fit(H):
    privatizer = LaplacePrivatizer().fit(H)
    with pytest.raises(ValueError, match="x_prime"):
        privatizer.log_likelihood_ratio(H, H[0], H[0, :3])
    with pytest.raises(ValueError, match=r"^x\b"):
        privatizer.log_likelihood_ratio(H, H[:2], H[0])


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"epsilon": "1"}, "epsilon"),
        ({"norm": "l3"}, "norm"),
        ({"radius": 0.0}, "radius"),
        ({"radius": math.nan}, "radius"),
        ({"calibration": "loose"}, "calibration"),
        ({"random_state": "seed"}, "random_state"),
    ],
)
def test_refuses_bad_parameters(H, params, message):
    privatizer = LaplacePrivatizer(**params)
    with pytest.raises(ValueError, match=message):
        privatizer.fit(H)
    assert not hasattr(privatizer, "privacy_")


@pytest.mark.parametrize(
    "later", [{"epsilon": 1e6}, {"norm": "clip"}, {"radius": 100.0}, {"calibration": "published"}, {"epsilon": -1}]
)
def test_set_params_after_fit_changes_no_receipt(H, later):
    """Only fit makes a receipt, so only fit may change what is released under it; a clone follows the parameters."""
    params = {"epsilon": 1.0, "norm": "minmax", "random_state": 0}
    expected = LaplacePrivatizer(**params).fit(H)
    privatizer = LaplacePrivatizer(**params).fit(H).set_params(**later)
    assert privatizer.privacy_.epsilon == expected.privacy_.epsilon
    released = expected.transform(H)
    assert np.array_equal(privatizer.transform(H), released)
    ratios = [p.log_likelihood_ratio(released, H[0], H[1]) for p in (privatizer, expected)]
    assert np.array_equal(*ratios)
    if later != {"epsilon": -1}:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OverclaimedPrivacyWarning)
            assert not np.array_equal(clone(privatizer).fit(H).transform(H), released)


def test_a_fit_that_fails_leaves_the_last_one_as_it_was(H):
    unfitted = LaplacePrivatizer(epsilon=-1.0)
    with pytest.raises(ValueError, match="epsilon"):
        unfitted.fit(H)
    with pytest.raises(NotFittedError):
        unfitted.transform(H)
    privatizer = LaplacePrivatizer(norm="minmax").fit(H[:, :2]).set_params(epsilon=-1.0)
    with pytest.raises(ValueError, match="epsilon"):
        privatizer.fit(H)
    with pytest.raises(ValueError, match="expecting 2 features"):
        privatizer.transform(H)


def test_an_epsilon_that_no_float_equals_is_no_overclaim(H):
    privacy = LaplacePrivatizer(epsilon=Fraction(1, 3)).fit(H).privacy_  # warnings are errors here
    assert (privacy.epsilon, privacy.published_epsilon) == (1 / 3, None)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_missing_and_infinite_values_stop_at_the_door(H, bad):
    H = H.copy()
    H[3, 2] = bad
    privatizer = LaplacePrivatizer().fit(np.ones((2, 8)))
    for call in (privatizer.transform, LaplacePrivatizer().fit):
        with pytest.raises(ValueError, match="Input X contains"):
            call(H)
