"""Proofs of best subsets among up to a million features: on the processor, and on a GPU if there is one.

``python benchmarks/bench_proof_wide.py [--features 1000000] [--samples 1000] [--C 0.01] [--gpu]``
prints seconds of the relaxation alone (second run; the first compiles) and of the proof to a gap of 1 %, and the memory
beside the data.
"""

from __future__ import annotations

import argparse
import resource
import time
from typing import Any

import numpy as np

from zeronorm import as_design, optimality_gap
from zeronorm.engines.certificates._bounds import Objective
from zeronorm.engines.certificates._certificate import all_subsets
from zeronorm.engines.certificates._conjugates import dual_loss
from zeronorm.engines.certificates._refit import refit
from zeronorm.engines.certificates._relaxation import Relaxation
from zeronorm.execution import n_cores, one_thread_for_products

SIZE, CORRELATION, SIGNAL_TO_NOISE, TOLERANCE = 10, 0.5, 5.0, 0.01
NOTHING = np.empty(0, dtype=np.intp)


def planted(n_features: int, n_samples: int) -> tuple[np.ndarray, np.ndarray]:
    """Columns in single precision with correlation 0.5 to the power of their distance; ten equal effects far apart."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_features, n_samples), dtype=np.float32)
    X *= np.float32(np.sqrt(1 - CORRELATION**2))
    for j in range(1, n_features):
        X[j] += np.float32(CORRELATION) * X[j - 1]
    signal = X[np.arange(SIZE) * (n_features // SIZE)].sum(axis=0).astype(float)
    return X.T, signal + rng.normal(size=n_samples) * signal.std() / np.sqrt(SIGNAL_TO_NOISE)


def relaxation_seconds(X: Any, targets: np.ndarray, loss: str, C: float) -> str:
    """Time and passes over the data of one relaxation; of two runs, the second."""
    design = as_design(X).standardized()
    cost = np.full(design.n_samples, C)
    with one_thread_for_products():
        for _ in range(2):
            objective = Objective(design, targets, cost, dual_loss(loss))
            candidates = all_subsets(objective, None, SIZE, NOTHING)
            begun = time.perf_counter()
            design.transpose_dot(targets)
            one_pass = time.perf_counter() - begun
            relaxation = Relaxation(objective, candidates.units)
            begun = time.perf_counter()
            start = relaxation.first_start(candidates, refit(objective, NOTHING).bias)
            found = relaxation.solve(candidates, start)
            seconds = time.perf_counter() - begun
    return (
        f"relaxation {seconds:.3f} s, {relaxation.n_passes} passes of {1000 * one_pass:.1f} ms, "
        f"bound {found.bound:.4f}, {found.units.size} columns in use"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--features", type=int, default=1_000_000)
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--C", type=float, default=0.01)
    parser.add_argument("--loss", default="squared_error")
    parser.add_argument("--time-limit", type=float, default=120.0)
    parser.add_argument("--gpu", action="store_true", help="on a GPU with torch")
    arguments = parser.parse_args()
    is_regression = arguments.loss == "squared_error"
    X, y = planted(arguments.features, arguments.samples)
    y = y - y.mean() if is_regression else (y > 0).astype(float)
    targets = (y if is_regression else 2.0 * y - 1.0)[:, None]
    name = f"{n_cores()} cores"
    if arguments.gpu:
        import torch

        name = torch.cuda.get_device_name()
        X = torch.as_tensor(np.ascontiguousarray(X), device="cuda")
    settings: dict[str, Any] = {"loss": arguments.loss, "C": arguments.C, "gap_tol": TOLERANCE}
    settings["task"] = "regression" if is_regression else "classification"
    optimality_gap(X[:, :500], y, [0], time_limit=10.0, **settings)  # compiles
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    head = f"{name}, {arguments.samples} x {arguments.features}, {arguments.loss}, C {arguments.C:g}"
    print(f"{head}: {relaxation_seconds(X, targets, arguments.loss, arguments.C)}", flush=True)
    begun = time.perf_counter()
    found = optimality_gap(
        X,
        y,
        np.arange(SIZE) * (arguments.features // SIZE),
        time_limit=arguments.time_limit,
        **settings,
    )
    seconds = time.perf_counter() - begun
    memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 2**20
    print(
        f"{head}: proof {seconds:.1f} s, gap {100 * found.gap:.2f} %, {found.n_nodes} nodes, "
        f"{memory:.2f} GB beside the data",
        flush=True,
    )


if __name__ == "__main__":
    main()
