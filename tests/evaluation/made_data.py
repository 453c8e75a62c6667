"""Small data for an evaluation."""

from __future__ import annotations

import numpy as np


def make_data(n=40, p=12, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    X = rng.normal(size=(n, p))
    X[:, 3] += 1.5 * y
    X[:, 7] -= 1.0 * y
    return X, y
