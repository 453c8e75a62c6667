"""
What do genes add to the age?
=============================

Many features follow the age, and so does the outcome. A list that predicts the outcome may only know the age. With
``adjust`` features are selected for what they add to it.
"""

# %%
# 90 patients and 60 genes, 20 of which follow the age. Only the genes 40 and 41 matter beside it.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import zeronorm

rng = np.random.default_rng(0)
age = rng.normal(60, 10, 90)
genes = rng.normal(size=(90, 60))
genes[:, :20] += (age[:, None] - 60) / 7
risk = (age - 60) / 6 + genes[:, 40] - genes[:, 41] + rng.normal(size=90)
table = pd.DataFrame(genes, columns=[f"gene{k}" for k in range(60)])
table["age"], table["relapse"] = age, np.where(risk > 0, "yes", "no")

# %%
# Without the age, the list is one of genes that follow it.

settings = {"method": "fisher", "features": 2, "metric": "auc", "permutations": 19}
alone = zeronorm.select(table, "relapse", ignore="age", **settings)
print(alone.headline, alone.features)

# %%
# Beside the age, other genes are selected, and the result says how much they add.

beside = zeronorm.select(table, "relapse", adjust="age", **settings)
print(beside.headline, beside.features)
added = beside.procedure["added"]
print(f"difference {added['difference']:.3f}, 95 % interval {added['low']:.3f} to {added['high']:.3f}")

# %%
# The three models on the same folds.

names = ["covariates_alone", "features_alone", "both"]
fig, axis = plt.subplots(figsize=(6, 2.2))
axis.barh([name.replace("_", " ") for name in names][::-1], [added[name] for name in names][::-1])
axis.set_xlabel("area under the ROC curve, outer folds")
axis.set_xlim(0.5, 1.0)
fig.tight_layout()

# %%
# Genes that follow the age add nothing to it, although they predict the outcome.

followers = [f"gene{k}" for k in range(20)]
nothing = zeronorm.select(table, "relapse", only=followers, adjust="age", **settings)
print(nothing.headline)
