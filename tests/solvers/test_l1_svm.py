"""The ℓ1 machines against a full linear program and their optimality conditions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog

from solvers.problems import classification, regression
from zeronorm.design import as_design
from zeronorm.solvers.l1_svm import tall as programs
from zeronorm.solvers.l1_svm.dual import (
    L1SvmDualProgram,
    L1SvmHardProgram,
    L1SvmInteriorProgram,
    l1_svm_program,
)
from zeronorm.solvers.l1_svm.program import ALL_AT_ONCE, L1SvmProgram
from zeronorm.solvers.l1_svm.tall import L1SvmTallProgram
from zeronorm.solvers.status import Status


def full_program(X, y, C, cost, epsilon=None):
    """All features at once, one inequality per side."""
    n, p = X.shape
    C = np.broadcast_to(C, n)
    hard = np.isinf(C)
    soft = np.where(hard, 0.0, C)
    if epsilon is None:
        signed, right, slack = y[:, None] * np.column_stack([X, np.ones(n)]), np.ones(n), np.eye(n)
        upper = np.where(hard, 0.0, np.inf)
    else:
        extended = np.column_stack([X, np.ones(n)])
        signed = np.vstack([extended, -extended])
        right = np.concatenate([y - epsilon, -y - epsilon])
        slack, upper, soft = np.eye(2 * n), np.full(2 * n, np.inf), np.tile(soft, 2)
    A = -np.column_stack([signed[:, :p], -signed[:, :p], signed[:, p], slack])
    bounds = [(0, None)] * (2 * p) + [(None, None)] + [(0, u) for u in upper]
    c = np.concatenate([cost, cost, [0.0], soft])
    found = linprog(c, A_ub=A, b_ub=-right, bounds=bounds)
    return found.fun if found.status == 0 else None


@pytest.mark.parametrize("shape", [(40, 3 * ALL_AT_ONCE), (60, 10)])
@pytest.mark.parametrize("C", [0.05, 1.0])
def test_classification_equals_the_full_program(shape, C):
    X, y = classification(*shape)
    cost = np.random.default_rng(1).uniform(0.5, 2.0, X.shape[1])
    found = L1SvmProgram(as_design(X), y, C=C).solve(cost)
    assert found.converged
    assert found.objective == pytest.approx(full_program(X, y, C, cost), rel=1e-8)
    slack = np.maximum(0.0, 1.0 - y * (X @ found.weights + found.bias))
    assert cost @ np.abs(found.weights) + C * slack.sum() == pytest.approx(found.objective, rel=1e-8)


@pytest.mark.parametrize("shape", [(40, 3 * ALL_AT_ONCE), (60, 10)])
def test_regression_equals_the_full_program(shape):
    X, y = regression(*shape)
    cost = np.random.default_rng(1).uniform(0.5, 2.0, X.shape[1])
    found = L1SvmProgram(as_design(X), y, C=0.3, epsilon=0.2).solve(cost)
    assert found.objective == pytest.approx(full_program(X, y, 0.3, cost, 0.2), rel=1e-8)
    slack = np.maximum(0.0, np.abs(y - X @ found.weights - found.bias) - 0.2)
    assert cost @ np.abs(found.weights) + 0.3 * slack.sum() == pytest.approx(found.objective, rel=1e-8)


def test_no_feature_outside_can_improve_the_solution():
    X, y = classification(50, 2000)
    program = L1SvmProgram(as_design(X), y, C=1.0)
    found = program.solve()
    assert program.pool.size < 1000
    pull = X.T @ found.dual_coef
    np.testing.assert_allclose(pull, found.pull, atol=1e-9)
    assert np.abs(pull).max() <= 1.0 + 1e-6
    np.testing.assert_allclose(
        pull[found.weights != 0], np.sign(found.weights[found.weights != 0]), atol=1e-6
    )


def test_new_costs_start_from_the_last_basis():
    X, y = classification(50, 600)
    cost = np.random.default_rng(1).uniform(0.9, 1.1, 600)
    warm = L1SvmProgram(as_design(X), y, C=1.0)
    warm.solve()
    before = warm.n_iter
    again = warm.solve(cost)
    cold = L1SvmProgram(as_design(X), y, C=1.0)
    fresh = cold.solve(cost)
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
    """For an array of SciPy * multiplies entries, for a matrix it is the product of matrices."""
    design = as_design(form(np.random.default_rng(0).poisson(0.5, size=(9, 4)).astype(float))).standardized()
    kept, shift = design.stored_columns(np.arange(4))
    np.testing.assert_allclose(kept.toarray() - shift, design.block(np.arange(4)), atol=1e-12)


@pytest.mark.parametrize("epsilon", [None, 0.1])
def test_sparse_columns_give_the_machine_of_dense_ones(epsilon):
    """More features than are in the program from the start, and means that differ from zero."""
    rng = np.random.default_rng(0)
    X = rng.poisson(0.2, size=(60, 2 * ALL_AT_ONCE)).astype(float)
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


@pytest.mark.parametrize("epsilon", [None, 0.1])
def test_tall_sparse_data_give_the_machine_of_dense_ones(epsilon, monkeypatch):
    rng = np.random.default_rng(1)
    X = rng.poisson(0.3, size=(80, 12)).astype(float)
    target = X[:, 0] - X[:, 3] + 0.4 * rng.normal(size=80)
    y = np.where(target > 0.2, 1.0, -1.0) if epsilon is None else target
    dense = l1_svm_program(as_design(X).standardized(), y, C=0.5, epsilon=epsilon)
    monkeypatch.setattr("zeronorm.solvers.l1_svm.dual.LARGEST_DENSE_COPY", 0)
    program = L1SvmDualProgram(as_design(sparse.csr_array(X)).standardized(), y, C=0.5, epsilon=epsilon)
    assert program.signed.sparse_rows is not None
    for price in (0.5, 0.05):
        dense.set_price(price)
        program.set_price(price)
        expected, found = dense.solve(), program.solve()
        np.testing.assert_allclose(found.weights, expected.weights, atol=1e-8)
        np.testing.assert_allclose(found.slack, expected.slack, atol=1e-8)
        assert found.bias == pytest.approx(expected.bias, abs=1e-8)
        assert found.objective == pytest.approx(expected.objective, rel=1e-9)


SUITED = [
    # shape, sparse, prices on the path, the program
    ((20, 10), False, None, L1SvmDualProgram),
    ((20, 10), False, 1, L1SvmInteriorProgram),
    ((20, 10), False, 5, L1SvmDualProgram),
    ((30, 20), False, 5, L1SvmInteriorProgram),
    ((60, 20), False, 1, L1SvmProgram),
    ((60, 20), True, 1, L1SvmDualProgram),
    ((60, 25), True, 1, L1SvmTallProgram),
    ((40, 60), True, 1, L1SvmTallProgram),
    ((30, 60), True, 1, L1SvmProgram),
    ((10, 30), False, 1, L1SvmInteriorProgram),
    ((10, 30), False, 2, L1SvmProgram),
    ((10, 31), False, 1, L1SvmProgram),
    ((20, 60), False, 1, L1SvmProgram),
]


@pytest.mark.parametrize(("shape", "is_sparse", "n_steps", "program"), SUITED)
def test_the_program_suits_the_shape_of_the_data(shape, is_sparse, n_steps, program, monkeypatch):
    for name, value in (
        ("LARGEST_MATRIX", 1000),
        ("LARGEST_DENSE_COPY", 1000),
        ("FEW_DATA", 500),
        ("WIDEST", 3),
        ("MANY_SAMPLES", 40),
        ("MANY_ENTRIES", 1500),
    ):
        monkeypatch.setattr(f"zeronorm.solvers.l1_svm.dual.{name}", value)
    X = np.random.default_rng(0).normal(size=shape)
    y = np.where(X[:, 0] > 0.0, 1.0, -1.0)
    design = as_design(sparse.csr_array(X) if is_sparse else X)
    assert type(l1_svm_program(design, y, C=1.0, n_steps=n_steps)) is program


@pytest.mark.parametrize(
    ("epsilon", "price", "entries", "program"),
    [
        (None, np.inf, 1, L1SvmHardProgram),
        (None, np.inf, 1000, L1SvmDualProgram),
        (None, np.r_[np.inf, np.ones(39)], 1, L1SvmDualProgram),
        (0.1, np.inf, 1, L1SvmDualProgram),
    ],
)
def test_programs_of_a_hard_margin(epsilon, price, entries, program, monkeypatch):
    monkeypatch.setattr("zeronorm.solvers.l1_svm.dual.LARGEST_DENSE_COPY", 1)
    monkeypatch.setattr("zeronorm.solvers.l1_svm.dual.MANY_ENTRIES", entries)
    X, y = classification(40, 3)
    design = as_design(sparse.csr_array(X))
    assert type(l1_svm_program(design, y, C=price, epsilon=epsilon)) is program


# -- Many samples --


def tall_problem(is_sparse, epsilon, n=300, p=60):
    """Counts, of which most samples have equal ones in the features that matter, or real numbers."""
    rng = np.random.default_rng(3)
    X = rng.poisson(0.15, size=(n, p)).astype(float) if is_sparse else rng.normal(size=(n, p))
    target = X[:, 0] - X[:, 1] + 0.5 * X[:, 2] + 0.4 * rng.normal(size=n)
    y = target if epsilon is not None else np.where(target > 0.1, 1.0, -1.0)
    return X, y, rng.uniform(0.5, 2.0, n), rng.uniform(0.5, 2.0, p)


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("epsilon", [None, 0.1])
def test_few_rows_at_a_time_give_the_full_program(is_sparse, epsilon, monkeypatch):
    """Windows of 12 rows, several levels of samples, few features that join at a time, and samples without weight."""
    monkeypatch.setattr(programs, "WINDOW", 12)
    monkeypatch.setattr(programs, "ROWS_OF_A_FEATURE", 2)
    monkeypatch.setattr(programs, "TALL_BATCH", 3)
    X, y, weight, cost = tall_problem(is_sparse, epsilon)
    weight[::7] = 0.0
    design = as_design(sparse.csr_array(X) if is_sparse else X)
    program = L1SvmTallProgram(design, y, C=1.0, epsilon=epsilon)
    for C in (0.02, 0.1, 0.5):
        program.set_price(C * weight)
        found = program.solve(cost)
        assert found.converged
        assert found.objective == pytest.approx(full_program(X, y, C * weight, cost, epsilon), rel=1e-7)
        slack = 1.0 - y * (X @ found.weights + found.bias)
        if epsilon is not None:
            slack = np.abs(y - X @ found.weights - found.bias) - epsilon
        np.testing.assert_allclose(found.slack, np.maximum(slack, 0.0), atol=1e-9)
        own = cost @ np.abs(found.weights) + C * weight @ found.slack
        assert own == pytest.approx(found.objective, rel=1e-9)
        assert np.all(np.abs(found.pull) <= (1.0 + 1e-6) * cost)
        assert found.dual_coef.sum() == pytest.approx(0.0, abs=1e-9)


def test_rare_features_do_not_bring_all_rows_into_the_program(monkeypatch):
    """Real targets differ in all samples; the few rows of a rare feature must not be fixed on a wrong side."""
    monkeypatch.setattr(programs, "WINDOW", 200)
    monkeypatch.setattr(programs, "ROWS_OF_A_FEATURE", 50)
    rng = np.random.default_rng(0)
    X = sparse.random(4000, 200, density=0.01, format="csr", rng=rng)
    y = X[:, :5] @ np.arange(3.0, 8.0) + 0.5 * rng.normal(size=4000)
    sizes, solve = [], programs._solve_program
    monkeypatch.setattr(
        programs, "_solve_program", lambda rows, *rest: sizes.append(rows.target.size) or solve(rows, *rest)
    )
    program = L1SvmTallProgram(as_design(X).standardized(), y, C=0.003, epsilon=0.05)
    for C in (0.003, 0.004):
        program.set_price(C)
        found = program.solve()
        expected = L1SvmProgram(as_design(X).standardized(), y, C=C, epsilon=0.05).solve()
        assert np.flatnonzero(found.weights).size >= 1
        assert found.objective == pytest.approx(expected.objective, rel=1e-7)
    assert max(sizes) <= 2000  # of 8000


def test_many_samples_with_other_costs_and_means():
    """The next program starts with the features of the last, and standardised sparse columns are not centred."""
    X, y, _, cost = tall_problem(True, None)
    design = as_design(sparse.csr_array(X)).standardized()
    program = L1SvmTallProgram(design, y, C=0.1)
    for costs in (np.ones(cost.size), cost, np.full(cost.size, 1e3), cost[::-1]):
        found, expected = (
            program.solve(costs),
            L1SvmProgram(as_design(X).standardized(), y, C=0.1).solve(costs),
        )
        assert found.objective == pytest.approx(expected.objective, rel=1e-8)
        np.testing.assert_allclose(found.weights, expected.weights, atol=1e-7)
        assert found.bias == pytest.approx(expected.bias, abs=1e-7)


def test_equal_samples_share_their_multiplier_so_that_fewer_features_join(monkeypatch):
    """Most samples have none of the useful features; noise joins by the hundred to prove the same solution."""
    rng = np.random.default_rng(0)
    n, p = 10_000, 1500
    X = sparse.random(n, p, density=0.002, format="csr", rng=rng)
    X.data = -np.log(X.data)
    decision = X[:, :30] @ (3.0 * rng.standard_normal(30))
    y = np.where(rng.random(n) < 1.0 / (1.0 + np.exp(0.3 - decision)), 1.0, -1.0)
    design = as_design(sparse.csr_array(X)).standardized()
    C = 4.0 / np.abs(design.transpose_dot(y - y.mean())).max()
    program, as_prices = (L1SvmTallProgram(design, y, C=C) for _ in range(2))
    found = program.solve()
    assert found.converged
    assert np.all(np.abs(found.pull) <= 1.0 + 1e-6)
    monkeypatch.setattr(programs, "MOST_SHARING_STEPS", 0)
    assert as_prices.solve().objective == pytest.approx(found.objective, rel=1e-9)
    assert program.pool.size < 0.8 * as_prices.pool.size


def test_sharing_keeps_sums_and_bounds_and_lowers_pulls():
    rng = np.random.default_rng(0)
    group, price = np.repeat([0, 1], [150, 50]), rng.uniform(0.5, 1.0, 200)
    design = as_design(rng.normal(size=(200, 30)))
    sign = np.where(rng.random(200) < 0.5, 1.0, -1.0)
    shared = programs._Sharing(design, sign, price, group)
    start, outside = 0.5 * price, np.arange(30) >= 5
    pull = np.full(30, 2.0) + design.transpose_dot(sign * start)  # also that of other rows
    cost = np.full(30, 6.0)
    assert np.abs(pull[outside]).max() > 8.0
    alpha = shared.calling_for_fewer(start, pull, cost, outside)
    np.testing.assert_allclose(np.bincount(group, alpha), np.bincount(group, start), rtol=1e-9)
    assert alpha.min() >= 0.0
    assert np.all(alpha <= price)
    after = 2.0 + design.transpose_dot(sign * alpha)
    assert np.abs(after[outside]).max() <= 6.0


def test_multipliers_that_prove_nothing_are_reported(monkeypatch):
    """A gap between the two objectives is a failure, not a solution."""
    X, y, _, cost = tall_problem(False, None)
    monkeypatch.setattr(programs, "LARGEST_GAP", -1.0)
    found = L1SvmTallProgram(as_design(X), y, C=0.1).solve(cost)
    assert found.status is Status.FAILED
