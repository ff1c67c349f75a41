"""From arrays and settings to a trained net, and from a trained net to the values that a mechanism releases.

This is the door through which estimators enter: they need no torch of their own.
"""

import copy
import math
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import nn

from skfairdp.mechanisms import Mechanism
from skfairdp.neural._channels import make_channel
from skfairdp.neural._losses import FederateLoss, Targets
from skfairdp.neural._networks import FederateModule, fit_width, mlp
from skfairdp.neural._threads import limit_threads
from skfairdp.neural._training import FederateNet, TensorBatches, resolve_device, resolve_optimizer, torch_seed

# Rows that pass the encoder at once when nothing is learned: bounds the memory, not the result.
_CHUNK = 65_536
# Smaller networks run on one thread: a second one costs more than it brings, and changes the last digits.
_SMALL = 1_000_000


@dataclass
class FederateSettings:
    """Everything that decides how a net is built and trained; names as in ``FederateClassifier``."""

    mechanism: Mechanism
    n_outputs: int
    encoder: Any
    encoder_hidden_sizes: tuple[int, ...]
    classifier_hidden_sizes: tuple[int, ...]
    adversary_hidden_sizes: tuple[int, ...]
    dropout: float
    adversary_weight: float
    adversary_schedule: str
    n_adversaries: int
    orthogonality: float
    fairness_penalty: float
    fairness: str
    max_epochs: int
    batch_size: int
    lr: float
    optimizer: Any
    patience: int | None
    validation_fraction: float
    device: str
    callbacks: list | None
    verbose: int
    n_classes: int
    n_groups: tuple[int, ...] = field(default=())


def train_net(
    settings: FederateSettings,
    x: np.ndarray,
    y: np.ndarray,
    groups: np.ndarray | None,
    weight: np.ndarray | None,
    seed: int,
    previous: FederateNet | None = None,
) -> FederateNet:
    """Build a net and train it; raises ``KeyboardInterrupt`` when a person ends the training.

    Parameters
    ----------
    settings : FederateSettings
        How.
    x : ndarray of shape (n_samples, n_features)
        Rows: floats, or integer token ids for a text encoder.
    y : ndarray of shape (n_samples,)
        Class codes.
    groups : ndarray of shape (n_samples, n_columns) or None
        Group codes.
    weight : ndarray of shape (n_samples,) or None
        Row weights.
    seed : int
        Decides initial weights, order of rows, dropout, and the noise of training.
    previous : FederateNet or None
        A net of the same shape to continue from; it is left as it was.

    Returns
    -------
    FederateNet
    """
    device = resolve_device(settings.device)
    rows = torch.tensor(x, device=device)
    targets = Targets(
        torch.tensor(y, dtype=torch.int64, device=device),
        None if groups is None else torch.tensor(groups, dtype=torch.int64, device=device),
        None if weight is None else torch.tensor(weight, dtype=torch.float32, device=device),
    )
    with torch_seed(seed, device):
        module, criterion = _build(settings, rows[:2])
        net = FederateNet(
            module,
            criterion,
            adversary_weight=settings.adversary_weight,
            schedule=settings.adversary_schedule,
            patience=settings.patience,
            optimizer=resolve_optimizer(settings.optimizer),
            lr=settings.lr,
            max_epochs=settings.max_epochs,
            batch_size=settings.batch_size,
            device=device,
            callbacks=copy.deepcopy(settings.callbacks),
            verbose=settings.verbose,
            train_split=None,
        )
        net.initialize()
        if previous is not None:
            _continue_from(net, previous)
        with _threads(net.module_):
            net.partial_fit(_split(rows, targets, settings))
    if net.interrupted_:
        raise KeyboardInterrupt("training was interrupted; the estimator is as it was before fit")
    if not math.isfinite(net.history[-1]["train_loss"]):
        raise ValueError(
            f"training diverged: the loss is {net.history[-1]['train_loss']} after {len(net.history)} epochs with "
            f"lr={settings.lr!r}; use a smaller lr, or scale the features."
        )
    net.module_.eval()
    return net


