"""Numbers of threads, and loops that several threads work on.

* Matrix products use the threads of BLAS, and passes over the data use as many: all cores, unless the user
  (``OMP_NUM_THREADS``, ``threadpoolctl``) or joblib, in its workers, allows fewer. See `available_threads`.
* ``n_jobs`` of a method is the number of threads of its own loops, or of parallel joblib tasks; None means one.
  There are never more threads than cores. See `useful_threads`.
* Small products run in one thread, because several threads would wait for each other; passes over the data between
  them may use several threads. See `one_thread_if_small` and `one_thread_for_products`.

No result depends on the number of threads: work is split according to the data alone, and sums are formed in the
order of the parts.
"""

from __future__ import annotations

import _thread
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from functools import cache
from itertools import pairwise
from multiprocessing import current_process
from threading import Condition, current_thread, main_thread
from typing import Any

from joblib import effective_n_jobs
from joblib.parallel import get_active_backend
from threadpoolctl import ThreadpoolController

SMALL_SIDE = 500  # size of matrices up to which repeated products are faster in one thread


def one_thread_if_small(side: int) -> AbstractContextManager[Any]:
    """Limit BLAS to one thread if the products are small: several threads would mostly wait for each other.

    On a busy computer that waiting can take ten times as long as the work. Passes over the data keep their threads.
    """
    return nullcontext() if side > SMALL_SIDE else one_thread_for_products()


# Number of multiplications up to which several threads would mostly wait for each other.
LITTLE_WORK = 10**8


def one_thread_for_little_work(n: int, p: int) -> AbstractContextManager[Any]:
    """Limit BLAS to one thread if the product of an n×p matrix with its transpose takes few multiplications."""
    return one_thread() if n * p * min(n, p) <= LITTLE_WORK else nullcontext()


SMALL_FACTOR = 2000


def one_thread_for_factors(side: int) -> AbstractContextManager[Any]:
    """Limit BLAS to one thread for a small Cholesky factor: several would wait for each other at each step."""
    return nullcontext() if side > SMALL_FACTOR else one_thread()


_ALONE: ContextVar[bool] = ContextVar("zeronorm_one_thread", default=False)


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit BLAS to one thread."""
    if _ALONE.get():  # setting the limit again takes longer than a small factorization
        yield
        return
    token = _ALONE.set(True)
    try:
        with thread_controller().limit(limits=1, user_api="blas"):
            yield
    finally:
        _ALONE.reset(token)


_LOOP_THREADS: ContextVar[int | None] = ContextVar("zeronorm_loop_threads", default=None)


@contextmanager
def one_thread_for_products() -> Iterator[None]:
    """Limit BLAS to one thread; passes over the data in compiled loops keep their current number of threads."""
    token = _LOOP_THREADS.set(available_threads())
    try:
        with one_thread():
            yield
    finally:
        _LOOP_THREADS.reset(token)


@cache
def thread_controller() -> ThreadpoolController:
    """Return the thread pools of this process; finding them takes milliseconds, so it is done once."""
    return ThreadpoolController()


# Number of subtractions that take about 0.2 ms: for less work a thread is not worth its start.
_WORK_PER_THREAD = 1 << 22


def useful_threads(n_jobs: int | None, work: int) -> int:
    """Number of threads that ``n_jobs`` allows for ``work`` subtractions; one for little work."""
    wanted = 1 + work // _WORK_PER_THREAD
    if wanted == 1 or n_jobs in (None, 1):  # counting the cores takes longer than little work
        return 1
    return min(_allowed_by_joblib(n_jobs), n_cores(), wanted)


def n_cores() -> int:
    """Number of cores that this process may use."""
    allowed = getattr(os, "sched_getaffinity", None)
    return int(len(allowed(0)) if allowed is not None else os.cpu_count() or 1)


def available_threads() -> int:
    """Number of threads for a pass over the data: that of BLAS at this moment, and one inside threads of joblib."""
    if _is_thread_of_joblib():
        return 1
    kept = _LOOP_THREADS.get()
    if kept is not None:
        return kept
    pools = [pool["num_threads"] for pool in thread_controller().info() if pool["user_api"] == "blas"]
    return max(1, min(n_cores(), _allowed_by_joblib(-1), *map(int, pools)))


def _allowed_by_joblib(n_jobs: int | None) -> int:
    """Number of jobs that joblib allows; one in the worker of a multiprocessing pool, where joblib would warn."""
    return 1 if current_process().daemon else int(effective_n_jobs(n_jobs))


def _is_thread_of_joblib() -> bool:
    """Whether this is a worker thread of joblib; workers that are processes run tasks in their main thread."""
    nesting = getattr(get_active_backend()[0], "nesting_level", 0) or 0
    return nesting > 0 and current_thread() is not main_thread()


def run_in_threads(function: Callable[..., None], tasks: Sequence[tuple[Any, ...]], n_threads: int) -> None:
    """Call ``function`` with each tuple of arguments; the calling thread works on the tasks too.

    Each thread takes the next task when it is free, and the call waits for tasks, not for threads: a thread that the
    system starts late finds no task and causes no delay.
    """
    if n_threads == 1:
        for task in tasks:
            function(*task)
        return
    shared = _SharedTasks(function, deque(tasks))
    for _ in range(min(n_threads, len(tasks)) - 1):
        _thread.start_new_thread(shared.work, ())  # unlike Thread.start, does not wait until the thread runs
    shared.work()
    shared.finish()


# Elements of a vector per thread: starting a thread takes as long as reading a tenth of them.
_NUMBERS_PER_THREAD = 1 << 17


def in_threads(function: Callable[[int, int], None], size: int) -> None:
    """Call ``function`` with the bounds of consecutive parts of a vector, in several threads if it is long."""
    wanted = size // _NUMBERS_PER_THREAD
    n_threads = min(available_threads(), wanted) if wanted > 1 else 1
    if n_threads == 1:
        function(0, size)
        return
    bounds = [size * part // n_threads for part in range(n_threads + 1)]
    run_in_threads(function, list(pairwise(bounds)), n_threads)


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
        """Wait for the tasks that other threads are working on, and raise the first error."""
        with self._change:
            self._change.wait_for(lambda: self._n_running == 0)
        if self._errors:
            raise self._errors[0]
