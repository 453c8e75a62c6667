"""Run independent tasks in processes until a time limit; a task that takes too long is ended and counted as such."""

from __future__ import annotations

import multiprocessing as mp
import time
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection, wait
from typing import Any

ANSWER_S = 1.0  # seconds between two looks at the clock


class Worker:
    """A process that runs one task at a time."""

    def __init__(self, work: Callable[[Any], Any]) -> None:
        self.connection, other = mp.Pipe()
        self.process = mp.Process(target=_serve, args=(work, other), daemon=True)
        self.process.start()
        other.close()
        self.task: Any = None
        self.deadline = float("inf")

    def begin(self, task: Any, deadline: float) -> None:
        self.task, self.deadline = task, deadline
        self.connection.send(task)

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.connection.close()


def _serve(work: Callable[[Any], Any], connection: Connection) -> None:
    while True:
        try:
            task = connection.recv()
        except EOFError:
            return
        try:
            result = work(task)
        except Exception as error:  # a method of another package may raise anything
            result = error
        connection.send(result)


def results(
    work: Callable[[Any], Any], tasks: Iterable[Any], n_processes: int, seconds: float, task_seconds: float
) -> Iterator[tuple[Any, Any]]:
    """Yield each task with its result, an exception, or None if it was ended after ``task_seconds``.

    No task begins, and none goes on, after ``seconds``; tasks begin in their order.
    """
    stop = time.monotonic() + seconds
    left = iter(tasks)
    workers = [Worker(work) for _ in range(n_processes)]
    busy = {worker for worker in workers if _next(worker, left, stop, task_seconds)}
    while busy and time.monotonic() < stop:
        ready = set(wait([worker.connection for worker in busy], timeout=ANSWER_S))
        for worker in list(busy):
            if worker.connection in ready:
                try:
                    found = worker.task, worker.connection.recv()
                except EOFError:  # the process died, for want of memory, say
                    found = worker.task, None
            elif time.monotonic() > worker.deadline:
                found = worker.task, None
            else:
                continue
            busy.discard(worker)
            if found[1] is None:
                worker.end()
                worker = Worker(work)
            if _next(worker, left, stop, task_seconds):
                busy.add(worker)
            else:
                worker.end()
            yield found
    for worker in busy:
        worker.end()


def _next(worker: Worker, left: Iterator[Any], stop: float, task_seconds: float) -> bool:
    """Whether there is another task for a worker; it has begun then."""
    now = time.monotonic()
    task = next(left, None) if now < stop else None
    if task is not None:
        worker.begin(task, now + task_seconds)
    return task is not None
