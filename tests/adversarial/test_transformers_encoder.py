"""TransformersEncoder: frozen features for scikit-learn, and layers trained end to end by FederateClassifier."""

import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags

import skfairdp
from skfairdp import FederateClassifier, LaplacePrivatizer, pipeline_guarantee
from skfairdp.adversarial import TransformersEncoder, forget_features
from tests._tiny_bert import documents, save_tiny_bert, tiny_bert

TRAINED = {"max_length": 32, "learning_rate": 2e-3}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return save_tiny_bert(tmp_path_factory.mktemp("tiny_bert"))


def federate(encoder, epsilon=16.0, **settings):
    settings = {"max_epochs": 6, "batch_size": 32, "learning_rate": 0.01, "random_state": 0, **settings}
    return FederateClassifier(epsilon, encoder=encoder, **settings)


# -- by itself -------------------------------------------------------------------------------------------------------


def test_frozen_features_in_a_pipeline(folder):
    texts, y, _ = documents()
    new, truth, _ = documents(seed=1)
    pipeline = make_pipeline(TransformersEncoder(folder, max_length=32), LogisticRegression(max_iter=1000))
    assert (pipeline.fit(texts, y).predict(new) == truth).mean() > 0.95


def test_output_has_names(folder):
    encoder = TransformersEncoder(folder).set_output(transform="pandas").fit()
    table = encoder.transform(np.array(["a film", "the book of it"]))
    assert list(table.columns[:2]) == ["transformersencoder0", "transformersencoder1"]
    assert table.shape == (2, 32)


def test_a_document_is_encoded_by_itself(folder):
    texts, _, _ = documents(40)
    encoder = TransformersEncoder(folder, cache=None).fit()
    together = encoder.transform(texts)
    assert np.array_equal(np.concatenate([encoder.transform([text]) for text in texts]), together)
    assert np.array_equal(encoder.set_params(batch_size=1).fit().transform(texts), together)


def test_model_object_is_copied_and_pickles():
    model, tokenizer = tiny_bert()
    encoder = TransformersEncoder(model, tokenizer=tokenizer, cache=None)
    before = encoder.fit().transform(["a lovely film"])
    for one in (clone(encoder).fit(), pickle.loads(pickle.dumps(encoder))):
        assert np.array_equal(one.transform(["a lovely film"]), before)
    with pytest.raises(ValueError, match="tokenizer must be given with a model object; got model=BertModel"):
        TransformersEncoder(model).fit()


@pytest.mark.parametrize("where", ["memory", "file"])
def test_frozen_features_are_computed_once(folder, where, tmp_path, monkeypatch):
    forget_features()
    asked = []
    encode = TransformersEncoder._encode
    monkeypatch.setattr(TransformersEncoder, "_encode", lambda self, d: asked.extend(d) or encode(self, d))
    texts, y, z = documents(60)
    encoder = TransformersEncoder(folder, max_length=32, cache="memory" if where == "memory" else tmp_path / "cache")
    first = clone(encoder).fit().transform(texts)
    assert np.array_equal(clone(encoder).fit().transform(texts), first)
    federate(encoder, max_epochs=1, epsilon=np.inf).fit(texts, y, sensitive_features=z).predict(texts)
    assert sorted(asked) == sorted(set(texts))
    clone(encoder).set_params(pooling="cls").fit().transform(texts)
    assert len(asked) == 2 * len(set(texts))
    forget_features()


def test_mask_token_of_another_model():
    model, tokenizer = tiny_bert()
    encoder = TransformersEncoder(model, tokenizer=tokenizer, mask_token="<hidden>", cache=None).fit()
    first, second = encoder.transform(["a <hidden> film", "a [MASK] film"])
    assert np.array_equal(first, second)


def test_kept_features_know_the_mask_token(folder):
    """What stands for a masked word changes how a document is read, and so which features are its own."""
    forget_features()
    encoder = TransformersEncoder(folder)
    masked, read = (
        encoder.set_params(mask_token=token).fit().transform(["a hidden film"])[0] for token in ("hidden", "[MASK]")
    )
    assert not np.allclose(masked, read)
    forget_features()


