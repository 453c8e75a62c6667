"""
Several classes at once
=======================

The table comes with the package: 692 blood cells of nine types with at least ten cells each, and the expression of 765
genes. One set of genes is selected for all classes: the ranking sums the weights of the classifiers of all classes.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

from zeronorm import RFE, FisherScore, RandomSelector, evaluate
from zeronorm.datasets import load_dataset

table = load_dataset("blood-cells", min_class_size=10)
for name, count in table.class_counts.items():
    print(f"{count:4d} {name}")
methods = {"RFE": RFE(step=0.2), "Fisher": FisherScore(), "random": RandomSelector(random_state=0)}
sizes = [5, 10, 20, 40, 80]
records = evaluate(methods, table.X, table.y, cv=3, sizes=sizes, random_state=0)

# %%
# The balanced error gives every type the same weight, so that a method must also predict the rare types.
fig, ax = plt.subplots()
for name in methods:
    error = [
        np.mean(
            [
                row["balanced_error_rate"]
                for row in records.iter_rows(named=True)
                if (row["method"], row["size"]) == (name, k)
            ]
        )
        for k in sizes
    ]
    ax.plot(sizes, error, "o-", label=name)
ax.set(xlabel="genes", ylabel="balanced error rate on unseen cells", ylim=(0, None))
ax.legend()

# %%
# Genes of the Fisher score that differ most, by type of cell:
selector = FisherScore(n_features_to_select=12).fit(table.to_frame(), table.y)
types = sorted(table.class_counts)
columns = selector.get_support(indices=True)
means = np.asarray([table.X[table.y == t][:, columns].mean(axis=0) for t in types])
fig, ax = plt.subplots(figsize=(8, 4), layout="constrained")
picture = ax.imshow(means, cmap="viridis", aspect="auto")
ax.set_yticks(range(len(types)), types)
ax.set_xticks(range(12), selector.get_feature_names_out(), rotation=60)
fig.colorbar(picture, label="mean expression (log scale)")
