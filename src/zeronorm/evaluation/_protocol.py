"""The nested protocol: everything that learns from data learns from the training samples of a fold only."""

from __future__ import annotations

import numbers
import os
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning, FitFailedWarning

from zeronorm import __version__
from zeronorm._types import written
from zeronorm.design import Design, as_design, check_container, has_own_backend
from zeronorm.evaluation._records import FIXED_COLUMNS, rows_of_task, to_frame
from zeronorm.resampling._folds import FoldPlan, FoldTask, TaskResult, has_failed, run_tasks
from zeronorm.resampling._journal import Journal, data_digest, digest
from zeronorm.resampling._metrics import Metric, parse_metrics
from zeronorm.resampling._seeds import unset_random_states
from zeronorm.resampling._splits import Split, make_splits
from zeronorm.resampling.predictors._chosen import ChosenPredictor
from zeronorm.resampling.predictors._default import default_estimator
from zeronorm.selection._problem import Progress, RunBar, warn_about_target_outliers
from zeronorm.selection.target import TASKS, Target


def evaluate(
    selectors: Any,
    X: Any,
    y: Any,
    *,
    cv: Any = 5,
    sizes: Iterable[int | None] | None = None,
    estimator: Any = None,
    metrics: Any = None,
    groups: Any = None,
    task: str = "classification",
    n_jobs: int | None = None,
    journal: str | os.PathLike[str] | None = None,
    retry_failed: bool = False,
    random_state: int | None = 0,
    threads_per_task: int = 1,
    verbose: bool | int | RunBar = False,
) -> Any:
    """Score selectors on held-out data.

    For every split, each selector is fitted once on the training samples; its path gives a subset for
    every size; ``estimator`` is fitted on the selected columns of the training samples and scored on
    the test samples. Standardisation and tuning belong inside the selector or the estimator (a
    pipeline, ``SelectorCV`` or ``GridSearchCV``), so that they too see the training samples only.

    Parameters
    ----------
    selectors : selector, list of selectors or dict
        Selectors to compare. A dict maps names to selectors; the items of a list are named by their class.
    X : array-like, sparse matrix, data frame or Design
        The features.
    y : array-like
        Labels, real targets with ``task="regression"``, or events and times with ``task="survival"``.
    cv : int, splitter or list, default=5
        Number of shuffled folds, a scikit-learn splitter, or pairs (training rows, test rows).
    sizes : list of int or None, default=None
        Numbers of features. None, alone or in the list, means the size that the selector chooses.
    estimator : estimator or None, default=None
        Predictor that scores the subsets. None: the predictor that the selector has chosen (``AutoSelector``), or for
        all others a linear support vector machine on standardised columns (ridge regression with
        ``task="regression"``, Cox regression with a ridge penalty with ``task="survival"``); its class weights are
        balanced if the first of ``metrics`` is a balanced metric, such as "balanced_error_rate".
    metrics : str, Metric, list or dict, default=None
        Names, ``Metric`` objects, or a dict from names to scikit-learn scorers. None: the usual ones of the
        task. "r2" of a test fold is one minus its mean squared error over the variance of the whole ``y``.
    groups : array-like or None, default=None
        One label per sample; samples of one group are never divided between training and test samples.
    task : {"classification", "regression", "survival"}, default='classification'
        What y holds. It is never guessed from y.
    n_jobs : int or None, default=None
        Number of processes. The result does not depend on it.
    journal : path or None, default=None
        Folder for finished tasks (one method on one split). A second call with the same data and settings
        computes only the missing tasks.
    retry_failed : bool, default=False
        Whether to compute tasks again that are in the journal with an error.
    random_state : int or None, default=0
        Seed of the folds and of every ``random_state`` that is not set. None draws a new one.
    threads_per_task : int, default=1
        Threads of the linear algebra within one task.
    verbose : bool, int or RunBar, default=False
        Show a progress bar, or count the tasks on one that is shown already.

    Returns
    -------
    polars.DataFrame or pandas.DataFrame
        One row per split, method and size (pandas if polars is not installed): ``split``, ``method``, ``size``,
        ``n_selected``, one column per metric, ``selected``, ``predictions``, ``decision``, ``truth``, ``test_rows``,
        ``n_train``, ``n_test``, ``fit_seconds``, ``seconds``, ``converged``, ``error``. Decision values are kept for
        two classes when a metric such as "auc" needs them. A task that failed has an ``error`` and empty results; the
        other tasks go on.

    Examples
    --------
    >>> from zeronorm import FisherScore, RFE, evaluate
    >>> from zeronorm.datasets import make_linear_toy
    >>> X, y, _ = make_linear_toy(60, random_state=0)
    >>> records = evaluate({"fisher": FisherScore(), "rfe": RFE()}, X, y, sizes=[2, 5])
    >>> len(records)  # 5 folds, 2 methods, 2 sizes
    20
    """
    named = name_selectors(selectors)
    X, y, groups = _check_data(X, y, groups, task)
    target = TASKS[task]
    if not target.has_classes and y.ndim == 1 and y.dtype.kind in "iuf":
        warn_about_target_outliers("the methods and the measured errors", y, other_methods=False)
    seed = _check_seed(random_state, journal)
    splits = make_splits(cv, y, groups, target=target, seed=seed, least_per_fold=1)
    measured = _check_metrics(metrics, target, y)
    if estimator is None:
        is_sparse = hasattr(X, "tocsr")
        usual = default_estimator(target, n_samples=len(y), is_sparse=is_sparse, metric=measured[0])
        estimator = ChosenPredictor(usual)
    plan = FoldPlan(
        X=X,
        y=y,
        groups=groups,
        sizes=_check_sizes(sizes, int(X.shape[1])),
        estimator=estimator,
        unset_in_estimator=unset_random_states(estimator),
        metrics=measured,
        seed=seed,
        threads_per_task=threads_per_task,
        journal=None if journal is None else Journal(journal),
    )
    tasks = _list_tasks(plan, named, splits)
    results = _recall(plan, tasks, retry_failed)
    missing = [task for task in tasks if task.key not in results]
    results |= run_tasks(plan, missing, n_jobs=n_jobs, progress=Progress(verbose), description="Evaluating")
    _warn_once(tasks, results)
    names = [metric.name for metric in plan.metrics]
    rows = [row for task in tasks for row in rows_of_task(results[task.key], task, plan)]
    return to_frame(rows, names)


