"""Scores learned from samples, for releases that cannot tell their own likelihood ratio.

Each distinguisher is trained on releases that are used for nothing else, and returns a function from outputs to
scores; a larger score means "more like x". A bad score costs power, never validity: the bound is certified on
fresh releases.
"""

import warnings
from collections.abc import Callable

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression

from skfairdp._rng import RandomStream

Score = Callable[[np.ndarray], np.ndarray]

#: Wide outputs are cut to the columns that differ most; boosting looks at fewer still.
_MAX_LINEAR_COLUMNS = 128
_MAX_BOOSTED_COLUMNS = 24
#: Enough rows to see which columns differ.
_RANKING_ROWS = 2000
#: More rows than this do not make boosting see more.
_MAX_BOOSTED_ROWS = 40_000


def train_distinguishers(outputs_x: np.ndarray, outputs_x_prime: np.ndarray, stream: RandomStream) -> dict[str, Score]:
    """Train every distinguisher that suits the outputs.

    Parameters
    ----------
    outputs_x, outputs_x_prime : ndarray of shape (n, n_values) of float, or (n,) of str
        Releases of x and of x'.
    stream : RandomStream

    Returns
    -------
    dict of str to callable
        Name in words, and the score.
    """
    outputs = np.concatenate([outputs_x, outputs_x_prime])
    from_x = np.repeat([1, 0], [len(outputs_x), len(outputs_x_prime)])
    if outputs.dtype.kind == "U":
        found = {"words in the output (logistic regression)": _train_words(outputs, from_x)}
        keys: Callable[[np.ndarray], np.ndarray] = np.asarray
    else:
        ranking = _most_different_first(_finite(outputs_x[:_RANKING_ROWS]), _finite(outputs_x_prime[:_RANKING_ROWS]))
        linear, boosted = (np.sort(ranking[:n]) for n in (_MAX_LINEAR_COLUMNS, _MAX_BOOSTED_COLUMNS))
        found = {
            "clamped values (logistic regression)": _train_clamped(outputs, from_x, linear),
            "scaled and row-centred values (logistic regression)": _train_scaled(outputs, from_x, linear),
            "values and their lowest bits (gradient boosting)": _train_boosted(outputs, from_x, boosted, stream),
        }
        keys = _RowKeys(outputs.shape[1], stream)
    frequencies = _train_frequencies(outputs, from_x, keys)
    if frequencies is not None:
        found["exact outputs (frequencies)"] = frequencies
    return found


def lowest_bit(values: np.ndarray) -> np.ndarray:
    """Exponent of the lowest bit set in each value: ``v`` is an odd multiple of ``2 ** lowest_bit(v)``.

    Noise added in floating point is rounded to a grid that depends on the private value, and this is where it
    shows. Zero has no lowest bit and gets 64; what is not finite gets 128.

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp.auditing._distinguishers import lowest_bit
    >>> lowest_bit(np.array([1.0, 6.0, 0.375, 0.0]))
    array([ 0.,  1., -3., 64.])
    """
    finite = np.isfinite(values)
    mantissa, exponent = np.frexp(np.where(finite, values, 0.0))
    integer = np.abs(mantissa * 2.0**53).astype(np.int64)
    lowest = np.log2((integer & -integer).astype(float), where=integer != 0, out=np.full(values.shape, 117.0))
    return np.where(finite, lowest + exponent - 53, 128.0)


class _RowKeys:
    """Hash rows to 64 bits; equal rows get equal keys, and a rare collision only costs power."""

    def __init__(self, n_values: int, stream: RandomStream):
        self._weights = stream.uint64(n_values) | np.uint64(1)

    def __call__(self, outputs: np.ndarray) -> np.ndarray:
        words = np.ascontiguousarray(outputs).view(np.uint64)
        with np.errstate(over="ignore"):  # arithmetic modulo 2 ** 64 is meant
            mixed = words ^ (words >> np.uint64(29))
            return (mixed * self._weights).sum(axis=1, dtype=np.uint64)


def _train_frequencies(outputs: np.ndarray, from_x: np.ndarray, keys: Callable) -> Score | None:
    """Log ratio of how often each exact output was seen; None if outputs hardly repeat."""
    known, codes = np.unique(keys(outputs), return_inverse=True)
    if len(known) > 0.5 * len(outputs):
        return None
    counts_x = np.bincount(codes, weights=from_x, minlength=len(known))
    counts_x_prime = np.bincount(codes, weights=1 - from_x, minlength=len(known))
    ratio = np.log((counts_x + 0.5) / (counts_x_prime + 0.5))

    def score(new: np.ndarray) -> np.ndarray:
        new_keys = keys(new)
        place = np.minimum(np.searchsorted(known, new_keys), len(known) - 1)
        return np.where(known[place] == new_keys, ratio[place], 0.0)

    return score


def _train_words(outputs: np.ndarray, from_x: np.ndarray) -> Score:
    vectorizer = CountVectorizer(token_pattern=r"\S+", lowercase=False, max_features=20_000)
    try:
        counts = vectorizer.fit_transform(outputs)
    except ValueError:  # every output is empty
        return lambda new: np.zeros(len(new))
    model = _logistic(counts, from_x)
    return lambda new: model.decision_function(vectorizer.transform(new))


