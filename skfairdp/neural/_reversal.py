"""Gradient reversal: the identity forwards, minus lambda times the gradient backwards."""

from typing import Any

import torch


class _Reversal(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: float) -> torch.Tensor:
        ctx.weight = weight
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: torch.Tensor) -> tuple[torch.Tensor, None]:
        return -ctx.weight * grad_outputs[0], None


def reverse_gradient(x: torch.Tensor, weight: float) -> torch.Tensor:
    """Return ``x``; whoever made ``x`` receives ``-weight`` times the gradient (Ganin and Lempitsky 2015).

    Parameters
    ----------
    x : Tensor
        What the adversary sees.
    weight : float
        The lambda of the objective ``L_class - lambda L_adv``.

    Returns
    -------
    Tensor
    """
    return _Reversal.apply(x, weight)
