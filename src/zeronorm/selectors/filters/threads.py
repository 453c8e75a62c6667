"""Threads for compiled loops, where the work is worth starting them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock, Thread
from typing import Any

# Differences of two numbers that take several times as long as the start of a thread.
_WORK_PER_THREAD = 1 << 21


def useful_threads(n_threads: int, work: int) -> int:
    """At most ``n_threads`` threads for ``work`` differences; one for little work."""
    return min(n_threads, 1 + work // _WORK_PER_THREAD)


def run_in_threads(function: Callable[..., None], tasks: Sequence[tuple[Any, ...]], n_threads: int) -> None:
    """Call ``function`` with each tuple of arguments; the calling thread takes its share of the tasks.

    Each thread takes the next task when it is free, so one that is held up delays the others little.
    """
    waiting, lock = iter(tasks), Lock()
    errors: list[BaseException] = []

    def work() -> None:
        while not errors:
            with lock:
                task = next(waiting, None)
            if task is None:
                return
            try:
                function(*task)
            except BaseException as error:  # raised again below, in the calling thread
                errors.append(error)

    helpers = [Thread(target=work) for _ in range(min(n_threads, len(tasks)) - 1)]
    for helper in helpers:
        helper.start()
    work()
    for helper in helpers:
        helper.join()
    if errors:
        raise errors[0]
