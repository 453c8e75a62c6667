"""Selection of the features on which a decision tree or a random forest splits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from zeronorm._types import FloatArray, IntArray, written
from zeronorm.design import Design, require_finite_stats
from zeronorm.engines._column_information import explained_share
from zeronorm.execution import stoppable
from zeronorm.registry import register
from zeronorm.selection._kinds import choice, parameter_error
from zeronorm.selection._path import SelectionPath
from zeronorm.selection._problem import Problem
from zeronorm.selection.target import Labels, Real, Target
from zeronorm.selectors._base import BaseSelector

CRITERIA = {Labels.task: ("gini", "entropy", "error"), Real.task: ("squared_error",)}

N_FOLDS = 5  # of the cross-validation that chooses the cost of a leaf
MOST_ENTRIES = 2_000_000  # class counts held in memory at one time
LEAST_GAIN = 1e-12  # smallest decrease of the Gini impurity, in samples, that counts as a split

SAME = 1e-7  # differences that scikit-learn's trees take for none (FEATURE_THRESHOLD)


@register(
    "tree",
    family="greedy",
    tasks=("binary", "multiclass", "regression"),
    reference="Breiman et al. 1984; Quinlan 1986; Lal et al. 2006, section 2.2",
    cost="n log n p for each level of a tree",
    oracle="scikit-learn's trees, brute force over splits and over all subtrees",
    avoid="few samples; many weak linear effects; a selection that must be stable (one tree)",
    test_params=(
        {"random_state": 0},
        {"task": "regression", "random_state": 0},
        {"n_trees": 5, "criterion": "entropy", "random_state": 0},
        {"criterion": "error", "ccp_alpha": 0.01, "random_state": 0},
    ),
)
class TreeSelector(BaseSelector):
    r"""Select the features that a decision tree splits on, ranked by how much their splits help.

    A tree is built by forward selection: every node splits on the feature and threshold with the largest
    decrease of impurity :math:`H`, and the importance of a feature is the sum over its nodes,

    .. math:: I_j = \sum_{\text{nodes } t \text{ that split on } j} \frac{n_t}{n}
              \Bigl(H_t - \frac{n_{t,l}}{n_t} H_{t,l} - \frac{n_{t,r}}{n_t} H_{t,r}\Bigr),

    scaled to sum to one. With the entropy as impurity each term is the mutual information between the
    split and the target in the node; with the error, :math:`H_t = 1 - \max_c n_{tc}/n_t`, a split makes the fewest
    training errors (of equally good ones the split with the smaller Gini impurity is taken). ``n_trees`` above one
    grows a random forest and averages.

    A tree that fits every training sample splits on noise. Cost-complexity pruning keeps the subtree T
    with the smallest

    .. math:: \sum_{\text{leaves } t \text{ of } T} \frac{n_t}{n} H_t + \alpha\,|\text{leaves of } T|,

    where :math:`\alpha` is ``ccp_alpha``; features that only the pruned branches use are not selected.

    Features that no split uses follow, ordered by the share of their variance that lies between the
    classes (or their squared correlation with the target).

    Use it when thresholds and interactions matter and the units of the features do not. A single tree is
    unstable: small changes of the data change the features deep in the tree; a forest is more
    stable but divides importance among correlated features.

    scikit-learn grows the trees (except for the error, which it does not offer), from a dense single-precision copy of
    the data.

    Parameters
    ----------
    n_features_to_select
        None: the features that the tree uses.
    criterion
        "auto" is "gini" for classes and "squared_error" for regression. "error" grows a single tree.
    ccp_alpha
        0 keeps the whole tree. "auto" chooses it for a single tree by cross-validation in five folds: the largest cost
        whose error is within one standard error of the smallest.
    n_jobs
        Used for a forest.
    random_state
        It chooses between equally good splits and draws the samples of a forest.

    Attributes
    ----------
    tree_ : estimator or Nodes
        The fitted scikit-learn tree or forest; columns whose values single precision cannot tell apart have been
        replaced by their ranks. With ``criterion="error"`` the arrays ``feature``, ``threshold``, ``left`` and
        ``right`` of the nodes.
    ccp_alpha_ : float
        The cost of a leaf that was used.

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
        criterion: Literal["auto", "gini", "entropy", "error", "squared_error"] = "auto",
        ccp_alpha: float | Literal["auto"] = 0.0,
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
        self.ccp_alpha = ccp_alpha
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
        data, seed = _single_precision(problem.design), int(problem.rng.integers(2**31 - 1))
        problem = problem.around_zero()  # impurities are differences of squares
        with problem.progress.task("Growing trees"):
            grow = self._grower(problem, seed)
            self.ccp_alpha_ = float(
                chosen_cost(grow, data, problem.target, seed)
                if isinstance(self.ccp_alpha, str)
                else self.ccp_alpha
            )
            self.tree_: Any = None
            if self.criterion == "error":
                nodes = grow(data, problem.y).pruned(self.ccp_alpha_)
                used, importance = nodes.used(problem.n_features), nodes.importance(problem.n_features)
                self.tree_ = nodes
            else:
                self.tree_ = self._learner(problem, seed).set_params(ccp_alpha=self.ccp_alpha_)
                stoppable(lambda: self.tree_.fit(data, problem.y))
                used, importance = self._used(problem.n_features), self.tree_.feature_importances_
        return SelectionPath.from_scores(
            _ranked_scores(np.asarray(importance, dtype=np.float64), used, explained_share(problem)),
            selected_size=int(used.sum()),
            last=problem.design.column_stats().is_constant(problem.design.dtype),
        )

    def _check_parameters(self) -> None:
        allowed = CRITERIA[self.task]
        if self.criterion not in ("auto", *allowed):
            accepted = choice("auto", *allowed).must_be
            raise parameter_error(self, "criterion", f"{accepted} for task={self.task!r}")
        if self.n_trees > 1 and (self.criterion == "error" or isinstance(self.ccp_alpha, str)):
            which = (
                "criterion='error'" if self.criterion == "error" else f"ccp_alpha={written(self.ccp_alpha)}"
            )
            raise parameter_error(self, "n_trees", f"1 with {which}")

    def _used(self, n_features: int) -> NDArray[np.bool_]:
        used = np.zeros(n_features, dtype=bool)
        for tree in [self.tree_] if self.n_trees == 1 else self.tree_.estimators_:
            splits = tree.tree_.feature
            used[splits[splits >= 0]] = True
        return used

    def _grower(self, problem: Problem, seed: int) -> Grower:
        """The function that grows one whole tree on some of the samples."""
        if self.criterion != "error":
            return lambda data, y: Nodes.of(stoppable(lambda: self._learner(problem, seed).fit(data, y)))

        def grow(data: NDArray[np.float32], y: NDArray[Any]) -> Nodes:
            share, count = self.min_samples_leaf, len(y)
            least = int(np.ceil(share * count)) if isinstance(share, float) else int(share)
            return grow_by_error(data, y, problem.n_classes, max_depth=self.max_depth, min_leaf=max(1, least))

        return grow

    def _learner(self, problem: Problem, seed: int) -> Any:
        allowed, has_classes = CRITERIA[problem.target.task], problem.target.has_classes
        params: dict[str, Any] = {
            "criterion": allowed[0] if self.criterion == "auto" else self.criterion,
            "max_depth": self.max_depth,
            "min_samples_leaf": self.min_samples_leaf,
            "random_state": seed,
        }
        if self.n_trees == 1:
            return (DecisionTreeClassifier if has_classes else DecisionTreeRegressor)(**params)
        forest = RandomForestClassifier if has_classes else RandomForestRegressor
        return forest(n_estimators=self.n_trees, max_features="sqrt", n_jobs=self.n_jobs, **params)


