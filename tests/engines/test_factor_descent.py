"""Criteria as functions of the factors, by finite differences and refits; the projected descent, by a QP solver."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.preprocessing import StandardScaler

from zeronorm.criteria import (
    CrossValidation,
    LinearKernel,
    PolynomialKernel,
    RadiusMargin,
    RBFKernel,
    Span,
    Summed,
    Variance,
)
from zeronorm.design import as_design
from zeronorm.engines.factor_descent._criterion import (
    ConstantSum,
    ScaledCriterion,
    UnitBox,
    descend,
    standing,
)
from zeronorm.engines.factor_descent._discarding import curvature_saliency, removal_value

KERNELS = [LinearKernel(), PolynomialKernel(2, 0.1, 1.0), PolynomialKernel(3, 0.1, 0.5), RBFKernel(0.08)]
EVEN, ODD = np.arange(0, 30, 2), np.arange(1, 30, 2)
CRITERIA = {
    "radius": RadiusMargin(2.0, "radius", 1e-12),
    "variance": RadiusMargin(2.0, "variance", 1e-12),
    "hard": RadiusMargin(np.inf, "variance", 1e-12),
    "span": Span(2.0, 1e-12),
    "validation": CrossValidation.from_splits([(EVEN, ODD), (ODD, EVEN)], 2.0, 3.0, 1e-12),
}


def data(n_classes=2, n=30, p=34):
    rng = np.random.default_rng(7)
    labels = rng.permutation(n) % n_classes
    X = rng.normal(size=(n, p))
    X[:, 0] += 1.5 * labels
    X[:, 3] -= labels == 1
    Y = np.where(labels[:, None] == np.arange(n_classes), 1.0, -1.0)
    return StandardScaler().fit_transform(X), Y[:, 1:] if n_classes == 2 else Y, rng.uniform(0.3, 1.4, size=p)


def objective_of(criterion, kernel, X, Y):
    return ScaledCriterion(as_design(X), kernel, Summed(criterion), Y)


def central_differences(function, at, step):
    return np.array([(function(at + e) - function(at - e)) / (2 * step) for e in step * np.eye(at.size)])


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("name", CRITERIA)
def test_slopes_match_finite_differences(name, kernel, n_classes):
    X, Y, s = data(n_classes)
    objective = objective_of(CRITERIA[name], kernel, X, Y)
    slope = objective(s)[1]
    some = slice(0, 5)

    def value(first):
        return objective(np.concatenate([first, s[5:]]))[0]

    assert slope[some] == pytest.approx(
        central_differences(value, s[some], 1e-5), rel=5e-4, abs=2e-4 * np.abs(slope).max()
    )


@pytest.mark.parametrize("scale", ["radius", "variance"])
@pytest.mark.parametrize(
    "to_backend", [as_design, lambda X: as_design(sp.csc_matrix(X))], ids=["dense", "sparse"]
)
def test_products_with_vectors_give_the_slopes_of_the_dense_gradient(scale, to_backend):
    X, Y, s = data(3)
    X[np.abs(X) < 0.5] = 0.0
    objective = ScaledCriterion(to_backend(X), LinearKernel(), Summed(RadiusMargin(1.0, scale, 1e-10)), Y)
    slope = objective(s)[1]
    assert slope == pytest.approx(as_design(X).gram_adjoint(objective.last.gradient), rel=1e-9)


def test_slope_of_standardised_features_is_that_of_the_link_with_rfe():
    X, Y, s = data()
    objective = objective_of(RadiusMargin(np.inf, "variance", 1e-12), LinearKernel(), X, Y)
    slope = objective(s)[1]
    ((_, dual),) = objective.last.warm
    squared_norm, scale = 2.0 * dual.objective, Variance().evaluate(objective.K, Y[:, 0]).value
    assert scale == pytest.approx(s.sum())
    weight = X.T @ dual.dual_coef  # the weight of the scaled feature divided by its factor
    assert slope == pytest.approx(squared_norm - scale * weight**2, rel=1e-8)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("scale", ["radius", "variance"])
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_curvature_matches_finite_differences_of_the_slope(kernel, scale, n_classes):
    X, Y, s = data(n_classes)
    objective = objective_of(RadiusMargin(2.0, scale, 1e-12), kernel, X, Y)
    saliency = curvature_saliency(objective, s)
    sigma, step = np.sqrt(s), 1e-5
    expected = np.empty(6)
    for k in range(6):
        slopes = []
        for shifted in (sigma[k] + step, sigma[k] - step):
            at = s.copy()
            at[k] = shifted**2
            slopes.append(2.0 * shifted * objective(at)[1][k])
        expected[k] = s[k] * (slopes[0] - slopes[1]) / (2 * step)
    assert saliency[:6] == pytest.approx(expected, rel=2e-3, abs=1e-3 * np.abs(saliency).max())


@pytest.mark.parametrize("name", ["radius", "variance", "span", "validation"])
def test_removal_is_the_value_of_a_fresh_model(name):
    X, Y, s = data()
    objective = objective_of(CRITERIA[name], RBFKernel(0.08), X, Y)
    objective(s)
    values = removal_value(objective, s)
    for k in (0, 3, 20):
        Z = np.delete(X * np.sqrt(s), k, axis=1)
        fresh = CRITERIA[name].evaluate(RBFKernel(0.08).matrix(Z @ Z.T), Y[:, 0])
        assert values[k] == pytest.approx(fresh.value, rel=1e-6)


def test_a_hard_margin_that_is_scaled_away_has_an_infinite_value():
    X = np.array([[1.0, 1.0], [2.0, 1.0], [1.0, -1.0], [2.0, -1.0]])
    objective = objective_of(CRITERIA["hard"], LinearKernel(), X, np.array([[1.0], [1.0], [-1.0], [-1.0]]))
    assert np.isfinite(objective(np.ones(2))[0])
    assert objective(np.array([1.0, 0.0]))[0] == np.inf
    assert removal_value(objective, np.ones(2)).tolist()[1] == np.inf


def test_standing_orders_by_factor_then_by_slope():
    scale_sq = np.array([0.0, 1.0, 0.3, 0.0, 1.0])
    slope = np.array([0.2, -0.1, 0.0, 0.1, -0.4])
    assert np.argsort(-standing(scale_sq, slope, 1e-3, top=1.0)).tolist() == [4, 1, 2, 3, 0]


def quadratic(seed=0, p=25):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(p, p))
    H, c = A @ A.T / p + 0.05 * np.eye(p), rng.normal(size=p)
    return H, c, lambda x: (0.5 * float(x @ H @ x) + float(c @ x) + 50.0, H @ x + c)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("region", [ConstantSum(25.0), ConstantSum(3.0), UnitBox()], ids=repr)
def test_quadratic_problems_match_a_qp_solver(region, seed):
    H, c, evaluate = quadratic(seed)
    found = descend(evaluate, np.ones(25), region, tol=1e-8, max_iter=2000)
    x = cp.Variable(25, nonneg=True)
    limits = [x <= 1] if isinstance(region, UnitBox) else [cp.sum(x) == region.total]
    best = cp.Problem(cp.Minimize(0.5 * cp.quad_form(x, cp.psd_wrap(H)) + c @ x), limits).solve(
        solver=cp.CLARABEL
    )
    assert found.converged
    assert found.value == pytest.approx(best + 50.0, rel=1e-7)
    assert np.allclose(found.point, x.value, atol=2e-3)


def test_gap_bounds_the_distance_from_the_optimum():
    _, _, evaluate = quadratic(4)
    best = descend(evaluate, np.ones(25), ConstantSum(25.0), tol=1e-10, max_iter=5000).value
    for n_iter in (1, 3, 10):
        early = descend(evaluate, np.ones(25), ConstantSum(25.0), tol=1e-10, max_iter=n_iter)
        assert early.n_iter == n_iter
        assert not early.converged
        assert "max_iter" in early.remedy
        assert early.value - best <= early.gap * early.value * (1 + 1e-9)


def test_points_of_infinite_value_are_kept_away_from():
    def evaluate(x):
        if x[0] < 0.5:
            return np.inf, np.zeros(2)
        return float((x[0] - 0.6) ** 2) + 1.0, np.array([2.0 * (x[0] - 0.6), 0.0])

    found = descend(evaluate, np.array([1.0, 1.0]), ConstantSum(2.0), tol=1e-9, max_iter=200)
    assert found.point == pytest.approx([0.6, 1.4], abs=1e-3)


def test_wrong_slopes_end_the_search_with_a_warning_text():
    found = descend(
        lambda x: (float(x.sum()), -np.ones(3)), np.full(3, 0.2), UnitBox(), tol=1e-6, max_iter=100
    )
    assert not found.converged
    assert "no decrease" in found.remedy


def test_a_descent_ends_at_a_kink():
    def evaluate(x):  # the largest entry: its slope never becomes small
        slope = np.zeros(5)
        slope[int(np.argmax(x))] = 1.0
        return 1.0 + float(x.max()), slope

    found = descend(evaluate, np.array([5.0, 0.0, 0.0, 0.0, 0.0]), ConstantSum(5.0), tol=1e-3, max_iter=3000)
    assert found.value == pytest.approx(2.0, abs=0.05)
