"""The networks of FEDERATE: an encoder, a channel, a classifier head, and adversaries behind a reversal."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import nn

from skfairdp.neural._reversal import reverse_gradient


def mlp(n_inputs: int, hidden_sizes: Sequence[int], n_outputs: int, dropout: float = 0.0) -> nn.Sequential:
    """Linear layers with ReLU and dropout between them; no hidden size gives one linear layer.

    Parameters
    ----------
    n_inputs : int
        Width of the input.
    hidden_sizes : sequence of int
        Widths of the hidden layers.
    n_outputs : int
        Width of the output.
    dropout : float
        Share of hidden units that are dropped in training.

    Returns
    -------
    torch.nn.Sequential
    """
    layers: list[nn.Module] = []
    for width in hidden_sizes:
        layers += [nn.Linear(n_inputs, width), nn.ReLU()]
        if dropout > 0:
            layers.append(nn.Dropout(dropout))
        n_inputs = width
    layers.append(nn.Linear(n_inputs, n_outputs))
    return nn.Sequential(*layers)


def fit_width(encoder: nn.Module, example: torch.Tensor, n_outputs: int) -> nn.Module:
    """Append a linear layer to an encoder whose output is not ``n_outputs`` wide.

    Parameters
    ----------
    encoder : torch.nn.Module
        Maps a batch of rows to a batch of vectors.
    example : Tensor
        A few rows, to find out how wide the output is.
    n_outputs : int
        The width that the channel wants.

    Returns
    -------
    torch.nn.Module
    """
    was_training = encoder.training
    encoder.eval()
    with torch.no_grad():
        out = encoder(example)
    encoder.train(was_training)
    if not isinstance(out, torch.Tensor) or out.ndim != 2 or len(out) != len(example):
        shape = tuple(out.shape) if isinstance(out, torch.Tensor) else type(out).__name__
        raise ValueError(
            f"encoder must map {len(example)} rows to a tensor of shape ({len(example)}, width); got {shape}."
        )
    return encoder if out.shape[1] == n_outputs else nn.Sequential(encoder, nn.Linear(out.shape[1], n_outputs))


class Outputs(NamedTuple):
    """What one batch gives: everything is an expectation over the channel's codes, or one noisy draw.

    Attributes
    ----------
    log_p : Tensor of shape (n, n_classes)
        Expected log-probability of each class; its negative at y is the expected cross-entropy.
    p : Tensor of shape (n, n_classes)
        Expected probability of each class.
    adversary_log_p : list of Tensor
        Expected log-probability of each group, one tensor per adversary.
    adversary_hidden : list of Tensor
        The adversaries' last hidden layers.
    """

    log_p: torch.Tensor
    p: torch.Tensor
    adversary_log_p: list[torch.Tensor]
    adversary_hidden: list[torch.Tensor]


class FederateModule(nn.Module):
    """Encoder, channel, head, and adversaries that see what the channel releases.

    Parameters
    ----------
    encoder, channel, head : torch.nn.Module
        Rows to vectors, vectors to what is released, released to class logits.
    adversaries : sequence of torch.nn.Sequential
        Released to group logits; several may attack the same sensitive column.
    """

    def __init__(self, encoder: nn.Module, channel: nn.Module, head: nn.Module, adversaries: Sequence[nn.Sequential] = ()):
        super().__init__()
        self.encoder = encoder
        self.channel = channel
        self.head = head
        self.adversaries = nn.ModuleList(adversaries)
        self.reversal = 0.0  # the lambda of the current epoch

    def forward(self, x: torch.Tensor) -> Outputs:
        """Run a batch through every branch."""
        released = self.channel(self.encoder(x))
        if not self.channel.discrete:
            logits = self.head(released)
            log_p, p = torch.log_softmax(logits, dim=1), torch.softmax(logits, dim=1)
            seen = reverse_gradient(released, self.reversal) if len(self.adversaries) else released
            weights = None
        else:
            # The branches see one of K one-hot codes, so K rows tell everything: the rest is a weighted sum.
            seen = torch.eye(released.shape[1], dtype=released.dtype, device=released.device)
            logits = self.head(seen)
            log_p, p = released @ torch.log_softmax(logits, dim=1), released @ torch.softmax(logits, dim=1)
            weights = reverse_gradient(released, self.reversal) if len(self.adversaries) else None
        adversary_log_p, hidden = [], []
        for adversary in self.adversaries:
            last_hidden = adversary[:-1](seen)  # type: ignore[index]
            log_q = torch.log_softmax(adversary[-1](last_hidden), dim=1)  # type: ignore[index]
            adversary_log_p.append(log_q if weights is None else weights @ log_q)
            hidden.append(last_hidden)
        return Outputs(log_p, p, adversary_log_p, hidden)
