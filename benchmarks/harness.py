"""Benchmarks: each job measures ours and a peer in one run, on the same data and settings."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Measurement:
    """One row of the table. ``target`` describes what is to be reached, ``reached`` is whether it was."""

    ours_s: float
    target: str
    reached: bool
    peer: str = ""
    peer_s: float | None = None
    note: str = ""

    @property
    def ratio(self) -> float | None:
        return None if self.peer_s is None else self.peer_s / self.ours_s


@dataclass(frozen=True)
class Job:
    name: str
    measure: Callable[[], Measurement]


JOBS: dict[str, Job] = {}


def job(name: str) -> Callable[[Callable[[], Measurement]], Callable[[], Measurement]]:
    """Register a function that returns a Measurement under ``name``."""

    def enter(measure: Callable[[], Measurement]) -> Callable[[], Measurement]:
        JOBS[name] = Job(name, measure)
        return measure

    return enter


def timed(function: Callable[[], Any], repeat: int = 1) -> tuple[float, Any]:
    """Median wall time in seconds over ``repeat`` runs, and the last result."""
    seconds = []
    for _ in range(repeat):
        start = time.perf_counter()
        result = function()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds), result


def against(target_ratio: float, ours: Callable[[], Any], peer: Callable[[], Any], peer_name: str, note: str = "",
            repeat: int = 1) -> Measurement:  # fmt: skip
    """Measure ``ours`` (warm) and ``peer`` in turn; reached when peer/ours is at least ``target_ratio``."""
    ours()  # compile and warm caches
    ours_s, _ = timed(ours, repeat)
    peer_s, _ = timed(peer)
    target = f"at least {target_ratio:g} × faster than {peer_name}"
    return Measurement(ours_s, target, peer_s / ours_s >= target_ratio, peer_name, peer_s, note)


def under(limit_s: float, ours: Callable[[], Any], note: str = "") -> Measurement:
    """Measure ``ours``; reached when it takes less than ``limit_s`` seconds."""
    seconds, _ = timed(ours)
    return Measurement(seconds, f"under {limit_s:g} s", seconds < limit_s, note=note)


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    """X (float64) and y of a dense data set in the folder ZERONORM_DATA, train and published second part together."""
    folder = os.environ.get("ZERONORM_DATA")
    if not folder:
        raise SystemExit("Set ZERONORM_DATA to the folder with the benchmark data sets (*.npz).")
    with np.load(Path(folder) / f"{name}.npz", allow_pickle=False) as data:
        X, y = data["X"].astype(np.float64), data["y"]
        if "X_valid" in data:
            X = np.vstack([X, data["X_valid"].astype(np.float64)])
            y = np.concatenate([y, data["y_valid"]])
    return X, y


def wide_problem(n: int, p: int, seed: int = 0, n_relevant: int = 10) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian noise with a few shifted features, two classes."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    X = rng.normal(size=(n, p))
    X[:, :n_relevant] += 0.8 * (2 * y - 1)[:, None]
    return X, y


def as_record(name: str, measurement: Measurement) -> dict[str, Any]:
    return {"job": name, **asdict(measurement), "ratio": measurement.ratio}
