"""The 400 settings of ``discovery_rates.py``: columns, sizes, target, samples per patient, and their data sets.

Half of the settings have independent samples, the other half three to five samples of each patient. Relevant are k
columns with random signs and weights of 0.5 to 1; every other column counts as false, also if it is correlated with
a relevant one. The signal-to-noise ratio is a ratio of variances.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

import numpy as np

from zeronorm.datasets import load_dataset

# Samples, features, relevant features, signal-to-noise ratio.
SIZES = (
    (50, 100, 5, 2.0),
    (100, 200, 10, 1.0),
    (100, 1000, 5, 5.0),
    (200, 500, 10, 0.5),
    (200, 1000, 10, 2.0),
    (300, 3000, 20, 5.0),
    (500, 500, 30, 1.0),
    (1000, 1000, 50, 0.5),
    (500, 10_000, 20, 2.0),
    (300, 100_000, 10, 5.0),
)
# Real measurements, with the same four numbers.
REAL_SIZES = (
    ("colon", 62, 100, 5, 2.0),
    ("colon", 62, 500, 5, 5.0),
    ("colon", 62, 2000, 5, 5.0),
    ("lymphoma", 96, 300, 5, 2.0),
    ("lymphoma", 96, 1000, 10, 5.0),
    ("lymphoma", 96, 4000, 5, 5.0),
    ("t-cells", 122, 150, 5, 1.0),
    ("t-cells", 122, 300, 10, 2.0),
    ("t-cells", 122, 700, 10, 5.0),
    ("lung_gordon", 100, 200, 5, 5.0),
    ("lung_gordon", 181, 100, 10, 0.5),
    ("lung_gordon", 181, 300, 20, 1.0),
    ("lung_gordon", 181, 1000, 10, 2.0),
    ("lung_gordon", 181, 4000, 10, 5.0),
    ("lung_gordon", 181, 12_000, 10, 5.0),
    ("blood-cells", 200, 200, 10, 1.0),
    ("blood-cells", 300, 500, 20, 2.0),
    ("blood-cells", 500, 300, 20, 0.5),
    ("blood-cells", 700, 150, 20, 0.5),
    ("blood-cells", 700, 700, 50, 1.0),
)
BETWEEN = 0.7  # share of the variance of a column that lies between patients
OF_PATIENT = 0.5  # share of the noise of a real target that the samples of a patient have in common

Columns = Callable[[int, int, np.random.Generator], np.ndarray]


@dataclass(frozen=True)
class Setting:
    """One kind of data: where the columns come from, the sizes, the target, and whether patients are repeated."""

    columns: str
    n: int
    p: int
    relevant: int
    snr: float
    is_class: bool
    is_repeated: bool

    @property
    def is_real(self) -> bool:
        """Whether the columns are measurements."""
        return self.columns not in COLUMNS


@dataclass(frozen=True)
class DataSet:
    """One draw of a setting."""

    X: np.ndarray
    y: np.ndarray
    groups: np.ndarray | None
    relevant: np.ndarray


def settings() -> list[Setting]:
    """All settings, always in the same order."""
    simulated = [(kind, *size) for kind, size in product(COLUMNS, SIZES)]
    return [
        Setting(*one, is_class, is_repeated)
        for is_repeated in (False, True)
        for one in (*simulated, *REAL_SIZES)
        for is_class in (False, True)
    ]


# -- Columns ------------------------------------------------------------------------------------------


def autoregressive(correlation: float) -> Columns:
    """Gaussian columns, neighbours correlated by this much."""

    def draw(n: int, p: int, rng: np.random.Generator) -> np.ndarray:
        X = rng.standard_normal((n, p))
        own = np.sqrt(1.0 - correlation**2)
        for j in range(1, p):
            X[:, j] = correlation * X[:, j - 1] + own * X[:, j]
        return X

    return draw


def blocks(correlation: float) -> Columns:
    """Gaussian columns in blocks of ten, correlated by this much within."""

    def draw(n: int, p: int, rng: np.random.Generator) -> np.ndarray:
        shared = np.repeat(rng.standard_normal((n, -(-p // 10))), 10, axis=1)[:, :p]
        return np.sqrt(correlation) * shared + np.sqrt(1.0 - correlation) * rng.standard_normal((n, p))

    return draw


def factors(n: int, p: int, rng: np.random.Generator) -> np.ndarray:
    """Three common factors that explain half of the variance of an average column."""
    loadings = rng.standard_normal((3, p)) / np.sqrt(3.0)
    return rng.standard_normal((n, 3)) @ loadings + rng.standard_normal((n, p))


def counts(n: int, p: int, rng: np.random.Generator) -> np.ndarray:
    """Counts with more than Poisson variance; their logarithmic means are those of ``blocks(0.5)``."""
    return rng.poisson(np.exp(1.0 + 0.7 * blocks(0.5)(n, p, rng))).astype(float)


def lognormal(n: int, p: int, rng: np.random.Generator) -> np.ndarray:
    """Exponentials of autoregressive columns."""
    return np.exp(autoregressive(0.5)(n, p, rng))


COLUMNS: dict[str, Columns] = {
    "independent": blocks(0.0),
    "autoregressive 0.5": autoregressive(0.5),
    "autoregressive 0.9": autoregressive(0.9),
    "blocks 0.5": blocks(0.5),
    "blocks 0.8": blocks(0.8),
    "three factors": factors,
    "counts": counts,
    "lognormal": lognormal,
}


@cache
def _measured(name: str) -> np.ndarray:
    X = load_dataset(name).X
    X = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
    X = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
    return X[:, X.std(axis=0) > 0]


def real(name: str) -> Columns:
    """Columns of a data set, drawn at random without repetition, of random samples."""

    def draw(n: int, p: int, rng: np.random.Generator) -> np.ndarray:
        X = _measured(name)
        rows = rng.permutation(len(X))[:n]
        return X[np.ix_(rows, rng.permutation(X.shape[1])[:p])]

    return draw


# -- Data sets ----------------------------------------------------------------------------------------


def draw_data(setting: Setting, seed: Any) -> DataSet:
    """One data set of a setting."""
    rng = np.random.default_rng(seed)
    draw = real(setting.columns) if setting.is_real else COLUMNS[setting.columns]
    groups = _patients(setting.n, rng) if setting.is_repeated else None
    if groups is None:
        X = draw(setting.n, setting.p, rng)
    else:
        patients = draw(int(groups.max()) + 1, setting.p, rng)
        own = np.sqrt(1.0 / BETWEEN - 1.0) * patients.std(axis=0)
        X = patients[groups] + own * rng.standard_normal((setting.n, setting.p))
    X = X[:, X.std(axis=0) > 0]
    relevant = rng.choice(X.shape[1], setting.relevant, replace=False)
    chosen = X[:, relevant]
    weights = rng.choice([-1.0, 1.0], setting.relevant) * rng.uniform(0.5, 1.0, setting.relevant)
    signal = ((chosen - chosen.mean(axis=0)) / chosen.std(axis=0)) @ weights
    noise = rng.standard_normal(len(X))
    if groups is not None:
        shared = rng.standard_normal(int(groups.max()) + 1)[groups]
        noise = np.sqrt(OF_PATIENT) * shared + np.sqrt(1.0 - OF_PATIENT) * noise
    y = signal * np.sqrt(setting.snr) / signal.std() + noise
    return DataSet(X, _labels(y, groups) if setting.is_class else y, groups, relevant)


def _patients(n: int, rng: np.random.Generator) -> np.ndarray:
    """Three to five samples of each patient."""
    sizes = rng.integers(3, 6, n)
    return np.repeat(np.arange(n), sizes)[:n]


def _labels(y: np.ndarray, groups: np.ndarray | None) -> np.ndarray:
    """The larger half of the values; one label for each patient."""
    if groups is not None:
        y = (np.bincount(groups, y) / np.bincount(groups))[groups]
    return (y > np.median(y)).astype(int)
