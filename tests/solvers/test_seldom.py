"""Ways through the solvers that are seldom taken: limits, failures, hyperpriors, hard margins, bounds on pulls."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import multivariate_normal
from sklearn.exceptions import ConvergenceWarning

from solvers.problems import classification, compiled, plain, regression
from zeronorm.design import as_design
from zeronorm.solvers import geometry, logistic, losses, warmup
from zeronorm.solvers.geometry import PullBounds, project_on_simplex, solve_enclosing_sphere
from zeronorm.solvers.l1_svm import program as programs
from zeronorm.solvers.l1_svm.program import L1SvmProgram
from zeronorm.solvers.linear_program import LinearProgram
from zeronorm.solvers.losses import LOSSES, PenalizedLoss, solve_working_set
from zeronorm.solvers.sparse_bayes.posterior import GaussianLikelihood, projected_inverse
from zeronorm.solvers.sparse_bayes.sequential import solve_sparse_bayes
from zeronorm.solvers.status import Status, UnsolvableError
from zeronorm.solvers.svm import box_dual, smo, tracked_set
from zeronorm.solvers.svm.tracked_set import TrackedSets

# -- Sparse Bayesian learning in the dual --


def test_the_gaussian_mode_in_the_dual():
    X, y = regression(15, 4)
    weight, variance = np.linspace(0.5, 2.0, 15), 0.3
    likelihood = GaussianLikelihood(y, weight, noise_variance=variance)
    precision = np.array([0.5, 1.0, 2.0, 4.0])
    K = (X / precision) @ X.T
    mode = likelihood.dual_mode(K, None)
    # The primal: weights with these precisions, a bias without any.
    F = np.column_stack([X, np.ones(15)])
    system = (F.T * weight) @ F / variance + np.diag([*precision, 0.0])
    exact = np.linalg.solve(system, F.T @ (weight * y) / variance)
    np.testing.assert_allclose(X.T @ mode.residual[0] / precision, exact[:4], atol=1e-9)
    assert mode.bias[0] == pytest.approx(exact[4])
    error = y - F @ exact
    np.testing.assert_allclose(mode.residual[0], weight * error / variance, atol=1e-9)
    np.testing.assert_allclose(mode.curvature[0], weight / variance)
    normal = -0.5 * (weight @ error**2 / variance + weight.sum() * np.log(2 * np.pi * variance))
    assert mode.log_likelihood == pytest.approx(normal)
    assert likelihood.re_estimate(mode, 2.0) == 0.0  # the noise was given


def test_the_noise_goes_half_way_to_its_estimate():
    X, y = regression(15, 4)
    weight = np.linspace(0.5, 2.0, 15)
    likelihood = GaussianLikelihood(y, weight)
    old = likelihood.noise_variance
    mode = likelihood.dual_mode(X @ X.T, None)
    error = old * mode.residual[0] / weight
    aim = weight @ error**2 / (weight.sum() - 3.0)
    change = likelihood.re_estimate(mode, 3.0)
    assert likelihood.noise_variance == pytest.approx(np.sqrt(old * aim))
    assert change == pytest.approx(abs(np.log(likelihood.noise_variance / old)))
    likelihood.noise_variance = old
    likelihood.noise_floor = 10.0 * aim
    likelihood.re_estimate(mode, 3.0)
    assert likelihood.noise_variance == pytest.approx(np.sqrt(old * 10.0 * aim))


def test_noise_that_stays_where_it_is_leaves_the_posterior():
    X, y = regression(15, 4)
    F = np.column_stack([np.ones(15), X])
    precision = np.array([0.0, 1.0, 1.0, 1.0, 1.0])
    likelihood = GaussianLikelihood(y, np.ones(15))
    likelihood.noise_floor = likelihood.noise_variance = 5.0
    posterior = likelihood.posterior(F, precision, np.zeros((1, 5)))
    assert likelihood.improved(F, precision, posterior) is posterior
    given = GaussianLikelihood(y, np.ones(15), noise_variance=0.3)
    posterior = given.posterior(F, precision, np.zeros((1, 5)))
    assert given.improved(F, precision, posterior) is posterior


def test_the_inverse_without_the_mean():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(6, 3))
    K, curvature = A @ A.T, rng.uniform(0.5, 2.0, 6)
    P, border, total, log_determinant = projected_inverse(K, curvature)
    C = np.diag(1.0 / curvature) + K
    inverse = np.linalg.inv(C)
    one = np.ones(6)
    np.testing.assert_allclose(border, inverse @ one)
    assert total == pytest.approx(one @ inverse @ one)
    np.testing.assert_allclose(P, inverse - np.outer(inverse @ one, inverse @ one) / total, atol=1e-12)
    assert log_determinant == pytest.approx(np.linalg.slogdet(C @ np.diag(curvature))[1])


def test_a_hyperprior_leads_to_its_fixed_point():
    X, y = regression(30, 5)
    likelihood = GaussianLikelihood(y, np.ones(30), noise_variance=0.25)
    found = solve_sparse_bayes(as_design(X), likelihood, hyperprior=(0.3, 0.2), tol=1e-7, max_iter=2000)
    assert found.status is Status.CONVERGED
    F = np.column_stack([X, np.ones(30)])
    covariance = np.linalg.inv(F.T @ F / 0.25 + np.diag([*found.precision, 0.0]))
    mean = covariance @ F.T @ y / 0.25
    np.testing.assert_allclose(found.weights[:, 0], mean[:5], atol=1e-8)
    determined = 1.0 - found.precision * np.diagonal(covariance)[:5]
    np.testing.assert_allclose(found.precision, (determined + 0.6) / (mean[:5] ** 2 + 0.4), rtol=1e-6)
    assert found.active.tolist() == np.flatnonzero(determined > 0.5).tolist()
    # The evidence with a flat prior of the bias: a normal density of all contrasts.
    Q = np.linalg.qr(np.column_stack([np.ones(30), np.eye(30)[:, :29]]))[0][:, 1:]
    S = 0.25 * np.eye(30) + (X / found.precision) @ X.T
    contrasts = multivariate_normal(np.zeros(29), Q.T @ S @ Q).logpdf(Q.T @ y)
    assert found.log_evidence == pytest.approx(contrasts - 0.5 * np.log(30.0), abs=1e-6)
    prior = np.sum(0.3 * np.log(found.precision) - 0.2 * found.precision)
    assert found.history[-1] == pytest.approx(found.log_evidence + prior)
    cut = solve_sparse_bayes(as_design(X), likelihood, hyperprior=(0.3, 0.2), tol=1e-9, max_iter=2)
    assert (cut.n_iter, cut.status, len(cut.history)) == (2, Status.ITERATION_LIMIT, 3)


# -- Limits --


def test_working_sets_that_do_not_end(monkeypatch):
    X, y = classification(30, 3, noise=2.0)
    share = np.full(30, 1 / 30)
    objective = PenalizedLoss(LOSSES["logistic"], y, share, 0.01, 0.0)
    monkeypatch.setattr(losses, "MAX_NEWTON_STEPS", 1)
    found = solve_working_set(X, objective, np.zeros(3), 0.0, np.ones(3), 1e-12)
    assert not found.converged
    assert found.value == pytest.approx(objective.value(X @ found.w + found.bias, found.w))
    monkeypatch.undo()
    # A weight that is to start on the wrong side leaves at once.
    pull = X.T @ (share * y * 0.5)
    wrong = np.where(np.arange(3) == np.argmax(np.abs(pull)), -np.sign(pull), np.sign(pull))
    found = solve_working_set(X, objective, np.zeros(3), 0.0, wrong, 1e-10)
    assert found.converged
    assert found.w[np.argmax(np.abs(pull))] == 0.0
    assert np.count_nonzero(found.w) > 0


def test_a_long_step_is_halved_until_it_gains():
    X = np.array([[1.0], [-1.0]])
    objective = PenalizedLoss(LOSSES["squared_error"], np.array([1.0, -1.0]), np.full(2, 0.5), 0.0, 0.0)
    w = np.zeros(1)
    start = (w, 0.0, np.zeros(2), objective.value(np.zeros(2), w))
    moved, _, f, value = losses._line_search(X, objective, start, np.array([5.0]), 0.0, -5.0)
    assert moved.tolist() == [1.25]  # 5 and 2.5 cost more than nothing, 1.25 gains
    np.testing.assert_allclose(f, [1.25, -1.25])
    assert value == pytest.approx(0.5 * 0.25**2)


def test_logistic_machines_that_do_not_end(monkeypatch):
    X, y = classification(40, 8, noise=1.5)
    share = np.full(40, 1 / 40)
    machine = logistic.L1Logistic(as_design(X), y, share, 1e-10)
    penalty = np.full(8, 0.1 * machine.largest_slope)
    monkeypatch.setattr(logistic, "MAX_STEPS", 1)
    found = machine.solve(penalty, machine.empty)
    assert not found.converged
    monkeypatch.undo()
    monkeypatch.setattr(logistic, "MAX_ROUNDS", 1)
    found = machine.solve(penalty, machine.empty)
    assert not found.converged
    w = np.zeros(8)
    w[found.columns] = found.weights
    f = X @ w + found.bias
    assert found.loss == pytest.approx(share @ np.logaddexp(0.0, -y * f))
    np.testing.assert_allclose(found.residual, share * y / (1.0 + np.exp(y * f)), atol=1e-12)


def test_what_each_end_asks_for():
    assert Status.CONVERGED.check("here") is None
    for status in (Status.STALLED, Status.ITERATION_LIMIT, Status.FAILED):
        with pytest.warns(ConvergenceWarning, match=r"^here: "):
            status.check("here")
    for status in (Status.UNBOUNDED, Status.INFEASIBLE):
        with pytest.raises(UnsolvableError, match=r"^here: "):
            status.check("here")
    good = [status.as_good_as_it_gets for status in Status]
    assert good == [True, True, False, False, False, False]
    assert [int(status) for status in Status] == list(range(6))
    assert Status.CONVERGED < Status.STALLED < Status.FAILED


def test_every_loop_is_called_once_for_a_warmup(monkeypatch):
    called = []
    for module, name in ((smo, "refresh"), (geometry, "project_in_place")):
        own = compiled(getattr(module, name))
        monkeypatch.setattr(module, name, lambda *a, own=own, name=name: called.append((name, own(*a), a)))
    warmup()
    assert [name for name, _, _ in called] == ["refresh", "project_in_place"]
    np.testing.assert_allclose(called[1][2][0], [0.0, 1.0])
    K, ridge, sample, sign, alpha, f = called[0][2]
    np.testing.assert_allclose(f, K @ (sign * alpha))
    # Two samples at distance √2: the margin of 1/‖w‖, both multipliers 2 over the squared distance, or the price.
    np.testing.assert_allclose(alpha, min(1.0, 2.0 / (2.0 + 1.0 - 2 * 0.5)))
    assert (ridge.tolist(), sample.tolist()) == ([0.0, 0.0], [0, 1])


# -- The box --


def test_free_samples_that_depend_on_each_other(monkeypatch):
    """An inverse that does not exist is not used; a solution that does not come is said not to."""
    rng = np.random.default_rng(0)
    Z = np.column_stack([rng.normal(size=(12, 2)), np.ones(12)])
    y = np.where(Z[:, 0] + 0.5 * rng.normal(size=12) > 0, 1.0, -1.0)
    C = np.full(12, 0.7)
    signed = Z * y[:, None]

    def gradient(alpha):
        return signed @ (signed.T @ alpha) - 1.0

    alpha = np.zeros(12)
    assert box_dual.solve_box(Z, y, C, alpha)
    g = gradient(alpha)
    assert np.all(np.where(alpha <= 0, g >= -1e-9, np.where(alpha >= C, g <= 1e-9, np.abs(g) <= 1e-9)))
    exact = alpha.copy()

    def singular(matrix):
        raise np.linalg.LinAlgError

    monkeypatch.setattr(np.linalg, "inv", singular)
    again = np.zeros(12)
    assert box_dual.solve_box(Z, y, C, again)
    np.testing.assert_allclose(signed.T @ again, signed.T @ exact, atol=1e-8)
    monkeypatch.undo()
    monkeypatch.setattr(box_dual, "ROUNDS", 1)
    monkeypatch.setattr(box_dual, "SWEEPS_FROM_ZERO", 0)
    assert not box_dual.solve_box(Z, y, C, np.zeros(12))
    monkeypatch.undo()
    # Rounding of the free ones is put right by one step of Newton.
    wrong = box_dual.settle

    def inexact(signed, C, alpha, w, free, inverse, tol):
        found = wrong(signed, C, alpha, w, free, inverse, tol)
        alpha[found] += 1e-7
        return found

    monkeypatch.setattr(box_dual, "settle", inexact)
    monkeypatch.setattr(box_dual, "SWEEPS_FROM_ZERO", 1)
    repaired = np.zeros(12)
    assert box_dual.solve_box(Z, y, C, repaired)
    np.testing.assert_allclose(signed.T @ repaired, signed.T @ exact, atol=1e-8)


@pytest.mark.parametrize(
    ("start", "n_sweeps"), [(0.0, box_dual.SWEEPS_FROM_ZERO), (0.1, box_dual.SWEEPS_NEAR)]
)
def test_sweeps_come_first_and_fewer_of_them_near_the_solution(start, n_sweeps, monkeypatch):
    Z, y = classification(12, 3)
    seen, own = [], compiled(box_dual.descend)
    monkeypatch.setattr(box_dual, "descend", lambda *a: seen.append((a[2].copy(), a[4])) or own(*a))
    assert box_dual.solve_box(Z, y, np.full(12, 0.7), np.full(12, start))
    assert seen[0][1] == n_sweeps
    np.testing.assert_array_equal(seen[0][0], start)


# -- Linear programs --


def test_hard_margins_need_a_price_that_is_large_enough(monkeypatch):
    X, y = classification(20, 30, noise=0.2)
    X = 1e-3 * X
    exact = L1SvmProgram(as_design(X), y, C=np.inf).solve()
    assert exact.status is Status.CONVERGED
    assert np.all(y * (X @ exact.weights + exact.bias) >= 1.0 - 1e-6)
    assert exact.objective == pytest.approx(np.abs(exact.weights).sum(), rel=1e-6)
    assert exact.dual_coef @ (np.ones(20) * y) > 10.0  # no price of ten times the costs would do
    monkeypatch.setattr(programs, "LARGEST_PRICE", 11.0)
    assert L1SvmProgram(as_design(X), y, C=np.inf).solve().status is Status.INFEASIBLE


def test_bounds_of_rows_and_columns_can_be_changed():
    program = LinearProgram([-1.0, -2.0], [[1.0, 1.0]], -np.inf, 4.0, 0.0, 3.0)
    assert program.shape == (1, 2)
    found = program.solve()
    assert (found.x.tolist(), found.objective, found.status) == ([1.0, 3.0], -7.0, Status.CONVERGED)
    assert found.row_duals.tolist() == [-1.0]
    assert found.reduced_costs.tolist() == [0.0, -1.0]
    program.set_column_bounds(0.0, [3.0, 2.0])
    assert program.solve().x.tolist() == [2.0, 2.0]
    program.set_row_bounds(-np.inf, 3.0)
    assert program.solve().x.tolist() == [1.0, 2.0]
    program.set_costs(-5.0, np.array([0]))
    assert program.solve().x.tolist() == [3.0, 0.0]
    program.add_columns(-11.0, [[2.0]], col_upper=1.0)
    assert program.solve().x.tolist() == [1.0, 0.0, 1.0]
    program.set_row_bounds(9.0, 10.0)
    assert program.solve().status is Status.INFEASIBLE
    with pytest.raises(ValueError, match="must have 1 rows"):
        program.add_columns(1.0, [[1.0], [2.0]])
    endless = LinearProgram([-1.0], [[0.0]], 0.0, 0.0)
    assert endless.solve().status in (Status.UNBOUNDED, Status.FAILED)


# -- Geometry --


def test_pulls_of_many_features_from_few_readings(monkeypatch):
    monkeypatch.setattr(geometry, "SMALL_DATA", 0)
    monkeypatch.setattr(geometry, "TILE", 8)
    rng = np.random.default_rng(1)
    X = rng.normal(size=(10, 300))
    X[:, 7] = 0.0
    for design in (as_design(X), as_design(sparse.csc_array(X))):
        bounds = PullBounds(design)
        v = rng.normal(size=10)
        for turn in range(15):
            v = v + 0.05 * rng.normal(size=10)
            pull, limit = np.abs(X.T @ v), np.full(300, np.sort(np.abs(X.T @ v))[-12] * (1 - 1e-9))
            found = bounds.beyond(v, limit, 5 + turn)
            wanted = np.flatnonzero(pull > limit)
            wanted = wanted[np.argsort(-pull[wanted])][: 5 + turn]
            assert found.tolist() == wanted.tolist()
        assert 0 < bounds.n_readings <= 15
        assert len(bounds._directions) <= geometry.MOST_DIRECTIONS
        np.testing.assert_allclose(
            bounds._directions @ bounds._directions.T, np.eye(len(bounds._directions)), atol=1e-9
        )
        np.testing.assert_allclose(bounds.norms, np.linalg.norm(X, axis=0))
        shares, rest, distance = bounds._split(v)
        np.testing.assert_allclose(shares @ bounds._directions + rest, v)
        np.testing.assert_allclose(bounds._directions @ rest, 0.0, atol=1e-12)
        assert distance == pytest.approx(np.linalg.norm(rest))
        many = bounds.beyond(v, np.zeros(300), 3)  # nearly all are beyond: the largest estimates are read
        assert set(many.tolist()) <= set(np.argsort(-np.abs(X.T @ v))[:30].tolist())


def test_the_direction_of_least_use_makes_room(monkeypatch):
    monkeypatch.setattr(geometry, "MOST_DIRECTIONS", 2)
    bounds = PullBounds(as_design(np.eye(4)))
    for v in (np.eye(4)[0], np.eye(4)[1], np.array([3.0, 0.5, 1.0, 0.0])):
        bounds._read(v)
    assert bounds._directions.shape == (2, 4)
    np.testing.assert_allclose(bounds._directions[0], np.eye(4)[0])
    np.testing.assert_allclose(bounds._directions[1], np.array([0.0, 0.5, 1.0, 0.0]) / np.sqrt(1.25))
    np.testing.assert_allclose(bounds._cosines, bounds._directions.astype(np.float32))
    assert bounds.n_readings == 3
    bounds._read(bounds._directions[0] * 2.0)  # nothing new in it
    assert bounds.n_readings == 3


def test_features_that_may_be_beyond_by_the_bound_itself(monkeypatch):
    monkeypatch.setattr(geometry, "TILE", 3)
    shares = np.array([2.0, -1.0], dtype=np.float32)
    cosines = np.array([[0.5, 0.0, 0.25, -1.0], [0.0, 0.5, 0.25, 0.0]], dtype=np.float32)
    norms = np.array([1.0, 2.0, 1.0, 1.0])
    bound = (np.abs(shares @ cosines) + 0.125) * norms
    for slack, wanted in ((0.0, []), (1e-9, [0, 1, 2, 3])):
        found = np.empty(4, dtype=np.intp)
        count = plain(geometry.may_be_beyond)(shares, cosines, norms, 0.125, bound - slack, found)
        assert found[:count].tolist() == wanted


def test_the_smallest_sphere_of_points_that_coincide_and_of_two():
    same = solve_enclosing_sphere(np.ones((3, 3)))
    assert (same.radius_sq, same.gap, same.n_iter, same.status) == (0.0, 0.0, 0, Status.CONVERGED)
    np.testing.assert_allclose(same.beta, 1 / 3)
    X = np.array([[0.0, 0.0], [4.0, 0.0], [1.0, 0.5]])
    two = solve_enclosing_sphere(X @ X.T)
    assert two.radius_sq == pytest.approx(4.0)
    np.testing.assert_allclose(two.beta, [0.5, 0.5, 0.0], atol=1e-8)
    assert two.gap <= 1e-6


@pytest.mark.parametrize("seed", range(4))
def test_both_projections_on_the_simplex_agree(seed):
    x = np.random.default_rng(seed).normal(size=7) * 10.0 ** (seed - 2)
    found = project_on_simplex(x)
    assert found.sum() == pytest.approx(1.0)
    inside = found > 0
    np.testing.assert_allclose(x[inside] - found[inside], (x[inside].sum() - 1.0) / inside.sum())
    assert np.all(x[~inside] <= (x[inside].sum() - 1.0) / inside.sum() + 1e-12)
    own = x.copy()
    plain(geometry.project_in_place)(own)
    np.testing.assert_allclose(own, found, atol=1e-12)
    with pytest.raises(ValueError, match=r"Got shape \(0,\)"):
        project_on_simplex([])


# -- The factor of a followed machine --


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
    copies = np.ones((8, 8))
    assert plain(tracked_set._release)(U, order, 5, shift, copies, np.zeros(8), sample, upper, alpha, 1) in (
        0,
        6,
    )
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
