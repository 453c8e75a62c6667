"""
On a GPU
========

Arrays of torch or CuPy stay on their device: all products with the data run there, and only results come back.
Install ``zeronorm[gpu]`` and the library of your device. Without torch this script uses NumPy; without a CUDA device
it uses torch on the CPU, with the same calls.
"""

# %%
import importlib.util

import matplotlib.pyplot as plt
import numpy as np

from zeronorm import FisherScore, ZeroNormSVM, as_design

rng = np.random.default_rng(0)
n, p = 60, 5_000
y = np.repeat([0, 1], n // 2)
X = rng.normal(size=(n, p)).astype(np.float32)
X[np.ix_(y == 1, np.arange(5))] += 2.5

# %%
# Only the array differs: it is stored on the GPU. A ``Design`` is made once and used by several selectors.
needed = ("torch", "array_api_compat")
is_ready = all(importlib.util.find_spec(name) for name in needed)
if is_ready:
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    design = as_design(torch.asarray(X, device=device))
    print("the data are on", device)
else:
    design = as_design(X)
    print("torch or array-api-compat is not installed: the data stay with NumPy")

selector = ZeroNormSVM(n_features_to_select=5).fit(design, y)
print("selected:", selector.get_support(indices=True))

# %%
# The result is the same as with NumPy, except for ties.
on_host = ZeroNormSVM(n_features_to_select=5).fit(X, y)
print("the same features as with NumPy:", bool((on_host.support_ == selector.support_).all()))

# %%
scores = FisherScore().fit(design, y).scores_
fig, ax = plt.subplots(figsize=(8, 2.6))
ax.plot(scores, ".", markersize=2)
ax.set(xlabel="column", ylabel="Fisher score")
