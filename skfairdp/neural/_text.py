"""From token ids to vectors."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import nn

from skfairdp.neural._networks import mlp


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
    """

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
                # Words without a vector start small, so that they do not drown the known ones.
                start = torch.where(torch.isnan(known), 0.1 * self.bag.weight[1:], known)
                self.bag.weight[1:] = start
        self.bag.weight.requires_grad_(not freeze)
        self.behind: nn.Module = nn.Identity()
        if hidden_sizes:
            *hidden, width = hidden_sizes
            self.behind = nn.Sequential(mlp(embedding_size, hidden, width, dropout), nn.ReLU())

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Map ids of shape (n, length) to vectors; a document without known words gives the zero mean."""
        return self.behind(self.bag(ids))
