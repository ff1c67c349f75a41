"""Scores learned from samples, for releases that cannot tell their own likelihood ratio.

Each distinguisher is trained on releases that are used for nothing else, and returns a function from outputs to
scores; a larger score means "more like x". A bad score costs power, never validity: the bound is certified on
fresh releases.
"""

import warnings

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression

from skfairdp.epsilon_audit import _quick_scores
from skfairdp.epsilon_audit._quick_scores import (
    Score,
    finite,
    lowest_bit,
    most_different_first,
    robust_scale,
    train_quick,
)
from skfairdp.random import RandomStream

#: Wide outputs are cut to the columns that differ most; boosting looks at fewer than the others.
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
    ranking = most_different_first(outputs_x, outputs_x_prime)
    linear, boosted = (np.sort(ranking[:n]) for n in (_quick_scores.MAX_LINEAR_COLUMNS, _MAX_BOOSTED_COLUMNS))
    found["clamped values (logistic regression)"] = _train_clamped(outputs, from_x, linear)
    found["scaled and row-centred values (logistic regression)"] = _train_scaled(outputs, from_x, linear)
    found["values and their lowest bits (gradient boosting)"] = _train_boosted(outputs, from_x, boosted, stream)
    return found


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
        known = finite(new)
        centred = known[:, columns] - known.mean(axis=1, keepdims=True)
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
        known = finite(outputs)
        at_x, at_x_prime = (np.median(known[from_x == side], axis=0) for side in (1, 0))
        self._low, self._high = np.minimum(at_x, at_x_prime), np.maximum(at_x, at_x_prime)
        self.gap = self._high - self._low

    def __call__(self, outputs: np.ndarray) -> np.ndarray:
        clamped = np.clip(finite(outputs), self._low, self._high) - self._low
        return np.divide(clamped, self.gap, where=self.gap > 0, out=np.zeros_like(clamped))


class _ScaledFeatures:
    """What the second logistic regression sees."""

    def __init__(self, outputs: np.ndarray, from_x: np.ndarray, columns: np.ndarray):
        known = finite(outputs)
        self._columns = columns
        part = known[:, self._columns]
        self._centre, self._scale = robust_scale(part)
        centred = part - known.mean(axis=1, keepdims=True)
        self._row_centre, self._row_scale = robust_scale(centred)
        self._row_clamp = _Clamp(centred, from_x)

    def __call__(self, outputs: np.ndarray) -> np.ndarray:
        known = finite(outputs)
        part = known[:, self._columns]
        centred = part - known.mean(axis=1, keepdims=True)
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
