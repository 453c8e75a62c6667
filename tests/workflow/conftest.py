"""Small problems for the workflow."""

from __future__ import annotations

import numpy as np
import pytest

import zeronorm
from zeronorm.workflow._inputs import DataOptions, load_data


def two_signals(n_samples=60, n_features=30, seed=0):
    """Two of the features carry the label."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, n_features))
    y = np.where(X[:, 0] - X[:, 1] > 0, "up", "down")
    return X, y


def table_of(X, y, **options):
    return load_data(X, DataOptions(target=y, **options))


def numbers(n=30, p=4, seed=0):
    """Numbers without meaning and two classes."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, p)), np.where(np.arange(n) % 2, "yes", "no")


def simulated(seed, abs_weight, n_samples=40, n_features=60):
    """Three of the features carry the label, as strongly as asked for."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, n_features))
    y = rng.permutation(np.arange(n_samples) % 2)
    X[:, :3] += abs_weight * y[:, None]
    return X, y


def state_of_patients():
    """Two of seven features carry the label; all are positive."""
    rng = np.random.default_rng(0)
    y = np.where(np.arange(36) % 2, "sick", "well")
    X = rng.normal(size=(36, 7)) + 4.0
    X[:, 1] += 2.0 * (y == "sick")
    X[:, 4] -= 1.5 * (y == "sick")
    return X, y


@pytest.fixture(scope="session")
def problem():
    return two_signals()


@pytest.fixture(scope="session")
def selection(problem):
    return zeronorm.select(*problem, method="fisher", features=3, cv=3, permutations=3)


@pytest.fixture
def gappy():
    """40 samples, 10 features, of which two carry the label; a tenth of the values is missing."""
    rng = np.random.default_rng(3)
    y = np.arange(40) % 2
    X = rng.normal(size=(40, 10))
    X[:, :2] += 2.5 * y[:, None]
    X[rng.random(X.shape) < 0.1] = np.nan
    return X, y
