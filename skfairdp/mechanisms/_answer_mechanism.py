"""The best private answers: of all mechanisms that keep an epsilon, the one with the largest expected utility.

A mechanism gives answer a to record x with probability q(a | x). It keeps epsilon if and only if there are floors m_a
with ``m_a <= q(a | x) <= e^epsilon m_a`` for every record and answer: take the least q(a | x) over x. For given floors
the best q is greedy: every answer gets its floor, and what is left of the probability goes to the answers in the order
of their utility, each up to its ceiling ``e^epsilon m_a``. What remains is to choose the floors, and

    V(m) = E_x max { sum_a q(a | x) U(x, a) : m_a <= q(a | x) <= e^epsilon m_a, sum_a q(a | x) = 1 }

is concave in them. By linear programming duality, for any numbers nu(x) and any floors m,

    V(m) <= E nu + sum_a m_a E[ e^epsilon (U_a - nu)^+ - (nu - U_a)^+ ],

with equality where nu(x) is the utility of the last answer that x fills. So each evaluation of V gives a plane above
it; the highest point under all planes is an upper bound for every mechanism, and the next floors to try (Kelley 1960).
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linprog

from skfairdp._validation import check_epsilon
from skfairdp.mechanisms._code_mechanism import CodeMechanism, integer_weights, response_floor

_TOTAL = 1 << 63
_MOST_SUBSETS = 6  # answers; with more of them the subset is grown one answer at a time instead of trying all
_MOST_PLANES = 300
_TOLERANCE = 1e-7  # between the best floors found and the bound, relative to the range of the utilities
#: Beyond this, one of 2**63 equally likely words is more than the mechanism may lie with.
_LARGEST_EPSILON = 43.0


@dataclass(frozen=True)
class AnswerMechanism(CodeMechanism):
    """Release one answer per record, the one of largest utility as often as epsilon allows; see :func:`best_answers`.

    Attributes
    ----------
    floors, ceilings : tuple of int
        Least and largest weight of each answer, out of ``2**63``; a ceiling of 0 is an answer that is never given.
    epsilon : float
        The exact worst case; 0 where one answer is given to everybody, infinity without noise.
    labels : tuple
        What the answers are called.
    expected_accuracy : float
        How often the answer is right if the beliefs that it was made for are.
    accuracy_bound : float
        What no mechanism of this epsilon that gives the groups the same rates can exceed for these beliefs.

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp.mechanisms import best_answers
    >>> mechanism, _, _ = best_answers(np.array([[0.9, 0.1], [0.2, 0.8]]), np.log(3))
    >>> type(mechanism).__name__, round(mechanism.ceilings[0] / mechanism.floors[0], 6)
    ('AnswerMechanism', 3.0)
    """

    labels: tuple[Any, ...] = ()
    expected_accuracy: float = math.nan
    accuracy_bound: float = math.nan
    name = "answers"

    @property
    def answers(self) -> tuple[Any, ...]:
        """The answers that are given to anybody."""
        return tuple(label for label, ceiling in zip(self.labels, self.ceilings) if ceiling > 0)

    def shares(self, utilities: np.ndarray) -> np.ndarray:
        """Say how each record gives away what the floors leave: to its best answers, up to their ceilings.

        Parameters
        ----------
        utilities : ndarray of shape (n_samples, n_answers)
            A row with a nan or an infinity has no best answer, and gets nan.

        Returns
        -------
        ndarray of shape (n_samples, n_answers)
            What :meth:`release` takes.
        """
        if self.spread == 0:  # everybody gets the same answer
            return np.ones(utilities.shape)
        room = np.array([(high - low) / self.spread for low, high in zip(self.floors, self.ceilings)])
        given = fill_greedily(utilities, room)
        return np.where(np.isfinite(utilities).all(axis=1, keepdims=True), given, np.nan)

    def probabilities(self, utilities: np.ndarray) -> np.ndarray:
        """Compute how often each answer is given.

        Parameters
        ----------
        utilities : ndarray of shape (n_samples, n_answers)
            Finite.

        Returns
        -------
        ndarray of shape (n_samples, n_answers)
        """
        share = np.array(self.floors, dtype=float) / _TOTAL
        return share + (self.spread / _TOTAL) * self.shares(utilities)


def fill_greedily(utilities: np.ndarray, room: np.ndarray) -> np.ndarray:
    """Give each record's probability of 1 to its answers in the order of utility, each up to its room.

    Parameters
    ----------
    utilities : ndarray of shape (n_samples, n_answers)
        Of each record's answers; ties go to the first answer.
    room : ndarray of shape (n_answers,)
        How much each answer may get.

    Returns
    -------
    ndarray of shape (n_samples, n_answers)
        Rows sum to 1, or to all the room where that is less.
    """
    named = np.flatnonzero(room > 0)
    given = np.zeros(utilities.shape)
    if (room[named] >= 1).all():
        given[np.arange(len(given)), named[utilities[:, named].argmax(axis=1)]] = 1.0
        return given
    left = np.ones(len(given))
    rows = np.arange(len(given))
    for answer in np.argsort(-utilities, axis=1, kind="stable").T:
        taken = np.minimum(left, room[answer])
        given[rows, answer] = taken
        left -= taken
    return given


def best_answers(
    utilities: np.ndarray, epsilon: float, weight: np.ndarray | None = None, *, search_floors: bool = True
) -> tuple[AnswerMechanism, float, float]:
    """Find the mechanism of largest expected utility among all that keep an epsilon.

    Parameters
    ----------
    utilities : ndarray of shape (n_samples, n_answers)
        Of giving each answer to each record; finite.
    epsilon : float
        Greater than 0; infinity gives every record its best answer.
    weight : ndarray of shape (n_samples,), optional
        How much each record counts.
    search_floors : bool, default=True
        Look beyond randomised response on subsets of the answers. Without it, and with more than two answers, the bound
        is that of the subsets that were tried.

    Returns
    -------
    mechanism : AnswerMechanism
        Its integers keep epsilon exactly.
    value, bound : float
        Its expected utility, and what no mechanism of this epsilon can exceed.

    Notes
    -----
    With two answers the best is randomised response or one answer for everybody, and the bound is reached: the pairs of
    least and largest q(1 | x) form a polygon with three corners, and V is linear between them. With more, randomised
    response on the best subset of the answers is nearly always the best, and the start of the search for better floors.

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp.mechanisms import best_answers
    >>> utilities = np.array([[0.9, 0.1], [0.2, 0.8]])
    >>> mechanism, value, bound = best_answers(utilities, np.log(3))
    >>> round(mechanism.epsilon, 6), round(value, 4), round(bound, 4)
    (1.098612, 0.675, 0.675)
    >>> best_answers(utilities + [[0.0, 1.0]], np.log(3))[0].ceilings[0]  # the second answer is better for everybody
    0
    """
    epsilon = check_epsilon(epsilon)
    utilities = np.asarray(utilities, dtype=float)
    n_answers = utilities.shape[1]
    weight = np.full(len(utilities), 1.0) if weight is None else weight
    weight = weight / weight.sum()
    if math.isinf(epsilon):
        value = float(weight @ utilities.max(axis=1))
        return AnswerMechanism((0,) * n_answers, (_TOTAL,) * n_answers, math.inf), value, value
    ratio = math.exp(min(epsilon, _LARGEST_EPSILON))
    tried = {
        subset: _value_of_subset(utilities, weight, subset, ratio) for subset in _subsets(utilities, weight, ratio)
    }
    # Of subsets that are equally good, but for rounding, the smallest: it tells least.
    best = max(tried.values()) - 1e-12 * max(float(np.abs(utilities).max()), 1e-300)
    subset = min((s for s in tried if tried[s] >= best), key=lambda s: (len(s), -tried[s]))
    shares: Sequence[Any] = [response_floor(len(subset), epsilon) if a in subset else 0 for a in range(n_answers)]
    value = bound = tried[subset]
    if search_floors and n_answers > 2:
        floors, found, bound = _climb(utilities, weight, ratio, list(tried))
        if found > value + _TOLERANCE * np.ptp(utilities):
            shares, value = floors.tolist(), found
    if len(subset) == 1 and value == tried[subset]:
        everybody = tuple(_TOTAL * (a in subset) for a in range(n_answers))
        return AnswerMechanism(everybody, everybody, 0.0), value, max(bound, value)
    return AnswerMechanism(*integer_weights(tuple(shares), epsilon)), value, max(bound, value)


def _subsets(utilities: np.ndarray, weight: np.ndarray, ratio: float) -> list[tuple[int, ...]]:
    """List the subsets of answers to try: all of them, or, with many answers, the best of every size so far."""
    n_answers = utilities.shape[1]
    if n_answers <= _MOST_SUBSETS:
        sizes = range(1, n_answers + 1)
        return list(itertools.chain.from_iterable(itertools.combinations(range(n_answers), size) for size in sizes))
    grown: list[tuple[int, ...]] = [()]
    for _ in range(n_answers):
        larger = [(*grown[-1], a) for a in range(n_answers) if a not in grown[-1]]
        grown.append(max(larger, key=lambda s: _value_of_subset(utilities, weight, s, ratio)))
    return grown[1:]


def _value_of_subset(utilities: np.ndarray, weight: np.ndarray, subset: tuple[int, ...], ratio: float) -> float:
    """Compute the expected utility of randomised response on a subset of the answers."""
    named = utilities[:, list(subset)]
    told = weight @ named.sum(axis=1) + (ratio - 1) * (weight @ named.max(axis=1))
    return float(told / (len(subset) - 1 + ratio))


def _climb(
    utilities: np.ndarray, weight: np.ndarray, ratio: float, subsets: list[tuple[int, ...]]
) -> tuple[np.ndarray, float, float]:
    """Maximise V over the floors by cutting planes, from those of the given subsets on.

    The unknowns are ceilings, ``ratio * m``, which lie between 0 and 1 whatever epsilon is.
    """
    n_answers = utilities.shape[1]
    order = np.argsort(-utilities, axis=1, kind="stable")
    ranked = np.take_along_axis(utilities, order, axis=1)
    scale = max(float(np.ptp(utilities)), 1e-300)
    starts = np.zeros((len(subsets), n_answers))
    for row, subset in zip(starts, subsets):
        row[list(subset)] = ratio / (len(subset) - 1 + ratio)
    heights: list[float] = []
    slopes: list[np.ndarray] = []
    best, value, bound = starts[0], -math.inf, math.inf
    for step in range(len(starts) + _MOST_PLANES):
        if step < len(starts):
            ceilings = starts[step]
        else:
            # maximise t under t <= height + slope . c, 1 <= sum c, sum c <= ratio
            rows = np.column_stack([np.ones(len(heights)), -np.array(slopes)])
            ends = np.array([[0.0, *[-1.0] * n_answers], [0.0, *[1.0] * n_answers]])
            solved = linprog(
                [-1.0, *[0.0] * n_answers],
                A_ub=np.vstack([rows, ends]),
                b_ub=[*heights, -1.0, ratio],
                bounds=[(None, None), *[(0.0, 1.0)] * n_answers],
                method="highs",
            )
            if solved.x is None:
                break
            bound, ceilings = float(-solved.fun), solved.x[1:]
            if bound - value <= _TOLERANCE * scale:
                break
        here, height, slope = _value_and_plane(utilities, weight, order, ranked, ceilings, ratio)
        heights.append(height)
        slopes.append(slope)
        if here > value:
            best, value = ceilings, here
    return best / ratio, value, bound


def _value_and_plane(
    utilities: np.ndarray,
    weight: np.ndarray,
    order: np.ndarray,
    ranked: np.ndarray,
    ceilings: np.ndarray,
    ratio: float,
) -> tuple[float, float, np.ndarray]:
    floors = ceilings / ratio
    room = (ceilings - floors)[order]
    left = max(1.0 - floors.sum(), 0.0)
    filled = np.cumsum(room, axis=1)
    given = np.clip(left - (filled - room), 0.0, room)
    value = float(floors @ (weight @ utilities) + weight @ (given * ranked).sum(axis=1))
    last = np.minimum((filled < left * (1 - 1e-12)).sum(axis=1), ranked.shape[1] - 1)
    nu = ranked[np.arange(len(ranked)), last][:, None]
    slope = weight @ (np.maximum(utilities - nu, 0.0) - np.maximum(nu - utilities, 0.0) / ratio)
    return value, float(weight @ nu[:, 0]), slope
