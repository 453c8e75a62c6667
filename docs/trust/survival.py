"""Simulate what is printed about times to an event: intervals of the concordance, and the test of the risk groups.

``python docs/trust/survival.py [data sets]`` writes survival.csv, a line as soon as each setting is finished. Five
features of 200 are selected by their score in Cox's model in each fold, then ridge Cox regression is fitted. Times are
exponential with log hazards of variance ``signal``² from ten independent normal features, and censored at uniform
times. The true concordance of a fitted model is that of two million new pairs with the same correlation between the
predicted and the true log hazards.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed

from zeronorm import CoxScore
from zeronorm.evaluation._risk_groups import risk_groups
from zeronorm.evaluation.significance import metric_interval
from zeronorm.resampling._metrics import METRICS
from zeronorm.resampling._splits import make_splits
from zeronorm.resampling.predictors._default import default_estimator
from zeronorm.resampling.survival._concordance import concordance
from zeronorm.selection.target import TimeToEvent
from zeronorm.selection.target._event_columns import EVENT_AND_TIME

N_FEATURES, N_KEPT, N_INFORMATIVE = 200, 5, 10
N_PAIRS, GRID = 20_000, np.linspace(-1.0, 1.0, 21)
LEVEL = 0.05
# Samples, share of censored samples, standard deviation of the log hazards, folds, repeats.
SETTINGS = (
    (50, 0.3, 0.0, 5, 1),
    (100, 0.3, 0.0, 5, 1),
    (100, 0.7, 0.0, 5, 1),
    (100, 0.3, 0.0, 10, 1),
    (300, 0.5, 0.0, 5, 1),
    (100, 0.3, 0.0, 5, 3),
    (100, 0.3, 1.0, 5, 1),
    (100, 0.7, 1.0, 5, 1),
    (100, 0.3, 2.0, 5, 1),
    (100, 0.3, 2.0, 10, 1),
    (300, 0.5, 1.0, 5, 1),
    (300, 0.5, 2.0, 5, 1),
    (100, 0.3, 2.0, 5, 3),
)


def times_of(log_hazard: np.ndarray, censored: float, rng: np.random.Generator) -> np.ndarray:
    """Events and times; the end of the uniform censoring is set so that about this share is censored."""
    time = rng.exponential(np.exp(-log_hazard))
    longest = _end_of_study(time, censored)
    end = rng.uniform(0.0, longest, size=time.size)
    y = np.empty(time.size, dtype=EVENT_AND_TIME)
    y["event"], y["time"] = time <= end, np.minimum(time, end)
    return y


def _end_of_study(time: np.ndarray, censored: float) -> float:
    """The length for which the mean chance that a uniform censoring comes first is ``censored``."""
    low, high = 1e-6, 1e6
    for _ in range(100):
        middle = np.sqrt(low * high)
        low, high = (low, middle) if np.minimum(time / middle, 1.0).mean() < censored else (middle, high)
    return float(np.sqrt(low * high))


def true_concordances(signal: float, censored: float, seed: int) -> np.ndarray:
    """The concordance of predictions with each correlation of ``GRID`` with the true log hazards."""
    rng = np.random.default_rng(seed)
    truth, noise = signal * rng.normal(size=N_PAIRS), rng.normal(size=N_PAIRS)
    y = times_of(truth, censored, rng)
    unit = truth / signal if signal else rng.normal(size=N_PAIRS)
    return np.asarray([concordance(y, r * unit + np.sqrt(1 - r * r) * noise) for r in GRID])


def one_data_set(setting: tuple, truth: np.ndarray, seed: int) -> tuple[float, ...]:
    """The estimate, whether the interval covers, its width, and the p-value of the risk groups."""
    n, censored, signal, folds, repeats = setting
    rng = np.random.default_rng(seed)
    weights = np.zeros(N_FEATURES)
    weights[:N_INFORMATIVE] = signal / np.sqrt(N_INFORMATIVE)
    X = rng.normal(size=(n, N_FEATURES))
    y = times_of(X @ weights, censored, rng)
    rows, true = [], []
    for split in make_splits(folds, y, None, target=TimeToEvent, seed=seed, repeats=repeats):
        kept = CoxScore(N_KEPT).fit(X[split.train], y[split.train]).get_support(indices=True)
        model = default_estimator(TimeToEvent, n_samples=n).fit(X[split.train][:, kept], y[split.train])
        risk = model.predict(X[split.test][:, kept])
        correlation = model.coef_ @ weights[kept] / (np.linalg.norm(model.coef_) * signal) if signal else 0.0
        true.append(np.interp(correlation, GRID, truth))
        rows.append(
            {
                "truth": y[split.test],
                "predictions": risk,
                "test_rows": split.test,
                "n_test": split.test.size,
                "n_train": split.train.size,
                "concordance": concordance(y[split.test], risk),
            }
        )
    low, high = metric_interval(METRICS["concordance"], rows)
    groups = risk_groups(rows)
    estimate = float(np.mean([row["concordance"] for row in rows]))
    return (
        estimate,
        float(low <= np.mean(true) <= high),
        high - low,
        groups.test.p_value,
        float(np.mean(true)),
    )


def main(draws: int) -> None:
    """Write a line for each setting."""
    names = ("n", "censored", "signal", "folds", "repeats", "data_sets")
    found = ("concordance", "true", "covers", "width", "risk_groups_below_0.05")
    with (Path(__file__).parent / "survival.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*names, *found])
        for number, setting in enumerate(SETTINGS):
            truth = true_concordances(setting[2], setting[1], number)
            rows = np.asarray(
                Parallel(n_jobs=2)(
                    delayed(one_data_set)(setting, truth, 1000 * number + s) for s in range(draws)
                )
            )
            estimate, covers, width, p_value, true = rows.T
            figures = (estimate.mean(), true.mean(), covers.mean(), width.mean(), np.mean(p_value <= LEVEL))
            writer.writerow([*setting, draws, *(f"{value:.3f}" for value in figures)])
            file.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
