"""A transformer that tests build themselves: a configuration, a vocabulary, and weights at random."""

import numpy as np

GOOD, BAD, FILLER = ("great", "lovely", "fine"), ("awful", "dull", "poor"), ("film", "book", "the", "a", "of", "it")
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def tiny_bert(words=(*GOOD, *BAD, *FILLER, "he", "she"), *, hidden_size=32, n_layers=2, seed=0):
    """Return a model with random weights, and a tokenizer that knows the words."""
    import torch
    from transformers import BertConfig, BertModel, BertTokenizer

    vocabulary = [*SPECIAL, *words]
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=hidden_size,
        num_hidden_layers=n_layers,
        num_attention_heads=2,
        intermediate_size=2 * hidden_size,
        max_position_embeddings=128,
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = BertModel(config, add_pooling_layer=False)
    return model, BertTokenizer({word: i for i, word in enumerate(vocabulary)})


def save_tiny_bert(folder, **settings):
    """Save both to a folder, from which they are loaded as any published model."""
    model, tokenizer = tiny_bert(**settings)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def documents(n=300, seed=0, most_filler=8):
    """Short documents of different lengths: two words tell the class, one the group."""
    rng = np.random.default_rng(seed)
    y, z = rng.integers(2, size=n), rng.integers(2, size=n)
    texts = [
        " ".join(
            rng.permutation(
                [
                    *rng.choice(GOOD if label else BAD, 2),
                    *rng.choice(FILLER, rng.integers(1, most_filler)),
                    ["he", "she"][group],
                ]
            )
        )
        for label, group in zip(y, z)
    ]
    return texts, y, z
