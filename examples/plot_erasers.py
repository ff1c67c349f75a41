"""
LEACE and INLP: erasing a group from features
=============================================

An eraser removes what a linear model can read of a group, and leaves the rest. You will compare the two that the
package has: INLP removes one direction after the other, LEACE solves for the smallest change at once. You will also
see what neither of them can do.
"""

# %%
# Two kinds of traces
# -------------------
# In the made rows the means of the groups differ, which a linear attacker sees. One more column has the same mean in
# both groups and a larger spread in one of them, which only a non-linear attacker sees.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score

from skfairdp import INLPEraser, LEACEEraser, leakage_score
from skfairdp.datasets import make_biased_classification

data = make_biased_classification(
    3000, n_features=8, group_shift=2.0, label_bias=0.3, random_state=0
)
group, y = data.sensitive_features, data.target
spread = np.random.default_rng(0).normal(size=len(y)) * np.where(group == 1, 3.0, 1.0)
X = np.column_stack([data.data, spread])


def measured(rows):
    """Two attackers, the accuracy on the label that is left, and how far the rows were moved."""
    return {
        "linear attack": leakage_score(
            rows, group, probe="linear", cv=3, random_state=0
        ),
        "trees attack": leakage_score(
            rows, group, probe="boosting", cv=3, random_state=0
        ),
        "label": float(cross_val_score(LogisticRegression(), rows, y, cv=3).mean()),
        "moved": float(np.mean(np.sum((rows - X) ** 2, axis=1))),
    }


# %%
# LEACE: one step
# ---------------
# It removes one dimension for two groups, and moves the rows as little as any affine map can that keeps its promise.

leace = LEACEEraser().fit(X, sensitive_features=group)
by_leace = measured(leace.transform(X))
print(
    f"{leace.rank_} dimension removed,",
    {name: round(value, 3) for name, value in by_leace.items()},
)

# %%
# INLP: round by round
# --------------------
# Each round trains a logistic regression of the group on what is left, and removes its direction. ``advantages_`` tells
# how far each of them was above guessing.

rounds = range(7)
by_inlp = [measured(X)]
for n_iterations in rounds[1:]:
    inlp = INLPEraser(n_iterations=n_iterations).fit(X, sensitive_features=group)
    by_inlp.append(measured(inlp.transform(X)))
print("advantage of the classifier of each round:", np.round(inlp.advantages_, 3))

# %%
# The picture
# -----------
# Both bring the linear attacker down to guessing, INLP after a few rounds. The trees still find the group by its
# spread: an eraser protects from linear models and from nobody else. On the right, INLP pays for every direction that
# it removes, until its classifier finds nothing more.

fig, axes = plt.subplots(1, 2, figsize=(6.4, 4.4), layout="constrained")
for name, style in {"linear attack": "o-", "trees attack": "s-"}.items():
    (line,) = axes[0].plot(
        rounds, [one[name] for one in by_inlp], style, label=f"INLP, {name}"
    )
    axes[0].axhline(
        by_leace[name], color=line.get_color(), linestyle=":", label=f"LEACE, {name}"
    )
axes[0].set(ylabel="attacker names the group", ylim=(0.45, 1.0))
axes[1].plot(
    rounds, [one["moved"] for one in by_inlp], "o-", color="#009E73", label="INLP"
)
axes[1].axhline(by_leace["moved"], color="#009E73", linestyle=":", label="LEACE")
axes[1].set(ylabel="mean squared distance moved", ylim=(0, None))
for ax in axes:
    ax.set_xlabel("rounds of INLP")
    ax.legend(frameon=False)
fig.suptitle("Erasers stop linear attackers, not trees")
plt.show()
