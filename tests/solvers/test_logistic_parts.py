"""Logistic regression and penalised losses, part by part: Newton points, searches, working sets, coupled machines."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit

from solvers.problems import classification, compiled
from zeronorm.design import as_design
from zeronorm.solvers import logistic, losses
from zeronorm.solvers.logistic import L1Logistic, _WorkingSet, solve_logistic_dual
from zeronorm.solvers.losses import LOSSES, PenalizedLoss, Softmax, find_loss
from zeronorm.solvers.status import Status

# -- On a kernel matrix --


def test_a_newton_point_minimises_the_quadratic_model():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(7, 3))
    K, weight = A @ A.T, rng.uniform(0.1, 1.0, 7)
    f, pull = rng.normal(size=7), rng.normal(size=7)
    a, bias = logistic._newton_point(K, weight, f, pull)
    assert a.sum() == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_allclose(K @ a + a / weight + bias, f + pull / weight, atol=1e-10)


def test_the_dual_of_logistic_regression_ends_where_its_equation_holds():
    X, y = classification(25, 4, noise=2.0)
    K, price = X @ X.T, np.linspace(0.2, 2.0, 25)
    found = solve_logistic_dual(K, y, C=price)
    f = K @ found.dual_coef + found.bias
    np.testing.assert_allclose(found.dual_coef, price * y * expit(-y * f), atol=1e-7)
    value = 0.5 * found.dual_coef @ K @ found.dual_coef + price @ np.logaddexp(0.0, -y * f)
    assert found.objective == pytest.approx(value, rel=1e-12)
    assert found.status is Status.CONVERGED
    assert solve_logistic_dual(K, y, C=price, warm_start=found).n_iter == 1
    cut = solve_logistic_dual(K, y, C=price, max_iter=2)
    assert (cut.n_iter, cut.status) == (2, Status.ITERATION_LIMIT)
    rough = solve_logistic_dual(K, y, C=price, tol=1e-2)
    off = np.abs(rough.dual_coef - price * y * expit(-y * (K @ rough.dual_coef + rough.bias))).max()
    assert 1e-8 < off <= 1e-2 * 2.0 * 1.01


def test_a_step_that_goes_up_is_halved_and_one_that_only_goes_up_is_refused():
    K, y, price = np.eye(2), np.array([1.0, -1.0]), np.ones(2)
    start = np.zeros(2)
    value = logistic._objective(start, K @ start, 0.0, y, price)
    assert value == pytest.approx(2.0 * np.log(2.0))
    state = (start, 0.0, K @ start, value)
    step = np.array([16.0, -16.0])
    a, bias, inner, objective, moved = logistic._line_search(K, y, price, state, step, 0.0)
    assert moved
    assert a.tolist() == [0.5, -0.5]  # 16, 8, 4, 2 and 1 cost more than nothing
    assert (bias, inner.tolist()) == (0.0, a.tolist())
    assert objective == pytest.approx(logistic._objective(a, a, 0.0, y, price))
    a, _, _, objective, moved = logistic._line_search(K, y, price, state, -step, 0.0)
    assert (moved, a.tolist(), objective) == (False, [0.0, 0.0], value)


# -- With absolute weights --


def machine_of(n=40, p=8, make=np.asarray):
    X, y = classification(n, p, noise=1.5)
    share = np.random.default_rng(1).uniform(0.5, 1.5, n)
    return X, y, share / share.sum(), L1Logistic(as_design(make(X)), y, share / share.sum(), 1e-9)


def test_without_features_the_bias_is_the_share_of_the_classes():
    X, y, share, machine = machine_of()
    positive = share[y > 0].sum()
    assert machine.bias_alone == pytest.approx(np.log(positive / (1 - positive)))
    residual = share * y * expit(-y * machine.bias_alone)
    np.testing.assert_allclose(machine.empty.residual, residual)
    assert residual.sum() == pytest.approx(0.0, abs=1e-15)
    np.testing.assert_allclose(machine.first_slope, X.T @ residual)
    assert machine.largest_slope == pytest.approx(np.abs(X.T @ residual).max())
    assert machine.empty.loss == pytest.approx(share @ np.logaddexp(0.0, -y * machine.bias_alone))
    assert machine.empty.norm == 0.0
    assert machine.tol == pytest.approx(1e-9 * machine.largest_slope)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("batch", [1, 50])
def test_the_machine_meets_its_conditions_for_its_own_penalties(make, batch, monkeypatch):
    monkeypatch.setattr(logistic, "BATCH", batch)
    X, y, share, machine = machine_of(make=make)
    found = machine.empty
    for scale in (0.5, 0.1):
        penalty = scale * machine.largest_slope * np.linspace(0.5, 1.5, 8)
        found = machine.solve(penalty, found)
        assert found.converged
        w = np.zeros(8)
        w[found.columns] = found.weights
        f = X @ w + found.bias
        np.testing.assert_allclose(found.residual, share * y * expit(-y * f), atol=1e-12)
        pull = X.T @ found.residual
        np.testing.assert_allclose(pull[w != 0], (penalty * np.sign(w))[w != 0], atol=1e-8)
        assert np.all(np.abs(pull[w == 0]) <= penalty[w == 0] + 1e-8)
        assert found.residual.sum() == pytest.approx(0.0, abs=1e-9)
        assert found.loss == pytest.approx(share @ np.logaddexp(0.0, -y * f))
        assert found.norm == pytest.approx(np.abs(w).sum())
    assert machine.solve(2.0 * machine.largest_slope * np.ones(8), found).columns.size == 0


def test_the_largest_violation():
    X = as_design(np.array([[1.0, 2.0, 0.0], [0.0, 1.0, 3.0]]))
    slope, penalty = np.array([1.0, -1.0]), np.array([0.6, 0.5, 2.0])
    assert logistic._violation(X, slope, np.zeros(3), penalty) == pytest.approx(1.0)  # |-3| - 2
    assert logistic._violation(X, slope, np.array([1.0, 0.0, 0.0]), penalty) == pytest.approx(1.0)
    assert logistic._violation(X, slope, np.array([0.0, 0.0, 1.0]), penalty) == pytest.approx(5.0)
    assert logistic._violation(X, slope, np.zeros(3), np.full(3, 9.0)) == 0.0
    assert logistic._violation(X, np.array([1.0, 2.0]), np.zeros(3), np.full(3, 9.0)) == 3.0


@pytest.mark.parametrize("way", ["dense", "products", "stored"])
def test_a_weighted_lasso_meets_its_conditions_in_each_way(way, monkeypatch):
    rng = np.random.default_rng(2)
    X = rng.poisson(0.6, size=(30, 6)).astype(float)
    curvature, response = rng.uniform(0.5, 2.0, 30), X[:, 0] - X[:, 2] + rng.normal(size=30)
    response -= np.average(response, weights=curvature)
    mean = curvature @ X / curvature.sum()
    penalty, start = np.linspace(1.0, 4.0, 6), np.linspace(-0.1, 0.1, 6)
    part = _WorkingSet(as_design(X))
    if way == "products":
        part = _WorkingSet(as_design(sparse.csr_array(X)))
        assert part.has_few_columns
    elif way == "stored":
        monkeypatch.setattr(logistic, "FEWER_VALUES", 0)
        design = as_design(sparse.csr_array(X))
        part = _WorkingSet(design, design.stored_columns(np.arange(6)))
    else:
        assert not part.has_few_columns
    found = logistic._weighted_lasso(part, curvature, mean, response, penalty, start, 1e-11)
    Z = X - mean
    pull = Z.T @ (curvature * (response - Z @ found))
    used = np.abs(found) > 1e-12
    np.testing.assert_allclose(pull[used], (penalty * np.sign(found))[used], atol=1e-5)
    assert np.all(np.abs(pull[~used]) <= penalty[~used] + 1e-5)
    assert 0 < used.sum() < 6


def test_columns_of_a_working_set_are_dense_where_that_is_quicker(monkeypatch):
    X = sparse.random(50, 10, density=0.1, format="csr", rng=np.random.default_rng(3))
    every = np.arange(10)
    for limit, hardly, is_sparse in ((500, 4, False), (499, 4, True), (499, 10, True), (499, 11, False)):
        monkeypatch.setattr(logistic, "LARGEST_DENSE_COPY", limit)
        monkeypatch.setattr(logistic, "HARDLY_SPARSE", hardly)
        part = _WorkingSet.of(as_design(X), every)
        assert X.nnz == 50
        assert part.X.is_sparse == is_sparse
        assert (part.stored is not None) == is_sparse
        np.testing.assert_array_equal(part.X.block(slice(None)), X.toarray())
    assert not _WorkingSet.of(as_design(X.toarray()), every).X.is_sparse


def test_a_working_set_is_kept_while_its_columns_are_the_same():
    machine = machine_of()[-1]
    first = machine._part(np.array([1, 3]))
    assert machine._part(np.array([1, 3])) is first
    other = machine._part(np.array([3, 1]))
    assert other is not first
    np.testing.assert_array_equal(other.X.block(slice(None)), first.X.block(slice(None))[:, ::-1])


# -- Losses --


@pytest.mark.parametrize("name", ["squared_error", "logistic", "squared_hinge"])
def test_slopes_and_curvatures_are_derivatives(name):
    loss = find_loss(name)
    f, h = np.array([-2.0, -0.5, 0.3, 0.9, 2.5]), 1e-5
    for y in (np.ones(5), -np.ones(5)):
        np.testing.assert_allclose(
            loss.slope(f, y), (loss.value(f + h, y) - loss.value(f - h, y)) / (2 * h), atol=1e-9
        )
        np.testing.assert_allclose(
            loss.curvature(f, y), (loss.slope(f + h, y) - loss.slope(f - h, y)) / (2 * h), atol=1e-9
        )
    assert loss.value(np.zeros(1), np.ones(1))[0] == pytest.approx(
        {"squared_error": 0.5, "logistic": np.log(2.0), "squared_hinge": 0.5}[name]
    )
    assert loss.for_classes_only == (name != "squared_error")
    assert find_loss("no such loss") is None


def objective_of(name="logistic", l1=0.05, l2=0.1, n=30):
    X, y = classification(n, 3, noise=2.0)
    share = np.linspace(0.5, 1.5, n)
    return X, PenalizedLoss(LOSSES[name], y, share / share.sum(), l1, l2)


def test_the_gradient_and_the_step_of_a_working_set():
    X, objective = objective_of()
    w, bias, h = np.array([0.5, -0.3, 0.2]), 0.1, 1e-6
    f = X @ w + bias
    gradient = losses._gradient(X, objective, f, w, np.sign(w))

    def value(change):
        moved = w + change[:3]
        return objective.value(X @ moved + bias + change[3], moved)

    steps = h * np.eye(4)
    np.testing.assert_allclose(gradient, [(value(d) - value(-d)) / (2 * h) for d in steps], atol=1e-8)
    step = losses._newton_step(X, objective, f, gradient)
    columns = np.column_stack([X, np.ones(30)])
    hessian = (columns.T * objective.curvature(f)) @ columns + np.diag([0.2] * 3 + [0.0])
    np.testing.assert_allclose(hessian @ step, -gradient, atol=1e-9)
    copies = losses._newton_step(
        X[:, [0, 0]],
        PenalizedLoss(objective.loss, objective.y, objective.share, 0.0, 0.0),
        f,
        gradient[[0, 0, 3]],
    )
    assert np.all(np.isfinite(copies))


def test_a_line_search_stops_where_a_weight_reaches_zero():
    X, objective = objective_of(l1=0.5)
    w, bias = np.array([0.2, 0.01, 0.0]), 0.0
    f = X @ w
    start = (w, bias, f, objective.value(f, w))
    direction = np.array([-0.25, -0.02, 0.0])
    moved, new_bias, predictions, value = losses._line_search(X, objective, start, direction, 0.05, -0.1)
    points = []
    for t in (1.0, 0.8, 0.5):
        at = w + t * direction
        at[np.isclose(at, 0.0)] = 0.0
        points.append((objective.value(X @ at + 0.05 * t, at), t, at))
    best = min(points, key=lambda point: point[0])
    np.testing.assert_allclose(moved, best[2], atol=1e-15)
    assert (value, new_bias) == (pytest.approx(best[0]), pytest.approx(0.05 * best[1]))
    np.testing.assert_allclose(predictions, X @ moved + new_bias, atol=1e-12)
    assert losses._line_search(X, objective, start, -direction, 0.0, -0.1) is None  # uphill
    smooth = PenalizedLoss(objective.loss, objective.y, objective.share, 0.0, 0.1)
    start = (w, bias, f, smooth.value(f, w))
    slope = smooth.slope(f) @ (X @ direction) + 0.2 * w @ direction
    ahead = direction if slope < 0 else -direction
    moved = losses._line_search(X, smooth, start, ahead, 0.0, -abs(slope))[0]
    np.testing.assert_allclose(moved, w + ahead)  # without a kink it does not stop at zero


def test_a_full_step_is_taken_where_it_halves_the_gradient():
    X, objective = objective_of(l1=0.01)
    every, signs = np.ones(3, dtype=bool), np.array([1.0, 1.0, 1.0])
    w = np.array([0.3, 0.4, 0.2])
    f = X @ w
    gradient = losses._gradient(X, objective, f, w, signs)
    step = losses._newton_step(X, objective, f, gradient)
    start = (w, 0.0, f, objective.value(f, w))
    for factor, taken in ((1.0, True), (0.4, False), (0.6, True), (-1.0, False)):
        d = factor * step
        found = losses._full_step(X, objective, start, d[:3], d[3], signs, every, gradient)
        assert (found is not None) == taken, factor
        if taken:
            np.testing.assert_allclose(found[0], w + d[:3])
            assert found[1] == pytest.approx(d[3])
            np.testing.assert_allclose(found[2], X @ found[0] + found[1], atol=1e-12)
            assert found[3] == pytest.approx(objective.value(found[2], found[0]))
    across = np.array([-0.3, 0.0, 0.0])
    assert losses._full_step(X, objective, start, across, 0.0, signs, every, 1e9 * gradient) is None
    smooth = PenalizedLoss(objective.loss, objective.y, objective.share, 0.0, 0.1)
    assert losses._full_step(X, smooth, start, across, 0.0, signs, every, 1e9 * gradient) is not None


def test_probabilities_of_classes():
    rng = np.random.default_rng(4)
    cost = rng.uniform(0.5, 2.0, 5)
    two, four = Softmax(np.arange(5) % 2, 2, cost), Softmax(np.arange(5) % 4, 4, cost)
    f = rng.normal(size=(1, 5))
    _, probability = two.slope(f.copy())
    np.testing.assert_allclose(probability, expit(f))
    f = rng.normal(size=(3, 5))
    np.testing.assert_allclose(four.contrast.T @ four.contrast, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(four.contrast.sum(axis=0), 0.0, atol=1e-12)
    scores = four.contrast @ f
    _, probability = four.slope(f.copy())
    np.testing.assert_allclose(probability, np.exp(scores) / np.exp(scores).sum(axis=0))
    np.testing.assert_allclose(four.all_classes(f), scores)
    assert two.all_classes(f[:1]).shape == (1, 5)
    total = compiled(losses.sum_of_curvatures)(probability, cost)
    assert total == pytest.approx(np.sum(cost * probability * (1 - probability)))
    assert (two.n_outputs, four.n_outputs) == (1, 3)
