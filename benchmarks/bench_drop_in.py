"""RFE and RFECV with an estimator, against scikit-learn's classes of these names: one import line changed."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import RFE as ReferenceRFE
from sklearn.feature_selection import RFECV as ReferenceRFECV
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, RidgeClassifier
from sklearn.svm import SVC, SVR, LinearSVC

from harness import Measurement, against, job, load
from zeronorm import RFE, RFECV

TARGET = 10.0
SLOW_STEP = 0.1  # where scikit-learn takes more than a minute with one feature per round
# Name, estimator, number of classes (0: regression), step on the wide and on the tall data.
CASES: tuple[tuple[str, Any, int, float, float], ...] = (
    ("SVC, linear", SVC(kernel="linear"), 2, 1, SLOW_STEP),
    ("LinearSVC", LinearSVC(max_iter=10_000), 2, SLOW_STEP, 1),
    ("LinearSVC, hinge", LinearSVC(loss="hinge", max_iter=10_000), 2, SLOW_STEP, 1),
    ("LogisticRegression", LogisticRegression(max_iter=1000), 2, SLOW_STEP, 1),
    ("LogisticRegression, three classes", LogisticRegression(max_iter=1000), 3, SLOW_STEP, 1),
    ("RidgeClassifier", RidgeClassifier(), 2, 1, 1),
    ("Ridge", Ridge(), 0, 1, 1),
    ("LinearRegression", LinearRegression(), 0, 1, 1),
    ("SVR, linear", SVR(kernel="linear"), 0, 1, SLOW_STEP),
)
# Name, estimator, number of classes, data, step.
CROSS_VALIDATED: tuple[tuple[str, Any, int, str, float], ...] = (
    ("SVC, linear", SVC(kernel="linear"), 2, "colon 62x2000", 10),
    ("LinearSVC", LinearSVC(max_iter=10_000), 2, "colon 62x2000", SLOW_STEP),
    ("LogisticRegression", LogisticRegression(max_iter=1000), 2, "5000x50", 1),
    ("Ridge", Ridge(), 0, "5000x50", 1),
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


def _measure(classes: Any, X: np.ndarray, y: np.ndarray, **settings: Any) -> Measurement:
    """The first class against the second, with the same settings."""
    fitted: dict[Any, Any] = {}

    def run(cls: Any) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            fitted[cls] = cls(**settings).fit(X, y)

    ours, peer = classes
    measured = against(
        TARGET, lambda: run(ours), lambda: run(peer), f"scikit-learn's {peer.__name__}", repeat=5
    )
    rankings = fitted[ours].ranking_, fitted[peer].ranking_
    same = "the same ranking"
    if not np.array_equal(*rankings):
        same = f"ranks correlate {np.corrcoef(*rankings)[0, 1]:.4f}"
    if ours is RFECV:
        difference = np.abs(
            fitted[ours].cv_results_["mean_test_score"] - fitted[peer].cv_results_["mean_test_score"]
        )
        same += f", mean scores differ by up to {difference.max():.2g}"
    return Measurement(**{**measured.__dict__, "note": f"step={settings['step']:g}, {same}"})


def _enter(name: str, estimator: Any, n_classes: int, wide_step: float, tall_step: float) -> None:
    for data, step in (("colon 62x2000", wide_step), ("5000x50", tall_step)):
        settings = {"estimator": estimator, "n_features_to_select": 1, "step": step}
        _enter_one("rfe", (RFE, ReferenceRFE), name, n_classes, data, settings)


def _enter_one(
    method: str, classes: Any, name: str, n_classes: int, data: str, settings: dict[str, Any]
) -> None:
    @job(f"drop-in {method}, {name}, {data}")
    def measure() -> Measurement:
        X, y = (_colon if data.startswith("colon") else _tall)(n_classes)
        return _measure(classes, X, y, **settings)


for case in CASES:
    _enter(*case)
for name, estimator, n_classes, data, step in CROSS_VALIDATED:
    cv_settings = {"estimator": estimator, "step": step, "cv": 5}
    _enter_one("rfecv", (RFECV, ReferenceRFECV), name, n_classes, data, cv_settings)
