"""Sequential minimal optimisation: its steps by their definitions, mostly uncompiled, and the whole algorithm."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from solvers.problems import plain
from solvers.svm.duals import constrained_optimum, gains, movable, problem_of, state_of
from zeronorm.solvers._status import Status
from zeronorm.solvers.svm import _smo as smo
from zeronorm.solvers.svm._box_dual import BoxDual

KINDS = ["hinge", "squared", "regression", "squared regression"]


CASES = [(kind, seed) for kind in KINDS for seed in range(3)]


def objective(dual, Q, alpha):
    v = dual.signed_sum(alpha)
    return 0.5 * v @ Q @ v + dual.linear @ alpha


@pytest.mark.parametrize(("kind", "seed"), CASES)
def test_the_pair_that_gains_most_is_chosen(kind, seed):
    dual, K, Q, alpha, f = problem_of(kind, seed)
    along, against = movable(dual, alpha)
    score, every = gains(dual, f), np.arange(dual.sign.size)
    i, top = plain(smo.first_of_pair)(every, *state_of(dual), alpha, f)
    assert (i, top) == (np.flatnonzero(along)[np.argmax(score[along])], score[along].max())
    best, chosen = 0.0, -1
    for k in np.flatnonzero(against & (score < top)):
        d = np.zeros(dual.n_samples)
        d[dual.sample[i]] += 1.0
        d[dual.sample[k]] -= 1.0
        bend = max(d @ Q @ d, 1e-14)
        if (top - score[k]) ** 2 / bend > best:
            best, chosen = (top - score[k]) ** 2 / bend, k
    diagonal = plain(smo.diagonal_of)(K, dual.ridge)
    np.testing.assert_array_equal(diagonal, np.diagonal(Q))
    found = plain(smo.second_of_pair)(K, diagonal, every, *state_of(dual), alpha, f, i, top)
    assert found == (chosen, score[against].min())
    some = every[every != i]  # variables that are set aside are not considered
    other, lower = plain(smo.first_of_pair)(some, *state_of(dual), alpha, f)
    assert other != i
    assert lower == max(score[k] for k in some if along[k])
    assert plain(smo.second_of_pair)(K, diagonal, every, *state_of(dual), alpha, f, -1, top) == (-1, np.inf)


@pytest.mark.parametrize(("kind", "seed"), CASES)
def test_a_pair_moves_to_its_optimum_or_to_the_first_bound(kind, seed):
    dual, K, Q, start, f_start = problem_of(kind, seed)
    along, against = movable(dual, start)
    score = gains(dual, f_start)
    diagonal = np.diagonal(Q).copy()
    ends = set()
    for i, j in itertools.permutations(range(dual.sign.size), 2):
        s, t = dual.sample[i], dual.sample[j]
        if not (along[i] and against[j] and score[i] > score[j]) or s == t:
            continue
        alpha, f = start.copy(), f_start.copy()
        status, freed, bound = smo._pair_step(K, dual.ridge, diagonal, *state_of(dual), alpha, f, i, j)
        room_i = dual.upper[i] - start[i] if dual.sign[i] > 0 else start[i]
        room_j = start[j] if dual.sign[j] > 0 else dual.upper[j] - start[j]
        length = min((score[i] - score[j]) / (Q[s, s] + Q[t, t] - 2 * Q[s, t]), room_i, room_j)
        wanted = start.copy()
        wanted[i] += dual.sign[i] * length
        wanted[j] -= dual.sign[j] * length
        assert status == Status.ITERATION_LIMIT
        np.testing.assert_allclose(alpha, wanted, atol=1e-14)
        np.testing.assert_allclose(f, Q @ dual.signed_sum(alpha), atol=1e-12)
        assert objective(dual, Q, alpha) < objective(dual, Q, start)
        pair = [i, j]
        assert freed == np.sum((start[pair] == 0.0) | (start[pair] == dual.upper[pair]))
        assert bound == np.sum((alpha[pair] == 0.0) | (alpha[pair] == dual.upper[pair]))
        ends |= {(freed, bound)}
    assert len(ends) > 2


def test_the_two_variables_of_one_sample_move_freely_against_each_other():
    dual, K, Q, alpha, _ = problem_of("regression")
    alpha[0], alpha[7] = 0.2, 0.3  # errors above and below at once, which is never optimal
    f = Q @ dual.signed_sum(alpha)
    before = f.copy()
    status, freed, bound = smo._pair_step(
        K, dual.ridge, np.diagonal(Q).copy(), *state_of(dual), alpha, f, 7, 0
    )
    assert (status, freed, bound) == (Status.ITERATION_LIMIT, 0, 1)
    np.testing.assert_allclose(alpha[[0, 7]], [0.0, 0.1], atol=1e-15)
    np.testing.assert_array_equal(f, before)
    assert plain(smo._pair_curvature)(3.0, 0.5, False) == 2.0
    assert plain(smo._pair_curvature)(3.0, 0.5, True) == pytest.approx(3e-12)
    assert plain(smo._pair_curvature)(3.0, 1.5, False) == pytest.approx(3e-12)
    assert plain(smo._pair_curvature)(0.0, 0.0, False) == pytest.approx(1e-150)


def test_a_pair_that_nothing_stops_and_a_pair_that_rounding_stops():
    y, ones = np.array([1.0, -1.0]), np.ones((2, 2))
    hard = BoxDual.classification(y, np.full(2, np.inf), False)
    arguments = (hard.ridge, np.ones(2), *state_of(hard), np.zeros(2), np.zeros(2), 0, 1)
    assert smo._pair_step(ones, *arguments) == (Status.UNBOUNDED, 0, 0)
    soft = BoxDual.classification(y, np.array([np.inf, 5.0]), False)
    alpha = np.zeros(2)
    status = smo._pair_step(ones, soft.ridge, np.ones(2), *state_of(soft), alpha, np.zeros(2), 0, 1)
    assert status == (Status.ITERATION_LIMIT, 2, 1)
    assert alpha.tolist() == [5.0, 5.0]
    apart, alpha = np.eye(2), np.full(2, 1e17)
    f = y - np.array([1e-3, 0.0])
    status = smo._pair_step(apart, hard.ridge, np.ones(2), *state_of(hard), alpha, f.copy(), 0, 1)
    assert status == (Status.STALLED, 0, 0)
    assert alpha.tolist() == [1e17, 1e17]
    alpha = np.array([1e17, 1.0])  # a step that one of the two can still see
    status = smo._pair_step(apart, hard.ridge, np.ones(2), *state_of(hard), alpha, f.copy(), 0, 1)
    assert status[0] == Status.ITERATION_LIMIT
    assert alpha[1] > 1.0
    alpha = np.array([1.0, 1e17])
    assert smo._pair_step(apart, hard.ridge, np.ones(2), *state_of(hard), alpha, f.copy(), 0, 1)[0] == 2


@pytest.mark.parametrize(("kind", "seed"), CASES)
def test_what_cannot_be_part_of_a_pair_is_set_aside(kind, seed):
    dual, _, _, alpha, f = problem_of(kind, seed)
    along, against = movable(dual, alpha)
    score, every = gains(dual, f), np.arange(dual.sign.size)
    for top, bottom in ((np.median(score), np.median(score)), (score[along].max(), score[against].min())):
        wanted = [
            k
            for k in every
            if (along[k] and against[k])
            or (along[k] and score[k] >= bottom)
            or (against[k] and score[k] <= top)
        ]
        found = plain(smo._unsettled)(every, *state_of(dual), alpha, f, top, bottom)
        assert found.tolist() == wanted
    assert plain(smo._unsettled)(every[2:5], *state_of(dual), alpha, f, -99.0, 99.0).tolist() == [
        k for k in (2, 3, 4) if along[k] and against[k]
    ]


def test_how_many_are_free_and_whether_any_can_grow_for_ever():
    sample, ridge = np.arange(4), np.array([0.0, 0.5, 0.0, 0.0])
    upper, alpha = np.array([1.0, np.inf, 2.0, 0.0]), np.array([0.5, 0.0, 2.0, 0.0])
    assert plain(smo._survey)(ridge, sample, upper, alpha) == (1, False)
    assert plain(smo._survey)(np.zeros(4), sample, upper, alpha) == (1, True)
    upper[1], alpha[1] = 3.0, 3.5  # beyond its bound: not free
    assert plain(smo._survey)(ridge, sample, upper, alpha) == (1, False)
    assert plain(smo._survey)(np.zeros(4), sample, np.full(4, np.inf), alpha) == (3, True)
    assert plain(smo._largest_f)(np.array([1.0, 2.5]), np.array([3.0, 4.0, 0.5])) == 14.0
    assert plain(smo._largest_f)(np.array([0.5]), np.array([0.25, 0.125])) == 0.125


def test_the_variables_grow_together_balanced_between_the_signs():
    sign = np.array([1.0, 1.0, -1.0, -1.0, 1.0])
    linear = np.array([-1.0, -2.0, -1.0, -3.0, -1.0])
    alpha = np.array([0.2, 0.6, 0.1, 0.3, 0.0])
    upper, ridge = np.array([1.0, np.inf, 1.0, np.inf, 1.0]), np.zeros(5)
    diagonal, sample = np.array([1.0, 2.0, 7.0, 2.0, 1.0]), np.arange(5)
    arguments = (ridge, diagonal, sample, sign, linear, upper, alpha)
    free, step, rounding = plain(smo.growth_direction)(*arguments, False)
    assert (free.tolist(), rounding) == ([0, 1, 2, 3], 0.0)
    np.testing.assert_allclose(step, [0.25, 0.75, -0.25, -0.75])
    free, step, rounding = plain(smo.growth_direction)(*arguments, True)
    assert (free.tolist(), step.tolist()) == ([1, 3], [1.0, -1.0])
    # The gain along it, 2 + 3, times the largest diagonal entry and both shares.
    assert rounding == pytest.approx(2.0 * np.finfo(float).eps * 7.0 * 5.0)
    some_ridge = np.array([0.0, 0.1, 0.0, 0.0, 0.0])  # a ridge bounds the variables of one sign
    free, step, _ = plain(smo.growth_direction)(some_ridge, *arguments[1:], True)
    assert (free.size, step.size) == (0, 0)
    one_sided = np.array([0.0, 0.0, 0.1, 0.3, 0.0])
    assert plain(smo.growth_direction)(*arguments[:-1], one_sided, False)[0].size == 0


def integers(n, p, seed, scale=1.0):
    """Integers, whose inner products are exact, so that the steps are the same on every computer."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-3, 4, size=(n, p)).astype(float)
    y = np.where(X[:, 0] + rng.integers(-2, 3, size=n) > 0, 1.0, -1.0)
    return scale * X, y


