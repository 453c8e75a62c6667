"""Threads for compiled loops, where the work is worth starting them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from threading import Condition, Thread
from typing import Any

# Differences of two numbers that take about a millisecond: less is not worth a thread that may start late.
_WORK_PER_THREAD = 1 << 23


def useful_threads(n_threads: int, work: int) -> int:
    """At most ``n_threads`` threads for ``work`` differences; one for little work."""
    return min(n_threads, 1 + work // _WORK_PER_THREAD)


def run_in_threads(function: Callable[..., None], tasks: Sequence[tuple[Any, ...]], n_threads: int) -> None:
    """Call ``function`` with each tuple of arguments; the calling thread takes its share of the tasks.

    Each thread takes the next task when it is free, and only tasks are waited for: a helper that the system
    starts late finds nothing to do and delays nobody.
    """
    if n_threads == 1:
        for task in tasks:
            function(*task)
        return
    shared = _SharedTasks(function, deque(tasks))
    for _ in range(min(n_threads, len(tasks)) - 1):
        Thread(target=shared.work, daemon=True).start()
    shared.work()
    shared.finish()


class _SharedTasks:
    """Tasks that several threads take from one queue."""

    def __init__(self, function: Callable[..., None], waiting: deque[tuple[Any, ...]]) -> None:
        self._function = function
        self._waiting = waiting
        self._n_running = 0
        self._errors: list[BaseException] = []
        self._change = Condition()

    def work(self) -> None:
        while True:
            with self._change:
                if not self._waiting:
                    return
                task = self._waiting.popleft()
                self._n_running += 1
            try:
                self._function(*task)
            except BaseException as error:  # raised again in the calling thread
                self._errors.append(error)
                self._waiting.clear()
            finally:
                with self._change:
                    self._n_running -= 1
                    self._change.notify()

    def finish(self) -> None:
        """Wait for the tasks that other threads have taken, and raise their first error."""
        with self._change:
            self._change.wait_for(lambda: self._n_running == 0)
        if self._errors:
            raise self._errors[0]
