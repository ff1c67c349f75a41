"""
How many teachers does PATE need?
=================================

PATE trains many teachers on disjoint parts of the private rows, and adds noise to their votes. Few teachers drown in
the noise; many teachers have few rows each, and know less. You will look for the number in between, at two epsilons,
and see how it depends on the budget.
"""

# %%
# Ensembles of growing size
# -------------------------
# The private rows stay the same, 3,000 of them, and are shared by more and more teachers. 300 public rows are labelled
# by noisy votes, and a student learns from them.

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.tree import DecisionTreeClassifier

from skfairdp import PATEClassifier, pate_fairness
from skfairdp.datasets import make_biased_classification
from skfairdp.inspection import FlippingDisplay

data = make_biased_classification(5300, random_state=0)
X, y, groups = data.data, data.target, data.sensitive_features
private, public, test = slice(0, 3000), slice(3000, 3300), slice(3300, None)

SIZES = (5, 15, 50, 150, 500, 1500)
ensembles = {}
for n_teachers in SIZES:
    pate = PATEClassifier(
        DecisionTreeClassifier(max_depth=4, random_state=0),
        n_teachers=n_teachers,
        n_queries=300,
        classes=[0, 1],
        random_state=0,
    )
    ensembles[n_teachers] = pate.fit(X[private], y[private], public=X[public])

# %%
# Many students of the same votes
# -------------------------------
# One student depends on one draw of the noise. :func:`~skfairdp.ensemble.pate_fairness` draws it a hundred times, for
# any epsilon, from the same votes. It looks at the private votes: its tables are for those who may see the private
# rows.

lines, analyses = [], []
for n_teachers, pate in ensembles.items():
    for epsilon in (0.5, 4.0):
        analysis = pate_fairness(
            pate,
            X[test],
            sensitive_features=groups[test],
            y=y[test],
            epsilon=epsilon,
            random_state=0,
        )
        analyses.append(analysis)
        accuracy = analysis.performance.loc["accuracy"]
        lines.append(
            {
                "epsilon": epsilon,
                "teachers": n_teachers,
                "rows per teacher": 3000 // n_teachers,
                "with noise": accuracy["private"],
                "error": accuracy["standard_error"],
                "without noise": accuracy["clean"],
            }
        )
table = pd.DataFrame(lines)
print(table.sort_values(["epsilon", "teachers"]).round(3).to_string(index=False))

# %%
# How often noise changes a label
# -------------------------------
# The more teachers vote, the larger their counts, and the less often noise of the same scale turns a winner into a
# loser, until teachers know so little that they disagree. This is at an epsilon of 4, where the noise is the same for
# any number of teachers.

FlippingDisplay.from_analyses(one for one in analyses if one.epsilon == 4.0)
plt.show()

# %%
# The picture
# -----------
# Without noise a handful of teachers would do. With noise the accuracy first rises with their number, because a vote of
# many is not overturned, and falls when each has too few rows. The smaller the epsilon, the more teachers are worth
# having. The grey line is the same student without noise.

# sphinx_gallery_thumbnail_number = 2
fig, ax = plt.subplots(figsize=(5.8, 4.0), layout="constrained")
ax.plot(
    SIZES,
    table.query("epsilon == 4")["without noise"],
    "--",
    color="0.5",
    label="no noise",
)
for (epsilon, part), style in zip(table.groupby("epsilon", sort=False), ("s-", "o-")):
    ax.errorbar(
        part["teachers"],
        part["with noise"],
        part["error"],
        fmt=style,
        label=f"epsilon {epsilon:g}",
    )
ax.set_xscale("log")
ax.set_xticks(SIZES, [f"{size:,}" for size in SIZES])
ax.minorticks_off()
ax.set(
    xlabel="teachers that share 3,000 private rows", ylabel="accuracy of the student"
)
ax.set_title("A smaller epsilon wants more teachers")
ax.legend(frameon=False, loc="lower right")
plt.show()
