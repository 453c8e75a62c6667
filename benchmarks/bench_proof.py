"""Proofs of best subsets: ours and l0bnb on the same table with the same ridge, in one process.

``python benchmarks/bench_proof.py [--features 10000] [--C 0.05] [--size 10] [--loss squared_error] [--alone] [--peer]``
prints processor seconds. With n samples and unit-norm columns, l0bnb's penalty lambda_2 is 1 / (2 C n): its default of
0.01 is C = 0.05 here. l0bnb bounds the weights by 1.2 times the largest one of its warm start, a bound that is not
proved. Ours is run without a bound, a stronger statement, and with the bound that l0bnb used.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from zeronorm import BestSubset, optimality_gap

N_SAMPLES, CORRELATION, SIGNAL_TO_NOISE, TOLERANCE = 1000, 0.5, 5.0, 0.01


def autoregressive(n_features: int, size: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Columns with correlation 0.5 to the power of their distance; equal effects far apart."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N_SAMPLES, n_features))
    for j in range(1, n_features):
        X[:, j] = CORRELATION * X[:, j - 1] + np.sqrt(1 - CORRELATION**2) * X[:, j]
    signal = X[:, np.arange(size) * (n_features // size)].sum(axis=1)
    return X, signal + rng.normal(size=N_SAMPLES) * signal.std() / np.sqrt(SIGNAL_TO_NOISE)


def processor_seconds(function: Callable[[], Any]) -> tuple[float, Any]:
    begun = time.process_time()
    result = function()
    return time.process_time() - begun, result


def peer_path(X: np.ndarray, y: np.ndarray, C: float, size: int, time_limit: float) -> list[Any]:
    np.inf = np.inf  # type: ignore[attr-defined]  # the name of NumPy 1, which l0bnb 1.0.0 uses
    from l0bnb import fit_path

    with contextlib.redirect_stdout(io.StringIO()):
        return fit_path(
            X, y, lambda_2=1 / (2 * C * len(y)), max_nonzeros=size, gap_tol=TOLERANCE, time_limit=time_limit
        )


def alone(
    X: np.ndarray, y: np.ndarray, size: int, settings: dict[str, Any], max_weight: float | None
) -> None:
    """Print what a search of the planted size proves, from the planted subset."""
    planted = np.arange(size) * (X.shape[1] // size)
    seconds, found = processor_seconds(
        lambda: optimality_gap(X, y, planted, max_weight=max_weight, **settings)
    )
    print(
        f"{settings['loss']}, {X.shape[1]} features, C {settings['C']:g}, size {size} alone: {seconds:.2f} s, gap "
        f"{100 * found.gap:.2f} %, {found.n_nodes} nodes",
        flush=True,
    )


def all_sizes(
    X: np.ndarray, y: np.ndarray, size: int, settings: dict[str, Any], max_weight: float | None
) -> float:
    """Processor seconds of all sizes; prints what was proved for the largest."""
    seconds, selector = processor_seconds(
        lambda: BestSubset(size, max_weight=max_weight, **settings).fit(X, y)
    )
    bound = "no bound of the weights" if max_weight is None else f"weights of at most {max_weight:.3g}"
    print(f"{bound}: sizes 1 to {size} {seconds:.2f} s, {selector.status_}, gap {100 * selector.gap_:.2f} %")
    alone(X, y, size, settings, max_weight)
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--features", type=int, default=10_000)
    parser.add_argument("--size", type=int, default=10)
    parser.add_argument("--C", type=float, default=0.05)
    parser.add_argument("--loss", default="squared_error")
    parser.add_argument("--time-limit", type=float, default=600.0, help="seconds")
    parser.add_argument("--alone", action="store_true", help="the largest size alone")
    parser.add_argument("--peer", action="store_true")
    arguments = parser.parse_args()
    is_regression = arguments.loss == "squared_error"
    settings: dict[str, Any] = {"loss": arguments.loss, "C": arguments.C, "gap_tol": TOLERANCE}
    settings["task"] = "regression" if is_regression else "classification"
    settings["time_limit"] = arguments.time_limit
    size = arguments.size
    X, y = autoregressive(arguments.features, size)
    y = y if is_regression else (y > 0).astype(int)
    optimality_gap(X[:, :500], y, [0], **{**settings, "time_limit": 10.0})  # the first run compiles
    if arguments.alone:
        alone(X, y, size, settings, None)
        return
    seconds = all_sizes(X, y, size, settings, None)
    if arguments.peer:
        peer_path(X[:, :500], y, arguments.C, 3, arguments.time_limit)
        peer_s, path = processor_seconds(lambda: peer_path(X, y, arguments.C, size, arguments.time_limit))
        bounded = all_sizes(X, y, size, settings, path[-1]["M"] * float(y.std()))
        sizes = [int(np.count_nonzero(solution["B"])) for solution in path]
        print(f"l0bnb, sizes {sizes}: {peer_s:.2f} s")
        print(
            f"    {peer_s / seconds:.1f} times ours without, {peer_s / bounded:.1f} times ours with the bound"
        )


if __name__ == "__main__":
    main()
