r"""What hiding random words adds to a private release.

A word that is masked before the mechanism sees it cannot be told from any other. If all the
words in which two texts differ are masked with probability :math:`\pi`, both texts give the same
mixture with that probability, and an :math:`(\varepsilon, \delta)` release becomes

.. math:: \varepsilon' = \ln(\pi + (1 - \pi) e^{\varepsilon}), \qquad \delta' = (1 - \pi)\,\delta

(advanced joint convexity: Balle, Barthe and Gaboardi, 2018). For one word and independent masks this is
Theorem 2 of DPNR (Lyu, He and Li, 2020), whose printed proof has a gap.
"""

import math
from dataclasses import replace
from numbers import Real
from typing import Literal, get_args

from skfairdp._validation import check_count, check_epsilon, check_option
from skfairdp.dp._composition import ReleaseEvent
from skfairdp.dp._guarantee import PrivacyGuarantee, as_one_event

Mask = Literal["secret", "visible", "data-dependent"]

_LENGTH = "how many words a text has"
_WHOLE_RECORD = "the text as a whole: with every word replaced, dropout amplifies practically nothing"


def dropout_epsilon(
    epsilon: float,
    rate: float,
    *,
    n_changed: int = 1,
    n_words: int | None = None,
    fixed_count: bool = False,
) -> float:
    r"""Compute the epsilon that remains when words are masked at random before a pure epsilon release.

    Parameters
    ----------
    epsilon : float
        The record-level epsilon of the release, masked words included in its domain.
    rate : float
        The probability in [0, 1] that a word is masked.
    n_changed : int, default=1
        In how many words two neighbouring texts differ.
    n_words : int, optional
        The number of words of a text; needed with ``fixed_count``.
    fixed_count : bool, default=False
        Whether exactly ``floor(rate * n_words)`` words are masked instead of each one independently.

    Returns
    -------
    float
        :math:`\ln(\pi + (1 - \pi) e^\varepsilon)`, where :math:`\pi` is the probability that all changed
        words are masked.

    Examples
    --------
    >>> from skfairdp.accounting import dropout_epsilon
    >>> round(dropout_epsilon(1.0, 0.5), 6)
    0.620115
    >>> round(dropout_epsilon(1.0, 0.3, n_words=10, fixed_count=True), 6)
    0.789728
    """
    epsilon = check_epsilon(epsilon, allow_zero=True)
    return _amplified_epsilon(epsilon, _shown_probability(rate, n_changed, n_words, fixed_count))


def amplify_by_dropout(
    guarantee: PrivacyGuarantee,
    rate: float,
    *,
    n_words: int | None = None,
    n_changed: int = 1,
    fixed_count: bool = False,
    mask: Mask = "secret",
) -> PrivacyGuarantee:
    r"""Price a release whose input words were masked at random, word by word.

    Parameters
    ----------
    guarantee : PrivacyGuarantee
        The guarantee of the release itself. For one mask that serves several releases give the
        guarantee of all of them (``guarantee.repeat(k)``); for a fresh mask each time, repeat the result.
    rate : float
        The probability in [0, 1] that a word is masked.
    n_words : int, optional
        The number of words of a text; needed with ``fixed_count``.
    n_changed : int, default=1
        In how many words two neighbouring texts differ.
    fixed_count : bool, default=False
        Whether exactly ``floor(rate * n_words)`` words are masked instead of each one independently.
    mask : {"secret", "visible", "data-dependent"}, default="secret"
        Only a mask that is drawn independently of the text and never shown amplifies. ``"visible"``: it can be
        seen in what is released (through the length, or an attention mask). ``"data-dependent"``: whether
        a word is masked depends on other words of the text. (A fixed list of words that are always masked is not that:
        it changes each word by itself, before the random mask.)

    Returns
    -------
    PrivacyGuarantee
        A guarantee whose unit is the word. At record level the release still costs ``guarantee``.

    Notes
    -----
    **Privacy.** Neighbours are two texts of the same length that differ in ``n_changed`` words; the length is not
    protected. ``guarantee`` must hold for texts with the mask symbol in them too, as it does where rows are
    normalised and noise is added whatever they are; a release that is private on clean texts only may print every
    masked one. A release with a record-level guarantee is amplified by the probability that all changed words are
    masked. Where the release itself is only private for single words, independent masks are amplified in the same
    way for each word, and costs of several words add up. With a fixed count the masks are no longer independent:
    two positions change hands at once, and the bound is
    :math:`\ln[(\mu + (1-\mu) e^{2\varepsilon}) / (\mu + (1-\mu) e^{\varepsilon})]`, which is attained.

    References
    ----------
    Lyu, He and Li, "Differentially private representation for NLP", 2020, Theorem 2.
    Balle, Barthe and Gaboardi, "Privacy amplification by subsampling", 2018, Theorem 2.

    Examples
    --------
    >>> from skfairdp.accounting import PrivacyGuarantee, amplify_by_dropout
    >>> laplace = PrivacyGuarantee(1.0, mechanism="laplace")
    >>> round(amplify_by_dropout(laplace, 0.5).epsilon, 6)
    0.620115
    >>> amplify_by_dropout(laplace, 0.5, mask="data-dependent").epsilon
    1.0
    """
    if not isinstance(guarantee, PrivacyGuarantee):
        raise TypeError(f"guarantee must be a PrivacyGuarantee; got {guarantee!r}.")
    check_option(mask, "mask", get_args(Mask))
    shown = _shown_probability(rate, n_changed, n_words, fixed_count)
    by_word = guarantee.unit == "word"
    if by_word and mask == "data-dependent":
        raise ValueError(
            "mask='data-dependent' needs a record-level guarantee: when one word changes, the mask may change "
            "anywhere, and a guarantee for single words says nothing about that."
        )
    if mask != "secret":
        rate, shown = 0.0, 1.0  # a mask that somebody sees, or that depends on the text, hides nothing
    if by_word:
        epsilon, delta = _word_level(guarantee, rate, n_words, fixed_count)
        # Change one word after the other: losses add up, and each delta grows by the losses that follow it.
        if delta > 0:
            delta = math.fsum(delta * math.exp(min(i * epsilon, 700.0)) for i in range(n_changed))
        epsilon *= n_changed
    else:
        epsilon, delta = _amplified_epsilon(guarantee.epsilon, shown), shown * guarantee.delta
    if delta >= 1:
        epsilon, delta = math.inf, 0.0
    words = "one word" if n_changed == 1 else f"{n_changed} words"
    length = "the same length" if n_words is None else f"{n_words} words"
    claim = guarantee.published_epsilon
    return replace(
        guarantee,
        epsilon=epsilon,
        delta=delta,
        mechanism=f"word dropout + {guarantee.mechanism}",
        unit="word",
        neighbours=f"two texts of {length} that differ in {words}",
        published_epsilon=None if claim is None else _amplified_epsilon(claim, shown),
        events=as_one_event(ReleaseEvent(epsilon, delta), guarantee.events),  # described by its price alone
        covers=f"{words} of a text, in {guarantee.covers}",
        does_not_cover=tuple(dict.fromkeys((*guarantee.does_not_cover, _LENGTH, _WHOLE_RECORD))),
    )


