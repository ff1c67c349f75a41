"""The networks of FEDERATE: an encoder, a channel, a classifier head, and adversaries behind a reversal."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import nn

from skfairdp.neural._reversal import reverse_gradient

# How steep the gradient of a decision is taken to be around the boundary.
_SHARPNESS = 3.0


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
    """What one batch gives: expectations over the channel's codes, or values of one noisy draw.

    Attributes
    ----------
    log_p : Tensor of shape (n, n_classes)
        Expected log-probability of each class; its negative at y is the expected cross-entropy.
    belief_log_p : Tensor of shape (n, n_classes) or None
        What a code channel believes before it speaks; this is what its encoder learns from.
    decision : Tensor of shape (n, n_classes)
        Probability that ``predict`` answers each class, with the gradient of a sharpened soft answer.
    adversary_log_p : list of Tensor
        Expected log-probability of each group, one tensor per adversary.
    adversary_hidden : list of Tensor
        The adversaries' last hidden layers.
    """

    log_p: torch.Tensor
    belief_log_p: torch.Tensor | None
    decision: torch.Tensor
    adversary_log_p: list[torch.Tensor]
    adversary_hidden: list[torch.Tensor]


def _hard(log_p: torch.Tensor) -> torch.Tensor:
    """One-hot rows of the most probable class."""
    return nn.functional.one_hot(log_p.argmax(dim=1), log_p.shape[1]).to(log_p.dtype)


def _with_gradient_of(value: torch.Tensor, log_p: torch.Tensor) -> torch.Tensor:
    """``value``, with the gradient of the probabilities sharpened towards a decision (straight-through)."""
    sharp = torch.softmax(_SHARPNESS * log_p, dim=1)
    return value.detach() + (sharp - sharp.detach())


class FederateModule(nn.Module):
    """Encoder, channel, head, and adversaries that see what the channel releases.

    Parameters
    ----------
    encoder, channel, head : torch.nn.Module
        Rows to vectors, vectors to what is released, released to class logits.
    adversaries : sequence of torch.nn.Sequential
        Released to group logits; several may attack the same sensitive column.
    """

    encoder: Any
    channel: Any
    head: Any

    def __init__(self, encoder: nn.Module, channel: nn.Module, head: nn.Module, adversaries: Sequence[nn.Module] = ()):
        super().__init__()
        self.encoder = encoder
        self.channel = channel
        self.head = head
        self.adversaries = nn.ModuleList(adversaries)
        self.reversal = 0.0  # the lambda of the current epoch
        self.wants_decisions = False  # whether the loss looks at decisions; they cost time

    def forward(self, x: torch.Tensor) -> Outputs:
        """Run a batch through every branch."""
        u = self.encoder(x)
        return self._through_codes(u) if self.channel.discrete else self._through_noise(u)

    def _through_noise(self, u: torch.Tensor) -> Outputs:
        released = self.channel(u)
        log_p = torch.log_softmax(self.head(released), dim=1)
        decision = _with_gradient_of(_hard(log_p), log_p) if self.wants_decisions else log_p
        return Outputs(log_p, None, decision, *self._adversary_branches(released, None))

    def _through_codes(self, u: torch.Tensor) -> Outputs:
        # The branches see one of K one-hot codes, so K rows tell everything: the rest is a weighted sum.
        probabilities = self.channel(u)
        codes = torch.eye(u.shape[1], dtype=u.dtype, device=u.device)
        table = torch.log_softmax(self.head(codes), dim=1)
        log_p = probabilities.detach() @ table
        belief = torch.log(self.channel.belief(u).clamp_min(1e-12))
        decision = belief
        if self.wants_decisions:
            decision = _with_gradient_of(probabilities @ _hard(table), belief)
        return Outputs(log_p, belief, decision, *self._adversary_branches(codes, probabilities))

    def _adversary_branches(
        self, seen: torch.Tensor, weights: torch.Tensor | None
    ) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        if not len(self.adversaries):
            return [], []
        if weights is None:
            seen = reverse_gradient(seen, self.reversal)
        else:
            weights = reverse_gradient(weights, self.reversal)
        log_p, hidden = [], []
        for adversary in self.adversaries:
            last_hidden = adversary[:-1](seen)  # type: ignore[index]
            log_q = torch.log_softmax(adversary[-1](last_hidden), dim=1)  # type: ignore[index]
            log_p.append(log_q if weights is None else weights @ log_q)
            hidden.append(last_hidden)
        return log_p, hidden
