"""What stands between the encoder and everybody else, as training sees it.

A channel is differentiable, with torch's noise, and is made from the mechanism that releases: norm, noise scale and
epsilon are read from it, so that nothing is trained for another noise than the one that is drawn.
"""

import math
from typing import Any

import numpy as np
import torch
from torch import nn

from skfairdp.mechanisms import CodeMechanism, LaplaceMechanism, Mechanism

# A codebook starts with every code standing for one class: its row gives that class e^3 times the weight of any other.
_FIRST_LOGIT = 3.0


class OpenChannel(nn.Module):
    """No channel at all (epsilon is infinite): the encoder's output passes as it is."""

    discrete = False

    def forward(self, u: torch.Tensor) -> torch.Tensor:
        """Return ``u``."""
        return u

    def values(self, u: np.ndarray) -> np.ndarray:
        """Return what the mechanism takes: the encoder's output."""
        return u


class LaplaceChannel(nn.Module):
    """Normalise each row to norm 1, then add independent Laplace noise to every coordinate.

    Parameters
    ----------
    mechanism : LaplaceMechanism
        What releases; its norm is L1 or L2.
    """

    discrete = False

    def __init__(self, mechanism: LaplaceMechanism):
        super().__init__()
        self.norm, self.noise_scale = mechanism.norm, mechanism.noise_scale

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
        return rows + self.noise_scale * noise

    def values(self, u: np.ndarray) -> np.ndarray:
        """Return what the mechanism takes: the encoder's output in double precision."""
        return u.astype(np.float64)


class CodeChannel(nn.Module):
    """Name the one of K codes that fits a record best, and release it by randomised response.

    The device holds a codebook W, one distribution over the classes for each code, and believes
    ``r(x) = sum_c softmax(u(x))_c W_c``. The code it names is the one whose row fits r best among those that stand for
    the class it believes in: s(x) is one-hot there. The expected loss of a head is linear in s, so that a
    softer s could only add noise. Code c is then released with probability
    ``(1 + (e^epsilon - 1) s_c) / (K - 1 + e^epsilon)``.

    Parameters
    ----------
    mechanism : CodeMechanism
        What releases.
    n_classes : int
        Number of classes that the codebook speaks of.
    """

    discrete = True

    def __init__(self, mechanism: CodeMechanism, n_classes: int):
        super().__init__()
        n_codes = mechanism.n_codes
        self._low = math.exp(-mechanism.epsilon)
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

    def values(self, u: np.ndarray) -> np.ndarray:
        """Return what the mechanism takes: the named code as a one-hot row; a row with a nan names none."""
        with torch.no_grad():
            named = self.choose(self.belief(torch.tensor(u, device=self.codebook.device))).cpu().numpy()
        return np.where(np.isfinite(u).all(axis=1, keepdims=True), np.eye(u.shape[1])[named], np.nan)


def make_channel(mechanism: Mechanism, n_classes: int) -> Any:
    """Build the channel through which a mechanism is trained for."""
    if isinstance(mechanism, CodeMechanism):
        return CodeChannel(mechanism, n_classes)
    return LaplaceChannel(mechanism) if isinstance(mechanism, LaplaceMechanism) else OpenChannel()
