"""Small problems for the tests of solvers, and a limit on the number of steps of a solver."""

from __future__ import annotations

import numpy as np


def classification(n=40, p=60, *, noise=1.0, seed=0):
    """Two overlapping classes in a few informative directions."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    score = X[:, : min(p, 4)].sum(axis=1) + noise * rng.normal(size=n)
    return X, np.where(score > np.median(score), 1.0, -1.0)


def regression(n=40, p=60, *, noise=0.5, seed=0):
    """A linear target with noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return X, X[:, : min(p, 4)].sum(axis=1) + noise * rng.normal(size=n) + 3.0


def plain(kernel):
    """The Python function of a kernel."""
    return kernel.function


def at_most(taken):
    """1.5 times the steps taken now; a wrong step often changes only the number of steps, not the solution."""
    return 1.5 * taken + 2
