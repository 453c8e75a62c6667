"""Relief features that are uncorrelated with one another."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from zeronorm._types import FloatArray
from zeronorm.design import Design
from zeronorm.engines._column_information import safe_ratio
from zeronorm.engines._error_control import best_of
from zeronorm.engines._orthogonal import DEPENDENT
from zeronorm.engines.neighbours._kernels import block_width
from zeronorm.engines.neighbours._search import NearestLists, class_pairs, usable_neighbours
from zeronorm.registry import register
from zeronorm.selection._kinds import NONE, count, exceptions, parameter_error
from zeronorm.selection._path import SelectionPath, order_by_score
from zeronorm.selection._problem import Problem, warn_of_empty_selection
from zeronorm.selectors._base import BaseSelector

FEWEST_PROBES = 200
DEFAULT_PROBES = 500
FEW_FEATURES = (
    200  # up to here each feature influences which samples are neighbours, and probes must do so too
)


@register(
    "gram-schmidt-relief",
    family="filters",
    tasks=("binary", "multiclass"),
    reference="Guyon et al. 2003, section 2.3.3",
    cost="n² + n p for each selected feature and neighbour",
    oracle="projected copies of the data and plain loops",
    avoid="hundreds of features to be selected; features without redundancy, where Relief is quicker",
    test_params=({"n_neighbors": 3, "random_state": 0}, {"n_features_to_select": 0.3, "n_neighbors": 1}),
)
class GramSchmidtRelief(BaseSelector):
    r"""Choose Relief features one after the other, each in the complement of those already chosen.

    1. Find the k nearest hits and misses of every sample (Euclidean distance in all projected columns).
    2. Choose the feature with the best Relief score :math:`M_f / H_f` (see `Relief`).
    3. Project all columns on its orthogonal complement, :math:`x_f \leftarrow x_f - q q^\top x_f`, where q is
       the chosen column at unit length, and start again.

    Neighbours are found from the Gram matrix, which follows the projection as
    :math:`G \leftarrow (I - q q^\top) G (I - q q^\top)`; no projected copy of the data is kept.

    With ``n_features_to_select=None`` the number of features is chosen by random probes. Columns of the data with
    permuted values are projected in the same way (up to 200 features: the classes are permuted instead, because
    with so few features each of them influences which samples are neighbours); with
    :math:`r_k` the share of them (counting the chosen feature) that scores at least as well as the chosen feature, the
    risk that a probe would have been chosen is :math:`R_k = R_{k-1} + r_k (1 - R_{k-1})`, and selection stops before it
    exceeds ``level``. A probe competes with
    one feature, not with the best of all, so among very many features some useless ones pass; ``correction="max"``
    compares with the best of as many probes as there are features left, m, and replaces :math:`r_k` by :math:`1 - (1 -
    r_k)^m`.

    Use it instead of `Relief` when features are redundant, as in spectra. Time grows with the number of features chosen
    times :math:`n^2 + n k p`. In a class with too few samples for k hits all of them are used, with a warning; the only
    sample of a class serves only as a miss of others.

    Parameters
    ----------
    n_features_to_select
        None: features are added until the risk exceeds ``level``.
    n_neighbors
        The paper uses 4.
    contrast
        "ratio" divides the mean distances, "difference" subtracts them.
    level
        Here: the risk at which the search stops. The paper uses 0.01 and 0.1. It holds for independent samples; with
        several samples of each patient use ``ProbeSelector`` with ``groups``.
    correction
        "max": for the best of all features. None: no correction. Used only when probes decide the number of features.
    n_probes
        They are permuted columns, at least 200. None: 500, or with ``correction="max"`` 10 m / level, ten times as
        many as the first feature needs to be accepted. They are stored as a matrix with one row per sample.
    min_separation
        A feature less than this many positions away from a chosen one is not chosen. None: no such rule.
    standardize
        Chosen features are then uncorrelated.
    always_keep
        They are chosen first.
    random_state
        It determines the probes.

    Attributes
    ----------
    step_scores_ : ndarray
        Relief score of each chosen feature when it was chosen, without forced ones.
    risk_ : ndarray
        The risk after each of these steps, the refused one included; only if probes decide the number of features.

    Examples
    --------
    >>> import numpy as np
    >>> from zeronorm import GramSchmidtRelief
    >>> y = np.arange(60) % 2
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> X[:, :2] += 2.0 * y[:, None]  # the first two features tell the classes apart
    >>> X[:, 2] = X[:, 0]  # a copy, which `Relief` would select as well
    >>> selector = GramSchmidtRelief(2).fit(X, y)
    >>> selector.get_support(indices=True).tolist()
    [0, 1]
    """

    _parameter_exceptions = exceptions(
        n_probes=(NONE | count(FEWEST_PROBES), "the risk is a fraction of the probes")
    )

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        n_neighbors: int = 4,
        contrast: Literal["ratio", "difference"] = "ratio",
        level: float = 0.1,
        correction: Literal["max"] | None = None,
        n_probes: int | None = None,
        min_separation: int | None = None,
        standardize: bool = True,
        estimator: Any = None,
        feature_groups: Any = None,
        always_keep: Any = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.n_neighbors = n_neighbors
        self.contrast = contrast
        self.level = level
        self.correction = correction
        self.n_probes = n_probes
        self.min_separation = min_separation
        self.standardize = standardize
        self.estimator = estimator
        self.feature_groups = feature_groups
        self.always_keep = always_keep
        self.random_state = random_state
        self.verbose = verbose

    @property
    def _depends_on_column_order(self) -> bool:
        return self.min_separation is not None

    def _select(self, problem: Problem) -> SelectionPath:
        k = usable_neighbours(self, problem, problem.y)
        steps = _Steps(problem, k, self.contrast, self.min_separation or 0)
        for column in problem.always_keep:
            steps.take(int(column))
        if problem.n_features_to_select is None:
            n_candidates = int(np.count_nonzero(steps.usable))
            n_probes = self._probe_count(n_candidates)
            if n_candidates <= FEW_FEATURES:
                n_draws = -(-n_probes // max(1, n_candidates))
                null: _Null = _PermutedLabels(problem.rng.permuted(np.tile(problem.y, (n_draws, 1)), axis=1))
            else:
                null = _PermutedColumns(_permuted_columns(problem, steps.constant, n_probes))
            self.risk_ = self._stop_by_probes(steps, null)
        else:
            self._stop_by_count(steps, problem)
        self.step_scores_ = np.asarray(steps.step_scores)
        if not steps.chosen:
            warn_of_empty_selection(self, problem, "raise level")
        return SelectionPath(
            order=steps.order(), selected_size=len(steps.chosen), n_iter=len(steps.step_scores)
        )

    def _stop_by_count(self, steps: _Steps, problem: Problem) -> None:
        wanted = problem.n_features_to_select or 0
        with problem.progress.task("Gram-Schmidt Relief", wanted) as advance:
            while len(steps.chosen) < wanted and (best := steps.best()) is not None:
                steps.take(best)
                advance(1)

    def _stop_by_probes(self, steps: _Steps, null: _Null) -> FloatArray:
        risk = [0.0]
        while (best := steps.best()) is not None:
            share = null.share(steps, of_the_best=self.correction == "max")
            risk.append(risk[-1] + share * (1.0 - risk[-1]))
            if risk[-1] > self.level:
                break
            steps.take(best)
        return np.asarray(risk[1:])

    def _probe_count(self, n_candidates: int) -> int:
        """The number of probes; an error if even a feature better than all of them could not be accepted."""
        if self.n_probes is None:
            enough = 10.0 * n_candidates / self.level if self.correction == "max" else 0.0
            return max(DEFAULT_PROBES, math.ceil(enough))
        if self.correction == "max" and best_of(1.0 / (1.0 + self.n_probes), n_candidates) > self.level:
            raise parameter_error(
                self,
                "n_probes",
                f"None or greater than {n_candidates}/{self.level:g} (the number of features divided by the level) "
                "with correction='max', because with fewer probes no feature can be selected",
            )
        return self.n_probes


class _Steps:
    """The features chosen so far, and the Relief scores of all others in their orthogonal complement."""

    def __init__(self, problem: Problem, n_neighbors: int, contrast: str, min_separation: int) -> None:
        self.columns = ProjectedColumns(problem.design)
        self.constant = problem.design.column_stats().is_constant(problem.design.dtype)
        self.codes, self.k, self.contrast = problem.y, n_neighbors, contrast
        self.min_separation = min_separation
        self.too_near = np.zeros(self.constant.size, dtype=bool)
        self.chosen: list[int] = []
        self.step_scores: list[float] = []
        self.scores = np.where(self.constant, -np.inf, 0.0)

    @property
    def usable(self) -> NDArray[np.bool_]:
        """The features that may still be chosen."""
        return np.asarray(~(self.columns.dependent | self.constant | self.too_near))

    def best(self) -> int | None:
        """The best feature in the complement; None when nothing is left there."""
        usable = self.usable
        if not (usable.any() and self.columns.has_room):
            return None
        self._pairs = self._neighbours(self.codes, self.columns.squared_distances())
        means = np.empty((2, usable.size))
        for columns, rows in self.columns.blocks():
            means[:, columns] = self._mean_differences(rows)
        means[:, ~usable] = 0.0  # only rounding errors are left of these columns
        self.scores = np.where(usable, self._compare(*means), -np.inf)
        best = int(order_by_score(self.scores)[0])
        self.step_scores.append(float(self.scores[best]))
        return best

    def take(self, column: int) -> None:
        self.chosen.append(column)
        self.columns.project_out(column)
        self.too_near[max(0, column - self.min_separation + 1) : column + self.min_separation] = True

    def scores_of(self, columns: FloatArray) -> FloatArray:
        """Relief scores of any columns in the complement, with the neighbours found by ``best``."""
        projected = np.ascontiguousarray(self.columns.project(columns))
        return self._compare(*self._mean_differences(projected))

    def scores_with(self, labels: NDArray[np.intp]) -> FloatArray:
        """Relief scores of the usable features with other class labels, for each row of ``labels``."""
        chosen, distances = np.flatnonzero(self.usable), self.columns.squared_distances()
        rows = np.ascontiguousarray(self.columns.project(self.columns.design.block(chosen)))
        every = (self._neighbours(codes, distances) for codes in labels)
        return np.asarray([self._compare(*self._mean_differences(rows, pairs)) for pairs in every])

    def order(self) -> NDArray[np.intp]:
        """Chosen features, then the others by their last score."""
        rest = order_by_score(self.scores)
        return np.concatenate([np.asarray(self.chosen, dtype=np.intp), rest[~np.isin(rest, self.chosen)]])

    def _neighbours(self, codes: NDArray[np.intp], distances: FloatArray) -> Any:
        n = codes.size
        lists = NearestLists.empty(codes, self.k)
        lists.offer(distances, slice(0, n), slice(0, n))
        return class_pairs(lists)

    def _mean_differences(self, rows: FloatArray, neighbours: Any = None) -> FloatArray:
        totals = np.zeros((2, rows.shape[1]))
        for total, pairs in zip(totals, neighbours or self._pairs, strict=True):
            pairs.add_to(total, np.empty(0), rows, mismatch=False, missing=False)
        return totals

    def _compare(self, hit: FloatArray, miss: FloatArray) -> FloatArray:
        return safe_ratio(miss, hit) if self.contrast == "ratio" else miss - hit


# -- Scores under the null hypothesis --


class _Null(ABC):
    """Random scores of features that are unrelated to the classes."""

    @abstractmethod
    def share(self, steps: _Steps, *, of_the_best: bool) -> float:
        """Share of the probes that score as well as the best feature; with the correction, of the best of many probes.

        The feature itself is counted too, so that the share is never 0.
        """


@dataclass(frozen=True)
class _PermutedColumns(_Null):
    """Probes for many features: columns with permuted values, which do not change the neighbours."""

    columns: FloatArray

    def share(self, steps: _Steps, *, of_the_best: bool) -> float:
        scores = steps.scores_of(self.columns)
        share = float((1 + np.sum(scores >= steps.step_scores[-1])) / (1 + scores.size))
        return best_of(share, int(np.count_nonzero(steps.usable))) if of_the_best else share


@dataclass(frozen=True)
class _PermutedLabels(_Null):
    """Probes for few features: the features themselves with permuted classes.

    Neighbours are close in every feature used to find them. Where classes have unequal sizes or values repeat, hits and
    misses are not equally close, even without a signal; a probe that does not take part in the search misses this.
    """

    labels: NDArray[np.intp]

    def share(self, steps: _Steps, *, of_the_best: bool) -> float:
        scores = steps.scores_with(self.labels)
        if of_the_best:
            scores = scores.max(axis=1)
        return float((1 + np.sum(scores >= steps.step_scores[-1])) / (1 + scores.size))


def _permuted_columns(problem: Problem, constant: NDArray[np.bool_], count: int) -> FloatArray:
    """Columns drawn from the data, each with its values in random order."""
    varying = np.flatnonzero(~constant)
    if not varying.size:
        return np.zeros((problem.n_samples, count))
    drawn = problem.rng.choice(varying, count)
    distinct, position = np.unique(drawn, return_inverse=True)
    return problem.rng.permuted(problem.design.block(distinct)[:, position], axis=0)


# -- The columns of a design in the orthogonal complement of some of them, block by block --


class ProjectedColumns:
    r"""The columns :math:`(I - Q Q^\top) x_j`, their Gram matrix and squared norms.

    Projected columns are computed from the data whenever they are used; only :math:`Q^\top X` is stored, one
    number per column and direction.
    """

    def __init__(self, design: Design) -> None:
        self.design = design
        self.gram = design.gram()
        self.full_norm_sq = design.squared_norms()
        self.norm_sq = self.full_norm_sq.copy()
        self.basis = np.empty((design.n_samples, 0))
        self.coefficients = np.empty((0, design.n_features))
        self._full_trace = float(np.trace(self.gram))

    @property
    def has_room(self) -> bool:
        """Whether samples still differ in the complement by more than rounding errors."""
        return float(np.trace(self.gram)) > DEPENDENT * self._full_trace

    @property
    def dependent(self) -> NDArray[np.bool_]:
        """Mask of the columns that are zero or linear combinations of those projected out."""
        return np.asarray(self.norm_sq <= DEPENDENT * self.full_norm_sq)

    def squared_distances(self) -> FloatArray:
        """Squared distances between all samples in the projected columns."""
        diagonal = np.diag(self.gram)
        return np.maximum(diagonal[:, None] + diagonal[None, :] - 2.0 * self.gram, 0.0)

    def blocks(self) -> Iterator[tuple[slice, FloatArray]]:
        """Slices of columns with the projected values, C-ordered."""
        n, p = self.design.shape
        width = block_width(n)
        for start in range(0, p, width):
            columns = slice(start, min(start + width, p))
            rows = self.design.block(columns, np.empty((n, columns.stop - start)))
            rows -= self.basis @ self.coefficients[:, columns]
            yield columns, rows

    def project(self, columns: FloatArray) -> FloatArray:
        """Project any columns on the complement."""
        for _ in range(2):  # twice: the first projection leaves a rounding error along the basis
            columns = columns - self.basis @ (self.basis.T @ columns)
        return columns

    def project_out(self, column: int) -> None:
        """Project on the complement of one more column; nothing changes if it depends linearly on the others."""
        direction = self.project(self.design.block([column])[:, 0])
        length_sq = float(direction @ direction)
        self.norm_sq[column] = 0.0
        if length_sq <= DEPENDENT * self.full_norm_sq[column]:
            return
        q = direction / np.sqrt(length_sq)
        coefficient = self.design.transpose_dot(q)
        self.norm_sq = np.maximum(self.norm_sq - coefficient**2, 0.0)
        self.norm_sq[column] = 0.0
        self.basis = np.column_stack([self.basis, q])
        self.coefficients = np.vstack([self.coefficients, coefficient])
        along = self.gram @ q
        self.gram -= np.outer(q, along) + np.outer(along, q) - (q @ along) * np.outer(q, q)
