"""A text encoder for FederateClassifier: words, a vocabulary, and the mean of word vectors."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from skfairdp._base import SkfairdpEstimator
from skfairdp._sklearn import Interval, fit_context
from skfairdp._validation import check_documents


class BagOfEmbeddingsEncoder(TransformerMixin, SkfairdpEstimator):
    """Turn documents into word ids, and make the network that averages their vectors.

    Given to ``FederateClassifier(encoder=...)`` it is trained end to end with the classifier: ``fit`` learns the
    vocabulary from the training documents, the word vectors are learned with everything else.

    Parameters
    ----------
    embedding_size : int, default=50
        Width of a word vector; the width of ``vectors`` when they are given.
    hidden_sizes : sequence of int, default=(50,)
        Layers behind the mean.
    max_words : int, default=20000
        The most frequent words that are kept; ties are broken by the alphabet.
    min_count : int, default=1
        Words that occur less often are left out.
    max_length : int or None, default=None
        Words of a document that are read; None reads all.
    lowercase : bool, default=True
        Read upper case as lower case.
    tokenizer : callable or None, default=None
        Takes a document and returns its words; None takes runs of letters, digits and apostrophes.
    mask_token : str, default="[MASK]"
        Stands for a masked word, as in ``WordDropout``: never part of the vocabulary, and left out of the mean.
    vectors : mapping of str to vector, pair (words, array) or None, default=None
        Pretrained word vectors to start from.
    freeze_vectors : bool, default=False
        Keep word vectors as they are in training.
    dropout : float, default=0.1
        Share of hidden units dropped in training.

    Attributes
    ----------
    vocabulary_ : dict
        Word to id, from 1; id 0 is no word.

    Notes
    -----
    **Privacy.** None by itself. The vocabulary tells words of the training documents. A private channel behind the
    encoder protects the documents that are encoded, whatever their words.

    Examples
    --------
    >>> from skfairdp import BagOfEmbeddingsEncoder
    >>> encoder = BagOfEmbeddingsEncoder().fit(["good film", "a good book"])
    >>> encoder.vocabulary_
    {'good': 1, 'a': 2, 'book': 3, 'film': 4}
    >>> encoder.transform(["good good food", "[MASK] book"])
    array([[1, 1],
           [3, 0]])
    """

    # The width of what transform returns is that of the longest document; the network does not see it.
    _row_wise_methods: ClassVar[dict] = {"module_inputs": ()}

    _parameter_constraints: ClassVar[dict] = {
        "embedding_size": [Interval(Integral, 1, None, closed="left")],
        "hidden_sizes": ["array-like"],
        "max_words": [Interval(Integral, 1, None, closed="left")],
        "min_count": [Interval(Integral, 1, None, closed="left")],
        "max_length": [Interval(Integral, 1, None, closed="left"), None],
        "lowercase": ["boolean"],
        "tokenizer": [callable, None],
        "mask_token": [str],
        "vectors": [dict, Mapping, tuple, None],
        "freeze_vectors": ["boolean"],
        "dropout": [Interval(Real, 0, 1, closed="left")],
    }

    def __init__(
        self,
        embedding_size: int = 50,
        *,
        hidden_sizes: Sequence[int] = (50,),
        max_words: int = 20_000,
        min_count: int = 1,
        max_length: int | None = None,
        lowercase: bool = True,
        tokenizer: Callable[[str], Sequence[str]] | None = None,
        mask_token: str = "[MASK]",
        vectors: Any = None,
        freeze_vectors: bool = False,
        dropout: float = 0.1,
    ):
        self.embedding_size = embedding_size
        self.hidden_sizes = hidden_sizes
        self.max_words = max_words
        self.min_count = min_count
        self.max_length = max_length
        self.lowercase = lowercase
        self.tokenizer = tokenizer
        self.mask_token = mask_token
        self.vectors = vectors
        self.freeze_vectors = freeze_vectors
        self.dropout = dropout

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> "BagOfEmbeddingsEncoder":
        """Learn the vocabulary.

        Parameters
        ----------
        X : iterable of str
            Documents.
        y : None
            Ignored.

        Returns
        -------
        self : BagOfEmbeddingsEncoder
        """
        counts = Counter(word for document in check_documents(X) for word in self._words(document))
        frequent = [word for word, count in counts.items() if count >= self.min_count]
        if not frequent:
            raise ValueError(f"X holds no word that occurs at least min_count={self.min_count} times: no vocabulary.")
        frequent.sort(key=lambda word: (-counts[word], word))
        known = self._known_vectors()
        if known is not None:
            widths = {len(vector) for vector in known.values()}
            if len(widths) != 1:
                raise ValueError(f"vectors must all have the same width; got the widths {sorted(widths)}.")
        self.vocabulary_ = {word: i for i, word in enumerate(frequent[: self.max_words], start=1)}
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Replace words by their ids; unknown and masked words are dropped, short documents filled with 0.

        Parameters
        ----------
        X : iterable of str
            Documents.

        Returns
        -------
        ndarray of shape (n_documents, length), int64
        """
        check_is_fitted(self)
        rows = [
            [i for word in self._words(document) if (i := self.vocabulary_.get(word)) is not None][: self.max_length]
            for document in check_documents(X)
        ]
        ids = np.zeros((len(rows), max([1, *map(len, rows)])), dtype=np.int64)
        for row, found in zip(ids, rows):
            row[: len(found)] = found
        return ids

    def module_inputs(self, X: Any) -> np.ndarray:
        """Return what the network of :meth:`make_module` takes: ids, of which it leaves out the zeros that fill up.

        Parameters
        ----------
        X : iterable of str
            Documents.

        Returns
        -------
        ndarray of shape (n_documents, length), int64
        """
        return self.transform(X)

    def make_module(self, n_features: int | None = None) -> Any:
        """Make a new network for the vocabulary; ``FederateClassifier`` calls this.

        Parameters
        ----------
        n_features : int, optional
            Ignored: documents may have any length.

        Returns
        -------
        torch.nn.Module
        """
        from skfairdp.neural import BagOfEmbeddings

        check_is_fitted(self)
        known, size, start = self._known_vectors(), int(self.embedding_size), None
        if known is not None:
            size = len(next(iter(known.values())))
            missing = np.full(size, np.nan)
            start = np.stack([np.asarray(known.get(word, missing), dtype=float) for word in self.vocabulary_])
        hidden = tuple(int(width) for width in self.hidden_sizes)
        return BagOfEmbeddings(len(self.vocabulary_), size, hidden, self.dropout, start, self.freeze_vectors)

    def _carried(self) -> str:
        return "words of the training documents: the text encoder carries them as its vocabulary"

    def _known_vectors(self) -> Mapping[str, Any] | None:
        if not isinstance(self.vectors, tuple):
            return self.vectors or None
        words, array = self.vectors
        if len(words) != len(array):
            raise ValueError(f"vectors must pair words with rows; got {len(words)} words and {len(array)} rows.")
        return dict(zip(words, array)) or None

    def _words(self, document: str) -> Sequence[str]:
        document = document.replace(self.mask_token, " ") if self.mask_token else document
        document = document.lower() if self.lowercase else document
        return self.tokenizer(document) if self.tokenizer is not None else _WORD.findall(document)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        return tags


_WORD = re.compile(r"\w+(?:'\w+)*")
