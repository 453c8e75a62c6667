"""
Select genes and state the error honestly
=========================================

The table has 60 samples and 2000 columns, as a small expression study has. We name ten columns and measure how
well the *whole procedure*, selection included, predicts samples it has not seen.
"""

# %%
# Ten of the columns differ between the classes; the others are noise that is correlated in blocks of ten.
import matplotlib.pyplot as plt
import numpy as np

from zeronorm import AROM, FisherScore, RandomSelector, evaluate

rng = np.random.default_rng(0)
n, p = 60, 2000
y = np.repeat(["normal", "tumour"], n // 2)
X = 0.7 * np.repeat(rng.normal(size=(n, p // 10)), 10, axis=1) + 0.7 * rng.normal(size=(n, p))
relevant = np.arange(0, 100, 10)
X[np.ix_(y == "tumour", relevant)] += 1.0

# %%
# ``evaluate`` repeats the selection inside every training part. Each method is fitted once per split, however many
# sizes are asked for.
methods = {
    "AROM": AROM(),
    "Fisher": FisherScore(),
    "random": RandomSelector(random_state=0),
}
records = evaluate(methods, X, y, cv=5, sizes=[2, 5, 10, 20, 50], random_state=0)

# %%
# The mean error on samples that took no part in the selection:
fig, ax = plt.subplots()
for name in methods:
    rows = [row for row in records.iter_rows(named=True) if row["method"] == name]
    sizes = sorted({row["size"] for row in rows})
    error = [np.mean([row["error_rate"] for row in rows if row["size"] == size]) for size in sizes]
    ax.plot(sizes, error, "o-", label=name)
ax.axhline(0.5, color="grey", linestyle=":", label="chance")
ax.set(xscale="log", xlabel="number of features", ylabel="error rate on unseen samples")
ax.legend()

# %%
# The final set comes from all samples:
selector = AROM(n_features_to_select=10).fit(X, y)
found = selector.get_support(indices=True)
print(f"{np.isin(found, relevant).sum()} of the 10 selected columns are relevant: {found}")
