"""Projection on the simplex: a QP solver, optimality conditions, and the two algorithms against each other."""

from __future__ import annotations

import cvxpy
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from zeronorm.solvers._geometry import project_in_place, project_on_simplex

vectors = arrays(np.float64, st.integers(1, 40), elements=st.floats(-1e3, 1e3))


@pytest.mark.parametrize("seed", range(5))
def test_matches_a_qp_solver(seed):
    x = np.random.default_rng(seed).normal(scale=0.3, size=25)
    point = cvxpy.Variable(25)
    problem = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum_squares(point - x)), [point >= 0, cvxpy.sum(point) == 1])
    problem.solve(solver=cvxpy.CLARABEL)
    np.testing.assert_allclose(project_on_simplex(x), point.value, atol=1e-6)


@settings(deadline=None, max_examples=100)
@given(vectors)
def test_optimality_conditions(x):
    point = project_on_simplex(x)
    scale = max(1.0, np.abs(x).max())
    assert point.min() >= 0.0
    assert abs(point.sum() - 1.0) <= 1e-12 * scale * x.size
    # The same multiplier for all positive entries, none smaller elsewhere.
    multiplier = (x - point)[point > 0]
    assert np.ptp(multiplier) <= 1e-12 * scale
    assert np.all(x[point == 0] <= multiplier.max() + 1e-12 * scale)


@settings(deadline=None, max_examples=100)
@given(vectors)
def test_recursion_agrees_with_sorting(x):
    point = x.copy()
    project_in_place(point)
    np.testing.assert_allclose(point, project_on_simplex(x), atol=1e-12 * max(1.0, np.abs(x).max()) * x.size)


def test_points_of_the_simplex_stay():
    point = np.random.default_rng(0).dirichlet(np.ones(500))
    np.testing.assert_allclose(project_on_simplex(point), point, atol=1e-15)


def test_one_huge_entry_is_a_corner():
    point = np.array([0.2, -1e12, 0.3, 5e11])
    project_in_place(point)
    assert point.tolist() == [0.0, 0.0, 0.0, 1.0]


@pytest.mark.parametrize("bad", [[], [[0.5, 0.5]], [np.nan, 1.0], [np.inf, 0.0]])
def test_refuses_what_has_no_projection(bad):
    with pytest.raises(ValueError, match="finite, non-empty vector"):
        project_on_simplex(bad)
