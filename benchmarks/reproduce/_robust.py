"""The encoder of DPNR, trained with the noise that its outputs will get (algorithm 1 of the paper)."""

from itertools import pairwise

import torch
from torch import nn


class RobustEncoder(nn.Module):
    """Trained layers whose outputs are mapped onto [0, 1] row by row; noise is added in training only.

    What is released is perturbed by a mechanism outside of the network, which has the guarantee.

    Parameters
    ----------
    n_features : int
        Width of the rows.
    n_outputs : int
        Width of the representation.
    scale : float
        Scale of the Laplace noise in training; 0 for none.
    one_draw : bool
        One draw for a whole row, which is what the public code does, instead of one for each coordinate.
    """

    def __init__(self, n_features: int, n_outputs: int, scale: float = 0.0, one_draw: bool = False):
        super().__init__()
        sizes, layers = (n_features, 100, 50), []
        for n_in, n_out in pairwise(sizes):
            layers += [nn.Linear(n_in, n_out), nn.ReLU(), nn.Dropout(0.1)]
        self.layers = nn.Sequential(*layers, nn.Linear(sizes[-1], n_outputs))
        self.scale = scale
        self.one_draw = one_draw

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Encode, map onto [0, 1], and perturb in training."""
        hidden = self.layers(rows)
        low, high = hidden.amin(dim=1, keepdim=True), hidden.amax(dim=1, keepdim=True)
        unit = (hidden - low) / (high - low).clamp_min(torch.finfo(hidden.dtype).tiny)
        if not self.training or self.scale == 0:
            return unit
        shape = (len(unit), 1) if self.one_draw else unit.shape
        noise = torch.empty(shape).exponential_() - torch.empty(shape).exponential_()
        return unit + self.scale * noise
