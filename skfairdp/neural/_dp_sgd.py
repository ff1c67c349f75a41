"""A small network trained by noisy gradients (DP-SGD), by Opacus: the noise, the sampling and the price are its own."""

import warnings
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import nn

from skfairdp.neural._torch_state import limit_threads, torch_generator, torch_seed
from skfairdp.random import RandomStream


def train_by_opacus(
    X: np.ndarray,
    y: np.ndarray,
    n_classes: int,
    *,
    epsilon: float,
    delta: float,
    hidden_sizes: Sequence[int],
    batch_size: int,
    max_epochs: int,
    learning_rate: float,
    max_grad_norm: float,
    stream: RandomStream,
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Train a network with tanh layers.

    Parameters
    ----------
    X, y : ndarray
        Rows, and the indices of their classes.
    n_classes : int
        Number of classes.
    epsilon, delta : float
        What Opacus is to claim for two data sets of which one has one record more (its PRV accountant).
    hidden_sizes : sequence of int
        Layers before the last one.
    batch_size, max_epochs, learning_rate, max_grad_norm
        Expected rows of a step, passes, Adam's step, and the length to which the gradient of each row is cut.
    stream : RandomStream
        Seeds of the first weights, the sampling and the noise.

    Returns
    -------
    list of (ndarray, ndarray)
        Weights and biases of each layer.

    Examples
    --------
    >>> import numpy as np
    >>> from skfairdp.neural import train_by_opacus
    >>> from skfairdp.random import random_stream
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 3))
    >>> settings = {"hidden_sizes": (4,), "batch_size": 50, "max_epochs": 1, "learning_rate": 0.1, "max_grad_norm": 1.0}
    >>> layers = train_by_opacus(
    ...     X, (X[:, 0] > 0).astype(int), 2, epsilon=3.0, delta=1e-5, **settings, stream=random_stream(0)
    ... )
    >>> [weights.shape for weights, _ in layers]
    [(3, 4), (4, 2)]
    """
    from opacus import PrivacyEngine

    rows = _Rows(torch.as_tensor(X, dtype=torch.float32), torch.as_tensor(y, dtype=torch.int64))
    sizes = [X.shape[1], *hidden_sizes, n_classes]
    with torch_seed(stream.seed(), torch.device("cpu")), limit_threads(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that its generator is no cryptographic one is said by the receipt
        layers = [nn.Linear(before, after) for before, after in pairwise(sizes)]
        network: Any = nn.Sequential(*(part for layer in layers for part in (layer, nn.Tanh())))[:-1]
        loader: Any = torch.utils.data.DataLoader(
            rows, batch_size=min(batch_size, len(rows)), collate_fn=_as_it_is, generator=torch_generator(stream)
        )
        private, optimizer, loader = PrivacyEngine(accountant="prv").make_private_with_epsilon(
            module=network,
            optimizer=torch.optim.Adam(network.parameters(), lr=learning_rate),
            data_loader=loader,
            target_epsilon=epsilon,
            target_delta=delta,
            epochs=max_epochs,
            max_grad_norm=max_grad_norm,
            noise_generator=torch_generator(stream),
        )
        for _ in range(max_epochs):
            for batch, labels in loader:
                optimizer.zero_grad()
                nn.functional.cross_entropy(private(batch), labels).backward()
                optimizer.step()
    return [(layer.weight.detach().numpy().T.copy(), layer.bias.detach().numpy().copy()) for layer in layers]


class _Rows(torch.utils.data.Dataset):
    """Rows that are taken as a batch, which is much faster than one by one."""

    def __init__(self, X: torch.Tensor, y: torch.Tensor):
        self.X, self.y = X, y

    def __len__(self) -> int:
        return len(self.X)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self.X[index], self.y[index]

    def __getitems__(self, indices: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
        return self.X[indices], self.y[indices]


def _as_it_is(batch: Any) -> Any:
    return batch
