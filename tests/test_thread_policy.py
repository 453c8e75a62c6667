"""Threads, reading ahead and memory: as many threads as the user and joblib allow, never more than cores."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import joblib
import numpy as np
import pytest
from scipy.linalg import cho_factor
from threadpoolctl import threadpool_limits

from zeronorm.execution import (
    _memory,
    _threads,
    available_threads,
    n_cores,
    one_thread,
    opened,
    read_in_turn,
    require_memory,
    useful_threads,
    work_in_turn,
)
from zeronorm.execution._reading import _BlockMemory
from zeronorm.solvers.svm._box_dual import BoxDual
from zeronorm.solvers.svm._free_set import pivot_free_set

MUCH = 1 << 40


def test_passes_over_the_data_between_small_products_keep_their_threads(monkeypatch):
    monkeypatch.setattr(_threads, "n_cores", lambda: 3)
    with threadpool_limits(limits=3, user_api="blas"):
        allowed = available_threads()
        for context in (_threads.one_thread_for_products(), _threads.one_thread_if_small(10)):
            with context:
                assert set(blas_threads()) == {1}
                assert available_threads() == allowed
        with one_thread():
            assert available_threads() == 1
        found = joblib.Parallel(n_jobs=2, backend="threading")(
            joblib.delayed(available_threads)() for _ in range(2)
        )
        assert sum(found) <= 3


def test_a_process_of_a_pool_uses_one_thread_without_a_warning(monkeypatch):
    """joblib would warn there, in each pass over the data, that it cannot start processes."""
    monkeypatch.setattr(_threads, "n_cores", lambda: 3)
    monkeypatch.setattr(_threads, "current_process", lambda: SimpleNamespace(daemon=True))
    monkeypatch.setattr(_threads, "effective_n_jobs", lambda n_jobs: pytest.fail("asked joblib"))
    with threadpool_limits(limits=3, user_api="blas"):
        assert available_threads() == useful_threads(-1, MUCH) == useful_threads(4, MUCH) == 1


def test_never_more_threads_than_cores(monkeypatch):
    monkeypatch.setattr(_threads, "n_cores", lambda: 3)
    assert useful_threads(1000, MUCH) == 3
    assert useful_threads(2, MUCH) == 2
    assert useful_threads(None, MUCH) == 1
    assert useful_threads(-1, 10) == 1


def test_passes_over_the_data_follow_the_threads_of_blas():
    with threadpool_limits(limits=1, user_api="blas"):
        assert available_threads() == 1
    with one_thread():
        assert available_threads() == 1
    with threadpool_limits(limits=64, user_api="blas"):
        assert 1 <= available_threads() <= n_cores()


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_no_more_threads_than_cores_under_joblib(backend):
    found = joblib.Parallel(n_jobs=2, backend=backend)(joblib.delayed(available_threads)() for _ in range(2))
    assert sum(found) <= max(2, n_cores())


def test_the_factor_of_a_dual_uses_one_thread(monkeypatch):
    """Several threads would wait for each other at each step of a small Cholesky factor."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 600)), np.where(np.arange(300) % 2, 1.0, -1.0)
    used = []

    def factor(*args, **options):
        used.append(set(blas_threads()))
        return cho_factor(*args, **options)

    monkeypatch.setattr("zeronorm.solvers.svm._free_set.cho_factor", factor)
    with threadpool_limits(limits=3, user_api="blas"):
        before = blas_threads()
        problem = BoxDual.classification(y, np.full(y.size, 1e-4), squared=True)
        assert pivot_free_set(X @ X.T, problem, np.zeros(y.size), all_free=True) is not None
        assert blas_threads() == before
    assert max(before) == 3
    assert used
    assert all(threads == {1} for threads in used)


@pytest.mark.parametrize(
    ("shape", "is_little"), [((5000, 50), True), ((62, 2000), True), ((3000, 3000), False)]
)
def test_little_work_is_done_in_one_thread(shape, is_little):
    before = blas_threads()
    with _threads.one_thread_for_little_work(*shape):
        assert blas_threads() == ([1] * len(before) if is_little else before)
    assert blas_threads() == before


def test_a_limit_that_is_set_is_not_set_again(monkeypatch):
    controller, limits = _threads.thread_controller(), []

    class Counting:
        def info(self):
            return controller.info()

        def limit(self, **options):
            limits.append(options)
            return controller.limit(**options)

    monkeypatch.setattr(_threads, "thread_controller", Counting)
    with threadpool_limits(limits=3, user_api="blas"):
        before = blas_threads()
        for _ in range(2):
            with one_thread(), _threads.one_thread_for_products(), one_thread():
                assert set(blas_threads()) == {1}
            assert blas_threads() == before
    assert len(limits) == 2


def blas_threads():
    return [pool["num_threads"] for pool in _threads.thread_controller().info() if pool["user_api"] == "blas"]


def test_arrays_that_outlive_a_fit_hold_no_other_memory(monkeypatch):
    """A fitted selector refers to long vectors, such as its ranking."""
    monkeypatch.setattr(_memory, "_LARGE_BYTES", 100)
    with _memory.reusing_memory():
        used = _memory._USED.get()
        kept, given_up = _memory.long_vector(100), _memory.long_vector(200)
        del given_up
        assert len(used._free) == 1
    assert used._free == []
    del kept
    assert used._free == []


