"""Documents in, documents with masked words out."""

import math
import sys
from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from skfairdp._base import SkfairdpEstimator
from skfairdp._sklearn import Interval, fit_context
from skfairdp._validation import check_documents
from skfairdp.dp import PrivacyGuarantee, ReleaseEvent, amplify_by_dropout
from skfairdp.mechanisms import SensitiveWords, dropout_count, mask_words
from skfairdp.random import noise_stream


class WordDropout(TransformerMixin, SkfairdpEstimator):
    """Mask words at random, which makes a private mechanism that follows more private for single words.

    Masked text is not private by itself: the words that stay are there to read. What this
    step offers is *amplification* of the guarantee of a mechanism behind it, see :meth:`amplify`.

    Parameters
    ----------
    rate : float, default=0.5
        Probability that a word is masked, independently of all others.
    tokenizer : callable or None, default=None
        Takes a document and returns its words. ``None`` splits at white space. The words that come out are joined by
        single spaces.
    mask_token : str, default="[MASK]"
        What stands in for a masked word. It must be an input that the mechanism behind covers, like any word.
    sensitive_words : collection of str or None, default=None
        Words that are always masked, also inside punctuation (``"Alice's"``). The list must not be made by looking at
        the documents. It changes no epsilon: see the notes.
    case_sensitive : bool, default=False
        Whether ``sensitive_words`` tells upper from lower case.
    random_state : int, Generator, SeedSequence, RandomState or None, default=None
        ``None`` uses the operating system's entropy. A seed makes the masks known, and known masks amplify nothing.

    Attributes
    ----------
    dropout_rate_ : float
        The rate of the integers that are used; at most ``rate``, and less than ``2**-64`` below it.

    See Also
    --------
    skfairdp.accounting.amplify_by_dropout : The arithmetic.

    Notes
    -----
    **Privacy.** Two documents of the same length that differ in one word are neighbours. Let a mechanism behind this
    step be epsilon-private for all documents, the masked ones included. With that word masked the outputs have a
    density ``a``; otherwise ``b`` and ``c``. The ratio ``(mu a + (1 - mu) b) / (mu a + (1 - mu) c)`` is at most
    ``mu + (1 - mu) exp(epsilon)``, since ``a`` and ``c`` are at least ``exp(-epsilon) b``. So the word-level loss is
    ``log(mu + (1 - mu) exp(epsilon))``, the formula of Theorem 2 of [1]_ (whose proof confuses conditional with
    unconditional probabilities; the formula stands for masks that are drawn word by word).

    It needs masks that stay secret and are fresh for every release. It is a statement on single words: for whole
    records the epsilon of the mechanism stands, and text length is not protected.

    *Sensitive words.* Masking every word of a fixed list is a function of each word alone, so neighbours stay
    neighbours, and dropout follows: the amplified epsilon above holds for every pair of words. Two listed words
    cannot be told apart at all. A listed word and one that is not are told apart as well as any two others: the list
    adds no amplification of its own, and with ``rate=0`` there is none. Words chosen by looking at a document are
    outside every guarantee, because the choice tells what was there.

    References
    ----------
    .. [1] L. Lyu, X. He and Y. Li, "Differentially Private Representation for NLP: Formal Guarantee and An Empirical
       Study on Privacy and Fairness", Findings of EMNLP 2020, Theorem 2.

    Examples
    --------
    >>> from skfairdp import WordDropout
    >>> from skfairdp.accounting import PrivacyGuarantee
    >>> dropout = WordDropout(rate=0.5, sensitive_words=["Alice"], random_state=1).fit()
    >>> dropout.transform(["Alice's brother likes the very long road home"])
    ['[MASK] [MASK] [MASK] the [MASK] long [MASK] [MASK]']
    >>> round(WordDropout(rate=0.5).fit().amplify(PrivacyGuarantee(1.0, mechanism="laplace")).epsilon, 6)
    0.620115
    """

    _row_wise_methods: ClassVar[dict] = {"transform": ()}

    _parameter_constraints: ClassVar[dict] = {
        "rate": [Interval(Real, 0, 1, closed="both")],
        "tokenizer": [callable, None],
        "mask_token": [str],
        "sensitive_words": ["array-like", set, frozenset, None],
        "case_sensitive": ["boolean"],
        "random_state": "no_validation",
    }

    def __init__(
        self,
        rate=0.5,
        *,
        tokenizer=None,
        mask_token="[MASK]",
        sensitive_words=None,
        case_sensitive=False,
        random_state=None,
    ):
        self.rate = rate
        self.tokenizer = tokenizer
        self.mask_token = mask_token
        self.sensitive_words = sensitive_words
        self.case_sensitive = case_sensitive
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X=None, y=None):
        """Check the parameters and open the stream of masks; nothing is learned from the documents.

        Parameters
        ----------
        X : iterable of str or None
            Not used.
        y : None
            Not used.

        Returns
        -------
        self : WordDropout
        """
        sensitive = self._read_sensitive_words()
        if self.tokenizer is None and len(self.mask_token.split()) != 1:
            raise ValueError(
                f"mask_token must be one word, or the length of a document would tell what was masked; got "
                f"{self.mask_token!r}."
            )
        stream = noise_stream(self.random_state)
        self.dropout_rate_ = math.ldexp(dropout_count(self.rate), -64)
        self._sensitive = sensitive
        self._stream = stream
        # What is masked, and by what, is what amplify speaks of: set_params afterwards must not change it.
        self._mask_token, self._split = self.mask_token, str.split if self.tokenizer is None else self.tokenizer
        return self

    def transform(self, X):
        """Mask the words of each document, with fresh masks in every call.

        Parameters
        ----------
        X : list, ndarray, pandas or polars Series of str
            Documents.

        Returns
        -------
        masked : list, ndarray, pandas or polars Series of str
            As many documents, in a container of the same kind.
        """
        check_is_fitted(self)
        documents = check_documents(X)
        tokens = [_check_tokens(self._split(document), i) for i, document in enumerate(documents)]
        masked = mask_words(
            tokens, self.dropout_rate_, self._stream, mask_token=self._mask_token, sensitive=self._sensitive
        )
        return _container_like(X, [" ".join(words) for words in masked])

    def amplify(self, guarantee: PrivacyGuarantee, *, n_changed: int = 1) -> PrivacyGuarantee:
        """Return the word-level guarantee of a mechanism that reads the masked documents.

        Parameters
        ----------
        guarantee : PrivacyGuarantee
            What the mechanism guarantees for any two records, masked ones included.
        n_changed : int, default=1
            Number of words in which neighbouring documents differ.

        Returns
        -------
        PrivacyGuarantee
            With ``unit="word"``.
        """
        check_is_fitted(self)
        amplified = amplify_by_dropout(guarantee, self.dropout_rate_, n_changed=n_changed)
        if self._stream.identity is None:
            return amplified
        known = (ReleaseEvent(0.0, seed=self._stream.identity), 1)  # seeded masks are known to whoever knows the seed
        return replace(amplified, events=(*amplified.events, known))

    def _read_sensitive_words(self) -> SensitiveWords | None:
        if self.sensitive_words is None:
            return None
        words = list(self.sensitive_words)
        phrase = next((word for word in words if isinstance(word, str) and len(word.split()) > 1), None)
        if self.tokenizer is None and phrase is not None:
            raise ValueError(
                f"sensitive_words must hold single words; {phrase!r} would never be found in text that is split "
                "at white space. Give its words one by one, or a tokenizer that keeps them together."
            )
        return SensitiveWords(words, case_sensitive=self.case_sensitive)

    def _learned_without_noise(self) -> None:
        return None

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.target_tags.required = False
        tags.non_deterministic = True
        return tags


def _check_tokens(tokens: Any, row: int) -> list[str]:
    tokens = list(tokens)
    if not all(isinstance(token, str) for token in tokens):
        raise ValueError(f"tokenizer must return strings; for row {row} it returned {tokens!r}.")
    return tokens


def _container_like(X: Any, documents: list[str]) -> Any:
    """Put documents into a container of the kind they came in."""
    if isinstance(X, pd.Series):  # a categorical has no category for the masked documents
        dtype = X.dtype if isinstance(X.dtype, pd.StringDtype) else object
        return pd.Series(documents, index=X.index, name=X.name, dtype=dtype)
    if isinstance(X, np.ndarray):
        return np.array(documents, dtype=object)
    if type(X).__module__.split(".")[0] == "polars":
        polars = sys.modules["polars"]  # an optional guest: whoever holds its Series has loaded it
        return polars.Series(X.name, documents, dtype=polars.String)
    return documents
