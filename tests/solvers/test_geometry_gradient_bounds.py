"""Few passes over the data give the same features as one pass for every vector.

Data with up to two million entries are read each time; the data here are larger unless a test states otherwise.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from solvers.problems import plain
from zeronorm import LogisticLasso
from zeronorm.design import as_design
from zeronorm.solvers._geometry import GradientBounds, may_be_beyond
from zeronorm.solvers.l1_svm._program import L1SvmProgram

N, P = 15, 140_000


def drifting_vectors(rng, n, count, step):
    v = rng.normal(size=n)
    for _ in range(count):
        yield v
        v = v + step * np.linalg.norm(v) / np.sqrt(n) * rng.normal(size=n)


def beyond_by_products(X, v, limit):
    """Features with |x·v| above their limit, the largest excess first."""
    excess = np.abs(X.T @ v) - limit
    expected = np.flatnonzero(excess > 0.0)
    return expected[np.argsort(-excess[expected])]


@pytest.mark.parametrize("step", [0.0, 1e-9, 0.01, 0.1, 2.0])
@pytest.mark.parametrize("dtype", [np.float32, float])
def test_features_beyond_their_limit_are_those_of_the_products(step, dtype):
    rng = np.random.default_rng(int(1000 * step))
    X = (rng.normal(size=(N, P)) * rng.uniform(0.1, 100.0, P)).astype(dtype)
    X[:, 5] = 0.0
    bounds, exact = GradientBounds(as_design(X)), X.astype(float)
    norms = np.linalg.norm(exact, axis=0)
    np.testing.assert_allclose(bounds.norms, norms, rtol=1e-6)
    for v in drifting_vectors(rng, N, 20, step):
        limit = rng.uniform(0.8, 1.2, P) * norms * np.linalg.norm(v) * 0.9
        limit[rng.integers(0, P, 5)] = np.inf
        expected = beyond_by_products(exact, v, limit)
        assert expected.size > 3
        assert bounds.beyond(v, limit, P).tolist() == expected.tolist()
        assert bounds.beyond(v, limit, 3).tolist() == expected[:3].tolist()
    assert bounds.n_passes_over_data >= 1


def test_sparse_features_and_growing_numbers_of_them():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(N, P)) * (rng.random((N, P)) < 0.5)
    for design in (as_design(X), as_design(sparse.csc_array(X))):
        bounds, v = GradientBounds(design), rng.normal(size=N)
        for turn in range(15):
            v = v + 0.05 * rng.normal(size=N)
            limit = np.full(P, np.sort(np.abs(X.T @ v))[-12] * (1 - 1e-9))
            assert (
                bounds.beyond(v, limit, 5 + turn).tolist()
                == beyond_by_products(X, v, limit)[: 5 + turn].tolist()
            )
        assert 0 < bounds.n_passes_over_data <= 15
        many = bounds.beyond(v, np.zeros(P), 3)  # nearly all are above: the largest estimates are read
        assert set(many.tolist()) <= set(np.argsort(-np.abs(X.T @ v))[:30].tolist())


def test_vectors_close_to_each_other_need_few_passes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 8000))
    bounds = GradientBounds(as_design(X))
    for v in drifting_vectors(rng, 300, 50, 0.002):
        bounds.beyond(v, np.full(8000, 4.0 * np.linalg.norm(v)), 10)
    assert 1 <= bounds.n_passes_over_data <= 5


def test_small_data_are_read_for_every_vector():
    X = np.random.default_rng(0).normal(size=(N, 400))
    bounds = GradientBounds(as_design(X))
    for n_passes_over_data in (1, 2):
        limit = np.full(400, 4.0)
        assert bounds.beyond(X[:, 0], limit, 7).tolist() == beyond_by_products(X, X[:, 0], limit)[:7].tolist()
        assert bounds.n_passes_over_data == n_passes_over_data


def test_a_vector_of_zeros_is_above_no_limit():
    bounds = GradientBounds(as_design(np.random.default_rng(0).normal(size=(N, P))))
    assert bounds.beyond(np.zeros(N), np.zeros(P), 5).size == 0


def test_the_direction_of_least_use_is_replaced():
    """A thirteenth direction replaces the one that the new vector needs least; the others are not read again."""
    bounds = GradientBounds(as_design(np.random.default_rng(2).normal(size=(N, P))))

    def passes(v):
        before = bounds.n_passes_over_data
        bounds.beyond(v, np.full(P, 4.2 * np.linalg.norm(v)), 5)  # few are above
        return bounds.n_passes_over_data - before

    axes = np.eye(N)
    assert [passes(axes[k]) for k in range(12)] == [1] * 12
    assert [passes(3.0 * axes[k] - axes[11]) for k in range(11)] == [0] * 11  # nothing new in them
    new = axes[:12].sum(axis=0) - 0.5 * axes[7] + 10.0 * axes[12]
    assert [passes(new), passes(2.0 * new)] == [1, 0]
    assert [passes(axes[k]) for k in range(12) if k != 7] == [0] * 11
    assert passes(axes[7]) == 1


def test_features_that_may_be_beyond_by_the_bound_itself():
    """There are more of them than one block holds."""
    rng = np.random.default_rng(0)
    shares = np.array([2.0, -1.0], dtype=np.float32)
    cosines = (rng.integers(-8, 9, size=(2, 4500)) / 8).astype(np.float32)  # products without rounding
    norms = rng.uniform(1.0, 2.0, 4500)
    bound = (np.abs(shares @ cosines) + 0.125) * norms
    is_beyond = rng.random(4500) < 0.3
    found = np.empty(4500, dtype=np.intp)
    count = plain(may_be_beyond)(
        shares, cosines, norms, 0.125, np.where(is_beyond, bound - 1e-9, bound), found
    )
    assert found[:count].tolist() == np.flatnonzero(is_beyond).tolist()


def l1_model(X, y):
    return L1SvmProgram(as_design(X), 2.0 * y - 1.0, C=1.0).solve().weights


def logistic_lasso(X, y):
    return np.ravel(LogisticLasso(5, n_alphas=20).fit(X, y).coef_)


@pytest.mark.parametrize("weights", [l1_model, logistic_lasso])
def test_features_without_a_weight_change_nothing(weights):
    """A fit on many features has the weights of a fit on few of them, for which all data are read each time."""
    rng = np.random.default_rng(1)
    y = np.arange(50) % 2
    X = rng.normal(size=(50, 43_000))
    X[:, :5] += 2.5 * y[:, None]
    found = weights(X, y)
    some = np.union1d(np.flatnonzero(found), np.arange(900))
    assert found.any()
    np.testing.assert_allclose(weights(X[:, some], y), found[some], atol=1e-8)
