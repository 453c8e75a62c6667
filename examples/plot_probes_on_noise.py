"""
Random probes: how many features are better than noise?
=======================================================

Shuffled copies of the columns (probes) are ranked together with the features. A feature is selected only if few probes
rank above it. On pure noise this selects few features or none.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

from zeronorm import FisherScore, ProbeSelector

rng = np.random.default_rng(0)
n, p = 60, 300
y = np.repeat([0, 1], n // 2)
noise = rng.normal(size=(n, p))
signal = noise.copy()
signal[y == 1, :8] += 1.5

fig, axes = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True)
for ax, (title, X) in zip(
    axes, {"pure noise": noise, "eight relevant features": signal}.items(), strict=True
):
    selector = ProbeSelector(FisherScore(), level=0.05, control="fdr", random_state=0).fit(X, y)
    ax.hist(selector.p_values_, bins=20)
    ax.set(title=f"{title}: {selector.n_features_} selected", xlabel="share of probes ranked above (p-value)")
axes[0].set_ylabel("features")
