"""
Groups of features: select sensors, not columns
===============================================

Eight sensors deliver five columns each. A sensor is used as a whole or not at all, so its columns are selected or
removed together.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

from zeronorm import RFE

rng = np.random.default_rng(0)
n, n_sensors, width = 80, 8, 5
y = np.repeat([0, 1], n // 2)
X = rng.normal(size=(n, n_sensors * width))
X[y == 1, 10:15] += 1.0  # all columns of sensor 2, somewhat
X[y == 1, 25:28] += 1.5  # three columns of sensor 5
sensor = np.repeat(np.arange(n_sensors), width)

selector = RFE(n_features_to_select=2 * width, feature_groups=sensor).fit(X, y)
print("sensors kept:", sorted(set(sensor[selector.support_].tolist())))

# %%
fig, ax = plt.subplots(figsize=(8, 2.6))
ax.bar(range(X.shape[1]), selector.ranking_.max() + 1 - selector.ranking_, color=[f"C{s}" for s in sensor])
ax.set(xlabel="column (coloured by sensor)", ylabel="order of removal (last is best)")
