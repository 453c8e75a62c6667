"""One policy for threads: what the user and joblib allow, never more than there are cores."""

from __future__ import annotations

import joblib
import pytest
from threadpoolctl import threadpool_limits

from zeronorm import _threads
from zeronorm._threads import available_threads, n_cores, one_thread, useful_threads

MUCH = 1 << 40


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
