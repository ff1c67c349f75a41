"""Text: the vocabulary, the vectors, and training end to end."""

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.pipeline import Pipeline

from skfairdp import BagOfEmbeddingsEncoder, FederateClassifier, WordDropout


def documents(n=300, seed=0):
    rng = np.random.default_rng(seed)
    good, bad, filler = ["great", "lovely", "fine"], ["awful", "dull", "poor"], ["film", "book", "the", "a", "of", "it"]
    y = rng.integers(2, size=n)
    z = rng.integers(2, size=n)
    texts = [
        " ".join(
            rng.permutation([*rng.choice(good if label else bad, 2), *rng.choice(filler, 4), ["he", "she"][group]])
        )
        for label, group in zip(y, z)
    ]
    return texts, y, z


@pytest.mark.parametrize("channel", ["laplace", "codes"])
def test_text_trains_behind_word_dropout(channel):
    texts, y, z = documents()
    encoder = BagOfEmbeddingsEncoder(20, hidden_sizes=(20,))
    clf = FederateClassifier(
        16.0, channel=channel, encoder=encoder, batch_size=32, max_epochs=15, learning_rate=0.01, random_state=0
    )
    with sklearn.config_context(enable_metadata_routing=True):
        clf.set_fit_request(sensitive_features=True)
        dpnr = Pipeline([("dropout", WordDropout(0.2, random_state=0)), ("clf", clf)])
        dpnr.fit(texts, y, sensitive_features=z)
    new, truth, _ = documents(seed=1)
    assert (dpnr.predict(new) == truth).mean() > 0.8
    assert "[mask]" not in clf.text_encoder_.vocabulary_
    assert "mask" not in clf.text_encoder_.vocabulary_
    part, head = (pickle.loads(pickle.dumps(half)) for half in clf.split())
    assert (head.predict(part.transform(new)) == truth).mean() > 0.85


def test_vocabulary_words_and_lengths():
    encoder = BagOfEmbeddingsEncoder(max_words=2, min_count=2, max_length=3).fit(["b a c", "A b b", "it's it's it's"])
    assert encoder.vocabulary_ == {"b": 1, "it's": 2}
    assert encoder.transform(["b b b b", "zzz", "x b"]).tolist() == [[1, 1, 1], [0, 0, 0], [1, 0, 0]]
    spaces = BagOfEmbeddingsEncoder(tokenizer=str.split, lowercase=False, mask_token="").fit(["A b!"])
    assert spaces.vocabulary_ == {"A": 1, "b!": 2}


def test_masked_words_do_not_move_mean():
    import torch

    encoder = BagOfEmbeddingsEncoder(4, hidden_sizes=()).fit(["good film"])
    module = encoder.make_module()
    out = module(torch.tensor(encoder.transform(["good", "[MASK] good unheard", "nothing known"])))
    assert torch.equal(out[0], out[1])
    assert torch.equal(out[2], torch.zeros(4))


@pytest.mark.parametrize("as_pair", [False, True])
def test_pretrained_vectors(as_pair):
    vectors = {"good": np.array([1.0, 2.0]), "bad": np.array([-1.0, 0.5])}
    given = (list(vectors), np.stack(list(vectors.values()))) if as_pair else vectors
    encoder = BagOfEmbeddingsEncoder(vectors=given, freeze_vectors=True).fit(["good bad ugly"])
    weight = encoder.make_module().bag.weight
    assert weight[encoder.vocabulary_["good"]].tolist() == [1.0, 2.0]
    assert not weight.requires_grad
    assert np.isfinite(weight.detach().numpy()).all()


@pytest.mark.parametrize(
    ("settings", "texts", "message"),
    [
        ({}, "one document", "collection of documents"),
        ({}, [1, 2], "row 0 holds 1 of type int"),
        ({}, pd.DataFrame({"text": ["a b"]}), "one document per row"),
        ({}, [], "no document"),
        ({"min_count": 5}, ["a b"], "^X "),
        ({"vectors": {"a": [1.0], "b": [1.0, 2.0]}}, ["a b"], "same width"),
        ({"vectors": (["a"], np.ones((2, 3)))}, ["a b"], "pair words with rows"),
    ],
)
def test_bad_text_is_named(settings, texts, message):
    with pytest.raises((TypeError, ValueError), match=message):
        BagOfEmbeddingsEncoder(**settings).fit(texts)


def test_text_without_labels_is_refused():
    with pytest.raises(ValueError, match="y"):
        FederateClassifier(encoder=BagOfEmbeddingsEncoder()).fit(["a b"], None)
