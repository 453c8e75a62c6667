"""The fold loop: fit a selector on the training part, judge its subsets of all sizes on the test part."""

from __future__ import annotations

import time
import zlib
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs, parallel_config
from joblib.parallel import get_active_backend
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.exceptions import ConvergenceWarning

from zeronorm._threads import thread_controller
from zeronorm._types import FloatArray, IntArray
from zeronorm.design._base import Design
from zeronorm.resampling._fitted_path import fitted_path, selected_support
from zeronorm.resampling._journal import Journal
from zeronorm.resampling._metrics import Metric
from zeronorm.resampling._seeds import seeded_clone
from zeronorm.resampling._splits import Split, group_params, take_columns, take_rows
from zeronorm.resampling._suppressed_warnings import suppress_nested_warnings
from zeronorm.resampling.predictors._standardized import OnStandardized, fresh_copy, standardized_columns
from zeronorm.selection._path import SelectionPath
from zeronorm.selection._problem import EmptyAnswerWarning, Progress, TargetOutlierWarning

TaskId = dict[str, Any]
MOST_READ_ONCE = 1 << 25  # numbers, a quarter of a gigabyte


@dataclass(frozen=True)
class FoldPlan:
    """What all cells share.

    ``sizes`` may hold None for the selector's own size. ``is_strict`` lets errors and warnings through;
    otherwise both are entered in the cell and the other cells go on. ``lifts_sizes`` gives the smallest
    possible subset where forced features or whole groups are more than the size asked for.
    """

    X: Any
    y: NDArray[Any]
    groups: NDArray[Any] | None
    sizes: tuple[int | None, ...]
    estimator: Any
    unset_in_estimator: list[str]
    metrics: tuple[Metric, ...]
    seed: int
    threads_per_task: int | None = None
    journal: Journal | None = None
    is_strict: bool = False
    lifts_sizes: bool = False


@dataclass(frozen=True)
class FoldTask:
    """One selector on one split, under the key by which the cell is known; ``sizes`` may differ from the plan's.

    ``columns`` are those that all tasks of the split will read, where that is known.
    """

    name: str
    selector: Any
    unset_in_selector: list[str]
    split: Split
    key: str
    sizes: tuple[int | None, ...] | None = None
    columns: IntArray | None = None


def run_tasks(
    plan: FoldPlan, tasks: Sequence[FoldTask], *, n_jobs: int | None, progress: Progress, description: str
) -> dict[str, TaskId]:
    """The cells of all tasks by key; the results do not depend on ``n_jobs``."""
    plan, X = replace(plan, X=None), plan.X
    cells: dict[str, TaskId] = {}
    labels = [*_labels(tasks), ""]
    with progress.task(description, len(tasks)) as advance, _quiet_tasks(plan), _sent_once(X):
        advance(0, labels[0])
        # With the settings that every other loop has: for other ones joblib ends its workers and starts new ones.
        parallel = Parallel(n_jobs=n_jobs, return_as="generator")
        kept = _LastReading() if effective_n_jobs(n_jobs) == 1 and not _on_cluster() else None
        for key, cell in parallel(delayed(_keyed_task)(plan, X, task, kept) for task in tasks):
            cells[key] = cell
            if plan.journal is not None and not plan.journal.holds(key):  # by a worker without the folder
                plan.journal.write(key, cell)
            advance(1, labels[len(cells)])
    return cells


def _labels(tasks: Sequence[FoldTask]) -> list[str]:
    """What a progress bar says about each task: the method and the fold."""
    n_splits = len({task.split.index for task in tasks})
    return [
        ", ".join(part for part in (task.name, f"fold {task.split.index + 1} of {n_splits}") if part)
        for task in tasks
    ]


def _on_cluster() -> bool:
    kinds = type(get_active_backend()[0]).__mro__
    return any(kind.__name__ == "DaskDistributedBackend" for kind in kinds)