def solved(dual, K, *, tol=1e-6, max_iter=100_000, alpha=None):
    alpha = np.zeros(dual.sign.size) if alpha is None else alpha.copy()
    f = K @ dual.signed_sum(alpha) + dual.ridge * dual.signed_sum(alpha)
    result = smo.smo(K, dual.ridge, *state_of(dual), alpha, f, tol, max_iter)
    return *result, alpha, f


def test_the_first_steps_are_those_of_the_best_pairs():
    """As long as each step changes the free set, there are pair steps only."""
    X, y = integers(9, 4, 1)
    K, dual = X @ X.T + np.eye(9), BoxDual.classification(y, np.full(9, 0.02), False)
    alpha, f, every = np.zeros(9), np.zeros(9), np.arange(9)
    for n_steps in range(1, 4):
        i, top = plain(smo.first_of_pair)(every, *state_of(dual), alpha, f)
        j, _ = plain(smo.second_of_pair)(K, np.diagonal(K), every, *state_of(dual), alpha, f, i, top)
        freed_and_bound = smo._pair_step(
            K, dual.ridge, np.diagonal(K).copy(), *state_of(dual), alpha, f, i, j
        )
        assert sum(freed_and_bound[1:]) > 0
        n_iter, violation, status, found, own_f = solved(dual, K, max_iter=n_steps)
        assert (n_iter, status) == (n_steps, Status.ITERATION_LIMIT)
        np.testing.assert_allclose(found, alpha, atol=1e-15)
        np.testing.assert_allclose(own_f, K @ (y * found), atol=1e-14)
        along, against = movable(dual, found)
        assert violation == pytest.approx(gains(dual, f)[along].max() - gains(dual, f)[against].min())


