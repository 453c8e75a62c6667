"""Memory: how much is free, and long vectors that reuse that of others."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray


class NotEnoughMemoryError(RuntimeError, MemoryError):
    """A computation needs more memory than is free."""


_NEVER_REFUSED_BYTES = 1 << 28


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


# -- Long vectors --

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