def _sent_once(X: Any) -> AbstractContextManager[Any]:
    """On a Dask cluster, let data in memory travel to each worker once instead of with every cell."""
    if not _on_cluster():
        return nullcontext()
    is_in_memory = hasattr(X, "nbytes") or hasattr(X, "tocsr")
    kind = _sending(type(get_active_backend()[0]))
    sharing: AbstractContextManager[Any] = parallel_config(
        backend=kind(scatter=[X] if is_in_memory else None)
    )
    return sharing


def _sending(kind: Any) -> Any:
    """The backend of joblib for a cluster that sends the work to a single worker too, in place of doing it here."""

    class SendingBackend(kind):  # type: ignore[misc]
        def effective_n_jobs(self, n_jobs: int) -> int:
            return max(2, int(super().effective_n_jobs(n_jobs)))

    return SendingBackend


def _without_questions() -> AbstractContextManager[Any]:
    """A worker of Dask has cells enough: loops inside one would ask the scheduler again and again who is free."""
    if not _on_cluster():
        return nullcontext()
    alone: AbstractContextManager[Any] = parallel_config(backend="sequential")
    return alone


def _keyed_task(
    plan: FoldPlan, X: Any, task: FoldTask, kept: _LastReading | None = None
) -> tuple[str, TaskId]:
    """Do the work of a cell and enter it in the journal.

    A cell that is there already was finished by a worker that died before it could answer. One that failed is there
    only if it is to be tried again.
    """
    journal = plan.journal if plan.journal is not None and plan.journal.directory.is_dir() else None
    known = None if journal is None else journal.read(task.key)
    if known is not None and not has_failed(known):
        return task.key, known
    plan = replace(plan, X=X)
    with _limited_threads(plan), _quiet_tasks(plan), _without_questions():
        cell = _compute(plan, task, kept)
    if journal is not None:
        journal.write(task.key, cell)
    return task.key, cell


def has_failed(cell: TaskId) -> bool:
    """Whether the selector or, for some size, the predictor raised an error."""
    return cell["error"] is not None or any(result["error"] is not None for result in cell["sizes"])


def task_seeds(seed: int, split: int, name: str) -> list[np.random.SeedSequence]:
    """Seeds of the selector and the predictor: the same whatever else is evaluated, in any order."""
    root = np.random.SeedSequence(entropy=seed, spawn_key=(split, zlib.crc32(name.encode())))
    return root.spawn(2)


def _compute(plan: FoldPlan, task: FoldTask, kept: _LastReading | None) -> TaskId:
    split = task.split
    for_selector, for_estimator = task_seeds(plan.seed, split.index, task.name)
    X_train, y_train = take_rows(plan.X, split.train), plan.y[split.train]
    cell: TaskId = {"fit_seconds": None, "converged": None, "error": None, "sizes": []}
    start = time.perf_counter()
    try:
        selector = seeded_clone(task.selector, for_selector, task.unset_in_selector)
        groups = None if plan.groups is None else plan.groups[split.train]
        # Convergence is recorded; the own size of a selector is of no interest where sizes are given.
        kinds = [] if None in plan.sizes else [EmptyAnswerWarning]
        with suppress_nested_warnings(ConvergenceWarning, TargetOutlierWarning, *kinds):
            selector.fit(X_train, y_train, **group_params(selector, groups))
        path = fitted_path(selector, int(plan.X.shape[1]))
    except Exception as error:
        if plan.is_strict:
            raise
        cell["error"] = describe(error)
        return cell
    cell["fit_seconds"] = time.perf_counter() - start
    cell["converged"] = bool(getattr(selector, "converged_", path.converged))
    model = _fresh_model(plan, for_estimator)
    sizes = plan.sizes if task.sizes is None else task.sizes
    if kept is None:
        kept, task = _LastReading(), replace(task, columns=None)
    read, standardized = kept.of(task, plan, (X_train, take_rows(plan.X, split.test)), path, model)
    parts = (read[0], y_train), (read[1], plan.y[split.test])
    with ExitStack() as after_the_first:
        for size in sizes:
            result: TaskId = {"size": size, "error": None}
            try:
                columns = _columns(selector, path, size, plan.lifts_sizes)
                result["selected"] = columns.tolist()
                # Copying the fresh clone is four times faster than cloning it again.
                _scorer(result, plan, fresh_copy(model), *parts, columns, standardized)
            except Exception as error:
                if plan.is_strict:
                    raise
                result["error"] = describe(error)
            if not cell["sizes"]:  # the parameters are the same for all sizes
                after_the_first.enter_context(config_context(skip_parameter_validation=True))
            cell["sizes"].append(result)
    return cell


