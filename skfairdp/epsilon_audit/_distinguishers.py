"""Scores that are learned from releases, to tell those of x from those of x'.

A release may know the likelihood ratio of what it should do, and do something else; others know none. These scores look
at what came out. Each is learned from releases that are used for nothing else, and is a function from outputs to
numbers, larger for what looks more like x. A bad score costs power, never validity: the bound is certified on fresh
releases.

The *quick* scores cost next to nothing, so that many pairs of inputs can be looked at: the one value that says most,
how that value ends in binary, the direction in which the outputs move most for how much they vary, and how often exact
outputs occur. The *slow* ones are logistic regressions and gradient boosting.
"""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression

from skfairdp.random import RandomStream

# -- quick scores -----------------------------------------------------------------------------------------------------


Score = Callable[[np.ndarray], np.ndarray]

#: Wide outputs are cut to the columns that differ most.
MAX_LINEAR_COLUMNS = 128
#: Enough rows to see which columns differ.
_RANKING_ROWS = 2000
#: Floating-point noise is looked for in this many values; more cost time.
_MAX_ENDINGS = 16
_N_ENDINGS = 2**13  # a sign, 6 bits of the exponent, and 6 bits that count zeros: see _endings
#: Added to every count, so that the ratio of endings that were hardly seen is near 1.
_ENDING_PRIOR = 1.0
#: Values farther out than this many interquartile ranges would drown a covariance.
_OUTLIER = 50.0


