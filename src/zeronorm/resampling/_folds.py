"""The fold loop: fit a selector on the training samples of a fold, score its subsets of all sizes on the test samples.

A task is one selector on one fold; its result is a dict that the journal can store.
"""

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

from zeronorm._types import FloatArray, IntArray
from zeronorm.design._base import Design
from zeronorm.execution import pass_on_interruption, thread_controller
from zeronorm.resampling._fitted_path import fitted_path, selected_support
from zeronorm.resampling._journal import Journal
from zeronorm.resampling._metrics import Metric
from zeronorm.resampling._seeds import seeded_clone
from zeronorm.resampling._splits import Split, group_params, take_columns, take_rows
from zeronorm.resampling._suppressed_warnings import suppress_nested_warnings
from zeronorm.resampling.predictors._standardized import OnStandardized, fresh_copy, standardized_columns
from zeronorm.selection._path import SelectionPath
from zeronorm.selection._problem import EmptySelectionWarning, Progress, TargetOutlierWarning

TaskResult = dict[str, Any]
MOST_READ_ONCE = 1 << 25  # numbers, a quarter of a gigabyte


@dataclass(frozen=True)
class FoldPlan:
    """The data and settings that all tasks share.

    ``sizes`` may hold None for the size that the selector chooses. With ``is_strict`` errors and warnings are
    raised; otherwise they are recorded in the result of the task, and the other tasks go on. With ``lifts_sizes``
    a size that forced features or whole groups exceed becomes the smallest possible size.

    ``estimator`` is the predictor. If it has a method ``for_selector``, that method returns the predictor for a fitted
    selector, which may have chosen one together with its features.
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
    """One selector on one split, with its key in the journal; ``sizes`` may differ from those of the plan.

    ``columns`` are all columns that tasks of the split will use, where that is known, covariates included.
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
) -> dict[str, TaskResult]:
    """The results of all tasks by key; they do not depend on ``n_jobs``."""
    plan, X = replace(plan, X=None), plan.X
    results: dict[str, TaskResult] = {}
    labels = [*_labels(tasks), ""]
    with progress.task(description, len(tasks)) as advance, _quiet_tasks(plan), _sent_once(X):
        advance(0, labels[0])
        # The same settings as in every other loop: with others joblib would stop its workers and start new ones.
        parallel = Parallel(n_jobs=n_jobs, return_as="generator")
        kept = _LastColumns() if effective_n_jobs(n_jobs) == 1 and not _on_cluster() else None
        for key, result in parallel(delayed(_keyed_task)(plan, X, task, kept) for task in tasks):
            results[key] = result
            if plan.journal is not None and not plan.journal.holds(
                key
            ):  # the worker has no access to the folder
                plan.journal.write(key, result)
            advance(1, labels[len(results)])
    return results


def _labels(tasks: Sequence[FoldTask]) -> list[str]:
    """The text of the progress bar for each task: the method and the fold."""
    n_splits = len({task.split.index for task in tasks})
    return [
        ", ".join(text for text in (task.name, f"fold {task.split.index + 1} of {n_splits}") if text)
        for task in tasks
    ]


def _on_cluster() -> bool:
    kinds = type(get_active_backend()[0]).__mro__
    return any(kind.__name__ == "DaskDistributedBackend" for kind in kinds)


def _sent_once(X: Any) -> AbstractContextManager[Any]:
    """On a Dask cluster, send data in memory to each worker once instead of with every task."""
    if not _on_cluster():
        return nullcontext()
    is_in_memory = hasattr(X, "nbytes") or hasattr(X, "tocsr")
    kind = _sending(type(get_active_backend()[0]))
    sharing: AbstractContextManager[Any] = parallel_config(
        backend=kind(scatter=[X] if is_in_memory else None)
    )
    return sharing


