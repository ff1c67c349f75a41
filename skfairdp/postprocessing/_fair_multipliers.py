"""Group rates that a fairness definition makes equal, and what they cost: one multiplier for each, by a linear program.

Accuracy and rates are both linear in q(a | x), the probability of answer a: with beliefs P(y, z | x),

    accuracy = E sum_a q(a | x) P(y = a | x),     rate_g = E[ q(a | x) P(y in M, z = g | x) ] / P(y in M, z = g).

Under ``|rate_g - t| <= s_g`` the best q gives each record the answer of largest adjusted utility,

    U(x, a) = P(y = a | x) - sum over rates of a, over g: mu_g P(y in M, z = g | x) / P(y in M, z = g),

and the multipliers mu are the dual solution of the linear program (Menon and Williamson 2018; Xian and Zhao 2024). No
record's group is needed to answer.
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from skfairdp.postprocessing._beliefs import ANY_CLASS, Beliefs

FAIRNESS = ("equal_opportunity", "equalized_odds", "demographic_parity")
#: Variables of a linear program at most; it would take too long with more.
_MOST_VARIABLES = 12_000
_ROUNDS = 4
#: A multiplier of 1 gives up all accuracy for a gap of 1; no gap is worth more.
LARGEST_MULTIPLIER = 1.0


@dataclass(frozen=True)
class Rate:
    """How often an answer is given to records of some classes: ``P(answer | y in given)``."""

    answer: int
    given: tuple[int, ...]

    def describe(self, labels: np.ndarray) -> str:
        """Name the rate as people call it."""
        if self.is_selection:
            return f"selection rate of {labels[self.answer]}"
        return f"{'true' if self.answer in self.given else 'false'} positive rate of {labels[self.answer]}"

    @property
    def is_selection(self) -> bool:
        """Whether it is about the records of all classes."""
        return len(self.given) > 1 and self.answer in self.given


def rates_of(fairness: str, n_classes: int, positive: int | None) -> list[Rate]:
    """List the rates that a fairness definition compares between groups.

    Parameters
    ----------
    fairness : str
        One of ``FAIRNESS``.
    n_classes : int
        Number of classes.
    positive : int or None
        The class whose rates count; None for every class.

    Returns
    -------
    list of Rate
    """
    every = tuple(range(n_classes))
    answers = every if positive is None else (positive,)
    if fairness == "demographic_parity":
        return [Rate(a, every) for a in answers]
    rates = [Rate(a, (a,)) for a in answers]
    if fairness == "equalized_odds":
        rates += [Rate(a, tuple(c for c in every if c != a)) for a in answers]
    return rates


def conditions_of(rates: list[Rate]) -> tuple[int, ...]:
    """List the classes within which the groups must be believed in."""
    if any(rate.is_selection for rate in rates):
        return (ANY_CLASS,)
    return tuple(sorted({c for rate in rates for c in rate.given}))


def adjustments(beliefs: Beliefs, rates: list[Rate], prices: np.ndarray) -> np.ndarray:
    """Compute what the multipliers take off the utility of each answer.

    Parameters
    ----------
    beliefs : Beliefs
        About the rows.
    rates : list of Rate
        What is made equal.
    prices : ndarray of shape (n_rates, n_groups)
        ``mu_g / P(y in M, z = g)``.

    Returns
    -------
    ndarray of shape (n_samples, n_classes)
    """
    taken = np.zeros(beliefs.classes.shape)
    for rate, price in zip(rates, prices):
        taken[:, rate.answer] += beliefs.joint(rate.given) @ price
    return taken


def cell_shares(beliefs: Beliefs, rates: list[Rate], weight: np.ndarray) -> np.ndarray:
    """Compute ``P(y in M, z = g)``, as believed, for each rate and group."""
    return np.array([weight @ beliefs.joint(rate.given) for rate in rates]) / weight.sum()


def solve_multipliers(
    beliefs: Beliefs,
    rates: list[Rate],
    columns: np.ndarray,
    slack: np.ndarray,
    offsets: np.ndarray,
    weight: np.ndarray,
    seed: int,
) -> np.ndarray:
    """Find the multipliers under which rates of all groups are equal, up to the slack of each.

    Parameters
    ----------
    beliefs : Beliefs
        Of rows that the models have not seen: of others, they are too sure.
    rates : list of Rate
        What is made equal.
    columns : ndarray of shape (n_groups,)
        The sensitive column of each group; groups are compared within their column.
    slack : ndarray of shape (n_rates, n_groups)
        How far each rate may lie from the middle of its column; nan for rates that nothing is known of.
    offsets : ndarray of shape (n_rates, n_groups)
        By how much rates are larger than believed.
    weight : ndarray of shape (n_samples,)
        Row weights.
    seed : int
        Chooses rows, where there are many; always the same for the same seed.

    Returns
    -------
    ndarray of shape (n_rates, n_groups)
        0 where the slack is nan.
    """
    weight = weight / weight.sum()
    n, n_classes = beliefs.classes.shape
    most = _MOST_VARIABLES // (1 if n_classes == 2 else n_classes)
    shares = cell_shares(beliefs, rates, weight)
    if n <= most:
        return _dual_solution(beliefs, rates, columns, slack, -offsets, weight, shares)
    sample = np.random.default_rng(seed).choice(n, most, replace=False)
    part, part_weight = beliefs.take(sample), weight[sample] / weight[sample].sum()
    part_shares = cell_shares(part, rates, part_weight)
    found = _dual_solution(part, rates, columns, slack, -offsets, part_weight, part_shares)
    # Then all rows: those whose answer is clear keep it, and the program is about the others. If the answers of clear
    # rows change all the same, once more from there; of all that was found, what makes the rates most equal is taken.
    tried = []
    for _ in range(_ROUNDS):
        utilities = beliefs.classes - adjustments(beliefs, rates, ratio_or_zero(found, shares))
        answers = utilities.argmax(axis=1)
        told = [(weight * (answers == rate.answer)) @ beliefs.joint(rate.given) for rate in rates]
        believed = ratio_or_zero(np.array(told), shares) + offsets
        tried.append((_largest_gap(believed, columns, slack), found))
        ranked = np.partition(utilities, n_classes - 2, axis=1)
        order = np.argpartition(ranked[:, -1] - ranked[:, -2], most)
        open_rows, clear = order[:most], order[most:]
        opened = beliefs.take(open_rows)
        told = [(weight[open_rows] * (answers[open_rows] == r.answer)) @ opened.joint(r.given) for r in rates]
        target = ratio_or_zero(np.array(told), shares) - believed
        found = _dual_solution(opened, rates, columns, slack, target, weight[open_rows], shares)
        moved = beliefs.classes[clear] - adjustments(beliefs.take(clear), rates, ratio_or_zero(found, shares))
        if np.array_equal(moved.argmax(axis=1), answers[clear]):
            return found
    return min(tried, key=lambda one: one[0])[1]


def _largest_gap(values: np.ndarray, columns: np.ndarray, slack: np.ndarray) -> float:
    """Return the largest difference of a rate between two groups of a column, among rates that have a slack."""
    known = np.where(np.isfinite(slack), values, np.nan)
    found = [row[columns == column] for row in known for column in np.unique(columns)]
    return max((float(np.nanmax(row) - np.nanmin(row)) for row in found if np.isfinite(row).any()), default=0.0)


def ratio_or_zero(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    """Divide, and give 0 where there is nothing to divide by."""
    return np.divide(numerator, denominator, out=np.zeros(np.shape(numerator)), where=denominator > 0)


def _dual_solution(
    beliefs: Beliefs,
    rates: list[Rate],
    columns: np.ndarray,
    slack: np.ndarray,
    target: np.ndarray,
    weight: np.ndarray,
    shares: np.ndarray,
) -> np.ndarray:
    """Solve the linear program for some rows: their rates minus the middle of each column are the target, up to slack.

    A rate may miss its target by more than the slack at a price of ``LARGEST_MULTIPLIER``, which no multiplier can
    then exceed; so there is always a solution.
    """
    n, n_classes = beliefs.classes.shape
    # With two classes one variable per row is enough: the probability of the second answer.
    free = 1 if n_classes == 2 else n_classes
    gain = beliefs.classes[:, 1] - beliefs.classes[:, 0] if free == 1 else beliefs.classes.ravel()
    known = np.argwhere(np.isfinite(slack))
    middles = {pair: k for k, pair in enumerate(sorted({(r, columns[g]) for r, g in known}))}
    # One row for each rate: rate - middle - deviation - miss = target, where |deviation| <= slack.
    dense = np.zeros((len(known), n * free))
    eye = np.eye(len(known))
    rest = np.hstack([np.zeros((len(known), len(middles))), -eye, -eye, eye])  # middles, deviations, misses both ways
    wanted = target[known[:, 0], known[:, 1]]
    for k, (r, g) in enumerate(known):
        part = weight * beliefs.joint(rates[r].given)[:, g] / shares[r, g]
        if free > 1:
            dense[k, rates[r].answer :: free] = part
        elif rates[r].answer == 1:
            dense[k] = part
        else:  # the rate of the first answer is 1 minus that of the second
            dense[k] = -part
            wanted[k] -= part.sum()
        rest[k, middles[r, columns[g]]] = -1.0
    equal = [sparse.hstack([sparse.csr_array(dense), sparse.csr_array(rest)])]
    sums = [wanted]
    if free > 1:
        one_answer = sparse.kron(sparse.eye_array(n), np.ones((1, free)))
        equal.append(sparse.hstack([one_answer, sparse.csr_array((n, rest.shape[1]))]))
        sums.append(np.ones(n))
    slacks = slack[known[:, 0], known[:, 1]]
    n_misses = 2 * len(known)
    lower = np.concatenate([np.zeros(n * free), np.full(len(middles), -np.inf), -slacks, np.zeros(n_misses)])
    upper = np.concatenate([np.ones(n * free), np.full(len(middles), np.inf), slacks, np.full(n_misses, np.inf)])
    prices = np.zeros(rest.shape[1])
    prices[-n_misses:] = LARGEST_MULTIPLIER
    solved = linprog(
        np.concatenate([-gain * np.repeat(weight, free), prices]),
        A_eq=sparse.vstack(equal).tocsr(),
        b_eq=np.concatenate(sums),
        bounds=np.column_stack([lower, upper]),
        method="highs",
        options={"presolve": False},  # with few dense rows it takes longer than all the rest
    )
    if solved.status != 0:
        raise RuntimeError(f"the linear program of the fairness multipliers was not solved: {solved.message}")
    multipliers = np.zeros(slack.shape)
    multipliers[known[:, 0], known[:, 1]] = -solved.eqlin.marginals[: len(known)]
    return multipliers
