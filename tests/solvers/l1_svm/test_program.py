"""The l1 SVM by column generation, against the full program and the optimality conditions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from solvers.l1_svm.full_program import full_program
from solvers.problems import classification, regression
from zeronorm.design import as_design
from zeronorm.solvers._status import Status
from zeronorm.solvers.l1_svm._program import L1SvmProgram


@pytest.mark.parametrize("shape", [(40, 600), (60, 10)])
@pytest.mark.parametrize("C", [0.05, 1.0])
def test_classification_equals_the_full_program(shape, C):
    X, y = classification(*shape)
    penalty = np.random.default_rng(1).uniform(0.5, 2.0, X.shape[1])
    found = L1SvmProgram(as_design(X), y, C=C).solve(penalty)
    assert found.converged
    assert found.objective == pytest.approx(full_program(X, y, C, penalty), rel=1e-8)
    slack = np.maximum(0.0, 1.0 - y * (X @ found.weights + found.bias))
    assert penalty @ np.abs(found.weights) + C * slack.sum() == pytest.approx(found.objective, rel=1e-8)


@pytest.mark.parametrize("shape", [(40, 600), (60, 10)])
def test_regression_equals_the_full_program(shape):
    X, y = regression(*shape)
    penalty = np.random.default_rng(1).uniform(0.5, 2.0, X.shape[1])
    found = L1SvmProgram(as_design(X), y, C=0.3, epsilon=0.2).solve(penalty)
    assert found.objective == pytest.approx(full_program(X, y, 0.3, penalty, 0.2), rel=1e-8)
    slack = np.maximum(0.0, np.abs(y - X @ found.weights - found.bias) - 0.2)
    assert penalty @ np.abs(found.weights) + 0.3 * slack.sum() == pytest.approx(found.objective, rel=1e-8)


def test_no_feature_outside_can_improve_the_solution():
    X, y = classification(50, 2000)
    program = L1SvmProgram(as_design(X), y, C=1.0)
    found = program.solve()
    assert program.pool.size < 1000
    gradient = X.T @ found.dual_coef
    np.testing.assert_allclose(gradient, found.gradient, atol=1e-9)
    assert np.abs(gradient).max() <= 1.0 + 1e-6
    np.testing.assert_allclose(
        gradient[found.weights != 0], np.sign(found.weights[found.weights != 0]), atol=1e-6
    )


def test_new_costs_start_from_the_last_basis():
    X, y = classification(50, 600)
    penalty = np.random.default_rng(1).uniform(0.9, 1.1, 600)
    warm = L1SvmProgram(as_design(X), y, C=1.0)
    warm.solve()
    before = warm.n_iter
    again = warm.solve(penalty)
    cold = L1SvmProgram(as_design(X), y, C=1.0)
    fresh = cold.solve(penalty)
    assert again.objective == pytest.approx(fresh.objective, rel=1e-8)
    assert warm.n_iter - before < cold.n_iter


def test_hard_margin():
    X, y = classification(40, 600)
    found = L1SvmProgram(as_design(X), y, C=np.inf).solve()
    assert found.converged
    assert (y * (X @ found.weights + found.bias)).min() > 1.0 - 1e-6
    assert found.objective == pytest.approx(full_program(X, y, np.inf, np.ones(600)), rel=1e-7)


def test_hard_margin_of_inseparable_classes_is_infeasible():
    X, y = classification(80, 5)
    assert L1SvmProgram(as_design(X), y, C=np.inf).solve().status is Status.INFEASIBLE


def test_hard_constraints_next_to_soft_ones():
    X, y = classification(60, 5, seed=3)
    C = np.full(60, 0.5)
    C[:4] = np.inf
    found = L1SvmProgram(as_design(X), y, C=C).solve()
    assert found.objective == pytest.approx(full_program(X, y, C, np.ones(5)), rel=1e-7)


def test_a_duplicated_sample_equals_a_doubled_weight():
    X, y = classification(40, 300)
    twice = np.concatenate([np.arange(40), [3, 17]])
    C = np.ones(40)
    C[[3, 17]] = 2.0
    copies = L1SvmProgram(as_design(X[twice]), y[twice], C=1.0).solve()
    weights = L1SvmProgram(as_design(X), y, C=C).solve()
    assert copies.objective == pytest.approx(weights.objective, rel=1e-9)


@pytest.mark.parametrize("form", [sparse.csr_array, sparse.csc_array, sparse.csr_matrix, sparse.csc_matrix])
def test_stored_columns_of_every_kind_of_sparse_data(form):
    """For SciPy's sparse arrays * multiplies entries, for its sparse matrices it is the matrix product."""
    design = as_design(form(np.random.default_rng(0).poisson(0.5, size=(9, 4)).astype(float))).standardized()
    kept, shift = design.stored_columns(np.arange(4))
    np.testing.assert_allclose(kept.toarray() - shift, design.block(np.arange(4)), atol=1e-12)


@pytest.mark.parametrize("epsilon", [None, 0.1])
def test_sparse_columns_give_the_model_of_dense_ones(epsilon):
    """There are more features than in the first program, and their means differ from zero."""
    rng = np.random.default_rng(0)
    X = rng.poisson(0.2, size=(60, 400)).astype(float)
    y = np.where(X[:, 0] + X[:, 1] - X[:, 2] + 0.3 * rng.normal(size=60) > 0.2, 1.0, -1.0)
    target = y if epsilon is None else X[:, 0] - X[:, 3] + 0.1 * rng.normal(size=60)
    dense = L1SvmProgram(as_design(X).standardized(), target, C=0.5, epsilon=epsilon).solve()
    design = as_design(sparse.csr_array(X)).standardized()
    kept, shift = design.stored_columns(np.arange(5))
    np.testing.assert_allclose(kept.toarray() - shift, design.block(np.arange(5)), atol=1e-12)
    found = L1SvmProgram(design, target, C=0.5, epsilon=epsilon).solve()
    np.testing.assert_allclose(found.weights, dense.weights, atol=1e-8)
    assert found.bias == pytest.approx(dense.bias, abs=1e-8)
    assert found.objective == pytest.approx(dense.objective, rel=1e-9)
    np.testing.assert_allclose(found.slack, dense.slack, atol=1e-8)


def test_hard_margins_need_a_cost_that_is_large_enough():
    X, y = classification(20, 30, noise=0.2)
    X = 1e-3 * X
    exact = L1SvmProgram(as_design(X), y, C=np.inf).solve()
    assert exact.status is Status.CONVERGED
    assert np.all(y * (X @ exact.weights + exact.bias) >= 1.0 - 1e-6)
    assert exact.objective == pytest.approx(np.abs(exact.weights).sum(), rel=1e-6)
    assert exact.dual_coef @ (np.ones(20) * y) > 10.0  # a cost of ten times the penalties is not enough
    # Beyond a cost of 1e12 rounding hides whether a hard margin exists.
    for penalty, status in ((1e8, Status.CONVERGED), (3e9, Status.INFEASIBLE)):
        assert L1SvmProgram(as_design(X), y, C=np.inf).solve(np.full(30, penalty)).status is status
