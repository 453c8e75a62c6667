"""The error with one feature in place of another, on the same folds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zeronorm._types import FloatArray, IntArray
from zeronorm.design import Design
from zeronorm.evaluation._protocol import evaluate
from zeronorm.evaluation._records import columns_of
from zeronorm.evaluation.stand_ins._answers import FeatureSubstitutes
from zeronorm.resampling._metrics import Metric
from zeronorm.resampling._scored_paths import KnownPath
from zeronorm.resampling._splits import make_splits
from zeronorm.selection._path import SelectionPath
from zeronorm.selection.target import TASKS

Values = Callable[[Sequence[tuple[int, ...]]], FloatArray]


@dataclass(frozen=True)
class Swaps:
    """Values of the metric with single features replaced.

    Parameters
    ----------
    support : the selected features.
    errors : value by list of features.
    standard_error : of the value of the selected list.
    metric : the metric.
    values_of : function from lists of features to their values in the folds.
    """

    support: tuple[int, ...]
    errors: dict[tuple[int, ...], float]
    standard_error: float
    metric: Metric
    values_of: Values

    @classmethod
    def measure(
        cls,
        values_of: Values,
        support: IntArray,
        pairs: Sequence[tuple[int, int]],
        metric: Metric,
        y: NDArray[Any],
    ) -> Swaps:
        """Measure the selected list and those in which the first feature of a pair is replaced by the second."""
        own = tuple(support.tolist())
        lists = [own, *(_with(own, feature, other) for feature, other in pairs)]
        values = values_of(lists)
        errors = dict(zip(lists, values.mean(axis=1).tolist(), strict=True))
        return cls(own, errors, standard_error(values[0], metric, y), metric, values_of)

    @property
    def error(self) -> float:
        """The value of the selected list."""
        return self.errors[self.support]

    def with_swap(self, feature: int, other: int) -> float:
        """The value of the list with one feature replaced; NaN where it was not measured."""
        return self.errors.get(_with(self.support, feature, other), np.nan)

    def is_as_good(self, value: float) -> bool:
        """Whether a value is within one standard error of that of the selected list."""
        return bool(self.metric.score(value) >= self.metric.score(self.error) - self.standard_error)

    def best(self, features: Sequence[FeatureSubstitutes]) -> tuple[tuple[int, ...], float]:
        """The best list among the selected one, those with one substitute, and the best substitutes together."""
        together, found = self.support, {self.support: self.error}
        for feature in features:
            ranked = {each.index: each.error for each in feature.substitutes if each.error is not None}
            found |= {_with(self.support, feature.index, index): error for index, error in ranked.items()}
            best = max(ranked, key=lambda index: self.metric.score(ranked[index]), default=None)
            is_better = best is not None and self.metric.score(ranked[best]) > self.metric.score(self.error)
            if best is not None and is_better and best not in together:
                together = _with(together, feature.index, best)
        if together not in found:
            found[together] = float(self.values_of([together]).mean())
        return max(found.items(), key=lambda item: self.metric.score(item[1]))


def values_on_folds(design: Design, y: NDArray[Any], metric: Metric, **options: Any) -> Values:
    """The function that measures lists of features, all on the same folds.

    ``options`` are those of ``evaluate``, and ``adjust``, columns that every list has beside it.
    """
    task, groups, cv = options["task"], options["groups"], options.pop("cv")
    adjust = np.asarray(options.pop("adjust", ()), dtype=np.intp)
    splits = make_splits(cv, y, groups, target=TASKS[task], seed=options["random_state"], least_per_fold=1)

    def values_of(lists: Sequence[tuple[int, ...]]) -> FloatArray:
        columns = np.unique([index for each in lists for index in each])
        covariates = columns.size + np.arange(adjust.size)  # they follow the features
        ranked = {
            str(number): KnownPath(_path(np.searchsorted(columns, each), columns.size).beside(covariates))
            for number, each in enumerate(lists)
        }
        X = design.block(np.append(columns, adjust))
        records = evaluate(ranked, X, y, cv=splits, sizes=[len(lists[0])], metrics=[metric], **options)
        values = np.array(columns_of(records)[metric.name], dtype=np.float64)
        return values.reshape(len(lists), -1)

    return values_of


def _path(columns: IntArray, n_features: int) -> SelectionPath:
    scores = np.zeros(n_features)
    scores[columns] = np.arange(len(columns), 0, -1)
    return SelectionPath.from_scores(scores)


def _with(features: tuple[int, ...], one: int, other: int) -> tuple[int, ...]:
    return tuple(other if index == one else index for index in features)


def standard_error(values: FloatArray, metric: Metric, y: NDArray[Any]) -> float:
    """Standard error of the mean over the folds; of an error rate at least that of independent samples, or one sample.

    A few folds vary by chance much less than samples do, in the extreme if none has an error.
    """
    of_folds = float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0
    if metric.unit != "%":
        return of_folds
    counts = np.unique(y, return_counts=True)[1]
    n, share = len(counts) * counts.min(), float(values.mean())
    return max(of_folds, float(np.sqrt(share * (1.0 - share) / n)), float(1.0 / n))
