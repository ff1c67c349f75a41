r"""
What a private representation costs, and whom
=============================================

:class:`~skfairdp.adversarial.FederateClassifier` encodes a record, makes the encoding private, and predicts from what
is released. This example asks four questions of it on data whose bias is known: what does an exact epsilon cost in
accuracy with either channel, why is the Laplace representation so narrow, what does fairness cost on top, and
did the adversary ever have a chance?
"""

# %%
# Accuracy over exact epsilon
# ---------------------------
# The Laplace channel adds noise of scale :math:`2 / \varepsilon` to every coordinate. The code channel releases one of
# ``n_codes`` learned codes and spends the whole budget on the one decision that matters.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from skfairdp import FederateClassifier, tpr_gap
from skfairdp.datasets import make_biased_classification
from skfairdp.inspection import PrivacyCurveDisplay, TrainingHistoryDisplay
from skfairdp.metrics import leakage_score

data = make_biased_classification(6000, group_shift=1.5, label_bias=0.4, random_state=0)
X_train, X_test, y_train, y_test, z_train, z_test = train_test_split(
    data.data, data.target, data.sensitive_features, test_size=0.4, random_state=0
)
training = {
    "batch_size": 300,
    "max_epochs": 15,
    "learning_rate": 0.01,
    "encoder_hidden_sizes": (40,),
    "random_state": 0,
}


def fit(**settings):
    return FederateClassifier(**training, **settings).fit(X_train, y_train, sensitive_features=z_train)


runs = []
for channel in ("codes", "laplace"):
    for epsilon in (1.0, 2.0, 4.0, 8.0, 16.0):
        clf = fit(epsilon=epsilon, channel=channel, adversary_weight=0.0)
        released = clf.transform(X_test)
        runs.append(
            {
                "channel": channel,
                "epsilon": round(clf.privacy_.epsilon, 6),
                "accuracy": clf.score(X_test, y_test),
                "leakage": leakage_score(released, z_test, random_state=0),
            }
        )
majority = pd.Series(z_test).value_counts(normalize=True).max()
display = PrivacyCurveDisplay.from_table(runs, method="channel", majority=majority)
display.ax_.set_title("accuracy and leakage over exact epsilon")
plt.show()

# %%
# Why the Laplace representation is narrow
# ----------------------------------------
# A row has L1 norm 1 however wide it is, and every coordinate gets the full noise. The best row of two classes puts all
# its weight into one coordinate, so nothing is won by more of them; and training has to find that coordinate
# among ever more noise.

widths = (1, 2, 8, 32, 128)
accuracy = [
    fit(epsilon=4.0, channel="laplace", n_components=width, adversary_weight=0.0).score(X_test, y_test)
    for width in widths
]

fig, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
ax.plot(widths, accuracy, "o-")
ax.set_xscale("log", base=2)
ax.set_xticks(widths, widths)
ax.set(xlabel="n_components", ylabel="accuracy on the test part", title="Laplace channel, epsilon 4")
plt.show()

# %%
# What fairness costs on top
# --------------------------
# ``fairness_penalty`` weighs the expected gap of a definition, here the difference of true positive rates. The
# expectation over the codes is exact, and so is the gap that training sees.

penalties = (0.0, 0.1, 0.2, 0.4)
points = []
for penalty in penalties:
    clf = fit(epsilon=4.0, channel="codes", adversary_weight=0.0, fairness_penalty=penalty)
    answers = clf.predict(X_test)
    points.append((np.mean(answers == y_test), tpr_gap(y_test, answers, sensitive_features=z_test)))
accuracies, gaps = np.array(points).T

fig, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
ax.plot(gaps, accuracies, "o-", color="#009E73")
for penalty, gap, value in zip(penalties, gaps, accuracies):
    ax.annotate(f"{penalty:g}", (gap, value), textcoords="offset points", xytext=(6, 4), fontsize=9)
ax.set(xlabel="TPR-gap on the test part", ylabel="accuracy", title="codes, epsilon 4, by fairness_penalty")
ax.set_ylim(0.8, 0.88)  # the differences in accuracy are within the noise of 2400 rows
plt.show()

# %%
# Did the adversary learn anything?
# ---------------------------------
# Without noise the adversary starts to read the group from the representation, until the reversed gradient takes
# it away. At chance throughout would be suspicious: an adversary that cannot learn protects nobody.

TrainingHistoryDisplay.from_estimator(fit(epsilon=np.inf, n_components=10, adversary_weight=1.0))
plt.show()
