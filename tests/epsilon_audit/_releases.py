"""Releases to audit: honest ones, and the faults that the auditor must find.

Outputs are rounded to a grid of 2**-10 where the fault is another one than floating point. That is post-processing, so
an auditor that convicts has found the fault that is meant.
"""

import numpy as np

from skfairdp.mechanisms import normalise
from skfairdp.preprocessing import LaplacePrivatizer

STEP = 2.0**-10


def rounded(values):
    return np.round(values / STEP) * STEP


class LaplaceNoise:
    """Rows as they are, plus Laplace noise of one scale."""

    def __init__(self, scale, seed, *, tells_ratio=True):
        self.scale = scale
        self.rng = np.random.default_rng(seed)
        if tells_ratio:
            self.log_likelihood_ratio = self._ratio

    def normalise(self, X):
        return X

    def __call__(self, X):
        return rounded(self.normalise(X) + self.rng.laplace(0, self.scale, X.shape))

    def _ratio(self, y, x, x_prime):
        centre, other = self.normalise(np.array([x, x_prime]))
        return (np.abs(y - other) - np.abs(y - centre)).sum(axis=1) / self.scale


class FloatLaplace(LaplaceNoise):
    """What everybody writes first: a double plus a double from NumPy."""

    def __call__(self, X):
        return self.normalise(X) + self.rng.laplace(0, self.scale, X.shape)


class FederatePublicCode(LaplaceNoise):
    """L2 normalisation with the noise of L1 normalisation, Lap(2/epsilon)."""

    def __init__(self, epsilon, seed, **kwargs):
        super().__init__(2 / epsilon, seed, **kwargs)

    def normalise(self, X):
        return X / np.linalg.norm(X, axis=1, keepdims=True)


class DPNRAsPrinted(LaplaceNoise):
    """Min-max rows with noise for a sensitivity of 1, Lap(1/epsilon), independent for each coordinate."""

    def __init__(self, epsilon, seed, **kwargs):
        super().__init__(1 / epsilon, seed, **kwargs)

    def normalise(self, X):
        low = X.min(axis=1, keepdims=True)
        return (X - low) / (X.max(axis=1, keepdims=True) - low)


class DPNRPublicCode(DPNRAsPrinted):
    """The same with one noise value for a whole row, in single precision."""

    def __init__(self, epsilon, seed):
        super().__init__(epsilon, seed, tells_ratio=False)

    def __call__(self, X):
        noise = self.rng.laplace(0, self.scale, (len(X), 1)).astype(np.float32)
        return self.normalise(X).astype(np.float32) + noise


class RandomisedResponse:
    """Keep a category with probability e^epsilon / (e^epsilon + n_categories - 1), else give another one."""

    def __init__(self, epsilon, n_categories, seed):
        self.keep = np.exp(epsilon) / (np.exp(epsilon) + n_categories - 1)
        self.n_categories = n_categories
        self.rng = np.random.default_rng(seed)

    def __call__(self, X):
        category = X[:, 0].astype(int)
        other = (category + self.rng.integers(1, self.n_categories, len(category))) % self.n_categories
        return np.where(self.rng.random(len(category)) < self.keep, category, other)


def _one_coordinate(factor):
    """The noise of one coordinate, chosen at random, times a factor."""

    def plant(rng, n_features):
        column = rng.integers(n_features)

        def spoil(noise):
            noise[:, column] *= factor
            return noise

        return spoil

    return plant


def _last_coordinate(rng, n_features):
    def spoil(noise):
        noise[:, -1] = 0
        return noise

    return spoil


def _one_direction(rng, n_features):
    """Noise everywhere except along one oblique direction."""
    direction = rng.normal(size=n_features)
    direction /= np.linalg.norm(direction)
    return lambda noise: noise - np.outer(noise @ direction, direction)


def _bounded(rng, n_features):
    """Noise that is cut off: outputs farther out are impossible for one of two records."""
    return lambda noise: np.clip(noise, -6.0, 6.0)


def _from_row(source):
    """Each row takes the noise of the row that ``source`` names."""
    return lambda rng, n_features: lambda noise: noise[np.clip(source(np.arange(len(noise))), 0, len(noise) - 1)]


def _flipped(rng, n_features):
    """Antithetic pairs: the second row of each pair gets the noise of the first, with the other sign."""
    return lambda noise: noise[np.arange(len(noise)) // 2 * 2] * np.where(np.arange(len(noise)) % 2, -1, 1)[:, None]


def _turned(rng, n_features):
    """The same with the coordinates in another order."""

    def spoil(noise):
        copied = np.roll(noise[np.arange(len(noise)) // 2 * 2], 1, axis=1)
        return np.where((np.arange(len(noise)) % 2)[:, None], copied, noise)

    return spoil


def _magnitudes(rng, n_features):
    """The same with fresh signs."""
    return lambda noise: np.abs(noise[np.arange(len(noise)) // 2 * 2]) * rng.choice([-1, 1], noise.shape)


def _reseeded(rng, n_features):
    return lambda noise: np.random.default_rng(7).laplace(0, 2.0, noise.shape)


def _previous_call(rng, n_features):
    """Every second call repeats the noise of the call before."""
    calls = []

    def spoil(noise):
        if len(calls) % 2:
            rows = min(len(noise), len(calls[-1]))
            noise[:rows] = calls[-1][:rows]
        calls.append(noise)
        return noise

    return spoil


#: What one row shows: name, and a function of (rng, n_features) that gives a function from noise to spoiled noise.
FAULTS_OF_A_ROW = {
    "last coordinate without noise": _last_coordinate,
    "one coordinate without noise": _one_coordinate(0.0),
    "one coordinate with a tenth of the noise": _one_coordinate(0.1),
    "one noise value for all coordinates": lambda rng, n_features: lambda noise: noise[:, :1] + 0 * noise,
    "no noise in one direction": _one_direction,
    "bounded noise": _bounded,
}

#: What single rows do not show.
FAULTS_BETWEEN_ROWS = {
    "pairs": _from_row(lambda i: i // 2 * 2),
    "pairs from the second row on": _from_row(lambda i: (i + 1) // 2 * 2),
    "blocks of five": _from_row(lambda i: i // 5 * 5),
    "three rows apart": _from_row(lambda i: np.where(i // 3 % 2, i - 3, i)),
    "chunks of 640 rows": _from_row(lambda i: i % 640),
    "one row for a whole call": _from_row(lambda i: 0 * i),
    "flipped signs": _flipped,
    "turned coordinates": _turned,
    "same magnitudes": _magnitudes,
    "the same seed in every call": _reseeded,
    "the call before": _previous_call,
}


def planted(fault, n_features, seed, norm="l1"):
    """A fitted LaplacePrivatizer of epsilon = 1 whose noise is spoiled; it tells the ratio of what it should do."""
    rng = np.random.default_rng(seed)
    spoil = fault(rng, n_features)

    class Planted(LaplacePrivatizer):
        def transform(self, X):
            clean = normalise(np.asarray(X, dtype=float), norm)
            return rounded(clean + spoil(super().transform(X) - clean))

    return Planted(epsilon=1.0, norm=norm, random_state=seed).fit(np.zeros((1, n_features)))


def planted_floats(n_features, seed, norm="l1"):
    """The same with noise of the right scale, drawn and added in floating point."""
    rng = np.random.default_rng(seed)

    class Floats(LaplacePrivatizer):
        def transform(self, X):
            return normalise(np.asarray(X, dtype=float), norm) + rng.laplace(0, self.noise_scale_, np.shape(X))

    return Floats(epsilon=1.0, norm=norm, random_state=seed).fit(np.zeros((1, n_features)))
