"""A contiguous interval of features, found by repeated halving under cross-validation."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import (
    BaseCrossValidator,
    RepeatedKFold,
    RepeatedStratifiedKFold,
    check_cv,
    cross_val_score,
)

from zeronorm._types import written
from zeronorm.registry import register
from zeronorm.resampling._metrics import as_metric
from zeronorm.resampling._splits import make_splits, require_two_classes
from zeronorm.resampling.predictors._default import default_estimator
from zeronorm.selection._path import SelectionPath
from zeronorm.selection._problem import Problem
from zeronorm.selectors._base import SplittingSelector

_EQUAL = 1e-12  # errors closer than this are equal


@register(
    "interval",
    family="filters",
    tasks=("binary", "multiclass", "regression"),
    reference="Guyon et al. 2003, section 2.3.4",
    cost="ten fits of the learner for each interval; about log(p) steps of 2m − 1 intervals",
    oracle="plain cross-validation of every interval",
    avoid="columns without a natural order; sparse data",
    misprints="The paper prints 2m + 1 intervals; its own three for m = 2 need 2m − 1.",
    test_params=({"cv": 2, "random_state": 0}, {"cv": 2, "task": "regression", "random_state": 0}),
)
class IntervalSelector(SplittingSelector):
    r"""Narrow the range of ordered features, such as a spectrum, to the interval that predicts best.

    The current range of length L is covered by :math:`2m - 1` overlapping intervals of length
    :math:`\lceil L/m \rceil`, shifted by half a length. The interval with the smallest cross-validated error
    of ``learner`` replaces the range, and so on, until the error rises
    (``n_features_to_select=None``) or the wanted number of features is reached; the last step takes
    intervals of exactly that length. With m = 2 these are the left half, the right half and the central half. The
    paper prints 2m + 1 intervals, which does not fit its own three for m = 2.

    The path holds the nested ranges with their errors. Between two ranges features are added by their distance
    from the smaller range, so every size gives an interval (without groups and forced features).

    Use it before a method that chooses single features; an interval alone is a coarse choice. Each step
    trains ``learner`` on dense columns, the first one on all of them. Scale columns inside your own
    ``learner`` (a pipeline), so that no information from test folds leaks into the training.

    Parameters
    ----------
    n_features_to_select
        None: narrow the interval until the error rises.
    learner
        None: a linear support vector machine, or ridge regression, on columns standardised by the training samples of
        each fold.
    cv
        None: five times two folds.
    scoring
        None: the learner's own score.
    always_keep
        They are added to every interval.
    n_jobs
        Threads that share the data.
    random_state
        It determines the folds.

    Attributes
    ----------
    intervals_ : list of tuples
        (first, last + 1) of each range, the whole one first.
    errors_ : ndarray
        The cross-validated error of each range.

    Examples
    --------
    >>> import numpy as np
    >>> from zeronorm import IntervalSelector
    >>> y = np.arange(60) % 2
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> X[:, :2] += 2.0 * y[:, None]  # the first two features tell the classes apart
    >>> selector = IntervalSelector(2, cv=3).fit(X, y)
    >>> selector.get_support(indices=True).tolist()
    [0, 1]
    """

    _depends_on_column_order = True
    _accepts_sparse = False

    def __init__(
        self,
        n_features_to_select: int | float | None = None,
        *,
        learner: Any = None,
        n_parts: int = 2,
        cv: Any = None,
        scoring: Any = None,
        task: Literal["classification", "regression"] = "classification",
        estimator: Any = None,
        feature_groups: Any = None,
        always_keep: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.learner = learner
        self.n_parts = n_parts
        self.cv = cv
        self.scoring = scoring
        self.task = task
        self.estimator = estimator
        self.feature_groups = feature_groups
        self.always_keep = always_keep
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _select(self, problem: Problem) -> SelectionPath:
        shortest = problem.n_features_to_select or 1
        error_of = self._error_function(problem)
        ranges = [(0, problem.n_features)]
        errors = [error_of(0, problem.n_features)]
        own = 0
        with problem.progress.task("Narrowing the interval") as advance:
            while ranges[-1][1] - ranges[-1][0] > shortest:
                candidates = covering_intervals(*ranges[-1], int(self.n_parts), shortest)
                found = Parallel(n_jobs=self.n_jobs, prefer="threads")(
                    delayed(error_of)(*c) for c in candidates
                )
                best = int(np.argmax(np.asarray(found) <= min(found) + _EQUAL))
                ranges.append(candidates[best])
                errors.append(found[best])
                advance(1)
                if problem.n_features_to_select is None and errors[-1] > errors[-2] + _EQUAL:
                    break
                own = len(ranges) - 1
        self.intervals_, self.errors_ = ranges, np.asarray(errors)
        return _path(ranges, errors, problem.n_features, own)

    def _error_function(self, problem: Problem) -> Callable[[int, int], float]:
        """Cross-validated error of the features from ``first`` to ``last``, on the same folds every time."""
        y = problem.target.labels()
        splits = self._splits(problem, y)
        if problem.target.has_classes:
            for train, _ in splits:
                require_two_classes("IntervalSelector", y[train])
        learner = self._learner(problem)

        def error_of(first: int, last: int) -> float:
            columns = np.union1d(np.arange(first, last), problem.always_keep)
            X = problem.design.block(columns)
            scores = cross_val_score(
                clone(learner), X, y, cv=splits, scoring=self.scoring, error_score="raise"
            )
            return -float(np.mean(scores))

        return error_of

    def _splits(self, problem: Problem, y: NDArray[Any]) -> list[Any]:
        if problem.sample_groups is None:
            return list(self._splitter(problem).split(np.zeros((problem.n_samples, 1)), y))
        cv, repeats = (2, 5) if self.cv is None else (self.cv, 1)
        seed = int(problem.rng.integers(2**31 - 1))
        return [
            (split.train, split.test)
            for repeat in range(repeats)
            for split in make_splits(cv, y, problem.sample_groups, target=problem.target, seed=seed + repeat)
        ]

    def _learner(self, problem: Problem) -> Any:
        if self.learner is not None:
            return self.learner
        # Without scaling, the training time of the support vector machine grows with the scale of the data.
        metric = None if self.scoring is None else as_metric(self.scoring, "scoring")
        return default_estimator(problem.target, n_samples=problem.n_samples, metric=metric)

    def _splitter(self, problem: Problem) -> BaseCrossValidator:
        is_stratified = problem.target.is_stratified
        if self.cv is not None:
            return check_cv(self.cv, y=problem.y, classifier=is_stratified)
        seed = int(problem.rng.integers(2**31 - 1))
        if not is_stratified:
            return RepeatedKFold(n_splits=2, n_repeats=5, random_state=seed)
        counts = problem.target.strata_sizes()
        if counts.min() < 2:
            rare = problem.classes[int(np.argmin(counts))] if problem.classes is not None else ""
            raise ValueError(
                "IntervalSelector trains on halves of the data and needs two samples of each class. Got one of "
                f"class {written(rare)}; drop the class, or give your own 'cv'."
            )
        return RepeatedStratifiedKFold(n_splits=2, n_repeats=5, random_state=seed)


def covering_intervals(first: int, last: int, n_parts: int, shortest: int) -> list[tuple[int, int]]:
    """Intervals of one length that cover a range, each shifted by at most half a length."""
    whole = last - first
    length = max(shortest, math.ceil(whole / n_parts))
    count = math.ceil(2 * (whole - length) / length) + 1
    starts = np.unique(np.round(np.linspace(first, last - length, count)).astype(int))
    return [(int(start), int(start) + length) for start in starts]


def _path(ranges: list[tuple[int, int]], errors: list[float], n_features: int, own: int) -> SelectionPath:
    """The path of nested ranges, the smallest first; in between, features by their distance from the smaller range."""
    order = np.empty(0, dtype=np.intp)
    inner = ((ranges[-1][0] + ranges[-1][1]) / 2,) * 2
    for first, last in reversed(ranges):
        ring = np.setdiff1d(np.arange(first, last), order)
        distance = np.maximum(np.maximum(inner[0] - ring, ring - (inner[1] - 1)), 0.0)
        order = np.concatenate([order, ring[np.argsort(distance, kind="stable")]])
        inner = (first, last)
    sizes = np.asarray([last - first for first, last in ranges], dtype=np.intp)
    return SelectionPath(
        order=order,
        visited_sizes=sizes,
        objective=np.asarray(errors),
        selected_size=int(sizes[own]),
        n_iter=len(ranges),
    )