def _train_clamped(outputs: np.ndarray, from_x: np.ndarray, columns: np.ndarray) -> Score:
    """Clamp every value between the medians at x' and x.

    For Laplace noise this is the likelihood ratio up to the weights, with its atoms.
    """
    clamp = _Clamp(outputs[:, columns], from_x)
    model = _logistic(clamp(outputs[:, columns]), from_x)
    return lambda new: model.decision_function(clamp(new[:, columns]))


def _train_scaled(outputs: np.ndarray, from_x: np.ndarray, columns: np.ndarray) -> Score:
    """Robustly scaled values, and values minus their row's mean, which shared noise cannot hide."""
    features = _ScaledFeatures(outputs, from_x, columns)
    model = _logistic(features(outputs), from_x)
    return lambda new: model.decision_function(features(new))


def _train_boosted(outputs: np.ndarray, from_x: np.ndarray, columns: np.ndarray, stream: RandomStream) -> Score:
    def features(new: np.ndarray) -> np.ndarray:
        part = new[:, columns]
        finite = _finite(new)
        centred = finite[:, columns] - finite.mean(axis=1, keepdims=True)
        return np.concatenate([np.where(np.isinf(part), np.nan, part), lowest_bit(part), centred], axis=1)

    table = features(outputs)
    if len(table) > _MAX_BOOSTED_ROWS:
        chosen = stream.generator.choice(len(table), _MAX_BOOSTED_ROWS, replace=False)
        table, from_x = table[chosen], from_x[chosen]
    model = HistGradientBoostingClassifier(max_iter=60, max_leaf_nodes=15, random_state=stream.seed())
    model.fit(table, from_x)
    return lambda new: model.decision_function(features(new))


def _logistic(features, from_x: np.ndarray) -> LogisticRegression:
    with warnings.catch_warnings():
        # an unconverged distinguisher is still a score, and separable samples are the interesting case
        warnings.simplefilter("ignore", ConvergenceWarning)
        return LogisticRegression(C=10.0, max_iter=300).fit(features, from_x)


class _Clamp:
    """Clamp each column between its medians at x' and at x, scaled to [0, 1]; columns that do not move become 0."""

    def __init__(self, outputs: np.ndarray, from_x: np.ndarray):
        finite = _finite(outputs)
        at_x, at_x_prime = (np.median(finite[from_x == side], axis=0) for side in (1, 0))
        self._low, self._high = np.minimum(at_x, at_x_prime), np.maximum(at_x, at_x_prime)
        self.gap = self._high - self._low

    def __call__(self, outputs: np.ndarray) -> np.ndarray:
        clamped = np.clip(_finite(outputs), self._low, self._high) - self._low
        return np.divide(clamped, self.gap, where=self.gap > 0, out=np.zeros_like(clamped))


class _ScaledFeatures:
    """What the second logistic regression sees."""

    def __init__(self, outputs: np.ndarray, from_x: np.ndarray, columns: np.ndarray):
        finite = _finite(outputs)
        self._columns = columns
        part = finite[:, self._columns]
        self._centre, self._scale = _robust_scale(part)
        centred = part - finite.mean(axis=1, keepdims=True)
        self._row_centre, self._row_scale = _robust_scale(centred)
        self._row_clamp = _Clamp(centred, from_x)

    def __call__(self, outputs: np.ndarray) -> np.ndarray:
        finite = _finite(outputs)
        part = finite[:, self._columns]
        centred = part - finite.mean(axis=1, keepdims=True)
        return np.concatenate(
            [
                np.clip((part - self._centre) / self._scale, -3, 3),
                np.clip((centred - self._row_centre) / self._row_scale, -3, 3),
                self._row_clamp(centred),
                np.isnan(outputs).any(axis=1, keepdims=True),
                np.isinf(outputs).any(axis=1, keepdims=True),
            ],
            axis=1,
        )


def _finite(outputs: np.ndarray) -> np.ndarray:
    return np.nan_to_num(outputs, nan=0.0, posinf=1e150, neginf=-1e150)


def _robust_scale(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Median and interquartile range of each column; the range falls back to the deviation, then to 1."""
    quarter, centre, three_quarters = np.percentile(values, [25, 50, 75], axis=0)
    scale = three_quarters - quarter
    flat = ~(scale > 0)
    if flat.any():
        magnitude = np.maximum(np.abs(values[:, flat]).max(axis=0), np.finfo(float).tiny)
        scale[flat] = np.std(values[:, flat] / magnitude, axis=0) * magnitude
    return centre, np.where(scale > 0, scale, 1.0)


def _most_different_first(at_x: np.ndarray, at_x_prime: np.ndarray) -> np.ndarray:
    """Order columns by how much their mean, after clipping outliers, and their spread differ between x and x'."""
    centre, scale = _robust_scale(np.concatenate([at_x, at_x_prime]))
    at_x, at_x_prime = (np.clip((side - centre) / scale, -3, 3) for side in (at_x, at_x_prime))
    shift = np.abs(at_x.mean(axis=0) - at_x_prime.mean(axis=0)) + np.abs(at_x.std(axis=0) - at_x_prime.std(axis=0))
    return np.argsort(-shift, kind="stable")
