"""Processor time of single fits: the tables of the page on cost.

``python docs/measure_cost.py fits`` times fits on 200 samples and up to a million features;
``python docs/measure_cost.py price`` compares ``C="auto"`` with the C that it has found, given as a number.
"""

from __future__ import annotations

import sys
import time
import warnings
from typing import Any

import numpy as np

from zeronorm import AROM, FSV, L1SVM, RFE, FisherScore, LogisticLasso, ZeroNormLogistic, ZeroNormSVM

FITS = (FisherScore, ZeroNormSVM, FSV, LogisticLasso, ZeroNormLogistic)
PRICED = (AROM, ZeroNormSVM, RFE, L1SVM)
SHAPES = ((62, 2000), (100, 20_000))


def draw(n_samples: int, n_features: int) -> tuple[np.ndarray, np.ndarray]:
    """Columns of noise in single precision, 20 of them shifted between the classes."""
    rng = np.random.default_rng(0)
    y = np.arange(n_samples) % 2
    X = rng.standard_normal((n_samples, n_features), dtype=np.float32)
    X[:, :20] += y[:, None]
    return X, y


def seconds(selector: Any, X: np.ndarray, y: np.ndarray, repeats: int) -> float:
    """Shortest processor time of a fit, all threads together."""
    best = np.inf
    for _ in range(repeats):
        started = time.process_time()
        selector.fit(X, y)
        best = min(best, time.process_time() - started)
    return float(best)


def fits() -> None:
    small = draw(200, 1000)
    for n_features in (10_000, 100_000, 1_000_000):
        X, y = draw(200, n_features)
        for method in FITS:
            method(20).fit(*small)  # compiles
            repeats = 3 if n_features <= 100_000 else 1
            print(
                f"{method.__name__}, 200 × {n_features}: {seconds(method(20), X, y, repeats):.2f} s",
                flush=True,
            )


def price() -> None:
    for shape in SHAPES:
        X, y = draw(*shape)
        for method in PRICED:
            chosen = method(n_features_to_select=20).fit(X, y)
            given = method(n_features_to_select=20, C=chosen.C_)
            ratio = seconds(chosen, X, y, 3) / seconds(given, X, y, 3)
            print(f"{method.__name__}, {shape[0]} × {shape[1]}: {ratio:.1f} ×", flush=True)


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        {"fits": fits, "price": price}[sys.argv[1]]()