def _single_precision(design: Design) -> NDArray[np.float32]:
    """The data in single precision, as scikit-learn's trees need them.

    Splits depend on the order of the values only. Columns whose values single precision cannot tell apart are replaced
    by their ranks, which are whole numbers.
    """
    data = np.empty(design.shape, dtype=np.float32, order="F")
    require_finite_stats(design, design.column_stats())
    for columns, block in design.iter_blocks():
        data[:, columns] = _ordered_alike(block)
    return data


def _ordered_alike(block: NDArray[Any]) -> NDArray[Any]:
    """The columns; ranks for those whose values would become equal, or too large for sums, in single precision."""
    order = np.argsort(block, axis=0, kind="stable")
    ordered = np.take_along_axis(block, order, axis=0)
    rises = ordered[1:] > ordered[:-1]
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        single = ordered.astype(np.float32)
        are_kept = np.all(rises == (single[1:] > single[:-1] + np.float32(SAME)), axis=0)
    largest = np.maximum(np.abs(ordered[0]), np.abs(ordered[-1])).astype(np.float64)
    lost = np.flatnonzero(~are_kept | (largest > np.finfo(np.float32).max / len(block)))
    if lost.size == 0:
        return block
    ranks = np.zeros((len(block), lost.size))
    np.cumsum(rises[:, lost], axis=0, out=ranks[1:])
    block = block.astype(np.float64)
    np.put_along_axis(ranks, order[:, lost], ranks.copy(), axis=0)
    block[:, lost] = ranks
    return block


