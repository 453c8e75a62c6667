"""Methods against each other: the score matrix of paired tests, differences with intervals, and a verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from zeronorm.evaluation.records import cells_by_method, columns_of
from zeronorm.evaluation.significance import compare_methods, score_matrix_of_records
from zeronorm.report.figures.choice import choose_method

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
