"""Linear SVMs on wide and tall data: both algorithms agree with each other and with other libraries."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import LinearSVC, LinearSVR

from oracles.qp import primal_svm, primal_svr
from solvers.linear.fits import fit, problem_of
from solvers.problems import at_most, classification, regression
from zeronorm.design import as_design
from zeronorm.solvers._status import Status
from zeronorm.solvers.linear import (
    EpsilonInsensitiveLoss,
    HingeLoss,
    LinearProblem,
    Reuse,
    Way,
    choose,
    prefers_gram,
    smallest_gram_size,
    solve,
)
from zeronorm.solvers.svm._dual import solve_svm_dual

LOSSES = ("hinge", "squared_hinge")


WAYS = (Way.GRAM, Way.PRIMAL)
REGRESSION_LOSSES = ("epsilon_insensitive", "squared_epsilon_insensitive")


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("way", WAYS)
def test_classification_matches_a_qp_solver(C, loss, way):
    X, y = classification(300, 6)
    model = fit(X, y, C=C, loss=loss, way=way, tol=1e-8)
    w, b, objective = primal_svm(X, y, C, loss)
    assert model.converged
    np.testing.assert_allclose(model.weights[:, 0], w, atol=1e-5 * np.abs(w).max())
    assert model.bias[0] == pytest.approx(b, abs=1e-4)
    assert model.objective == pytest.approx(objective, rel=1e-7)
    assert 0.0 <= model.gap < 1e-8 * objective


@pytest.mark.parametrize("loss", REGRESSION_LOSSES)
@pytest.mark.parametrize("epsilon", [0.0, 0.3])
@pytest.mark.parametrize("way", WAYS)
def test_regression_matches_a_qp_solver(loss, epsilon, way):
    X, y = regression(300, 6)
    model = fit(X, y, C=0.5, epsilon=epsilon, loss=loss, way=way, tol=1e-8)
    w, b, objective = primal_svr(X, y, 0.5, epsilon, loss)
    assert model.converged
    np.testing.assert_allclose(model.weights[:, 0], w, atol=1e-5)
    assert model.bias[0] == pytest.approx(b, abs=1e-4)
    assert model.objective == pytest.approx(objective, rel=1e-7)
    assert 0.0 <= model.gap < 1e-8 * objective


@pytest.mark.parametrize("loss", LOSSES)
def test_tall_and_dual_agree(loss):
    X, y = classification(250, 8, noise=2.0)
    C = np.random.default_rng(0).uniform(0.0, 2.0, 250)
    C[:7] = 0.0
    tall = fit(X, y, C=C, loss=loss, way=Way.PRIMAL)
    dual = solve_svm_dual(X @ X.T, y, C=C, loss=loss, tol=1e-9)
    np.testing.assert_allclose(tall.weights[:, 0], X.T @ dual.dual_coef, atol=1e-8)
    np.testing.assert_allclose(X.T @ tall.dual_coef[:, 0], tall.weights[:, 0], atol=1e-8)
    np.testing.assert_allclose(tall.state.alpha[0], dual.alpha, atol=1e-7)
    assert tall.bias[0] == pytest.approx(dual.bias, abs=1e-7)
    assert tall.objective == pytest.approx(dual.objective, rel=1e-10)


@pytest.mark.parametrize("shape", [(400, 10), (40, 100)])
def test_squared_hinge_matches_liblinear(shape):
    X, y = classification(*shape, noise=2.0)
    model = fit(X, y, C=0.3, loss="squared_hinge")
    reference = LinearSVC(C=0.15, dual=False, intercept_scaling=1e3, tol=1e-10, max_iter=5000).fit(X, y)
    np.testing.assert_allclose(model.weights[:, 0], reference.coef_[0], atol=1e-6)


def test_squared_regression_matches_liblinear():
    X, y = regression(400, 10)
    model = fit(X, y, C=0.3, loss="squared_epsilon_insensitive")
    reference = LinearSVR(
        C=0.15,
        epsilon=0.1,
        loss="squared_epsilon_insensitive",
        dual=False,
        intercept_scaling=1e3,
        tol=1e-10,
        max_iter=5000,
    ).fit(X, y)
    np.testing.assert_allclose(model.weights[:, 0], reference.coef_, atol=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_duplicated_sample_equals_a_doubled_weight(loss):
    X, y = classification(200, 5, noise=2.0)
    twice = np.concatenate([np.arange(200), [3, 17]])
    C = np.ones(200)
    C[[3, 17]] = 2.0
    copies = fit(X[twice], y[twice], loss=loss)
    weights = fit(X, y, C=C, loss=loss)
    np.testing.assert_allclose(copies.weights[:, 0], weights.weights[:, 0], atol=1e-8)


@pytest.mark.parametrize("loss", [*LOSSES, "logistic"])
@pytest.mark.parametrize("way", WAYS)
def test_warm_start_after_a_feature_left(loss, way):
    X, y = classification(400, 10, noise=2.0)
    design = as_design(X)
    before = fit(design, y, loss=loss, way=way)
    rest = design.take(np.delete(np.arange(10), 6))
    warm = fit(rest, y, loss=loss, start=before, way=way, tol=1e-8)
    cold = fit(rest, y, loss=loss, way=way, tol=1e-8)
    np.testing.assert_allclose(warm.weights, cold.weights, atol=1e-7)
    assert warm.n_iter <= cold.n_iter


def test_hard_margin_on_tall_data():
    X, _ = classification(300, 4)
    direction = np.array([1.0, -2.0, 0.5, 0.0])
    y = np.where(X @ direction > 0.3, 1.0, -1.0)
    X = X + 0.1 * y[:, None] * direction
    model = fit(X, y, C=np.inf, way=Way.PRIMAL)
    w, _, objective = primal_svm(X, y, np.inf)
    assert model.converged
    np.testing.assert_allclose(model.weights[:, 0], w, rtol=1e-5, atol=1e-5)
    assert model.objective == pytest.approx(objective, rel=1e-6)
    assert model.gap < 1e-6 * objective


def test_hard_margin_on_tall_data_reports_inseparable_classes():
    X, y = classification(300, 4)
    assert fit(X, y, C=np.inf, way=Way.PRIMAL).status is Status.UNBOUNDED


@pytest.mark.parametrize("loss", LOSSES)
def test_standardized_sparse_design(loss):
    X = sp.random_array((300, 8), density=0.3, rng=np.random.default_rng(0), format="csr")
    y = np.where(X.sum(axis=1) > X.sum(axis=1).mean(), 1.0, -1.0)
    design = as_design(X).standardized()
    dense = as_design(design.block(np.arange(8)))
    np.testing.assert_allclose(
        fit(design, y, loss=loss).weights,
        fit(dense, y, loss=loss).weights,
        atol=1e-7,
    )


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("loss", LOSSES)
def test_several_models_are_solved_as_if_each_were_alone(way, loss):
    X, _ = classification(60, 20)
    codes = np.digitize(X[:, 0] + X[:, 1], [-1.0, 1.0])
    targets = np.where(codes[:, None] == np.arange(3), 1.0, -1.0)
    design, one = as_design(X), problem_of(targets[:, 0], 0.5, loss)
    problem = LinearProblem(one.loss, targets, np.full((60, 3), 0.5))
    together = solve(problem, design, way=way, tol=1e-8)
    assert together.weights.shape == (20, 3)
    assert together.bias.shape == (3,)
    assert together.converged
    alone = [solve(problem.model(c), design, way=way, tol=1e-8) for c in range(3)]
    np.testing.assert_allclose(together.weights, np.hstack([a.weights for a in alone]), atol=1e-10)
    assert together.objective == pytest.approx(sum(a.objective for a in alone))
    assert together.gap == pytest.approx(sum(a.gap for a in alone))
    np.testing.assert_allclose(X.T @ together.dual_coef, together.weights, atol=1e-6)
    again = solve(problem, design, together.state, way=way, tol=1e-8)
    np.testing.assert_allclose(again.weights, together.weights, atol=1e-7)


def test_the_worst_status_of_several_models_is_reported():
    """The first hard margin exists; in the second problem a sample has two labels."""
    X, y = classification(40, 60)
    twice = np.vstack([X, X[:1]])
    targets = np.column_stack([np.append(y, y[0]), np.append(y, -y[0])])
    problem = LinearProblem(HingeLoss(), targets, np.full((41, 2), np.inf))
    assert solve(problem.model(0), as_design(twice)).converged
    assert solve(problem, as_design(twice)).status is Status.UNBOUNDED


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("loss", [*LOSSES, "logistic", *REGRESSION_LOSSES])
def test_factors_of_the_norm_are_factors_of_the_columns(loss, way):
    X, y = regression(50, 8) if "epsilon" in loss else classification(50, 8, noise=2.0)
    z = np.linspace(0.2, 3.0, 8)
    problem = problem_of(y, 0.7, loss, scale=z)
    found = solve(problem, as_design(X), way=way, tol=1e-8)
    other = fit(X * z, y, C=0.7, loss=loss, way=way, tol=1e-8)
    np.testing.assert_allclose(found.rescaled, other.weights, atol=1e-6)
    np.testing.assert_allclose(found.weights, z[:, None] * other.weights, atol=1e-6)
    np.testing.assert_allclose(found.absolute_weights(), np.abs(other.weights[:, 0]), atol=1e-6)
    wider = problem_of(y, 0.7, loss, scale=2.0 * z)
    warm = solve(wider, as_design(X), found.state, way=way, tol=1e-8)
    cold = solve(wider, as_design(X), way=way, tol=1e-8)
    np.testing.assert_allclose(warm.weights, cold.weights, atol=1e-6)


def test_the_algorithm_depends_on_size_loss_and_memory():
    hinge, squared, real = HingeLoss(), HingeLoss(squared=True), EpsilonInsensitiveLoss(0.1)
    assert prefers_gram((62, 2000), hinge)
    assert not prefers_gram((5000, 50), hinge)
    assert prefers_gram((3000, 700), hinge)
    assert not prefers_gram((3000, 700), squared)
    assert prefers_gram((3000, 700), squared, Reuse.GRAM)
    assert not prefers_gram((3000, 700), real)
    assert prefers_gram((500, 1), hinge)
    assert not prefers_gram((501, 1), hinge)
    assert prefers_gram((1024, 1), hinge, Reuse.NEAR)
    assert not prefers_gram((1025, 1), hinge, Reuse.NEAR)
    assert prefers_gram((256, 1), squared)
    assert not prefers_gram((257, 1), squared)
    assert not prefers_gram((20_000, 5000), hinge)
    assert prefers_gram((20_000, 5000), hinge, memory_budget=8 << 30)
    assert prefers_gram((1000, 900), hinge, memory_budget=10_000_000)
    assert choose(hinge, "l1", (10, 20)) is Way.PROGRAM
    assert choose(hinge, "l2", (10, 20)) is Way.GRAM
    assert choose(hinge, "l2", (5000, 20)) is Way.PRIMAL
    with pytest.raises(ValueError, match=r"needs .* GiB, more than the memory budget"):
        prefers_gram((10_000, 10_000), hinge, memory_budget=1000)


@pytest.mark.parametrize("n", [100, 600, 1500, 5000])
@pytest.mark.parametrize(
    "loss", [HingeLoss(), HingeLoss(squared=True), EpsilonInsensitiveLoss(0.1)], ids=repr
)
def test_the_gram_matrix_serves_down_to_the_smallest_size_for_which_it_is_cheaper(n, loss):
    cheaper = [p for p in range(1, 401) if prefers_gram((n, p), loss, Reuse.GRAM)]
    assert smallest_gram_size((n, 400), loss, Reuse.GRAM) == min(cheaper, default=401)


def test_where_the_gram_matrix_is_cheaper():
    """n² (p + 100) multiplications against 20 n p², for a regression 4 n p²."""
    hinge, real = HingeLoss(), EpsilonInsensitiveLoss(0.1)
    n = 20 * 300 * 300 // 400
    assert prefers_gram((n, 300), hinge)
    assert not prefers_gram((n + 1, 300), hinge)
    n = 4 * 600 * 600 // 700
    assert prefers_gram((n, 600), real)
    assert not prefers_gram((n + 1, 600), real)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_iteration_limit_is_reported(loss):
    X, y = classification(300, 6)
    model = fit(X, y, loss=loss, max_iter=1, way=Way.PRIMAL)
    assert model.status is Status.ITERATION_LIMIT
    assert model.gap > 1e-6


@pytest.mark.parametrize("loss", LOSSES)
def test_one_class_ends_with_no_weights(loss):
    X, _ = classification(300, 6)
    model = fit(X, np.ones(300), loss=loss, way=Way.PRIMAL)
    np.testing.assert_allclose(model.weights[:, 0], 0.0, atol=1e-8)
    assert model.bias[0] >= 1.0 - 1e-6


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("C", [1e-4, 1e3])
@pytest.mark.parametrize("shape", [(120, 8), (60, 40)])
def test_badly_scaled_data(shape, C, loss):
    rng = np.random.default_rng(0)
    X = 100.0 * rng.normal(size=shape) + 300.0
    y = np.where(rng.uniform(size=shape[0]) < 0.5, 1.0, -1.0)
    model = fit(X, y, C=C, loss=loss)
    assert model.converged
    assert model.gap < 1e-5 * (1.0 + model.objective)


@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
@pytest.mark.parametrize(("loss", "taken"), [("hinge", 14), ("squared_hinge", 3)])
def test_tall_classes(loss, taken, C):
    X, y = classification(300, 6)
    model = fit(X, y, C=C, loss=loss, way=Way.PRIMAL)
    assert model.n_iter <= at_most(taken)
    assert model.gap <= 1e-11 * model.objective


@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
@pytest.mark.parametrize(("loss", "taken"), [("epsilon_insensitive", 17), ("squared_epsilon_insensitive", 4)])
def test_tall_regression(loss, taken, C):
    X, y = regression(300, 6)
    model = fit(X, y, C=C, loss=loss, way=Way.PRIMAL)
    assert model.n_iter <= at_most(taken)
    assert model.gap <= 1e-11 * model.objective
