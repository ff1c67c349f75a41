"""What a pipeline that masks words costs a single word, beside what it costs a whole document."""

import math
from dataclasses import replace
from typing import Any

from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from skfairdp.dp import PrivacyGuarantee
from skfairdp.pipeline._guarantee import pipeline_guarantee


def word_guarantee(pipeline: Any, *, rows: str = "new", n_changed: int = 1) -> PrivacyGuarantee:
    """Say what a fitted pipeline that begins with word dropout costs one word of a document that passes it once.

    Parameters
    ----------
    pipeline : Pipeline
        Fitted. Its first step is a :class:`~skfairdp.preprocessing.WordDropout`; a private step follows.
    rows : {"new", "fitted"}, default="new"
        Whose loss: that of documents which no step has seen in ``fit``, or that of the documents of ``fit``.
    n_changed : int, default=1
        Number of words in which neighbouring documents differ.

    Returns
    -------
    PrivacyGuarantee
        With ``unit="word"``. Infinite, with the reason in ``does_not_cover``, where :func:`pipeline_guarantee` is
        infinite. For the whole document :func:`pipeline_guarantee` stands, which dropout does not change.

    Notes
    -----
    **Privacy.** Two documents of the same number of words that differ in ``n_changed`` of them are neighbours. All that
    follows the dropout reads the masked document and nothing else, so that it is one mechanism with the guarantee of
    the pipeline, whatever encoder is in it, a transformer included: with probability ``rate`` per word both
    neighbours look alike to it (see ``WordDropout``). Dropout must come first: behind a step that reads several words
    at once, what it masks are no longer words. This is a statement on single words of fixed number; no distance between
    sentences enters it, and no metric privacy of a sequence is claimed.

    Examples
    --------
    >>> from sklearn.feature_extraction.text import HashingVectorizer
    >>> from sklearn.pipeline import make_pipeline
    >>> from skfairdp import LaplacePrivatizer, WordDropout, pipeline_guarantee
    >>> from skfairdp.pipeline import word_guarantee
    >>> texts = ["a good film", "a very long book", "nothing new"]
    >>> pipeline = make_pipeline(WordDropout(0.5), HashingVectorizer(n_features=4), LaplacePrivatizer(1.0)).fit(texts)
    >>> pipeline_guarantee(pipeline, rows="new").epsilon
    1.0
    >>> word = word_guarantee(pipeline)
    >>> word.unit, round(word.epsilon, 3)
    ('word', 0.62)
    """
    if not isinstance(pipeline, Pipeline):
        raise TypeError(f"pipeline must be a Pipeline that begins with WordDropout; got {type(pipeline).__name__}.")
    check_is_fitted(pipeline)
    record = pipeline_guarantee(pipeline, rows=rows)
    steps = [step for _, step in pipeline.steps if step is not None and step != "passthrough"]
    masks = [i for i, step in enumerate(steps) if hasattr(step, "amplify")]
    if masks != [0]:
        found = f"those that do are {[i + 1 for i in masks]} of {len(steps)}" if masks else "none does"
        raise ValueError(
            f"the first step of pipeline, and no other, must mask words (WordDropout); {found}. Behind a step that "
            "reads whole documents, what is masked are not words. For documents see pipeline_guarantee."
        )
    if pipeline.memory is not None and type(pipeline) is Pipeline:
        record = record.undone(["a cached mask serves several releases: memory= of a plain Pipeline stores it"])
    if math.isinf(record.epsilon):
        return replace(record, unit="word")
    return steps[0].amplify(record, n_changed=n_changed)
