"""Linear methods on sparse data, wide and tall: seconds of the processor, and whether the memory stays sparse."""

from __future__ import annotations

from functools import partial

from harness import Measurement, job
from sparse_memory import METHODS, data_and_allowed_bytes, measure

DENSITY = 1e-3
SHAPES = {"1000×100,000": (1000, 100_000), "100,000×1000": (100_000, 1000)}
MEGABYTE = 2**20
MILLION_ROWS = (1_000_000, 10_000)
LINEAR = ("fsv", "l1-svm", "logistic-lasso", "lasso", "svm-weights", "arom", "zeronorm-svm", "rfe")
MOST_S = 120.0  # of the processor, one thread
PATIENCE_S = 600.0  # on the clock, of a machine that others use too


def memory_of(name: str, shape: tuple[int, int], most_s: float | None = None) -> Measurement:
    """One fit in a process of its own."""
    data, allowed = data_and_allowed_bytes(*shape, DENSITY)
    target = f"adds at most {allowed / MEGABYTE:.0f} MB to {data / MEGABYTE:.0f} MB of data"
    if most_s is not None:
        target += f" within {most_s:g} s of the processor"
    added, seconds = measure(name, shape, DENSITY, *([] if most_s is None else [PATIENCE_S]))
    if added is None:
        return Measurement(float("nan"), target, False, note=str(seconds))
    reached = added <= allowed and (most_s is None or seconds <= most_s)
    return Measurement(seconds, target, reached, note=f"added {added / MEGABYTE:.0f} MB")


for _name in METHODS:
    for _label, _shape in SHAPES.items():
        job(f"sparse {_label}, {_name}")(partial(memory_of, _name, _shape))

for _name in LINEAR:
    job(f"sparse 1,000,000×10,000, {_name}")(partial(memory_of, _name, MILLION_ROWS, MOST_S))
