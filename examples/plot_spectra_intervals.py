"""
Spectra: an interval instead of single channels
===============================================

Neighbouring channels of a spectrum carry the same information. ``IntervalSelector`` selects the range of the axis
that predicts best. The data come with the package: 21 infrared spectra of fermentation broths, 1047 wavenumbers, and
the glucose in each, measured by liquid chromatography.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import Ridge
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from zeronorm import IntervalSelector
from zeronorm.datasets import load_dataset

table = load_dataset("fermentation-spectra")
X, glucose = table.X, table.y
wavenumber = np.asarray([float(name.split()[0]) for name in table.feature_names])

selector = IntervalSelector(task="regression", random_state=0).fit(X, glucose)
chosen = wavenumber[selector.support_]
print(f"{len(chosen)} of {len(wavenumber)} channels, from {chosen.min():g} to {chosen.max():g} per cm")

# %%
# Each step halves the range and keeps the interval with the smallest cross-validated error, until the error rises. The
# selected range is where sugars absorb: their C–O bonds vibrate between about 950 and 1150 per cm.
fig, ax = plt.subplots(figsize=(8, 3.6))
colour = plt.get_cmap("viridis")(glucose / glucose.max())
for spectrum, shade in zip(X, colour, strict=True):
    ax.plot(wavenumber, spectrum, color=shade, linewidth=0.8)
ax.axvspan(chosen.min(), chosen.max(), color="gold", alpha=0.35, label="selected")
ax.set(xlim=(700, 1833), ylim=(-0.1, 1.3), xlabel="wavenumber (per cm)", ylabel="absorbance")
scale = plt.cm.ScalarMappable(plt.Normalize(0, glucose.max()), "viridis")
fig.colorbar(scale, ax=ax, label="glucose (g/L)")
ax.legend(loc="upper right")

# %%
# Is it better than the whole spectrum? The selector is a step of the pipeline, so it is repeated in every fold; with 21
# samples the answer is only rough.
model = make_pipeline(StandardScaler(), Ridge())
for name, steps in {
    "all channels": model,
    "interval": make_pipeline(IntervalSelector(task="regression", random_state=0), model),
}.items():
    predicted = cross_val_predict(steps, X, glucose, cv=7)
    print(f"{name}: typical error {np.sqrt(np.mean((predicted - glucose) ** 2)):.1f} g/L")
print(f"always the mean: {glucose.std():.1f} g/L")
