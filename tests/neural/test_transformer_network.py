"""A transformer keeps its rows apart, trains what it is told to train, and says what is wrong with a name."""

import sys

import numpy as np
import pytest
import torch

from skfairdp.neural import (
    TransformerNetwork,
    frozen_features,
    load_tokenizer,
    load_transformer,
    token_ids,
    transformer_fingerprint,
)
from skfairdp.neural._transformer_network import NO_TOKEN
from tests._tiny_bert import documents, save_tiny_bert, tiny_bert


@pytest.fixture(scope="module")
def bert():
    return tiny_bert()


@pytest.fixture(scope="module")
def ids(bert):
    texts, _, _ = documents(90)
    return torch.tensor(token_ids(bert[1], [*texts, "film"], 16))


def network(model, **settings):
    return TransformerNetwork(model, **settings).eval()


def test_token_ids_are_cut_off_and_filled_up(bert):
    _, tokenizer = bert
    mask, film, start, end = (tokenizer.get_vocab()[word] for word in ("[MASK]", "film", "[CLS]", "[SEP]"))
    assert token_ids(tokenizer, ["film [MASK]", ""], 64).tolist() == [
        [start, film, mask, end],
        [start, end, NO_TOKEN, NO_TOKEN],
    ]
    assert token_ids(tokenizer, ["film film film film"], 3).tolist() == [[start, film, end]]


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_rows_do_not_depend_on_their_batch(bert, ids, pooling):
    encode = network(bert[0], pooling=pooling)
    with torch.no_grad():
        together = encode(ids)
        for batch in (1, 2, 17, 64):
            parts = [encode(part) for part in ids.split(batch)]
            assert torch.equal(torch.cat(parts), together)
        order = torch.randperm(len(ids), generator=torch.Generator().manual_seed(0))
        assert torch.equal(encode(ids[order]), together[order])
        wider = torch.nn.functional.pad(ids, (0, 20), value=NO_TOKEN)
        assert torch.equal(encode(wider), together)


def test_padding_of_training_is_masked(bert, ids):
    encode = network(bert[0])
    with torch.no_grad():
        padded, alone = encode._padded(ids), encode._by_length(ids)
        assert torch.allclose(padded, alone, atol=1e-5)
        # A network that reads padding as words would be found.
        unmasked = bert[0](input_ids=ids.clamp_min(0)).last_hidden_state[:, 0]
        masked = network(bert[0], pooling="cls")._padded(ids)
    assert (unmasked - masked).abs().max() > 0.01


def test_a_document_without_tokens_is_zero(bert):
    encode = network(bert[0])
    nothing = torch.full((2, 5), NO_TOKEN)
    nothing[1, 0] = 7
    with torch.no_grad():
        out = encode(nothing)
    assert torch.equal(out[0], torch.zeros(32))
    assert out[1].abs().max() > 0
    assert encode(nothing[:0]).shape == (0, 32)


def test_frozen_features_are_those_of_the_network(bert, ids, capsys):
    encode = network(bert[0], batch_size=8)
    with torch.no_grad():
        expected = encode(ids).numpy()
    assert np.array_equal(frozen_features(encode, ids.numpy(), "cpu", show_progress=True), expected)
    assert "91/91" in capsys.readouterr().err


@pytest.mark.parametrize(("trainable", "learning"), [("none", set()), (1, {1}), (2, {0, 1}), ("all", {0, 1, "words"})])
def test_layers_that_learn(trainable, learning):
    model, _ = tiny_bert()
    TransformerNetwork(model, trainable=trainable)
    found = {i for i, layer in enumerate(model.encoder.layer) if all(p.requires_grad for p in layer.parameters())}
    assert found | ({"words"} if model.embeddings.word_embeddings.weight.requires_grad else set()) == learning


def test_more_layers_than_there_are(bert):
    with pytest.raises(ValueError, match="trainable"):
        TransformerNetwork(load_transformer(bert[0]), trainable=3)


def test_mixed_precision_is_near_single_precision(bert, ids):
    dtypes = []
    layer = bert[0].encoder.layer[0].output.dense
    hook = layer.register_forward_hook(lambda module, given, made: dtypes.append(made.dtype))
    with torch.no_grad():
        exact = network(bert[0])(ids)
        assert set(dtypes) == {torch.float32}
        dtypes.clear()
        mixed = network(bert[0], mixed_precision=True)(ids)
        assert set(dtypes) == {torch.bfloat16}
    hook.remove()
    assert mixed.dtype == torch.float32
    assert (exact - mixed).abs().max() < 0.1


def test_loaded_from_a_folder(tmp_path, bert, ids):
    folder = save_tiny_bert(tmp_path)
    loaded, tokenizer = load_transformer(folder), load_tokenizer(tmp_path)
    with torch.no_grad():
        assert torch.equal(network(loaded)(ids), network(bert[0])(ids))
    again = network(load_transformer(tmp_path))
    assert transformer_fingerprint(again, tokenizer, 1) == transformer_fingerprint(network(loaded), tokenizer, 1)
    assert transformer_fingerprint(again, tokenizer, 1) != transformer_fingerprint(again, tokenizer, 2)
    with torch.no_grad():
        again.transformer.embeddings.word_embeddings.weight[7, 0] += 1
    assert transformer_fingerprint(again, tokenizer, 1) != transformer_fingerprint(network(loaded), tokenizer, 1)


def test_missing_weights_are_no_model(tmp_path):
    from safetensors.torch import load_file, save_file

    save_tiny_bert(tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    weights.pop("encoder.layer.1.output.dense.weight")
    save_file(weights, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(OSError, match=r"encoder\.layer\.1\.output\.dense\.weight"):
        load_transformer(tmp_path)


@pytest.mark.parametrize(("load", "parameter"), [(load_transformer, "model"), (load_tokenizer, "tokenizer")])
def test_a_wrong_name_says_what_to_do(load, parameter, tmp_path):
    for name in ("bert-base-uncasedd", str(tmp_path)):
        with pytest.raises(OSError, match=rf"{parameter}='.*' could not be loaded.*Without network, .*save_pretrained"):
            load(name)


def test_what_is_no_model():
    with pytest.raises(TypeError, match=r"model must be the name of a model, .* got int"):
        load_transformer(7)


def test_without_the_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(ImportError, match=r"pip install 'skfairdp\[text\]'"):
        load_tokenizer("bert-base-uncased")
