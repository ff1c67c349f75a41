r"""Many small networks trained at once, as one batched tensor program.

Member i of the ensemble is a network with ReLU hidden layers on its own rows. All members go through the same
operations, batched along the first axis, so that a layer of the whole ensemble is one ``baddbmm``. No operation mixes
members: what one of them learns depends on its own rows, on the seed, and on nothing else. That independence is what
the privacy of teacher ensembles rests on, and it is why there is no early stopping here, which would be shared.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch

from skfairdp.neural._torch_state import limit_threads, torch_generator
from skfairdp.random import RandomStream

# Activations held at a time in predict (64 MB), so that memory does not grow with the number of rows.
_PREDICT_ELEMENTS = 1 << 24

# So many members at a time that their weights, gradients and moments stay in the cache from one step to the next.
_BLOCK_BYTES = 1 << 22
# Orders of the rows are drawn for so many epochs at once, because every member has a generator of its own and one call
# per member and epoch is slow.
_EPOCHS_DRAWN = 16


@dataclass(frozen=True)
class NetworkEnsemble:
    """Trained members: weights and biases of each layer, batched along the first axis, in float32.

    Parameters
    ----------
    weights : tuple of ndarray of shape (n_members, n_inputs, n_outputs)
        One for each layer.
    biases : tuple of ndarray of shape (n_members, 1, n_outputs)
        One for each layer.

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp.neural import NetworkEnsemble
    >>> weights = np.array([[[1.0, -1.0]], [[-1.0, 1.0]]], np.float32)
    >>> ensemble = NetworkEnsemble((weights,), (np.zeros((2, 1, 2), np.float32),))
    >>> ensemble.n_members, ensemble.predict(np.array([[3.0]])).ravel()
    (2, array([0, 1]))
    """

    weights: tuple[np.ndarray, ...]
    biases: tuple[np.ndarray, ...]

    @property
    def n_members(self) -> int:
        """Number of networks."""
        return len(self.weights[0])

    def logits(self, X: np.ndarray) -> np.ndarray:
        """Compute the outputs of every member on shared rows; shape (n_members, n_samples, n_classes).

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
            The rows.
        """
        layers = [(torch.from_numpy(w), torch.from_numpy(b)) for w, b in zip(self.weights, self.biases)]
        widest = max(w.shape[2] for w, _ in layers)
        rows = max(1, _PREDICT_ELEMENTS // (self.n_members * widest))
        out = np.empty((self.n_members, len(X), layers[-1][0].shape[2]), dtype=np.float32)
        with torch.no_grad(), limit_threads(1):
            for start in range(0, len(X), rows):
                part = torch.from_numpy(np.ascontiguousarray(X[start : start + rows], dtype=np.float32))
                out[:, start : start + rows] = _forward(part.expand(self.n_members, -1, -1), layers).numpy()
        return out

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the class that each member votes for; shape (n_members, n_samples).

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
            The rows.
        """
        return self.logits(X).argmax(axis=2)


def train_ensemble(
    X: np.ndarray,
    targets: np.ndarray,
    present: np.ndarray,
    *,
    hidden_sizes: tuple[int, ...],
    max_epochs: int,
    batch_size: int,
    learning_rate: float,
    weight_decay: float,
    stream: RandomStream,
) -> NetworkEnsemble:
    """Train every member on its own rows by Adam.

    Parameters
    ----------
    X : ndarray of shape (n_members, n_rows, n_features), or (1, n_rows, n_features) for rows shared by all
        Features; members with fewer rows are padded.
    targets : ndarray of shape (n_members, n_rows, n_classes)
        Class weights of each row; one-hot for hard labels.
    present : ndarray of shape (n_members, n_rows) of bool
        False for padding, which has no influence.
    hidden_sizes : tuple of int
        Width of each hidden layer.
    max_epochs, batch_size : int
        Passes over the rows, and rows per step.
    learning_rate, weight_decay : float
        Of Adam; the decay is an L2 penalty on the weights.
    stream : RandomStream
        For initial weights and the order of rows.

    Returns
    -------
    NetworkEnsemble

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp.neural import train_ensemble
    >>> from skfairdp.random import random_stream
    >>> X = np.random.default_rng(0).normal(size=(1, 200, 2)).astype(np.float32)
    >>> targets = np.eye(2, dtype=np.float32)[(X[:, :, 0] > 0).astype(int)].repeat(3, axis=0)
    >>> steps = {"max_epochs": 30, "batch_size": 32, "learning_rate": 0.05, "weight_decay": 0.0}
    >>> members = train_ensemble(
    ...     X, targets, np.ones((3, 200), bool), hidden_sizes=(), **steps, stream=random_stream(0)
    ... )
    >>> bool((members.predict(X[0]) == (X[0, :, 0] > 0)).mean() > 0.9)
    True
    """
    n_members, n_rows, n_classes = targets.shape
    rows = torch.from_numpy(np.ascontiguousarray(X, dtype=np.float32))
    goals = torch.from_numpy(np.ascontiguousarray(targets * present[..., None], dtype=np.float32))
    shared = len(rows) == 1
    sizes = (rows.shape[2], *hidden_sizes, n_classes)
    # A generator for each member: what it draws does not depend on which members share its block.
    generators = [torch_generator(one) for one in stream.spawn(n_members)]
    blocks = []
    with limit_threads(1):
        step = _members_at_once(sizes)
        for start in range(0, n_members, step):
            block = slice(start, start + step)
            blocks.append(
                _train_block(
                    rows if shared else rows[block],
                    goals[block],
                    generators[block],
                    sizes,
                    max_epochs=max_epochs,
                    batch_size=min(batch_size, n_rows),
                    learning_rate=learning_rate,
                    weight_decay=weight_decay,
                )
            )
    layers = [
        tuple(torch.cat(tensors).numpy() for tensors in zip(*(block[i] for block in blocks)))
        for i in range(len(sizes) - 1)
    ]
    return NetworkEnsemble(tuple(w for w, _ in layers), tuple(b for _, b in layers))


