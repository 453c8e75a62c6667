"""Speed-up by a device: operations of the Design and whole selections, on torch tensors.

    python benchmarks/gpu.py                          all jobs on the first CUDA device
    python benchmarks/gpu.py --only gram --only "RFE tall" --host   some jobs, selections on NumPy arrays too
    python benchmarks/gpu.py --only zeronorm-svm --only arom --host-only   the processor's share alone
    python benchmarks/gpu.py --only relief --cupy     selections on CuPy arrays
    python benchmarks/gpu.py --device cpu --small     a quick look at whether everything runs

Each job prints one line as soon as it is done. Peers are plain products of torch in the same run.
"""

from __future__ import annotations

import argparse
import functools
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

import zeronorm
from zeronorm import AROM, RFE, FisherScore, GolubScore, Relief, WelchScore, ZeroNormSVM, as_design
from zeronorm.design._devices import difference_kernels_for, kernels_for

N_INFORMATIVE = 20


@dataclass(frozen=True)
class Setting:
    device: str
    small: bool
    host: bool
    repeat: int
    cupy: bool = False
    host_only: bool = False

    def size(self, n: int, p: int) -> tuple[int, int]:
        return (max(40, n // 20), max(60, p // 500)) if self.small else (n, p)

    def as_given(self, X: Any) -> Any:
        """The data in the library that the selections are measured with."""
        if not self.cupy:
            return X
        import cupy

        return cupy.from_dlpack(X)

    def wait(self) -> None:
        if self.device.startswith("cuda"):
            torch.cuda.synchronize()

    def timed(self, call: Callable[[], Any], repeat: int | None = None) -> tuple[float, Any]:
        """The best wall time, after one run that compiles and warms up."""
        best, result = np.inf, call()
        for _ in range(self.repeat if repeat is None else repeat):
            self.wait()
            start = time.perf_counter()
            result = call()
            self.wait()
            best = min(best, time.perf_counter() - start)
        return best, result


@functools.lru_cache(maxsize=1)
def tensor(n: int, p: int, device: str) -> Any:
    generator = torch.Generator(device=device).manual_seed(0)
    X = torch.randn((n, p), generator=generator, device=device, dtype=torch.float32)
    y = labels(n)
    X[:, :N_INFORMATIVE] += 0.5 * torch.asarray(y, device=device, dtype=torch.float32)[:, None]
    return X


def labels(n: int) -> Any:
    return np.arange(n) % 2


# -- Operations --


def gram(setting: Setting) -> str:
    n, p = setting.size(2000, 500_000)
    X = tensor(n, p, setting.device)
    seconds, K = setting.timed(as_design(X).gram)
    width = min(p, 40_000)
    block = X[:, :width].double()
    plain, _ = setting.timed(lambda: block @ block.T)
    plain *= p / width
    exact = X[:2].double() @ X[:2].double().T
    error = float(np.abs(K[:2, :2] - exact.cpu().numpy()).max() / np.abs(K[:2, :2]).max())
    rate = 2e-12 * n * n * p / seconds
    return f"{1e3 * seconds:9.2f} ms  {rate:6.1f} TF/s, {plain / seconds:5.0%} of a float64 product; error {error:.0e}"


def standardized_gram(setting: Setting) -> str:
    n, p = setting.size(2000, 500_000)
    design = as_design(tensor(n, p, setting.device)).standardized()
    scale_sq = np.linspace(0.5, 1.0, p)
    seconds, _ = setting.timed(lambda: design.gram(scale_sq))
    return f"{1e3 * seconds:9.2f} ms  {2e-12 * n * n * p / seconds:6.1f} TF/s, with scales"


def gram_adjoint(setting: Setting) -> str:
    n, p = setting.size(2000, 500_000)
    design = as_design(tensor(n, p, setting.device)).standardized()
    seconds, _ = setting.timed(lambda: design.gram_adjoint(np.eye(n)))
    return f"{1e3 * seconds:9.2f} ms  {2e-12 * n * n * p / seconds:6.1f} TF/s"


def transpose_dot(setting: Setting) -> str:
    n, p = setting.size(2000, 500_000)
    X = tensor(n, p, setting.device)
    v = np.linspace(-1.0, 1.0, n)
    single = torch.asarray(v, device=setting.device, dtype=torch.float32)
    plain, _ = setting.timed(lambda: X.T @ single)
    design = as_design(X)
    seconds, _ = setting.timed(lambda: design.transpose_dot(v))
    view = design.standardized()
    centered, _ = setting.timed(lambda: view.transpose_dot(v))
    half = design.take(np.arange(0, p, 2) + np.arange(p // 2) % 2)
    part, _ = setting.timed(lambda: half.transpose_dot(v))
    return (
        f"{1e3 * seconds:9.2f} ms  {plain / seconds:5.0%} of the plain product ({1e3 * plain:.2f} ms); "
        f"standardized {1e3 * centered:.2f}, every other column {1e3 * part:.2f} ms"
    )


def dot(setting: Setting) -> str:
    n, p = setting.size(2000, 500_000)
    X = tensor(n, p, setting.device)
    w = np.linspace(-1.0, 1.0, p)
    single = torch.asarray(w, device=setting.device, dtype=torch.float32)
    plain, _ = setting.timed(lambda: X @ single)
    design = as_design(X)
    seconds, _ = setting.timed(lambda: design.dot(w))
    view = design.standardized()
    centered, _ = setting.timed(lambda: view.dot(w))
    return (
        f"{1e3 * seconds:9.2f} ms  {plain / seconds:5.0%} of the plain product ({1e3 * plain:.2f} ms); "
        f"standardized {1e3 * centered:.2f} ms"
    )


def column_stats(setting: Setting) -> str:
    n, p = setting.size(2000, 500_000)
    X = tensor(n, p, setting.device)
    y = labels(n)
    one_pass, _ = setting.timed(lambda: X.sum(dim=0))
    design = as_design(X)
    seconds, _ = setting.timed(lambda: design.column_stats(y))
    alone, _ = setting.timed(design.column_stats)
    return (
        f"{1e3 * seconds:9.2f} ms  {seconds / one_pass:5.1f} passes ({1e3 * one_pass:.2f} ms each); "
        f"without classes {1e3 * alone:.2f} ms"
    )


def fold(setting: Setting) -> str:
    n, p = setting.size(2000, 500_000)
    design = as_design(tensor(n, p, setting.device))
    rows = np.flatnonzero(np.arange(n) % 5)
    part = design.take_rows(rows)
    v, w = np.ones(rows.size), np.ones(p)
    down, _ = setting.timed(lambda: part.transpose_dot(v))
    across, _ = setting.timed(lambda: part.dot(w))
    stats, _ = setting.timed(lambda: part.column_stats(labels(rows.size)))
    return (
        f"{1e3 * down:9.2f} ms  transpose_dot of 4/5 of the rows; dot {1e3 * across:.2f}, "
        f"statistics {1e3 * stats:.2f} ms"
    )


# -- Selections --


COMPILING_COLUMNS = 2000
COMPILING_TALL = (4000, 60)


def selection(make: Callable[[], Any], n: int, p: int, repeat: int = 3) -> Callable[[Setting], str]:
    def measure(setting: Setting) -> str:
        size = setting.size(n, p)
        X, y = tensor(*size, setting.device), labels(size[0])
        if setting.host_only:
            host_s, _ = seconds_on_host(make, X, y)
            return f"NumPy {host_s:.2f} s"
        given = setting.as_given(X)
        seconds, fitted = setting.timed(lambda: make().fit(given, y), repeat)
        found = int(np.count_nonzero(np.flatnonzero(fitted.support_) < N_INFORMATIVE))
        text = f"{1e3 * seconds:9.1f} ms  {found} of {fitted.n_features_} selected features are informative"
        if setting.host:
            host_s, same = seconds_on_host(make, X, y)
            equal = np.array_equal(same.support_, fitted.support_)
            text += f"; NumPy {host_s:.2f} s, {host_s / seconds:.1f} times; the same selection: {equal}"
        return text

    return measure


def seconds_on_host(make: Callable[[], Any], X: Any, y: Any) -> tuple[float, Any]:
    """The shorter wall time of two fits to the same data as a NumPy array; a small part is fitted first, to compile."""
    on_host = X.cpu().numpy()
    n, p = on_host.shape
    rows, columns = (n, COMPILING_COLUMNS) if p >= n else COMPILING_TALL
    make().fit(np.ascontiguousarray(on_host[:rows, :columns]), y[:rows])
    seconds = []
    for _ in range(2):
        start = time.perf_counter()
        fitted = make().fit(on_host, y)
        seconds.append(time.perf_counter() - start)
    return min(seconds), fitted


WIDE = (1000, 1_000_000)
OPERATIONS: dict[str, Callable[[Setting], str]] = {
    "gram": gram,
    "standardized-gram": standardized_gram,
    "gram-adjoint": gram_adjoint,
    "transpose-dot": transpose_dot,
    "dot": dot,
    "column-stats": column_stats,
    "fold": fold,
}
SELECTIONS: dict[str, Callable[[Setting], str]] = {
    "fisher": selection(lambda: FisherScore(20), *WIDE),
    "welch": selection(lambda: WelchScore(20), *WIDE),
    "golub": selection(lambda: GolubScore(20), *WIDE),
    "zeronorm-svm": selection(lambda: ZeroNormSVM(20), *WIDE),
    "arom": selection(lambda: AROM(20), *WIDE),
    "rfe-halving": selection(lambda: RFE(n_features_to_select=20, step=0.5), *WIDE),
    "relief-wide": selection(lambda: Relief(20, n_jobs=-1), 200, 1_000_000),
    "relief": selection(lambda: Relief(20, n_jobs=-1), 2000, 100_000),
    "rfe-tall": selection(lambda: RFE(n_features_to_select=20, step=0.2), 100_000, 500),
    "rfe-one-by-one": selection(lambda: RFE(n_features_to_select=20), 100, 100_000),
}
JOBS = {**OPERATIONS, **SELECTIONS}


def chosen_jobs(only: list[str] | None, jobs: dict[str, Any]) -> dict[str, Any]:
    """Jobs with one of these names, else with one of these texts in their name; spaces are as good as hyphens."""
    if only is None:
        return jobs
    wanted: set[str] = set()
    for text in (given.lower().replace(" ", "-") for given in only):
        wanted |= {text} if text in jobs else {name for name in jobs if text in name}
    return {name: job for name, job in jobs.items() if name in wanted}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda", help="a device of torch")
    parser.add_argument("--small", action="store_true", help="small data: does everything run?")
    parser.add_argument("--host", action="store_true", help="selections on NumPy arrays too")
    parser.add_argument(
        "--cupy", action="store_true", help="selections on CuPy arrays in place of torch tensors"
    )
    parser.add_argument(
        "--host-only", action="store_true", help="selections on NumPy arrays only; operations are left out"
    )
    parser.add_argument(
        "--only", action="append", help="a job, or all jobs with this text in their name; may be repeated"
    )
    parser.add_argument("--repeat", type=int, default=5)
    given = parser.parse_args()
    jobs = chosen_jobs(given.only, SELECTIONS if given.host_only else JOBS)
    if not jobs:
        parser.error(f"No job is named like {given.only}. There are: {', '.join(JOBS)}.")
    setting = Setting(given.device, given.small, given.host, given.repeat, given.cupy, given.host_only)
    on_cuda = given.device.startswith("cuda")
    name = torch.cuda.get_device_name(given.device) if on_cuda else "the processor"
    print(f"zeronorm {zeronorm.__version__}, torch {torch.__version__}, {name}, {time.strftime('%Y-%m-%d')}")
    sample = torch.empty((1, 1), device=given.device)
    for what, find in (
        ("sums in one pass", kernels_for),
        ("differences of samples", difference_kernels_for),
    ):
        print(f"{what}:", "no kernels, in blocks" if find(sample) is None else "kernels of Triton")
    for job, measure in jobs.items():
        start = time.perf_counter()
        try:
            text = measure(setting)
        except Exception as error:  # the other jobs still run
            text = f"failed: {type(error).__name__}: {error}"
        print(f"{job:18s} {text}  [{time.perf_counter() - start:.0f} s in all]", flush=True)


if __name__ == "__main__":
    main()
