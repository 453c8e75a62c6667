"""The features a decision tree, or a forest of them, splits on."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from zeronorm._types import FloatArray
from zeronorm.design import Design, require_finite_stats
from zeronorm.engines.column_information import safe_ratio
from zeronorm.registry import register
from zeronorm.selection.kinds import choice, parameter_error
from zeronorm.selection.path import SelectionPath
from zeronorm.selection.problem import Problem
from zeronorm.selectors.base import BaseSelector

CRITERIA = {"classification": ("gini", "entropy"), "regression": ("squared_error",)}

FAR = 1e3  # mean of a column, in units of its range, from which it is moved to zero
WIDE = 1e30  # range of a column from which it is shrunk: sums over samples overflow in single precision
NARROW = 1e-2  # range of a column from which it is enlarged: scikit-learn takes differences of 1e-7 for none


@register(
    "tree",
    family="greedy",
    tasks=("binary", "multiclass", "regression"),
    reference="Breiman et al. 1984; Quinlan 1986; Lal et al. 2006, section 2.2",
    cost="n log n p for each level of a tree",
    oracle="scikit-learn's trees, and a brute-force best split",
    avoid="few samples; many weak linear effects; a list that must be stable (one tree)",
    test_params=(
        {"random_state": 0},
        {"task": "regression", "random_state": 0},
        {"n_trees": 5, "criterion": "entropy", "random_state": 0},
    ),
)
class TreeSelector(BaseSelector):
    r"""Select the features that a decision tree splits on, ranked by how much their splits help.

    A tree is built by forward selection: every node splits on the feature and threshold with the largest
    decrease of impurity :math:`H`, and the importance of a feature is the sum over its nodes,

    .. math:: I_j = \sum_{\text{nodes } t \text{ that split on } j} \frac{n_t}{n}
              \Bigl(H_t - \frac{n_{t,l}}{n_t} H_{t,l} - \frac{n_{t,r}}{n_t} H_{t,r}\Bigr),

    scaled to sum to one. With the entropy as impurity each term is the mutual information between the
    split and the target in the node. ``n_trees`` above one grows a random forest and averages.

    Features that no split uses follow, ordered by the share of their variance that lies between the
    classes (or their squared correlation with the target).

    Use it when thresholds and interactions matter and the units of the features do not. A single tree is
    unstable: small changes of the data change the features deep in the tree; a forest ranks more
    steadily but spreads importance over correlated features.

    scikit-learn grows the trees, from a dense single-precision copy of the data.

    Parameters
    ----------
    n_features_to_select
        None: the features that the tree uses.
    criterion
        "auto" is "gini" for classes and "squared_error" for regression.
    n_jobs
        Used for a forest.
    random_state
        It decides between equally good splits and draws the samples of a forest.

    Attributes
    ----------
    tree_ : estimator
        The fitted scikit-learn tree or forest; columns far from zero have been moved, very narrow ones enlarged.

    Examples
    --------
    >>> import numpy as np
    >>> from zeronorm import TreeSelector
    >>> y = np.arange(60) % 2
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> X[:, :2] += 2.0 * y[:, None]  # the first two features tell the classes apart
    >>> selector = TreeSelector(2, random_state=0).fit(X, y)
    >>> selector.get_support(indices=True).tolist()
    [0, 1]
    """

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        criterion: Literal["auto", "gini", "entropy", "squared_error"] = "auto",
        n_trees: int = 1,
        max_depth: int | None = None,
        min_samples_leaf: int | float = 1,
        task: Literal["classification", "regression"] = "classification",
        estimator: Any = None,
        feature_groups: Any = None,
        always_keep: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.criterion = criterion
        self.n_trees = n_trees
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.task = task
        self.estimator = estimator
        self.feature_groups = feature_groups
        self.always_keep = always_keep
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _select(self, problem: Problem) -> SelectionPath:
        learner = self._learner(problem)
        with problem.progress.task("Growing trees"):
            self.tree_ = learner.fit(_single_precision(problem.design), problem.y)
        trees = [self.tree_] if self.n_trees == 1 else self.tree_.estimators_
        used = np.zeros(problem.n_features, dtype=bool)
        for tree in trees:
            splits = tree.tree_.feature
            used[splits[splits >= 0]] = True
        importance = np.asarray(self.tree_.feature_importances_, dtype=np.float64)
        return SelectionPath.from_scores(
            _ranked_scores(importance, used, _association(problem)),
            own_size=int(used.sum()),
            last=problem.design.column_stats().is_constant(problem.design.dtype),
        )

    def _check_parameters(self) -> None:
        allowed = CRITERIA[self.task]
        if self.criterion not in ("auto", *allowed):
            words = choice("auto", *allowed).must_be
            raise parameter_error(self, "criterion", f"{words} for task={self.task!r}")

    def _learner(self, problem: Problem) -> Any:
        task = "regression" if problem.task == "regression" else "classification"
        allowed = CRITERIA[task]
        params: dict[str, Any] = {
            "criterion": allowed[0] if self.criterion == "auto" else self.criterion,
            "max_depth": self.max_depth,
            "min_samples_leaf": self.min_samples_leaf,
            "random_state": int(problem.rng.integers(2**31 - 1)),
        }
        if self.n_trees == 1:
            return (
                DecisionTreeRegressor(**params) if task == "regression" else DecisionTreeClassifier(**params)
            )
        forest = RandomForestRegressor if task == "regression" else RandomForestClassifier
        return forest(n_estimators=self.n_trees, max_features="sqrt", n_jobs=self.n_jobs, **params)


def _single_precision(design: Design) -> NDArray[np.float32]:
    """The data as trees want them; values too large for single precision are errors in scikit-learn."""
    data = np.empty(design.shape, dtype=np.float32, order="F")
    stats = design.column_stats()
    require_finite_stats(design, stats)
    # Splits do not depend on origin and unit of a column: one far from zero loses its differences to rounding.
    offset = np.where(np.abs(stats.mean) > FAR * (stats.maximum - stats.minimum), stats.mean, 0.0)
    spread = stats.maximum - stats.minimum
    is_extreme = (spread > 0.0) & ((spread < NARROW) | (spread > WIDE))
    factor = np.where(is_extreme, np.exp2(-np.floor(np.log2(np.where(is_extreme, spread, 1.0)))), 1.0)
    with np.errstate(over="ignore"):
        for columns, block in design.iter_blocks():
            data[:, columns] = (block - offset[columns]) * factor[columns]
    return data


def _association(problem: Problem) -> FloatArray:
    """Share of each column's variance that the target accounts for, without interactions."""
    design = problem.design
    if problem.task == "regression":
        centred = problem.y - problem.y.mean()
        spread = design.column_stats().variance * problem.n_samples * float(centred @ centred)
        return safe_ratio(design.transpose_dot(centred) ** 2, spread)
    stats = design.column_stats(problem.y)
    share = (stats.weight / stats.weight.sum())[:, None]
    return safe_ratio((share * (stats.class_mean - stats.mean) ** 2).sum(axis=0), stats.variance)


def _ranked_scores(importance: FloatArray, used: NDArray[np.bool_], association: FloatArray) -> FloatArray:
    """Importance of used features; below them all, the association of the others."""
    lowest = float(importance[used & (importance > 0.0)].min(initial=1.0))
    return np.where(used, np.maximum(importance, lowest), 0.5 * lowest * np.minimum(association, 1.0))
