"""The module that FederateClassifier trains: encoder, private channel, head, and adversaries behind a reversal.

A channel stands between the encoder and everybody else. Here it is differentiable, with torch's noise, and is made
from the mechanism that releases: norm, noise scale and epsilon are read from it, so that nothing is trained for another
noise than the one that is drawn.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn

from skfairdp.mechanisms import CodeMechanism, LaplaceMechanism, Mechanism
from skfairdp.neural._networks import mlp, network_of_the_user
from skfairdp.neural._tabular_encoder import ColumnStatistics, TabularEncoder

# A codebook starts with every code standing for one class: its row gives that class e^3 = 20 times the weight of any
# other, which is clear enough to be named and soft enough to be learned away.
_FIRST_LOGIT = 3.0
# Beliefs are probabilities whose logarithm is taken; a probability of zero must not become minus infinity.
_LEAST_BELIEF = 1e-12


class OpenChannel(nn.Module):
    """No channel at all (epsilon is infinite): the encoder's output passes as it is.

    Examples
    --------
    >>> import torch
    >>> from skfairdp.neural import OpenChannel
    >>> OpenChannel()(torch.ones(1, 2))
    tensor([[1., 1.]])
    """

    _row_wise_methods: ClassVar[dict] = {"forward": (), "values": ()}

    discrete = False

    def forward(self, u: torch.Tensor) -> torch.Tensor:
        """Return ``u``.

        Parameters
        ----------
        u : Tensor of shape (n_samples, n_outputs)
            The encoder's output.
        """
        return u

    def values(self, u: np.ndarray) -> np.ndarray:
        """Return what the mechanism takes: the encoder's output.

        Parameters
        ----------
        u : ndarray of shape (n_samples, n_outputs)
            The encoder's output.
        """
        return u


class LaplaceChannel(nn.Module):
    """Normalise each row to norm 1, then add independent Laplace noise to every coordinate.

    Parameters
    ----------
    mechanism : LaplaceMechanism
        What releases; its norm is L1 or L2.

    Examples
    --------
    >>> import torch
    >>> from skfairdp.mechanisms import laplace_mechanism
    >>> from skfairdp.neural import LaplaceChannel
    >>> LaplaceChannel(laplace_mechanism(8.0, "l1", 4))(torch.ones(3, 4)).shape
    torch.Size([3, 4])
    """

    _row_wise_methods: ClassVar[dict] = {"forward": (), "values": ()}

    discrete = False

    def __init__(self, mechanism: LaplaceMechanism):
        super().__init__()
        self.norm, self.noise_scale = mechanism.norm, mechanism.noise_scale

    def forward(self, u: torch.Tensor) -> torch.Tensor:
        """Normalise and perturb, with gradients.

        Parameters
        ----------
        u : Tensor of shape (n_samples, n_outputs)
            The encoder's output.
        """
        if u.shape[1] == 1:
            # A row of one number becomes its sign, which has no gradient: it borrows that of a soft sign.
            soft = torch.tanh(u)
            rows = torch.sign(u) + (soft - soft.detach())
        else:
            rows = nn.functional.normalize(u, p=1.0 if self.norm == "l1" else 2.0, dim=1)
        return rows + self.noise_scale * laplace_like(rows)

    def values(self, u: np.ndarray) -> np.ndarray:
        """Return what the mechanism takes: the encoder's output in double precision.

        Parameters
        ----------
        u : ndarray of shape (n_samples, n_outputs)
            The encoder's output.
        """
        return u.astype(np.float64)


def laplace_like(rows: torch.Tensor) -> torch.Tensor:
    """Draw Laplace noise of scale 1 for a training: one value for every coordinate, never one for a row.

    Every 64-bit number of torch's generator gives two values. Differences of two exponentials, each drawn with a number
    of its own, were a fifth of the time of a training. What is released is drawn elsewhere.
    """
    words = torch.empty(-(-rows.numel() // 2), dtype=torch.int64, device=rows.device)
    bits = words.random_(torch.iinfo(torch.int64).min, None).view(torch.int32)[: rows.numel()].view(rows.shape)
    # 31 bits are a number in (0, 1], and minus its logarithm is exponential; the last bit is the sign.
    exponential = torch.log(((bits & 0x7FFFFFFF).to(rows.dtype) + 1) * 2.0**-31).neg_()
    return torch.where(bits < 0, -exponential, exponential)


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

    Examples
    --------
    >>> import torch
    >>> from skfairdp.mechanisms import code_mechanism
    >>> from skfairdp.neural import CodeChannel
    >>> channel = CodeChannel(code_mechanism(2, 1.0986), n_classes=2)
    >>> channel(torch.tensor([[3.0, -3.0]])).detach().numpy().round(2)  # 3 to 1, as the epsilon of ln 3 allows
    array([[0.75, 0.25]], dtype=float32)
    """

    _row_wise_methods: ClassVar[dict] = {"forward": (), "values": ()}

    discrete = True

    def __init__(self, mechanism: CodeMechanism, n_classes: int):
        super().__init__()
        n_codes = mechanism.n_codes
        self._low = math.exp(-mechanism.epsilon)
        codes, classes = torch.arange(n_codes)[:, None], torch.arange(n_classes)[None, :]
        least = min(n_codes, n_classes)
        self.codebook = nn.Parameter(_FIRST_LOGIT * (codes % least == classes % least).float())

    def belief(self, u: torch.Tensor) -> torch.Tensor:
        """What the device believes about the class, before any noise.

        Parameters
        ----------
        u : Tensor of shape (n_samples, n_outputs)
            The encoder's output.
        """
        return torch.softmax(u, dim=1) @ torch.softmax(self.codebook, dim=1)

    def choose(self, belief: torch.Tensor) -> torch.Tensor:
        """The code that the device names.

        Parameters
        ----------
        belief : Tensor of shape (n_samples, n_classes)
            See :meth:`belief`.
        """
        rows = torch.log_softmax(self.codebook, dim=1)
        fit = belief @ rows.T
        agrees = rows.argmax(dim=1)[None, :] == belief.argmax(dim=1)[:, None]
        # Codes of another class come in only when none stands for the believed one.
        return torch.where(agrees | ~agrees.any(dim=1, keepdim=True), fit, -torch.inf).argmax(dim=1)

    def probabilities(self, s: torch.Tensor) -> torch.Tensor:
        """Probability of each code, ``(1 + (e^epsilon - 1) s_c) / (K - 1 + e^epsilon)``.

        Parameters
        ----------
        s : Tensor of shape (n_samples, n_codes)
            How strongly each record names each code.
        """
        return (self._low + (1.0 - self._low) * s) / (1.0 + (s.shape[1] - 1) * self._low)

    def forward(self, u: torch.Tensor) -> torch.Tensor:
        """Exact probabilities of releasing each code; their gradient is that of soft codes, softmax(u).

        Parameters
        ----------
        u : Tensor of shape (n_samples, n_outputs)
            The encoder's output.
        """
        soft = torch.softmax(u, dim=1)
        with torch.no_grad():
            named = nn.functional.one_hot(self.choose(self.belief(u)), u.shape[1]).to(u.dtype)
        return self.probabilities(named + (soft - soft.detach()))

    def values(self, u: np.ndarray) -> np.ndarray:
        """Return what the mechanism takes: the named code as a one-hot row; a row with a nan names none.

        Parameters
        ----------
        u : ndarray of shape (n_samples, n_outputs)
            The encoder's output.
        """
        with torch.no_grad():
            named = self.choose(self.belief(torch.tensor(u, device=self.codebook.device))).cpu().numpy()
        return np.where(np.isfinite(u).all(axis=1, keepdims=True), np.eye(u.shape[1])[named], np.nan)


