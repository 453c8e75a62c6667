"""Runs a study: checks that every method exists, reads finished tasks from the journal, computes the others."""

from __future__ import annotations

import functools
import math
import multiprocessing
import os
import time
import warnings
from collections.abc import Callable, Collection, Iterator
from multiprocessing.connection import Connection, wait
from typing import Any

from joblib import Parallel, delayed
from sklearn.exceptions import ConvergenceWarning, FitFailedWarning

from zeronorm import __version__, evaluate
from zeronorm.evaluation._records import columns_of
from zeronorm.registry import all_methods, get_method
from zeronorm.resampling import Journal, digest
from zeronorm.selection import Progress
from zeronorm_studies.code_version import UNKNOWN, code_now, code_of_tasks
from zeronorm_studies.results import Results
from zeronorm_studies.study import Configuration, Data, Plan, Study, StudyError


def run_study(
    study: Study,
    *,
    quick: bool = False,
    journal: str | os.PathLike[str] | None = None,
    n_jobs: int = 1,
    cap_s: float | None = None,
    limit_s: float | None = None,
    allow_missing: bool = False,
    in_process: bool | None = None,
    elsewhere: bool = False,
    verbose: bool = False,
) -> Results:
    """Compute all tasks of a study.

    Parameters
    ----------
    quick : the small version.
    journal : folder of finished tasks; a second run computes only the missing ones.
    n_jobs : number of processes.
    cap_s : time limit of one task in seconds; None takes that of the study. A timeout is a result.
    limit_s : time limit of this call in seconds; tasks that it does not reach are not results, and a later call with
        the same journal computes them. Tasks are computed trial by trial, so that a run that was stopped has as many
        trials of every data set as possible.
    allow_missing : leave out configurations whose method is not registered, with a note on the page, instead of
        raising an error.
    in_process : compute in this process, without a time limit; by default only the quick version does.
    elsewhere : compute with the current parallel backend of joblib, such as a cluster, without a time limit.
    """
    make_plan = study.quick if quick else study.full
    plan = make_plan()
    missing = missing_configurations(plan)
    if missing and not allow_missing:
        shown = "; ".join(f"{label} ({reason})" for label, reason in missing.items())
        raise StudyError(f"Study {study.name!r} needs methods that are not there: {shown}.")
    cap = plan.cap_s if cap_s is None else cap_s
    store = None if journal is None else Journal(journal)
    keys = {job: task_key(study.name, plan, *_members(plan, job)) for job in _jobs(plan, missing)}
    results = _recall(store, keys, cap)
    waiting = [job for job in keys if job not in results]
    here = quick if in_process is None else in_process
    late = {job[:2] for job, result in results.items() if result.get("cap_s") is not None}
    if elsewhere:
        fresh = run_elsewhere(make_plan, waiting)
    elif here:
        fresh = run_here(plan, waiting)
    else:
        fresh = run_capped(make_plan, waiting, max(1, n_jobs), cap, late, limit_s)
    with Progress(verbose).task(study.name, len(waiting)) as advance:
        for job, result in fresh:
            results[job] = {**result, "code": code_now()}
            if store is not None:
                store.write(keys[job], results[job])
            advance(1)
    for job in keys:
        if job not in results:
            results[job] = failed_task(plan, plan.configs[job[1]], NOT_REACHED)
    rows = [row for job in keys for row in _rows(plan, job, results[job])]
    return Results(
        plan,
        rows,
        missing,
        seconds=sum(result.get("seconds", 0.0) for result in results.values()),
        code=code_of_tasks(
            results[job].get("code", UNKNOWN) for job in keys if not _is_unreached(results[job])
        ),
    )


def missing_configurations(plan: Plan) -> dict[str, str]:
    """Configurations whose methods are not registered, with the reason."""
    known = {method.name for method in all_methods()}
    missing = {}
    for config in plan.configs:
        absent = sorted(required_methods(config, plan) - known)
        if absent:
            missing[config.label] = f"not registered: {', '.join(absent)}"
    return missing


