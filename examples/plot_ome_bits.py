"""
Bits and budgets: which bits to spend epsilon on
================================================

A number can be released as a few bits, each of which is flipped at random. The epsilon of the number is shared by its
bits, and how it is shared decides how much of the number arrives. You will compare the four protocols of
:class:`~skfairdp.preprocessing.OMEEncoder` at the same exact epsilon.
"""

# %%
# Numbers as bits
# ---------------
# Three numbers per record, each written as a sign, one integer bit and two fraction bits. ``standardize`` is given as
# public constants, so that nothing is learned from the rows and the guarantee covers all of them.

import matplotlib.pyplot as plt
import numpy as np

from skfairdp import OMEEncoder

X = np.random.default_rng(0).normal(size=(4000, 3))


def encoder(protocol, epsilon):
    """Four bits per number; the seed is for this page."""
    made = OMEEncoder(
        epsilon,
        n_integer_bits=1,
        n_fraction_bits=2,
        protocol=protocol,
        standardize=(0.0, 1.0),
        random_state=0,
    )
    return made.fit(X)


clean = encoder("optimal", np.inf)
print(clean.get_feature_names_out()[:4])
print("values", X[0].round(2), "as bits", clean.transform(X[:1])[0].astype(int))

# %%
# How the budget is shared
# ------------------------
# ``bit_epsilon_`` is the exact loss of each bit; they add up to epsilon. ``"sue"`` and ``"oue"`` spend the same on each
# bit, ``"ome"`` favours every second one, and ``"optimal"`` spends most on the bits that weigh most.

PROTOCOLS = ("sue", "oue", "ome", "optimal")
for protocol in PROTOCOLS:
    made = encoder(protocol, 12.0)
    print(
        f"{protocol:>8}: {made.bit_epsilon_[:4].round(2)}, all bits {made.bit_epsilon_.sum():.2f}"
    )

# %%
# What arrives
# ------------
# ``decode`` turns noisy bits into estimates of the numbers. Numbers beyond the largest that the bits can write are cut,
# and the last bit rounds, so that even without noise an error is left.

epsilons = np.array([3.0, 6.0, 12.0, 24.0, 48.0])
errors = {}
for protocol in PROTOCOLS:
    made = [encoder(protocol, epsilon) for epsilon in epsilons]
    errors[protocol] = [
        np.sqrt(np.mean((one.decode(one.transform(X)) - X) ** 2)) for one in made
    ]
floor = np.sqrt(np.mean((clean.decode(clean.transform(X)) - X) ** 2))

# %%
# The picture
# -----------
# At the same epsilon, the best division of the budget has the least error. ``"ome"`` keeps ones more often on every
# second bit and less often on the others. The more epsilon there is, the further it goes in that, which is why its
# error stops falling.

fig, axes = plt.subplots(1, 2, figsize=(6.4, 4.4), layout="constrained")
places = np.arange(4)
for number, (protocol, marker) in enumerate(zip(PROTOCOLS, "osD^")):
    spent = encoder(protocol, 12.0).bit_epsilon_[:4]
    axes[0].bar(places + 0.2 * (number - 1.5), spent, width=0.2, label=protocol)
    axes[1].plot(epsilons, errors[protocol], marker=marker, label=protocol)
axes[0].set_xticks(places, ["sign", "1", "1/2", "1/4"])
axes[0].set(
    xlabel="bit of one number",
    ylabel="epsilon spent on the bit, of 12 for a record",
    ylim=(0, 2.4),
)
axes[0].legend(frameon=False, ncols=2)
axes[1].axhline(floor, color="0.4", linestyle="--")
axes[1].annotate("no noise", (3, floor), (0, 4), textcoords="offset points")
axes[1].set_xscale("log", base=2)
axes[1].set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
axes[1].set_yscale("log")
axes[1].set(xlabel="epsilon of one record", ylabel="root mean squared error")
fig.suptitle("Spending on the bits that weigh most cuts the error")
plt.show()
