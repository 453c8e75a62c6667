"""Logistic regression by its kernel matrix: its optimality conditions, also where Newton's step is too long."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from zeronorm.solvers.logistic import solve_logistic_dual


@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_the_solution_meets_its_conditions(scale):
    rng = np.random.default_rng(0)
    X = scale * rng.normal(size=(40, 3))
    y = np.where(X[:, 0] + 0.5 * scale * rng.normal(size=40) > 0.3 * scale, 1.0, -1.0)
    K, C = X @ X.T, rng.uniform(0.5, 2.0, 40)
    found = solve_logistic_dual(K, y, C=C, tol=1e-9)
    f = K @ found.dual_coef + found.bias
    np.testing.assert_allclose(found.dual_coef, C * y * expit(-y * f), atol=1e-8)
    assert found.dual_coef.sum() == pytest.approx(0.0, abs=1e-8)
    value = 0.5 * found.dual_coef @ K @ found.dual_coef + C @ np.logaddexp(0.0, -y * f)
    assert found.objective == pytest.approx(value)