def _jobs(plan: Plan, missing: dict[str, str]) -> Iterator[Job]:
    for trial in range(max((data.n_trials for data in plan.data), default=0)):
        for d, data in enumerate(plan.data):
            for a, config in enumerate(plan.configs if trial < data.n_trials else ()):
                if config.label not in missing and (config.only is None or data.label in config.only):
                    yield d, a, trial


def _members(plan: Plan, job: Job) -> tuple[Any, Configuration, int]:
    return plan.data[job[0]], plan.configs[job[1]], job[2]


def _recall(store: Journal | None, keys: dict[Job, str], cap_s: float) -> dict[Job, TaskResult]:
    """Results in the journal; timeouts under a smaller limit are computed again."""
    if store is None:
        return {}
    finished = store.finished()
    results = {}
    for job, key in keys.items():
        result = store.read(key) if key in finished else None
        if result is not None and (result.get("cap_s") is None or result["cap_s"] >= cap_s):
            results[job] = result
    return results


def _is_unreached(result: TaskResult) -> bool:
    return bool(result["rows"][0].get("error") == NOT_REACHED)


def _rows(plan: Plan, job: Job, result: TaskResult) -> list[dict[str, Any]]:
    data, config, trial = _members(plan, job)
    return [
        {"data": data.label, "configuration": config.label, "trial": trial, **row} for row in result["rows"]
    ]


# -- Tasks in separate processes, so that one that takes too long can be ended --


Job = tuple[int, int, int]
"""Index of the data set, index of the configuration, number of the trial."""

TIMEOUT = "timeout"
NOT_REACHED = "not computed within the time limit of the run"
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def run_here(plan: Plan, jobs: list[Job]) -> Iterator[tuple[Job, TaskResult]]:
    """Compute tasks one after the other in this process, without a time limit."""
    for job in jobs:
        data, config, trial = job
        yield job, run_task(plan, plan.data[data], plan.configs[config], trial)


def run_elsewhere(make_plan: Callable[[], Plan], jobs: list[Job]) -> Iterator[tuple[Job, TaskResult]]:
    """Compute tasks with joblib, in the order in which they finish; a worker that dies loses only its task."""
    parallel = Parallel(n_jobs=-1, return_as="generator_unordered")
    yield from parallel(delayed(_task_elsewhere)(make_plan, job) for job in jobs)


def _task_elsewhere(make_plan: Callable[[], Plan], job: Job) -> tuple[Job, TaskResult]:
    plan = _plan_here(make_plan)
    data, config, trial = job
    try:
        return job, run_task(plan, plan.data[data], plan.configs[config], trial)
    except Exception as error:
        return job, failed_task(plan, plan.configs[config], f"{type(error).__name__}: {error}")


@functools.cache
def _plan_here(make_plan: Callable[[], Plan]) -> Plan:
    """The plan, made once per process."""
    all_methods()
    return make_plan()


def run_capped(
    make_plan: Callable[[], Plan],
    jobs: list[Job],
    n_jobs: int,
    cap_s: float,
    late: Collection[tuple[int, int]] = (),
    limit_s: float | None = None,
) -> Iterator[tuple[Job, TaskResult]]:
    """Compute tasks in ``n_jobs`` processes; a task that exceeds the time limit ends as a timeout.

    ``make_plan`` must be a function of a module: every process makes its plan with it. ``late`` holds the pairs of
    data set and configuration that were too slow in an earlier run. Nothing is computed after ``limit_s`` seconds.
    """
    end = math.inf if limit_s is None else time.perf_counter() + limit_s
    plan, waiting = make_plan(), list(reversed(jobs))
    workers = [Worker(make_plan, plan) for _ in range(min(n_jobs, len(jobs)))]
    given_up = set(late) if plan.one_timeout_is_enough else set()
    try:
        while time.perf_counter() < end and (waiting or any(worker.job is not None for worker in workers)):
            while waiting and waiting[-1][:2] in given_up:
                job = waiting.pop()
                reason = f"{TIMEOUT}: an earlier trial took too long"
                yield job, failed_task(plan, plan.configs[job[1]], reason, cap_s)
            for worker in workers:
                if worker.job is None and waiting and waiting[-1][:2] not in given_up:
                    worker.begin(next_job(waiting, given_up, worker, workers))
            for job, result in _finished(workers, plan, cap_s, end):
                if result.get("cap_s") is not None and plan.one_timeout_is_enough:
                    given_up.add(job[:2])
                yield job, result
    finally:
        for worker in workers:
            worker.end()


