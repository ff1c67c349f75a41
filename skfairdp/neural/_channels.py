"""What stands between the encoder and everybody else.

A channel has two faces. ``forward`` is for training, with torch's noise, and differentiable;
``release`` is for data that leave the device, with the secure integer mechanisms.
"""

import math

import numpy as np
import torch
from torch import nn

from skfairdp._rng import RandomStream

# Codes start as clear words: a codebook row gives its class e^3 times the weight of any other.
_FIRST_LOGIT = 3.0


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
        if u.shape[1] == 1:
            # A row of one number becomes its sign, which has no gradient: it borrows that of a soft sign.
            soft = torch.tanh(u)
            rows = torch.sign(u) + (soft - soft.detach())
        else:
            rows = nn.functional.normalize(u, p=1.0 if self.norm == "l1" else 2.0, dim=1)
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
    """Name the one of K codes that fits a record best, and release it by randomised response.

    The device holds a codebook W, one distribution over the classes for each code, and believes
    ``r(x) = sum_c softmax(u(x))_c W_c``. The code it names is the one whose row fits r best among those that stand for
    the class it believes in: s(x) is one-hot there. The expected loss of a head is linear in s, so that a
    softer s could only add noise. Code c is then released with probability
    ``(1 + (e^epsilon - 1) s_c) / (K - 1 + e^epsilon)``.

    Parameters
    ----------
    epsilon : float
        Pure local differential privacy of one release.
    n_codes : int
        Number of codes, K.
    n_classes : int
        Number of classes that the codebook speaks of.
    """

    discrete = True

    def __init__(self, epsilon: float, n_codes: int, n_classes: int):
        super().__init__()
        self.epsilon = epsilon
        self._low = math.exp(-epsilon)
        codes, classes = torch.arange(n_codes)[:, None], torch.arange(n_classes)[None, :]
        least = min(n_codes, n_classes)
        self.codebook = nn.Parameter(_FIRST_LOGIT * (codes % least == classes % least).float())

    def belief(self, u: torch.Tensor) -> torch.Tensor:
        """What the device believes about the class, before any noise."""
        return torch.softmax(u, dim=1) @ torch.softmax(self.codebook, dim=1)

    def choose(self, belief: torch.Tensor) -> torch.Tensor:
        """The code that the device names."""
        rows = torch.log_softmax(self.codebook, dim=1)
        fit = belief @ rows.T
        agrees = rows.argmax(dim=1)[None, :] == belief.argmax(dim=1)[:, None]
        # Codes of another class come in only when none stands for the believed one.
        return torch.where(agrees | ~agrees.any(dim=1, keepdim=True), fit, -torch.inf).argmax(dim=1)

    def probabilities(self, s: torch.Tensor) -> torch.Tensor:
        """Probability of each code, ``(1 + (e^epsilon - 1) s_c) / (K - 1 + e^epsilon)``."""
        return (self._low + (1.0 - self._low) * s) / (1.0 + (s.shape[1] - 1) * self._low)

    def forward(self, u: torch.Tensor) -> torch.Tensor:
        """Exact release probabilities of the named codes; their gradient is that of the soft codes."""
        soft = torch.softmax(u, dim=1)
        with torch.no_grad():
            named = nn.functional.one_hot(self.choose(self.belief(u)), u.shape[1]).to(u.dtype)
        return self.probabilities(named + (soft - soft.detach()))

    def release(self, u: np.ndarray, stream: RandomStream) -> np.ndarray:
        """Draw one code per row in integers and return it as a one-hot row; a nan row is drawn uniformly."""
        from skfairdp.mechanisms import draw_codes

        with torch.no_grad():
            named = self.choose(self.belief(torch.tensor(u, device=self.codebook.device))).cpu().numpy()
        eye = np.eye(u.shape[1])
        s = np.where(np.isfinite(u).all(axis=1, keepdims=True), eye[named], np.nan)
        return eye[draw_codes(s, self.epsilon, stream)]


def make_channel(
    channel: str, epsilon: float, norm: str, calibration: str, n_outputs: int, n_classes: int
) -> nn.Module:
    """Build the channel of that name; an infinite epsilon switches it off."""
    if math.isinf(epsilon):
        return OpenChannel()
    if channel == "codes":
        return CodeChannel(epsilon, n_outputs, n_classes)
    return LaplaceChannel(epsilon, norm, calibration)
