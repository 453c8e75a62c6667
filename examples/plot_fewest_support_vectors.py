"""
The fewest support vectors
==========================

Minimising the zero norm of the coefficients of the samples, instead of the features, gives a kernel classifier with few
support vectors.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons
from sklearn.svm import SVC

from zeronorm.models import SparseKernelSVC

X, y = make_moons(150, noise=0.2, random_state=0)
models = {"SVC": SVC(gamma=1.0).fit(X, y), "SparseKernelSVC": SparseKernelSVC(gamma=1.0).fit(X, y)}

# %%
grid = np.stack(np.meshgrid(np.linspace(-2, 3, 120), np.linspace(-1.5, 2, 120)), axis=-1)
fig, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True)
for ax, (name, model) in zip(axes, models.items(), strict=True):
    values = model.decision_function(grid.reshape(-1, 2)).reshape(120, 120)
    ax.contour(grid[..., 0], grid[..., 1], values, levels=[0], colors="black")
    ax.scatter(*X.T, c=y, cmap="coolwarm", s=10, alpha=0.5)
    vectors = X[model.support_]
    ax.scatter(*vectors.T, facecolors="none", edgecolors="black", s=60)
    ax.set_title(f"{name}: {len(vectors)} support vectors")
