"""Bounds for the largest difference of several rates that hold whichever groups turn out to be at the ends.

Why a percentile bootstrap fails here, and what is done instead. Let p_g be the true rates, d_gh measured differences
and D = max_gh (p_g - p_h).

*Upper end.* The pair (a, b) at which the *true* rates differ most is fixed, though unknown. A bound that holds for
one pair with the stated probability holds for this one, and the largest of the bounds of all pairs is no smaller:
no correction for the number of pairs is needed.

*Lower end.* D is at least p_g - p_h for every pair, so that the largest of the lower bounds of all pairs is a lower
bound of D if all of them hold at once: they are widened by the quantile of the studentised range (Tukey, Kramer).

*Several rates at once* (both rates of equalised odds, the classes of a root mean square). A gap that is a convex,
nondecreasing function f of the gaps D_k satisfies f(d) >= f(D) + sum_k w_k (d_k - D_k) with fixed weights w_k >= 0,
and the standard deviation of a sum is at most the sum of the standard deviations. So f of the uncorrected upper
ends is an upper end, however the rates depend on each other. Lower ends are taken to hold at once; errors of
different rates that depend on each other only make this likelier (Gaussian correlation inequality).

The bounds of a pair are of Newcombe's kind, put together from an interval of each rate: the distances from a rate to
the end of its interval are added as standard errors are. He takes Wilson's intervals, whose coverage of two groups
falls to 88 % for few rows and rates near 0 and 1; with Agresti and Coull's, a little longer, it is at least 93.7 % by
enumeration, save for ten rows against ten that differ by more than 60 points (91 %).
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from scipy import optimize
from scipy.special import ndtr, ndtri

# Nodes of the quadrature for the distribution of the range; 400 give more than ten digits up to 10,000 groups.
_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(400)
_WIDEST = 12.0
# Permutations of a p-value: its least value is 1 / 2000. Fewer if there are many pairs of groups.
_MOST_PERMUTATIONS, _LEAST_PERMUTATIONS = 1999, 499
_MOST_PAIRS = 20_000_000
_BLOCK_PAIRS = 2_000_000
# With more groups than this, permutations compare each with the mean of all instead of every pair.
_MOST_GROUPS_IN_PAIRS = 100
_BIAS_DRAWS = 1000

Offsets: TypeAlias = np.ndarray | float
#: Rates of the groups, the (effective) numbers of rows behind them, and what is subtracted from them.
Family: TypeAlias = tuple[np.ndarray, np.ndarray, Offsets]


def range_probability(multiplier: float, n_groups: int) -> float:
    """Return the probability that all pairs of ``n_groups`` normal means keep within ``multiplier`` standard errors.

    Tukey's studentised range for known variances and equal sizes; with unequal sizes the probability is larger [1]_.

    References
    ----------
    .. [1] A. J. Hayter, "A Proof of the Conjecture that the Tukey-Kramer Multiple Comparisons Procedure is
       Conservative", Annals of Statistics 1984.
    """
    width = multiplier * np.sqrt(2.0)
    x = _WIDEST * _NODES
    density = np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)
    within = np.maximum(ndtr(x) - ndtr(x - width), 0.0) ** (n_groups - 1)
    return float(min(1.0, n_groups * _WIDEST * np.sum(_NODE_WEIGHTS * density * within)))


def joint_probability(multiplier: float, sizes: Sequence[int]) -> float:
    """Return the probability that all pairs keep within, for rates compared among ``sizes`` groups each."""
    return float(np.prod([range_probability(multiplier, size) for size in sizes]))


@lru_cache(maxsize=256)
def range_multiplier(level: float, sizes: tuple[int, ...]) -> float:
    """Return the number of standard errors within which all pairs of all rates keep with probability ``level``."""
    return float(optimize.brentq(lambda c: joint_probability(c, sizes) - level, 1e-9, 40.0, xtol=1e-10))


def normal_multiplier(tail: float) -> float:
    """Return the number of standard errors that a normal error exceeds with probability ``tail``."""
    return float(-ndtri(tail))


def rate_ends(rates: np.ndarray, sizes: np.ndarray, multiplier: float) -> tuple[np.ndarray, np.ndarray]:
    """Return Agresti and Coull's interval of each rate; sizes need not be whole, and ends may lie outside [0, 1]."""
    squared = multiplier**2
    centre = (rates * sizes + squared / 2) / (sizes + squared)
    half = multiplier * np.sqrt(centre * (1 - centre) / (sizes + squared))
    # Rounding must not carry an end past the rate itself.
    return np.minimum(centre - half, rates), np.maximum(centre + half, rates)


