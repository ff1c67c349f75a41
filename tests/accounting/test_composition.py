"""Composition: exact where it can be, optimal otherwise, and never below the truth."""

import itertools
import math

import numpy as np
import pytest
from dp_accounting.pld import common, privacy_loss_distribution
from hypothesis import given, settings
from hypothesis import strategies as st

from skfairdp.accounting import (
    PrivacyGuarantee,
    ReleaseEvent,
    compose,
    compose_parallel,
    gaussian_epsilon,
    gaussian_mu,
    gaussian_rdp,
    pure_rdp,
    renyi_epsilon,
)
from skfairdp.dp import _composition
from skfairdp.random import SeedIdentity


def pure(epsilon, **words):
    return PrivacyGuarantee(epsilon, mechanism="laplace", **words)


def gaussian(mu, delta=1e-5):
    return priced(gaussian_epsilon(delta, mu), delta, gaussian_mu=mu)


def priced(epsilon, delta, **event):
    return PrivacyGuarantee.of(ReleaseEvent(epsilon, delta, **event), mechanism="gaussian")


def seeded(epsilon, seed, stream="1"):
    return PrivacyGuarantee.of(ReleaseEvent(epsilon, seed=SeedIdentity(seed, stream)), mechanism="laplace")


def approximate(epsilon, delta):
    return PrivacyGuarantee(epsilon, delta, mechanism="other")


def pld(epsilon, delta=0.0, count=1):
    parameters = common.DifferentialPrivacyParameters(epsilon, delta)
    one = privacy_loss_distribution.from_privacy_parameters(parameters, value_discretization_interval=1e-4)
    return one if count == 1 else one.self_compose(count)


def test_pure_releases_add_up():
    total = compose([pure(0.1)] * 3 + [pure(1.0)])
    assert total.epsilon == pytest.approx(1.3, rel=1e-15)
    assert total.delta == 0
    assert total.releases == 4


def test_gaussian_releases_are_one_gaussian_release():
    total = compose([gaussian(0.3), gaussian(0.4)])
    assert total.gaussian_mu == pytest.approx(0.5)
    assert total.delta == 1e-5
    assert total.epsilon == pytest.approx(gaussian_epsilon(1e-5, 0.5), rel=1e-12)
    assert compose([gaussian(0.3), gaussian(0.4)], delta=1e-9).epsilon == pytest.approx(gaussian_epsilon(1e-9, 0.5))
    assert total.epsilon < gaussian(0.3).epsilon + gaussian(0.4).epsilon


def test_repeat():
    assert pure(2.0).repeat(5).epsilon == 10
    assert gaussian(0.1).repeat(16).gaussian_mu == pytest.approx(0.4)
    assert gaussian(0.1).repeat(16).epsilon == pytest.approx(1.554982, abs=1e-6)
    assert pure(2.0).repeat(1) == pure(2.0)
    with pytest.raises(ValueError, match="times"):
        pure(1.0).repeat(0)


def test_plain_sums_where_no_delta_is_asked():
    total = compose([approximate(1.0, 1e-6)] * 3)
    assert (total.epsilon, total.delta) == (3.0, pytest.approx(3e-6))


@pytest.mark.parametrize(("epsilon", "count", "delta"), [(0.1, 100, 1e-6), (1.0, 10, 1e-3), (0.01, 2000, 1e-9)])
def test_optimal_composition_agrees_with_dp_accounting(epsilon, count, delta):
    found = compose([pure(epsilon)] * count, delta=delta).epsilon
    assert found == pytest.approx(pld(epsilon, count=count).get_epsilon_for_delta(delta), rel=2e-4)
    assert found < epsilon * count


