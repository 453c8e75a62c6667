"""The dual solver against LIBSVM, a general QP solver and its own optimality conditions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.svm import SVC

from oracles.qp import primal_svm
from solvers.linear.fits import fit
from solvers.problems import at_most, classification
from zeronorm.solvers._status import Status
from zeronorm.solvers.linear import Way
from zeronorm.solvers.svm._dual import solve_svm_dual
from zeronorm.solvers.svm._smo import refresh, smo

LOSSES = ("hinge", "squared_hinge")


def primal_objective(X, y, w, b, C, loss):
    slack = np.maximum(0.0, 1.0 - y * (X @ w + b))
    return 0.5 * w @ w + (np.sum(C * slack) if loss == "hinge" else 0.5 * np.sum(C * slack**2))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("shape", [(40, 60), (60, 5)])
def test_matches_a_qp_solver(shape, C, loss):
    X, y = classification(*shape)
    solution = solve_svm_dual(X @ X.T, y, C=C, loss=loss)
    w, _, objective = primal_svm(X, y, C, loss)
    assert solution.converged
    assert solution.objective == pytest.approx(objective, rel=1e-7)
    np.testing.assert_allclose(X.T @ solution.dual_coef, w, atol=2e-5 * np.abs(w).max())
    ours = primal_objective(X, y, X.T @ solution.dual_coef, solution.bias, C, loss)
    assert ours == pytest.approx(objective, rel=1e-7)


@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
def test_matches_libsvm(C):
    X, y = classification(120, 30)
    X = np.round(2.0 * X)  # LIBSVM keeps K in single precision: integers are exact
    K = X @ X.T
    reference = SVC(kernel="precomputed", C=C, tol=1e-8).fit(K, y)
    solution = solve_svm_dual(K, y, C=C, tol=1e-8)
    np.testing.assert_allclose(
        K @ solution.dual_coef + solution.bias, reference.decision_function(K), atol=1e-6
    )


@pytest.mark.parametrize("loss", LOSSES)
def test_cost_for_each_sample(loss):
    X, y = classification(50, 10)
    C = np.random.default_rng(1).uniform(0.05, 5.0, y.size)
    solution = solve_svm_dual(X @ X.T, y, C=C, loss=loss)
    w, _, objective = primal_svm(X, y, C, loss)
    assert solution.objective == pytest.approx(objective, rel=1e-7)
    np.testing.assert_allclose(X.T @ solution.dual_coef, w, atol=1e-5)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_duplicated_sample_equals_a_doubled_weight(loss):
    X, y = classification(50, 8)
    twice = np.concatenate([np.arange(50), [3, 17]])
    doubled = np.ones(50)
    doubled[[3, 17]] = 2.0
    copies = solve_svm_dual(X[twice] @ X[twice].T, y[twice], C=0.7, loss=loss, tol=1e-9)
    weights = solve_svm_dual(X @ X.T, y, C=0.7 * doubled, loss=loss, tol=1e-9)
    np.testing.assert_allclose(X[twice].T @ copies.dual_coef, X.T @ weights.dual_coef, atol=1e-8)
    assert copies.bias == pytest.approx(weights.bias, abs=1e-7)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_sample_of_zero_weight_is_ignored(loss):
    X, y = classification(30, 50)
    C = np.ones(30)
    C[:5] = 0.0
    with_zeros = solve_svm_dual(X @ X.T, y, C=C, loss=loss, tol=1e-9)
    without = solve_svm_dual(X[5:] @ X[5:].T, y[5:], loss=loss, tol=1e-9)
    assert not with_zeros.alpha[:5].any()
    np.testing.assert_allclose(with_zeros.alpha[5:], without.alpha, atol=1e-8)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("tol", [1e-1, 1e-3, 1e-6])
def test_gap_bounds_the_distance_to_the_optimum(loss, tol):
    X, y = classification(80, 20)
    K = X @ X.T
    rough = solve_svm_dual(K, y, loss=loss, tol=tol, max_iter=25)
    exact = solve_svm_dual(K, y, loss=loss, tol=1e-10)
    assert rough.gap >= 0.0
    assert exact.objective - rough.objective <= rough.gap + 1e-9
    reached = primal_objective(X, y, X.T @ rough.dual_coef, rough.bias, 1.0, loss)
    assert rough.gap == pytest.approx(reached - rough.objective, rel=1e-6, abs=1e-9)
    assert exact.gap < 1e-8


def test_constraints_hold_exactly_enough():
    X, y = classification(100, 20)
    solution = solve_svm_dual(X @ X.T, y, C=0.5)
    assert solution.alpha.min() >= 0.0
    assert solution.alpha.max() <= 0.5
    assert abs(solution.alpha @ y) < 1e-12
    np.testing.assert_array_equal(solution.dual_coef, solution.alpha * y)


def test_hard_margin_of_separable_classes():
    X, y = classification(30, 80)
    solution = solve_svm_dual(X @ X.T, y, C=np.inf)
    w, b, objective = primal_svm(X, y, np.inf)
    assert solution.converged
    np.testing.assert_allclose(X.T @ solution.dual_coef, w, atol=1e-6)
    assert solution.bias == pytest.approx(b, abs=1e-5)
    assert solution.objective == pytest.approx(objective, rel=1e-7)
    assert 0.0 <= solution.gap < 1e-6


@pytest.mark.parametrize(("n", "p"), [(40, 2), (100, 5), (300, 20), (500, 30)])
def test_hard_margin_reports_inseparable_classes(n, p):
    X, y = classification(n, p)
    solution = solve_svm_dual(X @ X.T, y, C=np.inf)
    assert solution.status is Status.UNBOUNDED
    assert not solution.converged
    with pytest.raises(ValueError, match="cannot be separated; use a finite C"):
        solution.status.check("RFE")


def test_hard_margin_of_one_point_in_both_classes():
    X = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    assert solve_svm_dual(X @ X.T, [1, -1, 1], C=np.inf).status is Status.UNBOUNDED


def test_hard_constraints_next_to_soft_ones():
    X, y = classification(60, 5, seed=3)
    C = np.full(60, 0.5)
    C[:4] = np.inf
    solution = solve_svm_dual(X @ X.T, y, C=C)
    w, _, objective = primal_svm(X, y, C)
    assert solution.converged
    np.testing.assert_allclose(X.T @ solution.dual_coef, w, atol=1e-5)
    assert solution.objective == pytest.approx(objective, rel=1e-6)
    assert 0.0 <= solution.gap < 1e-4


@pytest.mark.parametrize("loss", LOSSES)
def test_warm_start_after_a_feature_left(loss):
    X, y = classification(60, 200)
    K = X @ X.T
    before = solve_svm_dual(K, y, loss=loss, tol=1e-9)
    K = K - np.outer(X[:, 7], X[:, 7])
    warm = solve_svm_dual(K, y, loss=loss, warm_start=before, tol=1e-9)
    cold = solve_svm_dual(K, y, loss=loss, tol=1e-9)
    np.testing.assert_allclose(warm.alpha, cold.alpha, atol=1e-9)
    assert warm.n_iter < cold.n_iter


@pytest.mark.parametrize("new_C", [0.01, 3.0])
def test_warm_start_after_a_change_of_cost(new_C):
    X, y = classification(60, 30)
    K = X @ X.T
    before = solve_svm_dual(K, y, C=0.1)
    warm = solve_svm_dual(K, y, C=new_C, warm_start=before, tol=1e-9)
    cold = solve_svm_dual(K, y, C=new_C, tol=1e-9)
    assert abs(warm.alpha @ y) < 1e-12
    np.testing.assert_allclose(K @ warm.dual_coef, K @ cold.dual_coef, atol=1e-7)


def test_an_optimal_start_takes_no_iteration():
    X, y = classification(60, 200)
    K = X @ X.T
    before = solve_svm_dual(K, y)
    again = solve_svm_dual(K, y, warm_start=before)
    assert again.n_iter == 0
    np.testing.assert_allclose(again.alpha, before.alpha, rtol=1e-14)


@pytest.mark.parametrize("C", [0.1, 1.0])
def test_shrinking_does_not_change_the_solution(C):
    X, y = classification(600, 40, noise=3.0)
    X = np.round(2.0 * X)
    K = X @ X.T
    solution = solve_svm_dual(K, y, C=C, tol=1e-8)
    reference = SVC(kernel="precomputed", C=C, tol=1e-8).fit(K, y)
    assert solution.converged
    assert solution.n_iter > 600  # long enough for the shrinking to take part
    np.testing.assert_allclose(
        K @ solution.dual_coef + solution.bias, reference.decision_function(K), atol=1e-6
    )


def test_the_iteration_limit_is_reported():
    X, y = classification(600, 40, noise=3.0)
    solution = solve_svm_dual(X @ X.T, y, C=10.0, max_iter=700)
    assert solution.status is Status.ITERATION_LIMIT
    assert solution.n_iter == 700
    v = solution.dual_coef
    np.testing.assert_allclose(solution.f, X @ (X.T @ v), atol=1e-8)
    score = y - solution.f
    along = np.where(y > 0, solution.alpha < 10.0, solution.alpha > 0.0)
    against = np.where(y > 0, solution.alpha > 0.0, solution.alpha < 10.0)
    assert solution.violation == pytest.approx(score[along].max() - score[against].min(), abs=1e-9)


def test_a_tolerance_below_rounding_ends():
    X, y = classification(50, 10)
    solution = solve_svm_dual(1e12 * (X @ X.T), y, tol=1e-14, max_iter=200_000)
    assert solution.n_iter < 1000
    assert solution.gap <= 1e-12 * solution.objective
    assert np.isfinite(solution.alpha).all()


def test_one_class_or_no_features_give_a_finite_answer():
    X, _ = classification(10, 5)
    alone = solve_svm_dual(X @ X.T, np.ones(10))
    assert alone.converged
    assert alone.bias == pytest.approx(1.0)
    empty = solve_svm_dual(np.zeros((4, 4)), [1, 1, -1, -1])
    assert empty.converged
    assert np.isfinite(empty.bias)
    assert empty.gap == pytest.approx(0.0, abs=1e-12)


def test_bias_without_free_vectors_is_the_midpoint():
    x = np.array([-3.0, -1.0, 1.0, 3.0])
    y = np.array([-1.0, 1.0, -1.0, 1.0])
    solution = solve_svm_dual(np.outer(x, x), y, C=1e-3)
    assert np.all((solution.alpha == 0.0) | (solution.alpha == 1e-3))
    assert solution.bias == pytest.approx(0.0, abs=1e-12)


@settings(deadline=None, max_examples=60, derandomize=True)
@given(
    st.integers(2, 40),
    st.integers(1, 40),
    st.sampled_from(LOSSES),
    st.integers(-3, 4),
    st.integers(-2, 2),
    st.booleans(),
    st.integers(0, 2**31),
)
def test_any_problem_is_solved(n, p, loss, log_C, log_scale, repeated, seed):
    """The duality gap closes with duplicated samples, dependent features and all scales."""
    rng = np.random.default_rng(seed)
    X = 10.0**log_scale * rng.normal(size=(n, p))
    if repeated:
        X = X[rng.integers(0, n, n)]
    y = np.where(rng.uniform(size=n) < 0.5, 1.0, -1.0)
    C = 10.0**log_C * rng.uniform(size=n) * (rng.uniform(size=n) < 0.9)
    solution = solve_svm_dual(X @ X.T, y, C=C, loss=loss)
    assert solution.converged
    assert 0.0 <= solution.gap <= 1e-5 * (1.0 + solution.objective)
    assert np.all((solution.alpha >= 0.0) & (solution.alpha <= solution.problem.upper))


def test_refresh_removes_drift():
    X, y = classification(50, 20)
    K = X @ X.T
    exact = solve_svm_dual(K, y)
    problem = exact.problem
    drifted = exact.f + 1e-3
    refresh(K, problem.ridge, problem.sample, problem.sign, exact.alpha, drifted)
    np.testing.assert_allclose(drifted, K @ exact.dual_coef, atol=1e-12)


def test_smo_is_callable_from_a_kernel():
    from zeronorm._jit import kernel

    X, y = classification(30, 40)
    K = X @ X.T
    expected = solve_svm_dual(K, y)
    problem = expected.problem
    alpha, f = np.zeros(30), np.zeros(30)
    call = kernel(_call_smo)
    limits = problem.linear, problem.upper
    violation = call(K, problem.ridge, problem.sample, problem.sign, *limits, alpha, f, 100_000)
    assert violation < 1e-6
    np.testing.assert_allclose(alpha, expected.alpha, atol=1e-12)


def _call_smo(K, ridge, sample, sign, linear, upper, alpha, f, max_iter):
    # A literal number here would be a new type, for which numba would compile the solver again.
    _, violation, _ = smo(K, ridge, sample, sign, linear, upper, alpha, f, 1e-6, max_iter)
    return violation


def test_read_only_and_fortran_ordered_input():
    X, y = classification(40, 60)
    K = X @ X.T
    expected = solve_svm_dual(K, y)
    for variant in (np.asfortranarray(K), K.astype(np.float32), K[:, ::-1][:, ::-1]):
        variant.flags.writeable = False
        labels = y.copy()
        labels.flags.writeable = False
        solution = solve_svm_dual(variant, labels)
        np.testing.assert_allclose(solution.alpha, expected.alpha, atol=1e-6)
        assert not variant.flags.writeable


@pytest.mark.parametrize(
    ("loss", "C", "taken"),
    [
        ("hinge", 0.01, 29),
        ("hinge", 0.1, 43),
        ("hinge", 1.0, 42),
        ("squared_hinge", 0.1, 38),
        ("squared_hinge", 10.0, 42),
    ],
)
def test_the_dual_of_two_classes(loss, C, taken):
    X, y = classification()
    model = solve_svm_dual(X @ X.T, y, C=C, loss=loss)
    assert model.n_iter <= at_most(taken)
    assert model.gap <= 1e-9 * model.objective
    assert model.violation <= 1e-10


@pytest.mark.parametrize(
    ("shape", "noise", "loss", "C", "taken", "near"),
    [
        ((200, 10), 2.0, "hinge", 0.05, 113, 137),
        ((200, 10), 2.0, "hinge", 5.0, 531, 174),
        ((200, 10), 2.0, "squared_hinge", 0.05, 490, 172),
        ((200, 10), 2.0, "squared_hinge", 5.0, 1728, 1),
        ((120, 300), 1.0, "hinge", 5.0, 201, 0),
        ((120, 300), 1.0, "squared_hinge", 0.05, 266, 1),
    ],
)
def test_a_start_near_the_solution(shape, noise, loss, C, taken, near):
    X, y = classification(*shape, noise=noise)
    K = X @ X.T
    first = solve_svm_dual(K, y, C=C, loss=loss)
    assert first.n_iter <= at_most(taken)
    assert solve_svm_dual(K, y, C=C, loss=loss, warm_start=first).n_iter <= 2
    other = solve_svm_dual(K, y, C=1.1 * C, loss=loss, warm_start=first)
    assert other.n_iter <= at_most(near)
    for model in (first, other):
        assert model.gap <= 1e-9 * model.objective


@pytest.mark.parametrize(("loss", "dual", "primal"), [("hinge", 255, 11), ("squared_hinge", 616, 3)])
def test_both_solvers_with_a_cost_for_each_sample(loss, dual, primal):
    X, y = classification(200, 10, noise=2.0)
    cost = np.random.default_rng(0).uniform(0.0, 2.0, 200)
    cost[::7] = 0.0
    by_samples = solve_svm_dual(X @ X.T, y, C=cost, loss=loss)
    by_features = fit(X, y, C=cost, loss=loss, way=Way.PRIMAL)
    assert by_samples.n_iter <= at_most(dual)
    assert by_features.n_iter <= at_most(primal)
    for model in (by_samples, by_features):
        assert model.gap <= 1e-11 * model.objective
    assert by_samples.objective == pytest.approx(by_features.objective, rel=1e-10)
    np.testing.assert_allclose(by_samples.dual_coef @ X, by_features.weights[:, 0], atol=1e-6)
    assert by_samples.bias == pytest.approx(by_features.bias[0], abs=1e-6)


def test_classes_that_can_be_separated():
    X, y = classification()
    for loss in ("hinge", "squared_hinge"):
        model = solve_svm_dual(X @ X.T, y, C=np.inf, loss=loss)
        assert model.n_iter <= at_most(43)
        assert model.gap <= 1e-10
