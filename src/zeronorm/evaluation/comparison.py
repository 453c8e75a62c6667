"""Methods against each other: the score matrix of paired tests, differences with intervals, and a verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from zeronorm.evaluation.records import cells_by_method, columns_of
from zeronorm.evaluation.significance import (
    adjust_p_values,
    compare_methods,
    corrected_resampled_t,
    score_matrix_of_records,
)

# -- Which of several methods to prefer, from their scores on the same folds --


LEVEL = 0.05


@dataclass(frozen=True)
class Choice:
    """The best method, those not significantly worse, and the preferred one."""

    methods: tuple[str, ...]
    best: str
    equals: tuple[str, ...]
    preferred: str

    @property
    def sentence(self) -> str:
        """The choice in words."""
        if len(self.equals) == 1:
            return f"{self.best} is significantly better than every other method."
        if len(self.equals) == len(self.methods):
            start = "No method is significantly better than the others"
        else:
            start = f"{', '.join(self.equals)} do not differ significantly and are better than the rest"
        return f"{start}. Of those within one standard error of the best, {self.preferred} uses the fewest features."


def choose_method(
    scores: Mapping[str, Any], sizes: Mapping[str, float], *, n_train: float, n_test: float
) -> Choice:
    """Compare methods by their scores over the same folds (greater is better).

    A method is as good as the best one when the corrected resampled t-test with Holm's correction finds no
    difference at the level 0.05. Of these, and of those within one standard error of the best mean, the one
    with the fewest features is preferred: few folds find few differences, so the test alone would be too kind.

    Parameters
    ----------
    scores : one value per fold for each method.
    sizes : number of features of each method.
    n_train, n_test : mean numbers of samples in the training and test parts.
    """
    values = {name: np.asarray(found, dtype=np.float64) for name, found in scores.items()}
    means = {name: float(found.mean()) for name, found in values.items()}
    best = min(values, key=lambda name: (-means[name], sizes[name]))
    n_folds = len(values[best])
    if n_folds < 2:
        return Choice(tuple(values), best, tuple(values), best)
    others = [name for name in values if name != best]
    tests = [
        corrected_resampled_t(values[best], values[name], n_train=n_train, n_test=n_test) for name in others
    ]
    adjusted = adjust_p_values([test.p_value for test in tests])
    worse = {name for name, p_value in zip(others, adjusted, strict=True) if p_value < LEVEL}
    equals = tuple(name for name in values if name not in worse)
    lowest = means[best] - float(values[best].std(ddof=1)) / np.sqrt(n_folds)
    near = [name for name in equals if means[name] >= lowest - 1e-12 * abs(lowest)]
    preferred = min(near, key=lambda name: (sizes[name], -means[name], name))
    return Choice(tuple(values), best, equals, preferred)


GREATER_IS_BETTER = ("r2", "auc")


@dataclass(frozen=True)
class MethodRow:
    """One method in the table of a comparison."""

    method: str
    mean: float
    n_selected: float
    fit_seconds: float


@dataclass(frozen=True)
class Difference:
    """Difference of the metric between two methods (first minus second), with a 95 % interval."""

    method: str
    reference: str
    difference: float
    low: float
    high: float
    adjusted_p_value: float


@dataclass(frozen=True)
class ScoreTable:
    """Row against column: folds won minus folds lost by McNemar's test; error rates on the diagonal."""

    methods: tuple[str, ...]
    scores: tuple[tuple[int, ...], ...]
    error_rates: tuple[float, ...]
    n_folds: int


@dataclass(frozen=True)
class Comparison:
    """All that a report says about several methods on the same splits."""

    metric: str
    rows: tuple[MethodRow, ...]
    differences: tuple[Difference, ...]
    scores: ScoreTable | None
    preferred: str
    verdict: str
    failed: tuple[str, ...]


def compare(records: Any, metric: str) -> Comparison | None:
    """The comparison at the methods' own sizes; None with fewer than two methods that worked everywhere."""
    complete, failed = _complete_methods(records, metric)
    if len(complete) < 2:
        return None
    kept = _rows_of(records, complete)
    cells = cells_by_method(kept, None, (metric, "n_selected", "fit_seconds", "n_train", "n_test"))
    rows = tuple(
        MethodRow(name, *(_mean(found, key) for key in (metric, "n_selected", "fit_seconds")))
        for name, found in cells.items()
    )
    table = columns_of(compare_methods(kept, metric))
    fields = ("method", "reference", "difference", "low", "high", "adjusted_p_value")
    differences = tuple(Difference(*row) for row in zip(*(table[name] for name in fields), strict=True))
    choice = choose_method(
        {name: [-_loss(row[metric], metric) for row in found] for name, found in cells.items()},
        {row.method: row.n_selected for row in rows},
        n_train=_mean(cells[complete[0]], "n_train"),
        n_test=_mean(cells[complete[0]], "n_test"),
    )
    order = sorted(rows, key=lambda row: _loss(row.mean, metric))
    return Comparison(
        metric, tuple(order), differences, _scores(kept), choice.preferred, choice.sentence, failed
    )


def _complete_methods(records: Any, metric: str) -> tuple[list[str], tuple[str, ...]]:
    columns = columns_of(records)
    state: dict[str, bool] = {}
    for name, size, value in zip(columns["method"], columns["size"], columns[metric], strict=True):
        if size is None:
            state[name] = state.get(name, True) and value is not None
    return [name for name, whole in state.items() if whole], tuple(
        n for n, whole in state.items() if not whole
    )


def _rows_of(records: Any, methods: list[str]) -> Any:
    """The rows of these methods at their own sizes."""
    if hasattr(records, "iloc"):
        return records[records["method"].isin(methods) & records["size"].isna()]
    import polars as pl

    return records.filter(pl.col("method").is_in(methods) & pl.col("size").is_null())


def _mean(rows: list[dict[str, Any]], key: str) -> float:
    return float(np.mean([row[key] for row in rows]))


def _loss(value: float, metric: str) -> float:
    return -value if metric in GREATER_IS_BETTER else value


def _scores(records: Any) -> ScoreTable | None:
    """McNemar's test needs labels, so there is no score matrix for regression."""
    columns = columns_of(records)
    if "mse" in columns:
        return None
    matrix = score_matrix_of_records(records)
    return ScoreTable(
        methods=matrix.methods,
        scores=tuple(tuple(int(v) for v in row) for row in matrix.scores),
        error_rates=tuple(float(v) for v in matrix.error_rates),
        n_folds=matrix.n_folds,
    )