def test_mixtures_agree_with_dp_accounting():
    parts = [pure(0.5)] * 12 + [pure(0.2)] * 20 + [gaussian(0.3)] * 4 + [approximate(0.4, 1e-7)] * 2
    other = pld(0.5, count=12).compose(pld(0.2, count=20)).compose(pld(0.4, 1e-7, count=2))
    other = other.compose(
        privacy_loss_distribution.from_gaussian_mechanism(1 / 0.6, value_discretization_interval=1e-4)
    )
    found = compose(parts, delta=1e-5).epsilon
    assert found == pytest.approx(other.get_epsilon_for_delta(1e-5), rel=1e-3)
    # Nothing that knows only these descriptions proves less: basic and Renyi accounting lie above.
    basic = math.fsum(g.epsilon for g in parts if g.gaussian_mu is None) + gaussian_epsilon(1e-5 - 2e-7, 0.6)
    rdp = 12 * pure_rdp(0.5) + 20 * pure_rdp(0.2) + 2 * pure_rdp(0.4) + gaussian_rdp(0.6)
    assert found < renyi_epsilon(rdp, 1e-5 - 2e-7) < basic


def brute_force_delta(epsilons, epsilon):
    """Enumerate all outcomes of independent randomised responses."""
    delta = 0.0
    for signs in itertools.product((1, -1), repeat=len(epsilons)):
        loss = sum(s * e for s, e in zip(signs, epsilons))
        p = math.prod(
            math.exp(e) / (1 + math.exp(e)) if s > 0 else 1 / (1 + math.exp(e)) for s, e in zip(signs, epsilons)
        )
        delta += max(p - math.exp(epsilon - loss) * p, 0.0)
    return delta


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(0.01, 3), min_size=1, max_size=7), st.floats(-8, -0.5))
def test_against_enumeration(epsilons, log10_delta):
    delta = 10.0**log10_delta
    found = compose([pure(e) for e in epsilons], delta=delta).epsilon
    assert brute_force_delta(epsilons, found) <= delta * (1 + 1e-8)  # it holds
    if found > 1e-6:  # and nothing less does
        assert brute_force_delta(epsilons, found * (1 - 1e-6)) > delta


def test_a_coarse_lattice_stays_on_the_safe_side(monkeypatch):
    epsilons = [0.1 * math.sqrt(i) for i in range(2, 16)]
    found = {}
    for name, most in (("enumerated", 1 << 16), ("fine", 15_000), ("coarse", 600), ("renyi", 10)):
        monkeypatch.setattr(_composition, "_MAX_LOSSES", most)
        found[name] = compose([pure(e) for e in epsilons], delta=1e-3).epsilon
    assert found["enumerated"] < found["fine"] < found["coarse"] < found["renyi"] < sum(epsilons)
    assert found["fine"] == pytest.approx(found["enumerated"], rel=5e-3)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.one_of(st.floats(0.05, 2).map(pure), st.floats(0.05, 2).map(gaussian)), min_size=1, max_size=6),
    st.floats(0.05, 2).map(pure),
)
def test_more_releases_never_cost_less(parts, extra):
    assert compose([*parts, extra], delta=1e-4).epsilon >= compose(parts, delta=1e-4).epsilon * (1 - 1e-9)


def test_sampling_error_is_paid_for():
    mu = gaussian_mu(1.0, 1e-5)
    clean = priced(1.0, 1e-5, gaussian_mu=mu)
    table = priced(1.0, 1e-5, gaussian_mu=mu, sampling_error=1e-8)
    total = compose([table] * 4)
    assert total.epsilon > compose([clean] * 4).epsilon
    assert total.sampling_error == pytest.approx(4e-8)
    spare = 1e-5 - (1 + math.exp(total.epsilon)) * 4e-8
    assert gaussian_epsilon(spare, 2 * mu) <= total.epsilon * (1 + 1e-9)
    hopeless = priced(1.0, 1e-5, gaussian_mu=mu, sampling_error=1e-5)
    assert compose([hopeless] * 4).epsilon == math.inf


def test_a_cheaper_description_wins():
    # Hard labels may cost less than the Gaussian they are computed from; a single one keeps its own price.
    hard = priced(0.5, 1e-5, gaussian_mu=1.0)
    assert compose([hard]).epsilon == 0.5
    assert compose([hard], delta=1e-4).epsilon == 0.5


