"""Documents as mean word vectors: the encoder that stands in for the papers' BERT."""

import re
from collections.abc import Iterable
from functools import lru_cache

import numpy as np

_WORD = re.compile(r"\w+(?:'\w+)*")


@lru_cache(maxsize=1)
def glove():
    """GloVe vectors of 100 dimensions."""
    from skfairdp.datasets import load_glove

    return load_glove()


def words(document: str) -> list[str]:
    """Runs of letters, digits and apostrophes, in lower case."""
    return _WORD.findall(document.lower())


def mean_vectors(documents: Iterable[str]) -> np.ndarray:
    """The mean vector of the known words of each document, zero where none is known."""
    table, rows = glove(), []
    for document in documents:
        known = [table.index[word] for word in words(document) if word in table.index]
        rows.append(table.vectors[known].mean(axis=0) if known else np.zeros(table.vectors.shape[1]))
    return np.asarray(rows, dtype=np.float32)
