"""Parts of a Lasso path: the least squares behind it, the grid, descent, and repairs by the optimality conditions."""

from __future__ import annotations

import numpy as np
import pytest

import zeronorm
from small_problems import noise, problem_of
from zeronorm import as_design
from zeronorm.selectors.sparsity import _lasso as lasso
from zeronorm.solvers._lasso import LassoStep


@pytest.mark.parametrize("task", ["binary", "multiclass", "regression"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("small", [60, 59])
def test_least_squares_without_a_bias(task, weighted, small, monkeypatch):
    """Weighted products of centred columns and targets; small data are a dense copy."""
    monkeypatch.setattr(lasso, "LARGEST_DENSE_COPY", small)
    X = noise(15, 4) + np.array([5.0, 0.0, -3.0, 1.0])
    y = noise(15, 1, 1)[:, 0] if task == "regression" else np.arange(15) % (2 if task == "binary" else 3)
    weight = np.random.default_rng(2).uniform(0.5, 2.0, 15) if weighted else None
    classes = None if task == "regression" else np.unique(y)
    factor, Y = lasso.centred_least_squares(problem_of(y, X, task, sample_weight=weight, classes=classes))
    targets = {"binary": 2.0 * y - 1.0, "multiclass": np.eye(3)[y.astype(int) % 3], "regression": y}[task]
    targets = targets.reshape(15, -1)
    w = np.ones(15) if weight is None else weight
    centred, left = (A - np.average(A, axis=0, weights=w) for A in (X, targets))
    block = factor.block(np.arange(4))
    np.testing.assert_allclose(block.T @ block, (centred * w[:, None]).T @ centred, atol=1e-10)
    np.testing.assert_allclose(factor.transpose_dot(Y), (centred * w[:, None]).T @ left, atol=1e-10)
    is_turned = small == 60 and task != "multiclass"
    assert block.shape == ((4, 4) if is_turned else (15, 4))


def test_a_feature_enters_at_the_penalty_of_the_breakpoint_before():
    steps = [LassoStep.of(penalty, np.arange(1), np.ones(1)) for penalty in (8.0, 4.0, 1.0)]
    np.testing.assert_allclose(lasso._levels_of_entry(steps), [8.0, 8.0, 4.0])
    assert lasso._levels_of_entry([LassoStep.of(0.0, np.arange(1), np.ones(1))])[0] > 0.0


@pytest.mark.parametrize("at_a_time", [8, 1])
def test_how_far_a_solution_is_from_the_optimality_conditions(at_a_time, monkeypatch):
    """Orthogonal columns have the gradients 4, -3 and 1, each less its weight."""
    monkeypatch.setattr(lasso, "STEPS_AT_A_TIME", at_a_time)
    X, y = as_design(np.eye(3)), np.array([4.0, -3.0, 1.0])
    steps = [
        LassoStep.of(4.0, np.arange(0), np.zeros(0)),
        LassoStep.of(2.0, np.array([0, 1]), np.array([2.0, -1.0])),
        LassoStep.of(2.0, np.array([0, 1]), np.array([2.0, -0.5])),  # the second should be larger
        LassoStep.of(0.5, np.array([0]), np.array([3.5])),  # the second should be in
        LassoStep.of(1.0, np.array([0, 1]), np.array([3.0, 4.0])),  # and have the other sign
    ]
    np.testing.assert_allclose(lasso._violations(X, y, steps), np.array([0, 0, 0.5, 2.5, 8.0]) / 4.0)


@pytest.mark.parametrize("norm_bound", [None, 1.5])
def test_solutions_of_one_target_on_a_grid_are_exact(norm_bound):
    X = as_design(noise(30, 6))
    y = X.block(slice(None))[:, 1] - X.block(slice(None))[:, 4] + 0.3 * noise(30, 1, 1)[:, 0]
    steps = lasso._grid_path(X, y[:, None], 9, norm_bound, 100)
    assert lasso._violations(X, y, steps).max() < 1e-9
    if norm_bound is None:
        np.testing.assert_allclose(
            [step.penalty for step in steps], np.abs(X.transpose_dot(y)).max() * np.geomspace(1, 1e-3, 9)
        )
    else:
        assert np.abs(steps[-1].weights).sum() == pytest.approx(norm_bound, rel=1e-6)
        assert all(np.abs(step.weights).sum() <= norm_bound for step in steps[:-1])


def test_a_path_is_repaired_from_the_first_step_that_is_wrong(monkeypatch):
    X, y = as_design(np.eye(4)), np.array([8.0, -4.0, 2.0, 1.0])

    def at(penalty):
        weights = np.sign(y) * np.maximum(np.abs(y) - penalty, 0.0)
        return LassoStep.of(penalty, np.arange(4), weights)

    right = [at(penalty) for penalty in (8.0, 4.0, 2.0, 1.0)]
    wrong = [*right[:2], *(LassoStep(s.penalty, s.columns[1:], s.weights[1:]) for s in right[2:])]
    monkeypatch.setattr(lasso, "follow_lasso_path", lambda X, gradient, **limits: wrong)
    steps, optimal = zeronorm.LassoSelector(task="regression")._path_of_one_target(X, y[:, None], y, 9)
    assert optimal
    assert [step.penalty for step in steps] == [8.0, 4.0, 2.0, 1.0]
    for found, wanted in zip(steps, right, strict=True):
        assert found.columns.tolist() == wanted.columns.tolist()
        np.testing.assert_allclose(found.weights, wanted.weights, atol=1e-9)
    monkeypatch.setattr(lasso, "follow_lasso_path", lambda X, gradient, **limits: right)
    same, optimal = zeronorm.LassoSelector(task="regression")._path_of_one_target(X, y[:, None], y, 9)
    assert (same, optimal) == (right, True)


def test_a_bound_beyond_the_grid_ends_at_the_smallest_penalty():
    y = np.array([80.0, -40.0, 20.0, 10.0])[:, None]
    steps = lasso._grid_path(as_design(np.eye(4)), y, 3, 1e6, 9)
    np.testing.assert_allclose(
        [step.penalty for step in steps], 80.0 * np.array([1.0, 10.0**-1.5, 1e-3, 1e-6])
    )
    assert lasso._joining(np.array([1.0, 2.0, 1.0 + 1e-9]), 1.0, np.arange(0)).tolist() == [1, 2]


@pytest.mark.parametrize("n_targets", [1, 2])
@pytest.mark.parametrize("most_features", [100, 2])
def test_descent_on_many_columns_is_that_on_all_of_them(n_targets, most_features, monkeypatch):
    monkeypatch.setattr(lasso, "MOST_JOINING", 2)
    X = as_design(noise(30, 12))
    Y = noise(30, n_targets, 1) + X.block([3, 7])[:, :n_targets] * 2.0
    penalties = np.abs(X.transpose_dot(Y)).max() * np.geomspace(1.1, 0.004, 12)
    whole = lasso._descend(X, Y, penalties, 1e-12)
    monkeypatch.setattr(lasso, "LARGEST_DENSE_COPY", 359)
    steps = lasso._descend(X, Y, penalties, 1e-12, most_features)
    sizes = [step.columns.size for step in whole]
    n_steps = next((k + 1 for k, size in enumerate(sizes) if size > most_features), 12)
    assert (n_steps < 12) == (most_features == 2)
    assert sizes[0] == 0
    assert sizes[-1] >= 5
    assert len(steps) == n_steps
    for found, wanted in zip(steps, whole, strict=False):
        assert found.penalty == wanted.penalty
        assert found.columns.tolist() == wanted.columns.tolist()
        np.testing.assert_allclose(found.weights, wanted.weights, atol=1e-5)
