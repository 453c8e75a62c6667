"""Proofs of best subsets: ours and l0bnb on the same table with the same ridge, in one process.

``python benchmarks/bench_proof.py [--features 10000] [--C 0.05] [--peer] [--loss squared_error]`` prints processor
seconds. With n samples and unit-norm columns, l0bnb's penalty lambda_2 is 1 / (2 C n): its default of 0.01 is C = 0.05
here. l0bnb bounds the weights by 1.2 times the largest one of its warm start, a bound that is not proved. Ours is run
without a bound, a stronger statement, and with the bound that l0bnb used.
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

N_SAMPLES, SIZE, CORRELATION, SIGNAL_TO_NOISE, TOLERANCE = 1000, 10, 0.5, 5.0, 0.01
TIME_LIMIT = 600.0  # seconds


def autoregressive(n_features: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Columns with correlation 0.5 to the power of their distance; ten equal effects far apart."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N_SAMPLES, n_features))
    for j in range(1, n_features):
        X[:, j] = CORRELATION * X[:, j - 1] + np.sqrt(1 - CORRELATION**2) * X[:, j]
    signal = X[:, np.arange(SIZE) * (n_features // SIZE)].sum(axis=1)
    return X, signal + rng.normal(size=N_SAMPLES) * signal.std() / np.sqrt(SIGNAL_TO_NOISE)


def processor_seconds(function: Callable[[], Any]) -> tuple[float, Any]:
    begun = time.process_time()
    result = function()
    return time.process_time() - begun, result


def peer_path(X: np.ndarray, y: np.ndarray, C: float, size: int) -> list[Any]:
    np.inf = np.inf  # type: ignore[attr-defined]  # the name of NumPy 1, which l0bnb 1.0.0 uses
    from l0bnb import fit_path

    with contextlib.redirect_stdout(io.StringIO()):
        return fit_path(
            X, y, lambda_2=1 / (2 * C * len(y)), max_nonzeros=size, gap_tol=TOLERANCE, time_limit=TIME_LIMIT
        )


def ours(X: np.ndarray, y: np.ndarray, settings: dict[str, Any], max_weight: float | None) -> float:
    """Processor seconds of all sizes; prints what was proved for the largest."""
    seconds, selector = processor_seconds(
        lambda: BestSubset(SIZE, max_weight=max_weight, **settings).fit(X, y)
    )
    chosen = selector.get_support()
    one_s, found = processor_seconds(lambda: optimality_gap(X, y, chosen, max_weight=max_weight, **settings))
    bound = "no bound of the weights" if max_weight is None else f"weights of at most {max_weight:.3g}"
    print(f"{bound}: sizes 1 to {SIZE} {seconds:.2f} s, {selector.status_}, gap {100 * selector.gap_:.2f} %")
    print(
        f"    size {SIZE} alone {one_s:.2f} s, gap {100 * found.gap:.2f} %, {found.n_nodes} nodes", flush=True
    )
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--features", type=int, default=10_000)
    parser.add_argument("--C", type=float, default=0.05)
    parser.add_argument("--loss", default="squared_error")
    parser.add_argument("--peer", action="store_true")
    arguments = parser.parse_args()
    is_regression = arguments.loss == "squared_error"
    settings = {"loss": arguments.loss, "C": arguments.C, "gap_tol": TOLERANCE, "time_limit": TIME_LIMIT}
    settings["task"] = "regression" if is_regression else "classification"
    X, y = autoregressive(arguments.features)
    y = y if is_regression else (y > 0).astype(int)
    BestSubset(3, **settings).fit(X[:, :500], y)  # the first run compiles
    seconds = ours(X, y, settings, None)
    if arguments.peer:
        peer_path(X[:, :500], y, arguments.C, 3)
        peer_s, path = processor_seconds(lambda: peer_path(X, y, arguments.C, SIZE))
        bounded = ours(X, y, settings, path[-1]["M"] * float(y.std()))
        sizes = [int(np.count_nonzero(solution["B"])) for solution in path]
        print(f"l0bnb, sizes {sizes}: {peer_s:.2f} s")
        print(
            f"    {peer_s / seconds:.1f} times ours without, {peer_s / bounded:.1f} times ours with the bound"
        )


if __name__ == "__main__":
    main()
