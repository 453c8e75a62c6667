"""
A second cohort: does the promised error hold?
==============================================

A model is selected on one cohort and applied to two others: one of the same kind, and one in which the relevant
features differ less between the classes. The score is compared with the error that the outer folds promised.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import zeronorm


def cohort(n, difference, seed):
    """Sixty features, of which six differ between ill and well."""
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2, "ill", "well")
    X = rng.normal(size=(n, 60))
    X[:, :6] += difference * (y == "ill")[:, None]
    return pd.DataFrame(X, columns=[f"gene {i}" for i in range(60)]), y


genes, state = cohort(120, 1.0, 0)
result = zeronorm.select(genes, state, method="fisher", features=6, permutations=0)
same = zeronorm.apply(result, *cohort(150, 1.0, 1))
weaker = zeronorm.apply(result, *cohort(150, 0.3, 2))
for name, found in (("same kind", same), ("weaker effects", weaker)):
    print(f"{name}: {found.headline}")

# %%
# Calibration of the probabilities: on the diagonal the predicted probability is the share that was found.

fig, ax = plt.subplots(figsize=(4.5, 4))
for name, found in (("same kind", same), ("weaker effects", weaker)):
    bins = found.calibration["bins"]
    ax.plot([row["predicted"] for row in bins], [row["value"] for row in bins], "o-", label=name)
ax.plot([0, 1], [0, 1], "--", color="grey")
ax.set(xlabel="predicted probability of well", ylabel="share of well")
ax.legend()

# %%
# The second cohort lacks a gene of the model: it is predicted from the others.

X, y = cohort(150, 1.0, 1)
refit = zeronorm.apply(result, X.drop(columns=result.features[0]), y, missing_features="refit")
print(refit.headline)
print(refit.warnings[0])

# %%
# A list that somebody else chose, beside random lists of the same size.

panel = zeronorm.test_panel(["gene 0", "gene 1", "gene 50"], genes, state, method="fisher", random_lists=99)
print(panel.headline)
panel.plot("random-lists")
