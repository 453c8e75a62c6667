"""
Select genes and estimate the error without bias
================================================

The table comes with the package: 122 blood cells of a healthy donor, cytotoxic or regulatory T cells, with the
expression of 765 genes. We name ten genes and measure how well the *whole procedure*, selection included, predicts
cells it has not seen.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

from zeronorm import AROM, FisherScore, RandomSelector, evaluate
from zeronorm.datasets import load_dataset

table = load_dataset("t-cells")
X, y = table.to_frame(), table.y
print(table.class_counts, "cells,", table.n_features, "genes")

# %%
# ``evaluate`` repeats the selection on the training samples of every fold. Each method is fitted once per split, for
# any number of sizes.
methods = {
    "AROM": AROM(),
    "Fisher": FisherScore(),
    "random": RandomSelector(random_state=0),
}
records = evaluate(methods, X, y, cv=5, sizes=[2, 5, 10, 20, 50], random_state=0)

# %%
# The mean error on cells that were not used for the selection:
fig, ax = plt.subplots()
for name in methods:
    rows = [row for row in records.iter_rows(named=True) if row["method"] == name]
    sizes = sorted({row["size"] for row in rows})
    error = [np.mean([row["error_rate"] for row in rows if row["size"] == size]) for size in sizes]
    ax.plot(sizes, error, "o-", label=name)
chance = 1 - max(table.class_counts.values()) / table.n_samples
ax.axhline(chance, color="grey", linestyle=":", label="always the larger class")
ax.set(xscale="log", xlabel="number of genes", ylabel="error rate on unseen cells", ylim=(0, None))
ax.set_xticks(sizes, sizes)
ax.minorticks_off()
ax.legend()

# %%
# The final set is selected on all cells. NKG7, GNLY and CST7 belong to the granules with which cytotoxic cells kill,
# and CD8B is part of the receptor they are named after.
selector = AROM(n_features_to_select=10).fit(X, y)
print(selector.get_feature_names_out())
fig, ax = plt.subplots(figsize=(7, 3.8), layout="constrained")
for label, shift in (("cytotoxic", -0.2), ("regulatory", 0.2)):
    values = table.X[y == label][:, selector.get_support(indices=True)]
    ax.bar(np.arange(10) + shift, values.mean(axis=0), width=0.4, label=label)
ax.set_xticks(range(10), selector.get_feature_names_out(), rotation=45, ha="right")
ax.set(ylabel="mean expression (log scale)")
ax.legend()
