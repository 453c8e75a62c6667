"""
Features that are relevant only together
========================================

Two features separate the classes only together: each class has two centres, on opposite sides. Filters that score
one column at a time, and linear models, cannot find them. An SVM with an RBF kernel can.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

from zeronorm import RFE, FisherScore, Relief
from zeronorm.datasets import make_nonlinear_toy

X, y, relevant = make_nonlinear_toy(100, random_state=0)
print(
    f"{X.shape[1]} features, relevant: {np.flatnonzero(relevant) if np.asarray(relevant).dtype == bool else relevant}"
)

# %%
selectors = {
    "Fisher": FisherScore(2),
    "RFE, linear": RFE(n_features_to_select=2),
    "Relief": Relief(2),
    "RFE, RBF kernel": RFE(n_features_to_select=2, kernel="rbf"),
}
fig, axes = plt.subplots(1, len(selectors), figsize=(12, 3.2), sharex=False)
for ax, (name, selector) in zip(axes, selectors.items(), strict=True):
    first, second = selector.fit(X, y).get_support(indices=True)
    ax.scatter(X[:, first], X[:, second], c=y, cmap="coolwarm", s=12)
    ax.set(title=name, xlabel=f"feature {first}", ylabel=f"feature {second}")
fig.tight_layout()