def _sending(kind: Any) -> Any:
    """A Dask backend of joblib that uses the cluster even when it has one worker, instead of this process."""

    class SendingBackend(kind):  # type: ignore[misc]
        def effective_n_jobs(self, n_jobs: int) -> int:
            return max(2, int(super().effective_n_jobs(n_jobs)))

    return SendingBackend


def _sequential_on_cluster() -> AbstractContextManager[Any]:
    """Run loops inside a task of a Dask worker one after the other, without requests to the scheduler."""
    if not _on_cluster():
        return nullcontext()
    alone: AbstractContextManager[Any] = parallel_config(backend="sequential")
    return alone


def _keyed_task(
    plan: FoldPlan, X: Any, task: FoldTask, kept: _LastColumns | None = None
) -> tuple[str, TaskResult]:
    """Compute one task and store its result in the journal.

    A result that is there already comes from a worker that died before it could answer. A failed one is there only
    if the task is to be repeated.
    """
    journal = plan.journal if plan.journal is not None and plan.journal.directory.is_dir() else None
    known = None if journal is None else journal.read(task.key)
    if known is not None and not has_failed(known):
        return task.key, known
    plan = replace(plan, X=X)
    with _limited_threads(plan), _quiet_tasks(plan), _sequential_on_cluster():
        result = _compute(plan, task, kept)
    if journal is not None:
        journal.write(task.key, result)
    return task.key, result


def has_failed(result: TaskResult) -> bool:
    """Whether the selector or, for some size, the predictor raised an error."""
    return result["error"] is not None or any(scored["error"] is not None for scored in result["sizes"])


def task_seeds(seed: int, split: int, name: str) -> list[np.random.SeedSequence]:
    """Seeds of the selector and the predictor: the same whatever else is evaluated, in any order."""
    root = np.random.SeedSequence(entropy=seed, spawn_key=(split, zlib.crc32(name.encode())))
    return root.spawn(2)


def _compute(plan: FoldPlan, task: FoldTask, kept: _LastColumns | None) -> TaskResult:
    split = task.split
    for_selector, for_estimator = task_seeds(plan.seed, split.index, task.name)
    X_train, y_train = take_rows(plan.X, split.train), plan.y[split.train]
    task_result: TaskResult = {"fit_seconds": None, "converged": None, "error": None, "sizes": []}
    start = time.perf_counter()
    try:
        selector = seeded_clone(task.selector, for_selector, task.unset_in_selector)
        groups = None if plan.groups is None else plan.groups[split.train]
        # Convergence is recorded; the size that the selector chooses does not matter where sizes are given.
        kinds = [] if None in plan.sizes else [EmptySelectionWarning]
        with suppress_nested_warnings(ConvergenceWarning, TargetOutlierWarning, *kinds):
            selector.fit(X_train, y_train, **group_params(selector, groups))
        pass_on_interruption(selector)
        path = fitted_path(selector, int(plan.X.shape[1]))
    except Exception as error:
        if plan.is_strict:
            raise
        task_result["error"] = describe(error)
        return task_result
    task_result["fit_seconds"] = time.perf_counter() - start
    task_result["converged"] = bool(getattr(selector, "converged_", path.converged))
    model = _fresh_model(plan, for_estimator, selector)
    sizes = plan.sizes if task.sizes is None else task.sizes
    if kept is None:
        kept, task = _LastColumns(), replace(task, columns=None)
    read, standardized = kept.of(task, plan, (X_train, take_rows(plan.X, split.test)), path, model)
    train_test = (read[0], y_train), (read[1], plan.y[split.test])
    with ExitStack() as after_the_first:
        for size in sizes:
            result: TaskResult = {"size": size, "error": None}
            try:
                columns = _columns(selector, path, size, plan.lifts_sizes)
                result["selected"] = columns.tolist()
                # Copying the fresh clone is four times faster than cloning it again.
                _score(
                    result,
                    plan,
                    fresh_copy(model),
                    *train_test,
                    columns,
                    path.predictors(columns),
                    standardized,
                )
            except Exception as error:
                if plan.is_strict:
                    raise
                result["error"] = describe(error)
            if not task_result["sizes"]:  # the parameters are the same for all sizes
                after_the_first.enter_context(config_context(skip_parameter_validation=True))
            task_result["sizes"].append(result)
    return task_result


