"""
Optimal feature weighting on images
===================================

Pixels of handwritten digits, 4 against 9. The method learns a probability for each pixel, with which it is drawn
into a small random set of pixels on which a simple classifier is trained.
"""

# %%
import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from zeronorm import OptimalFeatureWeighting

digits = load_digits()
keep = (digits.target == 4) | (digits.target == 9)
X, y = digits.data[keep], digits.target[keep]
selector = OptimalFeatureWeighting(n_features_to_select=12, subset_size=8, random_state=0).fit(X, y)

# %%
fig, axes = plt.subplots(1, 4, figsize=(9, 2.6))
for ax, label in zip(axes, (4, 9), strict=False):
    ax.imshow(X[y == label].mean(axis=0).reshape(8, 8), cmap="gray_r")
    ax.set_title(f"mean {label}")
axes[2].imshow(selector.scores_.reshape(8, 8), cmap="viridis")
axes[2].set_title("scores of the pixels")
axes[3].imshow(selector.support_.reshape(8, 8), cmap="gray_r")
axes[3].set_title("twelve pixels")
for ax in axes:
    ax.axis("off")
