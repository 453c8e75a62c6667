"""
In a pipeline, with a grid search and polars
============================================

Selectors are scikit-learn transformers: they can be cloned, used in a grid search, and return data frames.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
import polars as pl
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline

from zeronorm import FisherScore, Relief

data = load_breast_cancer()
table = pl.DataFrame(data.data, schema=[str(name) for name in data.feature_names])
steps = [("select", FisherScore()), ("predict", LogisticRegression(max_iter=5000))]
grid = {"select": [FisherScore(), Relief()], "select__n_features_to_select": [2, 10]}
search = GridSearchCV(Pipeline(steps), grid, cv=3).fit(table, data.target)
print(search.best_params_)

# %%
# With ``set_output`` the reduced table keeps its names:
print(FisherScore(3).set_output(transform="polars").fit_transform(table, data.target).head(3))

# %%
fig, ax = plt.subplots()
for name in ("FisherScore", "Relief"):
    mine = [type(p["select"]).__name__ == name for p in search.cv_results_["params"]]
    ax.plot([2, 10], np.asarray(search.cv_results_["mean_test_score"])[mine], "o-", label=name)
ax.set(xlabel="number of features", ylabel="accuracy (inner folds)")
ax.legend()
