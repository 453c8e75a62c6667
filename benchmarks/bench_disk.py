"""Data on disk within a memory budget, against as many plain passes over the file; and Dask arrays against NumPy."""

from __future__ import annotations

import math
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from harness import Measurement, job, timed, wide_problem
from sparse_memory import forget_peak, peak_bytes
from zeronorm import AROM, RFE, FisherScore, ZeroNormSVM, as_design
from zeronorm.design import Design, pack
from zeronorm.design import _chunked as chunked

N = 200
MOST = 1.5
MOST_OF_MEMORY = 2.0
METHODS: dict[str, Callable[[], Any]] = {
    "Fisher": lambda: FisherScore(20),
    "ZeroNormSVM": lambda: ZeroNormSVM(20),
    "AROM": lambda: AROM(20),
    "RFE halving": lambda: RFE(n_features_to_select=20, step=0.5),
}


class GeneratedColumns(Design):
    """Gaussian noise with twenty shifted columns, made block by block, so that nothing of it need fit into memory."""

    def __init__(self, p: int) -> None:
        super().__init__((N, p), np.dtype(np.float32))
        self._known_finite = True
        self.target = np.arange(N) % 2

    def _fill(self, columns: Any, out: Any) -> None:
        first = columns[0]
        rng = np.random.default_rng(first)
        np.copyto(out, rng.standard_normal(out.shape, dtype=np.float32))
        if first == 0:
            out[:, :20] += 0.8 * (2 * self.target - 1)[:, None]

    def _take(self, columns: Any) -> Design:
        raise NotImplementedError

    _take_rows = _take


@contextmanager
def packed(p: int) -> Iterator[tuple[Path, Any]]:
    """A file of 200 × p float32, in the folder ZERONORM_SCRATCH or that for temporary files."""
    folder = Path(tempfile.mkdtemp(dir=os.environ.get("ZERONORM_SCRATCH")))
    try:
        generated = GeneratedColumns(p)
        yield pack(generated, folder / "x.zncols"), generated.target
    finally:
        shutil.rmtree(folder)


def forget(stream: Any, offset: int = 0, n_bytes: int = 0) -> None:
    """Remove a part of a file (all of it by default) from the cache of the operating system, where this is possible."""
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(stream.fileno(), offset, n_bytes, os.POSIX_FADV_DONTNEED)


def forget_file(file: Path) -> None:
    with open(file, "rb") as stream:
        os.fsync(stream.fileno())
        forget(stream)


def plain_passes(file: Path, passes: float) -> float:
    """Seconds to read a file so often, eight megabytes at a time, each time from the disk."""
    memory, times = bytearray(8 << 20), math.ceil(passes)
    forget_file(file)
    start = time.perf_counter()
    for _ in range(times):
        with open(file, "rb", buffering=0) as stream:
            while n_read := stream.readinto(memory):
                forget(stream, stream.tell() - n_read, n_read)
    return (time.perf_counter() - start) * passes / times


def fitted_from(file: Path, y: Any, name: str, budget: int) -> tuple[float, float, int]:
    """Seconds of a fit, how often it reads the file, and the memory it adds.

    Each block leaves the cache of the system when it has been read, as where the file is larger than the memory.
    """
    n_read = 0
    real = chunked._read_into

    def counted(stream: Any, source: Any, offset: int, out: Any) -> None:
        nonlocal n_read
        n_read += out.nbytes
        real(stream, source, offset, out)
        # With the end of the block before: large pages that reach beyond a block stay when it is forgotten alone.
        forget(stream, max(0, offset - out.nbytes), 2 * out.nbytes)

    METHODS[name]().fit(
        as_design(file, memory_budget=budget).take(slice(0, 40_000)), y
    )  # compile, also what many need
    chunked._read_into = counted
    forget_file(file)
    forget_peak()
    before = peak_bytes()
    try:
        seconds, _ = timed(lambda: METHODS[name]().fit(as_design(file, memory_budget=budget), y))
    finally:
        chunked._read_into = real
    return seconds, n_read / file.stat().st_size, peak_bytes() - before


def _from_disk(name: str, p: int, budget: int) -> Measurement:
    with packed(p) as (file, y):
        seconds, passes, added = fitted_from(file, y, name, budget)
        plain = plain_passes(file, passes)
    size = f"{passes:.1f} passes of {N * p * 4 / 1e9:.1f} GB"
    note = f"{size} within {budget >> 20} MiB; the fit added {added >> 20} MiB"
    target = f"at most {MOST:g} × as many plain passes over the file"
    return Measurement(seconds, target, seconds <= MOST * plain, "plain passes", plain, note)


def _enter(name: str, power: int, budget: int) -> None:
    job(f"disk {name}, 200x10^{power}")(lambda: _from_disk(name, 10**power, budget))


def _against_memory(name: str) -> Measurement:
    """Processor time from a file, in the cache of the system or not, against the same data in memory."""
    p, budget = 300_000, 40 << 20

    def seconds(data: Any, y: Any) -> float:
        METHODS[name]().fit(data.take(slice(0, 40_000)), y)  # compile
        start = time.process_time()
        METHODS[name]().fit(data, y)
        return time.process_time() - start

    with packed(p) as (file, y):
        on_disk = as_design(file, memory_budget=budget)
        ours, in_memory = seconds(on_disk, y), seconds(as_design(on_disk.block(slice(None)).astype("f4")), y)
    target = f"at most {MOST_OF_MEMORY:g} × the data in memory"
    return Measurement(ours, target, ours <= MOST_OF_MEMORY * in_memory, "in memory", in_memory)


for _name in METHODS:
    if _name != "Fisher":  # one pass over the file is most of what it does
        job(f"disk {_name} against memory, 200x300000")(partial(_against_memory, _name))
    _enter(_name, 6, 128 << 20)
    _enter(_name, 7, 1 << 30)


def _dask_against_numpy(make: Callable[[], Any]) -> Measurement:
    import dask.array as da

    p = 300_000
    generated = GeneratedColumns(p)
    X, y = generated.block(slice(None)).astype(np.float32), generated.target
    chunked = da.from_array(X, chunks=(-1, p // 8))
    for data in (X, chunked):
        make().fit(data[:, :1000], y)  # compile
    # In turn, so that both meet the same load of the computer.
    pairs = [[timed(lambda data=data: make().fit(data, y))[0] for data in (chunked, X)] for _ in range(3)]
    ours, numpy = np.min(pairs, axis=0).tolist()
    return Measurement(ours, "at most 1.5 × the time of NumPy", ours <= 1.5 * numpy, "NumPy array", numpy)


@job("ZeroNormSVM on a Dask array, 200x300000")
def dask_zeronorm_svm() -> Measurement:
    return _dask_against_numpy(lambda: ZeroNormSVM(20))


@job("FisherScore on a Dask array, 200x300000")
def dask_fisher() -> Measurement:
    return _dask_against_numpy(lambda: FisherScore(20))


@job("compare on two Dask workers, 100x5000")
def dask_workers() -> Measurement:
    import zeronorm

    X, y = wide_problem(100, 5000)

    def seconds_with(n_workers: int) -> float:
        from distributed import LocalCluster

        with LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=None) as cluster:

            def run(repeats: int) -> Any:
                return zeronorm.compare(X, y, features=20, repeats=repeats, dask=cluster.scheduler_address)

            run(2)  # every worker compiles and loads
            return timed(lambda: run(4))[0]

    alone, ours = seconds_with(1), seconds_with(2)
    return Measurement(ours, "at least 1.6 × one worker", alone >= 1.6 * ours, "one worker", alone)
