"""Proofs of best subsets: ours and l0bnb on the same table with the same ridge, in one process.

``python benchmarks/bench_proof.py [--features 10000] [--C 0.01] [--peer] [--loss squared_error]`` prints processor
seconds. With n samples and unit-norm columns, l0bnb's penalty lambda_2 is 1 / (2 C n). l0bnb bounds the weights by a
multiple of those of its warm start, a bound that is not proved; ours has no such bound.
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
    from l0bnb import fit_path

    with contextlib.redirect_stdout(io.StringIO()):
        return fit_path(
            X, y, lambda_2=1 / (2 * C * len(y)), max_nonzeros=size, gap_tol=TOLERANCE, time_limit=600
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--features", type=int, default=10_000)
    parser.add_argument("--C", type=float, default=0.01)
    parser.add_argument("--loss", default="squared_error")
    parser.add_argument("--peer", action="store_true")
    arguments = parser.parse_args()
    is_regression = arguments.loss == "squared_error"
    settings = {"loss": arguments.loss, "C": arguments.C, "gap_tol": TOLERANCE}
    settings["task"] = "regression" if is_regression else "classification"
    for n_features in (500, arguments.features):  # the first run compiles
        X, y = autoregressive(n_features)
        y = y if is_regression else (y > 0).astype(int)
        path_s, selector = processor_seconds(lambda X=X, y=y: BestSubset(SIZE, **settings).fit(X, y))
        chosen = selector.get_support()
        one_s, found = processor_seconds(
            lambda X=X, y=y, s=chosen: optimality_gap(X, y, s, time_limit=60.0, **settings)
        )
    print(
        f"BestSubset, sizes 1 to {SIZE}: {path_s:.2f} s, {selector.status_}, gap {100 * selector.gap_:.2f} %"
    )
    print(f"optimality_gap, size {SIZE}: {one_s:.2f} s, gap {100 * found.gap:.2f} %, {found.n_nodes} nodes")
    if arguments.peer:
        peer_path(X[:, :500], y, arguments.C, 3)
        peer_s, path = processor_seconds(lambda: peer_path(X, y, arguments.C, SIZE))
        sizes = [int(np.count_nonzero(solution["B"])) for solution in path]
        print(f"l0bnb, path of sizes {sizes}: {peer_s:.2f} s, {peer_s / path_s:.1f} times BestSubset")


if __name__ == "__main__":
    main()
