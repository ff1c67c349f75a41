"""
A tour in ten minutes
=====================

You know scikit-learn, and nothing of privacy or fairness yet. In four steps you will measure how unequally a model
treats two groups, see what its answers give away about a person, make the same model fair and private, and attack
the promise that comes with it.
"""

# %%
# A table of people
# -----------------
# Features, a label (1 is what people want, a loan for instance) and a group. The groups do not get the label equally
# often, and the features differ between them. The data are made, so that you need no download.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import accuracy_score
from sklearn.model_selection import train_test_split

from skfairdp import (
    FairPrivateClassifier,
    audit_epsilon,
    group_rates,
    leakage_score,
    tpr_gap,
)
from skfairdp.datasets import make_biased_classification
from skfairdp.inspection import GroupRatesDisplay

data = make_biased_classification(6000, group_shift=1.5, label_bias=0.4, random_state=0)
group = np.where(data.sensitive_features == 0, "east", "west")
X, X_test, y, y_test, group, group_test = train_test_split(
    data.data, data.target, group, random_state=0
)
print(X.shape, X_test.shape)

# %%
# 1. How fair is a plain model?
# -----------------------------
# Of the people who deserve a 1, how many get it? This share is the *true positive rate* (TPR), and it should not depend
# on the group. The group is no feature here, but the others tell it.

trees = HistGradientBoostingClassifier(max_iter=40, random_state=0)
plain = trees.fit(X, y).predict(X_test)
gap = tpr_gap(y_test, plain, sensitive_features=group_test)
print(f"accuracy {accuracy_score(y_test, plain):.3f}, TPR gap {gap:.3f}")
group_rates(y_test, plain, sensitive_features=group_test).round(3)

# %%
# 2. What do its answers give away?
# ---------------------------------
# Somebody sees what the model says about a person, and guesses the person's group from it. The score is how often the
# best of several attackers is right; without looking, about half of the guesses are.

beliefs = trees.predict_proba(X_test)
leakage = leakage_score(beliefs, group_test, cv=3, random_state=0)
print(f"attackers who see the probabilities are right in {leakage:.0%} of the cases")

# %%
# 3. Fair and private
# -------------------
# :class:`~skfairdp.postprocessing.FairPrivateClassifier` wraps a classifier. It equalises the groups' rates, and draws
# each answer partly at random. The guarantee is a number, *epsilon*: whatever somebody believes about a record, seeing
# its answer changes the odds by a factor of at most ``exp(epsilon)``. Smaller is more private. Here epsilon is 3. The
# group is needed to train, never to predict. (``random_state`` is for this page, so that it shows the same numbers
# every time. Leave it out where privacy matters.)

model = FairPrivateClassifier(trees, epsilon=3.0, random_state=0)
model.fit(X, y, sensitive_features=group)
private = model.predict(X_test)
gap = tpr_gap(y_test, private, sensitive_features=group_test)
print(f"accuracy {accuracy_score(y_test, private):.3f}, TPR gap {gap:.3f}")

# %%
# Every private object has a receipt. It says what is covered, and what is not.

model.privacy_

# %%
# 4. Do not believe it: attack it
# -------------------------------
# The auditor runs the model many times on two records that the trees judge most differently, and counts the answers. It
# certifies an epsilon from below, which must not exceed the promise. An attack can refute a promise; only a proof can
# confirm it.

surest, least_sure = X_test[beliefs[:, 1].argmax()], X_test[beliefs[:, 1].argmin()]
audit = audit_epsilon(model, surest, least_sure, n_trials=4000, random_state=0)
print(
    f"promised {audit.claimed_epsilon:g}, certified at least {audit.epsilon_lower:.2f}"
)
print("the promise is refuted" if audit.contradicts else "nothing against the promise")

# %%
# What was won, and what it cost
# ------------------------------
# Rates of both models on people whom they have not seen, with 95 % intervals. The true positive rates of the two
# regions have come together. The accuracy is lower, because some answers are drawn against the model's own opinion:
# that is what hides a record.

fig, ax = plt.subplots(figsize=(5.8, 4.0), layout="constrained")
answers = {"plain trees": plain, "fair, epsilon 3": private}
GroupRatesDisplay.from_predictions(
    y_test,
    answers,
    sensitive_features=group_test,
    rates=("accuracy", "tpr"),
    pos_label=1,
    ax=ax,
)
ax.set(xlabel="share of test rows", xlim=(0.6, 1.0))
ax.set_title("Fair and private costs a few points of accuracy")
plt.show()
