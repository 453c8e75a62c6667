"""The folds in which auto compares its candidates: how many, how often, and on which samples."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from zeronorm._types import IntArray
from zeronorm.engines.elimination._work import work_of_elimination
from zeronorm.resampling._splits import Split
from zeronorm.selection._problem import Problem

FOLDS, FOLDS_OF_MANY, MANY = 5, 3, 200
# Repeats with other folds, by the number of samples below which they are used. The fewer samples, the more the chosen
# size depends on the folds: `docs/trust/answer_checks.py seeds`.
REPEATS = ((100, 8), (1000, 4))
# On large data the number of features is chosen on a random subsample: on as many samples as an elimination with this
# number of multiplications allows, within these bounds.
WORK_OF_A_FOLD = 5e8
FEWEST_TO_CHOOSE, MOST_TO_CHOOSE = 2000, 5000
FEW_OF_A_CLASS = 30  # classes up to this size are used completely


def usual_folds(n_samples: int, sample_groups: NDArray[Any] | None) -> int:
    """The default number of folds."""
    return FOLDS_OF_MANY if _n_units(n_samples, sample_groups) >= MANY else FOLDS


def usual_repeats(n_samples: int, sample_groups: NDArray[Any] | None) -> int:
    """The default number of repeats."""
    n_units = _n_units(n_samples, sample_groups)
    return next((repeats for limit, repeats in REPEATS if n_units < limit), 1)


def _n_units(n_samples: int, sample_groups: NDArray[Any] | None) -> int:
    return n_samples if sample_groups is None else int(np.unique(sample_groups).size)


def thinned(splits: list[Split], problem: Problem, seed: int) -> list[Split]:
    """The splits, reduced to a random subsample of each class if there are more samples than the choice needs."""
    n = problem.n_samples
    affordable = WORK_OF_A_FOLD * n / work_of_elimination(problem)
    share = max(FEWEST_TO_CHOOSE, min(MOST_TO_CHOOSE, affordable)) / n
    if share >= 1.0:
        return splits
    strata = problem.target.strata()
    kinds = np.zeros(n) if strata is None else strata
    rng = np.random.default_rng(seed)

    def subsample(rows: IntArray) -> IntArray:
        drawn = rng.permutation(rows)
        by_kind = (drawn[kinds[drawn] == kind] for kind in np.unique(kinds[rows]))
        return np.sort(
            np.concatenate([some[: max(FEW_OF_A_CLASS, round(share * some.size))] for some in by_kind])
        )

    return [Split(split.index, subsample(split.train), subsample(split.test)) for split in splits]
