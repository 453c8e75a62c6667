"""Greedy feature flips that raise the margin of the nearest-neighbour rule."""

# mypy: allow-untyped-defs

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from zeronorm._jit import kernel
from zeronorm._types import FloatArray, IntArray
from zeronorm.execution import require_memory
from zeronorm.registry import register
from zeronorm.selection._path import SelectionPath
from zeronorm.selection._problem import Problem
from zeronorm.selectors._base import BaseSelector

# -- Compiled margins of nearest neighbours under flips of single features --


LINEAR, SIGMOID, ZERO_ONE = 0, 1, 2


@kernel
def flip_features(columns, member, bounds, distance_sq, utility, slope, tolerance, value, after, change):
    """Visit features in turn; flip each whose flip raises the total utility of the margins.

    Samples are sorted by class: those of class c are ``bounds[c]:bounds[c + 1]``. ``value`` holds the total at the
    current subset, ``after`` receives the total with the feature flipped. Returns the number of flips.
    """
    flips = 0
    for f in range(columns.shape[0]):
        sign = -1.0 if member[f] else 1.0
        after[f] = total_utility(columns[f], sign, bounds, distance_sq, utility, slope)
        if change and after[f] > value[0] + tolerance * max(1.0, abs(value[0])):
            add_column(columns[f], sign, distance_sq)
            member[f] = not member[f]
            value[0] = after[f]
            flips += 1
    return flips


@kernel
def add_column(x, sign, distance_sq):
    """Add one column to the squared distances of all samples, or subtract it."""
    for i in range(x.shape[0]):
        for j in range(x.shape[0]):
            distance_sq[i, j] += sign * (x[i] - x[j]) ** 2


@kernel
def total_utility(x, sign, bounds, distance_sq, utility, slope):
    """Sum over samples of the utility of (distance to the nearest miss - to the nearest hit) / 2.

    Distances include or exclude the column x, by ``sign``. Samples alone in their class do not count.
    """
    n, total = x.shape[0], 0.0
    for c in range(bounds.shape[0] - 1):
        first, last = bounds[c], bounds[c + 1]
        if last - first < 2:
            continue
        for i in range(first, last):
            row = distance_sq[i]
            miss = min(_nearest(x, i, sign, row, 0, first), _nearest(x, i, sign, row, last, n))
            hit = min(_nearest(x, i, sign, row, first, i), _nearest(x, i, sign, row, i + 1, last))
            margin = 0.5 * (np.sqrt(max(miss, 0.0)) - np.sqrt(max(hit, 0.0)))
            if utility == LINEAR:
                total += margin
            elif utility == SIGMOID:
                total += 1.0 / (1.0 + np.exp(-slope * margin))
            elif margin > 0.0:
                total += 1.0
    return total


@kernel
def _nearest(x, i, sign, row, first, last):
    nearest = np.inf
    for j in range(first, last):
        distance_sq = row[j] + sign * (x[i] - x[j]) ** 2
        if distance_sq < nearest:
            nearest = distance_sq
    return nearest


_UTILITIES = {"linear": LINEAR, "sigmoid": SIGMOID, "zero_one": ZERO_ONE}
_TOLERANCE = 1e-10
_FEATURES_AT_A_TIME = 256
_PAIRS_AT_A_TIME = (
    2e8  # of samples, over all features of one compiled call: about 0.2 s, then Ctrl-C is heard
)


