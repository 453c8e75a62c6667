"""
A million columns from disk
===========================

A NumPy file is read in blocks of columns, within a memory budget. The whole table is never in memory; the same call
works for 10⁷ columns. (``zeronorm pack`` and ``zeronorm select`` do the same on the command line.)
"""

# %%
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from zeronorm import FisherScore, ZeroNormSVM, as_design

rng = np.random.default_rng(0)
n, p = 40, 1_000_000
y = np.repeat([0, 1], n // 2)
folder = tempfile.TemporaryDirectory()
file = Path(folder.name) / "wide.npy"
stored = np.lib.format.open_memmap(file, mode="w+", dtype=np.float32, shape=(n, p))
for row in stored:  # one sample after the other: the table is never in memory
    rng.standard_normal(out=row, dtype=np.float32)
stored[np.ix_(y == 1, np.arange(10))] += 3.0
stored.flush()

# %%
design = as_design(file, memory_budget=64 * 2**20)
selector = ZeroNormSVM(n_features_to_select=10).fit(design, y)
print("selected:", selector.get_support(indices=True))

# %%
scores = FisherScore().fit(design, y).path_.scores
fig, ax = plt.subplots(figsize=(8, 2.6))
ax.plot(np.sort(scores)[::-1][:1000], ".")
ax.set(
    xlabel="rank of the column",
    ylabel="Fisher score",
    xscale="log",
    title="the first 1000 of a million columns",
)
folder.cleanup()