def pair_lower(rates: np.ndarray, sizes: np.ndarray, multiplier: float, offsets: Offsets = 0.0) -> np.ndarray:
    """Return a lower bound of p_g - p_h for every pair, ``[g, h]``; offsets are known and subtracted."""
    lower, upper = rate_ends(rates, sizes, multiplier)
    shifted = rates - offsets
    return shifted[:, None] - shifted - np.sqrt((rates - lower)[:, None] ** 2 + (upper - rates) ** 2)


def gap_lower(rates: np.ndarray, sizes: np.ndarray, multiplier: float, offsets: Offsets = 0.0) -> float:
    """Return the largest lower bound of a pair, at least 0."""
    return float(max(0.0, pair_lower(rates, sizes, multiplier, offsets).max()))


def gap_upper(rates: np.ndarray, sizes: np.ndarray, multiplier: float, offsets: Offsets = 0.0) -> float:
    """Return the largest upper bound of a pair: p_g - p_h is at most minus the lower bound of p_h - p_g."""
    return float(-pair_lower(rates, sizes, multiplier, offsets).min())


def gap_interval(rates: np.ndarray, sizes: np.ndarray, level: float, offsets: Offsets = 0.0) -> tuple[float, float]:
    """Return the ends of the interval of the largest difference of one rate."""
    joint, single = range_multiplier(level, (len(rates),)), normal_multiplier((1 - level) / 2)
    return gap_lower(rates, sizes, joint, offsets), gap_upper(rates, sizes, single, offsets)


def ratio_ends(rates: np.ndarray, sizes: np.ndarray, multiplier: float) -> tuple[np.ndarray, np.ndarray]:
    """Return bounds of p_g / p_h for every pair, ``[g, h]``: Donner and Zou's, from intervals of the rates.

    They hold 1 exactly where the bounds of the difference hold 0.
    """
    lower, upper = rate_ends(rates, sizes, multiplier)
    product = rates[:, None] * rates

    def bound(numerator: np.ndarray, denominator: np.ndarray, sign: int) -> np.ndarray:
        # The ratio r at which (p_g - r p_h) is as far from 0 as its error allows, a root of a quadratic equation.
        square = denominator * (2 * rates - denominator)
        constant = (numerator * (2 * rates - numerator))[:, None]
        root = np.sqrt(np.maximum(product**2 - constant * square, 0.0))
        if sign < 0:  # the same root, written so that a square of 0 does no harm
            return np.divide(constant, product + root, out=np.zeros_like(root), where=product + root > 0)
        return np.divide(
            product + root, np.broadcast_to(square, root.shape), out=np.full_like(root, np.inf), where=square > 0
        )

    return np.maximum(bound(lower, upper, -1), 0.0), bound(upper, lower, +1)


def shrink(rates: np.ndarray, sizes: np.ndarray, offsets: Offsets = 0.0) -> np.ndarray:
    """Return the rates drawn towards their mean, each by the share of its variance that is noise (empirical Bayes)."""
    pooled = np.average(rates, weights=sizes)
    smooth = (rates * sizes + 2 * pooled) / (sizes + 2)  # two rows of the pooled rate: no variance is 0
    noise = np.maximum(smooth * (1 - smooth), 1e-4) / sizes
    values, weight = rates - offsets, 1 / noise
    mean = np.average(values, weights=weight)
    # DerSimonian and Laird's moment estimate of the variance between the groups.
    excess = (weight * (values - mean) ** 2).sum() - (len(rates) - 1)
    between = max(0.0, excess / (weight.sum() - (weight**2).sum() / weight.sum()))
    mean = np.average(values, weights=1 / (noise + between))
    kept = between / (between + noise)
    return np.clip(mean + kept * (values - mean) + offsets, 0.0, 1.0)


def simulated_bias(
    families: Sequence[Family],
    statistic: Callable[[list[np.ndarray]], np.ndarray],
    generator: np.random.Generator,
) -> float:
    """Return by how much a statistic of measured rates exceeds that of true ones, were these the shrunken ones.

    ``families`` are triples of rates, sizes and offsets; ``statistic`` takes one array ``[draw, group]`` for each.
    """
    drawn, true = [], []
    for rates, sizes, offsets in families:
        centre = shrink(rates, sizes, offsets)
        whole = np.maximum(np.rint(sizes), 1).astype(np.int64)
        drawn.append(generator.binomial(whole, centre, size=(_BIAS_DRAWS, len(centre))) / whole - offsets)
        true.append((centre - offsets)[None])
    return float(np.nanmean(statistic(drawn)) - statistic(true)[0])


