"""Word dropout: the formula, its conditions, and the mechanism that breaks it where they fail."""

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skfairdp.accounting import PrivacyGuarantee, ReleaseEvent, amplify_by_dropout, dropout_epsilon, gaussian_delta


def pure(epsilon, **words):
    return PrivacyGuarantee(epsilon, mechanism="laplace", **words)


@pytest.mark.parametrize(
    ("epsilon", "rate", "n_changed", "expected"),
    [
        (1.0, 0.1, 1, 0.934702),
        (1.0, 0.5, 1, 0.620115),
        (1.0, 0.5, 2, 0.827989),
        (1.0, 0.5, 4, 0.959691),
        (1.0, 0.9, 1, 0.158565),
        (0.05, 0.5, 1, 0.025312),
        (5.0, 0.95, 1, 2.124732),
        (8.0, 0.5, 1, 7.307188),
        (1.0, 0.5, 20, 0.999999),
    ],
)
def test_reference_values(epsilon, rate, n_changed, expected):
    assert dropout_epsilon(epsilon, rate, n_changed=n_changed) == pytest.approx(expected, abs=6e-7)
    assert amplify_by_dropout(pure(epsilon), rate, n_changed=n_changed).epsilon == pytest.approx(expected, abs=6e-7)


def test_fixed_count():
    assert dropout_epsilon(1.0, 0.3, n_words=10, fixed_count=True) == pytest.approx(0.789728, abs=6e-7)
    # 0.39 of 10 words are 3 words: the rate that counts is 0.3.
    assert dropout_epsilon(1.0, 0.39, n_words=10, fixed_count=True) == pytest.approx(0.789728, abs=6e-7)
    assert dropout_epsilon(1.0, 0.05, n_words=10, fixed_count=True) == 1.0
    two = math.log(3 / 45 + 42 / 45 * math.e)  # both of two words among the 3 of 10: C(8, 1)/C(10, 3) = 3/45
    assert dropout_epsilon(1.0, 0.3, n_words=10, n_changed=2, fixed_count=True) == pytest.approx(two)
    assert dropout_epsilon(1.0, 0.3, n_words=10, n_changed=4, fixed_count=True) == 1.0


def test_ends():
    assert dropout_epsilon(1.0, 0.0) == 1.0
    assert dropout_epsilon(1.0, 1.0) == 0.0
    assert dropout_epsilon(0.0, 0.3) == 0.0
    assert dropout_epsilon(math.inf, 0.3) == math.inf
    assert dropout_epsilon(math.inf, 1.0) == 0.0
    assert dropout_epsilon(1e4, 0.5) == pytest.approx(1e4 - math.log(2))


def masks(n_words, rate, fixed_count):
    for mask in itertools.product((0, 1), repeat=n_words):
        masked = n_words - sum(mask)
        if not fixed_count:
            yield mask, rate**masked * (1 - rate) ** (n_words - masked)
        elif masked == math.floor(rate * n_words):
            yield mask, 1 / math.comb(n_words, masked)


def exact_loss(release, n_words, rate, fixed_count, n_changed):
    """The largest log ratio over outputs of two texts that differ in their first words; words are bits."""
    x, y = (1,) * n_words, (0,) * n_changed + (1,) * (n_words - n_changed)
    totals = []
    for text in (x, y):
        mixture = {}
        for mask, chance in masks(n_words, rate, fixed_count):
            shown = tuple(w if m else None for w, m in zip(text, mask))
            for output, p in release(shown).items():
                mixture[output] = mixture.get(output, 0.0) + chance * p
        totals.append(mixture)
    return max(abs(math.log(totals[0][o] / totals[1][o])) for o in totals[0])


def record_level(epsilon):
    """Randomised response on whether the first word is shown as it stands in x; a masked one answers like y's."""

    def release(shown):
        p = 1 / (1 + math.exp(-epsilon if shown[0] == 1 else epsilon))
        return {0: p, 1: 1 - p}

    return release


@pytest.mark.parametrize(("fixed_count", "rate"), [(False, 0.4), (True, 0.5), (True, 0.25)])
def test_never_more_than_the_formula_and_close_to_it(fixed_count, rate):
    n_words = 4
    bound = dropout_epsilon(1.3, rate, n_words=n_words, fixed_count=fixed_count)
    loss = exact_loss(record_level(1.3), n_words, rate, fixed_count, 1)
    assert loss <= bound * (1 + 1e-12)
    assert loss == pytest.approx(bound, rel=1e-12)  # this mechanism attains it


def test_dropout_on_the_wrong_rate_is_found():
    # With a fixed count, the plain rate would promise more than the mechanism keeps.
    loss = exact_loss(record_level(1.3), 4, 0.45, True, 1)
    assert loss > dropout_epsilon(1.3, 0.45)
    assert loss <= dropout_epsilon(1.3, 0.45, n_words=4, fixed_count=True) * (1 + 1e-12)


