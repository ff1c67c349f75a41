"""
Auditing the decisions of an existing model
===========================================

A bank has a table of past loans with the decisions of a vendor's model in it. You will judge these decisions without
training anything: how unequally they treat two groups, and how certain that is. Then you will see what could be had
instead, private methods among it.
"""

# %%
# The table
# ---------
# ``repaid`` is what came true, ``approved`` what the vendor's model decided. The table is made; with one of your own,
# ``pandas.read_csv`` and the same call are enough, or the command ``skfairdp audit``.

import matplotlib.pyplot as plt

from skfairdp import audit_table
from skfairdp.datasets import make_biased_classification
from skfairdp.inspection import GroupRatesDisplay

made = make_biased_classification(
    3000, 6, group_shift=1.5, label_bias=0.3, as_frame=True, random_state=0
)
loans = made.frame.rename(columns={"target": "repaid", "group": "region"})
loans["region"] = loans["region"].map({0: "east", 1: "west"})
loans["approved"] = (loans[["x0", "x1", "x2"]].sum(axis=1) > 0).astype(int)
print(loans.head(3).round(2).to_string())

# %%
# Judging what exists
# -------------------
# ``methods="none"`` trains no model: all rows are counted. ``leakage`` is what attackers read of the region from a
# decision (they look at 500 rows here, to be quick). The verdict is in plain words; the table has the figures with
# their intervals.

roles = {
    "target": "repaid",
    "pos_label": 1,
    "sensitive": "region",
    "predictions": {"vendor": "approved"},
}
audit = audit_table(
    loans, **roles, methods="none", n_probe_rows=500, random_state=0, verbose=False
)
print(audit.verdict.headline)
columns = [
    "accuracy",
    "tpr_gap",
    "tpr_gap_lower",
    "tpr_gap_upper",
    "selection_ratio",
    "leakage",
    "majority",
]
print(audit.table[columns].round(3).T.to_string())

# %%
# Who is treated how?
# -------------------
# Of the people who repay, a smaller share is approved in one region. The intervals say how sure that is.

fig, ax = plt.subplots(figsize=(5.8, 4.0), layout="constrained")
GroupRatesDisplay.from_predictions(
    loans["repaid"],
    loans["approved"],
    sensitive_features=loans["region"],
    pos_label=1,
    ax=ax,
)
plt.show()

# %%
# What could be had instead
# -------------------------
# The same call with names of methods trains them on one part of the rows and measures them on another. Boosted trees
# are the reference; ``fair trees`` correct their answers, and ``fair private trees`` also draw each answer at random,
# with an exact epsilon. ``audit.to_html("report.html")`` writes all of it as a page.

better = audit_table(
    loans,
    **roles,
    methods=["trees", "fair trees", "fair private trees"],
    epsilon=4.0,
    n_splits=2,
    n_repeats=1,
    n_probe_rows=500,
    n_jobs=1,
    random_state=0,
    verbose=False,
)
print(better.table[["accuracy", "tpr_gap", "epsilon", "rows"]].round(3).to_string())

# %%
# The picture
# -----------
# To the right is more accurate, down is fairer; the lines are 95 % intervals of the gap.

# sphinx_gallery_thumbnail_number = 2
fig, ax = plt.subplots(figsize=(5.8, 4.0), layout="constrained")
better.plot(ax=ax)
ax.set_title("Fairer and private, and no less accurate, can be had")
plt.show()