def name_selectors(selectors: Any) -> dict[str, Any]:
    """Selectors by name; those of a list are named by their class, and names must not repeat."""
    if isinstance(selectors, Mapping):
        named = [(str(name), selector) for name, selector in selectors.items()]
    elif isinstance(selectors, Sequence):
        pairs = [s if isinstance(s, tuple) else (type(s).__name__, s) for s in selectors]
        named = [(str(name), selector) for name, selector in pairs]
    else:
        named = [(type(selectors).__name__, selectors)]
    repeated = sorted(name for name, count in Counter(name for name, _ in named).items() if count > 1)
    if repeated:
        raise ValueError(
            f"The 'selectors' parameter has several selectors of the same name: {repeated}. "
            "Pass a mapping from different names to selectors."
        )
    if not named:
        raise ValueError("The 'selectors' parameter is empty; it must hold at least one selector.")
    for name, selector in named:
        if isinstance(selector, type):
            raise ValueError(
                f"The 'selectors' parameter has the class {selector.__name__}. Give an object of it, "
                f"{selector.__name__}()."
            )
        if not (hasattr(selector, "fit") and hasattr(selector, "get_params")):
            raise ValueError(
                f"The 'selectors' parameter has {written(selector)} under the name {written(name)}, which is not a "
                "scikit-learn estimator object."
            )
    return dict(named)


def _check_data(X: Any, y: Any, groups: Any, task: str) -> tuple[Any, NDArray[Any], NDArray[Any] | None]:
    if task not in tuple(TASKS):
        raise ValueError(
            f"The 'task' parameter of evaluate must be {' or '.join(map(repr, TASKS))}. Got {written(task)} instead."
        )
    if has_own_backend(X):
        X = as_design(X)
    elif hasattr(X, "tocsr"):
        X = X.tocsr()
    elif not isinstance(X, Design) and not hasattr(X, "columns"):
        check_container(X)
        X = np.asarray(X)
    if len(X.shape) != 2:
        raise ValueError(f"X must have two dimensions, samples and features. Got shape {X.shape} instead.")
    y = np.asarray(TASKS[task].prepared(y))
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    groups = None if groups is None else np.asarray(groups)
    for name, values in (("y", y), ("groups", groups)):
        if values is not None and len(values) != X.shape[0]:
            raise ValueError(f"'{name}' has {len(values)} entries, but X has {X.shape[0]} samples.")
    return X, y, groups


