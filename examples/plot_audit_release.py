"""
Auditing somebody else's private release
========================================

A colleague hands you a function and says that it is private with epsilon 1. You cannot read the proof, but you can run
the function. You will see how :func:`~skfairdp.epsilon_audit.audit_epsilon` catches three common mistakes, how many
runs it needs, and that it leaves a sound release alone.
"""

# %%
# Four releases that claim epsilon 1
# ----------------------------------
# Each releases a number between 0 and 10 (visits to a doctor in a year, say) with noise. The first has the right noise.
# The second has noise for values that differ by at most 5, and they may differ by 10. The third adds the right noise in
# floating point. The fourth draws one noise value per call and adds it to every row.

import textwrap

import matplotlib.pyplot as plt
import numpy as np

from skfairdp import audit_epsilon

rng = np.random.default_rng(0)
EPSILON = 1.0


def two_sided_geometric(scale, size):
    """Integer noise: the discrete form of Laplace noise."""
    p = 1 - np.exp(-1 / scale)
    return rng.geometric(p, size) - rng.geometric(p, size)


def sound(X):
    """Noise for values that may differ by 10."""
    return X + two_sided_geometric(10 / EPSILON, X.shape)


def half_the_noise(X):
    """The same, as if they could only differ by 5."""
    return X + two_sided_geometric(5 / EPSILON, X.shape)


def floating_point(X):
    """The right scale, in double precision."""
    return X + rng.laplace(0.0, 10 / EPSILON, X.shape)


def noise_drawn_once(X):
    """The right scale, but all rows of a call get the same noise."""
    return X + two_sided_geometric(10 / EPSILON, (1, 1))


releases = {
    "sound": sound,
    "half the noise": half_the_noise,
    "floating point": floating_point,
    "noise drawn once": noise_drawn_once,
}

# %%
# The audit
# ---------
# The two inputs are the most different ones that are allowed, 0 and 10. Half of the runs choose an event that happens
# more often for one of them; the other half counts it. From the counts follows an epsilon that the release exceeds,
# with 95 % confidence.

for name, release in releases.items():
    audit = audit_epsilon(
        release, [0.0], [10.0], claimed=EPSILON, n_trials=10_000, random_state=0
    )
    print(textwrap.fill(f"{name.upper()}: {audit.verdict}", 72) + "\n")

# %%
# Why floating point is not private
# ---------------------------------
# A sum of a value and noise in double precision is rounded, and the rounding differs from value to value: the last bits
# of the output tell which value was in it. ``LaplacePrivatizer`` draws its noise in integers for this reason.
#
# How many runs does it take?
# ---------------------------
# With few runs the auditor certifies little, with more it comes closer to the truth. The sound release stays below its
# epsilon of 1, while the others rise above it. Noise that is drawn once is not in this picture: it is caught by
# comparing rows, not by an epsilon.

trials = [300, 1000, 3000, 10_000, 30_000]
certified = {
    name: [
        audit_epsilon(
            releases[name], [0.0], [10.0], claimed=EPSILON, n_trials=n, random_state=0
        ).epsilon_lower
        for n in trials
    ]
    for name in ("floating point", "half the noise", "sound")
}

fig, ax = plt.subplots(figsize=(5.8, 4.0), layout="constrained")
for (name, bounds), style in zip(certified.items(), ("D-", "s-", "o-")):
    ax.plot(trials, bounds, style, label=name)
ax.axhline(EPSILON, color="0.3", linestyle="--", label="claimed")
ax.set_xscale("log")
ax.set(
    xlabel="runs of the release on each input", ylabel="certified epsilon (at least)"
)
ax.set_title("The attack refutes two claims, and spares the sound one")
ax.legend(frameon=False)
plt.show()
