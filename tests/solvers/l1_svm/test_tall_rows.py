"""Rows of the l1 SVM for many samples: merging, sampling, windows, and shared multipliers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog

from zeronorm.design import as_design
from zeronorm.solvers.l1_svm import _tall as programs
from zeronorm.solvers.l1_svm import _tall as tall
from zeronorm.solvers.l1_svm._tall import Sides, _Rows, _Sharing


def rows_of(n=9, p=2, seed=0):
    rng = np.random.default_rng(seed)
    matrix = np.column_stack([rng.integers(-1, 2, size=(n, p)), np.where(np.arange(n) % 2, 1.0, -1.0)])
    return _Rows(matrix, np.ones(n), rng.uniform(0.5, 2.0, n))


def test_a_label_makes_one_row_and_a_target_two():
    y, f = np.array([1.0, -1.0, 1.0]), np.array([0.4, 0.5, 2.0])
    labels = Sides(y, None)
    assert (labels.sides.tolist(), labels.targets.tolist()) == ([y.tolist()], [1.0] * 3)
    assert labels.per_row(np.array([3.0, 4.0, 5.0])).tolist() == [3.0, 4.0, 5.0]
    assert labels.dual_coef(np.array([0.1, 0.2, 0.3])).tolist() == [0.1, -0.2, 0.3]
    np.testing.assert_allclose(labels.slacks(f), [0.6, 1.5, 0.0])
    target = Sides([2.0, -1.0], 0.25)
    assert target.sides.tolist() == [[1.0, 1.0], [-1.0, -1.0]]
    assert target.targets.tolist() == [1.75, -1.25, -2.25, 0.75]
    assert target.per_row(np.array([3.0, 4.0])).tolist() == [3.0, 4.0, 3.0, 4.0]
    np.testing.assert_allclose(target.dual_coef(np.array([0.5, 0.1, 0.2, 0.4])), [0.3, -0.3])
    np.testing.assert_allclose(target.slacks(np.array([1.5, 0.0])), [0.25, 0.75])
    np.testing.assert_allclose(target.slacks(np.array([2.2, -1.2])), [0.0, 0.0])


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_equal_rows_count_as_one_with_the_sum_of_their_costs(make):
    rows = rows_of(40)
    targets = np.where(np.arange(40) % 5 == 0, 2.0, 1.0)
    merged, group = _Rows(make(rows.matrix), targets, rows.cost).merged()
    dense = merged.matrix.toarray() if sparse.issparse(merged.matrix) else merged.matrix
    together = np.column_stack([rows.matrix, targets])
    unique = np.unique(together, axis=0)
    assert len(dense) == len(unique) < 40
    np.testing.assert_array_equal(np.column_stack([dense, merged.target])[group], together)
    for g in range(len(dense)):
        assert merged.cost[g] == pytest.approx(rows.cost[group == g].sum())


def test_residuals_of_rows_and_the_objective():
    rows, w = rows_of(), np.array([0.3, -0.2, 0.1])
    np.testing.assert_allclose(rows.short(w), 1.0 - rows.matrix @ w)
    some = rows.take(np.array([4, 1]))
    np.testing.assert_array_equal(some.matrix, rows.matrix[[4, 1]])
    assert (some.cost.tolist(), some.target.size) == (rows.cost[[4, 1]].tolist(), 2)
    penalty = np.array([2.0, 3.0])
    loss = rows.cost @ np.maximum(0.0, 1.0 - rows.matrix @ w)
    assert tall._objective(rows, penalty, w) == pytest.approx(
        2.0 * 0.3 + 3.0 * 0.2 + loss
    )  # the bias is free
    start, end = np.zeros(3), np.array([0.0, 0.0, 1.0])
    lone = _Rows(np.array([[0.0, 0.0, 1.0], [0.0, 0.0, -1.0]]), np.array([0.25, -0.25]), np.ones(2))
    assert tall._best_between(lone, penalty, start, end).tolist() == [0.0, 0.0, 0.25]
    np.testing.assert_allclose(tall._best_between(lone, penalty, end, start), [0.0, 0.0, 0.5])
    far = _Rows(lone.matrix, np.array([9.0, -9.0]), np.ones(2))
    assert tall._best_between(far, penalty, start, end).tolist() == [0.0, 0.0, 1.0]


def test_a_sample_of_the_rows_represents_all():
    n = 400
    cost = np.full(n, 1.0)
    cost[:3] = 200.0
    rows = _Rows(np.arange(n)[:, None] * 1.0, np.arange(n) * 2.0, cost)
    found = rows.sampled(20)
    assert found.target.size == 20
    assert np.all(np.diff(found.target) > 0.0)  # in their order, each once
    assert found.target[:3].tolist() == [0.0, 2.0, 4.0]  # all rows of large cost are kept unchanged
    assert found.cost[:3].tolist() == [200.0] * 3
    np.testing.assert_array_equal(found.matrix[:, 0] * 2.0, found.target)
    assert found.cost.sum() == pytest.approx(cost.sum())
    np.testing.assert_allclose(found.cost[3:], 397.0 / 17.0)
    cost[:15] = 100.0  # with many heavy rows, at least half of the wanted number are light ones
    many = _Rows(rows.matrix, rows.target, cost).sampled(20)
    assert many.target.size == 15 + 10


def test_the_nearest_rows_and_those_of_each_feature():
    distance = np.array([5.0, 1.0, 3.0, 3.0, 2.0, 9.0])
    assert tall._nearest(distance, 0).tolist() == [False, True, False, False, False, False]
    assert np.flatnonzero(tall._nearest(distance, 2)).tolist() == [1, 2, 3, 4]  # and what equals the last
    assert np.flatnonzero(tall._nearest(distance, 1)).tolist() == [1, 4]
    assert tall._nearest(distance, 60).all()
    assert tall._sums(np.array([1, 0, 1]), np.array([2.0, 3.0, 4.0])).tolist() == [3.0, 6.0]


def test_rows_of_rare_features_are_in_the_window(monkeypatch):
    monkeypatch.setattr(tall, "ROWS_OF_A_FEATURE", 2)
    n = 12
    matrix = np.zeros((n, 3))
    matrix[:, 2] = 1.0
    matrix[8:, 0] = 1.0  # four rows: the nearest two, and ties with the third
    matrix[[10, 11], 1] = 1.0  # a feature with fewer rows than its share
    distance = np.arange(n) * 1.0
    rows = _Rows(sparse.csr_array(matrix), np.ones(n), np.ones(n))
    assert np.flatnonzero(tall._window(rows, distance, 3)).tolist() == [0, 1, 2, 3, 8, 9, 10, 11]
    few = matrix.copy()
    few[:, 1] = 0.0
    rows = _Rows(sparse.csr_array(few), np.ones(n), np.ones(n))
    assert np.flatnonzero(tall._window(rows, distance, 3)).tolist() == [0, 1, 2, 3, 8, 9, 10]
    dense = _Rows(matrix, np.ones(n), np.ones(n))
    assert np.flatnonzero(tall._window(dense, distance, 3)).tolist() == [0, 1, 2, 3]
    # A window that has room for more rows of each feature takes them.
    assert np.flatnonzero(tall._window(rows, distance[::-1].copy(), 9))[0] == 2


@pytest.mark.parametrize("factor", [1.0, 1e-6])
def test_the_program_of_rows_with_the_gradient_of_others_is_a_linear_program(factor):
    rows = rows_of(14, 3, seed=3)
    rows = _Rows(rows.matrix, np.linspace(0.5, 1.5, 14), factor * rows.cost)
    penalty, gradient = factor * np.array([0.5, 1.0, 2.0]), factor * np.array([0.1, -0.2, 0.3, 0.4])
    found = tall._solve_program(rows, penalty, gradient)
    assert found.converged
    most = np.append(penalty, 0.0)
    A = np.vstack([rows.matrix.T, -rows.matrix.T])
    exact = linprog(
        -rows.target,
        A_ub=A,
        b_ub=np.concatenate([most - gradient, most + gradient]) / factor,
        bounds=list(zip(np.zeros(14), rows.cost / factor, strict=True)),
    )
    assert rows.target @ found.alpha == pytest.approx(-factor * exact.fun, rel=1e-9)
    # The weights are optimal: the objective, with the linear term of the rows outside, is the same.
    value = tall._objective(rows, penalty, found.weights) - gradient @ found.weights
    assert value == pytest.approx(rows.target @ found.alpha, rel=1e-8)
    assert np.all((found.alpha >= 0.0) & (found.alpha <= rows.cost))


def sharing(seed=0, n=24, p=6):
    rng = np.random.default_rng(seed)
    group = np.arange(n) % 4
    sign = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    X = rng.normal(size=(n, p))
    return X, _Sharing(as_design(X), sign, rng.uniform(0.5, 1.5, n), group)


def test_the_nearest_multipliers_with_given_sums():
    X, shared = sharing()
    rng = np.random.default_rng(1)
    x, total = rng.normal(size=24), np.array([1.0, 2.5, 0.2, 4.0])
    found = shared._projected(x, total)
    np.testing.assert_allclose(np.bincount(shared.group, found), total, atol=1e-9)
    for g in range(4):
        own = np.flatnonzero(shared.group == g)
        inside = own[(found[own] > 0.0) & (found[own] < shared.cost[own])]
        shift = np.mean(x[inside] - found[inside])  # all move by the same amount, up to their bounds
        np.testing.assert_allclose(found[own], np.clip(x[own] - shift, 0.0, shared.cost[own]), atol=1e-9)
    np.testing.assert_allclose(shared._gradient(x), X.T @ (shared.sign * x))


def test_the_curvature_is_that_of_the_steepest_change_that_keeps_the_sums():
    X, shared = sharing()
    unit = np.array([1.0, 2.0, 0.5, np.inf, 1.0, 1.0])
    keep = np.eye(24) - (shared.group[:, None] == shared.group) / 6.0
    rows = shared.sign[:, None] * X / unit
    largest = np.linalg.eigvalsh(keep @ rows @ rows.T @ keep)[-1]
    assert largest <= shared._curvature(unit) <= 1.25 * np.linalg.eigvalsh(rows @ rows.T)[-1]


def test_sharing_stops_as_soon_as_no_feature_violates():
    _, shared = sharing()
    alpha, outside = 0.5 * shared.cost, np.array([False, True, True, True, True, True])
    gradient = shared._gradient(alpha)
    roomy = np.abs(gradient) + 1.0
    assert shared.calling_for_fewer(alpha, gradient, roomy, outside) is alpha
    roomy[0] = 1e-6  # it is inside
    assert shared.calling_for_fewer(alpha, gradient, roomy, outside) is alpha
    roomy[1] = 0.0  # a penalty of zero is ignored
    assert shared.calling_for_fewer(alpha, gradient, roomy, outside) is alpha
    tight = np.full(6, 0.6 * np.abs(gradient[1:]).max())
    better = shared.calling_for_fewer(alpha, gradient, tight, outside)
    assert np.abs(shared._gradient(better)[1:]).max() < np.abs(gradient[1:]).max()
    np.testing.assert_allclose(np.bincount(shared.group, better), np.bincount(shared.group, alpha), atol=1e-9)
    shifted = shared.calling_for_fewer(
        alpha, gradient + 0.3, np.full(6, 0.6 * np.abs(gradient[1:] + 0.3).max()), outside
    )
    assert np.abs(shared._gradient(shifted)[1:] + 0.3).max() < np.abs(gradient[1:] + 0.3).max()


def test_sharing_keeps_sums_and_bounds_and_lowers_gradients():
    rng = np.random.default_rng(0)
    group, cost = np.repeat([0, 1], [150, 50]), rng.uniform(0.5, 1.0, 200)
    design = as_design(rng.normal(size=(200, 30)))
    sign = np.where(rng.random(200) < 0.5, 1.0, -1.0)
    shared = programs._Sharing(design, sign, cost, group)
    start, outside = 0.5 * cost, np.arange(30) >= 5
    gradient = np.full(30, 2.0) + design.transpose_dot(sign * start)  # also that of other rows
    penalty = np.full(30, 6.0)
    assert np.abs(gradient[outside]).max() > 8.0
    alpha = shared.calling_for_fewer(start, gradient, penalty, outside)
    np.testing.assert_allclose(np.bincount(group, alpha), np.bincount(group, start), rtol=1e-9)
    assert alpha.min() >= 0.0
    assert np.all(alpha <= cost)
    after = 2.0 + design.transpose_dot(sign * alpha)
    assert np.abs(after[outside]).max() <= 6.0
