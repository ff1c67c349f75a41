"""Word masks: exact rates, one draw for a corpus, and the amplification they are made for."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skfairdp.mechanisms import SensitiveWords, dropout_count, mask_words
from skfairdp.random import random_stream


class CountingStream:
    """Counts the calls to a seeded stream."""

    def __init__(self):
        self.calls = 0
        self._stream = random_stream(0)

    def uint64(self, n):
        self.calls += 1
        return self._stream.uint64(n)


@given(rate=st.floats(0, 1))
def test_the_count_is_the_rate_rounded_down(rate):
    count = dropout_count(rate)
    assert math.ldexp(count, -64) <= rate
    assert rate - math.ldexp(count, -64) < 2.0**-64
    if rate >= 2**-11:  # a double of this size is a multiple of 2**-64
        assert math.ldexp(count, -64) == rate


@pytest.mark.parametrize("rate", [-0.1, 1.1, math.nan, "0.5", True])
def test_a_rate_outside_zero_to_one_is_refused(rate):
    with pytest.raises(ValueError, match="rate"):
        dropout_count(rate)


def test_masks_at_the_ends():
    documents = [["a", "b"], [], ["c"]]
    assert mask_words(documents, 0.0, random_stream(0), mask_token="_") == documents
    assert mask_words(documents, 1.0, random_stream(0), mask_token="_") == [["_", "_"], [], ["_"]]
    assert mask_words([], 0.5, random_stream(0), mask_token="_") == []


def test_one_draw_serves_the_whole_corpus():
    stream = CountingStream()
    mask_words([["word"] * 7] * 300, 0.3, stream, mask_token="_")
    assert stream.calls <= 2  # the words, and their ties


def test_words_are_masked_independently_at_the_rate():
    """Frequencies within 5 standard errors, neighbouring words uncorrelated; false-alarm rate below 1e-5."""
    n = 40_000
    masked = mask_words([["w"] * 10] * n, 0.3, random_stream(1), mask_token="_")
    drawn = np.array(masked) == "_"
    assert np.abs(drawn.mean(axis=0) - 0.3).max() < 5 * math.sqrt(0.21 / n)
    correlations = np.corrcoef(drawn.T.astype(float)) - np.eye(10)
    assert np.abs(correlations).max() < 5 / math.sqrt(n)
    # Planted fault: exactly three of ten words, whose masks are tied to each other.
    fixed = np.argsort(np.random.default_rng(0).random((n, 10)), axis=1) < 3
    assert np.abs(np.corrcoef(fixed.T.astype(float)) - np.eye(10)).max() > 5 / math.sqrt(n)


# The theorem, by enumeration


def word_level_loss(vocabulary, mechanism, rate, sensitive=()):
    """Largest log ratio over neighbouring two-word documents and outputs, when A reads the masked documents."""

    def output(document):
        distribution = 0.0
        for shown in itertools.product((0, 1), repeat=len(document)):
            probability = math.prod(1 - rate if s else rate for s in shown)
            seen = tuple(w if s and w not in sensitive else "_" for w, s in zip(document, shown))
            distribution = distribution + probability * mechanism[seen]
        return distribution

    documents = list(itertools.product(vocabulary, repeat=2))
    neighbours = [(x, y) for x in documents for y in documents if sum(a != b for a, b in zip(x, y)) == 1]
    return max(float(np.log(output(x) / output(y)).max()) for x, y in neighbours)


def randomised_mechanism(vocabulary, epsilon, seed):
    """An epsilon-private release of any document, masked ones included: three outputs, log odds in [0, epsilon]."""
    rng = np.random.default_rng(seed)
    table = {}
    for document in itertools.product([*vocabulary, "_"], repeat=2):
        raw = np.exp(epsilon / 2 * rng.uniform(0, 1, size=3))
        table[document] = raw / raw.sum()
    return table


def worst_mechanism(vocabulary, epsilon, told):
    """Randomised response on whether the first word is ``told``: the most it may tell of that."""
    yes, no = math.exp(epsilon) / (1 + math.exp(epsilon)), 1 / (1 + math.exp(epsilon))
    return {
        document: np.array([yes, no] if document[0] == told else [no, yes])
        for document in itertools.product([*vocabulary, "_"], repeat=2)
    }


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("sensitive", [(), ("b",), ("b", "c")])
def test_amplified_epsilon_holds_for_all_words(rate, sensitive):
    epsilon = 1.0
    bound = math.log(rate + (1 - rate) * math.exp(epsilon))
    for seed in range(20):
        mechanism = randomised_mechanism("abc", epsilon, seed)
        assert word_level_loss("abc", mechanism, rate, sensitive) <= bound + 1e-12
    # It is attained: by the word that the mechanism tells, against any other, listed or not.
    attained = word_level_loss("abc", worst_mechanism("abc", epsilon, "a"), rate, sensitive)
    assert attained == pytest.approx(bound, abs=1e-12)


def test_a_list_of_words_gives_no_amplification_of_its_own():
    """At rate 0, a listed and an unlisted word differ by the whole epsilon; a claim of less is convicted."""
    loss = word_level_loss("ab", worst_mechanism("ab", 1.0, "a"), 0.0, sensitive=("b",))
    assert loss == pytest.approx(1.0)
    assert loss > math.log(0.5 + 0.5 * math.e)  # what a rate of one half for the list would claim


def test_two_listed_words_cannot_be_told_apart():
    table = randomised_mechanism("bc", 3.0, 0)
    assert word_level_loss("bc", table, 0.2, sensitive=("b", "c")) == pytest.approx(0.0, abs=1e-15)
    assert word_level_loss("bc", table, 0.2) > 0.1


# Finding sensitive words


@pytest.mark.parametrize(
    "token", ["Alice", "alice", "ALICE,", "(Alice)", "Alice's", "pre-alice-post", "Ａlice", '"alice"']
)
def test_words_are_found_with_punctuation_and_case(token):
    assert token in SensitiveWords(["Alice"])


@pytest.mark.parametrize("token", ["malice", "Alicea", "bob", "", "--"])
def test_other_words_are_not_found(token):
    assert token not in SensitiveWords(["Alice"])


def test_composed_and_decomposed_letters_are_one_word():
    assert "Zoe\u0301" in SensitiveWords(["Zo\u00e9"])
    assert "STRASSE" in SensitiveWords(["straße"])


def test_hyphens_and_signs_belong_to_a_word():
    words = SensitiveWords(["x-ray", "C++"])
    assert "(X-ray)." in words
    assert "c++" in words
    assert "ray" not in words


def test_case_may_count():
    words = SensitiveWords(["May"], case_sensitive=True)
    assert "May," in words
    assert "may" not in words


def test_what_is_no_list_of_words_is_refused():
    with pytest.raises(TypeError, match="sensitive_words"):
        SensitiveWords("Alice")
    for words in (["Alice", ""], [3]):
        with pytest.raises(ValueError, match="sensitive_words"):
            SensitiveWords(words)


def test_listed_words_leave_other_masks_alone():
    documents = [["Alice", "likes", "tea"], ["tea", "likes", "alice's", "cat"]] * 50
    listed = mask_words(documents, 0.4, random_stream(5), mask_token="_", sensitive=SensitiveWords(["alice"]))
    plain = mask_words(documents, 0.4, random_stream(5), mask_token="_")
    for words, masked, unlisted in zip(documents, listed, plain):
        for word, seen, other in zip(words, masked, unlisted):
            assert seen == ("_" if word.lower().startswith("alice") else other)
