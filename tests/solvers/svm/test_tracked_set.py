"""Updating the optimum while columns are removed, against solving every problem from scratch."""

from __future__ import annotations

import numpy as np
import pytest

from solvers.problems import plain
from zeronorm.engines.elimination._scan import remove_column, train_models
from zeronorm.solvers.svm import _tracked_set as tracked_set
from zeronorm.solvers.svm._box_dual import BoxDual
from zeronorm.solvers.svm._smo import smo
from zeronorm.solvers.svm._tracked_set import (
    TrackedSets,
    change_by_square,
    follow,
    forget_column,
    solve_factored,
    start_tracking,
)

TOL = 1e-8


def two_classes(n, p, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    y = np.where(X[:, :5].sum(axis=1) + rng.normal(size=n) > 0, 1.0, -1.0)
    return X - X.mean(axis=0), y


class Shrinking:
    """An SVM whose columns are removed one at a time."""

    def __init__(self, X, dual):
        self.X, self.dual = X, dual
        self.K = X @ X.T
        self.alpha = np.zeros((1, dual.sign.size))
        self.f, self.v = np.zeros((1, len(X))), np.zeros((1, len(X)))
        self.sets = TrackedSets.room_for(1, len(X))
        self.train()

    def train(self):
        d = self.dual
        return train_models(
            self.K, d.ridge, d.sample, d.sign[None], d.linear[None], d.upper[None],
            self.alpha, self.f, self.v, self.sets, TOL, 100_000,
        )  # fmt: skip

    def remove(self, j):
        x = np.ascontiguousarray(self.X[:, j])
        remove_column(self.K, self.f, self.v, x)
        forget_column(self.sets, self.dual.sample, x)
        return self.train()

    def solved_from_scratch(self):
        d = self.dual
        alpha, f = np.zeros(d.sign.size), np.zeros(d.n_samples)
        smo(self.K, d.ridge, d.sample, d.sign, d.linear, d.upper, alpha, f, TOL, 100_000)
        return d.objective(alpha, f)

    def factored(self):
        """The matrix of the factor, and the matrix it should factor."""
        m = int(self.sets.size[0])
        U, rows = np.triu(self.sets.factor[0, :m, :m]), self.dual.sample[self.sets.order[0, :m]]
        H = self.K[np.ix_(rows, rows)] + np.diag(self.dual.ridge[rows]) + self.sets.shift[0]
        return U.T @ U, H


def duals(n, y):
    C = np.full(n, 0.01)
    rng = np.random.default_rng(1)
    return {
        "hinge": BoxDual.classification(y, C, squared=False),
        "squared hinge": BoxDual.classification(y, C, squared=True),
        "weighted": BoxDual.classification(y, C * rng.uniform(0.2, 3.0, n), squared=False),
        "regression": BoxDual.regression(y + 0.1 * rng.normal(size=n), C, 0.1, squared=False),
    }


@pytest.mark.parametrize("kind", ["hinge", "squared hinge", "weighted", "regression"])
def test_every_problem_on_the_way_is_solved(kind):
    X, y = two_classes(60, 150)
    model = Shrinking(X, duals(60, y)[kind])
    n_followed = 0
    for j in np.random.default_rng(2).permutation(150)[:140]:
        n_followed += int(model.sets.size[0]) > 0
        status, _ = model.remove(j)
        assert status == 0
        expected = model.solved_from_scratch()
        found = model.dual.objective(model.alpha[0], model.f[0])
        assert found == pytest.approx(expected, rel=1e-7)
        assert abs(model.dual.sign @ model.alpha[0]) < 1e-9
    assert n_followed > 50


def test_factor_stays_that_of_the_free_variables():
    X, y = two_classes(80, 400)
    model = Shrinking(X, duals(80, y)["hinge"])
    sizes = set()
    for j in range(200):
        model.remove(j)
        found, expected = model.factored()
        sizes.add(len(expected))
        assert np.allclose(found, expected, rtol=0, atol=1e-8 * np.abs(expected).max())
        alpha, free = model.alpha[0], model.sets.order[0, : model.sets.size[0]]
        inside = np.flatnonzero((alpha > 0) & (alpha < model.dual.upper))
        assert set(inside) <= set(free)
    assert len(sizes) > 2  # variables reached and left their bounds on the way


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_a_square_is_added_to_a_factor_or_taken_from_it(side):
    rng = np.random.default_rng(4)
    U = np.triu(rng.normal(size=(6, 6))) + 3.0 * np.eye(6)
    x, changed = 0.3 * rng.normal(size=4), U.copy()
    assert change_by_square(changed, 2, 6, x.copy(), side)
    expected = U[2:, 2:].T @ U[2:, 2:] + side * np.outer(x, x)
    np.testing.assert_allclose(changed[2:, 2:].T @ changed[2:, 2:], expected, atol=1e-12)
    np.testing.assert_array_equal(changed[:2], U[:2])
    assert not change_by_square(U.copy(), 2, 6, 100.0 * x, -1.0)  # not positive definite any more


def test_fewer_columns_than_free_variables_end_the_tracking():
    X, y = two_classes(60, 8)
    model = Shrinking(X, duals(60, y)["squared hinge"])
    for j in range(6):
        model.remove(j)
    assert model.dual.objective(model.alpha[0], model.f[0]) == pytest.approx(
        model.solved_from_scratch(), rel=1e-7
    )


def test_a_wrong_factor_is_noticed():
    X, y = two_classes(60, 150)
    model = Shrinking(X, duals(60, y)["hinge"])
    with np.errstate(all="ignore"):  # from entries outside the factor that were never written
        model.sets.factor[0] *= 30.0
    d = model.dual
    model.K[:] = model.K[::-1, ::-1].copy()
    model.f[0] = model.K @ model.v[0]
    reached, _ = follow(
        model.sets, 0, model.K, d.ridge, d.sample, d.sign, d.linear, d.upper, model.alpha[0], model.f[0], TOL
    )  # fmt: skip
    assert not reached
    assert model.sets.size[0] == 0


def test_singular_matrix_is_given_up():
    n = 40
    X = np.ones((n, 1)) * np.arange(n)[:, None]
    alpha, sets = np.full(n, 0.5), TrackedSets.room_for(1, n)
    start_tracking(sets, 0, X @ X.T, np.zeros(n), np.arange(n), np.ones(n), alpha)
    assert sets.size[0] < 0


def test_small_and_huge_problems_have_no_factor():
    assert TrackedSets.room_for(1, 31).factor.size == 0
    assert TrackedSets.room_for(1, 32).factor.shape[1:] == (32, 32)
    assert TrackedSets.room_for(1, 100_000).factor.size == 0


def test_a_column_leaves_factors_of_any_size():
    """Factors of one variable, of none, and of one that becomes singular; a model that was given up stays so."""
    sets, x = TrackedSets.room_for(4, 40), np.linspace(0.0, 3.9, 40)
    sets.size[:] = 1, 0, 1, -1
    sets.order[:, 0], sets.factor[:, 0, 0] = (15, 0, 30, 0), 2.0
    forget_column(sets, np.arange(40), x)
    assert sets.size.tolist() == [1, 0, 0, -1]
    assert sets.factor[0, 0, 0] ** 2 == pytest.approx(4.0 - x[15] ** 2)
    assert sets.factor[1, 0, 0] == sets.factor[3, 0, 0] == 2.0


@pytest.mark.parametrize("m", [1, 2, 5])
def test_a_factored_system_is_solved_whatever_lies_beyond_it(m):
    """The factor has room for more variables than are in use."""
    rng = np.random.default_rng(m)
    U = rng.normal(size=(7, 7))
    U[:m, :m] = np.triu(U[:m, :m]) + 3.0 * np.eye(m)
    right = rng.normal(size=m)
    x = right.copy()
    solve_factored(U, m, x)
    np.testing.assert_allclose(U[:m, :m].T @ U[:m, :m] @ x, right, atol=1e-12)


def test_variables_enter_and_leave_a_factor():
    rng = np.random.default_rng(2)
    A = rng.normal(size=(8, 9))
    K, ridge, sample = A @ A.T, rng.uniform(0.1, 0.5, 8), np.arange(8)
    upper, alpha = np.ones(8), np.array([0.5, 0.0, 0.5, 0.5, 1.0, 0.5, 0.0, 0.5])
    sets = TrackedSets(np.zeros((1, 8, 8)), np.zeros((1, 8), np.int64), np.zeros(1, np.int64), np.zeros(1))
    plain(tracked_set.start_tracking)(sets, 0, K, ridge, sample, upper, alpha)
    m, U, order = int(sets.size[0]), sets.factor[0], sets.order[0]
    assert order[:m].tolist() == [0, 2, 3, 5, 7]
    assert sets.shift[0] == pytest.approx(np.diagonal(K)[order[:m]].mean())

    def check(size):
        rows = order[:size]
        H = K[np.ix_(rows, rows)] + np.diag(ridge[rows]) + sets.shift[0]
        triangle = np.triu(U[:size, :size])
        np.testing.assert_allclose(triangle.T @ triangle, H, atol=1e-9)

    check(m)
    shift = sets.shift[0]
    arguments = (shift, K, ridge, sample, upper, alpha)
    assert plain(tracked_set._release)(U, order, m, *arguments, 4) == 6
    assert order[5] == 4
    check(6)
    assert plain(tracked_set._release)(U, order, 6, *arguments, 4) == 6  # it is there already
    assert plain(tracked_set._release)(U, order, 6, *arguments, 0) == 6  # it is free
    assert plain(tracked_set._release)(U, order, 6, *arguments, -1) == 6
    assert plain(tracked_set._release)(U, order, 0, *arguments, 1) == 0
    for K_two, size in ((np.ones((2, 2)), 0), (np.eye(2), 2)):  # the matrix of two equal samples is singular
        two = (np.zeros(2), np.arange(2), np.ones(2), np.array([0.5, 0.0]))
        factor_of_one = np.sqrt(1.0 + shift) * np.eye(2)
        assert plain(tracked_set._release)(factor_of_one, np.array([0, -1]), 1, shift, K_two, *two, 1) == size
    full, every = (
        order[:6].copy(),
        np.full(8, 0.5),
    )  # of a factor that has no room, a free one is no reason to stop
    assert plain(tracked_set._release)(U, full, 6, shift, K, ridge, sample, upper, every, 4) == 6
    assert plain(tracked_set._release)(U, full, 6, shift, K, ridge, sample, upper, alpha, 1) == 0
    alpha[[2, 7]] = (0.0, 1.0)  # two that met a bound, and the one that was let go stays at its own
    assert plain(tracked_set._drop_bound)(U, order, 6, upper, alpha) == 3
    assert order[:3].tolist() == [0, 3, 5]
    check(3)
    sign, linear, f = np.where(np.arange(8) % 2, 1.0, -1.0), -np.ones(8), rng.normal(size=8)
    step = plain(tracked_set._direction)(U, order, 3, sample, sign, linear, f)
    rows = order[:3]
    H = K[np.ix_(rows, rows)] + np.diag(ridge[rows])
    system = np.block([[H, np.ones((3, 1))], [np.ones((1, 3)), np.zeros((1, 1))]])
    exact = np.linalg.solve(system, np.append(-(f[rows] + sign[rows] * linear[rows]), 0.0))
    np.testing.assert_allclose(step, exact[:3], atol=1e-9)