def _fresh_model(plan: FoldPlan, seeds: np.random.SeedSequence) -> Any:
    """The predictor, to be copied for each size; a small one without chance needs no clone."""
    if isinstance(plan.estimator, OnStandardized) and not plan.unset_in_estimator:
        return plan.estimator
    return seeded_clone(plan.estimator, seeds, plan.unset_in_estimator)


@dataclass(frozen=True, eq=False)
class _ReadColumns:
    """Columns of a design that were gathered once, for subsets of them; one row for each, in one piece."""

    columns: IntArray
    values: FloatArray

    @classmethod
    def of(cls, design: Design, columns: IntArray) -> _ReadColumns:
        """These columns of a design."""
        return cls(columns, design.block(columns).T)

    def places(self, columns: IntArray) -> IntArray:
        """Where some of them stand."""
        found = np.minimum(np.searchsorted(self.columns, columns), self.columns.size - 1)
        if not np.array_equal(self.columns[found], columns):
            raise IndexError("A column was not read.")
        return found

    def take(self, columns: IntArray) -> FloatArray:
        """Some of them, as the design gives them."""
        return self.values[self.places(columns)].T


@dataclass(frozen=True, eq=False)
class _StandardizedColumns:
    """The columns of both parts, standardised once by the means and scales of the training part."""

    train: _ReadColumns
    test: _ReadColumns
    means: FloatArray
    scales: FloatArray

    @classmethod
    def of(cls, train: _ReadColumns, test: _ReadColumns) -> _StandardizedColumns | None:
        """None where a number is missing: the predictor has words for it."""
        values, means, scales = standardized_columns(train.values.T)
        others = (test.values.T - means) / scales
        if not (np.isfinite(values).all() and np.isfinite(others).all()):
            return None
        own, new = (_ReadColumns(train.columns, found.T) for found in (values, others))
        return cls(own, new, means, scales)

    def predictions(self, model: OnStandardized, y: NDArray[Any], columns: IntArray) -> NDArray[Any]:
        """Of the test part, by the model that the training part fits; the same as of columns that are read anew."""
        at = self.train.places(columns)
        model.fit_standardized(self.train.values[at].T, self.means[at], self.scales[at], y)
        return np.asarray(model.predict_standardized(self.test.values[at].T))


class _LastReading:
    """The columns of the last split, for the next task on the same split."""

    def __init__(self) -> None:
        self.split: Split | None = None
        self.found: tuple[tuple[Any, Any], _StandardizedColumns | None] = ((None, None), None)

    def of(
        self, task: FoldTask, plan: FoldPlan, parts: tuple[Any, Any], path: SelectionPath, model: Any
    ) -> tuple[tuple[Any, Any], _StandardizedColumns | None]:
        """Both parts with their columns read where that is worth it, and standardised where that is all they need."""
        columns = task.columns
        if columns is None or not _is_worth_reading(parts, columns):
            read = _read_once(parts, path, plan.sizes if task.sizes is None else task.sizes, plan.lifts_sizes)
            return read, _standardized_once(read, model, plan)
        if self.split is not task.split:
            read = _ReadColumns.of(parts[0], columns), _ReadColumns.of(parts[1], columns)
            self.split, self.found = task.split, (read, _standardized_once(read, model, plan))
        return self.found