def train_quick(outputs_x: np.ndarray, outputs_x_prime: np.ndarray, stream: RandomStream) -> dict[str, Score]:
    """Learn every quick score that suits the outputs.

    Parameters
    ----------
    outputs_x, outputs_x_prime : ndarray of shape (n, n_values) of float, or (n,) of str
        Releases of x and of x'.
    stream : RandomStream
        For random numbers that a score needs.

    Returns
    -------
    dict of str to callable
        Name in words, and the score.
    """
    outputs = np.concatenate([outputs_x, outputs_x_prime])
    from_x = np.repeat([1, 0], [len(outputs_x), len(outputs_x_prime)])
    if outputs.dtype.kind == "U":
        return _if_known({"exact outputs (frequencies)": train_frequencies(outputs, from_x, np.asarray)})
    ranking, centre, scale = most_different_first(outputs_x, outputs_x_prime)
    best = int(ranking[0])
    # a covariance of more columns than a few rows can tell apart finds directions that only these rows have
    columns = np.sort(ranking[: min(MAX_LINEAR_COLUMNS, max(1, len(outputs_x) // 4))])
    return _if_known(
        {
            "one value": lambda new: new[:, best],
            "one value's exponent and lowest bit (frequencies)": _train_endings(outputs, from_x, ranking[:1]),
            "exponents and lowest bits (frequencies)": _train_endings(outputs, from_x, ranking[:_MAX_ENDINGS]),
            "direction (Fisher's discriminant)": _train_fisher(outputs, from_x, columns, centre, scale),
            "exact outputs (frequencies)": train_frequencies(outputs, from_x, _row_keys(outputs.shape[1], stream)),
        }
    )


def _if_known(scores: dict[str, Score | None]) -> dict[str, Score]:
    return {name: score for name, score in scores.items() if score is not None}


def train_frequencies(outputs: np.ndarray, from_x: np.ndarray, keys: Callable) -> Score | None:
    """Log ratio of how often each key was seen; None if keys hardly repeat."""
    known, indices = np.unique(keys(outputs), return_inverse=True)
    if len(known) > 0.5 * len(outputs):
        return None
    counts_x = np.bincount(indices, weights=from_x, minlength=len(known))
    counts_x_prime = np.bincount(indices, weights=1 - from_x, minlength=len(known))
    ratio = np.log((counts_x + 0.5) / (counts_x_prime + 0.5))

    def score(new: np.ndarray) -> np.ndarray:
        new_keys = keys(new)
        place = np.minimum(np.searchsorted(known, new_keys), len(known) - 1)
        return np.where(known[place] == new_keys, ratio[place], 0.0)

    return score


def _row_keys(n_values: int, stream: RandomStream) -> Callable:
    """Return a function that hashes rows to 64 bits; equal rows get equal keys, a rare collision only costs power."""
    weights = stream.uint64(n_values) | np.uint64(1)

    def keys(outputs: np.ndarray) -> np.ndarray:
        words = np.ascontiguousarray(outputs).view(np.uint64)
        with np.errstate(over="ignore"):  # arithmetic modulo 2 ** 64 is meant
            mixed = words ^ (words >> np.uint64(29))
            return (mixed * weights).sum(axis=1, dtype=np.uint64)

    return keys


def _train_endings(outputs: np.ndarray, from_x: np.ndarray, columns: np.ndarray) -> Score:
    """Sum, over some values of an output, the log ratio of how often their sign, exponent and lowest bit occurred.

    Noise added in floating point lies on a grid that depends on the private value; how fine it is at each
    magnitude shows here. One table serves all values, so that many values that each show a little add up.
    """
    keys = _endings_of_doubles(outputs[:, columns])
    counts_x, counts_x_prime = (
        np.bincount(keys[from_x == side].reshape(-1), minlength=_N_ENDINGS) + _ENDING_PRIOR for side in (1, 0)
    )
    ratio = np.log(counts_x / counts_x_prime)
    return lambda new: ratio[_endings_of_doubles(new[:, columns])].sum(axis=1)


def _endings_of_doubles(values: np.ndarray) -> np.ndarray:
    """Sign and exponent of each double (modulo 64), and how many zeros its fraction ends with, in one number."""
    words = np.ascontiguousarray(values).view(np.int64)
    fraction = words & (2**52 - 1)
    lowest = (fraction & -fraction).astype(np.float64).view(np.int64) >> 52  # the exponent of a power of two
    zeros = np.where(lowest, lowest - 1023, 63)
    return ((words < 0) << 12) + (((words >> 52) & 63) << 6) + zeros


def lowest_bit(values: np.ndarray) -> np.ndarray:
    """Exponent of the lowest bit set in each value: ``v`` is an odd multiple of ``2 ** lowest_bit(v)``.

    Noise added in floating point is rounded to a grid that depends on the private value, and this is where it
    shows. Zero has no lowest bit and gets 64; what is not finite gets 128.

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp.epsilon_audit._distinguishers import lowest_bit
    >>> lowest_bit(np.array([1.0, 6.0, 0.375, 0.0]))
    array([ 0.,  1., -3., 64.])
    """
    known = np.isfinite(values)
    mantissa, exponent = np.frexp(np.where(known, values, 0.0))
    integer = np.abs(mantissa * 2.0**53).astype(np.int64)
    lowest = np.log2((integer & -integer).astype(float), where=integer != 0, out=np.full(values.shape, 117.0))
    return np.where(known, lowest + exponent - 53, 128.0)


def _train_fisher(
    outputs: np.ndarray, from_x: np.ndarray, columns: np.ndarray, centre: np.ndarray, scale: np.ndarray
) -> Score:
    """Fisher's linear discriminant: the shift of the means over the covariance around them.

    A value without noise, noise that several values share, and noise that lies in too few directions all leave a
    direction in which the outputs vary little or not at all; the inverse of the covariance points there.
    """
    centre, scale = centre[columns], scale[columns]

    def features(new: np.ndarray) -> np.ndarray:
        return np.clip((finite_outputs(new[:, columns]) - centre) / scale, -_OUTLIER, _OUTLIER)

    scaled = features(outputs)
    means = [scaled[from_x == side].mean(axis=0) for side in (1, 0)]
    around = scaled - np.where(from_x[:, np.newaxis] == 1, *means)
    covariance = around.T @ around / len(around)
    # a direction without any noise would have an infinite weight; this little is negligible beside any other noise
    covariance[np.diag_indices_from(covariance)] += 1e-9
    weights = np.linalg.solve(covariance, means[0] - means[1])
    return lambda new: features(new) @ weights


def finite_outputs(outputs: np.ndarray) -> np.ndarray:
    """Replace nan by 0 and infinities by large numbers whose squares are still numbers."""
    return np.nan_to_num(outputs, nan=0.0, posinf=1e150, neginf=-1e150)


def robust_scale(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Median and interquartile range of each column; the range falls back to the deviation, then to 1."""
    quarter, centre, three_quarters = np.percentile(values, [25, 50, 75], axis=0)
    scale = three_quarters - quarter
    flat = ~(scale > 0)
    if flat.any():
        magnitude = np.maximum(np.abs(values[:, flat]).max(axis=0), np.finfo(float).tiny)
        scale[flat] = np.std(values[:, flat] / magnitude, axis=0) * magnitude
    return centre, np.where(scale > 0, scale, 1.0)


def most_different_first(at_x: np.ndarray, at_x_prime: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Order columns by how much their mean, after clipping outliers, and their spread differ between x and x'.

    Returns
    -------
    ranking, centre, scale : ndarray of shape (n_values,)
        The columns in this order; the centre and the scale of each column.
    """
    rows = [finite_outputs(side[:_RANKING_ROWS]) for side in (at_x, at_x_prime)]
    centre, scale = robust_scale(np.concatenate(rows))
    one, other = (np.clip((side - centre) / scale, -3, 3) for side in rows)
    shift = np.abs(one.mean(axis=0) - other.mean(axis=0)) + np.abs(one.std(axis=0) - other.std(axis=0))
    return np.argsort(-shift, kind="stable"), centre, scale


def least_varying_column(outputs: np.ndarray) -> int:
    """The column of numeric outputs of one input that varies least; where an implementation saved on noise."""
    quarter, three_quarters = np.percentile(finite_outputs(outputs[:_RANKING_ROWS]), [25, 75], axis=0)
    return int(np.argmin(three_quarters - quarter))


# -- slow scores ------------------------------------------------------------------------------------------------------


#: Boosting looks at fewer of the columns that differ most than linear scores do.
_MAX_BOOSTED_COLUMNS = 24
#: More rows than this do not make boosting see more.
_MAX_BOOSTED_ROWS = 40_000


def train_distinguishers(outputs_x: np.ndarray, outputs_x_prime: np.ndarray, stream: RandomStream) -> dict[str, Score]:
    """Train every distinguisher that suits the outputs, the quick ones of ``train_quick`` among them.

    Parameters
    ----------
    outputs_x, outputs_x_prime : ndarray of shape (n, n_values) of float, or (n,) of str
        Releases of x and of x'.
    stream : RandomStream
        For random numbers that a score needs.

    Returns
    -------
    dict of str to callable
        Name in words, and the score.
    """
    found = train_quick(outputs_x, outputs_x_prime, stream)
    outputs = np.concatenate([outputs_x, outputs_x_prime])
    from_x = np.repeat([1, 0], [len(outputs_x), len(outputs_x_prime)])
    if outputs.dtype.kind == "U":
        found["words in the output (logistic regression)"] = _train_words(outputs, from_x)
        return found
    ranking, _, _ = most_different_first(outputs_x, outputs_x_prime)
    linear, boosted = (np.sort(ranking[:n]) for n in (MAX_LINEAR_COLUMNS, _MAX_BOOSTED_COLUMNS))
    for name, features in (
        ("clamped values (logistic regression)", _clamped(outputs, from_x, linear)),
        ("scaled and row-centred values (logistic regression)", _scaled(outputs, from_x, linear)),
    ):
        found[name] = _train_logistic(features(outputs), from_x, features)
    found["values and their lowest bits (gradient boosting)"] = _train_boosted(outputs, from_x, boosted, stream)
    return found


def _train_words(outputs: np.ndarray, from_x: np.ndarray) -> Score:
    vectorizer = CountVectorizer(token_pattern=r"\S+", lowercase=False, max_features=20_000)
    try:
        counts = vectorizer.fit_transform(outputs)
    except ValueError:  # every output is empty
        return lambda new: np.zeros(len(new))
    return _train_logistic(counts, from_x, vectorizer.transform)


def _train_boosted(outputs: np.ndarray, from_x: np.ndarray, columns: np.ndarray, stream: RandomStream) -> Score:
    def features(new: np.ndarray) -> np.ndarray:
        part = new[:, columns]
        known = finite_outputs(new)
        centred = known[:, columns] - known.mean(axis=1, keepdims=True)
        return np.concatenate([np.where(np.isinf(part), np.nan, part), lowest_bit(part), centred], axis=1)

    table = features(outputs)
    if len(table) > _MAX_BOOSTED_ROWS:
        chosen = stream.generator.choice(len(table), _MAX_BOOSTED_ROWS, replace=False)
        table, from_x = table[chosen], from_x[chosen]
    model = HistGradientBoostingClassifier(max_iter=60, max_leaf_nodes=15, random_state=stream.seed())
    model.fit(table, from_x)
    return lambda new: model.decision_function(features(new))


def _train_logistic(table: Any, from_x: np.ndarray, features: Callable) -> Score:
    """Score outputs by a logistic regression on some features of theirs; the table has those to learn from."""
    with warnings.catch_warnings():
        # an unconverged distinguisher is still a score, and separable samples are the interesting case
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LogisticRegression(C=10.0, max_iter=300).fit(table, from_x)
    return lambda new: model.decision_function(features(new))


def _clamped(outputs: np.ndarray, from_x: np.ndarray, columns: Any = slice(None)) -> Callable:
    """Return features: each column between its medians at x' and x, in [0, 1]; columns that do not move become 0.

    For Laplace noise this is the likelihood ratio up to the weights, with its atoms.
    """
    known = finite_outputs(outputs[:, columns])
    at_x, at_x_prime = (np.median(known[from_x == side], axis=0) for side in (1, 0))
    low, high = np.minimum(at_x, at_x_prime), np.maximum(at_x, at_x_prime)

    def features(new: np.ndarray) -> np.ndarray:
        clamped = np.clip(finite_outputs(new[:, columns]), low, high) - low
        return np.divide(clamped, high - low, where=high > low, out=np.zeros_like(clamped))

    return features


def _scaled(outputs: np.ndarray, from_x: np.ndarray, columns: np.ndarray) -> Callable:
    """Return features: robustly scaled values, and values minus their row's mean, which shared noise cannot hide."""

    def plain_and_centred(new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        known = finite_outputs(new)
        return known[:, columns], known[:, columns] - known.mean(axis=1, keepdims=True)

    learned_from = plain_and_centred(outputs)
    scales = [robust_scale(part) for part in learned_from]
    clamp = _clamped(learned_from[1], from_x)

    def features(new: np.ndarray) -> np.ndarray:
        parts = plain_and_centred(new)
        scaled = [np.clip((part - centre) / scale, -3, 3) for part, (centre, scale) in zip(parts, scales)]
        strange = [test(new).any(axis=1, keepdims=True) for test in (np.isnan, np.isinf)]
        return np.concatenate([*scaled, clamp(parts[1]), *strange], axis=1)

    return features
