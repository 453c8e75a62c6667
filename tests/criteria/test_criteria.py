"""Criteria and kernels: gradients against finite differences, values against a QP solver and leave-one-out."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel
from sklearn.svm import SVC

from zeronorm.criteria import (
    FactoredMatrix,
    LinearKernel,
    Margin,
    PolynomialKernel,
    Radius,
    RadiusMargin,
    RBFKernel,
    Span,
    Variance,
    make_kernel,
)
from zeronorm.design import as_design
from zeronorm.solvers.svm._dual import solve_svm_dual

KERNELS = [LinearKernel(), PolynomialKernel(2, 0.3, 1.0), PolynomialKernel(3, 0.2, 0.5), RBFKernel(0.15)]


CRITERIA = [
    Margin(2.0, 1e-12),
    Radius(2.0, 1e-12),
    Variance(2.0),
    RadiusMargin(2.0, "radius", 1e-12),
    RadiusMargin(2.0, "variance", 1e-12),
    Span(2.0, 1e-12),
    RadiusMargin(np.inf, "variance", 1e-12),
]


def problem(seed=0, n=25, p=30):
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    X = rng.normal(size=(n, p))
    X[:, 0] += y
    return X, y, rng.uniform(0.4, 1.2, size=p)


def value_at(criterion, kernel, X, y, scale_sq):
    return criterion.evaluate(kernel.matrix(as_design(X).gram(scale_sq)), y).value


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("criterion", CRITERIA, ids=repr)
def test_gradient_of_every_scaling_factor(criterion, kernel):
    X, y, scale_sq = problem()
    design = as_design(X)
    gram = design.gram(scale_sq)
    K = kernel.matrix(gram)
    gradient = design.gram_adjoint(kernel.pullback(gram, K, criterion.evaluate(K, y).gradient))
    step = 1e-5
    for k in range(6):
        up, down = scale_sq.copy(), scale_sq.copy()
        up[k] += step
        down[k] -= step
        slope = (value_at(criterion, kernel, X, y, up) - value_at(criterion, kernel, X, y, down)) / (2 * step)
        assert gradient[k] == pytest.approx(slope, rel=2e-4, abs=2e-5 * np.abs(gradient).max())


@pytest.mark.parametrize("criterion", CRITERIA, ids=repr)
def test_warm_start_changes_nothing(criterion):
    X, y, scale_sq = problem(1)
    design, kernel = as_design(X), RBFKernel(0.1)
    before = criterion.evaluate(kernel.matrix(design.gram(scale_sq * 1.05)), y)
    K = kernel.matrix(design.gram(scale_sq))
    cold, warm = criterion.evaluate(K, y), criterion.evaluate(K, y, before.warm)
    assert warm.value == pytest.approx(cold.value, rel=1e-8)
    assert np.allclose(warm.gradient, cold.gradient, atol=1e-5 * np.abs(cold.gradient).max())


def test_margin_is_the_primal_norm():
    X, y, _ = problem(2)
    dual = solve_svm_dual(X @ X.T, y, C=np.inf, loss="squared_hinge", tol=1e-10)
    w = X.T @ dual.dual_coef
    assert Margin(np.inf).evaluate(X @ X.T, y).value == pytest.approx(w @ w, rel=1e-6)


@pytest.mark.parametrize("C", [1.0, 10.0])
def test_span_is_leave_one_out_where_the_support_stays(C):
    X, y, _ = problem(3, n=24, p=120)
    K = X @ X.T
    dual = solve_svm_dual(K, y, C=C, loss="squared_hinge", tol=1e-12)
    support = np.flatnonzero(dual.alpha > 1e-9)
    checked = 0
    total = 0.0
    from zeronorm.criteria._span import bordered_inverse

    span_sq = 1.0 / np.diagonal(bordered_inverse(K[np.ix_(support, support)] + np.eye(support.size) / C))[:-1]
    for position, k in enumerate(support):
        rest = np.delete(np.arange(24), k)
        other = solve_svm_dual(K[np.ix_(rest, rest)], y[rest], C=C, loss="squared_hinge", tol=1e-12)
        total += dual.alpha[k] * span_sq[position]
        if set(rest[other.alpha > 1e-9]) != set(support) - {k}:
            continue
        output = K[k, rest] @ other.dual_coef + other.bias
        assert dual.alpha[k] * span_sq[position] == pytest.approx(1.0 - y[k] * output, rel=1e-5)
        checked += 1
    assert checked >= 5
    assert Span(C, 1e-12).evaluate(K, y).value == pytest.approx(total, rel=1e-6)


def test_kernels_match_scikit_learn():
    X, _, scale_sq = problem(4)
    Z = X * np.sqrt(scale_sq)
    gram = as_design(X).gram(scale_sq)
    assert np.allclose(RBFKernel(0.2).matrix(gram), rbf_kernel(Z, gamma=0.2))
    assert np.allclose(
        PolynomialKernel(3, 0.2, 0.5).matrix(gram), polynomial_kernel(Z, degree=3, gamma=0.2, coef0=0.5)
    )
    left, right = Z[:7], Z[7:]
    cross = RBFKernel(0.2).cross(left @ right.T, (left**2).sum(axis=1), (right**2).sum(axis=1))
    assert np.allclose(cross, rbf_kernel(left, right, gamma=0.2))


def test_kernel_by_name():
    X = np.random.default_rng(0).normal(3.0, 2.0, size=(30, 50)) * np.arange(1, 51)
    design = as_design(X)
    assert make_kernel("linear", design=design) == LinearKernel()
    assert make_kernel("rbf", design=design) == RBFKernel(0.02)
    assert make_kernel("poly", gamma=0.5, degree=3, coef0=2.0, design=design) == PolynomialKernel(3, 0.5, 2.0)
    peer = SVC(gamma="scale").fit(X, np.arange(30) % 2)
    assert make_kernel("rbf", gamma="scale", design=design).gamma == pytest.approx(peer._gamma, rel=1e-12)


def test_hard_margin_on_inseparable_data_is_an_error():
    with pytest.raises(ValueError, match="finite C"):
        Margin(np.inf).evaluate(np.ones((4, 4)), np.array([1.0, -1.0, 1.0, -1.0]))


def test_forms_of_a_factored_matrix():
    rng = np.random.default_rng(0)
    X, M = (
        rng.normal(size=(12, 5)),
        FactoredMatrix(rng.normal(size=12), rng.normal(size=(12, 3)), rng.normal(size=3)),
    )
    np.testing.assert_allclose(M.forms(as_design(X)), np.diagonal(X.T @ M.dense() @ X), rtol=1e-12)
