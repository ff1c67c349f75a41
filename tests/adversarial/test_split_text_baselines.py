"""The two halves, text, and the methods of the paper."""

import io
import math
import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline

from skfairdp import BagOfEmbeddingsEncoder, FederateClassifier, PrivacyLedger, WordDropout
from skfairdp.adversarial import federate_baselines


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=503)
    X = rng.normal(size=(503, 4)) + 3.0 * y[:, None]
    clf = FederateClassifier(8.0, channel="codes", adversary_weight=0.0, batch_size=50, max_epochs=10, random_state=0)
    return clf.fit(X, np.array(["no", "yes"])[y]), X, np.array(["no", "yes"])[y]


def reload(part):
    file = io.BytesIO()
    joblib.dump(part, file)
    file.seek(0)
    assert repr(joblib.load(file)) == repr(part)
    return pickle.loads(pickle.dumps(part))


@pytest.mark.parametrize("channel", ["laplace", "codes"])
def test_halves_pickle_apart_and_work_together(model, channel):
    clf, X, y = model
    clf = clone(clf).set_params(channel=channel).fit(X, y)
    encoder, head = (reload(part) for part in clf.split())
    released = encoder.transform(X)
    assert (head.predict(released) == y).mean() > 0.85
    assert head.predict_proba(released).sum(axis=1) == pytest.approx(np.ones(len(X)))
    pipeline = make_pipeline(encoder, head)
    assert (pipeline.predict(X) == y).mean() > 0.85
    refitted = make_pipeline(encoder, LogisticRegression()).fit(X, y)
    assert refitted.score(X, y) > 0.85
    assert clone(encoder).transform(X).shape == released.shape
    assert encoder.set_output(transform="pandas").transform(X).columns[0] == "federateclassifier0"


def test_only_the_encoder_carries_the_guarantee_and_it_charges(model):
    clf, X, _ = model
    encoder, head = clf.split()
    assert encoder.mechanism_ is clf.mechanism_
    assert encoder.privacy_.epsilon == clf.privacy_.epsilon
    assert not hasattr(head, "privacy_")
    with PrivacyLedger() as ledger:
        head.predict(encoder.transform(X))
    assert ledger.total().epsilon == pytest.approx(8.0)


def test_halves_hold_their_own_weights_and_no_training_data(model):
    clf, X, _ = model
    encoder, head = clf.split()
    n_own = sum(p.numel() for p in encoder.module_.parameters())
    small = {len(pickle.dumps(part)) for part in (encoder, head)}
    assert max(small) < 4 * n_own + 20_000  # weights and little else: 503 rows of 4 doubles alone are 16,096 bytes
    for part in (encoder, head):
        blob = pickle.dumps(part)
        for row in (X[0], X[0].astype(np.float32)):
            assert row.tobytes() not in blob
    assert not hasattr(head, "channel_")
    assert next(head.module_.parameters()).data_ptr() != next(clf.net_.module_.head.parameters()).data_ptr()


def test_halves_say_what_is_wrong(model):
    clf, X, _ = model
    encoder, head = clf.split()
    with pytest.raises(ValueError, match="as the encoder released"):
        head.predict(X)
    with pytest.raises(ValueError, match="features"):
        encoder.transform(X[:, :2])
    with pytest.raises(sklearn.exceptions.NotFittedError):
        type(encoder)().transform(X)
    with pytest.raises(sklearn.exceptions.NotFittedError):
        FederateClassifier().split()


def test_the_noise_of_the_encoder_is_its_own(model):
    clf, X, _ = model
    laplace = clone(clf).set_params(channel="laplace").fit(X, model[2])
    first, second = laplace.split()[0], laplace.split()[0]
    assert not np.array_equal(first.transform(X), second.transform(X))


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
def test_text_is_trained_end_to_end_behind_word_dropout(channel):
    texts, y, z = documents()
    encoder = BagOfEmbeddingsEncoder(20, hidden_sizes=(20,))
    clf = FederateClassifier(
        16.0, channel=channel, encoder=encoder, batch_size=32, max_epochs=15, lr=0.01, random_state=0
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


def test_masked_and_unknown_words_do_not_move_the_mean():
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
        ({"min_count": 5}, ["a b"], "no word that occurs"),
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


def test_baselines_are_the_methods_of_the_paper():
    methods = federate_baselines(4.0, 0.7, random_state=0, max_epochs=3, channel="codes")
    epsilons = {name: getattr(m, "epsilon", None) for name, m in methods.items()}
    weights = {name: getattr(m, "adversary_weight", None) for name, m in methods.items()}
    assert epsilons == {
        "Unconstrained": math.inf,
        "Noise": 4.0,
        "Adversarial": math.inf,
        "Adversarial + Multiple": math.inf,
        "FEDERATE": 4.0,
        "INLP": None,
        "Random": None,
    }
    assert [weights[n] for n in ("Unconstrained", "Noise", "Adversarial", "FEDERATE")] == [0.0, 0.0, 0.7, 0.7]
    assert methods["Adversarial + Multiple"].n_adversaries == 3


def test_all_baselines_fit_and_answer():
    rng = np.random.default_rng(0)
    z, y = rng.integers(2, size=300), rng.integers(2, size=300)
    X = rng.normal(size=(300, 5)) + 2.0 * y[:, None] + z[:, None] * np.array([0, 0, 0, 0, 3.0])
    with sklearn.config_context(enable_metadata_routing=True):
        for name, method in federate_baselines(n_iterations=1, random_state=0, max_epochs=5, n_components=3).items():
            params = {} if name == "Random" else {"sensitive_features": z}
            if isinstance(method, FederateClassifier):
                method.set_fit_request(sensitive_features=True)
            accuracy = method.fit(X, y, **params).score(X, y)
            assert accuracy > (0.4 if name == "Random" else 0.7), name
