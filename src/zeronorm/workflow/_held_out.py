"""What held-out samples say about a model: its probabilities, and the values of metrics that new samples should show.

The predictor is trained again on the selected features of each outer fold, which needs no other selection, so that
there are decision values of samples that neither the selection nor the predictor has seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from zeronorm.datasets._encoding import column_medians, fill
from zeronorm.evaluation._probabilities import fit_probabilities
from zeronorm.evaluation._records import columns_of, own_rows_of
from zeronorm.evaluation.significance import metric_interval
from zeronorm.resampling._metrics import METRICS, Metric, as_metric
from zeronorm.resampling._suppressed_warnings import suppress_nested_warnings
from zeronorm.resampling.survival._brier import brier_times
from zeronorm.selection.target import TimeToEvent
from zeronorm.workflow import _training as training
from zeronorm.workflow._models import fit_block, predictor_columns
from zeronorm.workflow._procedures import primary_metric_of

if TYPE_CHECKING:
    from zeronorm.datasets import Table
    from zeronorm.workflow._job import Job

# Targets whose predictor is trained again in the folds, for what the records do not hold.
WITH_MODELS = ("binary", "multiclass", "survival")
Fold = dict[str, Any]  # a row of the records, with the decision values and the scores of the classes


def held_out_fields(job: Job, records: Any, label: str, selector: Any) -> dict[str, Any]:
    """The fields ``probabilities`` and ``expected`` of the model of a selection."""
    folds = _folds(job, records, label, selector)
    if not folds:
        return {}
    expected = _expected(job.table, folds, primary_metric_of(job.table, job.settings))
    return {"expected": expected, "probabilities": _probabilities(job.table, folds)}


def _folds(job: Job, records: Any, label: str, selector: Any) -> list[Fold]:
    """The outer folds that were evaluated, with decision values of the predictor that the model has."""
    columns = own_rows_of(columns_of(records), label)
    rows = [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]
    with suppress_nested_warnings(UserWarning):  # were given when the folds were evaluated
        splits = {split.index: split for split in training.outer_splits(job.table, job.settings)}
    folds = []
    for row in rows:
        if row["predictions"] is None or row["selected"] is None:
            continue
        fold = {**row, "decision": None, "scores": None}
        if len(row["selected"]) and job.table.target.kind in WITH_MODELS:
            _add_model(fold, splits[row["split"]], job, selector)
        folds.append(fold)
    return folds


def _add_model(fold: Fold, split: Any, job: Job, selector: Any) -> None:
    """The scores of the classes, or the model of times to an event with the features of the test samples."""
    block = predictor_columns(job.table, np.asarray(fold["selected"], dtype=np.intp))
    block = fill(block, column_medians(block[split.train]))
    model = fit_block(job.whole, block[split.train], job.table.y[split.train], job.settings, selector)
    if not job.table.target.has_classes:
        fold["model"], fold["X"] = model, block[split.test]
        return
    if len(model.classes) != job.table.target.n_classes:
        return
    fold["scores"] = model.class_scores(block[split.test])
    if len(model.classes) == 2:
        fold["decision"] = fold["scores"][:, 1]


def _probabilities(table: Table, folds: Sequence[Fold]) -> dict[str, Any] | None:
    """Slope and biases from the scores of held-out samples; a sample that several repeats test counts once."""
    known = [fold for fold in folds if fold["scores"] is not None]
    if not known:
        return None
    samples = np.concatenate([np.asarray(fold["test_rows"], dtype=np.intp) for fold in known])
    _, codes = np.unique(table.y, return_inverse=True)
    weights = 1 / np.bincount(samples)[samples]
    found = fit_probabilities(np.concatenate([fold["scores"] for fold in known]), codes[samples], weights)
    return {"slope": found.slope, "biases": found.biases.tolist()}


def _expected(table: Table, folds: Sequence[Fold], primary: str) -> dict[str, Any]:
    """Metrics on the held-out samples with their intervals."""
    names = list(dict.fromkeys([primary, *(n for n, m in METRICS.items() if table.task in m.tasks)]))
    found = {name: _measured(as_metric(name), folds, table) for name in names}
    is_survival = isinstance(table.target, TimeToEvent)
    return {
        **({"last_time": float(brier_times(table.y)[-1])} if is_survival else {}),
        "n_samples": table.n_samples,
        "n_splits": len(folds),
        "primary": primary,
        "class_counts": list(table.class_counts.values()) if table.target.has_classes else [],
        "metrics": {name: values for name, values in found.items() if values is not None},
    }


def _measured(metric: Metric, folds: Sequence[Fold], table: Table) -> dict[str, Any] | None:
    """Mean and interval of a metric over the folds; None where a fold does not have it."""
    rows = [{**fold, metric.name: _value(metric.for_target(table.y), fold)} for fold in folds]
    if any(row[metric.name] is None for row in rows):
        return None
    low, high = metric_interval(metric, rows) or (None, None)
    return {"value": float(np.mean([row[metric.name] for row in rows])), "low": low, "high": high}


def _value(metric: Metric, fold: Fold) -> float | None:
    if fold.get(metric.name) is not None:
        return float(fold[metric.name])
    truth, predictions = np.asarray(fold["truth"]), np.asarray(fold["predictions"])
    try:
        if metric.response == "predict":
            value = metric.function(truth, predictions)
        elif metric.response == "decision" and fold["decision"] is not None:
            value = metric.function(truth, fold["decision"])
        elif metric.response == "model" and fold.get("model") is not None:
            value = metric.function(fold["model"], fold["X"], truth)
        else:
            return None
    except ValueError:
        return None
    return float(value) if np.isfinite(value) else None
