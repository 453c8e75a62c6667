"""One policy for threads: what the user and joblib allow, never more than there are cores."""

from __future__ import annotations

from types import SimpleNamespace

import joblib
import numpy as np
import pytest
from scipy.linalg import cho_factor
from threadpoolctl import threadpool_limits

from zeronorm import _threads
from zeronorm._threads import available_threads, n_cores, one_thread, useful_threads
from zeronorm.solvers.svm.box_dual import BoxDual
from zeronorm.solvers.svm.free_set import pivot_free_set

MUCH = 1 << 40


def test_sweeps_between_small_products_keep_their_threads(monkeypatch):
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


def test_a_process_of_a_pool_uses_one_thread_without_a_word(monkeypatch):
    """joblib would warn there, at each reading of the data, that it cannot start processes of its own."""
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


def test_sweeps_follow_the_threads_of_blas():
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
    """Threads wait for each other at each step of a small factor."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 600)), np.where(np.arange(300) % 2, 1.0, -1.0)
    used = []

    def factor(*args, **options):
        used.append(set(blas_threads()))
        return cho_factor(*args, **options)

    monkeypatch.setattr("zeronorm.solvers.svm.free_set.cho_factor", factor)
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


def test_a_limit_that_is_there_is_not_set_again(monkeypatch):
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


# -- Memory of long vectors --


def test_what_a_fit_leaves_behind_keeps_no_memory_for_others(monkeypatch):
    """A fitted selector holds long vectors as long as it lives."""
    monkeypatch.setattr(_threads, "_LARGE_BYTES", 100)
    with _threads.memory_used_again():
        used = _threads._USED.get()
        kept, given_up = _threads.long_vector(100), _threads.long_vector(200)
        del given_up
        assert len(used._free) == 1
    assert used._free == []
    del kept
    assert used._free == []


def test_memory_of_long_vectors_is_used_again(monkeypatch):
    """Not while a view of it is alive, not for much smaller vectors, and no more is kept than the limit."""
    monkeypatch.setattr(_threads, "_LARGE_BYTES", 80)
    monkeypatch.setattr(_threads, "_MOST_FREE_BYTES", 1600)
    with _threads.memory_used_again():
        first = _threads.long_vector(100)
        first[:] = 1.0
        place, view = first.ctypes.data, first[3:].view(np.int64)
        del first
        second = _threads.long_vector(100)
        second[:] = 2.0
        assert np.all(view.view(np.float64) == 1.0)
        del view
        with _threads.memory_used_again():  # a fit inside another one
            assert _threads.long_vector(20).ctypes.data != place
            third = _threads.long_vector(60, np.int64)
        assert third.ctypes.data == place
        assert third.shape == (60,)
        assert third.dtype == np.int64
        used = _threads._USED.get()
        others = [_threads.long_vector(100) for _ in range(4)]
        del others, second
        assert sorted(memory.size for memory in used._free) == [160, 800]  # a second one would be too much
        small = _threads.long_vector(9)
        assert small.base is None
    assert _threads._USED.get() is None
    assert _threads.long_vector(100).base is None
    third[:] = 7
    assert third.sum() == 420