def make_channel(mechanism: Mechanism, n_classes: int) -> Any:
    """Build the channel through which a mechanism is trained for."""
    if isinstance(mechanism, CodeMechanism):
        return CodeChannel(mechanism, n_classes)
    return LaplaceChannel(mechanism) if isinstance(mechanism, LaplaceMechanism) else OpenChannel()


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

    Examples
    --------
    >>> import torch
    >>> from skfairdp.neural import reverse_gradient
    >>> x = torch.tensor([1.0], requires_grad=True)
    >>> reverse_gradient(x, 0.5).sum().backward()
    >>> x.grad
    tensor([-0.5000])
    """
    return _Reversal.apply(x, weight)


@dataclass
class Outputs:
    """What one batch gives: expectations over the channel's codes, or values of one noisy draw.

    Attributes
    ----------
    answer : Tensor of shape (n, n_classes)
        Log-probabilities of the classes as the head tells them from one noisy draw. A code channel draws in evaluation
        only; in training its answer is ``log_p``.
    log_p : Tensor of shape (n, n_classes)
        Expected log-probability of each class; its negative at y is the expected cross-entropy.
    decision : Tensor of shape (n, n_classes)
        Probability that ``predict`` answers each class, with the gradient of a sharpened soft answer.
    adversary_log_p : list of Tensor
        Expected log-probability of each group, one tensor per adversary.
    adversary_hidden : list of Tensor
        The adversaries' last hidden layers; empty when they show none.
    belief_log_p : Tensor of shape (n, n_classes) or None
        What a code channel believes before it speaks; this is what its encoder learns from.
    code_probabilities : Tensor of shape (n, n_codes) or None
        How likely a code channel is to release each code.
    code_log_p : Tensor of shape (n_codes, n_classes) or None
        What the head makes of each code.
    """

    answer: torch.Tensor
    log_p: torch.Tensor
    decision: torch.Tensor
    adversary_log_p: list[torch.Tensor]
    adversary_hidden: list[torch.Tensor]
    belief_log_p: torch.Tensor | None = None
    code_probabilities: torch.Tensor | None = None
    code_log_p: torch.Tensor | None = None

    def to(self, device: Any) -> torch.Tensor:
        """Hand the answer over, and nothing else: skorch moves by ``to`` what it passes on to scoring callbacks."""
        return self.answer.to(device)


def _hard(log_p: torch.Tensor) -> torch.Tensor:
    """One-hot rows of the most probable class."""
    return nn.functional.one_hot(log_p.argmax(dim=1), log_p.shape[1]).to(log_p.dtype)


class FederateModule(nn.Module):
    """Encoder, channel, head, and adversaries that see what the channel releases.

    Parameters
    ----------
    encoder, channel, head : torch.nn.Module
        Rows to vectors, vectors to what is released, released to class logits.
    adversaries : sequence of torch.nn.Module
        Released to group logits; several may attack the same sensitive column.
    wants_decisions : bool
        Whether the loss looks at decisions, which cost time.
    sharpness : float
        How steep the gradient of a decision is taken to be around the boundary between two classes.

    Examples
    --------
    >>> import torch
    >>> from skfairdp.neural import FederateModule, OpenChannel, mlp
    >>> module = FederateModule(mlp(5, (), 3), OpenChannel(), mlp(3, (), 2))
    >>> module(torch.ones(4, 5)).answer.shape
    torch.Size([4, 2])
    """

    encoder: Any
    channel: Any
    head: Any

    def __init__(
        self,
        encoder: nn.Module,
        channel: nn.Module,
        head: nn.Module,
        adversaries: Sequence[nn.Module] = (),
        wants_decisions: bool = False,
        sharpness: float = 3.0,
    ):
        super().__init__()
        self.encoder = encoder
        self.channel = channel
        self.head = head
        self.adversaries = nn.ModuleList(adversaries)
        self.reversal = 0.0  # the lambda of the current epoch
        self.wants_decisions = wants_decisions
        self.sharpness = sharpness

    def train(self, mode: bool = True) -> "FederateModule":
        """Switch to training or evaluation; skorch asks for it before every batch, when it mostly is so already.

        Parameters
        ----------
        mode : bool, default=True
            Training, or evaluation.
        """
        if any(module.training != mode for module in self.modules()):
            super().train(mode)
        return self

    def forward(self, x: torch.Tensor) -> Outputs:
        """Run a batch through every branch.

        Parameters
        ----------
        x : Tensor
            A batch, as the encoder takes it.
        """
        u = self.encoder(x)
        return self._through_codes(u) if self.channel.discrete else self._through_noise(u)

    def _through_noise(self, u: torch.Tensor) -> Outputs:
        released = self.channel(u)
        log_p = torch.log_softmax(self.head(released), dim=1)
        decision = self._with_gradient_of(_hard(log_p), log_p) if self.wants_decisions else log_p
        return Outputs(log_p, log_p, decision, *self._adversary_branches(released, None))

    def _through_codes(self, u: torch.Tensor) -> Outputs:
        # The branches see one of K one-hot codes, so K rows tell everything: the rest is a weighted sum.
        probabilities = self.channel(u)
        codes = torch.eye(u.shape[1], dtype=u.dtype, device=u.device)
        table = torch.log_softmax(self.head(codes), dim=1)
        log_p = probabilities.detach() @ table
        answer = log_p if self.training else table[torch.multinomial(probabilities, 1)[:, 0]]
        belief = torch.log(self.channel.belief(u).clamp_min(_LEAST_BELIEF))
        decision = belief
        if self.wants_decisions:
            decision = self._with_gradient_of(probabilities @ _hard(table), belief)
        branches = self._adversary_branches(codes, probabilities)
        return Outputs(answer, log_p, decision, *branches, belief, probabilities.detach(), table)

    def _with_gradient_of(self, value: torch.Tensor, log_p: torch.Tensor) -> torch.Tensor:
        """``value``, with the gradient of the probabilities sharpened towards a decision (straight-through)."""
        sharp = torch.softmax(self.sharpness * log_p, dim=1)
        return value.detach() + (sharp - sharp.detach())

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
            logits = seen
            if isinstance(adversary, nn.Sequential):
                *layers, last = adversary
                for layer in layers:
                    logits = layer(logits)
                hidden.append(logits)
                logits = last(logits)
            else:
                logits = adversary(logits)
            log_q = torch.log_softmax(logits, dim=1)
            log_p.append(log_q if weights is None else weights @ log_q)
        return log_p, hidden


def make_federate_module(
    *,
    mechanism: Mechanism,
    n_features: int,
    n_outputs: int,
    n_classes: int,
    n_groups: tuple[int, ...] = (),
    n_adversaries: int = 0,
    encoder: Any = "mlp",
    classifier: Any = "mlp",
    adversary: Any = "mlp",
    encoder_hidden_sizes: Sequence[int] = (),
    classifier_hidden_sizes: Sequence[int] = (),
    adversary_hidden_sizes: Sequence[int] = (),
    statistics: ColumnStatistics | None = None,
    encoder_params: Mapping[str, Any] | None = None,
    classifier_params: Mapping[str, Any] | None = None,
    adversary_params: Mapping[str, Any] | None = None,
    dropout: float = 0.0,
    reads_tokens: bool = False,
    wants_decisions: bool = False,
    sharpness: float = 3.0,
) -> FederateModule:
    """Build a module; a skorch net takes this function as its ``module``, and the parameters as ``module__*``.

    Parameters
    ----------
    mechanism : Mechanism
        What will release the representation.
    n_features, n_outputs, n_classes : int
        Width of the rows, width of the representation (or number of codes), number of classes.
    n_groups : tuple of int
        Groups of each sensitive column.
    n_adversaries : int
        Adversaries for each sensitive column.
    encoder, classifier, adversary : "mlp", torch module or callable
        The networks; see ``network_of_the_user``. The encoder may also be "tabular".
    encoder_hidden_sizes, classifier_hidden_sizes, adversary_hidden_sizes : sequence of int
        Hidden layers of those that are "mlp" or "tabular".
    statistics : ColumnStatistics or None
        Of the training columns, for an encoder that is "tabular".
    encoder_params, classifier_params, adversary_params : mapping
        Further arguments of those that are callables.
    dropout : float
        Share of hidden units of these that are dropped in training.
    reads_tokens : bool
        Whether rows are integer ids of words.
    wants_decisions, sharpness
        See ``FederateModule``.

    Returns
    -------
    FederateModule
    """
    # Rows of zeros tell how wide an output is; a row of the data would stay behind in the net's parameters.
    rows = torch.zeros(2, n_features, dtype=torch.int64 if reads_tokens else torch.float32)
    released = torch.zeros(2, n_outputs)
    made_encoder: nn.Module
    if encoder == "tabular":
        assert statistics is not None
        made_encoder = TabularEncoder(statistics, encoder_hidden_sizes, n_outputs, dropout)
    elif isinstance(encoder, str):
        made_encoder = mlp(n_features, encoder_hidden_sizes, n_outputs, dropout)
    else:
        params = dict(encoder_params or {})
        made_encoder = network_of_the_user("encoder", encoder, (n_features,), rows, n_outputs, params)

    def on_released(name: str, given: Any, hidden_sizes: Sequence[int], params: Any, width: int) -> nn.Module:
        if isinstance(given, str):
            return mlp(n_outputs, hidden_sizes, width, dropout)
        return network_of_the_user(name, given, (n_outputs, width), released, width, dict(params or {}))

    if n_adversaries > 1 and isinstance(adversary, nn.Module):
        raise ValueError(
            f"n_adversaries={n_adversaries} copies of one module would all learn the same; give adversary as a "
            "callable that takes the widths of input and output and returns a new module."
        )
    head = on_released("classifier", classifier, classifier_hidden_sizes, classifier_params, n_classes)
    adversaries = [
        on_released("adversary", adversary, adversary_hidden_sizes, adversary_params, n_groups[column])
        for column in adversary_columns(n_groups, n_adversaries)
    ]
    channel = make_channel(mechanism, n_classes)
    if isinstance(channel, CodeChannel) and isinstance(classifier, str) and not classifier_hidden_sizes:
        # The head starts by taking codes for what the device means by them. A head that had to unlearn a random start
        # would still contradict a device that has learned its task in a few steps.
        with torch.no_grad():
            weight, bias = head.parameters()
            weight.copy_(channel.codebook.T)
            bias.zero_()
    return FederateModule(made_encoder, channel, head, adversaries, wants_decisions, sharpness)


def adversary_columns(n_groups: Sequence[int], n_adversaries: int) -> tuple[int, ...]:
    """Say which sensitive column each adversary attacks.

    Parameters
    ----------
    n_groups : sequence of int
        Groups of each sensitive column.
    n_adversaries : int
        Adversaries of each column.

    Examples
    --------
    >>> from skfairdp.neural import adversary_columns
    >>> adversary_columns((2, 5), 4)
    (0, 0, 0, 0, 1, 1, 1, 1)
    """
    return tuple(column for column in range(len(n_groups)) for _ in range(n_adversaries))
