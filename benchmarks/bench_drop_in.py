"""RFE with an estimator of scikit-learn, against scikit-learn's class of that name: one import line changed."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import RFE as ReferenceRFE
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, RidgeClassifier
from sklearn.svm import SVC, SVR, LinearSVC

from harness import Measurement, against, job, load
from zeronorm import RFE

TARGET = 10.0
SLOW_STEP = 0.1  # where scikit-learn takes more than a minute with one feature per round
# Name, estimator, number of classes (0: regression), step on the wide and on the tall data.
CASES: tuple[tuple[str, Any, int, float, float], ...] = (
    ("SVC, linear", SVC(kernel="linear"), 2, 1, SLOW_STEP),
    ("LinearSVC", LinearSVC(max_iter=10_000), 2, SLOW_STEP, 1),
    ("LogisticRegression", LogisticRegression(max_iter=1000), 2, SLOW_STEP, 1),
    ("LogisticRegression, three classes", LogisticRegression(max_iter=1000), 3, SLOW_STEP, 1),
    ("RidgeClassifier", RidgeClassifier(), 2, 1, 1),
    ("Ridge", Ridge(), 0, 1, 1),
    ("LinearRegression", LinearRegression(), 0, 1, 1),
    ("SVR, linear", SVR(kernel="linear"), 0, 1, SLOW_STEP),
)


def _colon(n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Tumours against normal tissue; for other targets the sum of five genes, with noise."""
    X, y = load("colon")
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    if n_classes == 2:
        return X, y
    values = X[:, :5].sum(axis=1) + np.random.default_rng(0).normal(size=len(X))
    return X, values if n_classes == 0 else np.digitize(values, [-1.5, 1.5])


def _tall(n_classes: int, n_samples: int = 5000) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_samples, 50))
    weights = rng.normal(size=50) * (rng.random(50) < 0.4)
    values = X @ weights + 2.0 * rng.normal(size=n_samples)
    return X, values if n_classes == 0 else np.digitize(values, [0.0] if n_classes == 2 else [-1.5, 1.5])


def _measure(estimator: Any, X: np.ndarray, y: np.ndarray, step: float) -> Measurement:
    rankings = {}

    def run(cls: Any) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            rankings[cls] = cls(estimator, n_features_to_select=1, step=step).fit(X, y).ranking_

    measured = against(TARGET, lambda: run(RFE), lambda: run(ReferenceRFE), "scikit-learn's RFE")
    agree = float(np.corrcoef(rankings[RFE], rankings[ReferenceRFE])[0, 1])
    same = (
        "the same ranking"
        if np.array_equal(rankings[RFE], rankings[ReferenceRFE])
        else f"ranks correlate {agree:.4f}"
    )
    return Measurement(**{**measured.__dict__, "note": f"step={step:g}, {same}"})


def _enter(name: str, estimator: Any, n_classes: int, wide_step: float, tall_step: float) -> None:
    @job(f"drop-in rfe, {name}, colon 62x2000")
    def wide() -> Measurement:
        return _measure(estimator, *_colon(n_classes), wide_step)

    @job(f"drop-in rfe, {name}, 5000x50")
    def tall() -> Measurement:
        return _measure(estimator, *_tall(n_classes), tall_step)


for case in CASES:
    _enter(*case)
