"""Cells in processes of their own, so that one that takes too long can be ended."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Collection, Iterator
from multiprocessing.connection import Connection, wait
from typing import Any

from zeronorm.selectors.registry import all_methods
from zeronorm.studies.cells import Cell, failed_cell, run_cell
from zeronorm.studies.study import Plan

Job = tuple[int, int, int]
"""Place of the data set, place of the arm, number of the trial."""

TIMEOUT = "timeout"
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def run_here(plan: Plan, jobs: list[Job]) -> Iterator[tuple[Job, Cell]]:
    """Cells one after the other in this process, without a cap."""
    for job in jobs:
        data, arm, trial = job
        yield job, run_cell(plan, plan.data[data], plan.arms[arm], trial)


def run_capped(
    make_plan: Callable[[], Plan],
    jobs: list[Job],
    n_jobs: int,
    cap_s: float,
    late: Collection[tuple[int, int]] = (),
) -> Iterator[tuple[Job, Cell]]:
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
                yield job, failed_cell(plan, plan.arms[job[1]], reason, cap_s)
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


def _finished(workers: list[Worker], plan: Plan, cap_s: float) -> Iterator[tuple[Job, Cell]]:
    busy = [worker for worker in workers if worker.job is not None]
    if not busy:
        return
    patience = min(max(0.0, worker.started + cap_s - time.perf_counter()) for worker in busy)
    wait([worker.pipe for worker in busy], timeout=patience)
    for worker in busy:
        job = worker.job
        assert job is not None
        arm = plan.arms[job[1]]
        if worker.pipe.poll():
            yield job, worker.take(arm)
        elif time.perf_counter() - worker.started >= cap_s:
            worker.end()
            reason = f"{TIMEOUT}: not finished after {cap_s:g} s"
            yield job, {**failed_cell(plan, arm, reason, cap_s), "seconds": cap_s}


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

    def take(self, arm: Any) -> Cell:
        """The finished cell; a process that died is replaced."""
        try:
            cell: Cell = self.pipe.recv()
        except EOFError:
            self.end()
            return failed_cell(self.plan, arm, "the process of this cell died (out of memory?)")
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
            data, arm, trial = pipe.recv()
        except EOFError:
            return
        try:
            cell = run_cell(plan, plan.data[data], plan.arms[arm], trial)
        except Exception as error:
            cell = failed_cell(plan, plan.arms[arm], f"{type(error).__name__}: {error}")
        pipe.send(cell)
