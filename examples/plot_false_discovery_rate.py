"""
Knockoffs: bound the share of false discoveries
===============================================

Columns that are correlated with a relevant one have small p-values too. Knockoffs are noise columns with the same
correlations; a feature is selected only if its score exceeds that of its knockoff by enough. The share of false
discoveries then stays below the level on average.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from scipy import stats

from zeronorm import FisherScore, KnockoffSelector
from zeronorm.evaluation.significance import adjust_p_values

n, p, level = 250, 60, 0.2
shares = {"p-values (Benjamini-Hochberg)": [], "knockoffs": []}
for seed in range(25):
    rng = np.random.default_rng(seed)
    chain = rng.normal(size=(n, p))
    for j in range(1, p):
        chain[:, j] = 0.6 * chain[:, j - 1] + 0.8 * chain[:, j]
    relevant = rng.choice(p, 10, replace=False)
    y = (chain[:, relevant] @ rng.choice([-1.0, 1.0], 10) + rng.normal(size=n) > 0).astype(int)
    p_values = stats.ttest_ind(chain[y == 0], chain[y == 1], equal_var=False).pvalue
    by_p = np.flatnonzero(adjust_p_values(p_values, "benjamini-hochberg") <= level)
    selector = KnockoffSelector(FisherScore(), level=level, random_state=seed).fit(chain, y)
    for name, chosen in zip(shares, (by_p, selector.get_support(indices=True)), strict=True):
        shares[name].append(np.mean(~np.isin(chosen, relevant)) if len(chosen) else 0.0)

# %%
fig, ax = plt.subplots()
ax.boxplot(list(shares.values()), tick_labels=list(shares))
ax.axhline(level, color="firebrick", linestyle="--", label=f"level {level}")
ax.plot([1, 2], [np.mean(values) for values in shares.values()], "D", label="mean")
ax.set(ylabel="share of false discoveries")
ax.legend()
