"""Linear machines on wide and tall data: both ways agree with each other and with other libraries."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize_scalar
from sklearn.svm import LinearSVC, LinearSVR

from oracles.qp import primal_svm, primal_svr
from solvers.problems import classification, regression
from zeronorm.design import as_design
from zeronorm.solvers.status import Status
from zeronorm.solvers.svm import linear, tall
from zeronorm.solvers.svm.box_dual import BoxDual, add_free, drop_free
from zeronorm.solvers.svm.dual import solve_svm_dual
from zeronorm.solvers.svm.linear import (
    prefers_gram,
    solve_by_multipliers,
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
    machine = solve_linear_svm(as_design(X), y, C=C, loss=loss)
    w, b, objective = primal_svm(X, y, C, loss)
    assert machine.converged
    np.testing.assert_allclose(machine.weights, w, atol=1e-5 * np.abs(w).max())
    assert machine.bias == pytest.approx(b, abs=1e-4)
    assert machine.objective == pytest.approx(objective, rel=1e-7)
    assert 0.0 <= machine.gap < 1e-8 * objective


@pytest.mark.parametrize("loss", REGRESSION_LOSSES)
@pytest.mark.parametrize("epsilon", [0.0, 0.3])
def test_tall_regression_matches_a_qp_solver(loss, epsilon):
    X, y = regression(300, 6)
    machine = solve_linear_svr(as_design(X), y, C=0.5, epsilon=epsilon, loss=loss)
    w, b, objective = primal_svr(X, y, 0.5, epsilon, loss)
    assert machine.converged
    np.testing.assert_allclose(machine.weights, w, atol=1e-5)
    assert machine.bias == pytest.approx(b, abs=1e-4)
    assert machine.objective == pytest.approx(objective, rel=1e-7)
    assert 0.0 <= machine.gap < 1e-8 * objective


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
    machine = solve_linear_svm(as_design(X), y, C=0.3, loss="squared_hinge")
    reference = LinearSVC(C=0.15, dual=False, intercept_scaling=1e3, tol=1e-10, max_iter=5000).fit(X, y)
    np.testing.assert_allclose(machine.weights, reference.coef_[0], atol=1e-6)


def test_squared_regression_matches_liblinear():
    X, y = regression(400, 10)
    machine = solve_linear_svr(as_design(X), y, C=0.3, loss="squared_epsilon_insensitive")
    reference = LinearSVR(
        C=0.15,
        epsilon=0.1,
        loss="squared_epsilon_insensitive",
        dual=False,
        intercept_scaling=1e3,
        tol=1e-10,
        max_iter=5000,
    ).fit(X, y)
    np.testing.assert_allclose(machine.weights, reference.coef_, atol=1e-6)


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
    machine = solve_linear_svm(as_design(X), y, C=np.inf)
    w, _, objective = primal_svm(X, y, np.inf)
    assert machine.converged
    np.testing.assert_allclose(machine.weights, w, rtol=1e-5, atol=1e-5)
    assert machine.objective == pytest.approx(objective, rel=1e-6)
    assert machine.gap < 1e-6 * objective


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
def test_one_vs_rest_is_one_machine_for_each_class(shape, loss):
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


def test_the_way_of_solving_follows_size_and_memory():
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
    machine = solve_linear_svm(as_design(X), y, loss=loss, max_iter=1)
    assert machine.status is Status.ITERATION_LIMIT
    assert machine.gap > 1e-6


@pytest.mark.parametrize("loss", LOSSES)
def test_one_class_ends_with_no_weights(loss):
    X, _ = classification(300, 6)
    machine = solve_linear_svm(as_design(X), np.ones(300), loss=loss)
    np.testing.assert_allclose(machine.weights, 0.0, atol=1e-8)
    assert machine.bias >= 1.0 - 1e-6


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("C", [1e-4, 1e3])
@pytest.mark.parametrize("shape", [(120, 8), (60, 40)])
def test_badly_scaled_data(shape, C, loss):
    rng = np.random.default_rng(0)
    X = 100.0 * rng.normal(size=shape) + 300.0
    y = np.where(rng.uniform(size=shape[0]) < 0.5, 1.0, -1.0)
    machine = solve_linear_svm(as_design(X), y, C=C, loss=loss)
    assert machine.converged
    assert machine.gap < 1e-5 * (1.0 + machine.objective)


def test_an_interior_point_method_near_a_solution_takes_fewer_iterations():
    X, y = classification(2000, 30, seed=4)
    whole = solve_linear_svm(as_design(X), y, C=0.5)
    fewer = as_design(np.ascontiguousarray(X[:, :25]))
    cold, warm = (solve_linear_svm(fewer, y, C=0.5, warm_start=start) for start in (None, whole))
    assert warm.converged
    assert warm.n_iter < cold.n_iter
    np.testing.assert_allclose(warm.weights, cold.weights, atol=1e-7)


def test_variables_that_reach_zero_end_the_search_without_a_foreign_error(monkeypatch):
    """Rounding may put a product exactly at zero; its quotient is then no number."""
    from zeronorm.solvers.svm import tall

    started = tall._InteriorPoint.start

    def start_at_the_bound(self):
        point = started(self)
        point.variables[:, 0] = 0.0
        return point

    monkeypatch.setattr(tall._InteriorPoint, "start", start_at_the_bound)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    y = np.where(X[:, 0] > 0.0, 1.0, -1.0)
    with np.errstate(all="ignore"):
        solution = solve_linear_svm(as_design(X), y, C=1.0, loss="hinge")
    assert np.all(np.isfinite(solution.weights))
    assert not solution.converged


def test_the_status_of_several_machines_is_the_worst():
    from types import SimpleNamespace

    from zeronorm.solvers.svm.linear import OneVsRest

    states = [Status.CONVERGED, Status.ITERATION_LIMIT, Status.CONVERGED]
    machines = tuple(SimpleNamespace(status=state) for state in states)
    fields = dict.fromkeys(OneVsRest.__dataclass_fields__)
    assert OneVsRest(**{**fields, "machines": machines}).status is Status.ITERATION_LIMIT


# -- Tall sparse data, without a p by p matrix --


def tall_sparse(seed=0, n=400, p=30, density=0.1):
    rng = np.random.default_rng(seed)
    X = sp.random(n, p, density=density, format="csr", rng=rng)
    decision = X @ rng.normal(size=p) + 0.3 * rng.normal(size=n)
    return as_design(X).standardized(), decision


@pytest.mark.parametrize("C", [1e-4, 1e-2, 1.0, 30.0])
def test_multipliers_find_the_machine_of_the_interior_point_method(C):
    design, decision = tall_sparse()
    price = C * np.random.default_rng(1).uniform(0.0, 2.0, decision.size)
    price[::7] = 0.0  # samples without a say
    problem = BoxDual.classification(np.where(decision > 0.1, 1.0, -1.0), price, False)
    ours, oracle = solve_by_multipliers(design, problem), tall.solve_linear_loss(design, problem, tol=1e-10)
    assert ours.status is Status.CONVERGED
    assert ours.gap <= 2e-10 * ours.objective  # tol = 1e-6 is only what is asked for at least
    np.testing.assert_allclose(ours.weights, oracle.weights, atol=1e-5 * np.abs(oracle.weights).max())
    assert np.all(ours.alpha[::7] == 0.0)


def test_multipliers_go_beyond_the_tolerance():
    """A step more costs little near the end: the gap is closed to a ten thousandth of what is asked for."""
    design, decision = tall_sparse(2)
    problem = BoxDual.classification(np.where(decision > 0.1, 1.0, -1.0), np.full(decision.size, 0.5), False)
    for tol in (1e-2, 1e-3, 1e-4):
        ours = solve_by_multipliers(design, problem, tol=tol)
        assert ours.gap <= 1.5e-4 * tol * ours.objective


def test_multipliers_find_the_regression(monkeypatch):
    design, target = tall_sparse(2)
    problem = BoxDual.regression(target, np.full(target.size, 0.2), 0.1, False)
    oracle = tall.solve_linear_loss(design, problem, tol=1e-10)
    monkeypatch.setattr(linear, "FEWEST_SPARSE", 10)
    ours = linear.solve_piecewise_linear(design, problem)
    assert ours.n_iter != oracle.n_iter
    np.testing.assert_allclose(ours.weights, oracle.weights, atol=1e-5 * np.abs(oracle.weights).max())
    assert ours.bias == pytest.approx(oracle.bias, abs=1e-5)


def test_a_start_is_used_by_multipliers_where_there_are_many_samples(monkeypatch):
    design, decision = tall_sparse(7)
    problem = BoxDual.classification(np.where(decision > 0.0, 1.0, -1.0), np.full(decision.size, 0.1), False)
    first = solve_by_multipliers(design, problem)
    monkeypatch.setattr(linear, "MANY_SAMPLES", 100)
    start = (first.weights, first.bias, first.alpha)
    again = linear.solve_piecewise_linear(design, problem, start)
    assert again.n_iter <= 2 < linear.solve_piecewise_linear(design, problem).n_iter
    np.testing.assert_allclose(again.weights, first.weights, atol=1e-6)


def test_multipliers_start_from_a_similar_problem():
    design, decision = tall_sparse(3)
    y = np.where(decision > 0.0, 1.0, -1.0)
    first = solve_by_multipliers(design, BoxDual.classification(y, np.full(y.size, 0.10), False))
    problem = BoxDual.classification(y, np.full(y.size, 0.11), False)
    cold = solve_by_multipliers(design, problem)
    warm = solve_by_multipliers(design, problem, (first.weights, first.bias, first.alpha))
    np.testing.assert_allclose(warm.weights, cold.weights, atol=1e-5)
    assert warm.n_iter <= cold.n_iter


def test_what_multipliers_do_not_solve_goes_to_the_interior_point_method(monkeypatch):
    design, decision = tall_sparse(4)
    problem = BoxDual.classification(np.where(decision > 0.0, 1.0, -1.0), np.full(decision.size, 1.0), False)
    monkeypatch.setattr(linear, "FEWEST_SPARSE", 10)
    monkeypatch.setattr(linear, "MOST_ROUNDS", 1)
    assert not solve_by_multipliers(design, problem).status.converged
    assert linear.solve_piecewise_linear(design, problem).status.converged


def test_conjugate_gradients_step_as_the_factor_does():
    design, decision = tall_sparse(5)
    rng = np.random.default_rng(0)
    curvature = np.where(decision > 0.0, rng.uniform(0.0, 3.0, decision.size), 0.0)
    gradient = rng.normal(size=design.n_features + 1)
    expected = -np.linalg.solve(tall.bordered(design, curvature), gradient)
    np.testing.assert_allclose(tall.newton_step(design, curvature, gradient, tol=1e-12), expected, atol=1e-9)
    nothing = tall.newton_step(design, np.zeros(decision.size), gradient)
    np.testing.assert_array_equal(nothing, np.append(-gradient[:-1], 0.0))


def test_squared_loss_on_many_sparse_features_is_the_same_machine(monkeypatch):
    design, decision = tall_sparse(6)
    problem = BoxDual.classification(np.where(decision > 0.0, 1.0, -1.0), np.full(decision.size, 0.5), True)
    factored = tall.solve_squared_loss(design, problem)
    monkeypatch.setattr(tall, "MANY_SPARSE", 10)
    monkeypatch.setattr(tall, "bordered", None)  # not needed
    products = tall.solve_squared_loss(design, problem)
    assert products.status is Status.CONVERGED
    np.testing.assert_allclose(products.weights, factored.weights, atol=1e-7)


@pytest.mark.parametrize("seed", [1, 29, 43, 61, 134])
def test_the_line_search_ends_at_the_lowest_point_of_a_line(seed):
    """In these problems Newton's steps leave the interval in which the lowest point lies."""
    rng = np.random.default_rng(seed)
    y, C = rng.choice([-1.0, 1.0], 6), 10.0 ** rng.uniform(-3, 3, 6)
    problem = BoxDual.classification(y, C, True)
    weights, decision = rng.normal(size=2), 5 * rng.normal(size=6)
    step, change = -0.01 * weights, rng.normal(size=6) * 10 ** rng.uniform(-2, 2, 6)

    def height(length):
        w, excess = weights + length * step, np.maximum(1.0 - y * (decision + length * change), 0.0)
        return 0.5 * w @ w + 0.5 * np.sum(C * excess**2)

    found = tall._exact_line_search(problem, C, weights, step, decision, change)
    lowest = minimize_scalar(height, bounds=(0.0, 10.0), method="bounded", options={"xatol": 1e-12})
    assert height(found) <= lowest.fun * (1.0 + 1e-12)


def test_the_inverse_of_the_free_samples_follows_those_that_come_and_go():
    """Samples 3, 1, 4, 0, 2 become free, then the second and the last of them leave."""
    rng = np.random.default_rng(0)
    H = rng.normal(size=(5, 7))
    H = H @ H.T
    free, inverse, m = np.full(5, -1, dtype=np.int64), np.zeros((5, 5)), 0

    def is_inverse():
        among = free[:m]
        np.testing.assert_allclose(inverse[:m, :m], np.linalg.inv(H[np.ix_(among, among)]), rtol=1e-8)

    for i in (3, 1, 4, 0, 2):
        along = -inverse[:m, :m] @ H[free[:m], i]
        m = add_free(free, inverse, m, i, along, H[i, i] + H[i, free[:m]] @ along)
        is_inverse()
    for k, left in ((1, [3, 2, 4, 0]), (3, [3, 2, 4])):
        m = drop_free(free, inverse, m, k)
        assert free[:m].tolist() == left
        is_inverse()
