"""Linear programs against scipy, and re-solves against fresh solves."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog

from zeronorm.solvers._linear_program import LinearProgram
from zeronorm.solvers._status import Status


def problem(seed=0, n_rows=15, n_columns=30):
    """Covering constraints with positive costs: feasible and bounded."""
    rng = np.random.default_rng(seed)
    A = rng.uniform(0.0, 1.0, (n_rows, n_columns)) * (rng.uniform(size=(n_rows, n_columns)) < 0.5)
    A[np.arange(n_rows), np.arange(n_rows)] += 1.0
    return rng.uniform(0.5, 2.0, n_columns), A, rng.uniform(1.0, 3.0, n_rows)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("convert", [np.asarray, np.asfortranarray, sp.csr_array, sp.csc_matrix])
def test_matches_scipy(seed, convert):
    cost, A, b = problem(seed)
    solution = LinearProgram(cost, convert(A), b, np.inf, col_upper=4.0).solve()
    reference = linprog(cost, A_ub=-A, b_ub=-b, bounds=(0.0, 4.0))
    assert solution.converged
    assert solution.objective == pytest.approx(reference.fun, rel=1e-9)
    np.testing.assert_allclose(solution.x, reference.x, atol=1e-8)
    np.testing.assert_allclose(solution.row_duals, -reference.ineqlin.marginals, atol=1e-8)


def test_duals_certify_the_optimum():
    cost, A, b = problem()
    solution = LinearProgram(cost, A, b, np.inf).solve()
    np.testing.assert_allclose(solution.reduced_costs, cost - A.T @ solution.row_duals, atol=1e-9)
    assert solution.reduced_costs.min() >= -1e-9
    assert solution.row_duals.min() >= -1e-9
    assert b @ solution.row_duals == pytest.approx(solution.objective, rel=1e-9)
    assert np.abs(solution.x * solution.reduced_costs).max() < 1e-8


def test_equalities_and_ranges():
    cost, A, b = problem()
    solution = LinearProgram(cost, A, b, b + np.repeat([0.0, 1.0, np.inf], 5)).solve()
    reference = linprog(
        cost, A_ub=np.vstack([-A[5:], A[5:10]]), b_ub=np.r_[-b[5:], b[5:10] + 1.0], A_eq=A[:5], b_eq=b[:5]
    )
    assert solution.objective == pytest.approx(reference.fun, rel=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_interior_points_end_at_the_vertex_of_the_simplex_method(seed):
    cost, A, b = problem(seed, n_rows=40, n_columns=300)
    expected, program = LinearProgram(cost, A, b, np.inf).solve(), LinearProgram(cost, A, b, np.inf)
    found = program.solve(interior=True)
    assert found.converged
    assert found.n_iter > 0
    np.testing.assert_allclose(found.x, expected.x, atol=1e-8)
    np.testing.assert_allclose(found.row_duals, expected.row_duals, atol=1e-8)
    program.set_costs(2.0 * cost)  # the simplex method starts from that vertex
    assert program.solve().n_iter == 0


def test_interior_points_leave_what_has_no_solution_to_the_simplex_method():
    assert LinearProgram(-1.0, np.eye(3), 0.0, np.inf).solve(interior=True).status is Status.UNBOUNDED
    assert LinearProgram(1.0, np.eye(3), -2.0, -1.0).solve(interior=True).status is Status.INFEASIBLE


def test_new_costs_warm_equal_cold():
    cost, A, b = problem(n_rows=40, n_columns=300)
    program = LinearProgram(cost, A, b, np.inf)
    first = program.solve()
    changed = cost * np.random.default_rng(1).uniform(0.9, 1.1, cost.size)
    program.set_costs(changed)
    warm = program.solve()
    cold = LinearProgram(changed, A, b, np.inf).solve()
    assert warm.objective == pytest.approx(cold.objective, rel=1e-9)
    assert warm.n_iter < cold.n_iter
    program.set_costs(cost)
    assert program.solve().objective == pytest.approx(first.objective, rel=1e-9)
    program.set_costs([1e-3], columns=np.array([7]))
    cost[7] = 1e-3
    assert program.solve().objective == pytest.approx(LinearProgram(cost, A, b, np.inf).solve().objective)


class OlderHighs:
    """HiGHS before 1.13, which changes the bounds of one row at a time."""

    def __init__(self, model):
        self.model = model

    def __getattr__(self, name):
        if name == "changeRowsBounds":
            raise AttributeError(name)
        return getattr(self.model, name)


@pytest.mark.parametrize("version", [lambda model: model, OlderHighs])
def test_new_row_bounds_warm_equal_cold(version):
    cost, A, b = problem(n_rows=40, n_columns=300)
    program = LinearProgram(cost, A, b, np.inf)
    program._model = version(program._model)
    program.solve()
    lower = b * np.random.default_rng(1).uniform(0.9, 1.1, b.size)
    program.set_row_bounds(lower, lower + 0.5)
    warm, cold = program.solve(), LinearProgram(cost, A, lower, lower + 0.5).solve()
    assert warm.objective == pytest.approx(cold.objective, rel=1e-9)
    assert warm.n_iter < cold.n_iter
    assert np.all(A @ warm.x <= lower + 0.5 + 1e-7)


def test_new_column_bounds_warm_equal_cold():
    cost, A, b = problem(n_rows=40, n_columns=300)
    program = LinearProgram(cost, A, b, np.inf)
    upper = 0.9 * program.solve().x.max()
    program.set_column_bounds(0.0, upper)
    warm, cold = program.solve(), LinearProgram(cost, A, b, np.inf, col_upper=upper).solve()
    assert warm.objective == pytest.approx(cold.objective, rel=1e-9)
    assert warm.n_iter < cold.n_iter
    assert warm.x.max() <= upper + 1e-9


def test_a_program_is_solved_in_one_thread():
    """Otherwise parallel workers would each start threads for all cores."""
    cost, A, b = problem()
    assert LinearProgram(cost, A, b, np.inf)._model.getOptionValue("parallel")[1] == "off"


def test_columns_added_later_give_the_full_program():
    cost, A, b = problem(n_columns=60)
    program = LinearProgram(cost[:20], A[:, :20], b, np.inf)
    restricted = program.solve()
    program.add_columns(cost[20:], sp.csr_array(A[:, 20:]))
    full = program.solve()
    assert program.shape == A.shape
    assert full.objective <= restricted.objective
    assert full.objective == pytest.approx(LinearProgram(cost, A, b, np.inf).solve().objective, rel=1e-9)
    assert full.x.shape == (60,)
    np.testing.assert_allclose(full.reduced_costs, cost - A.T @ full.row_duals, atol=1e-9)


def test_infeasible_and_unbounded_programs_have_this_status():
    infeasible = LinearProgram([1.0], [[1.0], [1.0]], [2.0, -np.inf], [np.inf, 1.0]).solve()
    assert infeasible.status is Status.INFEASIBLE
    assert not infeasible.converged
    assert np.isfinite(infeasible.x).all()
    unbounded = LinearProgram([-1.0, 0.0], [[1.0, -1.0]], -np.inf, 0.0).solve()
    assert unbounded.status is Status.UNBOUNDED


def test_columns_of_the_wrong_height_are_refused():
    cost, A, b = problem()
    program = LinearProgram(cost, A, b, np.inf)
    with pytest.raises(ValueError, match="must have 15 rows"):
        program.add_columns([1.0], np.ones((3, 1)))


def test_quiet_and_repeatable(capfd):
    cost, A, b = problem(n_rows=40, n_columns=300)
    first, second = (LinearProgram(cost, A, b, np.inf).solve() for _ in range(2))
    np.testing.assert_array_equal(first.x, second.x)
    np.testing.assert_array_equal(first.row_duals, second.row_duals)
    assert capfd.readouterr() == ("", "")


def test_bounds_of_rows_and_columns_can_be_changed():
    program = LinearProgram([-1.0, -2.0], [[1.0, 1.0]], -np.inf, 4.0, 0.0, 3.0)
    assert program.shape == (1, 2)
    found = program.solve()
    assert (found.x.tolist(), found.objective, found.status) == ([1.0, 3.0], -7.0, Status.CONVERGED)
    assert found.row_duals.tolist() == [-1.0]
    assert found.reduced_costs.tolist() == [0.0, -1.0]
    program.set_column_bounds(0.0, [3.0, 2.0])
    assert program.solve().x.tolist() == [2.0, 2.0]
    program.set_row_bounds(-np.inf, 3.0)
    assert program.solve().x.tolist() == [1.0, 2.0]
    program.set_costs(-5.0, np.array([0]))
    assert program.solve().x.tolist() == [3.0, 0.0]
    program.add_columns(-11.0, [[2.0]], col_upper=1.0)
    assert program.solve().x.tolist() == [1.0, 0.0, 1.0]
    program.set_row_bounds(9.0, 10.0)
    assert program.solve().status is Status.INFEASIBLE
    with pytest.raises(ValueError, match="must have 1 rows"):
        program.add_columns(1.0, [[1.0], [2.0]])
    endless = LinearProgram([-1.0], [[0.0]], 0.0, 0.0)
    assert endless.solve().status is Status.UNBOUNDED
