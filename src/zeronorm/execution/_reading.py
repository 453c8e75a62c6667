"""Reading in blocks: one thread at a time reads, while the others compute."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Condition, Lock, Thread, local
from typing import IO, Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

Key = TypeVar("Key")
Raw = TypeVar("Raw")
Part = TypeVar("Part")


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
