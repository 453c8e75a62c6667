"""
Spectra: an interval instead of single channels
===============================================

Neighbouring channels of a spectrum carry the same information. ``IntervalSelector`` looks for the stretch of the axis
that predicts best.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

from zeronorm import IntervalSelector

rng = np.random.default_rng(0)
axis = np.linspace(1000, 4000, 240)
y = np.repeat([0, 1], 30)
peak = np.exp(-0.5 * ((axis - 2600) / 60) ** 2)
background = np.exp(-0.5 * ((axis - 1800) / 300) ** 2)
X = background * rng.normal(1, 0.2, size=(60, 1)) + 0.15 * rng.normal(size=(60, 240))
X += np.outer(0.25 * y, peak)

selector = IntervalSelector(n_features_to_select=30, random_state=0).fit(X, y)
chosen = selector.support_

# %%
fig, ax = plt.subplots(figsize=(8, 3.2))
for label in (0, 1):
    ax.plot(axis, X[y == label].mean(axis=0), label=f"class {label}")
ax.axvspan(axis[chosen].min(), axis[chosen].max(), color="gold", alpha=0.4, label="selected")
ax.set(xlabel="position", ylabel="mean intensity")
ax.legend()
