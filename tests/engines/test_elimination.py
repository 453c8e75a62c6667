"""The elimination engine: kernels without a feature, and the status of a run."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from zeronorm import as_design
from zeronorm.engines.elimination._kernel import RBFSource
from zeronorm.engines.elimination._loop import Elimination
from zeronorm.selection._problem import Problem
from zeronorm.selection.target import Binary
from zeronorm.solvers._status import Status


def problem(seed=0, n=40, p=12):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    y = (X[:, 2] - X[:, 7] + 0.3 * rng.normal(size=n) > 0).astype(int)
    return X, y


def with_outlier(X, size=1e6):
    X = X.copy()
    X[5, 3] = size
    return X


def test_removal_from_an_rbf_kernel_never_overflows():
    X, _ = problem(n=15)
    X = with_outlier(X, 1e9)
    source, active = RBFSource(as_design(X), 0.1, rescale=False), np.arange(12)
    K = source.matrix(active)
    np.testing.assert_allclose(
        K[:5, :5], rbf_kernel(np.delete(X, 3, axis=1)[:5], gamma=0.1) * rbf_kernel(X[:5, 3:4], gamma=0.1)
    )
    v = np.linspace(-1.0, 1.0, 15)[:, None]
    change = source.removal(active, K, v, [np.array([k]) for k in active])[:, 0]
    without = np.exp(-0.1 * ((X[:, None, :] - X[None, :, :]) ** 2 * (np.arange(12) != 3)).sum(axis=2))
    assert change[3] == pytest.approx(float((v.T @ (K - without) @ v)[0, 0]), rel=1e-12)
    pairs = source.removal(active, K, v, [np.array([3, 4])])[0, 0]
    without = np.exp(
        -0.1 * ((X[:, None, :] - X[None, :, :]) ** 2)[:, :, [0, 1, 2, *range(5, 12)]].sum(axis=2)
    )
    assert pairs == pytest.approx(float((v.T @ (K - without) @ v)[0, 0]), rel=1e-12)


@pytest.mark.parametrize(
    ("status", "remedy"), [(Status.ITERATION_LIMIT, "increase max_iter"), (Status.STALLED, "increase tol")]
)
def test_each_status_has_one_warning_and_one_remedy(status, remedy):
    X, y = problem()
    record = Elimination(Problem(as_design(X), Binary(y)))
    record.status = status
    path = record.path()
    assert not path.converged
    assert path.remedy.startswith(remedy)
    assert " or " not in path.remedy


def test_the_iteration_limit_is_worse_than_a_stall():
    assert max(Status.STALLED, Status.ITERATION_LIMIT) is Status.ITERATION_LIMIT