def next_job(
    waiting: list[Job], given_up: set[tuple[int, int]], worker: Worker, workers: list[Worker]
) -> Job:
    """A task on the draw that this worker had last, or one that no other has: tasks may share what they computed."""
    elsewhere = {other.draw for other in workers if other is not worker}
    last_first = [i for i in reversed(range(len(waiting))) if waiting[i][:2] not in given_up]
    own = (i for i in last_first if _draw_of(waiting[i]) == worker.draw)
    new = (i for i in last_first if _draw_of(waiting[i]) not in elsewhere)
    return waiting.pop(next(own, next(new, last_first[0])))


def _draw_of(job: Job) -> tuple[int, int]:
    """Data set and trial."""
    return job[0], job[2]


def _finished(
    workers: list[Worker], plan: Plan, cap_s: float, end: float
) -> Iterator[tuple[Job, TaskResult]]:
    busy = [worker for worker in workers if worker.job is not None]
    if not busy:
        return
    until = min(end, *(worker.started + cap_s for worker in busy))
    wait([worker.pipe for worker in busy], timeout=max(0.0, until - time.perf_counter()))
    for worker in busy:
        job = worker.job
        assert job is not None
        config = plan.configs[job[1]]
        if worker.pipe.poll():
            yield job, worker.take(config)
        elif time.perf_counter() - worker.started >= cap_s:
            worker.end()
            reason = f"{TIMEOUT}: not finished after {cap_s:g} s"
            yield job, {**failed_task(plan, config, reason, cap_s), "seconds": cap_s}


class Worker:
    """One process that computes tasks of a plan, one at a time."""

    def __init__(self, make_plan: Callable[[], Plan], plan: Plan) -> None:
        self.make_plan, self.plan = make_plan, plan
        self.job: Job | None = None
        self.draw: tuple[int, int] | None = None  # of the last task
        self.started = 0.0
        self.process: Any = None

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=serve, args=(theirs, self.make_plan), daemon=True)
        self.process.start()
        theirs.close()
        # The time limit is for the task: the package is imported before the time counts.
        self.pipe.recv()

    def begin(self, job: Job) -> None:
        if self.process is None:
            self._start()
        self.job, self.draw, self.started = job, _draw_of(job), time.perf_counter()
        self.pipe.send(job)

    def take(self, config: Any) -> TaskResult:
        """The result of the task; a process that died is replaced."""
        try:
            result: TaskResult = self.pipe.recv()
        except EOFError:
            self.end()
            return failed_task(self.plan, config, "the process of this task died (out of memory?)")
        self.job = None
        return result

    def end(self) -> None:
        """Kill the process; the next job starts another."""
        self.job = None
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.pipe.close()
            self.process = None


def serve(pipe: Connection, make_plan: Callable[[], Plan]) -> None:
    """Main function of a worker process."""
    for name in THREAD_VARIABLES:
        os.environ.setdefault(name, "1")
    plan = make_plan()
    all_methods()
    pipe.send("ready")
    while True:
        try:
            data, config, trial = pipe.recv()
        except EOFError:
            return
        try:
            result = run_task(plan, plan.data[data], plan.configs[config], trial)
        except Exception as error:
            result = failed_task(plan, plan.configs[config], f"{type(error).__name__}: {error}")
        pipe.send(result)


