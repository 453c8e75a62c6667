"""Tasks shared by threads."""

from __future__ import annotations

from threading import Lock

import pytest

from zeronorm._threads import run_in_threads, useful_threads


@pytest.mark.parametrize("n_threads", [1, 2, 5])
@pytest.mark.parametrize("n_tasks", [0, 1, 3, 200])
def test_each_task_runs_once(n_threads, n_tasks):
    done, lock = [], Lock()

    def record(task, double):
        with lock:
            done.append((task, double))

    run_in_threads(record, [(i, 2 * i) for i in range(n_tasks)], n_threads)
    assert sorted(done) == [(i, 2 * i) for i in range(n_tasks)]


@pytest.mark.parametrize("n_threads", [1, 3])
def test_an_error_reaches_the_caller(n_threads):
    def fail(task):
        if task == 7:
            raise ZeroDivisionError("task 7")

    with pytest.raises(ZeroDivisionError, match="task 7"):
        run_in_threads(fail, [(i,) for i in range(20)], n_threads)


def test_little_work_gets_one_thread(monkeypatch):
    monkeypatch.setattr("zeronorm._threads.n_cores", lambda: 16)
    assert useful_threads(8, 1000) == 1
    assert useful_threads(8, 10**9) == 8
    assert useful_threads(1, 10**9) == 1
