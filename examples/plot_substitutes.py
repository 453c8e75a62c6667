"""
Which other genes would do as well?
===================================

The selected genes are one of many lists. ``substitutes`` finds the genes that can stand in for each of them, and says
where the samples are too few to tell.
"""

# %%
# 300 samples, 400 genes. Five genes are read-outs of one pathway, with little noise; one more determines the class.

import matplotlib.pyplot as plt
import numpy as np

from zeronorm import GramSchmidt, substitutes

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 400))
pathway = rng.normal(size=300)
noise = np.array([0.05, 0.05, 0.1, 0.5, 1.0])
X[:, :5] = pathway[:, None] + noise * X[:, :5]
y = (pathway + X[:, 5] + 0.4 * rng.normal(size=300) > 0).astype(int)

selector = GramSchmidt(2).fit(X, y)
found = substitutes(X, y, selector)
print(found.sentence())
for feature in found.features:
    print(feature.sentence())

# %%
# With 60 of the samples, of more genes it cannot be told whether something would be lost.

few = substitutes(X[:60], y[:60], selector)
for feature in few.features:
    print(feature.sentence())

# %%
# The noisier the read-out, the more of what the selected gene adds is left: the last ones cannot stand in.

readouts = [f"x{i}" for i in range(5)]
chosen = next(feature for feature in found.features if feature.index < 5)
replaceable = {each.name for each in chosen.substitutes}
colours = ["tab:green" if name in {*replaceable, chosen.name} else "tab:red" for name in readouts]
correlation = [abs(np.corrcoef(X[:, chosen.index], X[:, i])[0, 1]) for i in range(5)]

fig, axis = plt.subplots(figsize=(6, 3))
axis.bar(readouts, correlation, color=colours)
axis.set_ylabel(f"correlation with {chosen.name}")
axis.set_title("green: can stand in")
fig.tight_layout()