# -- One task of a study: one configuration on one trial, all sizes --


Row = dict[str, Any]
TaskResult = dict[str, Any]
METHOD_PREFIX = "method:"
DROPPED = ("method", "split", "decision", "test_rows")


def build_selector(config: Configuration) -> Any:
    """The selector of a configuration; a random order stands for keeping all features."""
    if config.factory is not None:
        return config.factory()
    if config.method is None:
        return get_method("random").cls(random_state=0)
    params = {name: _resolved(value) for name, value in config.params.items()}
    return get_method(config.method).cls(**params)


def build_estimator(config: Configuration, plan: Plan) -> Any:
    """The predictor of a configuration."""
    chosen = plan.estimator if config.estimator is None else config.estimator
    return _resolved(chosen)


def _resolved(value: Any) -> Any:
    if isinstance(value, str) and value.startswith(METHOD_PREFIX):
        return get_method(value.removeprefix(METHOD_PREFIX)).cls()
    return value


def required_methods(config: Configuration, plan: Plan) -> set[str]:
    """Registry names that a configuration needs."""
    named = {
        value.removeprefix(METHOD_PREFIX)
        for value in (*config.params.values(), config.estimator, plan.estimator)
        if isinstance(value, str) and value.startswith(METHOD_PREFIX)
    }
    return named | ({config.method} if config.method is not None else set())


def sizes_for(config: Configuration, plan: Plan, n_features: int) -> tuple[int | None, ...]:
    """Sizes of a configuration, without those greater than the number of features."""
    if config.keeps_all:
        return (n_features,)
    listed = plan.sizes if config.sizes is None else config.sizes
    return tuple(size for size in listed if size is None or size <= n_features)


def metrics_for(config: Configuration, plan: Plan) -> tuple[Any, ...]:
    """Metrics of a configuration."""
    return plan.metrics if config.metrics is None else config.metrics


def task_key(study: str, plan: Plan, data: Data, config: Configuration, trial: int) -> str:
    """The key of a task in the journal: equal tasks have equal keys."""
    return digest(
        __version__,
        study,
        data.label,
        data.version,
        trial,
        build_selector(config),
        build_estimator(config, plan),
        plan.sizes if config.sizes is None else config.sizes,
        [metric if isinstance(metric, str) else metric.name for metric in metrics_for(config, plan)],
    )


def run_task(plan: Plan, data: Data, config: Configuration, trial: int) -> TaskResult:
    """Evaluate one configuration on one trial; errors of the methods are recorded, not raised."""
    started = time.perf_counter()
    drawn = data.draw(trial)
    sizes = sizes_for(config, plan, int(drawn.X.shape[1]))
    if not sizes:
        raise StudyError(
            f"Configuration {config.label!r} has no size that fits the features of {data.label!r}."
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", FitFailedWarning)
        records = evaluate(
            {config.label: build_selector(config)},
            drawn.X,
            drawn.y,
            cv=[(drawn.train, drawn.test)],
            sizes=sizes,
            estimator=build_estimator(config, plan),
            metrics=metrics_for(config, plan),
            random_state=trial,
        )
    columns = columns_of(records)
    rows = [
        {name: values[i] for name, values in columns.items() if name not in DROPPED}
        for i in range(len(columns["size"]))
    ]
    for row in rows:
        row["asked_size"] = None if config.keeps_all else row["size"]
    return {"rows": rows, "seconds": time.perf_counter() - started}


def failed_task(plan: Plan, config: Configuration, reason: str, cap_s: float | None = None) -> TaskResult:
    """The result of a task that failed: a timeout, or a process that died."""
    sizes = (None,) if config.keeps_all else (plan.sizes if config.sizes is None else config.sizes)
    rows: list[Row] = [{"asked_size": size, "error": reason, "selected": None} for size in sizes]
    return {"rows": rows, "cap_s": cap_s}