def _fresh_model(plan: FoldPlan, seeds: np.random.SeedSequence, selector: Any) -> Any:
    """The predictor, to be copied for each size; a built-in one without random state needs no clone."""
    if hasattr(plan.estimator, "for_selector"):
        return seeded_clone(plan.estimator.for_selector(selector), seeds)
    if isinstance(plan.estimator, OnStandardized) and not plan.unset_in_estimator:
        return plan.estimator
    return seeded_clone(plan.estimator, seeds, plan.unset_in_estimator)


@dataclass(frozen=True, eq=False)
class _ReadColumns:
    """Columns of a design that are read once and kept in memory, one contiguous row per column."""

    columns: IntArray
    values: FloatArray

    @classmethod
    def of(cls, design: Design, columns: IntArray) -> _ReadColumns:
        """Read these columns of a design."""
        return cls(columns, design.block(columns).T)

    def rows_of(self, columns: IntArray) -> IntArray:
        """Row of ``values`` for each of the given columns."""
        found = np.minimum(np.searchsorted(self.columns, columns), self.columns.size - 1)
        if not np.array_equal(self.columns[found], columns):
            raise IndexError("A column was not read.")
        return found

    def take(self, columns: IntArray) -> FloatArray:
        """The given columns, as a block of the design has them."""
        return self.values[self.rows_of(columns)].T


@dataclass(frozen=True, eq=False)
class _StandardizedColumns:
    """The columns of training and test samples, standardised once by the means and scales of the training samples."""

    train: _ReadColumns
    test: _ReadColumns
    means: FloatArray
    scales: FloatArray

    @classmethod
    def of(cls, train: _ReadColumns, test: _ReadColumns) -> _StandardizedColumns | None:
        """Standardise the columns; None where a value is missing, since the predictor raises the right error."""
        values, means, scales = standardized_columns(train.values.T)
        others = (test.values.T - means) / scales
        if not (np.isfinite(values).all() and np.isfinite(others).all()):
            return None
        own, new = (_ReadColumns(train.columns, found.T) for found in (values, others))
        return cls(own, new, means, scales)

    def predictions(self, model: OnStandardized, y: NDArray[Any], columns: IntArray) -> NDArray[Any]:
        """Predictions for the test samples by the model fitted on these columns of the training samples."""
        at = self.train.rows_of(columns)
        model.fit_standardized(self.train.values[at].T, self.means[at], self.scales[at], y)
        return np.asarray(model.predict_standardized(self.test.values[at].T))


class _LastColumns:
    """The columns of the last split, kept for the next task on the same split."""

    def __init__(self) -> None:
        self.split: Split | None = None
        self.found: tuple[tuple[Any, Any], _StandardizedColumns | None] = ((None, None), None)

    def of(
        self, task: FoldTask, plan: FoldPlan, train_test: tuple[Any, Any], path: SelectionPath, model: Any
    ) -> tuple[tuple[Any, Any], _StandardizedColumns | None]:
        """Training and test samples, with their columns read once where that pays, and standardised if possible."""
        columns = task.columns
        if columns is None or not _is_worth_keeping(train_test, columns):
            read = _read_once(
                train_test, path, plan.sizes if task.sizes is None else task.sizes, plan.lifts_sizes
            )
            return read, _standardized_once(read, model, plan)
        if self.split is not task.split:
            read = _ReadColumns.of(train_test[0], columns), _ReadColumns.of(train_test[1], columns)
            self.split, self.found = task.split, (read, _standardized_once(read, model, plan))
        return self.found


