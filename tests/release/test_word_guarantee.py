"""A word's receipt: exact for a transformer behind word dropout, refused where no word is masked."""

import itertools
import math

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer
from sklearn.pipeline import FeatureUnion, make_pipeline

from skfairdp import FederateClassifier, LaplacePrivatizer, WordDropout, pipeline_guarantee
from skfairdp.adversarial import TransformersEncoder
from skfairdp.release import word_guarantee
from tests._tiny_bert import documents, tiny_bert

RATE, EPSILON = 0.3, 2.0


@pytest.fixture(scope="module", params=["none", "last"])
def pipeline(request):
    model, tokenizer = tiny_bert()
    settings = {} if request.param == "none" else {"learning_rate": 2e-3}
    encoder = TransformersEncoder(model, tokenizer=tokenizer, max_length=32, trainable=request.param, **settings)
    clf = FederateClassifier(
        EPSILON,
        encoder=encoder,
        max_epochs=8,
        batch_size=32,
        learning_rate=0.01,
        adversary_weight=0,
        random_state=0,
    )
    texts, y, _ = documents(200)
    clf.fit(
        WordDropout(RATE, random_state=0).fit_transform(texts), y
    )  # seeded, so that every run trains the same model
    return make_pipeline(WordDropout(RATE).fit(), clf)


def distribution(pipeline, document):
    """Exact probability of each code, over the masks of all words and the noise of the channel."""
    clf, words = pipeline[-1], document.split()
    masked, weights = [], []
    for mask in itertools.product([False, True], repeat=len(words)):
        masked.append(" ".join("[MASK]" if hidden else word for word, hidden in zip(words, mask)))
        weights.append(math.prod(RATE if hidden else 1 - RATE for hidden in mask))
    named = clf._values(masked)
    low = 1 / (named.shape[1] - 1 + math.exp(EPSILON))
    return np.array(weights) @ (low * (1 + (math.exp(EPSILON) - 1) * named))


def test_a_word_pays_no_more_than_its_receipt(pipeline):
    word, record = word_guarantee(pipeline), pipeline_guarantee(pipeline, rows="new")
    assert (word.unit, record.unit) == ("word", "record")
    assert word.epsilon == pytest.approx(math.log(RATE + (1 - RATE) * math.exp(record.epsilon)))
    losses = []
    for rest in ("film the", "it", "great", "dull of"):
        found = [distribution(pipeline, f"{rest} {one}") for one in ("great", "awful", "poor", "he", "lovely")]
        losses += [np.abs(np.log(p / q)).max() for p in found for q in found]
    assert max(losses) <= word.epsilon + 1e-9
    # The classifier does look at words: with a receipt of a tenth of this the same test would fail.
    assert max(losses) > word.epsilon / 10


def test_a_document_pays_more_than_a_word(pipeline):
    p, q = (distribution(pipeline, " ".join([word] * 4)) for word in ("great", "awful"))
    loss = np.abs(np.log(p / q)).max()
    assert word_guarantee(pipeline).epsilon < loss <= EPSILON
    assert word_guarantee(pipeline, n_changed=4).epsilon == pytest.approx(loss)  # the bound is met


def test_documents_of_fit_are_not_covered(pipeline):
    guarantee = word_guarantee(pipeline, rows="fitted")
    assert (guarantee.unit, guarantee.epsilon) == ("word", math.inf)
    assert any("was fitted on the same rows" in line for line in guarantee.does_not_cover)


def test_dropout_must_come_first():
    texts = ["a good film", "a very long book", "nothing new"]
    vectors, noise = HashingVectorizer(n_features=4), LaplacePrivatizer(1.0)
    without = make_pipeline(vectors, noise).fit(texts)
    with pytest.raises(ValueError, match="WordDropout"):
        word_guarantee(without)
    beside = FeatureUnion([("masked", make_pipeline(WordDropout(0.5), vectors)), ("clear", vectors)])
    with pytest.raises(ValueError, match="WordDropout"):
        word_guarantee(make_pipeline(beside, noise).fit(texts))
    with pytest.raises(ValueError, match=r"\[1, 2\]"):
        word_guarantee(make_pipeline(WordDropout(0.5), WordDropout(0.5), vectors, noise).fit(texts))
    with pytest.raises(TypeError, match="must be a Pipeline that begins with WordDropout; got WordDropout"):
        word_guarantee(WordDropout().fit())


def test_a_vocabulary_of_the_same_rows_undoes_it():
    texts = ["a good film", "a very long book", "nothing new"]
    pipeline = make_pipeline(WordDropout(0.5), CountVectorizer(), LaplacePrivatizer(1.0)).fit(texts)
    assert word_guarantee(pipeline, rows="fitted").epsilon == math.inf
    assert word_guarantee(pipeline).epsilon == pytest.approx(math.log(0.5 + 0.5 * math.e))
