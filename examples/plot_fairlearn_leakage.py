"""
A fairlearn model, judged for leakage
=====================================

fairlearn makes models fair. Does a fair model also keep a person's group to itself? You will train two of fairlearn's
models, measure their gaps, and let attackers guess the group from what each model says. The answer depends on the
definition of fairness that was asked for.
"""

# %%
# Three models
# ------------
# A plain logistic regression, and the same under fairlearn's ``ExponentiatedGradient``, once for equal selection rates
# (demographic parity) and once for equal true positive rates.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from fairlearn.reductions import (
    DemographicParity,
    ExponentiatedGradient,
    TruePositiveRateParity,
)
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from skfairdp import FairPrivateClassifier, demographic_parity_gap, tpr_gap
from skfairdp.datasets import make_biased_classification
from skfairdp.metrics import leakage_report

data = make_biased_classification(6000, group_shift=1.5, label_bias=0.4, random_state=0)
X, X_test, y, y_test, group, group_test = train_test_split(
    data.data, data.target, data.sensitive_features, test_size=0.5, random_state=0
)
plain = LogisticRegression().fit(X, y)
fair = {
    "fairlearn, equal selection": ExponentiatedGradient(
        LogisticRegression(), DemographicParity()
    ),
    "fairlearn, equal TPR": ExponentiatedGradient(
        LogisticRegression(), TruePositiveRateParity()
    ),
}
for model in fair.values():
    model.fit(X, y, sensitive_features=group)

# %%
# What each of them says
# ----------------------
# Decisions, and the scores behind them. fairlearn's model is a lottery over several logistic regressions: its score is
# the mean of theirs, and a decision is drawn. Ours draws its decisions so that they are private too.

ours = FairPrivateClassifier(
    LogisticRegression(), epsilon=3.0, fairness="equal_opportunity", random_state=0
)
ours.fit(X, y, sensitive_features=group)


def scores_of(model):
    """The mean score of the regressions in fairlearn's lottery, by their weights."""
    return sum(
        w * p.predict_proba(X_test)[:, 1]
        for w, p in zip(model.weights_, model.predictors_)
    )


said = {
    ("logistic", "decision"): plain.predict(X_test),
    ("logistic", "score"): plain.predict_proba(X_test)[:, 1],
}
for name, model in fair.items():
    said[name, "decision"] = model.predict(X_test, random_state=0)
    said[name, "score"] = scores_of(model)
said["ours, equal TPR, epsilon 3", "decision"] = ours.predict(X_test)

# %%
# Fairness and leakage
# --------------------
# ``auc`` is how well the strongest attacker orders people by group: 0.5 is guessing.

lines = []
for (name, kind), values in said.items():
    leak = leakage_report(
        np.c_[values], group_test, probe=["linear", "boosting"], cv=3, random_state=0
    ).iloc[-1]
    decided = said[name, "decision"]
    lines.append(
        {
            "model": name,
            "released": kind,
            "accuracy": np.mean(decided == y_test),
            "TPR gap": tpr_gap(y_test, decided, sensitive_features=group_test),
            "selection gap": demographic_parity_gap(
                y_test, decided, sensitive_features=group_test
            ),
            "auc": leak["auc"],
            "auc_lower": leak["auc_lower"],
            "auc_upper": leak["auc_upper"],
        }
    )
table = pd.DataFrame(lines).set_index(["model", "released"])
print(table.round(3).to_string())

# %%
# The picture
# -----------
# Equal selection rates hide the group from whoever sees a decision: that is what they mean. Where the groups do not
# deserve the label equally often, they cost accuracy, and here they open a gap between the true positive rates. Equal
# true positive rates cost little, and leave the group readable. Noise with an epsilon of 3 bounds what an answer tells
# about a record, its group included; it does not bring the attacker down to guessing.

fig, ax = plt.subplots(figsize=(6.2, 4.2), layout="constrained")
names = list(table.index.unique("model"))
for kind, colour, marker, shift in (
    ("score", "#D55E00", "s", -0.12),
    ("decision", "#0072B2", "o", 0.12),
):
    part = table.xs(kind, level="released")
    places = [names.index(name) + shift for name in part.index]
    reach = np.array([part["auc"] - part["auc_lower"], part["auc_upper"] - part["auc"]])
    ax.errorbar(
        part["auc"],
        places,
        xerr=reach,
        fmt=marker,
        color=colour,
        markersize=8,
        label=f"sees the {kind}",
    )
ax.axvline(0.5, color="0.3", linestyle="--", label="guessing")
ax.set_yticks(range(len(names)), [name.replace(", ", "\n", 1) for name in names])
ax.set(
    ylim=(len(names) - 0.5, -0.5), xlabel="AUC of the strongest attacker on the group"
)
ax.set_title("Equal true positive rates do not hide the group")
ax.legend(frameon=False, loc="center right", bbox_to_anchor=(1.0, 0.62))
plt.show()
