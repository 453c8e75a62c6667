"""Choice of the units in which features are ranked and samples predicted, by a cheap race on the inner folds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

from zeronorm._types import FloatArray, IntArray
from zeronorm.design import Design, as_design, in_one_piece
from zeronorm.engines.pipeline_choice._nonlinear import standard_errors_ahead
from zeronorm.resampling._folds import FoldPlan
from zeronorm.resampling._scored_paths import score_paths
from zeronorm.resampling._splits import Split
from zeronorm.resampling.predictors._pairwise_svm import StandardizedSVC
from zeronorm.resampling.predictors._ridge import StandardizedTunedRidge
from zeronorm.resampling.predictors._units import UNITS, InUnits, UnitsName, transformed, unit_of
from zeronorm.selection._path import SelectionPath
from zeronorm.selection._problem import Problem, Progress

USUAL: UnitsName = "standardized"
# With fewer samples than this only a short list is tried, because the folds cannot tell many units apart.
FEW_SAMPLES = 100
SHORT_LIST: tuple[UnitsName, ...] = ("standardized", "common", "log")
MOST_VALUES = 1 << 25  # numbers in the table, a quarter of a gigabyte
STEP = 0.75  # of the features are removed in each round of the elimination that ranks them in the race
LARGEST_SIZE, NEXT_SIZE, N_SIZES = 500, 4, 4  # sizes that are scored: 500, 125, 31 and 8
# Other units are taken if they are better by more than so many standard errors, in the first repeat of the folds and
# over all of them, and by so much of the score: a smaller gain is not worth results in other units. On one training set
# of each of the 13 tuning data sets two change (errors in the race: spambase 8.0 to 6.3 %, ionosphere 15.1 to 12.1);
# without the least gain five do.
AHEAD, LEAST_GAIN = 1.0, 0.01


class ProblemInUnits:
    """A problem, the same in other units for rankings, and the predictor of samples as they were measured."""

    def __init__(self, problem: Problem, units: UnitsName = USUAL, X: Any = None) -> None:
        self.original, self.units, self.problem = problem, units, problem
        self.unit = 1.0
        if units == USUAL:
            return
        kind = UNITS[units]
        self.unit = unit_of(X) if kind.values == "log" else 1.0
        names = problem.design.feature_names
        design = as_design(transformed(X, kind.values, self.unit), feature_names=names)
        self.problem = replace(problem, design=design.standardized(common=True) if kind.is_common else design)

    @property
    def standardize(self) -> bool:
        """Whether selectors standardise the columns of ``problem``; otherwise these have a common scale already."""
        return not UNITS[self.units].is_common

    def predictor(self, usual: Any) -> Any:
        """The predictor in these units."""
        return usual if self.units == USUAL else InUnits(usual, self.units, self.unit)


def in_units(problem: Problem, units: UnitsName) -> ProblemInUnits:
    """The problem in the units that a user named; ValueError where the data cannot be in these."""
    if units == USUAL:
        return ProblemInUnits(problem)
    X = values_of(problem.design)
    if X is None:
        raise ValueError(
            f"units={units!r} needs data in memory of at most {MOST_VALUES:,} numbers. Got {problem.design!r}; use "
            "'standardized'."
        )
    if UNITS[units].needs_nonnegative and (X.data if sparse.issparse(X) else X).min(initial=0.0) < 0.0:
        raise ValueError(
            f"units={units!r} needs values from zero on. X has negative ones; use 'standardized' or 'common'."
        )
    return ProblemInUnits(problem, units, X)


def values_of(design: Design) -> Any:
    """The values of a design in memory as an array or a sparse matrix; None for other or large designs."""
    backend = design.backend
    if design.affine is not None or design.n_samples * design.n_features > MOST_VALUES:
        return None
    if backend.in_one_array:
        return design.block(slice(None), np.empty(design.shape, order=backend.order))
    if not backend.is_sparse or backend.is_on_disk:
        return None
    found = design.stored_columns(np.arange(design.n_features))
    return None if found is None else found[0]


def candidates(X: Any, n_samples: int) -> tuple[UnitsName, ...]:
    """The units that are tried, the usual ones first."""
    values = X.data if sparse.issparse(X) else X
    is_nonnegative = bool(values.min(initial=0.0) >= 0.0)
    # Of a table of zeros and ones logarithms and roots are multiples.
    is_counted = is_nonnegative and not bool(np.all((values == 0.0) | (values == 1.0)))
    listed = SHORT_LIST if n_samples < FEW_SAMPLES else tuple(UNITS)
    return tuple(name for name in listed if is_counted or not UNITS[name].needs_nonnegative)


def chosen_units(
    elimination: Any, problem: Problem, target: Any, plan: FoldPlan, splits: list[Split], n_folds: int
) -> ProblemInUnits:
    """The problem in the units whose predictions are clearly better, or in the usual ones.

    In each fold ``elimination`` ranks the features in each of the units, and the predictor of the plan scores a few
    sizes. The scores of the folds at the best size of each of the units are compared.
    """
    usual = ProblemInUnits(problem)
    X = values_of(problem.design)
    is_known = isinstance(plan.estimator, (StandardizedSVC, StandardizedTunedRidge))
    if X is None or not is_known or len(splits) < 2:
        return usual
    sizes = sizes_of_race(problem.n_features)

    def scores(view: ProblemInUnits, some: list[Split]) -> FloatArray:
        return _scores(elimination, view, target, plan, some, sizes)

    first, others = splits[:n_folds], splits[n_folds:]
    views = [
        usual if name == USUAL else ProblemInUnits(problem, name, X)
        for name in candidates(X, problem.n_samples)
    ]
    found = [scores(view, first) for view in views]
    best = int(np.argmax([each.mean() for each in found]))
    if not _is_better(found[best], found[0]):
        return usual
    if others:
        both = [np.concatenate([found[at], scores(views[at], others)]) for at in (best, 0)]
        if not _is_better(both[0], both[1], n_folds):
            return usual
    return views[best]


def _is_better(scores: FloatArray, usual: FloatArray, n_folds: int | None = None) -> bool:
    gain = float(np.mean(scores - usual))
    return gain >= LEAST_GAIN and standard_errors_ahead(scores, usual, n_folds) > AHEAD


def sizes_of_race(n_features: int) -> IntArray:
    """A few sizes, each a quarter of the one before."""
    largest = min(n_features, LARGEST_SIZE)
    return np.unique(np.maximum(1, largest // NEXT_SIZE ** np.arange(N_SIZES)))


def _scores(
    elimination: Any, view: ProblemInUnits, target: Any, plan: FoldPlan, splits: list[Split], sizes: IntArray
) -> FloatArray:
    """The scores of all folds at the best size."""
    selector = clone(elimination).set_params(standardize=view.standardize)
    ranked = []
    for split in splits:
        design = in_one_piece(view.problem.design.take_rows(split.train))
        order = selector._fit(design, target[split.train], {}).path_.order
        ranked.append({"rfe": SelectionPath(order=order)})
    some = replace(
        plan,
        sizes=tuple(int(size) for size in sizes),
        estimator=view.predictor(plan.estimator),
        unset_in_estimator=[],
    )
    scores = score_paths(some, ranked, splits, None, Progress())[0]["rfe"]
    return np.asarray(scores[:, int(scores.mean(axis=0).argmax())])
