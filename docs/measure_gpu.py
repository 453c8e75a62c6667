"""Measure how much data each selector copies from a GPU to the host: the column "GPU" of the table of methods.

``python docs/measure_gpu.py`` fits every selector on an array of the array API standard, counts the numbers of
the data that are copied to the host (results do not count) and writes the count, divided by the size of the data, to
docs/gpu.csv.
"""

from __future__ import annotations

import csv
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from zeronorm.design import _array_api as array_api
from zeronorm.design import _base as base
from zeronorm.registry import MethodInfo, all_methods

FILE = Path(__file__).parent / "gpu.csv"
N_SAMPLES, N_FEATURES = 40, 1600
SMALL_COPY_BYTES = 32 << 10  # in the same proportion to these data as the real limit is to large ones


@contextmanager
def values_copied_to_host(kind: type) -> Iterator[list[int]]:
    """Record the sizes of data copied to the host, as blocks of a design or as a whole array."""
    sizes: list[int] = []
    fill, whole = array_api.ArrayApiDesign._fill, kind.__array__  # type: ignore[attr-defined]

    def counted_fill(self: Any, columns: Any, out: Any) -> None:
        sizes.append(out.size)
        fill(self, columns, out)

    def counted_whole(self: Any, *args: Any, **options: Any) -> Any:
        if self.shape == (N_SAMPLES, N_FEATURES):
            sizes.append(self.size)
        return whole(self, *args, **options)

    with (
        mock.patch.object(array_api.ArrayApiDesign, "_fill", counted_fill),
        mock.patch.object(kind, "__array__", counted_whole),
        mock.patch.object(array_api, "_HOST_WORK", 0),
        mock.patch.object(array_api, "SMALL_COPY_BYTES", SMALL_COPY_BYTES),
        mock.patch.object(base, "SMALL_COPY_BYTES", SMALL_COPY_BYTES),
    ):
        yield sizes


def readings(method: MethodInfo) -> float:
    """How often all data are copied to the host while a selector with its defaults selects ten features."""
    import array_api_strict

    rng = np.random.default_rng(0)
    y = np.arange(N_SAMPLES) % 2
    X = rng.normal(size=(N_SAMPLES, N_FEATURES))
    X[:, :5] += 1.5 * y[:, None]
    selector = method.cls()
    known = selector.get_params(deep=False)
    chosen = {"n_features_to_select": 10, "random_state": 0}
    selector.set_params(**{name: value for name, value in chosen.items() if name in known})
    array = array_api_strict.asarray(X)
    with values_copied_to_host(type(array)) as sizes, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        selector.fit(array, y)
    return sum(sizes) / X.size


def main() -> None:
    with FILE.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["method", "readings"])
        for method in all_methods("selector"):
            found = readings(method)
            print(f"{method.name}: {found:.3f}", flush=True)
            writer.writerow([method.name, f"{found:.3f}"])


if __name__ == "__main__":
    main()
