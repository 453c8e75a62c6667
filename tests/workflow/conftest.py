"""Small problems for the workflow."""

from __future__ import annotations

import numpy as np
import pytest

from zeronorm.workflow.inputs import DataOptions, load_data


def two_signals(n_samples=60, n_features=30, seed=0):
    """Two of the features carry the label."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, n_features))
    y = np.where(X[:, 0] - X[:, 1] > 0, "up", "down")
    return X, y


def table_of(X, y, **options):
    return load_data(X, DataOptions.taken_from({"target": y, **options}))


def numbers(n=30, p=4, seed=0):
    """Numbers without meaning and two classes."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, p)), np.where(np.arange(n) % 2, "yes", "no")


@pytest.fixture(scope="session")
def problem():
    return two_signals()
