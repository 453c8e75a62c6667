"""Speed-up by many cores: each job in processes with one core and with all, beside the limits of the computer.

    python benchmarks/cores.py                        all jobs, one core and all cores
    python benchmarks/cores.py --cores 1,4,16         other numbers of cores
    python benchmarks/cores.py --only fisher --only gram    some jobs
    python benchmarks/cores.py --small                a quick look at whether everything runs

The first two jobs are the ceiling: a plain sum over the same data tells how the memory gains from more cores, a plain
product how BLAS does. Times are the best of some runs after one that compiles, without making the data.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

REPEAT = 2
SEEDS = 64  # parts in which the data are drawn


def normal(n: int, p: int) -> Any:
    """Values in single precision, one row per sample; drawn by all cores."""
    X = np.empty((n, p), dtype=np.float32)
    bounds = np.linspace(0, n, min(n, SEEDS) + 1).astype(int)

    def draw(part: int) -> None:
        rng = np.random.default_rng(part)
        for row in X[bounds[part] : bounds[part + 1]]:
            rng.standard_normal(dtype=np.float32, out=row)

    with ThreadPoolExecutor() as pool:
        list(pool.map(draw, range(len(bounds) - 1)))
    return X


def labels(n: int) -> Any:
    return np.arange(n) % 2


# -- Jobs: each makes its data and returns what is measured --


def plain_sum(n: int, p: int) -> Callable[[], Any]:
    from zeronorm._jit import reduction
    from zeronorm.execution import available_threads, run_in_threads

    @reduction
    def total(values, out, index):  # type: ignore[no-untyped-def]
        result = 0.0
        for i in range(values.shape[0]):
            result += values[i]
        out[index] = result

    X = normal(n, p)
    sums = np.zeros(n)

    def read() -> None:
        run_in_threads(lambda i: total(X[i], sums, i), [(i,) for i in range(n)], available_threads())

    return read


def plain_product(n: int, p: int) -> Callable[[], Any]:
    X = normal(n, p).astype(np.float64)
    return lambda: X @ X.T


def statistics(n: int, p: int) -> Callable[[], Any]:
    from zeronorm import as_design

    design = as_design(normal(n, p))
    return lambda: design.column_stats(labels(n))


def gram(n: int, p: int) -> Callable[[], Any]:
    from zeronorm import as_design

    return as_design(normal(n, p)).gram


def standardized_gram(n: int, p: int) -> Callable[[], Any]:
    from zeronorm import as_design

    design = as_design(normal(n, p)).standardized()
    scale_sq = np.linspace(0.5, 1.0, p)
    return lambda: design.gram(scale_sq)


def fisher(n: int, p: int) -> Callable[[], Any]:
    from zeronorm import FisherScore

    X = normal(n, p)
    return lambda: FisherScore(20).fit(X, labels(n))


def relief(n: int, p: int) -> Callable[[], Any]:
    from zeronorm import Relief

    X = normal(n, p)
    return lambda: Relief(20, n_jobs=-1).fit(X, labels(n))


def compare(n: int, p: int) -> Callable[[], Any]:
    import zeronorm

    X, y = normal(n, p), labels(n)
    X[:, :20] += y[:, None]

    def run(n_columns: int = p, repeats: int = 8) -> Any:
        some = X[:, :n_columns]
        return zeronorm.compare(
            some, y, methods=("fisher", "rfe", "arom"), features=20, repeats=repeats, n_jobs=-1
        )

    run(100, 1)  # compiles
    return run


JOBS: dict[str, tuple[Callable[[int, int], Callable[[], Any]], int, int]] = {
    "plain-sum": (plain_sum, 1000, 1_000_000),
    "plain-product": (plain_product, 2000, 50_000),
    "statistics": (statistics, 1000, 1_000_000),
    "fisher": (fisher, 1000, 1_000_000),
    "gram": (gram, 2000, 100_000),
    "gram-200": (gram, 200, 1_000_000),
    "standardized-gram": (standardized_gram, 2000, 100_000),
    "relief-wide": (relief, 200, 1_000_000),
    "relief": (relief, 1000, 50_000),
    "compare": (compare, 200, 20_000),
}


RUN_ONCE = ("compare",)  # long enough, and compiles by itself


def measure(job: str, cores: int, small: bool) -> float:
    make, n, p = JOBS[job]
    call = make(max(40, n // 10), p // 100) if small else make(n, p)
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    if job not in RUN_ONCE:
        call()  # compiles
    best = np.inf
    for _ in range(1 if job in RUN_ONCE else REPEAT):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best


def in_process(job: str, cores: int, small: bool) -> float | None:
    """The seconds of a job in a process of its own, whose libraries start with so many threads."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), str(cores))
    command = [sys.executable, __file__, "--measure", job, "--cores", str(cores), *(["--small"] * small)]
    done = subprocess.run(command, env={**os.environ, **threads}, capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stderr.strip().splitlines()[-1], file=sys.stderr)
        return None
    return float(done.stdout.split()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cores", default=f"1,{len(os.sched_getaffinity(0))}", help="numbers of cores")
    parser.add_argument("--only", action="append", help="a job; may be repeated")
    parser.add_argument("--small", action="store_true", help="small data: does everything run?")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        print(measure(given.measure, int(given.cores), given.small))
        return
    unknown = set(given.only or ()) - set(JOBS)
    if unknown:
        parser.error(f"There is no job {sorted(unknown)[0]!r}. There are: {', '.join(JOBS)}.")
    counts = [int(text) for text in given.cores.split(",")]
    print(f"{'job':18s} {'data':>16s}" + "".join(f"{count:>8d} cores" for count in counts) + "   ratio")
    for job in given.only or JOBS:
        _, n, p = JOBS[job]
        seconds = [in_process(job, count, given.small) for count in counts]
        shown = "".join(f"{'failed' if s is None else f'{s:.3f} s':>14s}" for s in seconds)
        first, last = seconds[0], seconds[-1]
        ratio = f"{first / last:8.1f}" if first and last else ""
        print(f"{job:18s} {f'{n} × {p:,}':>16s}{shown}{ratio}", flush=True)


if __name__ == "__main__":
    main()
