"""
Text: from documents to a private, fair classifier
==================================================

A review says what its author thinks, and how it is worded says who wrote it. A transformer reads both. Here one is
trained end to end with a private channel behind it: the server gets a noisy code that tells the sentiment, and less of
the author than the sentiment itself would. The corpus is made up and the model is tiny, so that this page needs no
network; with a real one, write ``TransformersEncoder("bert-base-uncased", trainable="last")`` and nothing else changes.
"""

# %%
# Four of five reviews by "north" are negative, four of five by "east" positive, and words tell the author more surely
# than the sentiment. A model that wants to be right will guess by the author.
import re

import matplotlib.pyplot as plt
import torch
from sklearn.pipeline import make_pipeline
from transformers import BertConfig, BertModel, BertTokenizer

from skfairdp import (
    FederateClassifier,
    WordDropout,
    leakage_score,
    pipeline_guarantee,
    tpr_gap,
)
from skfairdp.adversarial import TransformersEncoder
from skfairdp.datasets import make_biased_text
from skfairdp.pipeline import word_guarantee

reviews = make_biased_text(
    2000, label_bias=0.0, skew=0.8, label_signal=0.5, group_signal=0.8, random_state=0
)
texts, y, region = reviews.data, reviews.target, reviews.sensitive_features
train, test = slice(0, 1200), slice(1200, None)
print(texts[0])

# %%
# A model is a name, a folder, or an object with its tokenizer. This one has two layers and knows the corpus's words.
words = sorted({word for text in texts for word in re.findall(r"\w+|\.", text.lower())})
vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]
torch.manual_seed(0)
size = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
}
model = BertModel(BertConfig(vocab_size=len(vocabulary), **size))
tokenizer = BertTokenizer({word: i for i, word in enumerate(vocabulary)})
encoder = TransformersEncoder(
    model, tokenizer=tokenizer, max_length=64, trainable="all", learning_rate=1e-3
)

# %%
# Three classifiers: without noise, with an epsilon of 4 for every document, and with a penalty on the gap as well.
settings = {
    "encoder": encoder,
    "max_epochs": 5,
    "batch_size": 64,
    "adversary_weight": 0.0,
    "random_state": 0,
}
models = {
    "no noise": FederateClassifier(
        float("inf"), n_components=16, fairness_penalty=0.0, **settings
    ),
    "private": FederateClassifier(4.0, fairness_penalty=0.0, **settings),
    "private and fair": FederateClassifier(4.0, fairness_penalty=1.0, **settings),
}
figures = {}
for name, clf in models.items():
    clf.fit(texts[train], y[train], sensitive_features=region[train])
    answers, released = clf.predict(texts[test]), clf.transform(texts[test])
    figures[name] = {
        "accuracy": (answers == y[test]).mean(),
        "TPR-gap between regions": tpr_gap(
            y[test], answers, sensitive_features=region[test]
        ),
        "authors read by an attacker": leakage_score(
            released, region[test], probe="linear", random_state=0
        ),
    }

# %%
# What the epsilon is for: behind word dropout, a single word has a receipt of its own, smaller than the document's.
pipeline = make_pipeline(WordDropout(0.3), models["private and fair"])
pipeline[0].fit()
document, word = pipeline_guarantee(pipeline, rows="new"), word_guarantee(pipeline)
print(f"a document: {document.epsilon:.2f}, a word: {word.epsilon:.2f}")

# %%
# Whoever knows the true sentiment names the author in eight of ten cases: that is the dotted line. Without noise the
# representation tells more than this, because it has kept the wording. One noisy code of two has no room for wording.
# The penalty then closes the gap between the regions, and costs some accuracy: on labels that are themselves unequal,
# guessing by the author was worth something.
figure, axes = plt.subplots(
    3, 1, figsize=(6.4, 5.4), sharex=True, sharey=True, layout="constrained"
)
figure.suptitle("One noisy bit tells less of the author; a penalty closes the gap")
for ax, column in zip(axes, next(iter(figures.values()))):
    values = [found[column] for found in figures.values()]
    ax.barh(list(figures), values, color=["0.6", "#56B4E9", "#0072B2"])
    ax.bar_label(
        ax.containers[0],
        fmt="%.2f",
        padding=3,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
    )
    ax.set(title=column, xlim=(0, 1.1), ylim=(-0.7, 2.5))
    ax.spines[["top", "right"]].set_visible(False)
axes[0].invert_yaxis()
axes[2].axvline(0.8, color="0.3", linestyle=":")
axes[2].annotate(
    "from the true sentiment",
    (0.8, -0.5),
    ha="right",
    xytext=(-3, 0),
    textcoords="offset points",
    fontsize=8,
)
plt.show()
