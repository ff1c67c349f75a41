r"""
Data whose bias has knobs
=========================

A method that promises fairness or privacy should first be tried where the truth is known. You will make tables and
texts whose bias is set by knobs, see that what is measured agrees with a formula, and see how skewed sampling makes a
model unfair.
"""

# %%
# How strongly do the features give the group away?
# -------------------------------------------------
# :func:`~skfairdp.datasets.make_biased_classification` makes the rows. ``group_shift`` is the distance between the
# groups' means in standard deviations. With independent labels the best attacker is right with probability
# :math:`\Phi(\mathrm{group\_shift} / 2)`; a logistic regression comes close, and at 0 it can only guess.

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from skfairdp.datasets import make_biased_classification, make_biased_text

shifts = np.linspace(0, 4, 9)
attacks = []
for shift in shifts:
    train = make_biased_classification(
        4000, label_bias=0.0, group_shift=shift, random_state=0
    )
    test = make_biased_classification(
        4000, label_bias=0.0, group_shift=shift, random_state=1
    )
    attacker = LogisticRegression().fit(train.data, train.sensitive_features)
    attacks.append(attacker.score(test.data, test.sensitive_features))

fig, ax = plt.subplots(figsize=(5.8, 4.0), layout="constrained")
ax.plot(shifts, norm.cdf(shifts / 2), color="0.6", label="best possible attacker")
ax.plot(shifts, attacks, "o", label="logistic regression")
ax.set(
    xlabel="group_shift (standard deviations)",
    ylabel="accuracy on the group",
    ylim=(0.45, 1.0),
)
ax.set_title("The further apart, the easier to tell")
ax.legend()
plt.show()

# %%
# The same for words
# ------------------
# In :func:`~skfairdp.datasets.make_biased_text` each sentence has one word that tells the sentiment and one that tells
# the author's (invented) region.

reviews = make_biased_text(4000, label_bias=0.0, random_state=0)
for document, region in zip(reviews.data[:3], reviews.sensitive_features[:3]):
    print(f"{region:>6}: {document}")

# %%
# A sentiment classifier and an attacker on the same words. With three sentences each of them takes a majority of three
# votes, so the best possible accuracy has a formula, too.

unseen = make_biased_text(40_000, label_bias=0.0, random_state=1)
for key, signal in (("target", 0.8), ("sensitive_features", 0.6)):
    model = make_pipeline(CountVectorizer(), LogisticRegression()).fit(
        reviews.data, reviews[key]
    )
    q = signal + (1 - signal) / 2
    best = q**3 + 3 * q**2 * (1 - q)
    print(
        f"{key}: measured {model.score(unseen.data, unseen[key]):.3f}, best possible {best:.3f}"
    )

# %%
# What skewed sampling does
# -------------------------
# ``skew`` is the probability that label and group agree in the sample; 0.8 is the 40/10/10/40 training set of Elazar
# and Goldberg (2018). The world stays the same: a balanced test set is a second call with ``skew=None`` and another
# ``random_state``. The more the training rows are skewed, the more a model reads the group instead of the label. The
# gap is that of the true positive rates on the balanced test set, where the groups deserve the same.

skews = np.linspace(0.5, 0.95, 7)
gaps = {}
for shift in (0.0, 2.0, 4.0):
    test = make_biased_classification(
        10_000, label_bias=0.0, group_shift=shift, random_state=1
    )
    deserving = test.target == 1
    first, second = (deserving & (test.sensitive_features == g) for g in (0, 1))
    gaps[shift] = []
    for skew in skews:
        train = make_biased_classification(
            4000, label_bias=0.0, group_shift=shift, skew=skew, random_state=0
        )
        predicted = (
            LogisticRegression().fit(train.data, train.target).predict(test.data)
        )
        gaps[shift].append(predicted[second].mean() - predicted[first].mean())

fig, ax = plt.subplots(figsize=(5.8, 4.0), layout="constrained")
for shift, gap in gaps.items():
    ax.plot(skews, gap, "o-", label=f"group_shift={shift:g}")
ax.set(
    xlabel="share of training rows where label and group agree",
    ylabel="TPR gap on balanced rows",
)
ax.set_title("Skewed rows teach a model to prefer a group")
ax.legend()
plt.show()

# sphinx_gallery_thumbnail_number = 2
