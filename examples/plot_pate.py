"""
Who pays for the noise of PATE
==============================

Teachers are trained on private rows and vote on public ones, and a student learns from noisy votes. The noise costs
some people more than others. You will measure the cost for two groups, with hard labels (the winner of the noisy
vote) and with soft ones (noisy shares of the votes), at the same exact epsilon.
"""

# %%
# Data and teachers
# -----------------
# Two groups of equal size, one of which has fewer positive rows and lies elsewhere in space. 60 small networks are
# trained on disjoint parts of the private rows, all at once. The receipt speaks of the rows that they learned from.

import matplotlib.pyplot as plt
import numpy as np

from skfairdp import PATEClassifier, pate_fairness
from skfairdp.datasets import make_biased_classification
from skfairdp.inspection import BoundaryDisplay, SoftLabelDisplay

data = make_biased_classification(8000, random_state=0)
X, y = data.data, data.target
groups = np.where(data.sensitive_features == 0, "group A", "group B")
private, public, test = slice(0, 6000), slice(6000, 6500), slice(6500, None)

pate = PATEClassifier(
    n_teachers=60,
    epsilon=5.0,
    n_queries=200,
    student_regularization=0.1,
    classes=[0, 1],
    random_state=0,
)
pate.fit(X[private], y[private], public=X[public])
print(f"noise of scale {pate.noise_scale_:.1f} on the counts of {pate.n_voting_} votes")
print(f"accuracy of the student: {pate.score(X[test], y[test]):.3f}")
pate.privacy_

# %%
# Hard against soft labels
# ------------------------
# Both kinds of labels are released from the same votes, a hundred times each. *Excessive risk* is the loss
# (cross-entropy) that noise adds for a group, compared with a student of the same votes without noise. A gap alone can
# be made small by a student that says nothing, so that accuracy stands beside it.

settings = {"sensitive_features": groups[test], "y": y[test], "random_state": 0}
analyses = {
    (epsilon, labels): pate_fairness(
        pate, X[test], labels=labels, epsilon=epsilon, **settings
    )
    for epsilon in (2.0, 5.0, 15.0)
    for labels in ("hard", "soft")
}
for (epsilon, labels), one in analyses.items():
    print(
        f"epsilon {epsilon:3g} {labels}: gap {1000 * one.gap:5.2f} +- {1000 * one.gap_standard_error:.2f} "
        f"thousandths, accuracy {one.performance.loc['accuracy', 'private']:.3f}"
    )

# %%
SoftLabelDisplay.from_analyses(analyses.values())
plt.show()

# %%
# Rows that are close to the boundary
# -----------------------------------
# Where the student is undecided, labels flip. The rank correlation in the titles tells how much of the risk of a row
# that explains.

BoundaryDisplay.from_analysis(analyses[5.0, "hard"])
plt.show()

# %%
# The picture
# -----------
# The cost of the noise at epsilon 5, with two standard errors. Soft labels cost both groups less, and the groups differ
# less.

# sphinx_gallery_thumbnail_number = 3
fig, ax = plt.subplots(figsize=(5.8, 4.0), layout="constrained")
for number, (group, colour) in enumerate(
    {"group A": "#0072B2", "group B": "#E69F00"}.items()
):
    lines = [analyses[5.0, labels].groups.loc[group] for labels in ("hard", "soft")]
    heights, errors = (
        [1000 * line[column] for line in lines] for column in ("risk", "standard_error")
    )
    places = np.arange(2) + 0.3 * (number - 0.5)
    ax.bar(
        places,
        heights,
        0.28,
        yerr=2 * np.array(errors),
        capsize=4,
        label=group,
        color=colour,
    )
ax.set_xticks([0, 1], ["hard labels", "soft labels"])
ax.set(ylabel="loss added by noise (thousandths of a nat)", xlim=(-0.5, 1.5))
ax.set_title("Soft labels: less harm by noise, shared more evenly")
ax.legend(frameon=False)
plt.show()
