"""What stands between the encoder and everybody else.

A channel has two faces. ``forward`` is for training, with torch's noise, and differentiable;
``release`` is for data that leave the device, with the secure integer mechanisms.
"""

import math

import numpy as np
import torch
from torch import nn

from skfairdp._rng import RandomStream


class OpenChannel(nn.Module):
    """No channel at all (epsilon is infinite): the encoder's output passes as it is."""

    discrete = False

    def forward(self, u: torch.Tensor) -> torch.Tensor:
        """Return ``u``."""
        return u

    def release(self, u: np.ndarray, stream: RandomStream) -> np.ndarray:
        """Return ``u`` in double precision; nothing is protected."""
        return u.astype(np.float64)


class LaplaceChannel(nn.Module):
    """Normalise each row to norm 1, then add independent Laplace noise to every coordinate.

    Parameters
    ----------
    epsilon : float
        The epsilon that the noise is calibrated to.
    norm : {"l1", "l2"}
        The norm of the rows.
    calibration : {"exact", "published"}
        ``"published"`` adds the noise of L1 rows, scale 2 / epsilon, to L2 rows as well.
    """

    discrete = False

    def __init__(self, epsilon: float, norm: str = "l1", calibration: str = "exact"):
        super().__init__()
        self.epsilon = epsilon
        self.norm = norm
        self.calibration = calibration

    def scale(self, n_components: int) -> float:
        """The scale of the noise: sensitivity over epsilon."""
        published = self.norm == "l1" or self.calibration == "published"
        return 2.0 * (1.0 if published else math.sqrt(n_components)) / self.epsilon

    def forward(self, u: torch.Tensor) -> torch.Tensor:
        """Normalise and perturb, with gradients."""
        order = 1.0 if self.norm == "l1" else 2.0
        rows = nn.functional.normalize(u, p=order, dim=1)
        # The difference of two exponentials is Laplace; one value per coordinate, never one per row.
        noise = torch.empty_like(rows).exponential_() - torch.empty_like(rows).exponential_()
        return rows + self.scale(u.shape[1]) * noise

    def release(self, u: np.ndarray, stream: RandomStream) -> np.ndarray:
        """Normalise and perturb in integers; zero and nan rows become the zero row before the noise."""
        from skfairdp.mechanisms import laplace_release

        return laplace_release(
            u.astype(np.float64), epsilon=self.epsilon, norm=self.norm, calibration=self.calibration, stream=stream
        )


class CodeChannel(nn.Module):
    """Release one of K codes; training uses the exact probabilities instead of draws.

    Parameters
    ----------
    epsilon : float
        Pure local differential privacy of one release.
    """

    discrete = True

    def __init__(self, epsilon: float):
        super().__init__()
        self.epsilon = epsilon
        self._low = math.exp(-epsilon)

    def forward(self, u: torch.Tensor) -> torch.Tensor:
        """Probability of each code, ``(1 + (e^epsilon - 1) s_c) / (K - 1 + e^epsilon)`` with s = softmax(u)."""
        s = torch.softmax(u, dim=1)
        return (self._low + (1.0 - self._low) * s) / (1.0 + (u.shape[1] - 1) * self._low)

    def release(self, u: np.ndarray, stream: RandomStream) -> np.ndarray:
        """Draw one code per row in integers and return it as a one-hot row."""
        from skfairdp.mechanisms import draw_codes

        u = u.astype(np.float64)
        with np.errstate(invalid="ignore"):  # nan logits stay nan, which draw_codes reads as uniform
            s = np.exp(u - u.max(axis=1, keepdims=True, initial=-np.inf))
            s /= s.sum(axis=1, keepdims=True)
        return np.eye(u.shape[1])[draw_codes(s, self.epsilon, stream)]


def make_channel(channel: str, epsilon: float, norm: str, calibration: str) -> nn.Module:
    """Build the channel of that name; an infinite epsilon switches it off."""
    if math.isinf(epsilon):
        return OpenChannel()
    return CodeChannel(epsilon) if channel == "codes" else LaplaceChannel(epsilon, norm, calibration)