def _members_at_once(sizes: tuple[int, ...]) -> int:
    """Return how many members a block has."""
    parameters = sum((inputs + 1) * outputs for inputs, outputs in pairwise(sizes))
    return max(1, _BLOCK_BYTES // (4 * 4 * parameters))  # float32: weight, gradient and two moments


def _train_block(
    rows: torch.Tensor,
    goals: torch.Tensor,
    generators: list[torch.Generator],
    sizes: tuple[int, ...],
    *,
    max_epochs: int,
    batch_size: int,
    learning_rate: float,
    weight_decay: float,
) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Train some members together."""
    n_members, n_rows, _ = goals.shape
    parameters = _initial_parameters(sizes, generators)
    tensors = [tensor for layer in parameters for tensor in layer]
    # The fused step is one pass over the memory; nothing here mixes members either.
    optimizer = torch.optim.Adam(tensors, lr=learning_rate, fused=True)
    member = torch.arange(n_members)[:, None]
    for epoch in range(max_epochs):
        if epoch % _EPOCHS_DRAWN == 0:
            drawn = torch.stack([torch.rand(_EPOCHS_DRAWN, n_rows, generator=g) for g in generators], dim=1)
        order = drawn[epoch % _EPOCHS_DRAWN].argsort(dim=1)
        shuffled = rows[0][order] if len(rows) == 1 else rows[member, order]
        wanted = goals[member, order]
        for start in range(0, n_rows, batch_size):
            batch = slice(start, start + batch_size)
            slopes = _gradients(shuffled[:, batch], wanted[:, batch], parameters, weight_decay)
            for tensor, slope in zip(tensors, slopes):
                tensor.grad = slope
            optimizer.step()
    return parameters


def _forward(rows: torch.Tensor, layers: list[tuple[torch.Tensor, torch.Tensor]]) -> torch.Tensor:
    for weight, bias in layers[:-1]:
        rows = torch.baddbmm(bias, rows, weight).relu_()
    return torch.baddbmm(layers[-1][1], rows, layers[-1][0])


def _initial_parameters(
    sizes: tuple[int, ...], generators: list[torch.Generator]
) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Glorot's uniform initialisation, as scikit-learn's networks have it."""
    layers = []
    for inputs, outputs in pairwise(sizes):
        bound = (6.0 / (inputs + outputs)) ** 0.5
        drawn = torch.stack([torch.rand(inputs + 1, outputs, generator=g) for g in generators]).mul_(2).sub_(1)
        drawn.mul_(bound)
        layers.append((drawn[:, :-1].contiguous(), drawn[:, -1:].contiguous()))
    return layers


def _gradients(
    batch: torch.Tensor,
    goals: torch.Tensor,
    parameters: list[tuple[torch.Tensor, torch.Tensor]],
    weight_decay: float,
) -> list[torch.Tensor]:
    """Gradients of each member's mean cross-entropy, by hand: autograd's bookkeeping costs more than the products."""
    activations = [batch]
    for weight, bias in parameters[:-1]:
        activations.append(torch.baddbmm(bias, activations[-1], weight).relu_())
    weight, bias = parameters[-1]
    total = goals.sum(dim=2, keepdim=True)
    # A batch of nothing but padding has no direction, and divides by one.
    counted = (total != 0).sum(dim=1, keepdim=True).clamp_(min=1)
    error = torch.baddbmm(bias, activations[-1], weight).softmax(dim=2).mul_(total).sub_(goals).div_(counted)
    found: list[torch.Tensor] = []
    for (weight, _), inputs in zip(reversed(parameters), reversed(activations)):
        slope = torch.bmm(inputs.transpose(1, 2), error)
        if weight_decay:
            slope.add_(weight, alpha=weight_decay)
        found += [error.sum(dim=1, keepdim=True), slope]
        if inputs is not batch:
            error = torch.bmm(error, weight.transpose(1, 2)).mul_(inputs > 0)
    return found[::-1]
