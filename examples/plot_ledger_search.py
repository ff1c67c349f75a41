"""
What a search costs, by the ledger
==================================

Whoever fits twelve private models and keeps the best has released all twelve. A ledger writes every release down, and
refuses those that a budget does not pay for. You will see a grid search run through a budget, and a private search
that stays within the same budget by design.
"""

# %%
# A grid search, with a ledger that only counts
# ---------------------------------------------
# ``PATEClassifier`` protects its training rows: teachers trained on them label public rows, with noise. Each fit is a
# release of the same rows. While a ledger is entered, every release is charged to it. No seed is given: two releases
# from one seed carry the same noise, whose difference would show the rows, and a ledger counts that as no protection at
# all.

import textwrap

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

from skfairdp import PATEClassifier, PrivacyLedger, PrivateSearchCV
from skfairdp.datasets import make_biased_classification
from skfairdp.exceptions import BudgetExceededError

data = make_biased_classification(3000, random_state=0)
X, y = data.data, data.target
private, public, test = slice(0, 2000), slice(2000, 2500), slice(2500, None)

pate = PATEClassifier(LogisticRegression(), n_queries=200, epsilon=4.0, classes=[0, 1])
candidates = {"n_teachers": [20, 50], "student_regularization": [0.001, 0.1]}
with PrivacyLedger(delta=1e-5) as ledger:
    grid = GridSearchCV(pate, candidates, cv=3).fit(
        X[private], y[private], public=X[public]
    )
print(f"{len(ledger)} releases, exact epsilon {ledger.total().epsilon:.2f}")

# %%
# Four candidates in three folds, and one fit more on all rows. Their losses do not simply add up: Gaussian noise adds
# by squares, and the ledger knows. Still the total is several times the 4 that each of them promises.

one_fit = clone(pate).fit(X[private], y[private], public=X[public]).privacy_
spent = [one_fit.repeat(k).epsilon for k in range(1, len(ledger) + 1)]
print(np.round(spent, 2))

# %%
# A budget is enforced
# --------------------
# The same search with a budget of 10 is stopped before the release that would exceed it. The values of that release
# never exist.

with PrivacyLedger(budget=10.0, delta=1e-5) as strict:
    try:
        GridSearchCV(pate, candidates, cv=3, error_score="raise").fit(
            X[private], y[private], public=X[public]
        )
    except BudgetExceededError as error:
        print(textwrap.fill(str(error), 72))
print(f"{len(strict)} releases were made, epsilon {strict.total().epsilon:.2f}")

# %%
# A search that pays once
# -----------------------
# :class:`~skfairdp.model_selection.PrivateSearchCV` runs a random number of trials and shows the best alone. Nobody can
# tell how many it has beaten, so that its price hardly depends on their number. Its epsilon is that of the whole
# search.

search = PrivateSearchCV(
    pate, candidates, epsilon=4.0, delta=1e-5, expected_trials=5, random_state=0
)
with PrivacyLedger(budget=4.0, delta=1e-5) as once:
    search.fit(X[private], y[private], public=X[public])
print(f"{len(once)} release, exact epsilon {once.total().epsilon:.2f}")
print(f"accuracy of its choice: {search.score(X[test], y[test]):.3f}")
print(f"accuracy of the grid's: {grid.score(X[test], y[test]):.3f}")

# %%
# The picture
# -----------
# What the same rows have lost after each fit of the grid search, against the budget and against the private search.

fig, ax = plt.subplots(figsize=(5.8, 4.0), layout="constrained")
ax.step(
    range(1, len(spent) + 1),
    spent,
    where="post",
    color="#D55E00",
    label="grid search, fit by fit",
)
ax.plot(range(1, len(spent) + 1), spent, "o", color="#D55E00")
ax.axhline(10.0, color="0.3", linestyle="--", label="a budget of 10")
ax.axhline(
    once.total().epsilon,
    color="#0072B2",
    linewidth=2.5,
    label="private search, all trials",
)
ax.set(
    xlabel="fits so far", ylabel="exact epsilon spent (delta 0.00001)", ylim=(0, None)
)
ax.set_title("Every fit of a search is a release")
ax.legend(frameon=False)
plt.show()
