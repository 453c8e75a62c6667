"""How often the error found with all samples is in the interval predicted from half of them.

Run ``python docs/trust/learning_curves.py``; the table is written to ``docs/trust/learning_curves.csv``. Known data
sets that are not embedded are read from the folder named by ``ZERONORM_DATA``.

From each data set up to ``MOST_SAMPLES`` samples are drawn. A learning curve is fitted to a random half of them, and
the value with twice as many samples is predicted. The value found is the mean of the same metric with all of them, on
as many draws of the folds. The ten features with the largest Fisher score are selected on the training samples of each
fold (all features where there are fewer than 15).
"""

from __future__ import annotations

import argparse
import csv
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from zeronorm import FisherScore, evaluate, learning_curve
from zeronorm.datasets import load_dataset
from zeronorm.evaluation.learning._answer import LearningCurve
from zeronorm.evaluation.learning._curve import DRAWS
from zeronorm.resampling._metrics import as_metric
from zeronorm.resampling._splits import Split, make_splits, take_rows
from zeronorm.selection.target import TASKS

KNOWN = (
    "t-cells", "blood-cells", "coffee-spectra", "breast-cancer", "diabetes", "digits", "wine", "arcene",
    "breast_cancer_wisconsin_original", "colon", "dexter", "gisette_train_first1000", "ionosphere", "lung_gordon",
    "madelon", "mit_cbcl_faces", "prostate_seldi_binned", "sonar", "spambase", "titanic", "twonorm",
)  # fmt: skip
MOST_SAMPLES, KEPT, FEWEST_COLUMNS = 400, 10, 15
HALVES = 2  # of each data set
COLUMNS = (
    "data set", "samples", "features", "metric", "half", "now", "predicted", "low", "high", "found", "covered",
    "verdict", "improved",
)  # fmt: skip


def shifted(n: int, p: int, informative: int, shift: float, seed: int) -> tuple[Any, Any, str]:
    """Two classes whose means differ in some of the features."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % 2)
    X = rng.normal(size=(n, p))
    X[:, :informative] += shift * y[:, None]
    return X, y, "classification"


def linear(n: int, p: int, informative: int, noise: float, seed: int) -> tuple[Any, Any, str]:
    """A real target."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return X, X[:, :informative].sum(axis=1) + noise * rng.normal(size=n), "regression"


SIMULATED: dict[str, Callable[[int], tuple[Any, Any, str]]] = {
    "10 of 200, weak": lambda seed: shifted(120, 200, 10, 0.5, seed),
    "10 of 2000, weak": lambda seed: shifted(200, 2000, 10, 0.6, seed),
    "3 of 1000, strong": lambda seed: shifted(100, 1000, 3, 1.5, seed),
    "40 of 500, weak": lambda seed: shifted(160, 500, 40, 0.4, seed),
    "no relation": lambda seed: shifted(120, 500, 1, 0.0, seed),
    "1 of 100, unbalanced": lambda seed: _unbalanced(seed),
    "5 of 300, real target": lambda seed: linear(120, 300, 5, 2.0, seed),
    "10 of 1000, real target": lambda seed: linear(200, 1000, 10, 1.0, seed),
    "2 of 50, real target": lambda seed: linear(80, 50, 2, 1.0, seed),
    "real target, no relation": lambda seed: linear(100, 100, 1, 100.0, seed),
}


def _unbalanced(seed: int) -> tuple[Any, Any, str]:
    rng = np.random.default_rng(seed)
    y = rng.permutation((np.arange(200) % 5 == 0).astype(int))
    X = rng.normal(size=(200, 100))
    X[:, 0] += 1.5 * y
    return X, y, "classification"


def known(name: str, rng: np.random.Generator) -> tuple[Any, Any, str]:
    """A known data set, or a part of its samples with at least 20 of each class."""
    table = load_dataset(name)
    y, rows = table.y, np.arange(table.n_samples)
    if table.task == "classification":
        classes, counts = np.unique(y, return_counts=True)
        rows = np.flatnonzero(np.isin(y, classes[counts >= 20]))
    rows = np.sort(rng.permutation(rows)[:MOST_SAMPLES])
    return take_rows(table.X, rows), y[rows], table.task


def selector_for(n_features: int, task: str) -> Any:
    """The procedure."""
    return FisherScore(KEPT if n_features >= FEWEST_COLUMNS else n_features, task=task)


def found_with_all(X: Any, y: Any, task: str, metric: str, seed: int) -> float:
    """The metric with all samples, on as many draws of the folds as a learning curve has."""
    splits: list[Split] = []
    for draw in range(DRAWS):
        parts = make_splits(5, y, None, target=TASKS[task], seed=seed + draw, least_per_fold=1)
        splits += [Split(len(splits) + i, part.train, part.test) for i, part in enumerate(parts)]
    records = evaluate(
        selector_for(X.shape[1], task), X, y, cv=splits, metrics=metric, task=task, random_state=seed
    )
    return float(np.mean(records[metric].to_numpy()))


def half_of(y: Any, task: str, rng: np.random.Generator) -> Any:
    """A random half with the same mix of classes."""
    order = rng.permutation(len(y))
    if task == "classification":
        order = order[np.argsort(y[order], kind="stable")]
        return np.sort(order[int(rng.integers(2)) :: 2])
    return np.sort(order[::2])


def rows_of(name: str, seed: int, metric: str | None = None) -> Iterator[dict[str, Any]]:
    """The rows of one data set."""
    rng = np.random.default_rng([seed, len(name)])
    for half in range(HALVES):
        X, y, task = SIMULATED[name](1000 * seed + half) if name in SIMULATED else known(name, rng)
        metric = metric or ("balanced_error_rate" if task == "classification" else "mse")
        part = half_of(y, task, rng)
        curve = learning_curve(
            selector_for(X.shape[1], task),
            take_rows(X, part),
            y[part],
            task=task,
            metric=metric,
            random_state=seed + half,
        )
        found = found_with_all(X, y, task, metric, 100 + seed + half)
        yield row(name, X.shape, half, curve, found)


def row(name: str, shape: tuple[int, int], half: int, curve: LearningCurve, found: float) -> dict[str, Any]:
    """One row: what was predicted, and what was found."""
    twice, better = curve.predictions[0], as_metric(curve.metric).score
    values = (
        name, *shape, curve.metric, half,
        *(float(f"{v:.4g}") for v in (curve.now, twice.value, twice.low, twice.high, found)),
        int(twice.low <= found <= twice.high), curve.verdict, int(better(found) > better(curve.points[-1].value)),
    )  # fmt: skip
    return dict(zip(COLUMNS, values, strict=True))


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".csv"))
    given = parser.parse_args()
    covered, rows = [], 0
    with given.out.open("w", encoding="utf-8", newline="") as stream, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        writer = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for name in (*KNOWN, *SIMULATED):
            for found in rows_of(name, given.seed):
                writer.writerow(found)
                covered.append(found["covered"])
                print(*found.values(), flush=True)
            rows += 1
    print(f"{rows} data sets, {len(covered)} halves: {100 * np.mean(covered):.1f} % covered")


if __name__ == "__main__":
    main()
