"""Measure what every method selects on one toy problem, for the pictures on the method pages.

``python docs/toy/measure.py`` writes ``selected.csv`` (share of the draws in which each feature was selected) and
``errors.csv`` (test errors of the models, which select no features). ``python docs/toy/measure.py rfe arom``
measures these methods again and leaves the other rows as they are.
"""

from __future__ import annotations

import csv
import datetime
import inspect
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.svm import SVC, SVR

from zeronorm import FisherScore
from zeronorm.registry import MethodInfo, all_methods

HERE = Path(__file__).parent
# Groups of features by their effect on the target, and the index after the last feature of each group.
PARTS = {"strong to weak": 3, "near copies of them": 6, "act only together": 8, "noise": 30}
N_SAMPLES, N_FEATURES, N_SELECTED, N_DRAWS = 100, 30, 5, 20
DECIDES_ITSELF = (
    "auto",
    "dummy-selector",
    "knockoff-selector",
    "probe-selector",
    "selector-cv",
    "stability-selection",
)
# Methods whose default raises an error here: a hard margin needs classes that do not overlap.
SETTINGS = {"margin-lp": {"C": 1.0}}


def draw(seed: int, n_samples: int) -> tuple[np.ndarray, np.ndarray]:
    """Samples and a real-valued target; its sign gives the classes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, N_FEATURES))
    X[:, 3:6] = 0.9 * X[:, :3] + np.sqrt(1 - 0.81) * X[:, 3:6]
    return X, 1.5 * X[:, 0] + X[:, 1] + 0.7 * X[:, 2] + 2.0 * X[:, 6] * X[:, 7] + rng.normal(size=n_samples)


def instance(method: MethodInfo, seed: int) -> Any:
    """The method with its default settings, around the Fisher score where it wraps a selector."""
    parameters = inspect.signature(method.cls).parameters
    settings: dict[str, Any] = {"random_state": seed} if "random_state" in parameters else {}
    settings |= SETTINGS.get(method.name, {})
    if "selector" in parameters and parameters["selector"].default is inspect.Parameter.empty:
        settings["selector"] = FisherScore()
    return method.cls(**settings)


def share_selected(method: MethodInfo) -> list[float]:
    """For each feature, the share of the draws in which it was selected."""
    count = np.zeros(N_FEATURES)
    for seed in range(N_DRAWS):
        X, target = draw(seed, N_SAMPLES)
        is_regression = method.tasks == ("regression",)
        selector = instance(method, seed).fit(X, target if is_regression else target > 0)
        chosen = selector.support_ if method.name in DECIDES_ITSELF else selector.path_.support(N_SELECTED)
        count[chosen] += 1
    return [float(value) for value in count / N_DRAWS]


def test_errors(method: MethodInfo) -> list[list[float]]:
    """Test errors of the model and of scikit-learn's SVM, one for each draw."""
    is_regression = "regression" in method.tasks
    errors: list[list[float]] = [[], []]
    for seed in range(N_DRAWS):
        X, target = draw(seed, N_SAMPLES + 1000)
        y = target if is_regression else target > 0
        for index, model in enumerate([instance(method, seed), SVR() if is_regression else SVC()]):
            model.fit(X[:N_SAMPLES], y[:N_SAMPLES])
            errors[index].append(1.0 - float(model.score(X[N_SAMPLES:], y[N_SAMPLES:])))
    return errors


def write(name: str, rows: dict[str, list[Any]]) -> None:
    """Merge the rows into a table; every row has its date."""
    file = HERE / name
    old = {row[0]: row for row in csv.reader(file.open(encoding="utf-8"))} if file.exists() else {}
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    merged = old | {key: [key, today, *values] for key, values in rows.items()}
    with file.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream, lineterminator="\n").writerows(merged[key] for key in sorted(merged))


def main(names: list[str]) -> None:
    for method in all_methods():
        if method.kind == "transformer" or (names and method.name not in names):
            continue
        started = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if method.kind == "model":
                ours, peers = test_errors(method)
                rows = {
                    method.name: [round(e, 4) for e in ours],
                    f"{method.name} peer": [round(e, 4) for e in peers],
                }
                write("errors.csv", rows)
            else:
                write("selected.csv", {method.name: share_selected(method)})
        print(f"{method.name}: {time.process_time() - started:.1f} s", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
