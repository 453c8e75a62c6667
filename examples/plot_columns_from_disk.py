"""
A table that is larger than memory
==================================

A file of NumPy is read in blocks of columns. Nothing is copied as a whole; the same call works for 10⁷ columns.
"""

# %%
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from zeronorm import FisherScore, ZeroNormSVM, as_design

rng = np.random.default_rng(0)
n, p = 60, 50_000
y = np.repeat([0, 1], n // 2)
folder = tempfile.TemporaryDirectory()
file = Path(folder.name) / "wide.npy"
stored = np.lib.format.open_memmap(file, mode="w+", dtype=np.float32, shape=(n, p))
stored[:] = rng.normal(size=(n, p))
stored[np.ix_(y == 1, np.arange(10))] += 2.0
stored.flush()

# %%
design = as_design(np.load(file, mmap_mode="r"))
selector = ZeroNormSVM(n_features_to_select=10).fit(design, y)
print("selected:", selector.get_support(indices=True))

# %%
scores = FisherScore().fit(design, y).path_.scores
fig, ax = plt.subplots(figsize=(8, 2.6))
ax.plot(scores, ".", markersize=1)
ax.set(xlabel="column", ylabel="Fisher score")
folder.cleanup()
