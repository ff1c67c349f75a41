"""Networks that are not tied to one method: layers in a row, the mean of word vectors, and networks that users give."""

import copy
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn


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

    Examples
    --------
    >>> from skfairdp.neural import mlp
    >>> [layer.out_features for layer in mlp(8, (16,), 2) if hasattr(layer, "out_features")]
    [16, 2]
    """
    layers: list[nn.Module] = []
    for width in hidden_sizes:
        layers += [nn.Linear(n_inputs, width), nn.ReLU()]
        if dropout > 0:
            layers.append(nn.Dropout(dropout))
        n_inputs = width
    layers.append(nn.Linear(n_inputs, n_outputs))
    return nn.Sequential(*layers)


def network_of_the_user(
    name: str, given: Any, sizes: tuple[int, ...], example: torch.Tensor, n_outputs: int, params: dict[str, Any]
) -> nn.Module:
    """Make the network that a user gave in place of an ``mlp``, with an output of the width that is needed.

    Parameters
    ----------
    name : str
        The parameter that holds it, for messages.
    given : torch.nn.Module or callable
        A module is copied; a callable is called with ``sizes`` and ``params``.
    sizes : tuple of int
        What a callable is told: the width of the input, and for some also that of the output.
    example : Tensor
        A few rows, to find out how wide the output is.
    n_outputs : int
        The width that is needed; a linear layer is appended to a network with another one.
    params : dict
        Further arguments of a callable.

    Returns
    -------
    torch.nn.Module
    """
    if isinstance(given, nn.Module):
        if params:
            raise TypeError(
                f"{name}__{next(iter(params))} is an argument of a class or function that makes the network, but "
                f"{name} is a finished {type(given).__name__}; give the class instead."
            )
        network = copy.deepcopy(given)
    else:
        network = given(*sizes, **params)
    if not isinstance(network, nn.Module):
        told = "the number of features" if len(sizes) == 1 else "the widths of input and output"
        raise TypeError(
            f"{name} must be 'mlp', a torch module, or a callable that takes {told} and returns a torch module; the "
            f"callable returned {type(network).__name__}."
        )
    network = network.to(example.device)
    was_training = network.training
    network.eval()
    with torch.no_grad():
        out = network(example)
    network.train(was_training)
    if not isinstance(out, torch.Tensor) or out.ndim != 2 or len(out) != len(example):
        shape = tuple(out.shape) if isinstance(out, torch.Tensor) else type(out).__name__
        raise ValueError(
            f"{name} must map {len(example)} rows to a tensor of shape ({len(example)}, width); got {shape}."
        )
    return network if out.shape[1] == n_outputs else nn.Sequential(network, nn.Linear(out.shape[1], n_outputs))


class BagOfEmbeddings(nn.Module):
    """Mean of the word vectors of a document, then linear layers; id 0 is no word and does not count.

    Parameters
    ----------
    n_words : int
        Size of the vocabulary, without id 0.
    embedding_size : int
        Width of a word vector.
    hidden_sizes : sequence of int
        Widths of the layers behind the mean; the last one is the output. None gives the mean itself.
    dropout : float
        Share of hidden units dropped in training.
    vectors : ndarray of shape (n_words, embedding_size) or None
        Where word vectors start from; nan rows are drawn like those without vectors.
    freeze : bool
        Keep the given vectors as they are.

    Examples
    --------
    >>> import torch
    >>> from skfairdp.neural import BagOfEmbeddings
    >>> BagOfEmbeddings(n_words=100, embedding_size=8)(torch.tensor([[5, 7, 0], [0, 0, 0]])).shape
    torch.Size([2, 8])
    """

    _row_wise_methods: ClassVar[dict] = {"forward": ()}

    def __init__(
        self,
        n_words: int,
        embedding_size: int,
        hidden_sizes: Sequence[int] = (),
        dropout: float = 0.0,
        vectors: np.ndarray | None = None,
        freeze: bool = False,
    ):
        super().__init__()
        self.bag = nn.EmbeddingBag(n_words + 1, embedding_size, mode="mean", padding_idx=0)
        if vectors is not None:
            known = torch.tensor(vectors, dtype=torch.float32)
            with torch.no_grad():
                # Words without a vector start at a tenth of torch's usual size: a mean of few known and many unknown
                # words would otherwise be mostly noise.
                start = torch.where(torch.isnan(known), 0.1 * self.bag.weight[1:], known)
                self.bag.weight[1:] = start
        self.bag.weight.requires_grad_(not freeze)
        self.behind: nn.Module = nn.Identity()
        if hidden_sizes:
            *hidden, width = hidden_sizes
            self.behind = nn.Sequential(mlp(embedding_size, hidden, width, dropout), nn.ReLU())

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Map ids of shape (n, length) to vectors; a document without known words gives the zero mean.

        Parameters
        ----------
        ids : Tensor of shape (n_samples, length)
            Ids of words.
        """
        return self.behind(self.bag(ids))
