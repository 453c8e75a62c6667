"""The same result on a device and on a cluster, also when a worker dies during the run."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from joblib import effective_n_jobs
from scipy import sparse

import zeronorm
from zeronorm import FisherScore, evaluate
from zeronorm.cli._main import run
from zeronorm.design._array_api import ArrayApiDesign, to_device
from zeronorm.workflow import _backends as backends
from zeronorm.workflow import _job as job
from zeronorm.workflow._backends import on_cluster

from .conftest import numbers, table_of

TWO_FOLDS = {"method": "fisher", "features": 2, "cv": 2}
QUICK = {"cv": 3, "features": 3, "permutations": 0}


@pytest.mark.parametrize(
    ("device", "dask", "n_jobs", "found"),
    [(None, None, None, None), (None, None, 3, 3), ("cpu", None, None, 1), ("cpu", None, 1, 1),
     (None, "tcp://x", None, -1), (None, "tcp://x", 2, 2)],
)  # fmt: skip
def test_number_of_parallel_jobs(device, dask, n_jobs, found):
    assert backends.jobs_at(device, dask, n_jobs) == found


@pytest.mark.parametrize(("device", "dask"), [("cuda", None), (None, "tcp://here")])
def test_a_run_takes_the_number_of_jobs_from_its_backend(device, dask, monkeypatch):
    X, y = numbers(24)

    def asked(*backends_and_jobs):
        raise LookupError(repr(backends_and_jobs))

    monkeypatch.setattr(job, "jobs_at", asked)
    with pytest.raises(LookupError, match=re.escape(repr((device, dask, 3)))):
        zeronorm.select(X, y, **TWO_FOLDS, device=device, dask=dask, n_jobs=3)


# -- Devices --


@pytest.mark.parametrize("method", ["fisher", "zeronorm-svm", "logistic-lasso"])
def test_the_same_result_on_a_device(problem, method, tmp_path):
    pytest.importorskip("torch")
    X, y = problem
    np.save(tmp_path / "x.npy", X)
    here = zeronorm.select(X, y, method=method, **QUICK)
    for data in (X, tmp_path / "x.npy"):
        there = zeronorm.select(data, y, method=method, device="cpu", **QUICK)
        assert [f.column for f in there.selected] == [f.column for f in here.selected]
        assert there.procedure["value"] == here.procedure["value"]


def test_arrays_of_torch_are_taken_where_they_are(problem):
    torch = pytest.importorskip("torch")
    X, y = problem
    result = zeronorm.select(torch.from_numpy(X), y, method="fisher", **QUICK)
    assert sorted(f.column for f in result.selected) == [0, 1, 2]


def test_data_are_copied_in_blocks_and_keep_type_and_names(problem, monkeypatch):
    pytest.importorskip("torch")
    X, _ = problem
    monkeypatch.setattr("zeronorm.design._base.Design._block_width", lambda self: 7)
    moved = to_device(X, "cpu", feature_names=[f"g{j}" for j in range(300)])
    assert isinstance(moved, ArrayApiDesign)
    assert moved.dtype == np.float32
    assert moved.feature_names[299] == "g299"
    np.testing.assert_array_equal(moved.block(slice(None)), X)


def test_a_missing_device_is_an_error(problem, tmp_path, capsys):
    torch = pytest.importorskip("torch")
    X, y = problem
    with pytest.raises(ValueError, match=r"'device' parameter must name a device.*'nowhere'"):
        zeronorm.select(X, y, device="nowhere", **QUICK)
    if not torch.cuda.is_available():
        code = run(["select", "linear-toy", "--device", "cuda", "-o", str(tmp_path / "out"), "-q"])
        assert code == 2
        assert "--device must name an available device" in capsys.readouterr().err


def test_options_that_a_device_excludes_are_an_error(problem):
    pytest.importorskip("torch")
    X, y = problem
    with pytest.raises(ValueError, match="needs dense data"):
        zeronorm.select(sparse.csr_array(X * (X > 1)), y, device="cpu", **QUICK)
    with pytest.raises(ValueError, match="'n_jobs' parameter must be 1 with a device"):
        zeronorm.select(X, y, device="cpu", n_jobs=2, **QUICK)
    with pytest.raises(ValueError, match="exclude each other"):
        zeronorm.select(X, y, device="cpu", dask="tcp://127.0.0.1:1", **QUICK)
    gaps = X.copy()
    gaps[0, 0] = np.nan
    with pytest.raises(ValueError, match="needs data without missing values"):
        zeronorm.select(gaps, y, device="cpu", **QUICK)


def test_a_full_device_is_an_error_with_a_remedy(problem, monkeypatch):
    pytest.importorskip("torch")

    def full(*_):
        raise MemoryError

    monkeypatch.setattr("zeronorm.design._array_api.empty_on", full)
    with pytest.raises(MemoryError, match="more than is free on the device 'cpu'; store them as float32"):
        to_device(problem[0], "cpu")


def test_features_on_a_device_keep_their_names(monkeypatch):
    X, y = numbers(24)
    table = table_of(X, y)
    seen = []
    monkeypatch.setattr(
        backends, "to_device", lambda X, device, **named: seen.append((X, device, named)) or "there"
    )
    assert backends.table_on_device(table, None) is table
    assert backends.table_on_device(table, "cuda").X == "there"
    ((moved, device, named),) = seen
    assert moved is table.X
    assert device == "cuda"
    assert named["feature_names"].tolist() == table.feature_names.tolist()
    X[0, 0] = np.nan
    with pytest.raises(ValueError, match="needs data without missing values"):
        backends.table_on_device(table_of(X, y), "cuda")


# -- Clusters --


def test_no_scheduler_at_the_address(problem, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr("zeronorm.workflow._backends.PATIENCE_S", 0.3)
    with pytest.raises(ValueError, match=r"'dask' parameter must be the address.*tcp://127\.0\.0\.1:9"):
        zeronorm.compare(*problem, methods="fisher", dask="tcp://127.0.0.1:9", **QUICK)


def _without_times(result):
    return [{key: value for key, value in row.items() if key != "seconds"} for row in result.table]


def test_the_same_comparison_on_a_cluster(problem, tmp_path):
    distributed = pytest.importorskip("distributed")
    here = zeronorm.compare(*problem, methods="fisher,golub", n_jobs=1, **QUICK)
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"
    ) as cluster:
        address = cluster.scheduler_address
        there = zeronorm.compare(*problem, methods="fisher,golub", dask=address, out=tmp_path / "c", **QUICK)
    assert _without_times(there) == _without_times(here)


class NotingFisher(FisherScore):
    """A selector that fails in the main process, and where loops inside a task would run on the cluster again."""

    def fit(self, X, y):
        assert threading.current_thread() is not threading.main_thread()
        assert effective_n_jobs(-1) == 1
        return super().fit(X, y)


@pytest.mark.parametrize("n_workers", [1, 2])
def test_data_are_sent_once_and_tasks_do_not_ask_the_scheduler(problem, monkeypatch, n_workers):
    distributed = pytest.importorskip("distributed")
    X, y = problem
    sent = []
    scatter = distributed.Client.scatter

    def counted(self, data, *args, **kwargs):
        sent.extend(array for array in data if array is X)
        return scatter(self, data, *args, **kwargs)

    monkeypatch.setattr(distributed.Client, "scatter", counted)
    expected = evaluate({"f": FisherScore()}, X, y, sizes=[3], cv=4)
    workers = {"n_workers": n_workers, "threads_per_worker": 1, "processes": False, "dashboard_address": ":0"}
    with distributed.LocalCluster(**workers) as cluster, on_cluster(cluster.scheduler_address):
        found = evaluate({"f": NotingFisher()}, X, y, sizes=[3], cv=4, n_jobs=-1)
        assert effective_n_jobs(-1) == n_workers  # outside of tasks as before
    assert len(sent) == 1
    assert found["error"].to_list() == 4 * [None]
    assert found["selected"].to_list() == expected["selected"].to_list()


class SlowFisher(FisherScore):
    """A selector that writes a file for each fit, then waits."""

    def __init__(self, n_features_to_select=None, *, notes="", pause_s=0.0):
        super().__init__(n_features_to_select)
        self.notes = notes
        self.pause_s = pause_s

    def fit(self, X, y):
        Path(self.notes, f"{os.getpid()}-{time.monotonic_ns()}").write_text(str(np.asarray(X)[:, 0].tolist()))
        time.sleep(self.pause_s)
        return super().fit(X, y)


@pytest.mark.slow
def test_a_worker_that_is_killed_loses_only_its_current_task(problem, tmp_path):
    distributed = pytest.importorskip("distributed")
    X, y = problem
    journal, notes = tmp_path / "journal", tmp_path / "notes"
    notes.mkdir()
    arguments = {"cv": 8, "sizes": [3], "random_state": 0}
    expected = evaluate({"f": SlowFisher(3, notes=str(notes))}, X, y, **arguments)
    n_tasks = len(list(notes.iterdir()))
    for note in notes.iterdir():
        note.unlink()

    def kill_one(pids):
        while len(list(journal.glob("*.json"))) < 2:
            time.sleep(0.02)
        os.kill(pids[0], signal.SIGKILL)

    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster:
        with distributed.Client(cluster) as client:
            pids = list(client.run(os.getpid).values())
        killer = threading.Thread(target=kill_one, args=(pids,))
        killer.start()
        with on_cluster(cluster.scheduler_address):
            selector = SlowFisher(3, notes=str(notes), pause_s=0.5)
            found = evaluate({"f": selector}, X, y, n_jobs=-1, journal=journal, **arguments)
        killer.join()
    folds = [note.read_text() for note in notes.iterdir()]
    assert len(set(folds)) == n_tasks
    assert len(folds) <= n_tasks + 1  # the task of the killed worker
    assert [row["selected"] for row in found.to_dicts()] == [row["selected"] for row in expected.to_dicts()]
    # Run again, everything is in the journal.
    evaluate({"f": selector}, X, y, journal=journal, **arguments)
    assert len(list(notes.iterdir())) == len(folds)
