"""
Zero norm compared with the ℓ1 norm
===================================

The ℓ1 norm selects features by shrinking weights, and it also shrinks the weights that it keeps. Methods that minimise
the number of features need fewer of them for the same error.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.svm import LinearSVC

from zeronorm import L1SVM, ZeroNormSVM, evaluate
from zeronorm.datasets import make_linear_toy

X, y, _ = make_linear_toy(60, random_state=3)
sizes = [1, 2, 3, 4, 6, 8, 12]
methods = {"zero norm": ZeroNormSVM(), "ℓ1 norm": L1SVM()}
records = evaluate(methods, X, y, cv=5, sizes=sizes, estimator=LinearSVC(), random_state=0)

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
ax.set(
    xlabel="number of features", ylabel="error rate on unseen samples", title="two features of 202 suffice"
)
ax.legend()