def range_p_value(families: Sequence[Family]) -> float:
    """Return the least error level at which the lower end of the gap leaves 0."""
    sizes = tuple(len(rates) for rates, _, _ in families)

    def leaves_zero(multiplier: float) -> bool:
        return any(pair_lower(rates, n, multiplier, offsets).max() > 0 for rates, n, offsets in families)

    low, high = 0.0, 10.0
    if leaves_zero(high):
        return 1.0 - joint_probability(high, sizes)
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if leaves_zero(middle) else (low, middle)
    return float(np.clip(1.0 - joint_probability(low, sizes), 0.0, 1.0))


def permutation_p_value(
    families: "Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]]", generator: np.random.Generator
) -> float:
    """Return the p-value of the largest studentised difference of two groups among permutations of the rows.

    If all groups have the same rate, the rows of a stratum are exchangeable: given how many succeed in all, the
    successes of the groups are drawn without replacement. So the p-value is exact for counts of any size, and
    approximate only where weights make the sizes fractions.

    Parameters
    ----------
    families : list of (rates, sizes, weights)
        For each rate: ``rates[stratum, group]``, ``sizes[stratum, group]``, and the weights of the strata, which add
        up to 1.
    generator : numpy.random.Generator
        Source of the permutations.
    """
    n_pairs = sum(min(rates.shape[1], _MOST_GROUPS_IN_PAIRS) ** 2 for rates, _, _ in families)
    n_draws = int(np.clip(_MOST_PAIRS // n_pairs, _LEAST_PERMUTATIONS, _MOST_PERMUTATIONS))
    observed, largest = 0.0, np.zeros(n_draws)
    for rates, sizes, weights in families:
        whole = np.maximum(np.rint(sizes), 1).astype(np.int64)
        successes = np.rint((rates * whole).sum(axis=1)).astype(np.int64)
        pooled = successes / whole.sum(axis=1)
        variances = (weights[:, None] ** 2 * (pooled * (1 - pooled))[:, None] / whole).sum(axis=0)
        if not variances.any():  # everybody succeeds, or nobody does
            continue
        drawn = np.zeros((n_draws, rates.shape[1]))
        for stratum in np.flatnonzero(pooled * (1 - pooled) > 0):
            hits = _draw_successes(whole[stratum], int(successes[stratum]), n_draws, generator)
            drawn += weights[stratum] * hits / whole[stratum]
        # Strata in which everybody succeeds add the same to every group.
        varying = np.where(pooled * (1 - pooled) > 0, weights, 0.0)
        statistic = _studentised_range if rates.shape[1] <= _MOST_GROUPS_IN_PAIRS else _studentised_distance
        observed = max(observed, float(statistic((varying @ rates)[None], variances)[0]))
        largest = np.maximum(largest, statistic(drawn, variances))
    return float((1 + (largest >= observed - 1e-9).sum()) / (n_draws + 1))


def _draw_successes(sizes: np.ndarray, successes: int, n_draws: int, generator: np.random.Generator) -> np.ndarray:
    """Draw how many of the successes fall to each group, without replacement."""
    if sizes.sum() < 1_000_000_000:  # what NumPy's generator can hold
        return generator.multivariate_hypergeometric(sizes, successes, size=n_draws, method="marginals")
    return generator.binomial(sizes, successes / sizes.sum(), size=(n_draws, len(sizes)))


def _studentised_range(rates: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """Return the largest difference of two groups in units of its standard error, of each row of ``rates``."""
    scale = np.sqrt(variances[:, None] + variances)
    block = max(1, _BLOCK_PAIRS // scale.size)
    result = np.empty(len(rates))
    for start in range(0, len(rates), block):
        part = rates[start : start + block]
        result[start : start + block] = ((part[:, :, None] - part[:, None, :]) / scale).max(axis=(1, 2))
    return result


def _studentised_distance(rates: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """Return the largest distance of a group from the mean of all in units of its standard error."""
    mean = rates @ (1 / variances) / (1 / variances).sum()
    return (np.abs(rates - mean[:, None]) / np.sqrt(variances)).max(axis=1)
