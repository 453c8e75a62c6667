"""Logistic regression with an l1 norm: optimality conditions on each storage, working sets, ends."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit

from solvers.problems import classification
from zeronorm.design import as_design
from zeronorm.solvers import logistic
from zeronorm.solvers.logistic import L1Logistic, _weighted_lasso, _WorkingSet


def machine_of(n=40, p=8, make=np.asarray):
    X, y = classification(n, p, noise=1.5)
    share = np.random.default_rng(1).uniform(0.5, 1.5, n)
    return X, y, share / share.sum(), L1Logistic(as_design(make(X)), y, share / share.sum(), 1e-9)


def test_without_features_the_bias_is_the_share_of_the_classes():
    X, y, share, machine = machine_of()
    positive = share[y > 0].sum()
    assert machine.bias_alone == pytest.approx(np.log(positive / (1 - positive)))
    residual = share * y * expit(-y * machine.bias_alone)
    np.testing.assert_allclose(machine.empty.residual, residual)
    assert residual.sum() == pytest.approx(0.0, abs=1e-15)
    np.testing.assert_allclose(machine.first_slope, X.T @ residual)
    assert machine.largest_slope == pytest.approx(np.abs(X.T @ residual).max())
    assert machine.empty.loss == pytest.approx(share @ np.logaddexp(0.0, -y * machine.bias_alone))
    assert machine.empty.norm == 0.0
    assert machine.tol == pytest.approx(1e-9 * machine.largest_slope)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("batch", [1, 50])
def test_the_machine_meets_its_conditions_for_its_own_penalties(make, batch, monkeypatch):
    monkeypatch.setattr(logistic, "BATCH", batch)
    X, y, share, machine = machine_of(make=make)
    found = machine.empty
    for scale in (0.5, 0.1):
        penalty = scale * machine.largest_slope * np.linspace(0.5, 1.5, 8)
        found = machine.solve(penalty, found)
        assert found.converged
        w = np.zeros(8)
        w[found.columns] = found.weights
        f = X @ w + found.bias
        np.testing.assert_allclose(found.residual, share * y * expit(-y * f), atol=1e-12)
        pull = X.T @ found.residual
        np.testing.assert_allclose(pull[w != 0], (penalty * np.sign(w))[w != 0], atol=1e-8)
        assert np.all(np.abs(pull[w == 0]) <= penalty[w == 0] + 1e-8)
        assert found.residual.sum() == pytest.approx(0.0, abs=1e-9)
        assert found.loss == pytest.approx(share @ np.logaddexp(0.0, -y * f))
        assert found.norm == pytest.approx(np.abs(w).sum())
    assert machine.solve(2.0 * machine.largest_slope * np.ones(8), found).columns.size == 0


def test_the_largest_violation():
    X = as_design(np.array([[1.0, 2.0, 0.0], [0.0, 1.0, 3.0]]))
    slope, penalty = np.array([1.0, -1.0]), np.array([0.6, 0.5, 2.0])
    assert logistic._violation(X, slope, np.zeros(3), penalty) == pytest.approx(1.0)  # |-3| - 2
    assert logistic._violation(X, slope, np.array([1.0, 0.0, 0.0]), penalty) == pytest.approx(1.0)
    assert logistic._violation(X, slope, np.array([0.0, 0.0, 1.0]), penalty) == pytest.approx(5.0)
    assert logistic._violation(X, slope, np.zeros(3), np.full(3, 9.0)) == 0.0
    assert logistic._violation(X, np.array([1.0, 2.0]), np.zeros(3), np.full(3, 9.0)) == 3.0


@pytest.mark.parametrize("way", ["dense", "products", "stored"])
def test_a_weighted_lasso_meets_its_conditions_in_each_way(way, monkeypatch):
    rng = np.random.default_rng(2)
    X = rng.poisson(0.6, size=(30, 6)).astype(float)
    curvature, response = rng.uniform(0.5, 2.0, 30), X[:, 0] - X[:, 2] + rng.normal(size=30)
    response -= np.average(response, weights=curvature)
    mean = curvature @ X / curvature.sum()
    penalty, start = np.linspace(1.0, 4.0, 6), np.linspace(-0.1, 0.1, 6)
    part = _WorkingSet(as_design(X))
    if way == "products":
        part = _WorkingSet(as_design(sparse.csr_array(X)))
        assert part.has_few_columns
    elif way == "stored":
        monkeypatch.setattr(logistic, "FEWER_VALUES", 0)
        design = as_design(sparse.csr_array(X))
        part = _WorkingSet(design, design.stored_columns(np.arange(6)))
    else:
        assert not part.has_few_columns
    found = logistic._weighted_lasso(part, curvature, mean, response, penalty, start, 1e-11)
    Z = X - mean
    pull = Z.T @ (curvature * (response - Z @ found))
    used = np.abs(found) > 1e-12
    np.testing.assert_allclose(pull[used], (penalty * np.sign(found))[used], atol=1e-5)
    assert np.all(np.abs(pull[~used]) <= penalty[~used] + 1e-5)
    assert 0 < used.sum() < 6


def test_columns_of_a_working_set_are_dense_where_that_is_quicker(monkeypatch):
    X = sparse.random(50, 10, density=0.1, format="csr", rng=np.random.default_rng(3))
    every = np.arange(10)
    for limit, hardly, is_sparse in ((500, 4, False), (499, 4, True), (499, 10, True), (499, 11, False)):
        monkeypatch.setattr(logistic, "LARGEST_DENSE_COPY", limit)
        monkeypatch.setattr(logistic, "HARDLY_SPARSE", hardly)
        part = _WorkingSet.of(as_design(X), every)
        assert X.nnz == 50
        assert part.X.is_sparse == is_sparse
        assert (part.stored is not None) == is_sparse
        np.testing.assert_array_equal(part.X.block(slice(None)), X.toarray())
    assert not _WorkingSet.of(as_design(X.toarray()), every).X.is_sparse


def test_a_working_set_is_kept_while_its_columns_are_the_same():
    machine = machine_of()[-1]
    first = machine._part(np.array([1, 3]))
    assert machine._part(np.array([1, 3])) is first
    other = machine._part(np.array([3, 1]))
    assert other is not first
    np.testing.assert_array_equal(other.X.block(slice(None)), first.X.block(slice(None))[:, ::-1])


@pytest.mark.parametrize("penalty", [1e-4, 5e-3])
def test_all_ways_to_a_quadratic_model_agree(penalty, monkeypatch):
    """A sweep over stored values or dense columns, and the products of sparse or dense columns with each other."""
    rng = np.random.default_rng(0)
    X = sparse.random_array((200, 30), density=0.1, rng=rng, format="csr")
    design = as_design(X).standardized()
    curvature, response = rng.uniform(0.1, 1.0, 200) / 200, rng.normal(size=200)
    response -= np.average(response, weights=curvature)
    mean = design.transpose_dot(curvature) / curvature.sum()
    penalties, found = penalty * rng.uniform(0.5, 2.0, 30), []
    for names in (
        {"LARGEST_DENSE_COPY": 0, "HARDLY_SPARSE": 0},
        {"FEWER_VALUES": np.inf},
        {"HARDLY_SPARSE": np.inf},
    ):
        for name, value in names.items():
            monkeypatch.setattr(f"zeronorm.solvers.logistic.{name}", value)
        part = _WorkingSet.of(design, np.arange(30))
        assert part.X.is_sparse == ("HARDLY_SPARSE" not in names or len(names) == 2)
        assert part.has_few_columns
        found.append(_weighted_lasso(part, curvature, mean, response, penalties, np.full(30, 0.1), 1e-12))
    monkeypatch.setattr("zeronorm.solvers.logistic.LARGEST_DENSE_COPY", 6000)
    part = _WorkingSet.of(design, np.arange(30))
    assert not part.X.is_sparse
    assert not part.has_few_columns
    found.append(_weighted_lasso(part, curvature, mean, response, penalties, np.full(30, 0.1), 1e-12))
    assert 0 < np.count_nonzero(found[0]) < 30 or penalty < 1e-3
    for other in found[1:]:
        np.testing.assert_array_equal(found[0] != 0.0, other != 0.0)
        np.testing.assert_allclose(found[0], other, atol=1e-8)


def test_logistic_machines_that_do_not_end(monkeypatch):
    X, y = classification(40, 8, noise=1.5)
    share = np.full(40, 1 / 40)
    machine = logistic.L1Logistic(as_design(X), y, share, 1e-10)
    penalty = np.full(8, 0.1 * machine.largest_slope)
    monkeypatch.setattr(logistic, "MAX_STEPS", 1)
    found = machine.solve(penalty, machine.empty)
    assert not found.converged
    monkeypatch.undo()
    monkeypatch.setattr(logistic, "MAX_ROUNDS", 1)
    found = machine.solve(penalty, machine.empty)
    assert not found.converged
    w = np.zeros(8)
    w[found.columns] = found.weights
    f = X @ w + found.bias
    assert found.loss == pytest.approx(share @ np.logaddexp(0.0, -y * f))
    np.testing.assert_allclose(found.residual, share * y / (1.0 + np.exp(y * f)), atol=1e-12)
