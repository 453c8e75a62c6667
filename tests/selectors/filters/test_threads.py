"""Tasks shared by threads."""

from __future__ import annotations

from threading import Lock

import numpy as np
import pytest

from zeronorm import Relief, as_design
from zeronorm.design import column_range
from zeronorm.design._dense import DenseDesign
from zeronorm.execution import in_threads, run_in_threads, useful_threads


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
    monkeypatch.setattr("zeronorm.execution._threads.n_cores", lambda: 16)
    assert useful_threads(8, 1000) == 1
    assert useful_threads(8, 10**9) == 8
    assert useful_threads(1, 10**9) == 1


@pytest.mark.parametrize("size", [0, 1, 1000, (1 << 18) + 7])
def test_parts_of_a_vector_cover_it_once(monkeypatch, size):
    monkeypatch.setattr("zeronorm.execution._threads.available_threads", lambda: 3)
    seen = np.zeros(size, dtype=int)

    def count(first, last):
        seen[first:last] += 1

    in_threads(count, size)
    assert np.all(seen == 1)


@pytest.fixture
def three_threads(monkeypatch):
    """Three threads, also for little work."""
    monkeypatch.setattr("zeronorm.design._dense._n_read_threads", lambda n_bytes: 3)
    monkeypatch.setattr("zeronorm.engines.neighbours._search.useful_threads", lambda n_jobs, work: 3)


def wide(order, dtype=np.float32):
    X = np.random.default_rng(0).normal(3.0, 1.0, size=(24, 40_000)).astype(dtype, order=order)
    X[:, :5] += np.arange(24)[:, None] % 2
    return X


OPERATIONS = {
    "range": lambda design: np.array(column_range(design)),
    "statistics": lambda design: design.column_stats(np.arange(24) % 2).class_variance,
    "finite": lambda design: np.array(design._surely_finite()),
}


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_threads_do_not_change_a_digit(operation, order, request):
    X = wide(order)
    alone = OPERATIONS[operation](as_design(X))
    request.getfixturevalue("three_threads")
    np.testing.assert_array_equal(OPERATIONS[operation](as_design(X)), alone)


def test_a_missing_value_is_found_by_any_thread(three_threads):
    X = wide("C")
    X[23, 39_000] = np.nan
    design = DenseDesign(X)
    low, high = column_range(design)
    assert np.flatnonzero(np.isnan(low)).tolist() == np.flatnonzero(np.isnan(high)).tolist() == [39_000]
    assert not design._surely_finite()


@pytest.mark.parametrize("missing", [False, True])
def test_neighbours_by_rows_and_by_columns_are_the_same(missing, monkeypatch, request):
    X, y = wide("C", np.float64), np.arange(24) % 2
    if missing:
        X[::5, ::7] = np.nan
    alone = Relief(5).fit(X, y).scores_
    request.getfixturevalue("three_threads")
    np.testing.assert_array_equal(Relief(5).fit(X, y).scores_, alone)
    monkeypatch.setattr("zeronorm.engines.neighbours._search.FEWEST_SUMS", 1 << 40)
    np.testing.assert_allclose(Relief(5).fit(X, y).scores_, alone, atol=1e-12)
