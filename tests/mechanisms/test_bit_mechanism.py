"""Randomised response: exact losses from the integers used, and bits that follow them."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skfairdp.mechanisms import (
    BitMechanism,
    _bit_mechanism,
    largest_randomization_factor,
    ome_mechanism,
    oue_mechanism,
    published_bit_mechanism,
    randomised_response,
    sue_mechanism,
)
from skfairdp.mechanisms._bit_mechanism import (
    TWO_64,
    bernoulli,
    bit_counts,
    bit_loss,
    bit_mechanism_from_logits,
    rounded_logistic_count,
)
from skfairdp.random import random_stream

EXACT = {"sue": sue_mechanism, "oue": oue_mechanism, "ome": ome_mechanism}


def enumerated_epsilon(mechanism):
    """The definition: the largest log ratio over all pairs of inputs and all outputs, in fractions."""
    p = [Fraction(int(count), TWO_64) for count in mechanism.one_to_one]
    q = [Fraction(int(count), TWO_64) for count in mechanism.zero_to_one]
    rows = list(itertools.product((0, 1), repeat=mechanism.n_bits))
    worst = Fraction(1)
    for output in rows:
        likelihoods = []
        for row in rows:
            one = [p[k] if bit else q[k] for k, bit in enumerate(row)]
            likelihoods.append(math.prod(o if seen else 1 - o for o, seen in zip(one, output)))
        worst = max(worst, max(likelihoods) / min(likelihoods))
    return math.log(worst.numerator) - math.log(worst.denominator)


# The tables of rates and losses


@pytest.mark.parametrize(
    ("factor", "p_even", "p_odd", "q", "even", "odd", "total"),
    [
        (1, 0.5, 0.5, 0.499500, 0.001000, 0.001000, 0.500250),
        (2, 0.666667, 0.111111, 0.332889, 0.694481, 1.097279, 447.939867),
        (10, 0.909091, 9.990e-4, 0.090744, 2.304403, 4.509041, 1703.361150),
        (50, 0.980392, 8.000e-6, 0.019569, 3.913984, 7.802291, 2929.068597),
        (100, 0.990099, 1.000e-6, 0.009881, 4.607150, 9.198411, 3451.390307),
    ],
)
def test_published_ome(factor, p_even, p_odd, q, even, odd, total):
    mechanism = published_bit_mechanism("ome", 1.0, n_features=50, n_bits=500, randomization_factor=factor)
    assert mechanism.p[:2] == pytest.approx([p_even, p_odd], abs=5e-7)
    assert mechanism.q == pytest.approx(q, abs=5e-7)
    assert mechanism.bit_epsilon[:2] == pytest.approx([even, odd], abs=1e-6)
    assert mechanism.epsilon == pytest.approx(total, abs=5e-7)


def test_published_ome_on_the_width_of_bert():
    assert published_bit_mechanism("ome", 1.0, n_features=768, n_bits=7680).epsilon == pytest.approx(
        53013.355112, abs=5e-7
    )


@pytest.mark.parametrize("factor", [2, 10, 50, 100])
def test_the_loss_of_published_ome_does_not_contain_epsilon(factor):
    """(n/2) log(lam^3 - lam^2 + lam), wherever lam^2 >= exp(epsilon / n)."""
    formula = 250 * math.log(factor**3 - factor**2 + factor)
    for epsilon in (0.5, 1.0, 10.0):
        mechanism = published_bit_mechanism("ome", epsilon, n_features=50, n_bits=500, randomization_factor=factor)
        assert mechanism.epsilon == pytest.approx(formula, rel=1e-12)


@pytest.mark.parametrize(("epsilon", "sue", "oue"), [(1, 5.0, 2.506250), (8, 40.0, 20.399893), (50, 250.0, 140.464902)])
def test_published_sue_and_oue_on_dense_bits(epsilon, sue, oue):
    assert published_bit_mechanism("sue", epsilon, n_features=50, n_bits=500).epsilon == pytest.approx(sue, abs=5e-7)
    assert published_bit_mechanism("oue", epsilon, n_features=50, n_bits=500).epsilon == pytest.approx(oue, abs=5e-7)


@pytest.mark.parametrize(("epsilon", "oue"), [(1, 0.500250), (8, 4.016000), (50, 25.624740)])
def test_oue_with_dense_sensitivity_is_over_noised(epsilon, oue):
    # Twice the features halve the share: 2 * 250 = 500 bits.
    assert published_bit_mechanism("oue", epsilon, n_features=250, n_bits=500).epsilon == pytest.approx(oue, abs=5e-7)
    assert published_bit_mechanism("sue", epsilon, n_features=250, n_bits=500).epsilon == pytest.approx(
        epsilon, rel=1e-12
    )


def test_published_rates_exist_for_published_protocols_only():
    with pytest.raises(ValueError, match="protocol"):
        published_bit_mechanism("optimal", 1.0, n_features=5, n_bits=50)


# The largest factor that keeps epsilon


@pytest.mark.parametrize(
    ("epsilon", "n_bits", "factor"),
    [
        (1, 500, 1.002000001),
        (8, 500, 1.016000683),
        (10, 500, 1.020001333),
        (50, 500, 1.100165718),
        (500, 500, 2.142703223),
        (1, 7680, 1.000130208),
    ],
)
def test_largest_factor(epsilon, n_bits, factor):
    found = largest_randomization_factor(epsilon, n_bits)
    assert found == pytest.approx(factor, abs=6e-10)
    assert found**3 - found**2 + found == pytest.approx(math.exp(2 * epsilon / n_bits), rel=1e-12)


@pytest.mark.parametrize("n_bits", [4, 5, 500])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 30.0])
def test_factors_up_to_the_largest_are_private(epsilon, n_bits):
    largest = largest_randomization_factor(epsilon, n_bits)

    def loss(factor):
        return published_bit_mechanism(
            "ome", epsilon, n_features=1, n_bits=n_bits, randomization_factor=float(factor)
        ).epsilon

    assert max(loss(factor) for factor in np.linspace(1, largest, 50)) <= epsilon
    assert loss(largest * 1.0001) > epsilon
    assert loss(largest * 2) > epsilon


@pytest.mark.parametrize("n_bits", [7, 500])
def test_infeasible_factor_names_the_largest(n_bits):
    with pytest.raises(
        ValueError, match=r"randomization_factor=100 costs .* the largest feasible factor is"
    ) as refusal:
        ome_mechanism(1.0, n_bits, 100)
    named = float(str(refusal.value).split("factor is ")[1].split(". Lower")[0])
    assert named == largest_randomization_factor(1.0, n_bits)
    assert ome_mechanism(1.0, n_bits, named).epsilon == pytest.approx(1.0, rel=1e-9)


@pytest.mark.parametrize("factor", [1.0, 1.001, 1.0019])
def test_a_smaller_factor_gets_the_q_that_spends_epsilon(factor):
    mechanism = ome_mechanism(1.0, 500, factor)
    assert mechanism.p[0] == pytest.approx(factor / (1 + factor))
    assert mechanism.p[1] == pytest.approx(1 / (1 + factor**3))
    assert 1 - 1e-9 < mechanism.epsilon <= 1
    printed = published_bit_mechanism("ome", 1.0, n_features=50, n_bits=500, randomization_factor=factor)
    assert printed.epsilon < 0.999
    assert (mechanism.q < printed.q).all()


def test_factor_one_is_oue():
    np.testing.assert_array_equal(ome_mechanism(3.0, 20, 1.0).one_to_one, oue_mechanism(3.0, 20).one_to_one)
    np.testing.assert_allclose(ome_mechanism(3.0, 20, 1.0).q, oue_mechanism(3.0, 20).q, rtol=1e-14)


@pytest.mark.parametrize("factor", [0.5, math.nan, math.inf])
def test_a_factor_below_one_is_refused(factor):
    with pytest.raises(ValueError, match="randomization_factor"):
        ome_mechanism(1.0, 10, factor)


# The exact loss


@pytest.mark.parametrize("n_bits", [1, 4, 5])
@pytest.mark.parametrize("epsilon", [0.3, 2.0, 11.0])
@pytest.mark.parametrize("protocol", EXACT)
def test_the_loss_is_the_one_found_by_enumeration(protocol, epsilon, n_bits):
    mechanism = EXACT[protocol](epsilon, n_bits)
    assert mechanism.epsilon == pytest.approx(enumerated_epsilon(mechanism), abs=1e-9)
    assert mechanism.epsilon == pytest.approx(epsilon, rel=1e-9)


def test_enumeration_refutes_the_published_claim():
    mechanism = published_bit_mechanism("ome", 1.0, n_features=1, n_bits=4, randomization_factor=3.0)
    truth = enumerated_epsilon(mechanism)
    assert mechanism.epsilon == pytest.approx(truth, abs=1e-9)
    assert truth > 5 * 1.0  # the claim
    of_zero, of_one = mechanism.log_ratios
    # The flaw of the published proof: signed ratios, which shrink when even and odd bits are added.
    cancelling = max(abs(of_one.sum()), abs(of_zero.sum()))
    assert abs(cancelling - truth) > 1


@given(
    epsilon=st.floats(1e-6, 2000),
    n_bits=st.integers(1, 600),
    protocol=st.sampled_from(sorted(EXACT)),
)
@settings(max_examples=150, deadline=None)
def test_the_loss_reaches_epsilon_and_never_exceeds_it(epsilon, n_bits, protocol):
    mechanism = EXACT[protocol](epsilon, n_bits)
    assert mechanism.epsilon <= epsilon
    assert mechanism.epsilon == pytest.approx(math.fsum(mechanism.bit_epsilon), rel=1e-12)
    if epsilon < 10 * n_bits:  # 64-bit thresholds end at log(2**64) = 44 for each bit
        assert mechanism.epsilon > epsilon * (1 - 1e-6)


@pytest.mark.parametrize("protocol", EXACT)
def test_a_huge_epsilon_stays_finite(protocol):
    mechanism = EXACT[protocol](1e6, 4)
    assert mechanism.epsilon < 4 * 44.4
    assert mechanism.q.min() > 0


@pytest.mark.parametrize(
    "make", [*EXACT.values(), lambda e, n: published_bit_mechanism("sue", e, n_features=1, n_bits=n)]
)
@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf])
def test_bad_epsilon_is_refused(make, epsilon):
    with pytest.raises(ValueError, match="epsilon"):
        make(epsilon, 4)


@given(p=st.integers(1, TWO_64 - 1), q=st.integers(1, TWO_64 - 1))
def test_bit_loss(p, q):
    loss = bit_loss(p, q)
    assert loss == bit_loss(q, p)
    assert loss == pytest.approx(bit_loss(TWO_64 - p, TWO_64 - q), rel=1e-14)
    ratio = max(Fraction(p, q), Fraction(q, p), Fraction(TWO_64 - p, TWO_64 - q), Fraction(TWO_64 - q, TWO_64 - p))
    assert loss == pytest.approx(math.log(ratio), rel=1e-9, abs=1e-15)
    assert (loss == 0) == (p == q)


def test_an_impossible_outcome_costs_everything():
    assert bit_loss(TWO_64, 1) == math.inf
    assert bit_loss(1, 0) == math.inf
    with pytest.raises(ValueError, match="zero_to_one"):
        BitMechanism(np.ones(2, dtype=np.uint64), np.array([1, 0], dtype=np.uint64))


@given(logit=st.floats(-60, 60), up=st.booleans())
def test_threshold_rounds_a_logistic_to_the_asked_side(logit, up):
    count = rounded_logistic_count(logit, up=up)
    assert 1 <= count < TWO_64
    if abs(logit) < 40:
        # Distance to certainty and odds, both to nearly full precision.
        odds = math.log(count) - math.log(TWO_64 - count) if abs(logit) > 1e-3 else None
        if odds is not None:
            assert odds == pytest.approx(logit, rel=1e-9, abs=64 / min(count, TWO_64 - count))
    assert rounded_logistic_count(logit, up=True) - rounded_logistic_count(logit, up=False) in (0, 1)
    assert count == TWO_64 - rounded_logistic_count(-logit, up=not up)


def test_worst_bits_reach_epsilon():
    for mechanism in (sue_mechanism(2.0, 5), oue_mechanism(2.0, 5), ome_mechanism(2.0, 5), ome_mechanism(50.0, 5)):
        bits = mechanism.worst_bits()
        outputs = np.array(list(itertools.product((0, 1), repeat=5)), dtype=np.uint8)
        ratios = mechanism.log_likelihood_ratio(outputs, bits, 1 - bits)
        assert ratios.max() == pytest.approx(mechanism.epsilon, rel=1e-12)
        assert ratios.min() >= -mechanism.epsilon


def test_gain_is_the_difference_of_the_rates():
    mechanism = bit_mechanism_from_logits(np.array([0.3, -2.0, 0.0]), np.array([-0.3, 1.0, 0.0]))
    np.testing.assert_allclose(mechanism.gain, mechanism.p - mechanism.q, atol=1e-15)
    assert mechanism.gain[1] < 0 == mechanism.gain[2]


# The bits


class ScriptedStream:
    """Hands out chosen words."""

    def __init__(self, *words):
        self._words = [np.array(w, dtype=np.uint64) for w in words]

    def uint64(self, n):
        words = self._words.pop(0)
        assert len(words) == n
        return words


def test_a_tie_is_settled_by_the_other_56_bits():
    """A bit is 1 exactly when the 64-bit word is below the count: checked at the count and on both sides of it."""
    p, q = 0xC0_12345678_9ABCDE, 0x20_FEDCBA98_765432
    mechanism = BitMechanism(np.full(6, p, dtype=np.uint64), np.full(6, q, dtype=np.uint64))
    bits = np.array([[1, 1, 1, 0, 0, 0]], dtype=np.uint8)
    words = [p - 1, p, p + 1, q - 1, q, q + 1]
    top = int.from_bytes(bytes(w >> 56 for w in words), "little")  # all six tie
    low = [(w & ((1 << 56) - 1)) << 8 for w in words]
    noisy = randomised_response(bits, mechanism, ScriptedStream([top], low))
    assert noisy.tolist() == [[1, 0, 0, 1, 0, 0]]


def test_without_a_tie_eight_bits_decide():
    mechanism = BitMechanism(np.full(2, 0x80 << 56, dtype=np.uint64), np.full(2, 0x10 << 56, dtype=np.uint64))
    top = int.from_bytes(bytes([0x7F, 0x0F, 0x81, 0x11]), "little")
    bits = np.array([[1, 0], [1, 0]], dtype=np.uint8)
    assert randomised_response(bits, mechanism, ScriptedStream([top])).tolist() == [[1, 1], [0, 0]]


def frequency_score(noisy, bits, mechanism):
    """Largest standardised deviation of the frequencies of ones from the rates of the mechanism."""
    n = len(bits)
    rates = np.where(bits[0] != 0, mechanism.p, mechanism.q)
    return np.abs((noisy.mean(axis=0) - rates) / np.sqrt(rates * (1 - rates) / n)).max()


@pytest.mark.parametrize("order", ["C", "F"])
def test_frequencies_follow_the_probabilities(order):
    """False-alarm rate 8 * 2 * Phi(-5), below 1e-5; the seed is fixed besides."""
    # Counts just below a multiple of 2**56, for which the ties decide a 256th of all bits.
    counts = np.array([(k << 56) + (1 << 56) - 1 for k in (10, 128, 200, 254)] * 2, dtype=np.uint64)
    mechanism = BitMechanism(counts, counts[::-1].copy())
    bits = np.asarray(np.tile(np.array([1, 0] * 4, dtype=np.uint8), (400_000, 1)), order=order)
    noisy = randomised_response(bits, mechanism, random_stream(3))
    assert frequency_score(noisy, bits, mechanism) < 5

    # Planted fault: ties left as they are, which lowers every rate by up to 1/256.
    mask = np.uint64(255 << 56)
    coarse = BitMechanism(mechanism.one_to_one & mask, mechanism.zero_to_one & mask)
    assert frequency_score(randomised_response(bits, coarse, random_stream(4)), bits, mechanism) > 5


def largest_correlation(noisy):
    return np.abs(np.corrcoef(noisy.T.astype(float)) - np.eye(noisy.shape[1])).max()


def test_bits_are_independent_over_columns_rows_and_calls():
    """False-alarm rate below 1e-5: 66 correlations of 1e5 pairs beyond 5.5 / sqrt(1e5)."""
    mechanism = sue_mechanism(10.0, 12)
    bits = np.zeros((100_000, 12), dtype=np.uint8)
    stream = random_stream(5)
    first, second = (randomised_response(bits, mechanism, stream) for _ in range(2))
    limit = 5.5 / math.sqrt(len(bits))
    assert largest_correlation(first) < limit
    assert largest_correlation(np.column_stack([first[:, 0], second[:, 0], np.roll(first[:, 0], 1)])) < limit
    # Planted fault: one answer shared by two columns.
    shared = first.copy()
    shared[:, 3] = shared[:, 7]
    assert largest_correlation(shared) > limit


def test_bits_of_another_shape_are_refused():
    mechanism = sue_mechanism(1.0, 4)
    for bits in (np.zeros((3, 5), dtype=np.uint8), np.zeros(4, dtype=np.uint8), np.zeros((3, 4))):
        with pytest.raises(ValueError, match="bits"):
            randomised_response(bits, mechanism, random_stream(0))
    with pytest.raises(ValueError, match="bits"):
        randomised_response(np.full((3, 4), 2, dtype=np.uint8), mechanism, random_stream(0))
    assert randomised_response(np.zeros((0, 4), dtype=np.uint8), mechanism, random_stream(0)).shape == (0, 4)


def test_a_large_matrix_is_answered_block_by_block(monkeypatch):
    """Every row meets its own bits and a draw of its own."""
    monkeypatch.setattr(_bit_mechanism, "BLOCK_BITS", 64)
    mechanism = sue_mechanism(4 * 30.0, 4)  # a bit flips once in 1e13
    bits = np.random.default_rng(0).integers(0, 2, size=(999, 4), dtype=np.uint8)
    np.testing.assert_array_equal(randomised_response(bits, mechanism, random_stream(0)), bits)
    coins = randomised_response(bits, sue_mechanism(1e-9, 4), random_stream(0))
    assert len(np.unique(coins.reshape(-1)[:960].reshape(-1, 48), axis=0)) == 20


def test_bernoulli_at_its_ends_and_between():
    assert not bernoulli(1000, 0, random_stream(0)).any()
    assert bernoulli(1000, TWO_64, random_stream(0)).all()
    count = (77 << 56) + (1 << 56) - 1
    drawn = bernoulli(1_000_000, count, random_stream(1)).mean()
    deviation = math.sqrt(0.3 * 0.7 / 1e6)
    assert abs(drawn - count / TWO_64) < 5 * deviation
    assert abs(drawn - 77 / 256) > 5 * deviation  # what it would be without the ties
    with pytest.raises(ValueError, match="count"):
        bernoulli(3, -1, random_stream(0))


@pytest.mark.parametrize("logit", [1e-6, 0.3, 0.99, 1.0, 5.0, 20.0, 35.0, 40.0, 43.0])
def test_rounding_of_probabilities_never_adds_to_the_loss(logit):
    """Of p and 1 - p the loss is the logit of p; where p is near 1, one count more or less is seen."""
    for pair in ((logit, -logit), (-logit, logit)):
        assert bit_loss(*bit_counts(*pair)) <= logit * (1 + 1e-12)
