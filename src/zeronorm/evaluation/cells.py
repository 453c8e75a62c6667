"""One cell of an evaluation: one method on one split, all sizes."""

from __future__ import annotations

import copy
import threading
import time
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection._search import BaseSearchCV
from sklearn.utils.validation import has_fit_parameter

from zeronorm._threads import thread_controller
from zeronorm._types import IntArray
from zeronorm.evaluation.metrics import Metric
from zeronorm.resampling.fitted import fitted_path, own_support
from zeronorm.resampling.journal import Journal
from zeronorm.resampling.rows import take_columns, take_rows
from zeronorm.resampling.seeding import seeded_clone
from zeronorm.resampling.splits import Split

Cell = dict[str, Any]


@dataclass(frozen=True)
class Study:
    """What all cells share."""

    X: Any
    y: NDArray[Any]
    groups: NDArray[Any] | None
    sizes: tuple[int | None, ...]
    estimator: Any
    unset_in_estimator: list[str]
    metrics: tuple[Metric, ...]
    seed: int
    threads_per_task: int
    journal: Journal | None = None


@dataclass(frozen=True)
class Task:
    """A cell still to be done."""

    name: str
    selector: Any
    unset_in_selector: list[str]
    split: Split
    key: str


def run_cell(study: Study, task: Task) -> Cell:
    """Do the work of a cell and enter it in the journal."""
    with thread_controller().limit(limits=study.threads_per_task), _quiet_convergence():
        cell = _compute(study, task)
    if study.journal is not None:
        study.journal.write(task.key, cell)
    return cell


def cell_seeds(seed: int, split: int, name: str) -> list[np.random.SeedSequence]:
    """Seeds of the selector and the predictor: the same whatever else is evaluated, in any order."""
    root = np.random.SeedSequence(entropy=seed, spawn_key=(split, zlib.crc32(name.encode())))
    return root.spawn(2)


def _compute(study: Study, task: Task) -> Cell:
    split = task.split
    for_selector, for_estimator = cell_seeds(study.seed, split.index, task.name)
    X_train, y_train = take_rows(study.X, split.train), study.y[split.train]
    cell: Cell = {"fit_seconds": None, "converged": None, "error": None, "sizes": []}
    start = time.perf_counter()
    try:
        selector = seeded_clone(task.selector, for_selector, task.unset_in_selector)
        selector.fit(X_train, y_train, **_group_params(selector, study.groups, split))
        path = fitted_path(selector, int(study.X.shape[1]))
    except Exception as error:
        cell["error"] = describe(error)
        return cell
    cell["fit_seconds"] = time.perf_counter() - start
    cell["converged"] = bool(getattr(selector, "converged_", path.converged))
    model = seeded_clone(study.estimator, for_estimator, study.unset_in_estimator)
    parts = (X_train, y_train), (take_rows(study.X, split.test), study.y[split.test])
    is_checked = False
    for size in study.sizes:
        result: Cell = {"size": size, "error": None}
        try:
            columns = own_support(selector, path) if size is None else path.support(size)
            result["selected"] = columns.tolist()
            # The parameters are the same for all sizes, so they are checked with the first; and copying the
            # fresh clone is four times faster than cloning it again.
            with config_context(skip_parameter_validation=is_checked):
                _judge(result, study, copy.deepcopy(model), *parts, columns)
            is_checked = True
        except Exception as error:
            result["error"] = describe(error)
        cell["sizes"].append(result)
    return cell


def _judge(result: Cell, study: Study, model: Any, train: Any, test: Any, columns: IntArray) -> None:
    """Fit the predictor on the selected columns of the training part and measure it on the test part."""
    start = time.perf_counter()
    model.fit(take_columns(train[0], columns), train[1])
    X_test, y_test = take_columns(test[0], columns), test[1]
    predictions = np.asarray(model.predict(X_test))
    result["seconds"] = time.perf_counter() - start
    _require_finite(predictions, "predictions", model)
    result["predictions"] = predictions.tolist()
    needs_decision = any(metric.response == "decision" for metric in study.metrics)
    decision = decision_values(model, X_test) if needs_decision else None
    if decision is not None:
        _require_finite(decision, "decision values", model)
    if decision is not None and decision.ndim == 1:
        result["decision"] = decision.tolist()
    result["metrics"], failures = {}, []
    for metric in study.metrics:
        try:
            value = _measure(metric, model, X_test, y_test, predictions, decision, columns)
        except Exception as error:
            failures.append(f"metric {metric.name!r}: {describe(error)}")
        else:
            result["metrics"][metric.name] = value
    if failures:
        result["error"] = "; ".join(failures)


def _measure(
    metric: Metric, model: Any, X_test: Any, y_test: Any, predictions: Any, decision: Any, columns: IntArray
) -> float:
    if metric.response == "predict":
        value = metric.function(y_test, predictions)
    elif metric.response == "selected":
        value = metric.function(columns)
    elif metric.response == "model":
        value = metric.function(model, X_test, y_test)
    elif decision is None:
        raise ValueError(
            f"{type(model).__name__} has neither decision_function nor predict_proba; use another 'estimator'."
        )
    else:
        value = metric.function(y_test, decision, model.classes_)
    if not np.isfinite(value):
        raise ValueError(f"the value is {value} on this test part. Use larger or stratified test parts.")
    return float(value)


def decision_values(model: Any, X: Any) -> NDArray[np.float64] | None:
    """Real-valued output of a classifier: one column for two classes, one per class for more."""
    if hasattr(model, "decision_function"):
        return np.asarray(model.decision_function(X), dtype=np.float64)
    if hasattr(model, "predict_proba"):
        probability = np.asarray(model.predict_proba(X), dtype=np.float64)
        return probability[:, 1] if probability.shape[1] == 2 else probability
    return None


def _require_finite(values: NDArray[Any], what: str, model: Any) -> None:
    if values.dtype.kind == "f" and not np.all(np.isfinite(values)):
        raise ValueError(
            f"{type(model).__name__} gave {what} that are not finite for {int(np.sum(~np.isfinite(values)))} of "
            f"{len(values)} test samples. Use another 'estimator'."
        )


def describe(error: BaseException) -> str:
    """The error in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def _group_params(selector: BaseEstimator, groups: NDArray[Any] | None, split: Split) -> dict[str, Any]:
    """Sample groups of the training part, for selectors that split it again."""
    if groups is None:
        return {}
    searches_groups = isinstance(selector, BaseSearchCV) and "Group" in type(selector.cv).__name__
    if searches_groups or has_fit_parameter(selector, "groups"):
        return {"groups": groups[split.train]}
    return {}


@contextmanager
def _quiet_convergence() -> Iterator[None]:
    """Convergence is recorded per cell and summed up once at the end, not warned about in each cell.

    Warning filters are global to the process, so threads leave them to the caller.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield
