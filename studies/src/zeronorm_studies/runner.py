"""Runs a study: checks that every method exists, recalls finished cells, computes the others."""

from __future__ import annotations

import functools
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
from zeronorm_studies.results import Results
from zeronorm_studies.study import Configuration, Data, Plan, Study, StudyError


def run_study(
    study: Study,
    *,
    quick: bool = False,
    journal: str | os.PathLike[str] | None = None,
    n_jobs: int = 1,
    cap_s: float | None = None,
    allow_missing: bool = False,
    in_process: bool | None = None,
    elsewhere: bool = False,
    verbose: bool = False,
) -> Results:
    """Compute all cells of a study.

    Parameters
    ----------
    quick : the small version.
    journal : folder of finished cells; run again, only the missing ones are computed.
    n_jobs : processes.
    cap_s : largest time of one cell; None takes the study's. A timeout is a result.
    allow_missing : leave out arms whose method is not registered, and say so on the page, instead of
        refusing to start.
    in_process : compute here and without a cap; by default only the quick version does.
    elsewhere : compute with the parallel backend of joblib that is in force, a cluster for instance, without a cap.
    """
    make_plan = study.quick if quick else study.full
    plan = make_plan()
    missing = missing_configurations(plan)
    if missing and not allow_missing:
        shown = "; ".join(f"{label} ({reason})" for label, reason in missing.items())
        raise StudyError(f"Study {study.name!r} needs methods that are not there: {shown}.")
    cap = plan.cap_s if cap_s is None else cap_s
    store = None if journal is None else Journal(journal)
    keys = {job: cell_key(study.name, plan, *_parts(plan, job)) for job in _jobs(plan, missing)}
    cells = _recall(store, keys, cap)
    waiting = [job for job in keys if job not in cells]
    here = quick if in_process is None else in_process
    late = {job[:2] for job, cell in cells.items() if cell.get("cap_s") is not None}
    if elsewhere:
        fresh = run_elsewhere(make_plan, waiting)
    elif here:
        fresh = run_here(plan, waiting)
    else:
        fresh = run_capped(make_plan, waiting, max(1, n_jobs), cap, late)
    with Progress(verbose).task(study.name, len(waiting)) as advance:
        for job, cell in fresh:
            cells[job] = cell
            if store is not None:
                store.write(keys[job], cell)
            advance(1)
    rows = [row for job in keys for row in _rows(plan, job, cells[job])]
    return Results(plan, rows, missing, seconds=sum(cell.get("seconds", 0.0) for cell in cells.values()))


def missing_configurations(plan: Plan) -> dict[str, str]:
    """Arms whose methods are not registered, with the reason."""
    known = {method.name for method in all_methods()}
    missing = {}
    for config in plan.configs:
        absent = sorted(required_methods(config, plan) - known)
        if absent:
            missing[config.label] = f"not registered: {', '.join(absent)}"
    return missing


def _jobs(plan: Plan, missing: dict[str, str]) -> Iterator[Job]:
    for d, data in enumerate(plan.data):
        for trial in range(data.n_trials):
            for a, config in enumerate(plan.configs):
                if config.label not in missing and (config.only is None or data.label in config.only):
                    yield d, a, trial


def _parts(plan: Plan, job: Job) -> tuple[Any, Configuration, int]:
    return plan.data[job[0]], plan.configs[job[1]], job[2]


def _recall(store: Journal | None, keys: dict[Job, str], cap_s: float) -> dict[Job, TaskId]:
    """Cells in the journal; timeouts under a smaller cap are tried again."""
    if store is None:
        return {}
    finished = store.finished()
    cells = {}
    for job, key in keys.items():
        cell = store.read(key) if key in finished else None
        if cell is not None and (cell.get("cap_s") is None or cell["cap_s"] >= cap_s):
            cells[job] = cell
    return cells


def _rows(plan: Plan, job: Job, cell: TaskId) -> list[dict[str, Any]]:
    data, config, trial = _parts(plan, job)
    return [
        {"data": data.label, "configuration": config.label, "trial": trial, **row} for row in cell["rows"]
    ]


# -- Cells in processes of their own, so that one that takes too long can be ended --


Job = tuple[int, int, int]
"""Place of the data set, place of the arm, number of the trial."""

TIMEOUT = "timeout"
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def run_here(plan: Plan, jobs: list[Job]) -> Iterator[tuple[Job, TaskId]]:
    """Cells one after the other in this process, without a cap."""
    for job in jobs:
        data, config, trial = job
        yield job, run_cell(plan, plan.data[data], plan.configs[config], trial)


def run_elsewhere(make_plan: Callable[[], Plan], jobs: list[Job]) -> Iterator[tuple[Job, TaskId]]:
    """Cells through joblib, in the order in which they are ready; a worker that dies loses only its own."""
    parallel = Parallel(n_jobs=-1, return_as="generator_unordered")
    yield from parallel(delayed(_cell_elsewhere)(make_plan, job) for job in jobs)


def _cell_elsewhere(make_plan: Callable[[], Plan], job: Job) -> tuple[Job, TaskId]:
    plan = _plan_here(make_plan)
    data, config, trial = job
    try:
        return job, run_cell(plan, plan.data[data], plan.configs[config], trial)
    except Exception as error:
        return job, failed_cell(plan, plan.configs[config], f"{type(error).__name__}: {error}")


@functools.cache
def _plan_here(make_plan: Callable[[], Plan]) -> Plan:
    """The plan in this process, made once."""
    all_methods()
    return make_plan()


def run_capped(
    make_plan: Callable[[], Plan],
    jobs: list[Job],
    n_jobs: int,
    cap_s: float,
    late: Collection[tuple[int, int]] = (),
) -> Iterator[tuple[Job, TaskId]]:
    """Cells in ``n_jobs`` processes; a cell that exceeds the cap ends as a timeout.

    ``make_plan`` must be a function of a module: every process makes the plan for itself. ``late`` names the
    pairs of data set and arm that were too slow in an earlier run.
    """
    plan, waiting = make_plan(), list(reversed(jobs))
    workers = [Worker(make_plan, plan) for _ in range(min(n_jobs, len(jobs)))]
    given_up = set(late) if plan.one_timeout_is_enough else set()
    try:
        while waiting or any(worker.job is not None for worker in workers):
            while waiting and waiting[-1][:2] in given_up:
                job = waiting.pop()
                reason = f"{TIMEOUT}: an earlier trial took too long"
                yield job, failed_cell(plan, plan.configs[job[1]], reason, cap_s)
            for worker in workers:
                if worker.job is None and waiting and waiting[-1][:2] not in given_up:
                    worker.begin(waiting.pop())
            for job, cell in _finished(workers, plan, cap_s):
                if cell.get("cap_s") is not None and plan.one_timeout_is_enough:
                    given_up.add(job[:2])
                yield job, cell
    finally:
        for worker in workers:
            worker.end()


def _finished(workers: list[Worker], plan: Plan, cap_s: float) -> Iterator[tuple[Job, TaskId]]:
    busy = [worker for worker in workers if worker.job is not None]
    if not busy:
        return
    patience = min(max(0.0, worker.started + cap_s - time.perf_counter()) for worker in busy)
    wait([worker.pipe for worker in busy], timeout=patience)
    for worker in busy:
        job = worker.job
        assert job is not None
        config = plan.configs[job[1]]
        if worker.pipe.poll():
            yield job, worker.take(config)
        elif time.perf_counter() - worker.started >= cap_s:
            worker.end()
            reason = f"{TIMEOUT}: not finished after {cap_s:g} s"
            yield job, {**failed_cell(plan, config, reason, cap_s), "seconds": cap_s}


