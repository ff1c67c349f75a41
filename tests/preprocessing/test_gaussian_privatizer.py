"""GaussianPrivatizer: what it releases, what it says about it, and what it refuses."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from skfairdp import GaussianPrivatizer
from skfairdp.accounting import gaussian_delta, gaussian_epsilon, gaussian_mu
from skfairdp.dp import _release
from skfairdp.mechanisms import gaussian_mechanism, normalise
from skfairdp.mechanisms._gaussian_mechanism import ETA, TAU, TOTAL_VARIATION


@pytest.fixture
def H():
    return np.random.default_rng(0).normal(size=(300, 8))


@pytest.mark.parametrize(("epsilon", "delta", "ratio"), [(1.0, 1e-5, 3.730632), (8.0, 1e-6, 0.652935)])
def test_the_receipt_is_that_of_what_runs(H, epsilon, delta, ratio):
    privatizer = GaussianPrivatizer(epsilon, delta, radius=3.0).fit(H)
    privacy = privatizer.privacy_
    assert (privacy.epsilon, privacy.delta, privacy.mechanism) == (epsilon, delta, "gaussian")
    assert privatizer.sensitivity_ == 6.0
    assert ratio * (1 - 1e-6) < privatizer.noise_scale_ / 6.0 < ratio * 1.006
    assert gaussian_epsilon(delta, privacy.gaussian_mu) == pytest.approx(epsilon)
    assert privacy.gaussian_mu >= privatizer.sensitivity_ / privatizer.noise_scale_


def test_noise_has_the_scale_that_the_object_names():
    H = np.random.default_rng(0).normal(size=(10_000, 6))
    privatizer = GaussianPrivatizer(epsilon=3.0, radius=2.0, random_state=1).fit(H)
    noise = (privatizer.transform(H) - normalise(H, "l2", 2.0)).reshape(-1)
    assert stats.kstest(noise, stats.norm(0, privatizer.noise_scale_).cdf).pvalue > 1e-4
    assert stats.kstest(noise, stats.norm(0, 1.1 * privatizer.noise_scale_).cdf).pvalue < 1e-12


def test_infinite_epsilon_switches_the_noise_off(H):
    privatizer = GaussianPrivatizer(epsilon=math.inf).fit(H)
    assert np.array_equal(privatizer.transform(H), normalise(H, "l2"))
    assert math.isinf(privatizer.privacy_.epsilon)
    assert privatizer.privacy_.gaussian_mu is None
    y = normalise(H[:1], "l2")
    assert privatizer.log_likelihood_ratio(y, H[0], H[1]).tolist() == [math.inf]


@pytest.mark.parametrize("random_state", [None, 0])
def test_every_call_draws_fresh_noise(H, random_state):
    privatizer = GaussianPrivatizer(random_state=random_state).fit(H)
    assert (privatizer.transform(H) != privatizer.transform(H)).mean() > 0.99
    assert privatizer.privacy_.reproducible == (random_state is not None)


def test_containers_and_names(H):
    frame = pd.DataFrame(H, columns=[f"f{i}" for i in range(8)])
    out = GaussianPrivatizer(random_state=0).set_output(transform="pandas").fit_transform(frame)
    assert list(out.columns) == list(frame.columns)
    plain = GaussianPrivatizer(random_state=0).fit_transform(H)
    assert np.array_equal(out.to_numpy(), plain)
    assert np.array_equal(GaussianPrivatizer(random_state=0).fit_transform(sparse.csr_matrix(H)), plain)
    assert GaussianPrivatizer().fit_transform(H.astype(np.float32)).dtype == np.float32


def test_likelihood_ratio_of_normal_densities(H):
    x, x_prime = np.array([3.0, 1.0, -2.0]), np.array([-1.0, -1.0, 2.0])
    privatizer = GaussianPrivatizer(epsilon=2.0, random_state=0).fit(x[None])
    y = privatizer.transform(np.tile(x, (5000, 1)))
    ratio = privatizer.log_likelihood_ratio(y, x, x_prime)
    centres = [normalise(row[None], "l2")[0] for row in (x, x_prime)]
    densities = [stats.norm.logpdf(y, centre, privatizer.noise_scale_).sum(axis=1) for centre in centres]
    np.testing.assert_allclose(ratio, densities[0] - densities[1], atol=1e-9)
    mu = np.linalg.norm(centres[0] - centres[1]) / privatizer.noise_scale_
    assert stats.kstest(ratio, stats.norm(mu * mu / 2, mu).cdf).pvalue > 1e-4


def test_it_learns_in_a_pipeline(H):
    y = (H[:, 0] > 0).astype(int)
    pipe = make_pipeline(GaussianPrivatizer(epsilon=1000.0, random_state=0), LogisticRegression()).fit(H, y)
    assert pipe.score(H, y) > 0.9


def test_draws_nothing_unpaid(H, monkeypatch):
    privatizer = GaussianPrivatizer(random_state=0).fit(H)
    expected = GaussianPrivatizer(random_state=0).fit(H).transform(H)

    def refuse(guarantee, **words):
        raise RuntimeError("no budget")

    monkeypatch.setattr(_release, "charge", refuse)
    with pytest.raises(RuntimeError, match="no budget"):
        privatizer.transform(H)
    monkeypatch.undo()
    assert np.array_equal(privatizer.transform(H), expected)


@pytest.mark.parametrize("later", [{"epsilon": 1e6}, {"delta": 0.5}, {"radius": 100.0}])
def test_set_params_after_fit_changes_no_receipt(H, later):
    privatizer = GaussianPrivatizer(random_state=0).fit(H).set_params(**later)
    released = GaussianPrivatizer(random_state=0).fit(H).transform(H)
    assert np.array_equal(privatizer.transform(H), released)
    assert not np.array_equal(clone(privatizer).fit(H).transform(H), released)


@pytest.mark.parametrize(("epsilon", "n_features", "times"), [(8.0, 8, 3), (8.0, 768, 50), (50.0, 8, 2), (1.0, 8, 100)])
def test_many_releases_pay_for_rounding(epsilon, n_features, times):
    """What the total says covers the integer mechanism: its own mu, and the tables' error once for every entry."""
    privatizer = GaussianPrivatizer(epsilon, 1e-5).fit(np.ones((1, n_features)))
    plan = gaussian_mechanism(epsilon, 1e-5, n_features)
    total, entries = privatizer.privacy_.repeat(times), times * n_features
    mu = 2 * plan.grid / plan.noise.scale * math.sqrt(times)
    if plan.noise.levels == 1:
        rest, slack = total.epsilon - 2.02 * entries * ETA, entries * (TAU + 2 * ETA * total.delta)
    else:
        assert privatizer.privacy_.sampling_error == n_features * plan.noise.levels * TOTAL_VARIATION
        rest, slack = total.epsilon, (1 + math.exp(total.epsilon)) * entries * plan.noise.levels * TOTAL_VARIATION
    assert gaussian_delta(rest, mu) + slack <= total.delta
    assert gaussian_delta(0.9 * total.epsilon, mu) > total.delta


