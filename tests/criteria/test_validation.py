"""Validation loss, hinge objective and sums: gradients against finite differences, values against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.svm import SVC

from zeronorm.criteria import (
    CrossValidation,
    LinearKernel,
    Margin,
    PolynomialKernel,
    Radius,
    RadiusMargin,
    RBFKernel,
    SoftMargin,
    Span,
    Summed,
    ValidationLoss,
    Variance,
)
from zeronorm.design import as_design
from zeronorm.solvers.svm._dual import solve_svm_dual

KERNELS = [LinearKernel(), PolynomialKernel(2, 0.3, 1.0), RBFKernel(0.15)]
EVEN, ODD = np.arange(0, 30, 2), np.arange(1, 30, 2)
CRITERIA = {
    "one split": ValidationLoss(EVEN, ODD, 2.0, tol=1e-12),
    "hard margin": ValidationLoss(EVEN, ODD, np.inf, steepness=2.0, tol=1e-12),
    "two folds": CrossValidation.from_splits([(EVEN, ODD), (ODD, EVEN)], 2.0, 3.0, 1e-12),
    "hinge": SoftMargin(0.7, tol=1e-12),
    "hinge, a cost for each sample": SoftMargin(np.linspace(0.2, 1.0, 30), tol=1e-12),
}


def problem(seed=0, n=30, p=24):
    rng = np.random.default_rng(seed)
    y = np.where(rng.permutation(n) % 2 == 0, 1.0, -1.0)
    X = rng.normal(size=(n, p))
    X[:, 0] += y
    return X, y, rng.uniform(0.4, 1.2, size=p)


def slopes_and_differences(criterion, kernel, X, y, scale_sq, step=1e-5):
    def value(s):
        return criterion.evaluate(kernel.matrix(as_design(X).gram(s)), y).value

    gram = as_design(X).gram(scale_sq)
    K = kernel.matrix(gram)
    slope = as_design(X).gram_adjoint(kernel.pullback(gram, K, criterion.evaluate(K, y).gradient))
    shifts = step * np.eye(X.shape[1])
    differences = [(value(scale_sq + e) - value(scale_sq - e)) / (2 * step) for e in shifts]
    return slope, np.array(differences)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("name", CRITERIA)
def test_gradient_matches_finite_differences(name, kernel):
    slope, differences = slopes_and_differences(CRITERIA[name], kernel, *problem())
    assert np.abs(slope).max() > 0.0
    assert slope == pytest.approx(differences, rel=2e-4, abs=1e-4 * np.abs(slope).max())


def test_gradient_of_a_sum_over_classes():
    X, _, scale_sq = problem()
    Y = np.where(np.arange(30)[:, None] % 3 == np.arange(3), 1.0, -1.0)
    criterion = Summed(RadiusMargin(1.0, "variance", 1e-12))
    slope, differences = slopes_and_differences(criterion, RBFKernel(0.1), X, Y, scale_sq)
    assert slope == pytest.approx(differences, rel=2e-4, abs=1e-4 * np.abs(slope).max())


def test_steep_sigmoid_counts_the_errors_of_scikit_learn():
    X, y, _ = problem(1, n=60, p=8)
    train, valid = np.arange(30), np.arange(30, 60)
    K = RBFKernel(0.1).matrix(X @ X.T)
    loss = ValidationLoss(train, valid, 5.0, steepness=1e7, tol=1e-10).evaluate(K, y)
    # Squared slacks are a hard margin on K + I/C.
    ridged = K[np.ix_(train, train)] + np.eye(30) / 5.0
    model = SVC(kernel="precomputed", C=1e9, tol=1e-8).fit(ridged, y[train])
    errors = model.predict(K[np.ix_(valid, train)]) != y[valid]
    assert 0 < errors.sum() < 30
    assert loss.value == pytest.approx(errors.mean(), abs=1e-6)


def test_cross_validation_is_the_mean_of_its_folds():
    X, y, _ = problem(2)
    K = X @ X.T
    folds = [ValidationLoss(a, b, 1.0, 3.0, 1e-10).evaluate(K, y) for a, b in ((EVEN, ODD), (ODD, EVEN))]
    both = CrossValidation.from_splits([(EVEN, ODD), (ODD, EVEN)], 1.0, 3.0, 1e-10).evaluate(K, y)
    assert both.value == pytest.approx(0.5 * (folds[0].value + folds[1].value))
    assert np.allclose(both.gradient, 0.5 * (folds[0].gradient + folds[1].gradient))


def test_hinge_objective_is_that_of_the_primal():
    X, y, _ = problem(3)
    K = X @ X.T
    dual = solve_svm_dual(K, y, C=0.7, loss="hinge", tol=1e-10)
    w = X.T @ dual.dual_coef
    slack = np.maximum(0.0, 1.0 - y * (X @ w + dual.bias))
    assert SoftMargin(0.7, 1e-10).evaluate(K, y).value == pytest.approx(
        0.5 * w @ w + 0.7 * slack.sum(), rel=1e-7
    )


@pytest.mark.parametrize(
    "criterion",
    [
        Margin(2.0),
        Radius(2.0),
        Variance(2.0),
        RadiusMargin(2.0),
        RadiusMargin(2.0, "variance"),
        SoftMargin(0.7),
    ],
    ids=repr,
)
def test_factors_multiply_out_to_the_gradient(criterion):
    X, y, _ = problem(4)
    K = X @ X.T
    value = criterion.evaluate(K, y)
    d, V, c = value.factored.diagonal, value.factored.vectors, value.factored.weights
    assert np.allclose(value.gradient, np.diag(d) + V @ np.diag(c) @ V.T, rtol=1e-12, atol=0.0)
    assert V.shape[1] <= 2
    assert Span(2.0).evaluate(K, y).factored is None


@pytest.mark.parametrize(
    "criterion", [SoftMargin(np.inf), ValidationLoss(np.arange(4), np.arange(4), np.inf)], ids=repr
)
def test_hard_margin_on_inseparable_data_is_an_error(criterion):
    with pytest.raises(ValueError, match="finite C"):
        criterion.evaluate(np.ones((4, 4)), np.array([1.0, -1.0, 1.0, -1.0]))