def _read_once(
    parts: tuple[Any, Any], path: SelectionPath, sizes: tuple[int | None, ...], lifts_sizes: bool
) -> tuple[Any, Any]:
    """The parts with the columns of all sizes read; else as they are."""
    known = [size for size in sizes if size is not None and size <= path.n_features]
    if len(known) < max(2, len(sizes)):
        return parts
    subsets = []
    for size in known:
        with suppress(ValueError):  # a size that the path cannot give is refused when it is judged
            subsets.append(_columns(None, path, size, lifts_sizes))
    columns = np.unique(np.concatenate([np.empty(0, dtype=np.intp), *subsets]))
    if not _is_worth_reading(parts, columns):
        return parts
    return _ReadColumns.of(parts[0], columns), _ReadColumns.of(parts[1], columns)


def _is_worth_reading(parts: tuple[Any, Any], columns: IntArray) -> bool:
    are_designs = isinstance(parts[0], Design)
    return are_designs and columns.size * sum(part.n_samples for part in parts) <= MOST_READ_ONCE


def _standardized_once(parts: tuple[Any, Any], model: Any, plan: FoldPlan) -> _StandardizedColumns | None:
    """The columns that were read, standardised for a predictor of which nothing but predictions is asked."""
    only_predicts = all(metric.response in ("predict", "selected") for metric in plan.metrics)
    if not (isinstance(parts[0], _ReadColumns) and isinstance(model, OnStandardized) and only_predicts):
        return None
    return _StandardizedColumns.of(*parts)


def _taken(X: Any, columns: IntArray) -> Any:
    return X.take(columns) if isinstance(X, _ReadColumns) else take_columns(X, columns)


def _columns(selector: Any, path: SelectionPath, size: int | None, lifts_sizes: bool) -> IntArray:
    if size is None:
        return selected_support(selector, path)
    return path.support(max(size, smallest_size(path)) if lifts_sizes else size)


def smallest_size(path: SelectionPath) -> int:
    """The smallest size the path can give: forced features and the first whole group must fit."""
    if path.groups is None:
        return max(1, int(path.always_keep.size))
    return int(path.sizes[0])


def _scorer(
    result: TaskId,
    plan: FoldPlan,
    model: Any,
    train: Any,
    test: Any,
    columns: IntArray,
    standardized: _StandardizedColumns | None,
) -> None:
    """Fit the predictor on the selected columns of the training part and measure it on the test part."""
    start = time.perf_counter()
    X_test, y_test = None, test[1]
    if standardized is not None:
        predictions = standardized.predictions(model, train[1], columns)
    else:
        model.fit(_taken(train[0], columns), train[1])
        X_test = _taken(test[0], columns)
        predictions = np.asarray(model.predict(X_test))
    result["seconds"] = time.perf_counter() - start
    _require_finite(predictions, "predictions", model)
    result["predictions"] = predictions.tolist()
    needs_decision = any(metric.response == "decision" for metric in plan.metrics)
    decision = decision_values(model, X_test) if needs_decision else None
    if decision is not None:
        _require_finite(decision, "decision values", model)
    if decision is not None and decision.ndim == 1:
        result["decision"] = decision.tolist()
    result["metrics"], failures = {}, []
    for metric in plan.metrics:
        try:
            value = metric.measure(model, X_test, y_test, predictions, decision, columns)
        except Exception as error:
            if plan.is_strict:
                raise
            failures.append(f"metric {metric.name!r}: {describe(error)}")
        else:
            result["metrics"][metric.name] = value
    if failures:
        result["error"] = "; ".join(failures)


def decision_values(model: Any, X: Any) -> FloatArray | None:
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


def _limited_threads(plan: FoldPlan) -> AbstractContextManager[Any]:
    if plan.threads_per_task is None:
        return nullcontext()
    limit: AbstractContextManager[Any] = thread_controller().limit(limits=plan.threads_per_task)
    return limit


def _quiet_tasks(plan: FoldPlan) -> AbstractContextManager[None]:
    """What is said once for all cells: convergence, which each of them records, and the target, which they share."""
    return suppress_nested_warnings(TargetOutlierWarning, *([] if plan.is_strict else [ConvergenceWarning]))
