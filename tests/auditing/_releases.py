"""Releases to audit: honest ones, and the faults that the auditor must find.

Outputs are rounded to a grid of 2**-10 where the fault is another one than floating point. That is post-processing, so
an auditor that convicts has found the fault that is meant.
"""

import numpy as np

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
    """Keep a code with probability e^epsilon / (e^epsilon + n_codes - 1), else give another one."""

    def __init__(self, epsilon, n_codes, seed):
        self.keep = np.exp(epsilon) / (np.exp(epsilon) + n_codes - 1)
        self.n_codes = n_codes
        self.rng = np.random.default_rng(seed)

    def __call__(self, X):
        code = X[:, 0].astype(int)
        other = (code + self.rng.integers(1, self.n_codes, len(code))) % self.n_codes
        return np.where(self.rng.random(len(code)) < self.keep, code, other)
