"""
Several classes at once
=======================

Ten digits, 64 pixels. One set of pixels must serve all classes; the machines of all classes are summed up in the
ranking.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from zeronorm import RFE, FisherScore, RandomSelector, evaluate

X, y = load_digits(return_X_y=True)
rows = np.random.default_rng(0).choice(len(y), 400, replace=False)
methods = {"RFE": RFE(step=4), "Fisher": FisherScore(), "random": RandomSelector(random_state=0)}
sizes = [5, 10, 20, 40]
records = evaluate(methods, X[rows], y[rows], cv=3, sizes=sizes, random_state=0)

# %%
fig, ax = plt.subplots()
for name in methods:
    error = [
        np.mean(
            [
                row["error_rate"]
                for row in records.iter_rows(named=True)
                if (row["method"], row["size"]) == (name, k)
            ]
        )
        for k in sizes
    ]
    ax.plot(sizes, error, "o-", label=name)
ax.set(xlabel="pixels", ylabel="error rate on unseen digits")
ax.legend()