def _ranked_scores(importance: FloatArray, used: NDArray[np.bool_], association: FloatArray) -> FloatArray:
    """Importance of used features; the others follow below, by their association with the target."""
    lowest = float(importance[used & (importance > 0.0)].min(initial=1.0))
    return np.where(used, np.maximum(importance, lowest), 0.5 * lowest * np.minimum(association, 1.0))


# -- A tree as arrays: growing by the number of errors, cost-complexity pruning --


@dataclass(frozen=True, eq=False)
class Nodes:
    """A tree as arrays over its nodes, the root first; leaves have -1 for feature and children.

    ``cost`` is the impurity of a node times its share of the samples, ``value`` its prediction (a class code or a
    mean).
    """

    feature: IntArray
    threshold: FloatArray
    left: IntArray
    right: IntArray
    cost: FloatArray
    value: FloatArray

    @classmethod
    def of(cls, fitted: Any) -> Nodes:
        """The arrays of a tree of scikit-learn."""
        tree = fitted.tree_
        value = tree.value[:, 0]
        return cls(
            feature=np.where(tree.children_left < 0, -1, tree.feature),
            threshold=tree.threshold,
            left=tree.children_left,
            right=tree.children_right,
            cost=tree.impurity * tree.weighted_n_node_samples / tree.weighted_n_node_samples[0],
            value=value.argmax(axis=1).astype(np.float64) if hasattr(fitted, "classes_") else value[:, 0],
        )

    def collapse_costs(self) -> FloatArray:
        """The cost per leaf from which each node becomes a leaf: weakest-link pruning (CART, section 3.3)."""
        at = np.where(self.left < 0, 0.0, np.inf)
        reached = 0.0
        while np.isinf(at[0]):
            branch, leaves = self.cost.copy(), np.ones(at.size)
            for t in range(at.size - 1, -1, -1):  # children come after their parent
                if np.isinf(at[t]):
                    branch[t] = branch[self.left[t]] + branch[self.right[t]]
                    leaves[t] = leaves[self.left[t]] + leaves[self.right[t]]
            whole = np.isinf(at)
            link = np.full(at.size, np.inf)
            link[whole] = (self.cost[whole] - branch[whole]) / (leaves[whole] - 1.0)
            reached = max(reached, float(link.min()))
            at[whole & (link <= reached * (1.0 + 1e-12))] = reached
            for parent in np.flatnonzero(self.left >= 0):  # its descendants are removed with it
                for child in (self.left[parent], self.right[parent]):
                    at[child] = min(at[child], at[parent])
        return at

    def pruned(self, alpha: float) -> Nodes:
        """The subtree of least cost when a leaf costs ``alpha``; nodes keep their indices."""
        ends = self.collapse_costs() <= alpha if alpha > 0.0 else self.left < 0
        return replace(
            self,
            feature=np.where(ends, -1, self.feature),
            left=np.where(ends, -1, self.left),
            right=np.where(ends, -1, self.right),
        )

    def used(self, n_features: int) -> NDArray[np.bool_]:
        """The features that are split on."""
        return np.isin(np.arange(n_features), self.feature[self.feature >= 0])

    def importance(self, n_features: int) -> FloatArray:
        """Decrease of the cost by the splits on each feature, scaled to sum to one."""
        split = np.flatnonzero(self.feature >= 0)
        gain = self.cost[split] - self.cost[self.left[split]] - self.cost[self.right[split]]
        total = np.bincount(self.feature[split], np.maximum(gain, 0.0), n_features)
        return np.asarray(total / max(float(total.sum()), np.finfo(float).tiny))

    def paths(self, data: NDArray[np.float32]) -> Iterator[IntArray]:
        """The node of each sample, level by level from the root."""
        node = np.zeros(len(data), dtype=np.intp)
        while True:
            yield node
            inner = self.left[node] >= 0
            if not inner.any():
                return
            goes_left = data[np.arange(len(data)), np.maximum(self.feature[node], 0)] <= self.threshold[node]
            node = np.where(inner, np.where(goes_left, self.left[node], self.right[node]), node)

    def predictions(self, data: NDArray[np.float32], alphas: FloatArray) -> FloatArray:
        """What the trees pruned at each cost of a leaf predict, one row each."""
        ends_at = self.collapse_costs()
        found = np.empty((alphas.size, len(data)))
        is_open = np.ones(found.shape, dtype=bool)
        for node in self.paths(data):
            ends = is_open & (ends_at[node] <= alphas[:, None])
            found = np.where(ends, self.value[node], found)
            is_open &= ~ends
        return found


Grower = Callable[[NDArray[np.float32], NDArray[Any]], Nodes]