def test_fixed_count_with_a_word_level_release():
    epsilon = 1.0

    def release(shown):
        # Word-level epsilon-DP: every changed word moves the log-odds steps by one epsilon.
        level = {(1, None): 2, (0, None): 1, (None, 1): 0}[shown]
        top = math.exp(epsilon * (level - 2)) / (1 + math.e)
        return {0: top, 1: 1 - top}

    published = dropout_epsilon(epsilon, 0.5)
    exact = exact_loss(release, 2, 0.5, True, 1)
    word = PrivacyGuarantee(epsilon, mechanism="other", unit="word", neighbours="two texts")
    bound = amplify_by_dropout(word, 0.5, n_words=2, fixed_count=True).epsilon
    assert bound == pytest.approx(0.813666, abs=6e-7)
    assert published == pytest.approx(0.620115, abs=6e-7)
    assert published < exact <= bound * (1 + 1e-12)  # the published formula does not hold here
    assert exact == pytest.approx(bound, rel=1e-9)


@settings(max_examples=60, deadline=None)
@given(st.floats(0, 20), st.floats(0, 1), st.integers(1, 6))
def test_group_of_words_never_costs_more_than_its_members(epsilon, rate, k):
    together = dropout_epsilon(epsilon, rate, n_changed=k)
    assert together <= k * dropout_epsilon(epsilon, rate) + 1e-12
    assert dropout_epsilon(epsilon, rate) - 1e-12 <= together <= epsilon


def test_shared_mask_costs_more_than_fresh_ones():
    reused = amplify_by_dropout(pure(1.0).repeat(3), 0.5)
    fresh = amplify_by_dropout(pure(1.0), 0.5).repeat(3)
    assert reused.epsilon == pytest.approx(math.log(0.5 + 0.5 * math.exp(3)))
    assert fresh.epsilon == pytest.approx(3 * 0.620115, abs=2e-6)
    assert reused.releases == fresh.releases == 3


@pytest.mark.parametrize("options", [{"mask": "visible"}, {"mask": "data-dependent"}])
def test_no_amplification_where_a_condition_fails(options):
    assert amplify_by_dropout(pure(1.0), 0.5, **options).epsilon == 1.0


def test_delta_shrinks_with_the_rate():
    guarantee = PrivacyGuarantee.of(
        ReleaseEvent(1.0, 1e-5, gaussian_mu=0.26, sampling_error=1e-12), mechanism="gaussian"
    )
    amplified = amplify_by_dropout(guarantee, 0.4)
    assert amplified.delta == pytest.approx(0.6e-5)
    assert amplified.gaussian_mu is None  # it is a mixture now
    # The Gaussian against a mixture of itself, by its profile: advanced joint convexity.
    mixture = 0.6 * gaussian_delta(1.0, 0.26)
    assert mixture <= amplified.delta


def test_word_level_release():
    word = PrivacyGuarantee(1.0, 1e-6, mechanism="other", unit="word", neighbours="two texts")
    one = amplify_by_dropout(word, 0.5)
    assert one.epsilon == pytest.approx(0.620115, abs=6e-7)
    two = amplify_by_dropout(word, 0.5, n_changed=2)
    assert two.epsilon == pytest.approx(2 * one.epsilon)
    assert two.delta == pytest.approx(one.delta * (1 + math.exp(one.epsilon)))
    fixed = amplify_by_dropout(word, 0.5, n_words=4, fixed_count=True)
    assert (fixed.epsilon, fixed.delta) == (1.0, pytest.approx(0.5e-6))
    with pytest.raises(ValueError, match="data-dependent"):
        amplify_by_dropout(word, 0.5, mask="data-dependent")


def test_words():
    amplified = amplify_by_dropout(pure(8.0, published_epsilon=1.0), 0.5, n_words=12)
    assert amplified.unit == "word"
    assert amplified.neighbours == "two texts of 12 words that differ in one word"
    assert amplified.published_epsilon == pytest.approx(0.620115, abs=6e-7)
    assert any("as a whole" in sentence for sentence in amplified.does_not_cover)
    assert any("how many words" in sentence for sentence in amplified.does_not_cover)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: dropout_epsilon(1.0, 1.5), "rate"),
        (lambda: dropout_epsilon(1.0, math.nan), "rate"),
        (lambda: dropout_epsilon(-1.0, 0.5), "epsilon"),
        (lambda: dropout_epsilon(1.0, 0.5, n_changed=0), "n_changed"),
        (lambda: dropout_epsilon(1.0, 0.5, n_changed=3, n_words=2), "n_words"),
        (lambda: dropout_epsilon(1.0, 0.5, fixed_count=True), "n_words"),
        (lambda: amplify_by_dropout(pure(1.0), 0.5, mask="hidden"), "mask"),
    ],
)
def test_bad_arguments_are_named(call, name):
    with pytest.raises(ValueError, match=name):
        call()


def test_only_guarantees_are_amplified():
    with pytest.raises(TypeError, match="guarantee"):
        amplify_by_dropout(1.0, 0.5)