def test_a_start_with_free_variables_begins_with_their_joint_optimum():
    dual, K, Q, alpha, _ = problem_of("squared", 1, n=8)
    alpha = dual.feasible(np.full(8, 0.5))
    free, change = constrained_optimum(dual, Q, alpha)
    length = min([1.0, *(alpha[free] / -change)[change < 0]])
    n_iter, _, _, found, _ = solved(dual, K, max_iter=1, alpha=alpha)
    assert n_iter == 1
    np.testing.assert_allclose(found[free], alpha[free] + length * change, atol=1e-9)


def test_a_search_that_only_moves_rounding_is_ended():
    """With tolerance zero, the search ends when the violation has not halved in twenty intervals."""
    X, y = integers(5, 19, 3, scale=1000.0)
    dual = BoxDual.classification(y, np.full(5, 1e6), True)
    n_iter, violation, status, *_ = solved(dual, X @ X.T, tol=0.0, max_iter=30_000)
    assert (n_iter, status) == (2 * 20 * 100, Status.STALLED)
    assert violation < 1e-9


@pytest.mark.parametrize(
    ("shape", "kind", "C", "n_steps", "n_free"),
    [
        ((40, 6), "hinge", 0.05, 26, 6),
        ((40, 6), "hinge", 5.0, 61, 7),
        ((40, 60), "hinge", 1.0, 42, 32),
        ((40, 6), "squared", 0.5, 50, 32),
        ((60, 4), "regression", 0.25, 83, 6),
        ((150, 4), "regression", 2.0, 237, 9),
        ((300, 5), "hinge", 0.25, 244, 6),  # from 256 variables on some are set aside
        ((300, 5), "squared", 0.5, 1565, 234),
        ((280, 400), "hinge", 0.001, 537, 149),
        ((40, 60), "hinge", np.inf, 43, 32),
        (
            (100, 30),
            "hinge",
            10.0,
            140,
            31,
        ),  # Newton steps that reach a bound, as long as they cost less than pairs
    ],
)
def test_the_number_of_steps_is_the_same_on_every_platform(shape, kind, C, n_steps, n_free):
    """On integers, without reordered sums, the number of steps changes only when the algorithm does."""
    X, y = integers(*shape, 7)
    K, cost = X @ X.T, np.full(shape[0], C)
    dual = BoxDual.classification(y, cost, kind == "squared")
    if kind == "regression":
        target = X[:, 0] - X[:, 1] + np.random.default_rng(1).integers(-2, 3, shape[0])
        dual = BoxDual.regression(target, cost, 0.5, False)
    n_iter, violation, status, alpha, f = solved(dual, K)
    assert (n_iter, status) == (n_steps, Status.CONVERGED)
    assert np.sum((alpha > 0.0) & (alpha < dual.upper)) == n_free
    assert violation < 1e-8  # far below the 1e-6 that were asked for: the last step is a Newton step
    assert dual.gap(alpha, f, dual.bias(alpha, f)) <= 1e-9 * dual.objective(alpha, f)


def test_classes_that_cannot_be_separated_are_seen_after_a_few_steps():
    X, y = integers(24, 3, 7)
    n_iter, _, status, *_ = solved(BoxDual.classification(y, np.full(24, np.inf), False), X @ X.T)
    assert (n_iter, status) == (12, Status.UNBOUNDED)