def all_masked_probability(rate: float, n_changed: int, n_words: int | None, fixed_count: bool) -> float:
    """Compute the probability that all changed words are masked."""
    if isinstance(rate, bool) or not isinstance(rate, Real) or not 0 <= rate <= 1:
        raise ValueError(f"rate must be a probability in [0, 1]; got {rate!r}.")
    n_changed = check_count(n_changed, "n_changed")
    n_words = None if n_words is None else check_count(n_words, "n_words", n_changed)
    if not fixed_count:
        return float(rate) ** n_changed
    if n_words is None:
        raise ValueError("fixed_count=True needs n_words, the number of words that the count is taken of.")
    n_masked = math.floor(rate * n_words)
    return math.prod((n_masked - i) / (n_words - i) for i in range(n_changed)) if n_masked >= n_changed else 0.0


def _shown_probability(rate: float, n_changed: int, n_words: int | None, fixed_count: bool) -> float:
    """Return the probability that not all changed words are masked."""
    masked = all_masked_probability(rate, n_changed, n_words, fixed_count)
    if fixed_count or not 0 < rate < 1:
        return 1 - masked
    # Close to 1, a power is rounded, and e^epsilon enlarges what is lost: so the difference from 1 is computed itself.
    return -math.expm1(n_changed * math.log(rate))


def _amplified_epsilon(epsilon: float, shown: float) -> float:
    """Price a release of which a changed word is part with probability ``shown``."""
    if shown == 0 or math.isinf(epsilon):
        return 0.0 if shown == 0 else math.inf
    if epsilon > 700:  # e^epsilon is too large for a float
        return min(epsilon, epsilon + math.log(shown + (1 - shown) * math.exp(-epsilon)))
    return min(epsilon, math.log1p(shown * math.expm1(epsilon)))


def _word_level(
    guarantee: PrivacyGuarantee, rate: float, n_words: int | None, fixed_count: bool
) -> tuple[float, float]:
    """Price one changed word of a release that is itself private for single words only."""
    shown = _shown_probability(rate, 1, n_words, fixed_count)
    if not fixed_count:
        return _amplified_epsilon(guarantee.epsilon, shown), shown * guarantee.delta
    if not guarantee.pure or math.isinf(guarantee.epsilon):
        return guarantee.epsilon, shown * guarantee.delta
    # A text with the word masked and one with it shown differ in two words, as the mask's place is taken by another.
    return _amplified_epsilon(2 * guarantee.epsilon, shown) - _amplified_epsilon(guarantee.epsilon, shown), 0.0
