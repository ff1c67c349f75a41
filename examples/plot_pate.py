"""
Who pays for the noise of PATE
==============================

Teachers are trained on private rows, vote on public ones, and a student learns from noisy votes. The noise costs some
rows more than others. Here the cost is measured for two groups, with hard labels (the winner of the noisy vote) and
with soft ones (noisy vote shares), at the same exact epsilon.
"""

# %%
# Data and teachers
# -----------------
# Two groups of equal size, one of which has fewer positive rows and lies elsewhere in space. 60 small networks are
# trained on disjoint parts of the private rows, all at once.

import matplotlib.pyplot as plt

from skfairdp import PATEClassifier, pate_fairness
from skfairdp.datasets import make_biased_classification
from skfairdp.inspection import BoundaryDisplay, FlippingDisplay, InputNormDisplay, PATESweepDisplay, SoftLabelDisplay

data = make_biased_classification(8000, random_state=0)
X, y, groups = data.data, data.target, data.sensitive_features
private, public, test = slice(0, 6000), slice(6000, 6500), slice(6500, None)


def fitted(n_teachers):
    pate = PATEClassifier(
        n_teachers=n_teachers, epsilon=5.0, n_queries=200, student_regularization=0.1, classes=[0, 1], random_state=0
    )
    return pate.fit(X[private], y[private], public=X[public])


pate = fitted(60)
print(pate.privacy_)
print(f"noise of scale {pate.noise_scale_:.1f} on the counts of {pate.n_voting_} votes")
print(f"accuracy of the student: {pate.score(X[test], y[test]):.3f}")

# %%
# Hard against soft labels
# ------------------------
# Both kinds of labels are released from the same votes, a hundred times each; the students are solved together.
# Excessive risk is the loss that noise adds for a group. A gap alone can be made small by a student that says
# nothing, so that accuracy stands beside it.

settings = {"sensitive_features": groups[test], "y": y[test], "random_state": 0}
analyses = [
    pate_fairness(pate, X[test], labels=labels, epsilon=epsilon, **settings)
    for epsilon in (2.0, 5.0, 15.0, 50.0)
    for labels in ("hard", "soft")
]
for one in analyses:
    print(
        f"epsilon {one.epsilon:4g} {one.labels}: gap {1000 * one.gap:6.2f} +- {1000 * one.gap_standard_error:.2f} "
        f"thousandths, accuracy {one.performance.loc['accuracy', 'private']:.3f}, "
        f"cross-entropy {one.performance.loc['cross_entropy', 'private']:.3f}"
    )
SoftLabelDisplay.from_analyses(analyses)

# %%
# The student's penalty and the number of teachers
# ------------------------------------------------
# A stronger penalty makes the student move less, and so do more teachers, each of whom knows less.

noise = {"labels": "hard", "noise_scale": 15.0, **settings}
PATESweepDisplay.from_analyses(
    [pate_fairness(pate, X[test], regularization=s, **noise) for s in (0.01, 0.03, 0.1, 0.3, 1)]
)

# %%
ensembles = [pate_fairness(fitted(k), X[test], **noise) for k in (10, 30, 60, 120)]
PATESweepDisplay.from_analyses(ensembles, parameter="n_teachers")

# %%
FlippingDisplay.from_analyses(ensembles)

# %%
# Rows that are far out, and rows that are close to the boundary
# --------------------------------------------------------------
# The measured sensitivity stays below its bound. Rank correlations tell how much of the risk the norm of a row, or the
# probability that its label flips, explains: often less than one would think.

hard = pate_fairness(pate, X[public], sensitive_features=groups[public], labels="hard", random_state=0)
print(hard.correlations.round(2))
InputNormDisplay.from_analysis(hard)

# %%
BoundaryDisplay.from_analysis(hard)
plt.show()
