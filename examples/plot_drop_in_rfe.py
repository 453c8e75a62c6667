"""
Recursive feature elimination: change one import line
=====================================================

``zeronorm.RFE`` takes the parameters of scikit-learn's class and gives the same ranking. It does not refit estimators
such as a linear ``SVC`` or ``Ridge`` after every removal, which is much faster.
"""

# %%
import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_selection import RFE as PlainRFE
from sklearn.linear_model import Ridge

from zeronorm import RFE

rng = np.random.default_rng(0)
X = rng.normal(size=(80, 300))
y = X[:, :5] @ np.array([3.0, -2.0, 1.5, 1.0, -1.0]) + 0.5 * rng.normal(size=80)

# %%
# Both classes are called in the same way.
seconds = {}
for name, cls in {"scikit-learn": PlainRFE, "zeronorm": RFE}.items():
    start = time.perf_counter()
    seconds[name] = cls(Ridge(alpha=1.0), n_features_to_select=5)
    seconds[name].fit(X, y)
    seconds[name] = (time.perf_counter() - start, seconds[name].ranking_)

same = np.mean(seconds["scikit-learn"][1] == seconds["zeronorm"][1])
print(f"the same rank for {same:.0%} of the features")

# %%
fig, ax = plt.subplots()
ax.bar(list(seconds), [value[0] for value in seconds.values()])
ax.set(ylabel="seconds", yscale="log", title="the same elimination, twice")
