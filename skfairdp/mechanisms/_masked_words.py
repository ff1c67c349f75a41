"""Words that are masked at random, and words that are always masked, for a whole corpus at once."""

import math
import re
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import pairwise
from numbers import Real

import numpy as np

from skfairdp.mechanisms._bit_mechanism import bernoulli
from skfairdp.random import RandomStream

_PART = re.compile(r"\w+")


def dropout_count(rate: float) -> int:
    """Return the integer out of ``2**64`` that a dropout rate becomes, never more than the rate.

    Examples
    --------
    >>> from skfairdp.mechanisms import dropout_count
    >>> dropout_count(0.5) == 2**63
    True
    """
    if isinstance(rate, bool) or not isinstance(rate, Real) or not 0 <= rate <= 1:
        raise ValueError(f"rate must be a number from 0 to 1; got {rate!r}.")
    return math.floor(math.ldexp(float(rate), 64))


def mask_words(
    documents: Sequence[Sequence[str]],
    rate: float,
    stream: RandomStream,
    *,
    mask_token: str,
    sensitive: "SensitiveWords | None" = None,
) -> list[list[str]]:
    """Mask each word independently, and the sensitive ones always.

    One draw serves all words of all documents. A sensitive word is drawn for like any
    other, so that its neighbours' masks do not depend on it.

    Parameters
    ----------
    documents : sequence of sequences of str
        Tokenised documents.
    rate : float
        Probability that a word is masked.
    stream : RandomStream
        Where the random bits come from.
    mask_token : str
        What stands in for a masked word.
    sensitive : SensitiveWords, optional
        Words that are masked whatever is drawn.

    Returns
    -------
    list of lists of str
        Of the same lengths.

    Examples
    --------
    >>> from skfairdp.random import random_stream
    >>> from skfairdp.mechanisms import mask_words
    >>> mask_words([["a", "b"], ["c"]], 1.0, random_stream(0), mask_token="_")
    [['_', '_'], ['_']]
    """
    ends = np.cumsum([0, *(len(document) for document in documents)])
    words = [word for document in documents for word in document]
    masked = bernoulli(len(words), dropout_count(rate), stream)
    if sensitive is not None:
        known = {word: word in sensitive for word in set(words)}
        masked = masked | np.fromiter((known[word] for word in words), dtype=bool, count=len(words))
    for i in np.flatnonzero(masked):
        words[i] = mask_token
    return [words[start:end] for start, end in pairwise(ends)]


class SensitiveWords:
    """A fixed list of words to find in text, erring on the side of finding them.

    A token is found when it, without the punctuation around it, or any run of letters
    and digits inside it is on the list: ``"Alice's"`` and ``"(Alice),"`` are found by
    ``"Alice"``. Compatible Unicode forms are the same word.

    Parameters
    ----------
    words : iterable of str
        The words to find.
    case_sensitive : bool, default=False
        Whether ``"Alice"`` and ``"alice"`` are two words.

    Examples
    --------
    >>> from skfairdp.mechanisms import SensitiveWords
    >>> names = SensitiveWords(["Alice"])
    >>> "(alice's)" in names, "malice" in names
    (True, False)
    """

    def __init__(self, words: Iterable[str], *, case_sensitive: bool = False):
        if isinstance(words, str | bytes):
            raise TypeError(f"sensitive_words must be a collection of words; got the single string {words!r}.")
        self._case_sensitive = case_sensitive
        forms = set()
        for word in words:
            if not isinstance(word, str) or not word.strip():
                raise ValueError(f"sensitive_words must hold non-empty strings; got {word!r}.")
            forms.add(self._form(word))
        self._words = frozenset(forms)

    def __contains__(self, token: str) -> bool:
        form = self._form(token)
        return not self._words.isdisjoint((form, _without_edges(form), *_PART.findall(form)))

    def _form(self, word: str) -> str:
        word = unicodedata.normalize("NFKC", word)
        return word if self._case_sensitive else word.casefold()


def _without_edges(word: str) -> str:
    """Strip what is neither letter nor digit from both ends."""
    inside = [i for i, character in enumerate(word) if character.isalnum()]
    return word[inside[0] : inside[-1] + 1] if inside else word
