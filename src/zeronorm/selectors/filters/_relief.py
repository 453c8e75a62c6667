"""Relief: features that separate near samples of different classes."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from zeronorm.design import is_constant_range
from zeronorm.engines._column_information import parse_discrete_features, safe_ratio
from zeronorm.engines.neighbours._kernels import (
    ABSOLUTE,
    MISMATCH,
    SQUARED,
    ColumnRanges,
    ScaledColumns,
    column_ranges,
)
from zeronorm.engines.neighbours._search import (
    ColumnPart,
    class_pairs,
    mean_differences,
    nearest_by_columns,
    neighbour_classes,
    regression_pairs,
    usable_neighbours,
)
from zeronorm.execution import useful_threads
from zeronorm.registry import register
from zeronorm.selection._path import SelectionPath
from zeronorm.selection._problem import Problem
from zeronorm.selectors._base import BaseSelector

Contrast = Literal["ratio", "difference"]
SECONDS_PER_DIFFERENCE = 3e-10  # per pair of samples and feature; 10,000 × 20 take 0.63 s on one core
LONG_SECONDS = 10.0  # estimated duration from which a user is told before the work


@register(
    "relief",
    family="filters",
    tasks=("binary", "multiclass", "regression"),
    reference="Kira & Rendell 1992; Kononenko 1994; Guyon et al. 2003, section 2.3.2",
    cost="n² p; n × n in memory",
    oracle="a brute-force loop, and skrebate",
    avoid="thousands of irrelevant features, which make the neighbours arbitrary; redundant features",
    test_params=(
        {"n_neighbors": 3},
        {"n_neighbors": 1, "contrast": "ratio", "metric": "euclidean", "column_scaling": "none"},
        {"n_neighbors": 3, "task": "regression"},
        {"n_neighbors": 3, "step": 0.2},
    ),
)
class Relief(BaseSelector):
    r"""Rank features by how well they separate near samples of different classes.

    For every sample i the k nearest samples of its own class (hits) and of each other class (misses) are
    found in the space of all features. The score of feature f compares the mean distances in f alone,

    .. math::

        M_f = \frac1n \sum_i \sum_{c \ne c_i} \frac{P(c)}{1 - P(c_i)} \frac1k \sum_{j \in \text{miss}_c(i)}
        d_f(i, j), \qquad
        H_f = \frac1n \sum_i \frac1k \sum_{j \in \text{hit}(i)} d_f(i, j),

    as :math:`M_f - H_f` (``contrast="difference"``, as in ReliefF) or :math:`M_f / H_f` (``"ratio"``, as in Guyon et
    al.). Regression follows RReliefF: each pair of neighbours counts as a miss in proportion to
    :math:`|y_i - y_j|` over the range of y and as a hit for the rest, all k neighbours alike.

    Use it where features matter together, also nonlinearly: neighbours are found in all features at once. With
    very many irrelevant features the neighbours become arbitrary; then set ``step`` (0.1), so that the worst features
    are removed and the neighbours are found again in the others (Moore & White 2007, "tuned ReliefF"). Redundant
    features all score well; see ``min_separation`` and `GramSchmidtRelief`. Time grows with
    :math:`n^2 p` (with ``step=0.1`` ten times that), memory with the data plus blocks.

    *Few neighbours.* A class with k samples or fewer cannot give k hits: those it has are used, with a warning. The
    only sample of a class serves only as a miss of others.

    *Ties.* Of equally distant samples the one with the lower index is nearer.

    *Missing values* (NaN). Distances are means over the features that both samples have; for the score
    of a feature only pairs with both values count. Columns without any value rank last.

    *Zero distances.* 0/0 scores 0; a feature whose hits are all at distance zero gets the largest finite ratio.

    Parameters
    ----------
    n_features_to_select
        None: half of the features; with ``min_separation``, all features that are far enough apart.
    contrast
        "difference" subtracts the mean distances, "ratio" divides them. The ratio favours columns that are nearly
        always zero, whose distances are tiny.
    metric
        "manhattan" sums absolute differences, "euclidean" squared ones.
    column_scaling
        "range" divides each column by its range. "none" takes the columns as they are, for data in one unit such as
        spectra.
    discrete_features
        "all": all columns. None: no column. Equal categories have distance 0, others 1.
    step
        None: all features are ranked once. Otherwise the worst are removed in rounds until one is left.
    min_separation
        A feature less than this many positions away from a better one is moved to the end. None: no such rule.
    n_jobs
        Threads, used when the data are large enough.

    Examples
    --------
    >>> import numpy as np
    >>> from zeronorm import Relief
    >>> y = np.arange(60) % 2
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> X[:, :2] += 2.0 * y[:, None]  # the first two features tell the classes apart
    >>> selector = Relief(2).fit(X, y)
    >>> selector.get_support(indices=True).tolist()
    [0, 1]
    """

    _allow_nan = True
    _finite_from_statistics = True

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        n_neighbors: int = 10,
        contrast: Contrast = "difference",
        metric: Literal["manhattan", "euclidean"] = "manhattan",
        column_scaling: Literal["range", "none"] = "range",
        discrete_features: Literal["all"] | Any = None,
        step: int | float | None = None,
        min_separation: int | None = None,
        task: Literal["classification", "regression"] = "classification",
        estimator: Any = None,
        feature_groups: Any = None,
        always_keep: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.n_neighbors = n_neighbors
        self.contrast = contrast
        self.metric = metric
        self.column_scaling = column_scaling
        self.discrete_features = discrete_features
        self.step = step
        self.min_separation = min_separation
        self.task = task
        self.estimator = estimator
        self.feature_groups = feature_groups
        self.always_keep = always_keep
        self.n_jobs = n_jobs

    @property
    def _depends_on_column_order(self) -> bool:
        return self.min_separation is not None

    def _select(self, problem: Problem) -> SelectionPath:
        is_discrete = parse_discrete_features(self.discrete_features, problem)
        path = self._ranked(problem, is_discrete)
        if self.step is not None:
            path = self._eliminated(path, problem, is_discrete)
        if self.min_separation is None:
            return path
        return keep_apart(path, int(self.min_separation), _constant_columns(problem))

    def _eliminated(
        self, path: SelectionPath, problem: Problem, is_discrete: NDArray[np.bool_]
    ) -> SelectionPath:
        """The path of an elimination that ranks the remaining features again in each round; scores are those of all."""
        order, end = path.order.copy(), path.n_features
        step = float(self.step or 1)
        while end > 1:
            removed = step * end if step < 1.0 else step
            end = max(1, end - max(1, int(removed)))
            left = np.sort(order[:end])
            again = self._ranked(replace(problem, design=problem.design.take(left)), is_discrete[left])
            order[:end] = left[again.order]
        return replace(path, order=order)

    def _ranked(self, problem: Problem, is_discrete: NDArray[np.bool_]) -> SelectionPath:
        """The features by their scores, with neighbours in the space of all of them."""
        design = problem.design
        ranges = column_ranges(design)
        constant = is_constant_range(ranges.minimum, ranges.maximum, design.dtype)
        parts = self._column_parts(problem, ranges, constant, is_discrete)
        codes = neighbour_classes(problem)
        k = usable_neighbours(self, problem, codes)
        self._announce_duration(problem)
        lists = nearest_by_columns(parts, codes, k, ranges.has_missing, self.n_jobs)
        pairs = class_pairs(lists) if problem.target.has_classes else regression_pairs(lists, problem.y)
        hit, miss = mean_differences(parts, pairs, problem.n_features, ranges.has_missing, self.n_jobs)
        score = safe_ratio(miss, hit) if self.contrast == "ratio" else miss - hit
        return SelectionPath.from_scores(score, last=constant, ratios=self.contrast == "ratio")

    def _announce_duration(self, problem: Problem) -> None:
        differences = float(problem.n_samples) ** 2 * problem.n_features
        seconds = SECONDS_PER_DIFFERENCE * differences / useful_threads(self.n_jobs, int(differences) // 2)
        if seconds > LONG_SECONDS:
            warnings.warn(
                f"Relief compares all pairs of {problem.n_samples} samples in {problem.n_features} features, which "
                f"takes about {seconds:.0f} s. A random subset of the samples, or n_jobs=-1, shortens it.",
                UserWarning,
                stacklevel=4,
            )

    def _column_parts(
        self,
        problem: Problem,
        ranges: ColumnRanges,
        constant: NDArray[np.bool_],
        is_discrete: NDArray[np.bool_],
    ) -> list[ColumnPart]:
        factor = np.ones(problem.n_features)
        if self.column_scaling == "range":
            # The inverse of a subnormal range would overflow.
            factor /= np.where(
                constant, 1.0, np.maximum(ranges.maximum - ranges.minimum, np.finfo(float).tiny)
            )
        factor[constant] = 0.0
        columns = ScaledColumns(problem.design, ranges.minimum, factor)
        kind = SQUARED if self.metric == "euclidean" else ABSOLUTE
        if not is_discrete.any():
            return [ColumnPart(np.arange(problem.n_features), columns, kind)]
        chosen = ((np.flatnonzero(~is_discrete), kind), (np.flatnonzero(is_discrete), MISMATCH))
        return [ColumnPart(index, columns.take(index), kind) for index, kind in chosen if index.size]


def _constant_columns(problem: Problem) -> NDArray[np.bool_]:
    ranges = column_ranges(problem.design)
    return is_constant_range(ranges.minimum, ranges.maximum, problem.design.dtype)


# -- A minimum distance between the selected positions of an ordered axis --


def keep_apart(path: SelectionPath, min_separation: int, useless: NDArray[np.bool_]) -> SelectionPath:
    """Move every feature that is less than ``min_separation`` positions from a better one to the end.

    Only features that are kept themselves count as better; ``useless`` ones (constant columns) are never kept.
    The selected size of the path is the number kept.
    """
    blocked = useless.copy()
    kept, moved = [], []
    for feature in path.order:
        if blocked[feature]:
            moved.append(feature)
            continue
        kept.append(feature)
        blocked[max(0, feature - min_separation + 1) : feature + min_separation] = True
    return replace(path, order=np.asarray(kept + moved, dtype=np.intp), selected_size=len(kept))
