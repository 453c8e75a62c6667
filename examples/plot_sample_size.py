"""
Would more patients help?
=========================

``learning_curve`` repeats the whole procedure, with the selection inside, on growing parts of the samples, and predicts
the error for two and four times as many.
"""

# %%
# 120 samples, 300 genes, of which eight differ a little between the classes.

import matplotlib.pyplot as plt
import numpy as np

from zeronorm import FisherScore, learning_curve

rng = np.random.default_rng(1)
y = np.arange(120) % 2
X = rng.normal(size=(120, 300))
X[:, :8] += 0.8 * y[:, None]

curve = learning_curve(FisherScore(8), X, y, draws=3)
print(curve.sentence())

# %%
# The measured errors, the fitted law, and the intervals for what would be measured.

sizes = np.geomspace(curve.points[0].n_train, 4 * curve.points[-1].n_train, 50)
fig, axis = plt.subplots(figsize=(6, 3.5))
axis.plot([p.n_train for p in curve.points], [p.value for p in curve.points], "o", label="measured")
axis.plot(sizes, [curve.at(size) for size in sizes], label="fitted law")
for prediction in curve.predictions:
    at = prediction.factor * curve.points[-1].n_train
    axis.plot([at, at], [prediction.low, prediction.high], color="grey")
    axis.plot(at, prediction.value, "s", color="grey")
axis.set_xscale("log")
axis.set_xlabel("training samples")
axis.set_ylabel("error rate")
axis.legend()
fig.tight_layout()

# %%
# Without any relation between genes and classes the answer is that nothing can be told.

print(learning_curve(FisherScore(8), rng.normal(size=(120, 300)), y, draws=2).sentence())
