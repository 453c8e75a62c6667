"""Simulate StabilitySelection(bound="integrated"): false discoveries, expected false selections and power.

``python docs/trust/integrated.py [draws]`` writes integrated.csv, a line as soon as each setting is finished.
"Irrelevant" is a feature with coefficient zero, also if it is correlated with a relevant one.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed

from zeronorm import LassoSelector, StabilitySelection

LEVEL = 0.2
SIGNAL_TO_NOISE = 2.0  # ratio of variances
# Columns, target, samples, features, relevant features, samples per patient.
SETTINGS = (
    ("independent", "classes", 100, 200, 10, 1),
    ("independent", "real", 100, 200, 10, 1),
    ("autoregressive 0.9", "classes", 100, 200, 10, 1),
    ("blocks of ten 0.7", "real", 100, 200, 10, 1),
    ("five factors", "real", 100, 200, 10, 1),
    ("independent", "classes", 50, 100, 0, 1),
    ("independent", "classes", 64, 100, 0, 4),
    ("autoregressive 0.9", "real", 200, 100, 5, 1),
    ("independent", "real", 50, 1000, 5, 1),
    ("five factors", "classes", 300, 500, 10, 1),
)


def columns(kind: str, n: int, p: int, rng: np.random.Generator) -> np.ndarray:
    """Columns of unit variance."""
    X = rng.normal(size=(n, p))
    if kind.startswith("autoregressive"):
        for j in range(1, p):
            X[:, j] = 0.9 * X[:, j - 1] + np.sqrt(1 - 0.81) * X[:, j]
    elif kind.startswith("blocks"):
        X = np.sqrt(0.7) * np.repeat(rng.normal(size=(n, p // 10)), 10, axis=1) + np.sqrt(0.3) * X
    elif kind.startswith("five"):
        X = X + rng.normal(size=(n, 5)) @ rng.normal(size=(5, p)) / np.sqrt(5)
    return (X - X.mean(axis=0)) / X.std(axis=0)


def one_draw(setting: tuple, n_permutations: int, seed: int) -> tuple[float, float, float, float]:
    """False discovery proportion and power at the level; false ones and power at one expected false selection."""
    kind, target, n, p, k, repeats = setting
    rng = np.random.default_rng(seed)
    X = columns(kind, n, p, rng)
    relevant = np.isin(np.arange(p), rng.choice(p, k, replace=False))
    effect = X @ np.where(relevant, rng.choice([-1, 1], p) * rng.uniform(0.5, 1, p), 0.0)
    effect *= np.sqrt(SIGNAL_TO_NOISE) / max(effect.std(), 1e-12)
    y = effect + rng.normal(size=n)
    groups = None
    if repeats > 1:  # patients differ in every feature, and have one label each
        groups = np.repeat(np.arange(n // repeats), repeats)
        X = X + 2.0 * rng.normal(size=(n // repeats, p))[groups]
        y = rng.permutation(np.arange(n // repeats) % 2)[groups] - 0.5
    selector = LassoSelector(method="lars", task="regression" if target == "real" else "classification")
    fitted = StabilitySelection(
        selector, bound="integrated", level=LEVEL, n_permutations=n_permutations, random_state=seed
    ).fit(X, y if target == "real" else y > np.median(y), groups=groups)
    first = fitted.path_.order[: int(np.sum(fitted.n_false_expected_ <= 1.0))]
    kept = fitted.support_
    return (
        float(np.sum(kept & ~relevant) / max(1, kept.sum())),
        float(np.sum(kept & relevant) / max(1, k)),
        float(np.sum(~relevant[first])),
        float(np.sum(relevant[first]) / max(1, k)),
    )


def main(draws: int) -> None:
    """Write a line for each setting and bound."""
    names = (
        "columns", "target", "n", "p", "relevant", "samples_per_patient", "permutations", "draws", "level",
        "fdr", "fdr_se", "power", "false_at_1", "false_at_1_se", "power_at_1",
    )  # fmt: skip
    with (Path(__file__).parent / "integrated.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(names)
        for setting in SETTINGS:
            for n_permutations in (2, 0):
                rows = np.array(
                    Parallel(n_jobs=2)(delayed(one_draw)(setting, n_permutations, s) for s in range(draws))
                )
                mean, se = rows.mean(axis=0), rows.std(axis=0, ddof=1) / np.sqrt(draws)
                found = (mean[0], se[0], mean[1], mean[2], se[2], mean[3])
                writer.writerow(
                    [*setting, n_permutations, draws, LEVEL, *(f"{value:.3f}" for value in found)]
                )
                file.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
