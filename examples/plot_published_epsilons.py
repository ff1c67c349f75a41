"""
Published and exact epsilons
============================

Systems for private text representations publish an epsilon. Here each of them is run as published, next to the exact
worst case of what it does, and to what an attack can certify in 20,000 trials. The user guide
tells the reasons.
"""

# %%
# The systems
# -----------
# Each is a release, two inputs that it should not tell apart, the epsilon it claims, and the exact one. The package
# reproduces published calibrations on request (and warns); what it refuses to reproduce is a few lines here.

import math
import warnings

import matplotlib.pyplot as plt
import numpy as np

from skfairdp import LaplacePrivatizer, OMEEncoder, audit_epsilon
from skfairdp.accounting import PrivacyGuarantee, amplify_by_dropout
from skfairdp.epsilon_audit import worst_case_pair
from skfairdp.exceptions import OverclaimedPrivacyWarning

rng = np.random.default_rng(0)


def fitted(estimator, n_features):
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", OverclaimedPrivacyWarning
        )  # the point of this page
        return estimator.fit(np.zeros((2, n_features)))


def dpnr_public_code(X):
    """Min-max rows plus one Laplace value per row, of scale 1/epsilon with epsilon = 1."""
    low = X.min(axis=1, keepdims=True)
    unit = (X - low) / (X.max(axis=1, keepdims=True) - low)
    return unit + rng.laplace(0.0, 1.0, (len(X), 1))


def numpy_laplace(X):
    """The right scale for epsilon = 1 between -1 and 1, in double precision."""
    return X + rng.laplace(0.0, 2.0, X.shape)


def dropout_then_response(X):
    """Whether a word occurs, after masking half of the words, by randomised response with epsilon = 1."""
    seen = np.where(rng.random(X.shape) < 0.5, 0.0, X)
    keep = math.e / (1 + math.e)
    return np.where(rng.random(X.shape) < keep, seen, 1 - seen)


federate = fitted(LaplacePrivatizer(epsilon=1.0, norm="l1", random_state=0), 50)
federate_code = fitted(
    LaplacePrivatizer(epsilon=1.0, norm="l2", calibration="published", random_state=0),
    50,
)
dpnr = fitted(
    LaplacePrivatizer(
        epsilon=1.0, norm="minmax", calibration="published", random_state=0
    ),
    768,
)
ome = fitted(
    OMEEncoder(
        epsilon=1.0, randomization_factor=100, calibration="published", random_state=0
    ),
    50,
)
word_level = amplify_by_dropout(
    PrivacyGuarantee(1.0, mechanism="randomised response"), 0.5
).epsilon
two_rows = rng.random((2, 768))

systems = {
    "FEDERATE, as printed": (
        federate,
        worst_case_pair(federate),
        1.0,
        federate.privacy_.epsilon,
    ),
    "DPNR, word dropout": (
        dropout_then_response,
        ([1.0], [0.0]),
        word_level,
        word_level,
    ),
    "FEDERATE, public code": (
        federate_code,
        worst_case_pair(federate_code),
        1.0,
        federate_code.privacy_.epsilon,
    ),
    "DPNR, as printed": (dpnr, worst_case_pair(dpnr), 1.0, dpnr.privacy_.epsilon),
    "OME, factor 100": (ome, worst_case_pair(ome), 1.0, ome.privacy_.epsilon),
    "DPNR, public code": (dpnr_public_code, two_rows, 1.0, math.inf),
    "NumPy's Laplace": (numpy_laplace, ([1.0], [-1.0]), 1.0, math.inf),
}

# %%
# The attack
# ----------
# Where the release can tell its likelihood ratio, the auditor uses it; otherwise it trains distinguishers. In 20,000
# trials it cannot certify more than 7.9 whatever it sees, so a result there means "7.9 or more".

audits = {
    name: audit_epsilon(
        release, x, x_prime, claimed=claimed, n_trials=20_000, random_state=0
    )
    for name, (release, (x, x_prime), claimed, _) in systems.items()
}
for name, audit in audits.items():
    word = "false" if audit.contradicts else "not refuted"
    print(f"{name}: {word}, epsilon is at least {audit.epsilon_lower:.2f}")

# %%
# The picture
# -----------

BLUE, VERMILION, BLACK = "#0072B2", "#D55E00", "#000000"
INFINITY = 40_000.0

fig, ax = plt.subplots(figsize=(6.8, 4.6), layout="constrained")
for row, (name, (_, _, claimed, exact)) in enumerate(systems.items()):
    audit = audits[name]
    end = min(exact, INFINITY)
    ax.plot([claimed, end], [row, row], color="0.75", linewidth=2, zorder=1)
    ax.plot(
        claimed,
        row,
        "o",
        color=BLUE,
        markerfacecolor="white",
        markersize=10,
        markeredgewidth=2,
        zorder=2,
    )
    if math.isinf(exact):
        ax.plot(end, row, ">", color=VERMILION, markersize=10, zorder=3)
        ax.annotate(
            "no bound",
            (end, row),
            (0, 9),
            textcoords="offset points",
            ha="right",
            fontsize=9,
        )
    else:
        ax.plot(
            exact,
            row,
            "D",
            color=VERMILION,
            markersize=5 if exact == claimed else 8,
            zorder=3,
        )
        ax.annotate(
            f"{exact:.4g}",
            (exact, row),
            (0, 9),
            textcoords="offset points",
            ha="center",
            fontsize=9,
        )
    ax.plot(
        audit.epsilon_lower,
        row,
        "|",
        color=BLACK,
        markersize=16,
        markeredgewidth=2.5,
        zorder=4,
    )

ax.plot(
    [],
    [],
    "o",
    color=BLUE,
    markerfacecolor="white",
    markersize=10,
    markeredgewidth=2,
    label="published",
)
ax.plot(
    [],
    [],
    "D",
    color=VERMILION,
    markersize=8,
    linestyle="none",
    label="exact worst case",
)
ax.plot(
    [],
    [],
    "|",
    color=BLACK,
    markersize=16,
    markeredgewidth=2.5,
    linestyle="none",
    label="certified by the attack",
)
cap = max(audit.cap for audit in audits.values())
ax.axvline(cap, color="0.6", linestyle=":", linewidth=1.2, zorder=0)
ax.annotate(
    f"most that {audit.n_trials:,} trials can certify",
    (cap, -0.85),
    (5, 0),
    textcoords="offset points",
    fontsize=9,
    color="0.3",
    va="center",
)
ax.set_xscale("log")
ax.set_xticks([1, 10, 100, 1000, 10_000], ["1", "10", "100", "1,000", "10,000"])
ax.set_xlim(0.3, 60_000)
ax.set_ylim(len(systems) - 0.4, -1.1)
ax.set_yticks(range(len(systems)), list(systems))
ax.set_xlabel("epsilon (logarithmic scale; smaller is more private)")
ax.set_title("Most published epsilons do not hold")
fig.legend(loc="outside lower center", ncols=3, frameon=False)
ax.spines[["top", "right"]].set_visible(False)
plt.show()
