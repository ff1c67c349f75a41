"""The alias tables are exact: integers in, the same integers out."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skfairdp.mechanisms._alias_table import WHOLE, AliasTable, build_alias, check_alias
from skfairdp.random import random_stream


class Script:
    """A stream that reads its words from lists, so that a test can choose every bit."""

    def __init__(self, words32, words64=()):
        self.words32, self.words64 = list(words32), list(words64)

    def _take(self, words, n, dtype):
        taken, words[:] = words[:n], words[n:]
        assert len(taken) == n, "more words were asked for than the script holds"
        return np.array(taken, dtype=dtype)

    def uint32(self, n):
        return self._take(self.words32, n, np.uint32)

    def uint64(self, n):
        return self._take(self.words64, n, np.uint64)


def counts_of(weights):
    """Scale small integers to counts that sum to 2**160; the first takes the remainder."""
    counts = [WHOLE * weight // sum(weights) for weight in weights]
    counts[0] += WHOLE - sum(counts)
    return counts


def draws(table, n, stream):
    out = np.empty(n, dtype=np.int64)
    table.fill(out, stream)
    return out


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 2**70), min_size=1, max_size=64).filter(any))
def test_the_table_reproduces_any_counts(weights):
    counts = counts_of(weights)
    bits = max(1, (len(counts) - 1).bit_length())
    thresholds, aliases = build_alias(counts, bits)
    check_alias(counts, thresholds, aliases, bits)


def test_a_table_that_is_off_by_one_unit_is_refused():
    counts = counts_of([3, 1, 1, 2])
    thresholds, aliases = build_alias(counts, 2)
    thresholds[aliases.index(0, 1)] += 1
    with pytest.raises(ArithmeticError, match="does not reproduce"):
        check_alias(counts, thresholds, aliases, 2)


@pytest.mark.parametrize("counts", [[WHOLE - 1], [WHOLE + 1, -1], [1, 2, 3]])
def test_counts_must_be_a_distribution(counts):
    with pytest.raises(ValueError, match="sum to 2\\*\\*160"):
        AliasTable(counts)


def test_every_outcome_gets_its_exact_share():
    shares = [40000, 3, 0, 12000, 500, 13000, 33]  # of 2**16
    table = AliasTable([share << 144 for share in shares], first=-2)
    # Thresholds are multiples of 2**144: a word on one is a tie, which the next word, 0, puts at or above it.
    words = [i << 16 for i in range(1 << 16)]
    got = draws(table, 1 << 16, Script(words, [0] * 100))
    assert np.bincount(got + 2, minlength=7).tolist() == shares


def test_the_share_test_would_notice_a_single_misplaced_word():
    shares = [40000, 3, 0, 12000, 500, 13000, 33]
    table = AliasTable([share << 144 for share in shares], first=-2)
    table._high = table._high.copy()
    table._high[table._high > 0] += np.uint32(1 << 16)
    got = draws(table, 1 << 16, Script([i << 16 for i in range(1 << 16)], [0] * 100))
    assert np.bincount(got + 2, minlength=7).tolist() != shares


def test_ties_are_settled_by_further_words_to_the_last_bit():
    odd = (WHOLE >> 2) + 5 * 2**90 + 12345  # a threshold whose three parts are all in play
    table = AliasTable([WHOLE - odd, odd])
    cell = 0 if table._outcomes[np.dtype(np.int64)][0] != table._outcomes[np.dtype(np.int64)][1] else 1
    own, other = table._outcomes[np.dtype(np.int64)][2 * cell : 2 * cell + 2].tolist()
    high, middle, low = (int(part[cell]) for part in (table._high, table._middle, table._low))
    cases = [
        ([high - 1], [], own),
        ([high + 1], [], other),
        ([high], [middle - 1], own),
        ([high], [middle + 1], other),
        ([high], [middle, low - 1], own),
        ([high], [middle, low], other),
    ]
    for words32, words64, expected in cases:
        assert draws(table, 1, Script(words32, words64)).tolist() == [expected]


def test_a_sample_costs_four_bytes():
    table = AliasTable(counts_of(range(1, 200)))
    stream = Script(np.random.default_rng(0).integers(0, 2**32, 1000, dtype=np.uint32), [1] * 10)
    draws(table, 1000, stream)
    assert stream.words32 == []
    assert len(stream.words64) == 10


def test_integer_and_float_arrays_get_the_same_draws():
    table = AliasTable(counts_of(range(1, 50)), first=-20)
    as_float = np.empty(70_000)
    table.fill(as_float, random_stream(3))
    assert np.array_equal(as_float, draws(table, 70_000, random_stream(3)))


def test_threads_may_share_a_table():
    table = AliasTable(counts_of(range(1, 100)))
    alone = [draws(table, 100_000, stream) for stream in random_stream(0).spawn(8)]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda stream: draws(table, 100_000, stream), random_stream(0).spawn(8)))
    assert all(np.array_equal(a, b) for a, b in zip(alone, together))
