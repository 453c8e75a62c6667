"""The l1 SVM for many samples against the full program."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from solvers.l1_svm.full_program import full_program
from zeronorm.design import as_design
from zeronorm.solvers._status import Status
from zeronorm.solvers.l1_svm import _tall as programs
from zeronorm.solvers.l1_svm import _tall as tall
from zeronorm.solvers.l1_svm._program import L1SvmProgram
from zeronorm.solvers.l1_svm._tall import L1SvmTallProgram


def tall_problem(is_sparse, epsilon, n=300, p=60):
    """Data of real numbers, or of counts that are equal in most samples for the features that matter."""
    rng = np.random.default_rng(3)
    X = rng.poisson(0.15, size=(n, p)).astype(float) if is_sparse else rng.normal(size=(n, p))
    target = X[:, 0] - X[:, 1] + 0.5 * X[:, 2] + 0.4 * rng.normal(size=n)
    y = target if epsilon is not None else np.where(target > 0.1, 1.0, -1.0)
    return X, y, rng.uniform(0.5, 2.0, n), rng.uniform(0.5, 2.0, p)


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("epsilon", [None, 0.1])
def test_few_rows_at_a_time_give_the_full_program(is_sparse, epsilon, monkeypatch):
    """With windows of 12 rows, several levels of sampling, few features added at a time, and samples of zero weight."""
    monkeypatch.setattr(programs, "WINDOW", 12)
    monkeypatch.setattr(programs, "ROWS_OF_A_FEATURE", 2)
    monkeypatch.setattr(programs, "TALL_BATCH", 3)
    X, y, weight, penalty = tall_problem(is_sparse, epsilon)
    weight[::7] = 0.0
    design = as_design(sparse.csr_array(X) if is_sparse else X)
    program = L1SvmTallProgram(design, y, C=1.0, epsilon=epsilon)
    for C in (0.02, 0.1, 0.5):
        program.set_cost(C * weight)
        found = program.solve(penalty)
        assert found.converged
        assert found.objective == pytest.approx(full_program(X, y, C * weight, penalty, epsilon), rel=1e-7)
        slack = 1.0 - y * (X @ found.weights + found.bias)
        if epsilon is not None:
            slack = np.abs(y - X @ found.weights - found.bias) - epsilon
        np.testing.assert_allclose(found.slack, np.maximum(slack, 0.0), atol=1e-9)
        own = penalty @ np.abs(found.weights) + C * weight @ found.slack
        assert own == pytest.approx(found.objective, rel=1e-9)
        assert np.all(np.abs(found.gradient) <= (1.0 + 1e-6) * penalty)
        assert found.dual_coef.sum() == pytest.approx(0.0, abs=1e-9)


def test_rare_features_do_not_bring_all_rows_into_the_program(monkeypatch):
    """Real targets differ in all samples; the few rows of a rare feature must not be fixed on the wrong side."""
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
        program.set_cost(C)
        found = program.solve()
        expected = L1SvmProgram(as_design(X).standardized(), y, C=C, epsilon=0.05).solve()
        assert np.flatnonzero(found.weights).size >= 1
        assert found.objective == pytest.approx(expected.objective, rel=1e-7)
    assert max(sizes) <= 2000  # of 8000


def test_many_samples_with_other_costs_and_means():
    """The next program starts with the features of the last, and standardised sparse columns are not centred."""
    X, y, _, penalty = tall_problem(True, None)
    design = as_design(sparse.csr_array(X)).standardized()
    program = L1SvmTallProgram(design, y, C=0.1)
    for penalties in (np.ones(penalty.size), penalty, np.full(penalty.size, 1e3), penalty[::-1]):
        found, expected = (
            program.solve(penalties),
            L1SvmProgram(as_design(X).standardized(), y, C=0.1).solve(penalties),
        )
        assert found.objective == pytest.approx(expected.objective, rel=1e-8)
        np.testing.assert_allclose(found.weights, expected.weights, atol=1e-7)
        assert found.bias == pytest.approx(expected.bias, abs=1e-7)


def test_equal_samples_share_their_multiplier_so_that_fewer_features_join(monkeypatch):
    """Otherwise hundreds of noise features are added only to prove the same solution."""
    rng = np.random.default_rng(0)
    n, p = 10_000, 1500
    X = sparse.random(n, p, density=0.002, format="csr", rng=rng)
    X.data = -np.log(X.data)
    decision = X[:, :30] @ (3.0 * rng.standard_normal(30))
    y = np.where(rng.random(n) < 1.0 / (1.0 + np.exp(0.3 - decision)), 1.0, -1.0)
    design = as_design(sparse.csr_array(X)).standardized()
    C = 4.0 / np.abs(design.transpose_dot(y - y.mean())).max()
    program, as_costs = (L1SvmTallProgram(design, y, C=C) for _ in range(2))
    found = program.solve()
    assert found.converged
    assert np.all(np.abs(found.gradient) <= 1.0 + 1e-6)
    monkeypatch.setattr(programs, "MOST_SHARING_STEPS", 0)
    assert as_costs.solve().objective == pytest.approx(found.objective, rel=1e-9)
    assert program.pool.size < 0.8 * as_costs.pool.size


def test_the_worst_violators_join_first(monkeypatch):
    monkeypatch.setattr(tall, "TALL_BATCH", 2)
    X = np.array([[3.0, 1.0, -5.0, 0.5, 4.0, 1.0], [0.0, 0.0, 0.0, 0.0, 0.0, 1.0]])
    program = L1SvmTallProgram(as_design(X), [1.0, -1.0], C=1.0)
    alpha, penalties = np.array([1.0, 0.0]), np.array([1.0, 1.0, 1.0, 1.0, 1.0, 0.0])
    assert program._violators(alpha, penalties).tolist() == [2, 4]
    np.testing.assert_allclose(program._gradient, X[0])
    program._is_useful = np.ones(6, dtype=bool)  # half as many as have a weight
    assert program._violators(alpha, penalties).tolist() == [2, 4, 0]
    program.pool = np.array([2])
    assert program._violators(alpha, penalties).tolist() == [4, 0, 5]
    equal = np.where(penalties == 1.0, np.abs(X[0]), 9.0)
    assert program._violators((1.0 + 0.5e-7) * alpha, equal).size == 0
    assert program._violators((1.0 + 2e-7) * alpha, equal).size == 3


def test_rows_of_the_program_carry_their_signs_and_the_bias():
    rng = np.random.default_rng(2)
    X = rng.poisson(0.6, size=(7, 4)).astype(float)
    for y, epsilon in ((np.array([1.0, -1.0, 1.0, 1.0, -1.0, -1.0, 1.0]), None), (rng.normal(size=7), 0.1)):
        wanted = np.column_stack([X[:, [3, 0]], np.ones(7)])
        wanted = wanted * y[:, None] if epsilon is None else np.vstack([wanted, -wanted])
        for data in (X, sparse.csr_array(X)):
            program = L1SvmTallProgram(as_design(data), y, C=1.0, epsilon=epsilon)
            program.pool = np.array([3, 0])
            rows, shift = program._signed_rows()
            np.testing.assert_array_equal(rows.toarray() if sparse.issparse(rows) else rows, wanted)
            assert shift.tolist() == [0.0, 0.0]


def test_an_unfinished_program_is_not_called_solved():
    X, y = np.array([[1.0], [-1.0], [2.0]]), np.array([1.0, -1.0, 1.0])
    program = L1SvmTallProgram(as_design(X), y, C=1.0)
    program.pool = np.array([0])
    weights, alpha = np.array([1.0, 0.0]), np.array([0.5, 0.5, 0.0])
    for status, objective, wanted in (
        (Status.CONVERGED, 1.0, Status.CONVERGED),
        (Status.CONVERGED, 1.1, Status.FAILED),
        (Status.ITERATION_LIMIT, 1.1, Status.ITERATION_LIMIT),
    ):
        found = tall._Vertex(weights, alpha, 3, status)
        model = program._model(found, alpha, np.array([0.25]), objective)
        assert model.status is wanted
        assert model.bias == 0.25  # the columns were not centred
        np.testing.assert_allclose(model.slack, [0.0, 0.25, 0.0])
        assert model.dual_coef.tolist() == [0.5, -0.5, 0.0]


def test_features_with_a_weight_or_a_strong_gradient_stay_for_the_next_program():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(60, 5))
    y = np.where(X[:, 0] + 0.3 * rng.normal(size=60) > 0, 1.0, -1.0)
    program = L1SvmTallProgram(as_design(X), y, C=0.2)
    first = program.solve()
    assert first.converged
    program.pool = np.array([0, 1, 2, 3])
    program._is_useful = np.array([True, False, False, False])
    program._gradient = np.array([0.0, 0.95, -0.95, 0.5, 1.0])
    again = program.solve()
    assert 3 not in program.pool[:3]
    assert set(program.pool.tolist()) >= {0, 1, 2}
    assert again.objective == pytest.approx(first.objective, rel=1e-9)
    assert again.n_iter > first.n_iter  # counted over all programs