def test_many_releases_pay_where_rounding_gives_nothing():
    """The radius of the grid is rounded down, which spares a little noise for most epsilons and none for some.

    Those are where it grows by one step, and there the reserve alone must pay. It is promised to pay for 2**32
    entries at a delta of 1e-9.
    """
    n_features, times, delta = 2**12, 2**20, 1e-9
    low, high = 8.0, 8.1
    grid = gaussian_mechanism(low, delta, n_features).grid
    assert gaussian_mechanism(high, delta, n_features).grid > grid
    while low < (low + high) / 2 < high:
        middle = (low + high) / 2
        low, high = (low, middle) if gaussian_mechanism(middle, delta, n_features).grid > grid else (middle, high)
    plan = gaussian_mechanism(high, delta, n_features)
    assert plan.noise.levels == 1
    total, entries = plan.guarantee().repeat(times), times * n_features
    mu = 2 * plan.grid / plan.noise.scale * math.sqrt(times)
    needed = gaussian_delta(total.epsilon - 2 * entries * ETA, mu) + entries * (TAU + 2 * ETA * delta)
    assert needed <= total.delta
    # Without anything in reserve the same total is exceeded.
    bare = gaussian_epsilon(delta, gaussian_mu(high, delta) * math.sqrt(times))
    assert gaussian_delta(bare - 2 * entries * ETA, mu) + entries * (TAU + 2 * ETA * delta) > total.delta


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"delta": 0.0}, "delta"),
        ({"delta": 1.0}, "delta"),
        ({"delta": -0.1}, "delta"),
        ({"delta": "small"}, "delta"),
        ({"radius": -2.0}, "radius"),
        ({"random_state": -1}, "random_state"),
    ],
)
def test_refuses_bad_parameters(H, params, message):
    privatizer = GaussianPrivatizer(**params)
    with pytest.raises(ValueError, match=message):
        privatizer.fit(H)
    assert not hasattr(privatizer, "privacy_")