@register(
    "gflip",
    family="filters",
    tasks=("binary", "multiclass"),
    reference="Gilad-Bachrach, Navot & Tishby 2004; Gadat & Younes 2007, Table 2",
    cost="n² p for each round over the features",
    oracle="the margin recomputed for every flip",
    avoid="more than a few thousand samples or features; a required number of features",
    test_params=({"random_state": 0}, {"random_state": 0, "utility": "sigmoid"}),
)
class GFlip(BaseSelector):
    r"""Choose the subset of features with a large margin of the nearest-neighbour rule, by greedy flips.

    The margin of a sample in the subset F is half the difference of its distances to the nearest sample of
    another class and of its own class,

    .. math:: e(F) = \sum_x u\big(\theta_F(x)\big), \qquad
        \theta_F(x) = \tfrac12 \left(\|x - \text{miss}(x)\|_F - \|x - \text{hit}(x)\|_F\right),

    with Euclidean distances in F and the nearest samples found in F. Starting from no feature, all features are visited
    in random order and put in or taken out whenever that raises e, until a whole round changes nothing. Every flip
    raises e, so this ends, in a local maximum that depends on the order: try several seeds. The method chooses the
    number of features itself; on the path, the chosen features come first, ordered by the loss of e when they leave,
    then the others, ordered by the change of e when they enter.

    It finds features that matter only together once one of them is in the subset. A round takes time :math:`n^2 p`.
    A sample that is the only one of its class does not count.

    Parameters
    ----------
    n_features_to_select
        None: the subset that was found.
    utility
        "linear": u(θ) = θ. "sigmoid": u(θ) = 1 / (1 + exp(−slope·θ)). "zero_one": u(θ) = 1 if θ > 0, else 0, which
        counts the samples that are classified correctly.
    max_iter
        One iteration visits every feature once.
    always_keep
        They are in the subset from the beginning.
    random_state
        It determines the order in which features are visited.

    Attributes
    ----------
    margin_ : float
        The value of e for the subset found.

    Examples
    --------
    >>> import numpy as np
    >>> from zeronorm import GFlip
    >>> y = np.arange(60) % 2
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> X[:, :2] += 2.0 * y[:, None]  # the first two features tell the classes apart
    >>> selector = GFlip(random_state=0).fit(X, y)
    >>> selector.get_support(indices=True).tolist()
    [0, 1, 5, 6]
    """

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        utility: Literal["linear", "sigmoid", "zero_one"] = "linear",
        slope: float = 1.0,
        max_iter: int = 100,
        standardize: bool = True,
        estimator: Any = None,
        feature_groups: Any = None,
        always_keep: Any = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.utility = utility
        self.slope = slope
        self.max_iter = max_iter
        self.standardize = standardize
        self.estimator = estimator
        self.feature_groups = feature_groups
        self.always_keep = always_keep
        self.random_state = random_state
        self.verbose = verbose

    def _select(self, problem: Problem) -> SelectionPath:
        flips = _Flips(problem, _UTILITIES[self.utility], float(self.slope))
        rounds, changed = 0, True
        with problem.progress.task("G-flip rounds") as advance:
            while changed and rounds < self.max_iter:
                changed = flips.round(problem.rng.permutation(problem.n_features), change=True) > 0
                rounds += 1
                advance(1)
        if changed:
            flips.round(np.arange(problem.n_features), change=False)
        self.margin_ = flips.margin
        constant = problem.design.column_stats().is_constant(problem.design.dtype)
        return flips.path(
            n_iter=rounds,
            converged=not changed,
            remedy=f"the last of max_iter={self.max_iter} rounds still changed the subset; raise max_iter.",
        ).demote(constant & ~flips.member)


class _Flips:
    """The current subset, the squared distances in it, and the total utility of the margins."""

    def __init__(self, problem: Problem, utility: int, slope: float) -> None:
        counts = np.bincount(problem.y)
        if counts.max() < 2:
            raise ValueError(
                "GFlip compares each sample with the nearest one of its own class, so at least one class must have "
                f"two samples or more. Got {counts.size} classes of one sample each."
            )
        require_memory(
            8 * problem.n_samples**2,
            f"GFlip holds the distances between all pairs of {problem.n_samples} samples, which",
            "use a random subset of the samples, or Relief, which needs no such matrix.",
        )
        self.by_class = np.argsort(problem.y, kind="stable")
        self.bounds = np.concatenate([[0], np.cumsum(counts)]).astype(np.intp)
        self.design, self.utility, self.slope = problem.design, utility, slope
        self.free = np.ones(problem.n_features, dtype=bool)
        self.free[problem.always_keep] = False
        self.member = ~self.free
        self.after = np.zeros(problem.n_features)

    def round(self, order: IntArray, change: bool) -> int:
        """Visit the features in the given order; returns the number of flips."""
        # Distances are summed again: adding and subtracting columns would accumulate rounding errors.
        distance_sq = self._distances()
        value = np.array([self._value(distance_sq)])
        flips = 0
        order = order[self.free[order]]
        step = int(min(_FEATURES_AT_A_TIME, max(1.0, _PAIRS_AT_A_TIME / self.by_class.size**2)))
        for start in range(0, order.size, step):
            chosen = order[start : start + step]
            member, after = self.member[chosen], np.empty(chosen.size)
            flips += flip_features(
                self._columns(chosen), member, self.bounds, distance_sq, self.utility, self.slope, _TOLERANCE,
                value, after, change,
            )  # fmt: skip
            self.member[chosen], self.after[chosen] = member, after
        self.margin = float(value[0])
        return flips

    def path(self, **fields: Any) -> SelectionPath:
        gain = np.where(self.member, self.margin - self.after, self.after - self.margin)
        gain[~self.free] = max(0.0, float(gain.max(initial=0.0)))
        if not self.member.any():
            return SelectionPath.from_scores(gain, **fields)
        subset = np.flatnonzero(self.member)
        return SelectionPath.from_subsets(
            [subset], n_features=gain.size, tie_break=gain, scores=gain, selected_size=subset.size, **fields
        )

    def _columns(self, chosen: IntArray) -> FloatArray:
        return np.ascontiguousarray(self.design.block(chosen)[self.by_class].T)

    def _distances(self) -> FloatArray:
        distance_sq = np.zeros((self.by_class.size, self.by_class.size))
        subset = np.flatnonzero(self.member)
        for start in range(0, subset.size, _FEATURES_AT_A_TIME):
            for column in self._columns(subset[start : start + _FEATURES_AT_A_TIME]):
                add_column(column, 1.0, distance_sq)
        return distance_sq

    def _value(self, distance_sq: FloatArray) -> float:
        nothing = np.zeros(self.by_class.size)
        return float(total_utility(nothing, 0.0, self.bounds, distance_sq, self.utility, self.slope))