def _check_seed(random_state: int | None, journal: Any) -> int:
    if isinstance(random_state, numbers.Integral) and int(random_state) >= 0:
        return int(random_state) % 2**32
    if random_state is not None:
        raise ValueError(
            f"The 'random_state' parameter of evaluate must be None or an int of at least 0. Got "
            f"{written(random_state)} instead."
        )
    if journal is not None:
        raise ValueError(
            "The 'random_state' parameter of evaluate must be an int when there is a journal: without a seed, a run "
            "that is resumed would differ from the one that was interrupted."
        )
    return int(np.random.SeedSequence().generate_state(1)[0])


def _check_sizes(sizes: Iterable[int | None] | None, n_features: int) -> tuple[int | None, ...]:
    listed = [None] if sizes is None else list(sizes)
    for size in listed:
        is_count = isinstance(size, numbers.Integral) and not isinstance(size, bool)
        if size is not None and not (is_count and 1 <= int(size) <= n_features):
            raise ValueError(
                f"The 'sizes' parameter must hold counts between 1 and the {n_features} features of X. "
                f"Got {written(size)}."
            )
    if not listed:
        raise ValueError("The 'sizes' parameter is empty; it must hold at least one size.")
    return tuple(dict.fromkeys(None if size is None else int(size) for size in listed))


def _check_metrics(metrics: Any, target: type[Target], y: NDArray[Any]) -> tuple[Metric, ...]:
    parsed = parse_metrics(metrics, target)
    for metric in parsed:
        if metric.name in FIXED_COLUMNS:
            raise ValueError(f"A metric must not be named {metric.name!r}: this is a column of the records.")
    return tuple(
        metric.for_target(y) for metric in parsed
    )  # for every task, since a selector may treat the target in another way


def _list_tasks(plan: FoldPlan, named: dict[str, Any], splits: list[Split]) -> list[FoldTask]:
    """All tasks, each with its key in the journal."""
    unset = {name: unset_random_states(selector) for name, selector in named.items()}
    if plan.journal is None:
        return [
            FoldTask(name, selector, unset[name], split, f"{name}/{split.index}")
            for name, selector in named.items()
            for split in splits
        ]
    metrics = [(metric.name, metric.function, metric.response) for metric in plan.metrics]
    shared = digest(
        __version__,
        plan.sizes,
        plan.estimator,
        metrics,
        plan.seed,
        data_digest(plan.X, plan.y),
        plan.groups,
    )
    of_splits = [digest(split.index, split.train, split.test) for split in splits]
    tasks = []
    for name, selector in named.items():
        method = digest(name, selector)
        for split, rows in zip(splits, of_splits, strict=True):
            tasks.append(FoldTask(name, selector, unset[name], split, digest(shared, rows, method)))
    return tasks


def _recall(plan: FoldPlan, tasks: list[FoldTask], retry_failed: bool) -> dict[str, TaskResult]:
    """Results that the journal holds already."""
    if plan.journal is None:
        return {}
    finished = plan.journal.finished()
    results = {}
    for task in tasks:
        result = plan.journal.read(task.key) if task.key in finished else None
        if result is not None and not (retry_failed and has_failed(result)):
            results[task.key] = result
    return results


def _warn_once(tasks: list[FoldTask], results: dict[str, TaskResult]) -> None:
    """Give one warning about tasks that failed and one about selectors that did not converge."""
    failed = Counter(task.name for task in tasks if has_failed(results[task.key]))
    if failed:
        shown = ", ".join(f"{name} ({count})" for name, count in failed.items())
        warnings.warn(
            f"{sum(failed.values())} of {len(tasks)} tasks failed: {shown}. Column 'error' of the records says why.",
            FitFailedWarning,
            stacklevel=3,
        )
    slow = Counter(task.name for task in tasks if results[task.key]["converged"] is False)
    if slow:
        shown = ", ".join(f"{name} ({count})" for name, count in slow.items())
        warnings.warn(
            f"{sum(slow.values())} of {len(tasks)} selector fits did not converge: {shown}. Raise max_iter or "
            "loosen tol of these methods.",
            ConvergenceWarning,
            stacklevel=3,
        )
