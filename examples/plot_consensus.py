"""
Combine several methods: consensus
==================================

Different methods make different mistakes. ``Consensus`` averages their rankings; it also counts how often each feature
is selected on random halves of the data.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

from zeronorm import Consensus, FisherScore, Relief, ShrunkenCentroids

rng = np.random.default_rng(0)
n, p = 60, 300
y = np.repeat([0, 1], n // 2)
X = rng.normal(size=(n, p))
X[y == 1, :5] += 1.2

methods = [FisherScore(), Relief(), ShrunkenCentroids()]
selector = Consensus(methods, n_features_to_select=5, n_subsamples=20, subset_size=10, random_state=0).fit(
    X, y
)
print(
    "selected:",
    selector.get_support(indices=True),
    f"bound on false ones: {selector.false_selections(0.75):.1f}",
)

# %%
order = np.argsort(-selector.frequencies_)[:25]
fig, ax = plt.subplots()
ax.bar(range(25), selector.frequencies_[order], color=["tab:blue" if j < 5 else "lightgrey" for j in order])
ax.set(
    xlabel="features by frequency (relevant ones in blue)", ylabel="share of the halves among the first 10"
)
