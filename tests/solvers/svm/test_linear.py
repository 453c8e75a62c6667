"""Linear SVMs on wide and tall data: both algorithms agree with each other and with other libraries."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import LinearSVC, LinearSVR

from oracles.qp import primal_svm, primal_svr
from solvers.problems import at_most, classification, regression
from zeronorm.design import as_design
from zeronorm.solvers._status import Status
from zeronorm.solvers.svm._dual import solve_svm_dual
from zeronorm.solvers.svm._linear import (
    LinearSvm,
    OneVsRest,
    prefers_gram,
    solve_linear_svm,
    solve_linear_svr,
    solve_one_vs_rest,
)

LOSSES = ("hinge", "squared_hinge")


REGRESSION_LOSSES = ("epsilon_insensitive", "squared_epsilon_insensitive")


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_tall_classification_matches_a_qp_solver(C, loss):
    X, y = classification(300, 6)
    assert not prefers_gram(X.shape)
    model = solve_linear_svm(as_design(X), y, C=C, loss=loss)
    w, b, objective = primal_svm(X, y, C, loss)
    assert model.converged
    np.testing.assert_allclose(model.weights, w, atol=1e-5 * np.abs(w).max())
    assert model.bias == pytest.approx(b, abs=1e-4)
    assert model.objective == pytest.approx(objective, rel=1e-7)
    assert 0.0 <= model.gap < 1e-8 * objective


@pytest.mark.parametrize("loss", REGRESSION_LOSSES)
@pytest.mark.parametrize("epsilon", [0.0, 0.3])
def test_tall_regression_matches_a_qp_solver(loss, epsilon):
    X, y = regression(300, 6)
    model = solve_linear_svr(as_design(X), y, C=0.5, epsilon=epsilon, loss=loss)
    w, b, objective = primal_svr(X, y, 0.5, epsilon, loss)
    assert model.converged
    np.testing.assert_allclose(model.weights, w, atol=1e-5)
    assert model.bias == pytest.approx(b, abs=1e-4)
    assert model.objective == pytest.approx(objective, rel=1e-7)
    assert 0.0 <= model.gap < 1e-8 * objective


@pytest.mark.parametrize("loss", LOSSES)
def test_tall_and_dual_agree(loss):
    X, y = classification(250, 8, noise=2.0)
    C = np.random.default_rng(0).uniform(0.0, 2.0, 250)
    C[:7] = 0.0
    tall = solve_linear_svm(as_design(X), y, C=C, loss=loss)
    dual = solve_svm_dual(X @ X.T, y, C=C, loss=loss, tol=1e-9)
    np.testing.assert_allclose(tall.weights, X.T @ dual.dual_coef, atol=1e-8)
    np.testing.assert_allclose(X.T @ tall.dual_coef, tall.weights, atol=1e-8)
    np.testing.assert_allclose(tall.alpha, dual.alpha, atol=1e-7)
    assert tall.bias == pytest.approx(dual.bias, abs=1e-7)
    assert tall.objective == pytest.approx(dual.objective, rel=1e-10)


@pytest.mark.parametrize("shape", [(400, 10), (40, 100)])
def test_squared_hinge_matches_liblinear(shape):
    X, y = classification(*shape, noise=2.0)
    model = solve_linear_svm(as_design(X), y, C=0.3, loss="squared_hinge")
    reference = LinearSVC(C=0.15, dual=False, intercept_scaling=1e3, tol=1e-10, max_iter=5000).fit(X, y)
    np.testing.assert_allclose(model.weights, reference.coef_[0], atol=1e-6)


def test_squared_regression_matches_liblinear():
    X, y = regression(400, 10)
    model = solve_linear_svr(as_design(X), y, C=0.3, loss="squared_epsilon_insensitive")
    reference = LinearSVR(
        C=0.15,
        epsilon=0.1,
        loss="squared_epsilon_insensitive",
        dual=False,
        intercept_scaling=1e3,
        tol=1e-10,
        max_iter=5000,
    ).fit(X, y)
    np.testing.assert_allclose(model.weights, reference.coef_, atol=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_duplicated_sample_equals_a_doubled_weight(loss):
    X, y = classification(200, 5, noise=2.0)
    twice = np.concatenate([np.arange(200), [3, 17]])
    C = np.ones(200)
    C[[3, 17]] = 2.0
    copies = solve_linear_svm(as_design(X[twice]), y[twice], loss=loss)
    weights = solve_linear_svm(as_design(X), y, C=C, loss=loss)
    np.testing.assert_allclose(copies.weights, weights.weights, atol=1e-8)


@pytest.mark.parametrize("loss", LOSSES)
def test_warm_start_after_a_feature_left(loss):
    X, y = classification(400, 10, noise=2.0)
    design = as_design(X)
    before = solve_linear_svm(design, y, loss=loss)
    rest = design.take(np.delete(np.arange(10), 6))
    warm = solve_linear_svm(rest, y, loss=loss, warm_start=before)
    cold = solve_linear_svm(rest, y, loss=loss)
    np.testing.assert_allclose(warm.weights, cold.weights, atol=1e-8)
    assert warm.n_iter <= cold.n_iter


def test_hard_margin_on_tall_data():
    X, _ = classification(300, 4)
    direction = np.array([1.0, -2.0, 0.5, 0.0])
    y = np.where(X @ direction > 0.3, 1.0, -1.0)
    X = X + 0.1 * y[:, None] * direction
    model = solve_linear_svm(as_design(X), y, C=np.inf)
    w, _, objective = primal_svm(X, y, np.inf)
    assert model.converged
    np.testing.assert_allclose(model.weights, w, rtol=1e-5, atol=1e-5)
    assert model.objective == pytest.approx(objective, rel=1e-6)
    assert model.gap < 1e-6 * objective


def test_hard_margin_on_tall_data_reports_inseparable_classes():
    X, y = classification(300, 4)
    assert solve_linear_svm(as_design(X), y, C=np.inf).status is Status.UNBOUNDED


@pytest.mark.parametrize("loss", LOSSES)
def test_standardized_sparse_design(loss):
    X = sp.random_array((300, 8), density=0.3, rng=np.random.default_rng(0), format="csr")
    y = np.where(X.sum(axis=1) > X.sum(axis=1).mean(), 1.0, -1.0)
    design = as_design(X).standardized()
    dense = as_design(design.block(np.arange(8)))
    np.testing.assert_allclose(
        solve_linear_svm(design, y, loss=loss).weights,
        solve_linear_svm(dense, y, loss=loss).weights,
        atol=1e-7,
    )


@pytest.mark.parametrize("shape", [(60, 100), (300, 5)])
@pytest.mark.parametrize("loss", LOSSES)
def test_one_vs_rest_is_one_model_for_each_class(shape, loss):
    X, _ = classification(*shape)
    codes = np.digitize(X[:, 0] + X[:, 1], [-1.0, 1.0])
    design = as_design(X)
    together = solve_one_vs_rest(design, codes, 3, C=0.5, loss=loss)
    assert together.weights.shape == (3, shape[1])
    assert together.biases.shape == (3,)
    assert together.dual_coef.shape == (shape[0], 3)
    assert together.converged
    for k in range(3):
        alone = solve_linear_svm(design, np.where(codes == k, 1.0, -1.0), C=0.5, loss=loss)
        np.testing.assert_allclose(together.weights[k], alone.weights, atol=1e-10)
    np.testing.assert_allclose(X.T @ together.dual_coef, together.weights.T, atol=1e-7)
    again = solve_one_vs_rest(design, codes, 3, C=0.5, loss=loss, warm_start=together)
    np.testing.assert_allclose(again.weights, together.weights, atol=1e-8)


def test_the_algorithm_depends_on_size_and_memory():
    assert prefers_gram((62, 2000))
    assert not prefers_gram((5000, 50))
    assert prefers_gram((3000, 700))
    assert not prefers_gram((3000, 700), regression=True)
    assert not prefers_gram((20_000, 5000))
    assert prefers_gram((20_000, 5000), memory_budget=8 << 30)
    assert prefers_gram((1000, 900), memory_budget=10_000_000)
    with pytest.raises(ValueError, match=r"needs .* GiB, more than the memory budget"):
        prefers_gram((10_000, 10_000), memory_budget=1000)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_iteration_limit_is_reported(loss):
    X, y = classification(300, 6)
    model = solve_linear_svm(as_design(X), y, loss=loss, max_iter=1)
    assert model.status is Status.ITERATION_LIMIT
    assert model.gap > 1e-6


@pytest.mark.parametrize("loss", LOSSES)
def test_one_class_ends_with_no_weights(loss):
    X, _ = classification(300, 6)
    model = solve_linear_svm(as_design(X), np.ones(300), loss=loss)
    np.testing.assert_allclose(model.weights, 0.0, atol=1e-8)
    assert model.bias >= 1.0 - 1e-6


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("C", [1e-4, 1e3])
@pytest.mark.parametrize("shape", [(120, 8), (60, 40)])
def test_badly_scaled_data(shape, C, loss):
    rng = np.random.default_rng(0)
    X = 100.0 * rng.normal(size=shape) + 300.0
    y = np.where(rng.uniform(size=shape[0]) < 0.5, 1.0, -1.0)
    model = solve_linear_svm(as_design(X), y, C=C, loss=loss)
    assert model.converged
    assert model.gap < 1e-5 * (1.0 + model.objective)


def test_where_the_gram_matrix_is_cheaper():
    assert prefers_gram((100, 100))
    n = 20 * 100 * 100 // 200
    assert prefers_gram((n, 100))
    assert not prefers_gram((n + 1, 100))
    n = 4 * 100 * 100 // 200
    assert prefers_gram((n, 100), regression=True)
    assert not prefers_gram((n + 1, 100), regression=True)
    assert not prefers_gram((50, 2), 8 * 50 * 50 - 1)  # by memory first
    assert prefers_gram((50, 200), 8 * 50 * 50)
    assert prefers_gram((3, 50), 16 * 51**2 - 1)
    with pytest.raises(ValueError, match="memory_budget"):
        prefers_gram((50, 50), 8 * 50 * 50 - 1)


def test_models_of_all_classes_together():
    def model(k, status):
        return LinearSvm(np.full(2, k), float(k), np.zeros(3), np.full(3, k), 0.0, 0.1 * k, 10 + k, status)

    all_of_them = OneVsRest(tuple(model(k, s) for k, s in ((2, Status.CONVERGED), (1, Status.STALLED))))
    assert all_of_them.weights.tolist() == [[2, 2], [1, 1]]
    assert all_of_them.biases.tolist() == [2.0, 1.0]
    assert all_of_them.dual_coef.tolist() == [[2, 1]] * 3
    assert all_of_them.gap == pytest.approx(0.3)
    assert (all_of_them.n_iter, all_of_them.status, all_of_them.converged) == (12, Status.STALLED, False)


@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
@pytest.mark.parametrize(("loss", "taken"), [("hinge", 14), ("squared_hinge", 3)])
def test_tall_classes(loss, taken, C):
    X, y = classification(300, 6)
    model = solve_linear_svm(as_design(X), y, C=C, loss=loss)
    assert model.n_iter <= at_most(taken)
    assert model.gap <= 1e-11 * model.objective


@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
@pytest.mark.parametrize(("loss", "taken"), [("epsilon_insensitive", 17), ("squared_epsilon_insensitive", 4)])
def test_tall_regression(loss, taken, C):
    X, y = regression(300, 6)
    model = solve_linear_svr(as_design(X), y, C=C, loss=loss)
    assert model.n_iter <= at_most(taken)
    assert model.gap <= 1e-11 * model.objective
