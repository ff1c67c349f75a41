"""Exact sampling from a finite distribution whose probabilities are integers over 2**160.

The alias method (Walker 1977; Vose 1991) cuts the unit interval into equal cells,
each of which holds at most two outcomes, so that one look-up answers a draw. Here
everything is an integer: the table is built in Python integers, and checked to give
every outcome exactly its count. A draw compares a uniform 160-bit integer with a
threshold, of which nearly always the first 32 bits decide; only when they tie are
more bits read. So a sample costs four random bytes and is exact all the same, given
that the random bits are.
"""

from collections.abc import Sequence

import numpy as np

from skfairdp.random import RandomStream

#: Probabilities are integers over ``2**PRECISION``: 32 bits of a first word, and two words of 64 that break ties.
PRECISION = 160
WHOLE = 1 << PRECISION

#: Values drawn at a time: small enough for buffers and table to stay in the second-level cache.
BLOCK = 1 << 15


class AliasTable:
    """A distribution on the integers ``first, first + 1, ...`` with integer probabilities.

    Parameters
    ----------
    counts : sequence of int
        ``counts[i] / 2**160`` is the probability of ``first + i``; they sum to ``2**160``.
        At most ``2**16`` of them.
    first : int, default=0
        The least outcome.
    """

    def __init__(self, counts: Sequence[int], first: int = 0):
        self.counts = tuple(counts)
        self.first = first
        bits = max(1, (len(self.counts) - 1).bit_length())
        if bits > 16:
            raise ValueError(f"counts must hold at most 65536 outcomes; got {len(self.counts)}.")
        if min(self.counts) < 0 or sum(self.counts) != WHOLE:
            raise ValueError("counts must be non-negative integers that sum to 2**160.")
        thresholds, aliases = build_alias(self.counts, bits)
        check_alias(self.counts, thresholds, aliases, bits)
        cell = WHOLE >> bits
        limits = [i * cell + threshold for i, threshold in enumerate(thresholds)]
        self._shift = np.uint32(32 - bits)
        self._high = np.array([limit >> 128 for limit in limits], dtype=np.uint32)
        self._middle = np.array([(limit >> 64) & (2**64 - 1) for limit in limits], dtype=np.uint64)
        self._low = np.array([limit & (2**64 - 1) for limit in limits], dtype=np.uint64)
        # Outcomes side by side: below the threshold the cell's own, from it on the alias.
        pairs = np.column_stack([np.arange(len(aliases)), aliases]).ravel() + first
        self._outcomes = {np.dtype(t): pairs.astype(t) for t in (np.int64, np.float64)}

    def fill(self, out: np.ndarray, stream: RandomStream) -> None:
        """Fill a contiguous one-dimensional int64 or float64 array with independent draws."""
        outcomes = self._outcomes[out.dtype]
        for start in range(0, out.size, BLOCK):
            part = out[start : start + BLOCK]
            words = stream.uint32(part.size)
            cells = (words >> self._shift).astype(np.intp)
            limits = self._high[cells]
            above = words >= limits
            ties = np.flatnonzero(words == limits)
            if ties.size:
                above[ties] = self._settle(cells[ties], stream)
            # "clip" writes to out without a second buffer.
            np.take(outcomes, 2 * cells + above, out=part, mode="clip")

    def _settle(self, cells: np.ndarray, stream: RandomStream) -> np.ndarray:
        """Say which draws lie at or above their threshold when the first words tie."""
        words, limits = stream.uint64(cells.size), self._middle[cells]
        above = words > limits
        ties = np.flatnonzero(words == limits)
        if ties.size:
            above[ties] = stream.uint64(ties.size) >= self._low[cells[ties]]
        return above


def build_alias(counts: Sequence[int], bits: int) -> tuple[list[int], list[int]]:
    """Cut counts into ``2**bits`` equal cells of at most two outcomes (Vose's method, in integers).

    Returns
    -------
    thresholds, aliases : list of int
        The first ``thresholds[i]`` units of cell ``i`` belong to outcome ``i``, the rest to ``aliases[i]``.
    """
    cell = sum(counts) >> bits
    left = list(counts) + [0] * ((1 << bits) - len(counts))
    thresholds, aliases = [0] * len(left), list(range(len(left)))
    small = [i for i, count in enumerate(left) if count < cell]
    large = [i for i, count in enumerate(left) if count >= cell]
    while small:
        i, j = small.pop(), large[-1]
        thresholds[i], aliases[i] = left[i], j
        left[j] -= cell - left[i]
        if left[j] < cell:
            small.append(large.pop())
    # What remains is exactly full: all of it goes to its alias, which is itself.
    return thresholds, aliases


def check_alias(counts: Sequence[int], thresholds: Sequence[int], aliases: Sequence[int], bits: int) -> None:
    """Raise unless the table gives every outcome exactly its count."""
    cell = sum(counts) >> bits
    mass = list(thresholds)
    for threshold, alias in zip(thresholds, aliases):
        mass[alias] += cell - threshold
    expected = list(counts) + [0] * ((1 << bits) - len(counts))
    if mass != expected or not all(0 <= threshold <= cell for threshold in thresholds):
        raise ArithmeticError("the alias table does not reproduce its counts; this is a bug, no noise was drawn.")
