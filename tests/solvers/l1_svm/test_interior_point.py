"""The interior-point method of the l1 SVM: it returns an exact solution or None."""

from __future__ import annotations

import numpy as np
import pytest

from solvers.l1_svm.full_program import full_program
from solvers.problems import classification, regression
from zeronorm.design import as_design
from zeronorm.solvers.l1_svm import _interior_point as l1_svm_interior
from zeronorm.solvers.l1_svm._dual import L1SvmDualProgram, L1SvmInteriorProgram
from zeronorm.solvers.l1_svm._interior_point import solve_l1_interior
from zeronorm.solvers.l1_svm._newton import SignedProblem
from zeronorm.solvers.l1_svm._program import L1SvmProgram


def signed_rows(X, y):
    return np.column_stack([X, np.ones(len(y))]) * y[:, None]


def draw(seed, n, p, noise=2.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return X, np.where(X[:, : max(1, p // 3)].sum(axis=1) + noise * rng.normal(size=n) > 0.3, 1.0, -1.0)


def check_optimal(found, rows, target, cost, penalty):
    """The optimality conditions, and with them a duality gap of zero."""
    gradient = found.alpha @ rows
    value = rows @ found.weights
    assert np.all((found.alpha >= 0.0) & (found.alpha <= cost))
    assert np.all(np.abs(gradient[:-1]) <= penalty * (1 + 1e-8))
    assert gradient[-1] == pytest.approx(0.0, abs=1e-8 * cost.sum())
    active = found.weights[:-1] != 0.0
    np.testing.assert_allclose(
        gradient[:-1][active], (penalty * np.sign(found.weights[:-1]))[active], rtol=1e-7
    )
    loss = cost @ np.maximum(target - value, 0.0)
    assert found.objective == pytest.approx(penalty @ np.abs(found.weights[:-1]) + loss, rel=1e-12)
    assert found.alpha @ target == pytest.approx(found.objective, rel=1e-8)


@pytest.mark.parametrize("C", [0.003, 0.03, 0.3, 3.0])
@pytest.mark.parametrize("shape", [(400, 8), (300, 60)])
def test_classes_match_the_full_program(shape, C):
    X, y = draw(0, *shape)
    rng = np.random.default_rng(1)
    penalty, cost = rng.uniform(0.5, 2.0, shape[1]), C * rng.uniform(0.5, 2.0, shape[0])
    rows, target = signed_rows(X, y), np.ones(shape[0])
    found = solve_l1_interior(rows, target, cost, penalty)
    assert found is not None
    assert found.objective == pytest.approx(full_program(X, y, cost, penalty), rel=1e-8)
    check_optimal(found, rows, target, cost, penalty)


@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_regression_matches_the_full_program(scale):
    X, y = regression(200, 10)
    y = scale * y
    program = L1SvmInteriorProgram(as_design(X), y, C=0.1, epsilon=0.2 * scale)
    penalty = np.random.default_rng(1).uniform(0.5, 2.0, 10)
    found = program.solve_interior(penalty)
    assert found is not None
    assert found.objective == pytest.approx(full_program(X, y, 0.1, penalty, 0.2 * scale), rel=1e-8)
    slack = np.maximum(0.0, np.abs(y - X @ found.weights - found.bias) - 0.2 * scale)
    assert penalty @ np.abs(found.weights) + 0.1 * slack.sum() == pytest.approx(found.objective, rel=1e-9)


@pytest.mark.parametrize("C", [0.02, 0.3, 3.0])
@pytest.mark.parametrize("shape", [(60, 340), (130, 160)])
def test_wide_data_match_the_full_program(shape, C):
    """The data are large enough for rows to be fixed and features to be left out."""
    X, y = draw(2, *shape)
    rows, target = signed_rows(X, y), np.ones(shape[0])
    penalty, cost = np.ones(shape[1]), np.full(shape[0], C)
    found = solve_l1_interior(rows, target, cost, penalty)
    assert found is not None
    assert found.objective == pytest.approx(full_program(X, y, C, penalty), rel=1e-8)
    check_optimal(found, rows, target, cost, penalty)


def counted_returns(monkeypatch):
    """A list that gets one entry each time the method goes back."""
    returns = []
    go_back = l1_svm_interior._InteriorPoint.go_back

    def counted(method):
        returns.append(go_back(method))
        return returns[-1]

    monkeypatch.setattr(l1_svm_interior._InteriorPoint, "go_back", counted)
    return returns


@pytest.mark.parametrize("far", [10.0, 100.0])
def test_rows_fixed_by_mistake_do_no_harm(monkeypatch, far):
    monkeypatch.setattr(l1_svm_interior, "FAR", far)
    returns = counted_returns(monkeypatch)
    for seed in range(5):
        X, y = draw(seed, 1000, 20)
        found = solve_l1_interior(signed_rows(X, y), np.ones(1000), np.full(1000, 0.1), np.ones(20))
        assert found is not None
        assert found.objective == pytest.approx(full_program(X, y, 0.1, np.ones(20)), rel=1e-8)
    assert any(returns)


@pytest.mark.parametrize("settings", [{"GRADIENTS": 1.5}, {"OPEN": 0.0, "FAINT": 1e3}])
def test_features_left_out_by_mistake_do_no_harm(monkeypatch, settings):
    for name, value in settings.items():
        monkeypatch.setattr(l1_svm_interior, name, value)
    returns = counted_returns(monkeypatch)
    for seed in range(5):
        X, y = draw(seed, 150, 140)
        found = solve_l1_interior(signed_rows(X, y), np.ones(150), np.full(150, 0.1), np.ones(140))
        assert found is not None
        assert found.objective == pytest.approx(full_program(X, y, 0.1, np.ones(140)), rel=1e-8)
    assert any(returns)


def test_of_few_data_nothing_is_left_out_at_the_start():
    """Small data have no way back from a missing feature, so none is left out of 200 rows with 100 entries."""
    n_features = []
    for p in (99, 100):
        X, y = draw(0, 200, p)
        problem = SignedProblem(
            signed_rows(X, y), np.ones(200), np.full(200, 0.02), np.ones(p), np.zeros(p + 1)
        )
        method = l1_svm_interior._InteriorPoint(problem)
        method.start_with_few_features()
        n_features.append(method.left.features.size)
    assert n_features[0] == 99
    assert 0 < n_features[1] < 50


def test_features_are_left_out_on_the_way():
    X, y = draw(0, 200, 100)
    problem = SignedProblem(signed_rows(X, y), np.ones(200), np.full(200, 0.03), np.ones(100), np.zeros(101))
    method = l1_svm_interior._InteriorPoint(problem)
    found = method.run()
    while found is None and method.go_back():
        found = method.run()
    assert found is not None
    assert method.left.features.size < 50
    assert set(np.flatnonzero(found.weights[:-1])) <= set(method.left.features)


def test_rows_are_fixed_on_the_way():
    X, y = draw(0, 2000, 10)
    problem = SignedProblem(signed_rows(X, y), np.ones(2000), np.full(2000, 0.01), np.ones(10), np.zeros(11))
    method = l1_svm_interior._InteriorPoint(problem)
    assert method.run() is not None
    assert method.left.samples.size < 500


def test_repeated_samples_leave_the_multipliers_open():
    """Many rows are equal, so that their multipliers are not unique, while the weights are."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, size=(400, 4)).astype(float)
    y = np.where(X.sum(axis=1) + 2.0 * rng.normal(size=400) > 4.0, 1.0, -1.0)
    penalty, cost = np.ones(4), np.full(400, 0.05)
    found = L1SvmInteriorProgram(as_design(X), y, C=0.05).solve()
    assert found.objective == pytest.approx(full_program(X, y, cost, penalty), rel=1e-8)
    assert np.all(np.abs(found.gradient) <= 1.0 + 1e-7)


def test_no_feature_has_a_weight():
    X, y = draw(0, 200, 10)
    found = solve_l1_interior(signed_rows(X, y), np.ones(200), np.full(200, 1e-4), np.ones(10))
    assert found is not None
    assert not found.weights[:-1].any()
    assert found.objective == pytest.approx(2e-4 * min(np.sum(y > 0), np.sum(y < 0)))


def test_weights_that_are_not_unique_are_left_to_the_simplex_method():
    X, y = draw(0, 200, 5)
    X = np.column_stack([X, X[:, 0]])
    assert solve_l1_interior(signed_rows(X, y), np.ones(200), np.full(200, 0.1), np.ones(6)) is None
    program = L1SvmInteriorProgram(as_design(X), y, C=0.1)
    found = program.solve()
    assert found.converged
    assert isinstance(program._simplex, L1SvmDualProgram)  # the smaller of two programs for few features
    assert found.objective == pytest.approx(full_program(X, y, 0.1, np.ones(6)), rel=1e-8)


@pytest.mark.parametrize("C", [1.0, np.inf])
def test_wide_data_without_a_unique_or_soft_margin_are_left_to_the_simplex_method(C):
    X, y = draw(0, 40, 30, noise=0.0)
    X = np.column_stack([X, X])
    program = L1SvmInteriorProgram(as_design(X), y, C=C)
    assert program.solve_interior() is None
    found = program.solve()
    assert found.converged
    assert isinstance(program._simplex, L1SvmProgram)
    # A large C is a hard margin where the classes are separable.
    assert found.objective == pytest.approx(full_program(X, y, min(C, 1e3), np.ones(60)), rel=1e-8)


def test_weightless_samples_and_changing_costs():
    X, y = classification(150, 6)
    cost = np.full(150, 0.2)
    cost[::3] = 0.0
    program = L1SvmInteriorProgram(as_design(X), y, C=1.0)
    program.solve()
    program.set_cost(cost)
    found = program.solve()
    kept = cost > 0.0
    assert found.objective == pytest.approx(full_program(X[kept], y[kept], 0.2, np.ones(6)), rel=1e-8)
    assert not found.dual_coef[~kept].any()