def chosen_cost(grow: Grower, data: NDArray[np.float32], target: Target, seed: int) -> float:
    """The largest cost of a leaf within one standard error of the smallest error (Breiman et al. 1984, section 3.4)."""
    y = target.values
    levels = np.unique(grow(data, y).collapse_costs())
    alphas = np.append(np.sqrt(levels[:-1] * levels[1:]), levels[-1])  # a typical cost for each subtree
    least = int(target.strata_sizes().min())
    if least < 2:
        return 0.0  # nothing to test on
    folds = (StratifiedKFold if target.is_stratified else KFold)(
        min(N_FOLDS, least), shuffle=True, random_state=seed
    )
    loss = np.empty((alphas.size, len(y)))
    for train, test in folds.split(data, y):
        missed = grow(data[train], y[train]).predictions(data[test], alphas) - y[test]
        loss[:, test] = missed != 0.0 if target.has_classes else missed**2
    mean = loss.mean(axis=1)
    best = int(np.argmin(mean))
    within = mean <= mean[best] + loss[best].std(ddof=1) / np.sqrt(len(y))
    return float(alphas[np.flatnonzero(within)[-1]])


def grow_by_error(
    data: NDArray[np.float32], y: NDArray[Any], n_classes: int, *, max_depth: int | None, min_leaf: int
) -> Nodes:
    """Split until the nodes are pure, each time with the fewest errors."""
    indicator = np.eye(n_classes)[y]
    rows: list[list[float]] = []
    waiting = [(np.arange(len(y)), 0, -1, 0)]  # samples, depth, parent, and index among its children
    while waiting:
        samples, depth, parent, side = waiting.pop()
        counts = indicator[samples].sum(axis=0)
        if parent >= 0:
            rows[parent][2 + side] = len(rows)
        rows.append([-1, 0.0, -1, -1, (samples.size - counts.max()) / len(y), float(counts.argmax())])
        if (max_depth is not None and depth >= max_depth) or counts.max() == samples.size:
            continue
        split = fewest_errors(data[samples], indicator[samples], min_leaf)
        if split is not None:
            rows[-1][:2] = split
            goes_left = data[samples, split[0]] <= split[1]
            waiting += [
                (samples[~goes_left], depth + 1, len(rows) - 1, 1),
                (samples[goes_left], depth + 1, len(rows) - 1, 0),
            ]
    columns = list(zip(*rows, strict=True))
    feature, left, right = (np.asarray(columns[i], dtype=np.intp) for i in (0, 2, 3))
    threshold, cost, value = (np.asarray(columns[i], dtype=np.float64) for i in (1, 4, 5))
    return Nodes(feature, threshold, left, right, cost, value)


def fewest_errors(
    data: NDArray[np.float32], indicator: FloatArray, min_leaf: int
) -> tuple[int, float] | None:
    """Column and threshold of the split with the fewest errors; ties: the least Gini impurity, the lowest column."""
    n, p = data.shape
    if n < 2 * min_leaf:
        return None
    total = indicator.sum(axis=0)
    size = np.arange(1, n)[:, None]
    allowed_size = (size >= min_leaf) & (n - size >= min_leaf)
    best, found = (np.inf, np.inf), None
    for start in range(0, p, max(1, MOST_ENTRIES // (n * total.size))):
        block = data[:, start : start + max(1, MOST_ENTRIES // (n * total.size))]
        order = np.argsort(block, axis=0, kind="stable")
        values = np.take_along_axis(block, order, axis=0)
        inside = np.cumsum(indicator[order], axis=0)[:-1]
        outside = total - inside
        errors = n - inside.max(axis=2) - outside.max(axis=2)
        impurity = n - (inside**2).sum(axis=2) / size - (outside**2).sum(axis=2) / (n - size)
        allowed = allowed_size & (values[:-1] < values[1:])
        allowed &= impurity < n - (total**2).sum() / n - LEAST_GAIN * n
        if not allowed.any():
            continue
        errors = np.where(allowed, errors, np.inf)
        impurity = np.where(errors == errors.min(), impurity, np.inf)
        column = int(np.argmax((impurity <= impurity.min() + LEAST_GAIN * n).any(axis=0)))
        row = int(np.argmin(impurity[:, column]))
        here = (float(errors[row, column]), float(impurity[row, column]))
        if here[0] < best[0] or (here[0] == best[0] and here[1] < best[1] - LEAST_GAIN * n):
            low, high = float(values[row, column]), float(values[row + 1, column])
            midpoint = 0.5 * (low + high)
            best, found = here, (start + column, midpoint if low <= midpoint < high else low)
    return found
