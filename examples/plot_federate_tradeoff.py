r"""
FEDERATE: accuracy, epsilon and fairness
========================================

:class:`~skfairdp.adversarial.FederateClassifier` learns to encode a record, makes the encoding private, and predicts
from what is released. On data whose bias is known you will see whether its adversary has learned anything, what an
exact epsilon costs with either of its channels, and what fairness costs on top.
"""

# %%
# Did the adversary learn anything?
# ---------------------------------
# The adversary tries to read the group from the encoding, and the encoder is trained against it. Without noise it has
# something to read. A line at chance throughout would be suspicious: an adversary that cannot learn protects nobody.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from skfairdp import FederateClassifier, leakage_score, tpr_gap
from skfairdp.datasets import make_biased_classification
from skfairdp.inspection import (
    PrivacyCurveDisplay,
    TradeoffDisplay,
    TrainingHistoryDisplay,
)

data = make_biased_classification(4000, group_shift=1.5, label_bias=0.4, random_state=0)
X, X_test, y, y_test, group, group_test = train_test_split(
    data.data, data.target, data.sensitive_features, test_size=0.5, random_state=0
)


def fit(**settings):
    """A small network with a short training; leave these settings out for a good one."""
    quick = {
        "batch_size": 250,
        "max_epochs": 15,
        "learning_rate": 0.02,
        "encoder": "mlp",
        "encoder_hidden_sizes": (32,),
    }
    return FederateClassifier(**quick, **settings, random_state=0).fit(
        X, y, sensitive_features=group
    )


TrainingHistoryDisplay.from_estimator(
    fit(epsilon=np.inf, n_components=10, adversary_weight=1.0)
)
plt.show()

# %%
# Two channels, exact epsilons
# ----------------------------
# The Laplace channel adds noise of scale :math:`2 / \varepsilon` to every coordinate. The code channel releases one of
# a few learned codes, and spends the whole budget on the one decision that matters. Solid lines are accuracy, dashed
# lines what attackers read of the group.

runs, fitted = [], {}
for channel in ("codes", "laplace"):
    for epsilon in (1.0, 4.0, 16.0):
        clf = fitted[channel, epsilon] = fit(
            epsilon=epsilon, channel=channel, adversary_weight=0.0
        )
        released = clf.transform(X_test)
        runs.append(
            {
                "channel": channel,
                "epsilon": round(clf.privacy_.epsilon, 6),
                "accuracy": clf.score(X_test, y_test),
                "leakage": leakage_score(
                    released,
                    group_test,
                    probe=["linear", "boosting"],
                    cv=2,
                    random_state=0,
                ),
            }
        )
majority = pd.Series(group_test).value_counts(normalize=True).max()
PrivacyCurveDisplay.from_table(runs, method="channel", majority=majority)
plt.show()

# %%
# What fairness costs on top
# --------------------------
# ``fairness_penalty`` weighs the gap of the true positive rates that training expects. Accuracy and gap are means of
# ten releases of the same test rows, because a single one has the luck of its noise in it.

PENALTIES = (0.0, 0.3, 1.2)
lines = []
for penalty in PENALTIES:
    settings = {"epsilon": 4.0, "channel": "codes", "adversary_weight": 0.0}
    clf = fit(**settings, fairness_penalty=penalty) if penalty else fitted["codes", 4.0]
    answers = [clf.predict(X_test) for _ in range(10)]
    lines.append(
        {
            "penalty": f"penalty {penalty:g}",
            "accuracy": np.mean([np.mean(one == y_test) for one in answers]),
            "tpr_gap": np.mean(
                [tpr_gap(y_test, one, sensitive_features=group_test) for one in answers]
            ),
        }
    )
table = pd.DataFrame(lines)
print(table.round(3).to_string(index=False))

# %%
# The picture
# -----------
# Down is fairer, to the right more accurate. All points have the same exact epsilon.

# sphinx_gallery_thumbnail_number = 3
fig, ax = plt.subplots(figsize=(5.8, 4.0), layout="constrained")
TradeoffDisplay.from_table(table, label="penalty", ax=ax)
ax.set_title("At epsilon 4, a penalty narrows the gap")
plt.show()
