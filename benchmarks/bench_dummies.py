"""DummySelector on 300 samples of a million features: in memory, on disk, and on a GPU if there is one.

``python benchmarks/bench_dummies.py [--features 1000000] [--gpu]`` prints seconds, processor seconds (of all threads)
and the features found.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from zeronorm import DummySelector

N_SAMPLES, N_RELEVANT, EFFECT = 300, 6, 1.0


def planted(n_features: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Normal columns in single precision, of which six determine a real target."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_features, N_SAMPLES), dtype=np.float32).T
    relevant = rng.choice(n_features, N_RELEVANT, replace=False)
    return X, EFFECT * X[:, relevant].sum(axis=1) + rng.normal(size=N_SAMPLES), relevant


def measure(name: str, X: Any, y: np.ndarray, relevant: np.ndarray) -> None:
    """Fit twice and print the time of the second fit: the first compiles the kernels."""
    for attempt in ("first", "second"):
        start, cpu = time.perf_counter(), time.process_time()
        selector = DummySelector(task="regression", random_state=0).fit(X, y)
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
        chosen = selector.get_support(indices=True)
        print(
            f"{name}, {attempt} fit: {seconds:.1f} s, processor {cpu:.1f} s, {chosen.size} selected, "
            f"{int(np.isin(chosen, relevant).sum())} of {relevant.size} relevant, "
            f"{selector.n_dummies_} dummies, stop after {selector.stop_after_}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--features", type=int, default=1_000_000)
    parser.add_argument("--gpu", action="store_true", help="on a GPU with torch, instead of memory and disk")
    arguments = parser.parse_args()
    X, y, relevant = planted(arguments.features)
    if arguments.gpu:
        import torch

        measure("on the GPU", torch.as_tensor(np.ascontiguousarray(X), device="cuda"), y, relevant)
        return
    measure("in memory", X, y, relevant)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "X.npy"
        np.save(file, X)
        measure("on disk", np.load(file, mmap_mode="r"), y, relevant)


if __name__ == "__main__":
    main()
