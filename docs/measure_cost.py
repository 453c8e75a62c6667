"""Processor time of single fits: the tables of the page on cost.

``python docs/measure_cost.py fits`` times fits on 200 samples and up to a million features;
``python docs/measure_cost.py cost`` compares ``C="auto"`` with the C that it has found, given as a number;
``python docs/measure_cost.py auto`` compares auto with the slowest of its candidates and with one fit of each.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    make_classification,
    make_regression,
)

from zeronorm import (
    AROM,
    FSV,
    L1SVM,
    RFE,
    AutoSelector,
    FisherScore,
    LogisticLasso,
    ZeroNormLogistic,
    ZeroNormSVM,
)
from zeronorm.selectors.meta._auto import names_of_candidates
from zeronorm.selectors.meta._consensus import default_candidates

FITS = (FisherScore, ZeroNormSVM, FSV, LogisticLasso, ZeroNormLogistic)
TUNED = (AROM, ZeroNormSVM, RFE, L1SVM)
SHAPES = ((62, 2000), (100, 20_000))


def draw(n_samples: int, n_features: int) -> tuple[np.ndarray, np.ndarray]:
    """Samples and classes: noise in single precision, 20 columns of it shifted between the classes."""
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


ENOUGH_SECONDS, MOST_REPEATS = 4.0, 5


def settled_seconds(selector: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Shortest processor time of one to five fits, as many as four seconds allow."""
    best, spent, n_fits = np.inf, 0.0, 0
    while n_fits == 0 or (n_fits < MOST_REPEATS and spent < ENOUGH_SECONDS):
        took = seconds(selector, X, y, 1)
        best, spent, n_fits = min(best, took), spent + took, n_fits + 1
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


def cost() -> None:
    for shape in SHAPES:
        X, y = draw(*shape)
        for method in TUNED:
            chosen = method(n_features_to_select=20).fit(X, y)
            given = method(n_features_to_select=20, C=chosen.C_)
            ratio = seconds(chosen, X, y, 3) / seconds(given, X, y, 3)
            print(f"{method.__name__}, {shape[0]} × {shape[1]}: {ratio:.1f} ×", flush=True)


def data_of_all_shapes() -> Iterator[tuple[str, np.ndarray, np.ndarray, str]]:
    """Yield the name, samples, target and task of each data set."""
    simulated: tuple[tuple[int, int, dict[str, Any]], ...] = (
        (40, 5000, {"n_informative": 10, "n_redundant": 5}),
        (62, 2000, {"n_informative": 10, "n_redundant": 5}),
        (100, 20_000, {"n_informative": 10, "n_redundant": 5}),
        (2000, 500, {"n_informative": 5, "n_redundant": 15, "n_clusters_per_class": 16, "flip_y": 0.01}),
        (5000, 60, {"n_informative": 10, "n_redundant": 5, "flip_y": 0.1}),
        (300, 3000, {"n_informative": 20, "n_redundant": 5, "n_classes": 5}),
    )
    for n, p, settings in simulated:
        yield f"{n} × {p}", *make_classification(n, p, random_state=0, **settings), "classification"
    yield "breast cancer", *load_breast_cancer(return_X_y=True), "classification"
    yield "digits", *load_digits(return_X_y=True), "classification"
    for n, p in ((100, 1000), (200, 2000)):
        made = make_regression(n, p, n_informative=10, noise=20, random_state=0)
        yield f"{n} × {p}, real target", *made, "regression"
    yield "diabetes", *load_diabetes(return_X_y=True), "regression"


def auto() -> None:
    for name, X, y, task in data_of_all_shapes():
        AutoSelector(task=task, cv=2, random_state=0).fit(X[:, :50], y)  # compiles
        total = settled_seconds(AutoSelector(task=task, random_state=0), X, y)
        kind = ("binary" if np.unique(y).size == 2 else "multiclass") if task == "classification" else task
        candidates = default_candidates(task, {}, names_of_candidates(kind))
        alone = [settled_seconds(selector, X, y) for _, selector in candidates]
        ratios = f"{total / max(alone):.1f} × the slowest method, {total / sum(alone):.1f} × all of them"
        print(f"{name}: {total:.2f} s, {ratios}", flush=True)


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        {"fits": fits, "cost": cost, "auto": auto}[sys.argv[1]]()
