"""Ordinary tables and the default constructor of every class: what a newcomer tries first.

Every class is fitted with its defaults on every table of its kinds of target. Right is a finite result that selects at
least one feature, or a warning that says why it selects none; a warning of convergence is a defect.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from fuzz.attempt import DOES_NOT_APPLY, RIGHT, WRONG, classified_error, classified_result
from fuzz.inputs import WORKS
from zeronorm.registry import MethodInfo, all_methods

NOT_CONVERGED, SELECTS_NOTHING, EMPTY_WITH_REASON = (
    "not converged",
    "selects nothing",
    "empty, with the reason",
)
N_INFORMATIVE = 3


@dataclass(frozen=True)
class Table:
    """``n`` samples with ``p`` features, the first three of which are ``shift`` standard deviations apart."""

    n: int
    p: int
    kind: str = "binary"  # as in the registry: binary, multiclass, regression
    shift: float = 2.0
    share: float = 0.5  # of the second class
    change: Callable[[np.ndarray, np.random.Generator], np.ndarray] = lambda X, rng: X
    target: Callable[[np.ndarray, np.random.Generator], np.ndarray] = lambda y, rng: y

    def make(self) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(self.n + self.p)
        X = rng.normal(size=(self.n, self.p))
        if self.kind == "regression":
            y = X[:, :N_INFORMATIVE] @ [2.0, -1.5, 1.0] + 0.5 * rng.normal(size=self.n)
            return self.change(X, rng), self.target(y, rng)
        if self.kind == "multiclass":
            y = np.arange(self.n) % 3
            X[:, :N_INFORMATIVE] += self.shift * np.eye(3)[y]
        else:
            y = (np.arange(self.n) < round(self.share * self.n)).astype(int)
            X[:, :N_INFORMATIVE] += self.shift * y[:, None] * [1.0, -1.0, 0.7]
        return self.change(X, rng), y


def _other_units(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Micrometres beside populations, with offsets as of years."""
    return X * np.logspace(-6, 6, X.shape[1]) + rng.normal(size=X.shape[1]) * 100 * np.logspace(
        -6, 6, X.shape[1]
    )


def _one_hot(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Three columns of zeros and ones for each column: low, middle, high."""
    levels = np.digitize(X, [-0.5, 0.5])
    return np.concatenate([levels == level for level in range(3)], axis=1).astype(float)


def _outliers(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    X = X.copy()
    X[rng.integers(len(X), size=5), rng.integers(X.shape[1], size=5)] = 100.0
    return X


def _counts(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Counts, most of them zero."""
    return rng.poisson(np.exp(X - 1.5)).astype(float)


def _correlated(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Pairs of columns that are nearly the same."""
    return X[:, np.arange(X.shape[1]) // 2] + 0.05 * rng.normal(size=X.shape)


TABLES: dict[str, Table] = {
    "small": Table(20, 5),
    "20 x 2000": Table(20, 2000),
    "clear": Table(60, 8, shift=4.0),
    "12 sd apart": Table(80, 12, shift=12.0),
    "weak overlap": Table(100, 20, shift=0.8),
    "wide": Table(60, 500),
    "wide, weak": Table(60, 500, shift=1.0),
    "tall": Table(500, 10),
    "tall, weak": Table(500, 20, shift=0.5),
    "500 x 2000": Table(500, 2000, shift=1.0),
    "imbalance": Table(200, 20, share=0.1),
    "imbalance, wide": Table(100, 300, share=0.15),
    "other units": Table(100, 20, change=_other_units),
    "one-hot": Table(120, 8, change=_one_hot),
    "one-hot, wide": Table(80, 100, change=_one_hot),
    "outliers": Table(100, 20, change=_outliers),
    "counts": Table(150, 100, change=_counts),
    "correlated": Table(100, 40, change=_correlated),
    "three classes": Table(90, 15, "multiclass"),
    "three classes, wide": Table(60, 1000, "multiclass", shift=3.0),
    "real": Table(100, 20, "regression"),
    "real, wide": Table(60, 400, "regression"),
    "real, money": Table(150, 30, "regression", target=lambda y, rng: 5e4 + 1e4 * y),
    "real, outliers": Table(
        100, 20, "regression", target=lambda y, rng: y + 30.0 * (rng.random(y.size) < 0.03)
    ),
}


def methods() -> dict[str, MethodInfo]:
    """All classes that fit a target."""
    return {m.cls.__name__: m for kind in ("selector", "meta", "model") for m in all_methods(kind)}


def default(method: MethodInfo, table: Table) -> Any:
    """The default estimator of this method for this table, or None where it is for other targets."""
    if table.kind not in method.tasks:
        return None
    estimator = method.cls()
    names = estimator.get_params(deep=False)
    if table.kind == "regression" and "selector" in names:
        return None  # the wrapped selector has the task, and its default is for classes
    if "random_state" in names:
        estimator.set_params(random_state=0)
    if table.kind == "regression" and "task" in names:
        estimator.set_params(task="regression")
    return estimator


def attempt_default(class_name: str, table_name: str) -> tuple[str, str]:
    """Outcome of one fit with defaults, and what was seen."""
    table = TABLES[table_name]
    estimator = default(methods()[class_name], table)
    if estimator is None:
        return DOES_NOT_APPLY, ""
    X, y = table.make()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            estimator.fit(X, y)
        except Exception as error:
            return classified_error(error, WORKS)
    texts = [f"{type(w.message).__name__}: {w.message}" for w in said]
    if any(issubclass(w.category, ConvergenceWarning) for w in said):
        return NOT_CONVERGED, "; ".join(texts)
    if not hasattr(estimator, "path_"):
        finite = np.all(np.isfinite(np.asarray(estimator.predict(X), dtype=float)))
        return (RIGHT, "") if finite else (WRONG, "predictions that are not finite")
    if not estimator.support_.any() or any("selects no feature" in text for text in texts):
        return (EMPTY_WITH_REASON if texts else SELECTS_NOTHING), "; ".join(texts)
    return classified_result(estimator)
