"""Threads that wait for work between the steps of a run.

A step lasts about a millisecond, so handing over work must cost far less than that: a queue written in C
does, a future does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from queue import SimpleQueue
from threading import Thread

Work = Callable[[int, int], None]


class Shared:
    """The parts of one batch; every thread takes the next one when it is free."""

    def __init__(self, work: Work, parts: list[tuple[int, int]]) -> None:
        self.work = work
        self.parts: Iterator[tuple[int, int]] = iter(parts)

    def take_parts(self) -> None:
        for first, last in self.parts:
            self.work(first, last)


class Helper:
    """A thread that takes parts of one batch after the other."""

    def __init__(self) -> None:
        self._given: SimpleQueue[Shared | None] = SimpleQueue()
        self._done: SimpleQueue[BaseException | None] = SimpleQueue()
        self._thread = Thread(target=self._serve, daemon=True)
        self._thread.start()

    def give(self, shared: Shared) -> None:
        """Let the thread take parts."""
        self._given.put(shared)

    def wait(self) -> None:
        """Until the parts it took are done; an error in them is raised here."""
        error = self._done.get()
        if error is not None:
            raise error

    def end(self) -> None:
        """Let the thread end."""
        self._given.put(None)
        self._thread.join()

    def _serve(self) -> None:
        while (shared := self._given.get()) is not None:
            try:
                shared.take_parts()
            except BaseException as error:  # raised again in the thread that waits
                self._done.put(error)
            else:
                self._done.put(None)


def share(work: Work, parts: list[tuple[int, int]], helpers: list[Helper]) -> None:
    """Do all parts, in this thread and those of the helpers."""
    shared = Shared(work, parts)
    for helper in helpers:
        helper.give(shared)
    try:
        shared.take_parts()
    finally:
        for helper in helpers:
            helper.wait()
