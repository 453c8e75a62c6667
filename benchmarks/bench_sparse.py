"""Linear methods on sparse data, wide and tall: seconds of the processor, and whether the memory stays sparse."""

from __future__ import annotations

from functools import partial

from harness import Measurement, job
from sparse_memory import METHODS, data_and_allowed_bytes, measure

DENSITY = 1e-3
SHAPES = {"1000×100,000": (1000, 100_000), "100,000×1000": (100_000, 1000)}
MEGABYTE = 2**20


def memory_of(name: str, shape: tuple[int, int]) -> Measurement:
    """One fit in a process of its own."""
    data, allowed = data_and_allowed_bytes(*shape, DENSITY)
    target = f"adds at most {allowed / MEGABYTE:.0f} MB to {data / MEGABYTE:.0f} MB of data"
    added, seconds = measure(name, shape, DENSITY)
    if added is None:
        return Measurement(float("nan"), target, False, note=str(seconds))
    return Measurement(seconds, target, added <= allowed, note=f"added {added / MEGABYTE:.0f} MB")


for _name in METHODS:
    for _label, _shape in SHAPES.items():
        job(f"sparse {_label}, {_name}")(partial(memory_of, _name, _shape))
