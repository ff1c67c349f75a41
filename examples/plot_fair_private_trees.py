"""
Boosted trees, fair and private
===============================

Gradient-boosted trees are what most people train on a table, and they have no representation to add noise to. But one
answer per record is all that has to leave. You will see ``FairPrivateClassifier`` correct the answers of such trees so
that groups are treated alike, draw them so that an epsilon holds, and give the whole frontier from one training.
"""

# %%
# A table on which a plain model is unfair
# ----------------------------------------
# One group gets the good label more often, and the features tell the group.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier

from skfairdp import FairPrivateClassifier, tpr_gap
from skfairdp.datasets import make_biased_classification
from skfairdp.inspection import TradeoffDisplay

data = make_biased_classification(
    n_samples=12_000, group_shift=1.5, label_bias=0.4, random_state=0
)
X, y, group = data.data, data.target, data.sensitive_features
train, test = slice(0, 8_000), slice(8_000, None)

trees = HistGradientBoostingClassifier(max_iter=50, random_state=0)
plain = trees.fit(X[train], y[train]).predict(X[test])
print(f"plain trees: accuracy {np.mean(plain == y[test]):.3f}, ", end="")
print(f"TPR gap {tpr_gap(y[test], plain, sensitive_features=group[test]):.3f}")

# %%
# One fit
# -------
# It gives the whole curve of accuracy over gap, on rows that the trees had not seen. The point that was taken is the
# fairest within one point of accuracy. No groups are needed to answer.

clf = FairPrivateClassifier(trees, epsilon=4.0, random_state=0)
clf.fit(X[train], y[train], sensitive_features=group[train])
answers = clf.predict(X[test])
print(f"fair and private: accuracy {np.mean(answers == y[test]):.3f}, ", end="")
print(f"TPR gap {tpr_gap(y[test], answers, sensitive_features=group[test]):.3f}")
print(clf.privacy_)
TradeoffDisplay.from_estimator(clf)
plt.show()

# %%
# Other epsilons need no second training
# --------------------------------------
# ``accuracy_bound`` is what no mechanism of this epsilon that gives the groups the same rates can exceed, for what
# these trees believe. ``expected_accuracy`` reaches it: there is nothing left to gain by a cleverer way of adding
# noise.

columns = ["epsilon", "accuracy", "tpr_gap", "expected_accuracy", "accuracy_bound"]
print(clf.frontier([1, 2, 3, 4, 8])[columns].round(3).to_string(index=False))

# %%
# The frontier over epsilon
# -------------------------
# ``set_epsilon`` changes the promise of the fitted model, and ``tradeoff_`` follows. Each line is what one epsilon
# allows, from the plain answers (right) to equal rates (left). Privacy costs much more accuracy here than fairness
# does.

# sphinx_gallery_thumbnail_number = 2
fig, ax = plt.subplots(figsize=(5.8, 4.0), layout="constrained")
for colour, epsilon in zip(
    plt.cm.viridis(np.linspace(0.85, 0.0, 5)), (1.0, 2.0, 3.0, 4.0, np.inf)
):
    curve = clf.set_epsilon(epsilon).tradeoff_.query("strength <= 1")
    name = "no noise" if np.isinf(epsilon) else f"epsilon {epsilon:g}"
    (line,) = ax.plot(curve["tpr_gap"], curve["accuracy"], color=colour, linewidth=2.5)
    ax.annotate(
        name,
        (curve["tpr_gap"].max(), curve["accuracy"].max()),
        (6, -3),
        textcoords="offset points",
    )
ax.set(
    xlabel="TPR gap of released answers",
    ylabel="accuracy of released answers",
    xlim=(-0.004, 0.15),
)
ax.set_title("Fairness costs little, privacy is paid in accuracy")
plt.show()
