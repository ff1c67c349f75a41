"""Documents as mean word vectors: the encoder that stands in for the papers' BERT."""

import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import chain

import numpy as np
from scipy.sparse import csr_array

_WORD = re.compile(r"\w+(?:'\w+)*")


@lru_cache(maxsize=1)
def glove():
    """GloVe vectors of 100 dimensions."""
    from skfairdp.datasets import load_glove

    return load_glove()


def words(document: str) -> list[str]:
    """Runs of letters, digits and apostrophes, in lower case."""
    return _WORD.findall(document.lower())


def mean_vectors(documents: Iterable[str], mask_token: str = "[MASK]") -> np.ndarray:
    """The mean vector of the known words of each document, zero where none is known; masked words are no words."""
    table = glove()
    rows = [
        [table.index[word] for word in words(text.replace(mask_token, " ")) if word in table.index]
        for text in documents
    ]
    ends = np.cumsum([0, *map(len, rows)])
    weights = np.repeat([1 / max(len(row), 1) for row in rows], np.diff(ends))
    shape = (len(rows), len(table.words))
    means = csr_array((weights.astype(np.float32), np.fromiter(chain(*rows), dtype=np.intp), ends), shape=shape)
    return means @ table.vectors
