"""Small problems for the workflow."""

from __future__ import annotations

import numpy as np
import pytest


def two_signals(n_samples=60, n_features=30, seed=0):
    """Two of the features carry the label."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, n_features))
    y = np.where(X[:, 0] - X[:, 1] > 0, "up", "down")
    return X, y


@pytest.fixture(scope="session")
def problem():
    return two_signals()
