"""
Choosing a private and fair model on Adult
==========================================

Who earns more than 50,000 a year? The Adult data answer from the census of 1994, and a model that learns from them
learns whom the census favoured. Here a grid search looks at three things at once: accuracy, the gap between the true
positive rates of men and women, and how well an attacker can read a person's sex from the representation that leaves
the person's device. Then it takes the fairest model whose accuracy is within one point of the best.

It needs the Adult files: ``fetch_adult`` finds them under ``$SKFAIRDP_DATA``, or downloads them.
"""

# %%
# The data
# --------
# ``preset="federate"`` prepares the columns as the FEDERATE code does. What has to be learned from rows, such as the
# range of a column, comes as an unfitted transformer, so that it goes into the pipeline.

import matplotlib.pyplot as plt
import sklearn
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import Pipeline

from skfairdp import LaplacePrivatizer, RelaxationThreshold, make_leakage_scorer
from skfairdp.datasets import fetch_adult
from skfairdp.inspection import GroupRatesDisplay, TradeoffDisplay
from skfairdp.metrics import tpr_gap_scorer

sklearn.set_config(enable_metadata_routing=True)  # lets sensitive_features reach the scorers

adult = fetch_adult(preset="federate", as_frame=True)
X, X_test, y, y_test, sex, sex_test = train_test_split(
    adult.data, adult.target, adult.sensitive_features, test_size=0.2, random_state=0
)
print(f"{len(X):,} rows to learn from, {len(X_test):,} to test on")

# %%
# The pipeline
# ------------
# Laplace noise falls on every component alike, so a direction that says little costs as much as one that says a lot:
# the search tries the single best direction for the task (linear discriminant analysis) and two principal components.
# ``epsilon`` is exact: what the privatizer hands on is epsilon-differentially private for any two people.

pipeline = Pipeline(
    [
        ("prepare", adult.preprocessor),
        ("reduce", PCA()),
        ("privatize", LaplacePrivatizer(norm="clip", random_state=0)),
        ("classify", LogisticRegression()),
    ]
)
grid = {
    "reduce": [LinearDiscriminantAnalysis(), PCA(2, random_state=0)],
    "privatize__radius": [1.0, 2.0],
    "privatize__epsilon": [4.0, 8.0, 12.0, 16.0],
}

# %%
# The search
# ----------
# Every candidate privatises the rows anew. If these rows were to be protected, each of them would cost its epsilon
# again; here they are training data, which the encoder on the device is allowed to see.

rule = RelaxationThreshold(threshold=0.01, accuracy="accuracy", fairness="tpr_gap", privacy="leakage")
search = GridSearchCV(
    pipeline,
    grid,
    scoring={
        "accuracy": "accuracy",
        "tpr_gap": tpr_gap_scorer,
        "leakage": make_leakage_scorer(cv=2, random_state=0),
    },
    refit=rule,
    cv=3,
    n_jobs=2,
)
search.fit(X, y, sensitive_features=sex)
print("chosen:", search.best_params_)
print(rule.explain(search.cv_results_).drop(columns="params").to_string())

# %%
# The trade-off
# -------------
# Each point is a candidate; the grey band holds those within one point of the best accuracy, and the circle the
# fairest of them.

TradeoffDisplay.from_cv_results(search.cv_results_, colour="leakage", rule=rule)
plt.show()

# %%
# What it does for men and women
# ------------------------------
# On rows that the search has not seen, with exact binomial intervals.

print(search.best_estimator_["privatize"].privacy_)
GroupRatesDisplay.from_estimator(search, X_test, y_test, sensitive_features=sex_test)
plt.show()
