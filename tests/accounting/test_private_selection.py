"""Private selection: the best of a random number of trials, enumerated exactly, against what is proved about it."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp
from scipy.stats import chisquare, norm

from skfairdp.accounting import (
    ReleaseEvent,
    TruncatedNegativeBinomial,
    gaussian_epsilon,
    gaussian_rdp,
    pure_rdp,
    renyi_epsilon,
    selection_budget,
    selection_epsilon,
    selection_rdp,
)
from skfairdp.random import random_stream

ETAS = [-0.9, -0.5, 0.0, 0.5, 1.0, 3.0]
TEN = TruncatedNegativeBinomial.with_mean(10.0)


def best_of(trial, generating_function):
    """How likely each outcome is to be the best, given those of one trial from the worst to the best."""
    reached = np.concatenate([[0.0], np.cumsum(trial)[:-1], [1.0]])
    return np.diff(generating_function(reached))


def largest_loss(p, q):
    return float(np.abs(np.log(p) - np.log(q)).max())


def alike_within(epsilon, better, rarer=1e-3):
    """Two trials of a pure epsilon, whose middle outcome is favoured by both the trial and what it has to beat."""
    grow = math.exp(epsilon)
    pair = [np.array([rarer * better * grow, better]), np.array([rarer * better, better * grow])]
    return [np.array([1 - rare.sum(), *rare]) for rare in pair]


def random_alike(epsilon, n, rng):
    """Two random trials of n outcomes whose probabilities differ by at most a factor of exp(epsilon)."""
    base, signs = rng.dirichlet(np.full(n, 0.5)) + 1e-12, rng.choice([-0.5, 0.5], size=(2, n))
    pair = [base * np.exp(epsilon / 2 * sign) for sign in signs]
    return [p / p.sum() for p in pair]


# -- the number of trials ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("eta", "gamma"), list(itertools.product(ETAS, [0.01, 0.3, 0.95])))
def test_distribution_is_the_published_one(eta, gamma):
    trials = TruncatedNegativeBinomial(eta, gamma)
    k = np.arange(1, 6001)
    ways = np.cumprod((k - 1 + (eta or 1e-12)) / k)  # its limit for eta = 0, up to a factor
    published = (1 - gamma) ** k * ways
    published = published / published.sum()
    np.testing.assert_allclose(trials.pmf(k), published, rtol=1e-8, atol=1e-300)
    assert trials.mean == pytest.approx(published @ k, rel=1e-8)
    for x in (0.0, 0.2, 0.999, 1.0):
        assert trials.generating_function(x) == pytest.approx(published @ x**k, abs=1e-9)
    for x in (1e-9, 1e-3, 0.5):
        assert trials.any_fails(x) == pytest.approx(1 - published @ (1 - x) ** k, rel=1e-6)


@pytest.mark.parametrize("eta", ETAS)
def test_small_shapes_are_no_special_case(eta):
    near, at = TruncatedNegativeBinomial(1e-9, 0.03), TruncatedNegativeBinomial(0.0, 0.03)
    assert near.mean == pytest.approx(at.mean, rel=1e-7)
    assert near.any_fails(1e-6) == pytest.approx(at.any_fails(1e-6), rel=1e-7)
    tiny = TruncatedNegativeBinomial(eta, 1e-200)
    assert math.isfinite(tiny.mean)
    assert tiny.mean >= 1
    assert TruncatedNegativeBinomial(eta, 1 - 1e-12).mean == pytest.approx(1)


@pytest.mark.parametrize(("eta", "mean"), list(itertools.product(ETAS, [1.01, 2.0, 10.0, 1000.0])))
def test_a_mean_is_found(eta, mean):
    assert TruncatedNegativeBinomial.with_mean(mean, eta).mean == pytest.approx(mean, rel=1e-9)


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(ETAS), st.floats(0.001, 0.9), st.floats(1e-12, 0.9))
def test_failures_of_any_and_of_each(eta, gamma, probability):
    trials = TruncatedNegativeBinomial(eta, gamma)
    each = trials.each_may_fail(probability)
    assert trials.any_fails(each) <= probability
    assert trials.any_fails(each) == pytest.approx(probability, rel=1e-8)
    assert trials.any_fails(each) <= trials.mean * each * (1 + 1e-9)


def fits(trials, drawn):
    """Whether draws follow the distribution; says no to honest ones once in ten thousand times."""
    cells = np.arange(1, 9)
    expected = np.append(trials.pmf(cells), 1 - trials.pmf(cells).sum()) * len(drawn)
    counted = np.append([np.sum(drawn == k) for k in cells], np.sum(drawn > 8))
    return chisquare(counted, expected).pvalue > 1e-4


@pytest.mark.parametrize("eta", [-0.5, 0.0, 1.0, 2.5])
def test_draws_follow_the_distribution(eta):
    trials, stream = TruncatedNegativeBinomial.with_mean(4.0, eta), random_stream(0)
    drawn = np.array([trials.draw(stream) for _ in range(4000)])
    assert fits(trials, drawn)
    assert not fits(TruncatedNegativeBinomial.with_mean(4.0, eta + 1.5), drawn)  # planted faults
    assert not fits(TruncatedNegativeBinomial.with_mean(8.0, eta), drawn)


def test_draws_are_exact_where_two_numbers_meet():
    fair = TruncatedNegativeBinomial(1.0, 0.5)  # geometric: one trial with probability 1/2, two with 1/4
    half = 1 << 127
    assert fair._place_of(half - 1 - (1 << 80), 128) == 1
    assert fair._place_of(half + (1 << 80), 128) == 2
    assert fair._place_of(half, 128) is None  # these bits do not tell: more are drawn
    assert fair._place_of((half << 64) + (1 << 140), 192) == 2
    assert fair._place_of((1 << 128) - 1, 128) is None


def test_draws_ask_for_more_bits_in_doubt():
    class Doubtful:
        words = iter([1 << 63, 0, 1, 0])

        def uint64(self, n):
            return np.array([next(self.words) for _ in range(n)], dtype=np.uint64)

    assert TruncatedNegativeBinomial(1.0, 0.5).draw(Doubtful()) == 2


# -- pure trials ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("eta", "epsilon"), list(itertools.product(ETAS, [0.1, 1.0, 3.0])))
def test_no_outcome_tells_more_than_is_proved(eta, epsilon):
    rng = np.random.default_rng(0)
    for gamma, better in itertools.product([1e-8, 1e-2, 0.5], 10.0 ** np.arange(-6, -1.9, 0.5)):
        trials = TruncatedNegativeBinomial(eta, gamma)
        proved = selection_epsilon(ReleaseEvent(epsilon), trials)
        for pair in [alike_within(epsilon, better), random_alike(epsilon, 4, rng)]:
            alone = largest_loss(*pair)
            chosen = largest_loss(*(best_of(trial, trials.generating_function) for trial in pair))
            assert chosen <= max(proved, (2 + eta) * alone) * (1 + 1e-5)


@pytest.mark.parametrize("eta", ETAS)
def test_the_bound_is_nearly_reached(eta):
    trials = TruncatedNegativeBinomial(eta, 1e-9)
    pair = [best_of(trial, trials.generating_function) for trial in alike_within(1.0, 1e-4)]
    proved = selection_epsilon(ReleaseEvent(1.0), trials)
    assert 0.99 * proved < largest_loss(*pair) <= proved * (1 + 1e-5)


def test_a_fixed_number_of_trials_costs_more():
    """The planted fault: ten trials, always, at the price of a random number of them."""
    pair = [best_of(trial, lambda x: x**10) for trial in alike_within(1.0, 0.2)]
    assert largest_loss(*pair) > 3 * selection_epsilon(ReleaseEvent(1.0), TEN)


def test_a_number_of_trials_that_is_shown_costs_more():
    """The planted fault: the best is released with the number of trials, of which any may occur."""
    pair = alike_within(1.0, 0.2)
    shown = [np.concatenate([TEN.pmf(k) * best_of(trial, lambda x, k=k: x**k) for k in range(1, 40)]) for trial in pair]
    assert largest_loss(*shown) > 3 * selection_epsilon(ReleaseEvent(1.0), TEN)


# -- trials with a delta ----------------------------------------------------------------------------------------------


def excess(p, q, epsilon):
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


@pytest.mark.parametrize(("eta", "place"), list(itertools.product([-0.5, 0.0, 1.0], ["worst", "best"])))
def test_trials_that_may_tell_everything(eta, place):
    trials, epsilon, delta = TruncatedNegativeBinomial.with_mean(6.0, eta), 0.7, 1e-3
    total = trials.any_fails(delta)
    event = ReleaseEvent(epsilon, delta)
    assert selection_epsilon(event, trials, total * 0.99) == math.inf
    proved = selection_epsilon(event, trials, total)
    reached = 0.0
    for better in (1e-3, 1e-2, 0.1):
        pair = [(1 - delta) * trial for trial in alike_within(epsilon, better)]
        told = [np.array([delta, 0.0]), np.array([0.0, delta])]  # outcomes that occur on one side alone
        if place == "worst":
            pair = [np.concatenate([two, trial]) for two, trial in zip(told, pair)]
        else:
            pair = [np.concatenate([trial, two]) for two, trial in zip(told, pair)]
        first, second = (best_of(trial, trials.generating_function) for trial in pair)
        for one, other in ((first, second), (second, first)):
            assert excess(one, other, proved) <= total * (1 + 1e-9)
            reached = max(reached, excess(one, other, proved))
    assert place == "worst" or reached > 0.9 * total
    assert place == "worst" or reached > 2 * delta  # the planted fault: the delta of one trial for that of the best


# -- Gaussian trials --------------------------------------------------------------------------------------------------


def best_of_gaussians(mu, trials, order):
    """Density of the best of trials N(0, 1) and N(mu, 1) on a fine grid, for three orders of what is better."""
    y = np.linspace(-12 - mu, 12 + mu, 400_001)
    densities = []
    for mean in (0.0, mu):
        if order == "larger":
            worse = norm.cdf(y - mean)
        elif order == "smaller":
            worse = norm.sf(y - mean)
        elif order == "split":  # rare large values are best, and next to them small ones, which they make dear
            rare = norm.isf(trials.gamma)
            worse = np.where(y < rare, norm.cdf(rare - mean) - norm.cdf(y - mean), norm.cdf(y - mean))
        else:  # the farther from the middle of both
            away = np.abs(y - mu / 2)
            worse = norm.cdf(mu / 2 + away - mean) - norm.cdf(mu / 2 - away - mean)
        g = trials.gamma + (1 - trials.gamma) * (1 - worse)
        slope = trials.mean * (trials.gamma / g) ** (1 + trials.eta)
        densities.append(norm.pdf(y - mean) * slope)
    return y[1] - y[0], *densities


@pytest.mark.parametrize(("eta", "mu"), list(itertools.product([-0.5, 0.0, 1.0], [0.1, 0.5, 2.0])))
def test_gaussian_trials(eta, mu):
    trials, delta = TruncatedNegativeBinomial.with_mean(8.0, eta), 1e-4
    proved = selection_epsilon(ReleaseEvent(gaussian_epsilon(1e-5, mu), 1e-5, gaussian_mu=mu), trials, delta)
    found = []
    for order in ("larger", "smaller", "farther", "split"):
        step, p, q = best_of_gaussians(mu, trials, order)
        assert p.sum() * step == pytest.approx(1, abs=1e-4)
        for one, other in ((p, q), (q, p)):
            assert excess(one, other, proved) * step <= delta
            found.append(excess(one, other, gaussian_epsilon(delta / trials.mean, mu)) * step)
    assert max(found) > delta  # the planted fault: what a trial has to beat is forgotten
    if eta == 0:  # and the bound is not far from what these orders reach
        assert max(excess(p, q, 0.75 * proved), excess(q, p, 0.75 * proved)) * step > delta


@pytest.mark.parametrize("eta", [-0.5, 0.0, 1.0])
@pytest.mark.parametrize("mu", [0.05, 0.3, 1.5])
def test_the_profile_is_never_dearer_than_renyi_divergences(eta, mu):
    for mean in (1.5, 10.0, 100.0):
        trials = TruncatedNegativeBinomial.with_mean(mean, eta)
        event = ReleaseEvent(gaussian_epsilon(1e-6, mu), 1e-6, gaussian_mu=mu)
        by_renyi = renyi_epsilon(selection_rdp(gaussian_rdp(mu), trials), 1e-5)
        assert gaussian_epsilon(1e-5, mu) < selection_epsilon(event, trials, 1e-5) <= by_renyi


def test_samplers_that_are_off_are_paid_for():
    exact = ReleaseEvent(gaussian_epsilon(1e-6, 0.2), 1e-6, gaussian_mu=0.2)
    off = ReleaseEvent(exact.epsilon, 1e-6, gaussian_mu=0.2, sampling_error=1e-7)
    assert selection_epsilon(exact, TEN, 1e-5) < selection_epsilon(off, TEN, 1e-5)
    far = ReleaseEvent(exact.epsilon, 1e-6, gaussian_mu=0.2, sampling_error=1e-5)
    assert selection_epsilon(far, TEN, 5e-6) == math.inf


# -- Renyi divergences ------------------------------------------------------------------------------------------------


def divergences(p, q, orders):
    p, q = np.log(p), np.log(q)
    both = [[logsumexp(o * a + (1 - o) * b) / (o - 1) for a, b in ((p, q), (q, p))] for o in orders]
    return np.max(both, axis=1)


@pytest.mark.parametrize("eta", [-0.5, 0.0, 1.0])
def test_renyi_divergences_of_the_best(eta):
    orders, rng = np.array([1.5, 2.0, 4.0, 16.0, 64.0]), np.random.default_rng(1)
    too_little = 0
    for gamma in (1e-3, 0.1, 0.6):
        trials = TruncatedNegativeBinomial(eta, gamma)
        for pair in [alike_within(1.0, 0.01), alike_within(1.0, 0.1), *(random_alike(1.0, 5, rng) for _ in range(20))]:
            alone = divergences(*pair, orders)
            chosen = divergences(*(best_of(trial, trials.generating_function) for trial in pair), orders)
            assert (chosen <= selection_rdp(alone, trials, orders) * (1 + 1e-9)).all()
            too_little += (chosen > alone + math.log(trials.mean) / (orders - 1)).any()
    assert too_little > 0  # the planted fault: what a trial has to beat is forgotten


def test_pure_trials_by_renyi_divergences():
    at_infinity = selection_rdp(pure_rdp(0.5, [1e7]), TEN, [1e7])
    assert at_infinity == pytest.approx(selection_epsilon(ReleaseEvent(0.5), TEN), rel=1e-5)


# -- budgets ----------------------------------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(st.floats(0.01, 20), st.floats(-9, -2), st.sampled_from(ETAS), st.floats(1.5, 50))
def test_trials_within_their_budget_cost_the_total(epsilon, log10_delta, eta, mean):
    delta, trials = 10.0**log10_delta, TruncatedNegativeBinomial.with_mean(mean, eta)
    budget = selection_budget(epsilon, delta, trials)
    assert selection_epsilon(ReleaseEvent(budget.epsilon, budget.delta), trials, delta) <= epsilon
    gaussian = ReleaseEvent(budget.gaussian_epsilon, budget.delta, gaussian_mu=budget.gaussian_mu)
    total = selection_epsilon(gaussian, trials, delta)
    assert 0.999 * epsilon < total <= epsilon
    assert budget.covers(gaussian)
    assert not budget.covers(ReleaseEvent(1.01 * budget.epsilon, budget.delta))
    assert not budget.covers(ReleaseEvent(budget.epsilon, 1.01 * budget.delta))
    dearer = ReleaseEvent(2 * budget.gaussian_epsilon, budget.delta, gaussian_mu=1.01 * budget.gaussian_mu)
    assert not budget.covers(dearer)


def test_budgets_without_a_delta_and_without_a_limit():
    pure = selection_budget(1.0, 0.0, TEN)
    assert (pure.epsilon, pure.delta, pure.gaussian_mu) == (pytest.approx(0.5), 0.0, 0.0)
    assert not pure.covers(ReleaseEvent(0.1, 1e-9, gaussian_mu=0.01))
    assert selection_budget(math.inf, 1e-5, TEN).epsilon == math.inf


def test_a_sampler_that_is_off_leaves_less():
    assert (
        selection_budget(1.0, 1e-5, TEN, sampling_error=1e-7).gaussian_mu < selection_budget(1.0, 1e-5, TEN).gaussian_mu
    )


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: TruncatedNegativeBinomial(-1.0, 0.5), "eta"),
        (lambda: TruncatedNegativeBinomial(math.inf, 0.5), "eta"),
        (lambda: TruncatedNegativeBinomial(0.0, 0.0), "gamma"),
        (lambda: TruncatedNegativeBinomial(0.0, 1.0), "gamma"),
        (lambda: TruncatedNegativeBinomial.with_mean(1.0), "mean"),
        (lambda: TruncatedNegativeBinomial.with_mean(1e200, -0.9), "mean"),
        (lambda: TEN.pmf(0), "k"),
        (lambda: TEN.pmf(1.5), "k"),
        (lambda: selection_budget(0.0, 1e-5, TEN), "epsilon"),
        (lambda: selection_budget(1.0, 1.0, TEN), "delta"),
        (lambda: selection_rdp([1.0, 2.0], TEN, [2.0]), "rdp"),
        (lambda: selection_rdp([math.nan], TEN, [2.0]), "rdp"),
    ],
)
def test_bad_input_is_named(call, name):
    with pytest.raises(ValueError, match=name):
        call()
