"""Logistic regression by its kernel matrix: its optimality conditions, also where Newton's step is too long."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit

from zeronorm import as_design
from zeronorm.solvers.logistic import _weighted_lasso, _WorkingSet, solve_logistic_dual


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


@pytest.mark.parametrize("scale", [1e8, 1e10])
def test_a_column_beside_which_the_others_are_rounding_is_fitted(scale):
    """The one on the diagonal of Newton's system is lost there, and the digits of the objective with it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 3))
    y = np.where(X[:, 0] + rng.normal(size=20) > 0, 1.0, -1.0)
    X[:, 0] *= scale
    without_features = 20 * np.log(2.0)
    assert solve_logistic_dual(X @ X.T, y).objective < 0.5 * without_features
