"""
Stability selection: features selected on most samples
======================================================

A selector is run on many random halves of the data. Features that it chooses on most of them are kept, with a bound on
the expected number of false ones.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

from zeronorm import AROM, StabilitySelection

rng = np.random.default_rng(1)
n, p = 80, 200
y = np.repeat([0, 1], n // 2)
X = rng.normal(size=(n, p))
X[y == 1, :6] += 1.2

selector = StabilitySelection(AROM(), n_subsamples=40, false_selections=2.0, random_state=0).fit(X, y)
print(f"at most {selector.false_selections_:.1f} false selections expected, {selector.assumption_}")

# %%
order = np.argsort(-selector.frequencies_)[:30]
fig, ax = plt.subplots()
ax.bar(range(30), selector.frequencies_[order], color=["tab:blue" if j < 6 else "lightgrey" for j in order])
ax.axhline(selector.threshold, color="firebrick", linestyle="--")
ax.set(xlabel="features by frequency (relevant ones in blue)", ylabel="share of the halves")
