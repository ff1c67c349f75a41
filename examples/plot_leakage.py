"""
What an attacker reads, before and after
========================================

Rows that leave a device tell more than they were sent for. Here several attackers guess a person's group from the same
rows: as they are, with the group erased, and with noise of three epsilons. You will see how to measure leakage,
how to read the result, and what it costs in accuracy.
"""

# %%
# Rows and their treatments
# -------------------------
# The features tell the label, and the group as well. Erasing removes what linear models can read of the group, and
# promises nothing else. Noise hides everything about a record a little, and comes with a proof.

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score

from skfairdp import LaplacePrivatizer, LEACEEraser
from skfairdp.datasets import make_biased_classification
from skfairdp.inspection import LeakageDisplay, RepresentationDisplay
from skfairdp.metrics import leakage_report

data = make_biased_classification(
    1000, n_features=4, class_sep=3.0, group_shift=3.0, label_bias=0.0, random_state=0
)
X, y, group = data.data, data.target, data.sensitive_features

views = {
    "as they are": X,
    "erased (LEACE)": LEACEEraser().fit(X, sensitive_features=group).transform(X),
}
for epsilon in (16.0, 4.0, 1.0):
    views[f"epsilon {epsilon:g}"] = LaplacePrivatizer(
        epsilon, random_state=0
    ).fit_transform(X)

# %%
# One attack in detail
# --------------------
# The report has one line per attacker. ``majority`` is what always naming the largest group reaches, and ``advantage``
# is what an attacker adds to it. The strongest attacker is chosen on other rows than those it is scored on.

report = leakage_report(views["as they are"], group, cv=3, random_state=0)
print(
    report.set_index("attacker")[
        ["accuracy", "accuracy_lower", "accuracy_upper", "majority", "auc"]
    ].round(3)
)

# %%
# What the eye sees
# -----------------
# Two principal components of the rows. What the eye can separate, an attacker can too; the converse does not hold.

RepresentationDisplay.from_representations(
    {name: views[name] for name in ("as they are", "erased (LEACE)", "epsilon 4")},
    sensitive_features=group,
    random_state=0,
)
plt.show()

# %%
# What it costs
# -------------
# Accuracy of a logistic regression on the label, trained and tested on the treated rows.

costs = {
    name: cross_val_score(LogisticRegression(), view, y, cv=3).mean()
    for name, view in views.items()
}
print(pd.Series(costs, name="accuracy on the label").round(3))

# %%
# Before and after
# ----------------
# A bar beyond the dashed line is a leak. A bar at the line is no proof: a stronger attacker may come. In these rows
# only the means of the groups differ, so that an eraser leaves nothing; :ref:`sphx_glr_auto_examples_plot_erasers.py`
# shows rows where it does. An epsilon is a proof whatever the attacker, and about everything in a record, which is why
# it costs more.

# sphinx_gallery_thumbnail_number = 2

fig, ax = plt.subplots(figsize=(5.8, 4.0), layout="constrained")
LeakageDisplay.from_representations(
    views, sensitive_features=group, cv=3, random_state=0, ax=ax
)
ax.set_xlabel("how often the strongest attacker names the group")
ax.set_title("Erasing hides the group; noise needs a small epsilon", pad=20)
plt.show()
