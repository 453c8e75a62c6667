"""Selection of the features on which a decision tree or a random forest splits."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from zeronorm._types import FloatArray, written
from zeronorm.design import Design, require_finite_stats
from zeronorm.engines._column_information import explained_share, parse_discrete_features
from zeronorm.engines.trees._error_cuts import grow_by_error
from zeronorm.engines.trees._information import InformationTree, grow_by_information
from zeronorm.engines.trees._nodes import Grower, Nodes, chosen_cost
from zeronorm.execution import stoppable
from zeronorm.registry import register
from zeronorm.selection._kinds import choice, parameter_error
from zeronorm.selection._path import SelectionPath
from zeronorm.selection._problem import Problem
from zeronorm.selection.target import Labels, Real
from zeronorm.selectors._base import BaseSelector

CRITERIA = {Labels.task: ("gini", "entropy", "error"), Real.task: ("squared_error",)}

SAME = 1e-7  # differences that scikit-learn's trees take for none (FEATURE_THRESHOLD)


@register(
    "tree",
    family="greedy",
    tasks=("binary", "multiclass", "regression"),
    reference="Breiman et al. 1984; Quinlan 1986; Quinlan 1993; Lal et al. 2006, section 2.2",
    cost="n log n p for each level of a tree",
    oracle="scikit-learn's trees, brute force over splits and subtrees, and figures printed by Quinlan",
    avoid="few samples; many weak linear effects; a selection that must be stable (one tree)",
    test_params=(
        {"random_state": 0},
        {"task": "regression", "random_state": 0},
        {"n_trees": 5, "criterion": "entropy", "random_state": 0},
        {"criterion": "error", "ccp_alpha": 0.01, "random_state": 0},
        {"method": "id3", "random_state": 0},
        {"method": "c4.5", "random_state": 0},
    ),
    papers={
        "Quinlan 1993": ("J. R. Quinlan. C4.5: Programs for Machine Learning. Morgan Kaufmann, 1993.", "")
    },
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

    The methods of Quinlan grow their trees by information in bits, and a column of ``discrete_features`` has a branch
    for each of its values. ``method="id3"`` takes the split with the largest gain (mutual information of branch b and
    class), ``method="c4.5"`` the one with the largest gain ratio

    .. math:: \frac{\mathrm{gain}}{-\sum_b \frac{n_b}{n} \log_2 \frac{n_b}{n}}

    among those whose gain is at least the mean of all; the threshold of a column is always that with the largest gain.
    C4.5 then replaces branches by a leaf where that has at most as many expected errors: of N samples with E errors
    N U, where U is the error rate at which E or fewer errors have the probability ``confidence``. Missing values and
    the raising of subtrees are not part of it.

    Features that no split uses follow, ordered by the share of their variance that lies between the
    classes (or their squared correlation with the target).

    Use it when thresholds and interactions matter and the units of the features do not. A single tree is
    unstable: small changes of the data change the features deep in the tree; a forest is more
    stable but divides importance among correlated features.

    scikit-learn grows the trees of CART (except for the error, which it does not offer), from a dense single-precision
    copy of the data.

    Parameters
    ----------
    n_features_to_select
        None: the features that the tree uses.
    method
        "cart" grows binary trees (Breiman et al.), "id3" and "c4.5" single trees of classes by information (Quinlan).
    criterion
        "auto" is "gini" for classes and "squared_error" for regression, and "entropy" for ID3 and C4.5. "error" grows a
        single tree.
    discrete_features
        Used by ID3 and C4.5. "all" for every column. None: every column is compared with thresholds.
    confidence
        None: the tree is not pruned. C4.5's own default is 0.25.
    ccp_alpha
        Used by CART. 0 keeps the whole tree. "auto" chooses it for a single tree by cross-validation in five folds: the
        largest cost whose error is within one standard error of the smallest.
    min_samples_leaf
        ID3 and C4.5: of the branches of a split at least two have so many.
    n_jobs
        Used for a forest.
    random_state
        It chooses between equally good splits and draws the samples of a forest.

    Attributes
    ----------
    tree_ : estimator or Nodes or InformationTree
        The fitted scikit-learn tree or forest; columns whose values single precision cannot tell apart have been
        replaced by their ranks. With ``criterion="error"`` the arrays ``feature``, ``threshold``, ``left`` and
        ``right`` of the nodes. With ID3 and C4.5 the arrays ``feature``, ``threshold``, ``parent``, ``value`` (of the
        parent's split), ``n_samples``, ``errors`` and ``gain``.
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
        method: Literal["cart", "id3", "c4.5"] = "cart",
        criterion: Literal["auto", "gini", "entropy", "error", "squared_error"] = "auto",
        discrete_features: Literal["all"] | Any = None,
        confidence: float | None = 0.25,
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
        self.method = method
        self.criterion = criterion
        self.discrete_features = discrete_features
        self.confidence = confidence
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
        self.tree_: Any = None
        with problem.progress.task("Growing trees"):
            if self.method == "cart":
                used, importance = self._grow_cart(problem, data, seed)
            else:
                self.ccp_alpha_ = 0.0
                self.tree_ = self._grow_by_information(problem, data)
                used, importance = (
                    self.tree_.used(problem.n_features),
                    self.tree_.importance(problem.n_features),
                )
        return SelectionPath.from_scores(
            _ranked_scores(np.asarray(importance, dtype=np.float64), used, explained_share(problem)),
            selected_size=int(used.sum()),
            last=problem.design.column_stats().is_constant(problem.design.dtype),
        )

    def _grow_cart(
        self, problem: Problem, data: NDArray[np.float32], seed: int
    ) -> tuple[NDArray[np.bool_], FloatArray]:
        """Grow and prune a tree or a forest; returns which features it uses, and their importance."""
        grow = self._grower(problem, seed)
        self.ccp_alpha_ = float(
            chosen_cost(grow, data, problem.target, seed)
            if isinstance(self.ccp_alpha, str)
            else self.ccp_alpha
        )
        if self.criterion == "error":
            self.tree_ = grow(data, problem.y).pruned(self.ccp_alpha_)
            return self.tree_.used(problem.n_features), self.tree_.importance(problem.n_features)
        self.tree_ = self._learner(problem, seed).set_params(ccp_alpha=self.ccp_alpha_)
        stoppable(lambda: self.tree_.fit(data, problem.y))
        return self._used(problem.n_features), self.tree_.feature_importances_

    def _grow_by_information(self, problem: Problem, data: NDArray[np.float32]) -> InformationTree:
        tree = grow_by_information(
            data,
            problem.y,
            problem.n_classes,
            is_discrete=parse_discrete_features(self.discrete_features, problem),
            by_ratio=self.method == "c4.5",
            max_depth=self.max_depth,
            min_leaf=self._least_samples(len(data)),
        )
        return tree.pruned(self.confidence) if self.method == "c4.5" and self.confidence is not None else tree

    def _least_samples(self, n_samples: int) -> int:
        share = self.min_samples_leaf
        return max(1, int(np.ceil(share * n_samples)) if isinstance(share, float) else int(share))

    def _check_parameters(self) -> None:
        if self.method != "cart":
            self._check_information_parameters()
        allowed = CRITERIA[self.task]
        if self.criterion not in ("auto", *allowed):
            accepted = choice("auto", *allowed).must_be
            raise parameter_error(self, "criterion", f"{accepted} for task={self.task!r}")
        if self.n_trees > 1 and (self.criterion == "error" or isinstance(self.ccp_alpha, str)):
            which = (
                "criterion='error'" if self.criterion == "error" else f"ccp_alpha={written(self.ccp_alpha)}"
            )
            raise parameter_error(self, "n_trees", f"1 with {which}")

    def _check_information_parameters(self) -> None:
        """Of what CART offers, ID3 and C4.5 have one tree of classes, the entropy and no cost of leaves."""
        required = {
            "task": (self.task == Labels.task, "'classification'"),
            "criterion": (self.criterion in ("auto", "entropy"), "'auto' or 'entropy'"),
            "n_trees": (self.n_trees == 1, "1"),
            "ccp_alpha": (self.ccp_alpha == 0.0, "0"),
        }
        for name, (is_met, value) in required.items():
            if not is_met:
                raise parameter_error(self, name, f"{value} with method={self.method!r}")

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
            least = self._least_samples(len(y))
            return grow_by_error(data, y, problem.n_classes, max_depth=self.max_depth, min_leaf=least)

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
