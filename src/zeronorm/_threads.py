"""Threads for products, compiled loops and reading files, and memory.

The policy for threads:

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
import math
import os
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar, copy_context
from functools import cache
from itertools import pairwise
from multiprocessing import current_process
from pathlib import Path
from threading import Condition, Lock, RLock, Thread, current_thread, local, main_thread
from typing import IO, Any, Generic, TypeVar, cast

import numpy as np
from joblib import effective_n_jobs
from joblib.parallel import get_active_backend
from numpy.typing import DTypeLike, NDArray
from sklearn import config_context, get_config
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


# -- Threads for compiled loops --


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


# -- Memory --

# The system reuses memory of smaller arrays anyway; larger ones get new pages each time.
_LARGE_BYTES = 32 << 20
_LEAST_USE = 0.5  # fraction of reused memory that a vector must fill
_MOST_FREE_BYTES = 80 << 20  # memory that is kept for later vectors


class _UsedMemory:
    """Memory of long vectors, which is reused when no array refers to it any more.

    The first access to a new page may take as long as ten operations on it.
    """

    def __init__(self) -> None:
        self._free: list[NDArray[np.uint8]] = []
        self._is_open = True
        self._lock = RLock()  # an array may be deleted at any time, also while another is created

    def array(self, size: int, dtype: np.dtype[Any]) -> NDArray[Any]:
        n_bytes = size * dtype.itemsize
        with self._lock:
            fitting = [k for k, m in enumerate(self._free) if n_bytes <= m.size <= n_bytes / _LEAST_USE]
            best = min(fitting, key=lambda k: self._free[k].size, default=None)
            memory = np.empty(n_bytes, dtype=np.uint8) if best is None else self._free.pop(best)
        # Views keep this array alive; views of an array that owns its memory would refer to the memory directly.
        array: NDArray[Any] = np.frombuffer(memory.data[:n_bytes], dtype=dtype)
        weakref.finalize(array, self._take_back, memory).atexit = False
        return array[:]

    def _take_back(self, memory: NDArray[np.uint8]) -> None:
        with self._lock:
            if self._is_open and memory.size + sum(free.size for free in self._free) <= _MOST_FREE_BYTES:
                self._free.append(memory)

    def close(self) -> None:
        """Free all memory and keep none from now on: arrays that outlive a fit would otherwise hold it."""
        with self._lock:
            self._is_open = False
            self._free.clear()


_USED: ContextVar[_UsedMemory | None] = ContextVar("zeronorm_used_memory", default=None)


@contextmanager
def reusing_memory() -> Iterator[None]:
    """Context in which long vectors reuse the memory of others that are no longer needed."""
    if _USED.get() is not None:
        yield
        return
    used = _UsedMemory()
    token = _USED.set(used)
    try:
        yield
    finally:
        _USED.reset(token)
        used.close()


def long_vector(size: int, dtype: DTypeLike = np.float64) -> NDArray[Any]:
    """Return an uninitialized vector; its memory may be reused, see `reusing_memory`."""
    used, kind = _USED.get(), np.dtype(dtype)
    if used is None or size * kind.itemsize < _LARGE_BYTES:
        return np.empty(size, dtype=kind)
    return used.array(size, kind)


# -- Reading in blocks: one thread at a time reads, the others compute --

Key = TypeVar("Key")
Raw = TypeVar("Raw")
Part = TypeVar("Part")
Result = TypeVar("Result")


class _BlockMemory:
    """Memory for blocks, which is reused when no array refers to it any more.

    The first access to new memory takes as long as reading a file into it, and four times the processor time.
    """

    def __init__(self) -> None:
        self._given: list[tuple[NDArray[np.uint8], weakref.ref[NDArray[Any]]]] = []

    def array(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        n_bytes = math.prod(shape) * dtype.itemsize
        free = [k for k, (_, user) in enumerate(self._given) if user() is None]
        large = [k for k in free if self._given[k][0].size >= n_bytes]
        memory = self._given[large[0]][0] if large else np.empty(n_bytes, dtype=np.uint8)
        for k in reversed(large[:1] if large else free):  # free memory that is too small is released
            del self._given[k]
        # Views keep this array alive; views of an array that owns its memory would refer to the memory directly.
        array: NDArray[Any] = np.frombuffer(memory.data[:n_bytes], dtype=dtype)
        self._given.append((memory, weakref.ref(array)))
        return array.reshape(shape)


class _SharedByReaders(local):
    """Open files and memory that threads reading in blocks share; None outside of such threads."""

    files: dict[Path, IO[bytes]] | None = None
    memory: _BlockMemory | None = None


_SHARED = _SharedByReaders()


class _Kept:
    """Open files and memory that one thread at a time may use."""

    def __init__(self) -> None:
        self._files: dict[Path, IO[bytes]] = {}
        self._memory = _BlockMemory()

    @contextmanager
    def in_use(self) -> Iterator[None]:
        _SHARED.files, _SHARED.memory = self._files, self._memory
        try:
            yield
        finally:
            _SHARED.files, _SHARED.memory = None, None

    def close(self) -> None:
        for stream in self._files.values():
            stream.close()


def memory_for(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return an uninitialized array to read a block into."""
    memory = _SHARED.memory
    return np.empty(shape, dtype=dtype) if memory is None or 0 in shape else memory.array(shape, dtype)


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for unbuffered reading; threads that read blocks keep it open, so that the system reads ahead."""
    kept = _SHARED.files
    if kept is None:
        with open(path, "rb", buffering=0) as stream:
            yield stream
    else:
        if path not in kept:
            kept[path] = open(path, "rb", buffering=0)  # noqa: SIM115 - closed by the thread that started the readers
        yield kept[path]


def read_in_turn(read: Callable[[Key], Part], keys: Sequence[Key], *, ahead: bool) -> Iterator[Part]:
    """Yield ``read(key)`` for each key; ``ahead``: the next part is read while one is used."""
    return work_in_turn(read, lambda key, part: part, keys, n_threads=0, ahead=ahead)


def work_in_turn(
    read: Callable[[Key], Raw],
    work: Callable[[Key, Raw], Part],
    keys: Sequence[Key],
    *,
    n_threads: int,
    ahead: bool = False,
) -> Iterator[Part]:
    """Yield ``work(key, read(key))`` for each key, in order.

    One of ``n_threads`` (at least two) threads at a time reads, because several would wait for each other, while the
    others work. ``ahead`` without threads: the next part is read while one is used.
    """
    if not (n_threads or ahead) or len(keys) < 2:
        for key in keys:
            yield work(key, read(key))
        return
    n_threads = max(2, n_threads) if n_threads else 1
    shared = _PartsInTurn(read, work, keys, 1 if n_threads == 1 else n_threads + 2)
    threads = [Thread(target=shared.take_part, daemon=True) for _ in range(n_threads)]
    try:
        for thread in threads:
            thread.start()
        for number in range(len(keys)):
            yield shared.result(number)
    finally:
        shared.stop()
        for thread in threads:
            thread.join()
        shared.close()


class _PartsInTurn(Generic[Key, Raw, Part]):
    """Parts that several threads read one after the other and then process in parallel.

    The thread that has read a part also processes it, while the data are still in the processor cache.
    """

    def __init__(
        self,
        read: Callable[[Key], Raw],
        work: Callable[[Key, Raw], Part],
        keys: Sequence[Key],
        most_waiting: int,
    ) -> None:
        self._read, self._work, self._keys, self._most_waiting = read, work, keys, most_waiting
        self._kept = _Kept()
        self._read_lock = Lock()
        self._change = Condition()
        self._next, self._wanted, self._stopped = 0, 0, False
        self._made: dict[int, Part] = {}
        self._error: BaseException | None = None

    def take_part(self) -> None:
        try:
            while True:
                with self._read_lock, self._kept.in_use():
                    number = self._next
                    if not self._may_read(number):
                        return
                    self._next += 1
                    raw = self._read(self._keys[number])
                part = self._work(self._keys[number], raw)
                del raw
                with self._change:
                    self._made[number] = part
                    if number == self._wanted:
                        self._change.notify_all()
                del part
        except BaseException as error:  # raised again in the calling thread
            with self._change:
                self._error = self._error or error
                self._change.notify_all()

    def _may_read(self, number: int) -> bool:
        """Wait until few enough finished parts are left to be fetched; False if there is nothing to read."""
        if number >= len(self._keys):
            return False
        with self._change:
            self._change.wait_for(
                lambda: number < self._wanted + self._most_waiting or self._stopped or self._error is not None
            )
            return not self._stopped and self._error is None

    def result(self, number: int) -> Part:
        """Wait for a part and return it; parts are fetched in order."""
        with self._change:
            self._change.wait_for(lambda: number in self._made or self._error is not None)
            if number not in self._made:
                assert self._error is not None
                raise self._error
            self._wanted = number + 1
            self._change.notify_all()
            return self._made.pop(number)

    def stop(self) -> None:
        with self._change:
            self._stopped = True
            self._change.notify_all()

    def close(self) -> None:
        self._kept.close()


# -- Free memory --


class NotEnoughMemoryError(RuntimeError, MemoryError):
    """A computation needs more memory than is free."""


_NEVER_REFUSED_BYTES = 1 << 28
LISTENING_S = 0.2  # Ctrl-C is heard at least this often on systems where waiting cannot be interrupted


def require_memory(n_bytes: int, what: str, remedy: str) -> None:
    """Raise an error if a computation would need more memory than is free.

    Parameters
    ----------
    n_bytes : memory that the computation needs
    what : name of the computation, the beginning of the message
    remedy : what the user can do instead, the end of the message
    """
    if n_bytes <= _NEVER_REFUSED_BYTES:
        return
    available = available_bytes()
    if available is not None and n_bytes > available:
        raise NotEnoughMemoryError(
            f"{what} needs {n_bytes / 2**30:.1f} GiB of memory, and {available / 2**30:.1f} GiB are free; {remedy}"
        )


def available_bytes() -> int | None:
    """Memory that this process may still use; None if the system does not report it."""
    found = [
        _available_in_system(),
        _available_in_group("memory.max", "memory.current"),
        _available_to_process(),
    ]
    known = [n_bytes for n_bytes in found if n_bytes is not None]
    return min(known) if known else None


def _available_in_system() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration, ValueError):
        return None


def _available_in_group(limit: str, used: str) -> int | None:
    """Memory that a container may still use; None without a limit."""
    folder = Path("/sys/fs/cgroup")
    try:
        return int((folder / limit).read_text()) - int((folder / used).read_text())
    except (OSError, ValueError):  # no container, or no limit
        return None


def _available_to_process() -> int | None:
    """Address space that this process may still use (``ulimit -v``); None without a limit."""
    try:
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit == resource.RLIM_INFINITY:
            return None
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        return max(0, limit - pages * resource.getpagesize())
    except (ImportError, OSError, ValueError):
        return None


# -- Ctrl-C --


def stoppable(work: Callable[[], Result]) -> Result:
    """Run a long call into a compiled library in a thread, so that Ctrl-C is heard while it runs.

    After Ctrl-C the thread ends its work, and its result is dropped: libraries offer no way to stop it. Outside of the
    main thread, which alone receives Ctrl-C, the work runs as it is.
    """
    if current_thread() is not main_thread():
        return work()
    outcome: list[tuple[Result | None, BaseException | None]] = []
    context, config = copy_context(), get_config()

    def run() -> None:
        try:
            with config_context(**config):
                outcome.append((context.run(work), None))
        except BaseException as error:
            outcome.append((None, error))

    thread = Thread(target=run, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(LISTENING_S)
    result, error = outcome[0]
    if error is not None:
        raise error
    return cast("Result", result)
