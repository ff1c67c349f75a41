"""
A cluster that draws again, and one that cannot
===============================================

Dask computes whenever it likes: at every ``compute``, after a lost worker, for every result that a lazy graph is used
in. If the noise is drawn inside the graph, each time is another release of the same rows, and whoever collects them
averages the noise away. :func:`~skfairdp.dask.release_to_parquet` draws each partition once and pins it in a file.
"""

# %%
# Five thousand people, in four partitions
# ----------------------------------------
# Two values each, between -1 and 1, which is public.
import tempfile
import warnings
from pathlib import Path

import dask
import dask.dataframe as dd
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skfairdp import LaplacePrivatizer, PrivacyLedger
from skfairdp.dask import release_to_parquet

dask.config.set(scheduler="threads")  # release_to_parquet also runs on a cluster
warnings.filterwarnings(
    "ignore", "The inplace keyword"
)  # Dask calls what pandas has deprecated

people = pd.DataFrame(
    np.random.default_rng(0).uniform(-1, 1, size=(5_000, 2)), columns=["age", "income"]
)
table = dd.from_pandas(people, npartitions=4)
privatizer = (
    LaplacePrivatizer(epsilon=4.0, norm="clip")
    .set_output(transform="pandas")
    .fit(people)
)

# %%
# Noise in the graph, noise in a folder
# -------------------------------------
# Somebody looks at the table forty times, and keeps the mean of what was seen.


def look_again(read, ledger, n_looks=40):
    """Return how far the mean of k looks is from the truth, and what the ledger says by then."""
    seen, errors, spent = np.zeros(people.shape), [], []
    for k in range(1, n_looks + 1):
        seen += read().to_numpy()
        errors.append(np.abs(seen / k - people.to_numpy()).mean())
        spent.append(ledger.total().epsilon)
    return errors, spent


looks = {}
with PrivacyLedger() as ledger:
    in_graph = table.map_partitions(privatizer.transform, meta=people.iloc[:0])
    looks["drawn in the graph"] = look_again(in_graph.compute, ledger)
print(f"drawn in the graph: {len(ledger)} releases")

folder = Path(tempfile.mkdtemp()) / "noisy"
with PrivacyLedger() as ledger:
    guarantee, n_rows = release_to_parquet(table, folder, privatizer)
    looks["pinned in a folder"] = look_again(dd.read_parquet(folder).compute, ledger)
print(
    f"pinned in a folder: {len(ledger)} release of {n_rows:,} rows, epsilon {guarantee.epsilon:g}"
)

# %%
# The ledger sees it, and the attacker profits from it
# ----------------------------------------------------
# The mean of forty draws is five times as near to the truth as one. The ledger has charged all of them: it cannot know
# that partitions hold different people, so that each look costs four releases. The folder was paid for once.
figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
colours = {"drawn in the graph": "tab:red", "pinned in a folder": "tab:blue"}
for name, (errors, spent) in looks.items():
    axes[0].plot(range(1, 41), errors, label=name, color=colours[name])
    axes[1].plot(range(1, 41), spent, label=name, color=colours[name])
axes[0].set(
    xlabel="times computed",
    ylabel="mean error of the attacker",
    title="Noise averages out",
    yscale="log",
)
axes[1].set(
    xlabel="times computed",
    ylabel="epsilon in the ledger",
    title="and is paid for every time",
    yscale="log",
)
axes[0].legend(frameon=False)
plt.show()
