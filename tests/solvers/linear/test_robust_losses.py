"""The Huber and the quantile loss against a convex solver and scikit-learn, and in the methods that use them."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from sklearn.linear_model import HuberRegressor, QuantileRegressor

from oracles.qp import PRECISE
from solvers.linear.fits import fit, problem_of
from solvers.problems import regression
from zeronorm import AROM, RFE, SVMWeights
from zeronorm.design import as_design
from zeronorm.solvers.linear import (
    EpsilonInsensitiveLoss,
    HingeLoss,
    HuberLoss,
    QuantileLoss,
    Way,
    solve,
)

WAYS = (Way.GRAM, Way.PRIMAL)
ROBUST = (HuberLoss(0.7), HuberLoss(0.05), QuantileLoss(0.5), QuantileLoss(0.8))


def outlying(n=60, p=8, seed=0):
    X, y = regression(n, p, seed=seed)
    y[::9] += 20.0
    return X, y


def by_a_convex_solver(X, y, cost, loss, z=None):
    w, b = cp.Variable(X.shape[1]), cp.Variable()
    error = y - X @ w - b
    if isinstance(loss, HuberLoss):
        each = 0.5 * cp.huber(error, loss.epsilon)
    else:
        each = cp.maximum(loss.quantile * error, (loss.quantile - 1.0) * error)
    size = w if z is None else cp.multiply(1.0 / z, w)
    problem = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(size) + cost @ each))
    problem.solve(solver=cp.CLARABEL, **PRECISE)
    return w.value, float(problem.value)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("loss", ROBUST, ids=repr)
@pytest.mark.parametrize("shape", [(60, 8), (30, 70)])
def test_the_solution_is_that_of_a_convex_solver(loss, shape, way):
    X, y = outlying(*shape)
    cost = np.random.default_rng(1).uniform(0.1, 2.0, shape[0])
    cost[:3] = 0.0
    found = fit(X, y, C=cost, loss=loss, way=way, tol=1e-8)
    weights, objective = by_a_convex_solver(X, y, cost, loss)
    assert found.converged
    assert found.objective == pytest.approx(objective, rel=1e-6)
    assert 0.0 <= found.gap <= 1e-6 * objective
    np.testing.assert_allclose(found.weights[:, 0], weights, atol=2e-4 * np.abs(weights).max())
    np.testing.assert_allclose(X.T @ found.dual_coef, found.weights, atol=1e-4)


@pytest.mark.parametrize("way", WAYS)
def test_huber_regression_is_that_of_scikit_learn_at_its_scale(way):
    X, y = outlying(200, 6)
    reference = HuberRegressor(epsilon=1.4, alpha=0.3, tol=1e-10, max_iter=10_000).fit(X, y)
    sigma = reference.scale_  # its objective is σ Σ H(r / σ) + α |w|², where H is twice our loss
    found = fit(X, y, C=1.0 / (0.3 * sigma), loss=HuberLoss(1.4 * sigma), way=way, tol=1e-9)
    np.testing.assert_allclose(found.weights[:, 0], reference.coef_, atol=1e-4)
    assert found.bias[0] == pytest.approx(reference.intercept_, abs=1e-4)


@pytest.mark.parametrize("quantile", [0.3, 0.5])
def test_quantile_regression_is_that_of_scikit_learn_for_a_small_penalty(quantile):
    X, y = outlying(150, 3)
    reference = QuantileRegressor(quantile=quantile, alpha=0.0).fit(X, y)
    found = fit(X, y, C=1e4, loss=QuantileLoss(quantile), way=Way.PRIMAL)
    np.testing.assert_allclose(found.weights[:, 0], reference.coef_, atol=1e-3)


@pytest.mark.parametrize("way", WAYS)
def test_limits_of_the_huber_loss(way):
    """With a wide zone it is the squared error, with a narrow one the absolute error times the width."""
    X, y = outlying()
    squared = EpsilonInsensitiveLoss(0.0, squared=True)
    wide = fit(X, y, C=0.3, loss=HuberLoss(1e4), way=way, tol=1e-9)
    np.testing.assert_allclose(wide.weights, fit(X, y, C=0.3, loss=squared).weights, atol=1e-6)
    narrow = fit(X, y, C=0.3e5, loss=HuberLoss(1e-5), way=Way.GRAM, tol=1e-9)
    absolute = fit(X, y, C=0.3, loss=EpsilonInsensitiveLoss(0.0), tol=1e-9)
    np.testing.assert_allclose(narrow.weights, absolute.weights, atol=1e-3)


@pytest.mark.parametrize(
    "loss", [*ROBUST, HingeLoss(), HingeLoss(squared=True), EpsilonInsensitiveLoss(0.3)], ids=repr
)
def test_a_loss_its_derivatives_and_its_dual_agree(loss):
    rng = np.random.default_rng(0)
    f, cost, h = 3.0 * rng.normal(size=40), rng.uniform(0.2, 2.0, 40), 1e-6
    y = np.where(rng.normal(size=40) > 0, 1.0, -1.0) if loss.for_classes_only else rng.normal(size=40)
    assert loss.total(f, y, cost) == pytest.approx(loss.box_dual(y, cost).loss(f))
    steps = h * np.eye(40)
    numerical = [(loss.total(f + s, y, cost) - loss.total(f - s, y, cost)) / (2 * h) for s in steps]
    np.testing.assert_allclose(loss.gradient(f, y, cost), numerical, atol=1e-6)
    bend = [
        (loss.gradient(f + s, y, cost) - loss.gradient(f - s, y, cost))[i] / (2 * h)
        for i, s in enumerate(steps)
    ]
    np.testing.assert_allclose(loss.hessian(f, y, cost), bend, atol=1e-6)


def test_factors_of_the_norm_and_another_loss_are_independent():
    X, y = outlying()
    z = np.linspace(0.3, 2.0, 8)
    found = solve(problem_of(y, 0.5, HuberLoss(0.4), scale=z), as_design(X), tol=1e-9)
    weights, _ = by_a_convex_solver(X, y, np.full(60, 0.5), HuberLoss(0.4), z)
    np.testing.assert_allclose(found.weights[:, 0], weights, atol=1e-4)


# -- in the methods ---------------------------------------------------------------------------------------

OF_METHODS = [
    ({"loss": "huber", "epsilon": 0.5}, HuberLoss(0.5)),
    ({"loss": "quantile", "quantile": 0.7}, QuantileLoss(0.7)),
]


@pytest.mark.parametrize(("settings", "loss"), OF_METHODS, ids=["huber", "quantile"])
@pytest.mark.parametrize("step", [1, 0.3])
@pytest.mark.parametrize("shape", [(40, 12), (25, 40)])
def test_rfe_removes_the_smallest_weight_of_each_refit(settings, loss, step, shape):
    X, y = outlying(*shape)
    found = RFE(task="regression", C=0.4, step=step, standardize=False, tol=1e-9, **settings).fit(X, y)
    active = np.arange(shape[1])
    for size in found.path_.sizes[::-1]:
        assert set(found.path_.support(int(size))) == set(active)
        w = np.abs(fit(X[:, active], y, C=0.4, loss=loss, tol=1e-9).weights[:, 0])
        n_out = 1 if step == 1 else max(1, int(step * active.size))
        active = active[np.sort(np.argsort(-w)[: active.size - n_out])]


@pytest.mark.parametrize(("settings", "loss"), OF_METHODS, ids=["huber", "quantile"])
def test_svm_weights_and_arom_minimise_the_loss(settings, loss):
    X, y = outlying(50, 10)
    options = {"task": "regression", "C": 0.4, "standardize": False, **settings}
    weights, _ = by_a_convex_solver(X, y, np.full(50, 0.4), loss)
    ranked = SVMWeights(**options).fit(X, y)
    np.testing.assert_allclose(ranked.coef_[0], weights, atol=1e-4)
    z = np.ones(10)
    for _ in range(3):
        weights, _ = by_a_convex_solver(X, y, np.full(50, 0.4), loss, z)
        z = np.abs(weights)
    with pytest.warns(UserWarning, match="max_iter"):
        rescaled = AROM(**options, start="equal", scaling="paper", zero_tol=0.0, max_iter=3).fit(X, y)
    np.testing.assert_allclose(rescaled.coef_[0], weights, atol=1e-3)


@pytest.mark.parametrize("method", [RFE, AROM, SVMWeights])
def test_losses_of_real_targets_are_refused_for_classes(method):
    X = np.random.default_rng(0).normal(size=(20, 3))
    with pytest.raises(ValueError, match="'loss' parameter"):
        method(loss="huber").fit(X, np.arange(20) % 2)


@pytest.mark.parametrize(
    "selector",
    [
        RFE(loss="huber", kernel="rbf", task="regression"),
        AROM(loss="huber", norm="l1", task="regression"),
        SVMWeights(loss="quantile", norm="l1", task="regression"),
    ],
    ids=repr,
)
def test_losses_are_refused_where_no_algorithm_solves_them(selector):
    X, y = outlying(20, 3)
    with pytest.raises(ValueError, match="'loss' parameter"):
        selector.fit(X, y)


@pytest.mark.parametrize("method", [RFE, SVMWeights])
def test_outliers_of_the_target_do_not_hide_the_features(method):
    X, y = outlying(80, 40)
    found = method(n_features_to_select=4, task="regression", loss="huber", epsilon=0.5, C=1.0).fit(X, y)
    assert found.get_support(indices=True).tolist() == [0, 1, 2, 3]