def test_nothing_protects_against_an_infinite_loss():
    assert compose([pure(1.0), pure(math.inf)]).epsilon == math.inf
    assert compose([pure(math.inf)], delta=1e-5).epsilon == math.inf
    assert compose([gaussian(1.0), gaussian(1.0)], delta=0.0).epsilon == math.inf
    assert compose([approximate(1.0, 0.6)] * 2).epsilon == math.inf  # the deltas reach 1
    assert compose([approximate(1.0, 1e-3)], delta=1e-4).epsilon == math.inf
    assert compose([pure(0.0)] * 3, delta=1e-5).epsilon == 0


def test_words_of_a_composition():
    text = PrivacyGuarantee(1.0, mechanism="dropout", unit="word", neighbours="two texts")
    total = compose([pure(1.0, published_epsilon=0.1), text, seeded(2.0, "a")])
    assert total.unit == "word"  # what holds for any two records holds for two that differ in a word
    assert total.neighbours == "pairs that are all of: any two records; two texts"
    assert total.mechanism == "laplace + dropout"
    assert total.published_epsilon == pytest.approx(3.1)
    assert total.reproducible
    assert total.does_not_cover[-1].startswith("anybody who knows the seed")


def test_parallel_is_the_worst_of_all():
    total = compose_parallel([pure(1.0), gaussian(1.0), approximate(2.0, 1e-3)])
    assert (total.epsilon, total.delta) == (gaussian(1.0).epsilon, 1e-3)
    assert total.gaussian_mu is None
    assert compose_parallel([gaussian(0.2), gaussian(0.7)]).gaussian_mu == 0.7
    assert compose_parallel([pure(1.0)] * 9) == pure(1.0)


@pytest.mark.parametrize("together", [compose, compose_parallel])
def test_two_releases_from_the_same_seed_cost_infinity(together):
    first, again = seeded(0.1, "a", "1"), seeded(0.1, "a", "2")
    total = together([first, again])
    assert total.epsilon == math.inf
    assert any("same noise" in sentence for sentence in total.does_not_cover)
    assert together([total, pure(1.0)]).epsilon == math.inf
    assert together([first, seeded(0.1, "b", "2")]).epsilon < math.inf


def test_one_seeded_stream_goes_on_with_fresh_noise():
    once = seeded(0.1, "a")
    assert compose([once, once]).epsilon == pytest.approx(0.2)
    assert once.repeat(3).epsilon == pytest.approx(0.3)


def test_a_repeated_seed_is_found_inside_compositions():
    inner = compose([seeded(0.1, "a", "1"), pure(1.0)])
    assert compose([inner, seeded(0.1, "a", "2")], delta=1e-5).epsilon == math.inf
    assert compose([compose_parallel([pure(5.0), seeded(0.1, "a", "1")]), seeded(0.1, "a", "2")]).epsilon == math.inf


def test_composing_in_steps_costs_the_same():
    parts = [gaussian(0.3), pure(0.1), pure(0.2), gaussian(0.1)]
    at_once = compose(parts, delta=1e-5)
    nested = compose([compose(parts[:2]), compose(parts[2:], delta=1e-6)], delta=1e-5)
    assert nested.epsilon == pytest.approx(at_once.epsilon, rel=1e-12)


def test_speed_of_large_counts():
    total = compose([pure(0.01)] * 20_000, delta=1e-6)
    rdp = 20_000 * pure_rdp(0.01)
    assert total.epsilon < renyi_epsilon(rdp, 1e-6)
    assert np.isfinite(total.epsilon)


@pytest.mark.parametrize("function", [compose, compose_parallel])
def test_empty_is_refused(function):
    with pytest.raises(ValueError, match="empty"):
        function([])


def test_bad_arguments_are_named():
    with pytest.raises(TypeError, match="PrivacyGuarantee"):
        compose([1.0])
    with pytest.raises(ValueError, match="delta"):
        compose([pure(1.0)] * 2, delta=1.0)