def test_bad_settings_are_named(folder):
    with pytest.raises(ValueError, match="max_length=200 is more than the 128 tokens"):
        TransformersEncoder(folder, max_length=200).fit()
    with pytest.raises(ValueError, match="trainable"):
        TransformersEncoder(folder, trainable="first").fit()
    with pytest.raises(ValueError, match="learning_rate"):
        TransformersEncoder(folder, learning_rate=0.1).fit()
    with pytest.raises(ValueError, match="cache"):
        TransformersEncoder(folder, trainable="all", cache=None).fit()
    with pytest.raises(ValueError, match=r"trainable='all' asks for one that is trained: give it to Federate"):
        TransformersEncoder(folder, trainable="all", max_length=32).fit().transform(["a"])
    with pytest.raises(TypeError, match=r"^X "):
        TransformersEncoder(folder, max_length=32).fit().transform([1])
    with pytest.raises(OSError, match="Without network"):
        TransformersEncoder("no-such-model", local_files_only=True).fit()


def test_tags_say_text():
    tags = get_tags(TransformersEncoder())
    assert tags.input_tags.string
    assert not tags.input_tags.two_d_array


# -- privacy -------------------------------------------------------------------------------------------------------


def test_pretrained_weights_break_no_guarantee(folder):
    texts, _, _ = documents(20)
    pipeline = make_pipeline(TransformersEncoder(folder, max_length=32), LaplacePrivatizer(2.0)).fit(texts)
    guarantee = pipeline_guarantee(pipeline)
    assert guarantee.epsilon == 2.0
    assert any("pretrained weights" in line and "must not come from" in line for line in guarantee.does_not_cover)


@pytest.mark.parametrize("trainable", ["none", "last"])
def test_documents_reach_no_others(folder, monkeypatch, trainable):
    """A long document beside them changes nothing; a planted encoder that reads padding shows it."""
    from skfairdp.neural import TransformerNetwork
    from skfairdp.neural._transformer_network import NO_TOKEN

    texts, y, z = documents(80)
    settings = TRAINED if trainable != "none" else {"max_length": 32}
    clf = federate(TransformersEncoder(folder, trainable=trainable, **settings), channel="laplace", max_epochs=1)
    clf.fit(texts, y, sensitive_features=z)
    texts = [" ".join(text.split()[:2]) for text in texts]
    longer = [" ".join(texts[:5]), *texts[1:]]

    def values_of_others(documents):
        forget_features()  # what is cached of a document no longer depends on its batch
        return clf._values(documents)[1:]

    def largest_change():
        return np.abs(values_of_others(texts) - values_of_others(longer)).max()

    assert largest_change() == 0

    def reads_padding(self, ids, tell=None):
        longest = int((ids != NO_TOKEN).sum(dim=1).max())
        return self.transformer(input_ids=ids[:, : max(longest, 1)].clamp_min(0)).last_hidden_state.mean(dim=1)

    monkeypatch.setattr(TransformerNetwork, "_by_length", reads_padding)
    assert largest_change() > 1e-3


# -- with FederateClassifier -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("trainable", "channel"), [("none", "codes"), ("last", "codes"), ("all", "laplace")])
def test_trained_until_it_learns(folder, trainable, channel):
    texts, y, z = documents()
    new, truth, _ = documents(seed=1)
    settings, epochs = ({"max_length": 32}, 9) if trainable == "none" else (TRAINED, 6)
    clf = federate(TransformersEncoder(folder, trainable=trainable, **settings), channel=channel, max_epochs=epochs)
    clf.fit(texts, y, sensitive_features=z)
    assert (clf.predict(new) == truth).mean() > 0.9
    before = dict(tiny_bert()[0].named_parameters())
    trained = dict(clf.net_.module_.named_parameters())
    moved = {
        name
        for name, old in before.items()
        for full, now in trained.items()
        if full.endswith(f"transformer.{name}") and not bool((now == old).all())
    }
    layers = {name.split(".")[2] if name.startswith("encoder.layer") else "words" for name in moved}
    assert layers == {"none": set(), "last": {"1"}, "all": {"0", "1", "words"}}[trainable]