def test_memory_of_long_vectors_is_reused(monkeypatch):
    """Not while a view of it exists, not for much smaller vectors, and only up to the limit."""
    monkeypatch.setattr(_memory, "_LARGE_BYTES", 80)
    monkeypatch.setattr(_memory, "_MOST_FREE_BYTES", 1600)
    with _memory.reusing_memory():
        first = _memory.long_vector(100)
        first[:] = 1.0
        address, view = first.ctypes.data, first[3:].view(np.int64)
        del first
        second = _memory.long_vector(100)
        second[:] = 2.0
        assert np.all(view.view(np.float64) == 1.0)
        del view
        with _memory.reusing_memory():  # a fit inside another one
            assert _memory.long_vector(20).ctypes.data != address
            third = _memory.long_vector(60, np.int64)
        assert third.ctypes.data == address
        assert third.shape == (60,)
        assert third.dtype == np.int64
        used = _memory._USED.get()
        others = [_memory.long_vector(100) for _ in range(4)]
        del others, second
        assert sorted(memory.size for memory in used._free) == [
            160,
            800,
        ]  # a second one would exceed the limit
        small = _memory.long_vector(9)
        assert small.base is None
    assert _memory._USED.get() is None
    assert _memory.long_vector(100).base is None
    third[:] = 7
    assert third.sum() == 420


def test_after_an_error_nothing_more_is_read():
    """An error or an interrupt in the first of a thousand parts must not wait for the others."""
    read = []

    def fails_at_once(key):
        read.append(key)
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        list(work_in_turn(fails_at_once, lambda key, part: part, range(1000), n_threads=2))
    assert len(read) < 4


def test_memory_of_blocks_is_reused_when_no_array_refers_to_it():
    """Not while a view of it exists; memory that is too small is released."""
    memory = _BlockMemory()
    first = memory.array((3, 4), np.dtype(np.float32))
    first[:] = 1.0
    view = first.T[1:]
    del first
    second = memory.array((3, 4), np.dtype(np.float32))
    second[:] = 2.0
    assert np.all(view == 1.0)
    address = second.ctypes.data
    del second
    third = memory.array((5,), np.dtype(np.float64))
    assert third.ctypes.data == address
    assert third.shape == (5,)
    del view
    fourth = memory.array((100,), np.dtype(np.float64))
    fourth[:] = 4.0
    assert len(memory._given) == 2
    assert third.nbytes == 40
    assert np.all(fourth == 4.0)


@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_parts_come_in_their_order(ahead, n):
    read = []

    def read_part(k):
        read.append(k)
        return 10 * k

    assert list(read_in_turn(read_part, list(range(n)), ahead=ahead)) == [10 * k for k in range(n)]
    assert read == list(range(n))


def test_several_parts_are_worked_on_side_by_side():
    """Three threads meet at a barrier; if they ran one after the other, it would time out."""
    meeting = threading.Barrier(3, timeout=5)
    parts = work_in_turn(lambda k: 10 * k, lambda k, raw: (meeting.wait(), k + raw)[1], range(6), n_threads=3)
    assert list(parts) == [11 * k for k in range(6)]


@pytest.mark.parametrize("n_threads", [0, 1, 3])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 9])
def test_parts_are_read_in_order_and_once(n_threads, n):
    read = []
    parts = work_in_turn(
        lambda k: read.append(k) or -k, lambda k, raw: (k, raw), range(n), n_threads=n_threads
    )
    assert list(parts) == [(k, -k) for k in range(n)]
    assert read == list(range(n))


def test_a_thread_that_reads_on_keeps_its_file_open_and_closes_it(tmp_path):
    path, streams = tmp_path / "x", []
    path.write_bytes(bytes(range(9)))

    def read(key):
        with opened(path) as stream:
            streams.append(stream)
            stream.seek(key)
            return stream.read(1)[0]

    assert list(work_in_turn(read, lambda key, value: value, range(9), n_threads=2)) == list(range(9))
    assert len(set(map(id, streams))) == 1
    assert streams[0].closed
    read(0)
    assert streams[-1] is not streams[0]
    assert streams[-1].closed


@pytest.mark.parametrize("n_parts", [2, 3])
def test_a_part_is_read_ahead_only_where_that_is_asked_for(n_parts):
    second = threading.Event()
    read = []

    def read_part(k):
        read.append(k)
        if k == 1:
            second.set()
        return k

    parts = read_in_turn(read_part, list(range(n_parts)), ahead=False)
    assert next(parts) == 0
    assert read == [0]
    parts = read_in_turn(read_part, list(range(n_parts)), ahead=True)
    assert next(parts) == 0
    assert second.wait(10)
    assert list(parts) == list(range(1, n_parts))


def test_little_memory_is_never_refused(monkeypatch):
    monkeypatch.setattr("zeronorm.execution._memory.available_bytes", lambda: 1)
    require_memory(1000, "The table", "use less.")