def _read_once(
    train_test: tuple[Any, Any], path: SelectionPath, sizes: tuple[int | None, ...], lifts_sizes: bool
) -> tuple[Any, Any]:
    """Training and test samples with the columns of all sizes read once; unchanged where that does not pay."""
    known = [size for size in sizes if size is not None and size <= path.n_candidates]
    if len(known) < max(2, len(sizes)):
        return train_test
    subsets = []
    for size in known:
        with suppress(ValueError):  # a size that the path cannot give raises its error when it is scored
            subsets.append(_columns(None, path, size, lifts_sizes))
    columns = np.unique(np.concatenate([path.covariates, *subsets]))
    if not _is_worth_keeping(train_test, columns):
        return train_test
    return _ReadColumns.of(train_test[0], columns), _ReadColumns.of(train_test[1], columns)


def _is_worth_keeping(train_test: tuple[Any, Any], columns: IntArray) -> bool:
    are_designs = isinstance(train_test[0], Design)
    return are_designs and columns.size * sum(samples.n_samples for samples in train_test) <= MOST_READ_ONCE


def _standardized_once(
    train_test: tuple[Any, Any], model: Any, plan: FoldPlan
) -> _StandardizedColumns | None:
    """The standardised columns for a predictor that only has to predict; None for all others."""
    only_predicts = all(metric.response in ("predict", "selected") for metric in plan.metrics)
    if not (isinstance(train_test[0], _ReadColumns) and isinstance(model, OnStandardized) and only_predicts):
        return None
    return _StandardizedColumns.of(*train_test)


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


def _score(
    result: TaskResult,
    plan: FoldPlan,
    model: Any,
    train: Any,
    test: Any,
    selected: IntArray,
    columns: IntArray,
    standardized: _StandardizedColumns | None,
) -> None:
    """Fit the predictor on some columns of the training samples, those selected and covariates, and score it."""
    start = time.perf_counter()
    X_test, y_test = None, test[1]
    is_needed = any(metric.response == "decision" for metric in plan.metrics)
    # An evaluation keeps those of the whole procedure, for its ROC curve.
    is_wanted = is_needed or (result["size"] is None and not plan.is_strict and _has_two_classes(train[1]))
    if standardized is not None and not (is_wanted and hasattr(model, "decision_function")):
        predictions = standardized.predictions(model, train[1], columns)
    else:
        model.fit(_taken(train[0], columns), train[1])
        X_test = _taken(test[0], columns)
        predictions = np.asarray(model.predict(X_test))
    result["seconds"] = time.perf_counter() - start
    _require_finite(predictions, "predictions", model)
    result["predictions"] = predictions.tolist()
    decision = None
    if is_needed:
        decision = decision_values(model, X_test)
        if decision is not None:
            _require_finite(decision, "decision values", model)
    elif is_wanted and X_test is not None:
        with suppress(Exception):  # nothing that was asked for needs them
            found = decision_values(model, X_test)
            decision = found if found is not None and np.isfinite(found).all() else None
    if decision is not None and decision.ndim == 1:
        result["decision"] = decision.tolist()
    result["metrics"], failures = {}, []
    for metric in plan.metrics:
        try:
            value = metric.measure(model, X_test, y_test, predictions, decision, selected)
        except Exception as error:
            if plan.is_strict:
                raise
            failures.append(f"metric {metric.name!r}: {describe(error)}")
        else:
            result["metrics"][metric.name] = value
    if failures:
        result["error"] = "; ".join(failures)


def _has_two_classes(y: NDArray[Any]) -> bool:
    """Whether these are labels of two classes; a real target has no decision values."""
    return y.ndim == 1 and y.dtype.kind in "biuUSO" and len(np.unique(y)) == 2


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
    """Suppress warnings that are given once for all tasks: about convergence (which is recorded) and the target."""
    return suppress_nested_warnings(TargetOutlierWarning, *([] if plan.is_strict else [ConvergenceWarning]))