@pytest.mark.parametrize("trainable", ["none", "last"])
def test_the_halves_stand_alone(folder, trainable, tmp_path):
    texts, y, z = documents(150)
    settings = TRAINED if trainable != "none" else {"cache": tmp_path / "cache"}
    encoder = TransformersEncoder(folder, trainable=trainable, **{"max_length": 32, **settings})
    clf = federate(encoder).fit(texts, y, sensitive_features=z)
    (tmp_path / "cache").unlink(missing_ok=True)
    device, server = (pickle.loads(pickle.dumps(half)) for half in clf.split())
    new, truth, _ = documents(seed=1)
    assert (server.predict(device.transform(new)) == truth).mean() > 0.9
    assert device.privacy_.epsilon == pytest.approx(16.0)
    assert any("the vocabulary and the pretrained weights" in line for line in device.privacy_.does_not_cover)
    assert device.text_encoder_.cache is None
    assert not (tmp_path / "cache").exists(), "the device's half keeps nothing of what it encodes"


def test_a_warm_start_keeps_both_step_sizes(folder):
    texts, y, z = documents(80)
    encoder = TransformersEncoder(folder, trainable="last", **TRAINED)
    clf = federate(encoder, epsilon=np.inf, max_epochs=1, warm_start=True)
    clf.fit(texts, y, sensitive_features=z).set_params(learning_rate=0.5).fit(texts, y, sensitive_features=z)
    assert [group["lr"] for group in clf.net_.optimizer_.param_groups] == [2e-3, 0.5]


def test_parameters_can_be_searched(folder):
    clf = federate(TransformersEncoder(folder))
    clf.set_params(encoder__trainable="last", encoder__max_length=16)
    assert (clone(clf).encoder.trainable, clf.get_params()["encoder__max_length"]) == ("last", 16)


def test_adversary_is_trained_through_the_transformer(folder):
    texts, y, z = documents(150)
    encoder = TransformersEncoder(folder, trainable="all", **TRAINED)
    clf = federate(encoder, epsilon=np.inf, n_components=4, adversary_weight=1.0, max_epochs=3)
    clf.fit(texts, y, sensitive_features=z)
    assert np.isfinite(clf.history_["adversary_advantage"]).all()


# -- the optional package --------------------------------------------------------------------------------------------


@pytest.mark.slow  # a process that imports everything
def test_nothing_else_imports_transformers():
    """With the package blocked, every folder is imported and everything but its encoder works."""
    code = """
import importlib, pkgutil, sys
for name in ("transformers", "tokenizers", "safetensors", "huggingface_hub"):
    sys.modules[name] = None
import skfairdp
for module in pkgutil.walk_packages(skfairdp.__path__, "skfairdp."):
    importlib.import_module(module.name)
from skfairdp import BagOfEmbeddingsEncoder, FederateClassifier
from skfairdp.adversarial import TransformersEncoder
clf = FederateClassifier(encoder=BagOfEmbeddingsEncoder(4), fairness_penalty=0, max_epochs=1)
clf.fit(["a b", "c"] * 9, [0, 1] * 9)
try:
    TransformersEncoder().fit()
except ImportError as error:
    print(error)
"""
    root = Path(skfairdp.__file__).parents[1]
    ran = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() == "TransformersEncoder needs the package transformers: pip install 'skfairdp[text]'."


def test_routing_of_groups_in_a_pipeline(folder):
    from skfairdp import WordDropout

    texts, y, z = documents(80)
    with sklearn.config_context(enable_metadata_routing=True):
        clf = federate(TransformersEncoder(folder, max_length=32), max_epochs=2)
        pipeline = make_pipeline(WordDropout(0.1, random_state=0), clf.set_fit_request(sensitive_features=True))
        pipeline.fit(texts, y, sensitive_features=z)
    assert len(clf.sensitive_groups_) == 1