def _build(settings: FederateSettings, example: torch.Tensor) -> tuple[FederateModule, FederateLoss]:
    width = settings.n_outputs
    if settings.encoder == "mlp":
        encoder: nn.Module = mlp(example.shape[1], settings.encoder_hidden_sizes, width, settings.dropout)
    else:
        given = settings.encoder
        encoder = copy.deepcopy(given) if isinstance(given, nn.Module) else given(example.shape[1])
        if not isinstance(encoder, nn.Module):
            raise TypeError(
                f"encoder must be 'mlp', a torch module, or a callable that takes the number of features and returns "
                f"a torch module; the callable returned {type(encoder).__name__}."
            )
        encoder = fit_width(encoder.to(example.device), example, width)
    channel = make_channel(settings.mechanism, settings.n_classes)
    head = mlp(width, settings.classifier_hidden_sizes, settings.n_classes, settings.dropout)
    columns: tuple[int, ...] = ()
    if settings.adversary_weight > 0:
        columns = tuple(j for j in range(len(settings.n_groups)) for _ in range(settings.n_adversaries))
    adversaries = [mlp(width, settings.adversary_hidden_sizes, settings.n_groups[j], settings.dropout) for j in columns]
    criterion = FederateLoss(
        settings.n_groups, columns, settings.orthogonality, settings.fairness_penalty, settings.fairness
    )
    module = FederateModule(encoder, channel, head, adversaries)
    module.wants_decisions = settings.fairness_penalty > 0
    return module, criterion


def _continue_from(net: FederateNet, previous: FederateNet) -> None:
    """Take over weights, the optimiser's memory and the history of another net."""
    try:
        net.module_.load_state_dict(previous.module_.state_dict())
        net.optimizer_.load_state_dict(copy.deepcopy(previous.optimizer_.state_dict()))
    except (RuntimeError, ValueError) as error:
        raise ValueError(
            "warm_start=True continues the training of the same network, but its shape has changed since the last "
            f"fit (classes, groups, features, or layer sizes); use warm_start=False. torch says: {error}"
        ) from None
    for group in net.optimizer_.param_groups:
        group["lr"] = net.lr
    net.history.extend(copy.deepcopy(list(previous.history)))


def _split(
    rows: torch.Tensor, targets: Targets, settings: FederateSettings
) -> tuple[TensorBatches, TensorBatches | None]:
    if settings.patience is None:
        return TensorBatches(rows, targets, settings.batch_size, shuffle=True), None
    order = torch.randperm(len(rows)).to(rows.device)
    n_valid = max(1, round(settings.validation_fraction * len(rows)))
    if n_valid >= len(rows):
        raise ValueError(
            f"validation_fraction={settings.validation_fraction!r} leaves no row of {len(rows)} to train on."
        )

    def part(index: torch.Tensor, size: int, shuffle: bool) -> TensorBatches:
        chosen = Targets(*(None if t is None else t[index] for t in targets))  # type: ignore[arg-type]
        return TensorBatches(rows[index], chosen, size, shuffle)

    return part(order[n_valid:], settings.batch_size, True), part(order[:n_valid], _CHUNK, False)


def _threads(module: nn.Module) -> AbstractContextManager:
    n_parameters = sum(p.numel() for p in module.parameters())
    return limit_threads(1) if n_parameters < _SMALL else nullcontext()


def encode(encoder: nn.Module, x: np.ndarray) -> np.ndarray:
    """The encoder's clean output, which must not leave the device."""
    return _run(encoder, x)


def values_to_release(encoder: nn.Module, channel: Any, x: np.ndarray) -> np.ndarray:
    """Encode rows and return what the mechanism takes; nothing is noisy yet, and it must not leave the device.

    Parameters
    ----------
    encoder, channel : torch.nn.Module
        Of a trained ``FederateModule``.
    x : ndarray of shape (n_samples, n_features)
        Rows.

    Returns
    -------
    ndarray of shape (n_samples, n_outputs)
    """
    return channel.values(encode(encoder, x))


def class_probabilities(head: nn.Module, released: np.ndarray) -> np.ndarray:
    """Class probabilities of released rows; post-processing, which costs nothing."""
    logits = _run(head, released.astype(np.float32)).astype(np.float64)
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


def _run(module: nn.Module, x: np.ndarray) -> np.ndarray:
    module.eval()  # in training mode a batch normalisation would mix the rows, whoever switched it on
    device = next((p.device for p in module.parameters()), torch.device("cpu"))
    with torch.no_grad(), _threads(module):
        parts = [torch.tensor(x[i : i + _CHUNK], device=device) for i in range(0, max(len(x), 1), _CHUNK)]
        return np.concatenate([module(part).cpu().numpy() for part in parts])
