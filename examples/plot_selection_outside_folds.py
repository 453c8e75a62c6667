"""
Selection outside the folds is biased
=====================================

The labels are random: nothing can predict them. Selecting the ten best of 2000 features on *all* samples and
cross-validating afterwards still gives a small error, because the test samples were used for the selection.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from zeronorm import FisherScore

wrong, honest = [], []
for seed in range(15):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(50, 2000)), np.repeat([0, 1], 25)
    chosen = FisherScore(10).fit_transform(X, y)
    wrong.append(1 - cross_val_score(LinearSVC(), chosen, y, cv=5).mean())
    honest.append(1 - cross_val_score(make_pipeline(FisherScore(10), LinearSVC()), X, y, cv=5).mean())

# %%
fig, ax = plt.subplots()
ax.boxplot([wrong, honest], tick_labels=["selected on all samples", "selected inside each fold"])
ax.axhline(0.5, color="grey", linestyle=":")
ax.set(ylabel="cross-validated error", ylim=(0, 0.75), title="labels are pure chance: the truth is 50 %")