class Worker:
    """One process that computes cells of a plan, one at a time."""

    def __init__(self, make_plan: Callable[[], Plan], plan: Plan) -> None:
        self.make_plan, self.plan = make_plan, plan
        self.job: Job | None = None
        self.started = 0.0
        self.process: Any = None

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=serve, args=(theirs, self.make_plan), daemon=True)
        self.process.start()
        theirs.close()
        # The cap is for the work: importing the package happens before the clock runs.
        self.pipe.recv()

    def begin(self, job: Job) -> None:
        if self.process is None:
            self._start()
        self.job, self.started = job, time.perf_counter()
        self.pipe.send(job)

    def take(self, config: Any) -> TaskId:
        """The finished cell; a process that died is replaced."""
        try:
            cell: TaskId = self.pipe.recv()
        except EOFError:
            self.end()
            return failed_cell(self.plan, config, "the process of this cell died (out of memory?)")
        self.job = None
        return cell

    def end(self) -> None:
        """End the process, whatever it does; the next job starts another."""
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
            cell = run_cell(plan, plan.data[data], plan.configs[config], trial)
        except Exception as error:
            cell = failed_cell(plan, plan.configs[config], f"{type(error).__name__}: {error}")
        pipe.send(cell)


# -- One cell of a study: one arm on one trial, all sizes --


Row = dict[str, Any]
TaskId = dict[str, Any]
METHOD_PREFIX = "method:"
DROPPED = ("method", "split", "decision", "test_rows")


def build_selector(config: Configuration) -> Any:
    """The selector of an arm; keeping all features is a random order asked for all of them."""
    if config.factory is not None:
        return config.factory()
    if config.method is None:
        return get_method("random").cls(random_state=0)
    params = {name: _resolved(value) for name, value in config.params.items()}
    return get_method(config.method).cls(**params)


def build_estimator(config: Configuration, plan: Plan) -> Any:
    """The predictor of an arm."""
    chosen = plan.estimator if config.estimator is None else config.estimator
    return _resolved(chosen)


def _resolved(value: Any) -> Any:
    if isinstance(value, str) and value.startswith(METHOD_PREFIX):
        return get_method(value.removeprefix(METHOD_PREFIX)).cls()
    return value


def required_methods(config: Configuration, plan: Plan) -> set[str]:
    """Registry names an arm needs."""
    named = {
        value.removeprefix(METHOD_PREFIX)
        for value in (*config.params.values(), config.estimator, plan.estimator)
        if isinstance(value, str) and value.startswith(METHOD_PREFIX)
    }
    return named | ({config.method} if config.method is not None else set())


def sizes_for(config: Configuration, plan: Plan, n_features: int) -> tuple[int | None, ...]:
    """Sizes asked of an arm; sizes beyond the number of features are not asked."""
    if config.keeps_all:
        return (n_features,)
    listed = plan.sizes if config.sizes is None else config.sizes
    return tuple(size for size in listed if size is None or size <= n_features)


def metrics_for(config: Configuration, plan: Plan) -> tuple[Any, ...]:
    """Measures of an arm."""
    return plan.metrics if config.metrics is None else config.metrics


def cell_key(study: str, plan: Plan, data: Data, config: Configuration, trial: int) -> str:
    """The name of a cell in the journal: the same work has the same name."""
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


def run_cell(plan: Plan, data: Data, config: Configuration, trial: int) -> TaskId:
    """Measure one arm on one trial. What fails inside is recorded, not raised."""
    started = time.perf_counter()
    drawn = data.draw(trial)
    sizes = sizes_for(config, plan, int(drawn.X.shape[1]))
    if not sizes:
        raise StudyError(f"Arm {config.label!r} has no size that fits the features of {data.label!r}.")
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


def failed_cell(plan: Plan, config: Configuration, reason: str, cap_s: float | None = None) -> TaskId:
    """A cell without results: a timeout, or a process that died."""
    sizes = (None,) if config.keeps_all else (plan.sizes if config.sizes is None else config.sizes)
    rows: list[Row] = [{"asked_size": size, "error": reason, "selected": None} for size in sizes]
    return {"rows": rows, "cap_s": cap_s}
