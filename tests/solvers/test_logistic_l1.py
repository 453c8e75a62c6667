"""Logistic regression with an l1 norm: optimality conditions for dense and sparse data, working sets, convergence."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit

from solvers.problems import classification
from zeronorm.design import as_design
from zeronorm.solvers.l1_smooth import _model as model_of_l1
from zeronorm.solvers.l1_smooth import _working_set as working_set
from zeronorm.solvers.l1_smooth._logistic import L1Logistic
from zeronorm.solvers.l1_smooth._working_set import WorkingSet


def model_of(n=40, p=8, make=np.asarray):
    X, y = classification(n, p, noise=1.5)
    share = np.random.default_rng(1).uniform(0.5, 1.5, n)
    return X, y, share / share.sum(), L1Logistic(as_design(make(X)), y, share / share.sum(), 1e-9)


def test_without_features_the_bias_is_the_share_of_the_classes():
    X, y, share, model = model_of()
    positive = share[y > 0].sum()
    assert model.bias_alone == pytest.approx(np.log(positive / (1 - positive)))
    residual = share * y * expit(-y * model.bias_alone)
    np.testing.assert_allclose(model.empty.residual, residual)
    assert residual.sum() == pytest.approx(0.0, abs=1e-15)
    np.testing.assert_allclose(model.first_slope, X.T @ residual)
    assert model.largest_slope == pytest.approx(np.abs(X.T @ residual).max())
    assert model.empty.loss == pytest.approx(share @ np.logaddexp(0.0, -y * model.bias_alone))
    assert model.empty.norm == 0.0
    assert model.tol == pytest.approx(1e-9 * model.largest_slope)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("p", [8, 160])
def test_the_model_meets_its_conditions_for_its_own_penalties(make, p):
    """With 160 features, more violate the conditions at the start than are added at a time."""
    X, y, share, model = model_of(p=p, make=make)
    found = model.empty
    for scale in (0.5, 0.1):
        penalty = scale * model.largest_slope * np.linspace(0.5, 1.5, p)
        found = model.solve(penalty, found)
        check_model(found, X, y, share, penalty)
    assert model.solve(2.0 * model.largest_slope * np.ones(p), found).columns.size == 0


@pytest.mark.parametrize(
    ("shape", "density", "last_way"),
    [
        ((300, 30), 0.1, "lasso_path"),  # few entries: dense columns
        ((40_000, 60), 0.05, "descend_coordinates"),  # the Gram matrix of the sparse columns
        ((40_000, 60), 0.3, "descend_coordinates"),  # hardly sparse: the Gram matrix of dense columns
        (
            (9_000, 280),
            0.003,
            "descend_sparse_columns",
        ),  # fewer stored values than entries of the Gram matrix
    ],
)
def test_sparse_data_of_each_kind_have_the_model_of_dense_ones(shape, density, last_way, monkeypatch):
    ways = []
    for name in ("lasso_path", "descend_coordinates", "descend_sparse_columns"):
        own = getattr(working_set, name)
        monkeypatch.setattr(
            working_set, name, lambda *a, own=own, name=name, **more: ways.append(name) or own(*a, **more)
        )
    rng = np.random.default_rng(0)
    values = rng.poisson(1.0, size=shape) + 1.0
    X = sparse.csr_array(np.where(rng.random(shape) < density, values, 0.0))
    decision = X @ rng.normal(size=shape[1]) + rng.logistic(size=shape[0])
    y, share = np.where(decision > 0.0, 1.0, -1.0), np.full(shape[0], 1.0 / shape[0])
    design = as_design(X).standardized()
    Z = design.block(slice(None))
    model = L1Logistic(design, y, share, 1e-9)
    penalty = 0.01 * model.largest_slope * rng.uniform(0.5, 1.5, shape[1])
    found = model.solve(penalty, model.empty)
    assert found.columns.size > 0.8 * shape[1]
    assert ways[-1] == last_way
    check_model(found, Z, y, share, penalty)


def check_model(found, X, y, share, penalty):
    """Check the optimality conditions, the loss and the norm by their definitions."""
    assert found.converged
    w = np.zeros(X.shape[1])
    w[found.columns] = found.weights
    f = X @ w + found.bias
    np.testing.assert_allclose(found.residual, share * y * expit(-y * f), atol=1e-12)
    gradient = X.T @ found.residual
    np.testing.assert_allclose(gradient[w != 0], (penalty * np.sign(w))[w != 0], atol=1e-8)
    assert np.all(np.abs(gradient[w == 0]) <= penalty[w == 0] + 1e-8)
    assert found.residual.sum() == pytest.approx(0.0, abs=1e-9)
    assert found.loss == pytest.approx(share @ np.logaddexp(0.0, -y * f))
    assert found.norm == pytest.approx(np.abs(w).sum())


@pytest.mark.parametrize(
    ("n_columns", "n_stored", "is_sparse"),
    [
        (64, 1000, False),  # two million entries, of which a dense copy is made
        (65, 1000, True),
        (65, 65 << 13, True),  # a quarter of the entries is stored
        (65, (65 << 13) + 1, False),
    ],
)
def test_columns_of_a_working_set_are_dense_where_that_is_quicker(n_columns, n_stored, is_sparse):
    n = 1 << 15
    positions = np.arange(n_stored, dtype=np.int64)
    X = sparse.csc_array(
        (np.ones(n_stored), (positions // n_columns, positions % n_columns)), shape=(n, n_columns)
    )
    every = np.arange(n_columns)
    part = WorkingSet.of(as_design(X), every)
    assert part.X.is_sparse == is_sparse
    assert (part.stored is not None) == is_sparse
    np.testing.assert_array_equal(part.X.block([0, n_columns - 1]), X[:, [0, n_columns - 1]].toarray())
    assert not WorkingSet.of(as_design(X[:40].toarray()), every).X.is_sparse


def test_the_largest_violation():
    X = as_design(np.array([[1.0, 2.0, 0.0], [0.0, 1.0, 3.0]]))
    slope, penalty = np.array([1.0, -1.0]), np.array([0.6, 0.5, 2.0])
    assert model_of_l1._violation(X, slope, np.zeros(3), penalty) == pytest.approx(1.0)  # |-3| - 2
    assert model_of_l1._violation(X, slope, np.array([1.0, 0.0, 0.0]), penalty) == pytest.approx(1.0)
    assert model_of_l1._violation(X, slope, np.array([0.0, 0.0, 1.0]), penalty) == pytest.approx(5.0)
    assert model_of_l1._violation(X, slope, np.zeros(3), np.full(3, 9.0)) == 0.0
    assert model_of_l1._violation(X, np.array([1.0, 2.0]), np.zeros(3), np.full(3, 9.0)) == 3.0


def test_logistic_models_that_do_not_end(monkeypatch):
    X, y = classification(40, 8, noise=1.5)
    share = np.full(40, 1 / 40)
    model = L1Logistic(as_design(X), y, share, 1e-10)
    penalty = np.full(8, 0.1 * model.largest_slope)
    monkeypatch.setattr(model_of_l1, "MAX_STEPS", 1)
    found = model.solve(penalty, model.empty)
    assert not found.converged
    monkeypatch.undo()
    monkeypatch.setattr(model_of_l1, "MAX_ROUNDS", 1)
    found = model.solve(penalty, model.empty)
    assert not found.converged
    w = np.zeros(8)
    w[found.columns] = found.weights
    f = X @ w + found.bias
    assert found.loss == pytest.approx(share @ np.logaddexp(0.0, -y * f))
    np.testing.assert_allclose(found.residual, share * y / (1.0 + np.exp(y * f)), atol=1e-12)
