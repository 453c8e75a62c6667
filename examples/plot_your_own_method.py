"""
Your own method in one file
===========================

A method implements ``_select`` and its constructor. The base class provides validation, groups, forced features, ties,
names, ``transform`` and the path for every number of features. A package with an entry point in the group
``zeronorm.selectors`` adds the method to the command line.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine

from zeronorm import SelectionPath
from zeronorm.registry import register
from zeronorm.selectors import BaseSelector


@register("median-gap", family="filters", tasks=("binary", "multiclass"), reference="this example")
class MedianGap(BaseSelector):
    """Rank features by the largest gap between class medians, in units of the median deviation."""

    def __init__(self, n_features_to_select=None):
        self.n_features_to_select = n_features_to_select

    def _select(self, problem):
        X = problem.design.block(slice(None))
        medians = np.stack([np.median(X[problem.y == c], axis=0) for c in range(problem.n_classes)])
        scale = np.median(np.abs(X - np.median(X, axis=0)), axis=0)
        return SelectionPath.from_scores(np.ptp(medians, axis=0) / np.where(scale > 0, scale, 1.0))


# %%
data = load_wine(as_frame=True)
selector = MedianGap(3).fit(data.data, data.target)
print(selector.get_feature_names_out())

# %%
fig, ax = plt.subplots()
order = np.argsort(-selector.scores_)
ax.barh(data.data.columns[order][::-1], selector.scores_[order][::-1])
ax.set(xlabel="score")

# %%
# As a package
# ------------
# Put the class into a module of your own package and name it in ``pyproject.toml``:
#
# .. code-block:: toml
#
#    [project]
#    name = "median-gap"
#    version = "1.0"
#    dependencies = ["zeronorm"]
#
#    [project.entry-points."zeronorm.selectors"]
#    median-gap = "median_gap:MedianGap"
#
# After ``pip install .`` the method is in ``zeronorm methods``, and ``zeronorm select data.csv --method median-gap``
# uses it.
# ``zeronorm.testing.check_selector(MedianGap())`` runs the checks that every method of the library must pass.
