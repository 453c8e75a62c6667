"""JCFO: a likelihood that never decreases, exact gradients, optimality at the end."""

from __future__ import annotations

from itertools import pairwise

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel

import zeronorm
from oracles.qp import PRECISE
from small_problems import noise, problem_of
from zeronorm import JCFO
from zeronorm.criteria import make_kernel
from zeronorm.datasets._generators import make_linear_toy, make_nonlinear_toy
from zeronorm.design import as_design
from zeronorm.selectors.scaling import _jcfo as jcfo
from zeronorm.selectors.scaling._jcfo import _FARTHEST, _START_RIDGE, SparseProbit, _order_of_leaving, _ratio

KERNELS = ("linear", "poly", "rbf")


def problem(n=40, p=8, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    y = np.where(2.0 * X[:, 1] - X[:, 4] + rng.normal(size=n) > 0.0, 1.0, -1.0)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def model_of(X, y, kernel="rbf", penalties=(0.1, 1.0), gradient_steps=5):
    scale, chosen = np.full(X.shape[1], 0.5), make_kernel(kernel, gamma=1.0, design=as_design(X))
    return SparseProbit(as_design(X), y, chosen, scale, penalties, gradient_steps)


def penalised_likelihood(X, y, kernel, scale, beta, bias, penalties):
    """L from its definition, with scikit-learn's kernels."""
    Z = X * scale
    K = {
        "linear": lambda: Z @ Z.T,
        "poly": lambda: polynomial_kernel(Z, Z, degree=2, gamma=1.0, coef0=1.0),
        "rbf": lambda: rbf_kernel(Z, Z, gamma=1.0),
    }[kernel]()
    likelihood = norm.logcdf(y * (K @ beta + bias)).sum()
    return likelihood - penalties[0] * np.abs(beta).sum() - penalties[1] * scale.sum()


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("seed", [0, 1, pytest.param(2, marks=pytest.mark.slow)])
def test_the_penalised_likelihood_never_decreases(kernel, seed):
    X, y = problem(seed=seed)
    s = JCFO(kernel=kernel, sample_penalty=0.2, feature_penalty=0.5).fit(X, y)
    assert s.converged_
    assert len(s.objective_) > 5
    assert np.diff(s.objective_).min() >= -1e-10
    assert s.objective_[-1] > s.objective_[0] + 1.0
    expected = penalised_likelihood(X, y, kernel, s.scale_, s.dual_coef_, s.intercept_, (0.2, 0.5))
    assert s.objective_[-1] == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_gradient_in_the_scaling_factors(kernel):
    X, y = problem()
    model = model_of(X, y, kernel)
    rng = np.random.default_rng(1)
    scale, expected, resistance = rng.uniform(0.2, 0.8, 8), rng.normal(size=40), rng.uniform(0.5, 2.0, 8)
    _, gradient = model.scale_loss(scale, expected, resistance)
    for k in range(8):
        h = 1e-6 * np.eye(8)[k]
        high, _ = model.scale_loss(scale + h, expected, resistance)
        low, _ = model.scale_loss(scale - h, expected, resistance)
        assert gradient[k] == pytest.approx((high - low) / 2e-6, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("shape", [(40, 8), (20, 60)])
def test_without_gradients_a_step_reaches_the_minimum_that_a_qp_solver_finds(shape, seed):
    """In the squared factors the problem of a linear kernel is a convex quadratic program."""
    X, y = problem(*shape, seed=seed)
    model = model_of(X, y, "linear", gradient_steps=None)
    rng = np.random.default_rng(seed)
    model.beta = rng.normal(size=len(X))
    expected, resistance = 3.0 * rng.normal(size=len(X)), rng.uniform(0.5, 20.0, X.shape[1])
    found = model._best_scale(expected, resistance)
    square = cp.Variable(X.shape[1], nonneg=True)
    miss = (X * (X.T @ model.beta)) @ square + model.bias - expected
    program = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(miss) + 0.5 * resistance @ square))
    program.solve(solver=cp.CLARABEL, **PRECISE)
    assert model.scale_loss(found, expected, resistance)[0] == pytest.approx(program.value, rel=1e-6)
    assert 0 < np.count_nonzero(found) < X.shape[1]
    np.testing.assert_allclose(found**2, square.value, atol=1e-3 * square.value.max())


@pytest.mark.parametrize("seed", range(3))
def test_without_gradients_the_likelihood_never_decreases_either(seed):
    X, y = problem(seed=seed)
    s = JCFO(gradient_steps=None, sample_penalty=0.2, feature_penalty=0.5).fit(X, y)
    assert s.converged_
    assert np.diff(s.objective_).min() >= -1e-10
    assert s.objective_[-1] > s.objective_[0] + 1.0
    assert {1, 4} <= set(s.get_support(indices=True).tolist())


def test_the_weights_of_the_samples_minimise_their_objective():
    X, y = problem()
    model = model_of(X, y)
    expected = np.random.default_rng(2).normal(size=40)
    omega = 0.1 / np.abs(model.beta)
    beta, bias = model._solve_samples(expected)

    def loss(u):
        return (
            0.5 * np.sum((expected - model.matrix(model.scale) @ u[1:] - u[0]) ** 2)
            + 0.5 * omega @ u[1:] ** 2
        )

    at = np.concatenate([[bias], beta])
    generic = minimize(loss, at + 0.01, method="BFGS", options={"gtol": 1e-9, "maxiter": 5000})
    assert loss(at) <= generic.fun + 1e-8
    slope = [(loss(at + h) - loss(at - h)) / 2e-6 for h in 1e-6 * np.eye(41)]
    np.testing.assert_allclose(slope, 0.0, atol=1e-5)


def test_the_end_is_stationary():
    """Subgradient conditions of L in the weights, and zero gradient in the scaling factors that are left."""
    X, y = problem(n=30, p=5)
    penalties = (0.3, 0.5)
    s = JCFO(kernel="rbf", sample_penalty=0.3, feature_penalty=0.5, tol=1e-12, max_iter=20_000).fit(X, y)

    def likelihood(scale, beta, bias):
        return penalised_likelihood(X, y, "rbf", scale, beta, bias, (0.0, 0.0))

    h = 1e-6
    for j in range(30):
        e = h * np.eye(30)[j]
        slope = (
            likelihood(s.scale_, s.dual_coef_ + e, s.intercept_)
            - likelihood(s.scale_, s.dual_coef_ - e, s.intercept_)
        ) / (2 * h)
        assert abs(slope) <= penalties[0] + 0.02
        if abs(s.dual_coef_[j]) > 1e-2:
            assert slope == pytest.approx(penalties[0] * np.sign(s.dual_coef_[j]), abs=0.02)
    for k in np.flatnonzero(s.scale_ > 1e-2):
        e = h * np.eye(5)[k]
        slope = (
            likelihood(s.scale_ + e, s.dual_coef_, s.intercept_)
            - likelihood(s.scale_ - e, s.dual_coef_, s.intercept_)
        ) / (2 * h)
        assert slope == pytest.approx(penalties[1], abs=0.02)


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_gradient_in_all_unknowns(kernel):
    X, y = problem(n=12, p=5)
    model = model_of(X, y, kernel)
    rng = np.random.default_rng(1)
    at = np.concatenate([rng.uniform(0.1, 0.5, 24), [0.2], rng.uniform(0.2, 0.8, 5)])
    value, gradient = model.loss(at)
    beta = at[:12] - at[12:24]
    expected = penalised_likelihood(X, y, kernel, at[25:], beta, at[24], (0.0, 1.0)) - 0.1 * at[:24].sum()
    assert value == pytest.approx(-expected, rel=1e-10)
    for k in range(at.size):
        h = 1e-6 * np.eye(at.size)[k]
        slope = (model.loss(at + h)[0] - model.loss(at - h)[0]) / 2e-6
        assert gradient[k] == pytest.approx(slope, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(s, marks=pytest.mark.slow) for s in (2, 3))])
def test_nothing_is_left_to_gain_with_the_default_tolerance(kernel, seed):
    """A general solver that maximises L from the result finds no larger value and no other order of features."""
    X, y = problem(n=30, p=8, seed=seed)
    s = JCFO(kernel=kernel).fit(X, y)
    assert s.converged_
    kept = np.flatnonzero(s.scale_)

    def loss(unknowns):
        scale = np.zeros(8)
        scale[kept] = unknowns[61:]
        beta = unknowns[:30] - unknowns[30:60]
        smooth = penalised_likelihood(X, y, kernel, scale, beta, unknowns[60], (0.0, 1.0))
        return -smooth + 0.1 * unknowns[:60].sum()

    beta = s.dual_coef_
    start = np.concatenate([np.maximum(beta, 0), np.maximum(-beta, 0), [s.intercept_], s.scale_[kept]])
    bounds = [(0, None)] * 60 + [(None, None)] + [(0, None)] * kept.size
    found = minimize(loss, start, method="SLSQP", bounds=bounds, options={"maxiter": 300, "ftol": 1e-12})
    assert -found.fun <= s.objective_[-1] + 1e-3
    better = np.zeros(8)
    better[kept] = found.x[61:]
    np.testing.assert_allclose(s.scale_, better, atol=0.02)


def test_sparse_in_samples_and_in_features():
    data = make_nonlinear_toy(100, random_state=0)
    s = JCFO(kernel="rbf").fit(data.X, data.y)
    assert set(s.path_.support(2).tolist()) == {0, 1}
    assert s.n_features_ < 15
    assert np.count_nonzero(np.abs(s.dual_coef_) > 1e-3 * np.abs(s.dual_coef_).max()) < 40


@pytest.mark.parametrize("seed", [0, *(pytest.param(s, marks=pytest.mark.slow) for s in (1, 2))])
def test_linear_kernel_on_the_linear_toy(seed):
    data = make_linear_toy(60, random_state=seed)
    s = JCFO().fit(data.X, data.y)
    assert set(s.path_.support(2).tolist()) <= set(range(6))
    assert s.n_features_ <= 10


def test_more_penalty_keeps_fewer_features():
    data = make_linear_toy(40, random_state=0)
    sizes = [JCFO(feature_penalty=g).fit(data.X, data.y).n_features_ for g in (0.01, 2.0, 20.0)]
    assert sizes[0] > sizes[1] > sizes[2]


def test_overwhelming_penalties_and_identical_samples_stay_finite():
    X, y = problem()
    s = JCFO(feature_penalty=1e6, sample_penalty=1e3).fit(X, y)
    assert np.all(np.isfinite(s.scores_))
    assert s.support_.sum() == 1
    s = JCFO(kernel="rbf").fit(np.ones((10, 3)), np.arange(10) % 2)
    assert np.all(np.isfinite(s.scores_))
    assert np.all(np.isfinite(s.dual_coef_))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"sample_penalty": -0.1}, "'sample_penalty' parameter of JCFO must be"),
        ({"feature_penalty": 0.0}, "'feature_penalty' parameter of JCFO must be"),
        ({"gradient_steps": 0}, "'gradient_steps' parameter of JCFO must be"),
        ({"gradient_steps": None, "kernel": "rbf"}, "an integer of at least 1 with kernel='rbf'"),
        ({"kernel": "cosine"}, "'kernel' parameter of JCFO must be 'linear', 'poly' or 'rbf'"),
        ({"gamma": -1.0}, "'gamma' parameter of JCFO"),
        ({"degree": 0}, "'degree' parameter of JCFO"),
    ],
)
def test_bad_parameters(parameters, message):
    X, y = problem()
    with pytest.raises(ValueError, match=message):
        JCFO(**parameters).fit(X, y)


def test_an_iteration_limit_is_reported():
    X, y = problem()
    with pytest.warns(ConvergenceWarning, match="JCFO did not converge: raise max_iter"):
        s = JCFO(max_iter=2).fit(X, y)
    assert not s.converged_
    assert s.n_iter_ == 2


def test_without_active_samples_the_bias_is_the_mean(monkeypatch):
    """SciPy before 1.14 cannot factor an empty matrix, so no empty matrix may be factored."""
    X = np.random.default_rng(0).normal(size=(12, 3))
    model = model_of(X, np.where(X[:, 0] > 0, 1.0, -1.0))
    model.beta = np.zeros(12)
    monkeypatch.setattr("zeronorm.selectors.scaling._jcfo.cho_factor", None)
    beta, bias = model._solve_samples(np.arange(12.0))
    assert not beta.any()
    assert bias == 5.5


def test_the_start_is_a_ridge_regression_on_the_kernel():
    X, y = problem()
    model = model_of(X, y, "linear")
    centred = model.matrix(model.scale) - model.matrix(model.scale).mean(axis=0)
    ridge = _START_RIDGE * np.sum(centred**2) / 40
    wanted = np.linalg.solve(centred.T @ centred + ridge * np.eye(40), centred.T @ y)
    np.testing.assert_allclose(model.beta, wanted, atol=1e-8 * np.abs(wanted).max())
    assert model.bias == pytest.approx(np.mean(y - model.matrix(model.scale) @ model.beta))


def test_a_change_is_extended_as_long_as_the_objective_rises():
    X, y = problem()
    model = model_of(X, y, "linear")
    reaches, rises = [model.reach], []
    for _ in range(30):
        rises.append(model.step())
        reaches.append(model.reach)
    assert min(rises) >= -1e-10
    for before, after in pairwise(reaches):
        assert after in (before, min(2.0 * before, _FARTHEST), max(0.25 * before, 1.0))
    assert max(reaches) > 4.0


def test_growth_in_one_step_is_limited_and_one_where_the_sign_changes():
    old, new = np.array([1.0, 1.0, -2.0, 1.0, 0.0, 1.0]), np.array([0.5, 1.05, -4.0, -1.0, 1.0, 0.0])
    np.testing.assert_allclose(_ratio(new, old), [0.5, 1.05, 1.1, 1.0, 1.0, 1.0])


def test_features_kept_longer_score_higher_then_those_with_larger_factors():
    found = _order_of_leaving(np.array([1.0, 4.0, 4.0, 2.0]), np.array([9.0, 0.5, 1.0, 0.0]))
    np.testing.assert_allclose(found, [1.9 / 5, (4 + 1 / 3) / 5, 4.5 / 5, 2 / 5])


def probit(scale, penalties=(0.1, 1.0)):
    X = noise(20, 4)
    design = as_design(X)
    y = np.where(X[:, 1] > 0.0, 1.0, -1.0)
    return SparseProbit(design, y, make_kernel("linear", design=design), np.asarray(scale), penalties, 5)


def test_negligible_factors_are_removed_unless_the_likelihood_would_decrease():
    model = probit([0.5, 1.0, 0.0009, 0.0])
    assert model.features.tolist() == [0, 1, 2]
    before = model.objective
    assert model.prune()
    assert (model.features.tolist(), model.scale.tolist()) == ([0, 1], [0.5, 1.0])
    assert model.objective == pytest.approx(model._objective(model.beta, model.bias, model.scale))
    assert model.objective >= before
    assert not model.prune()  # nothing is negligible
    descending = probit([0.5, 1.0, 0.0009, 0.0])
    descending.objective += 1.0
    assert not descending.prune()
    assert descending.features.size == 3
    empty = probit(np.zeros(4))
    assert not empty.prune()
    assert empty.climb(1e-3)


def test_columns_with_a_factor_of_zero_are_removed():
    model = probit([0.5, 1.0, 0.25, 0.1])
    model._set_scale(np.array([0.0, 2.0, 0.0, 0.3]))
    assert (model.features.tolist(), model.scale.tolist()) == ([1, 3], [2.0, 0.3])
    Z = noise(20, 4)[:, [1, 3]] * [2.0, 0.3]
    np.testing.assert_allclose(model.matrix(model.scale), Z @ Z.T)
    model._set_scale(np.array([1.0, 1.0]))
    assert model.features.tolist() == [1, 3]


class LosingFeatures:
    """A model that removes features at known iterations and then converges."""

    def __init__(self, rises, leaving):
        self.rises, self.leaving = iter(rises), leaving
        self.features, self.objective, self.n_steps, self.n_climbs = np.arange(4), -10.0, 0, 0

    @property
    def scale(self):
        return 1.0 + self.features + 0.1 * self.n_steps

    def step(self):
        self.n_steps += 1
        rise = next(self.rises)
        self.objective += rise
        return rise

    def prune(self):
        gone = self.leaving.get(self.n_steps)
        self.features = self.features[self.features != gone] if gone is not None else self.features
        return gone is not None

    def climb(self, tol):
        self.n_climbs += 1
        self.objective += 1.0
        return True


def test_the_iteration_ends_when_nothing_rises_and_no_feature_is_removed():
    """A rise of 0.009 or less at an objective of about -8 with the tolerance 0.001."""
    selector = zeronorm.JCFO(tol=1e-3, max_iter=9)
    model = LosingFeatures([1.0, 1.0, 0.001, 0.02, 0.008], {1: 0, 3: 3})
    left_at, converged = selector._iterate(model, problem_of([0, 1], noise(2, 4)))
    assert (converged, model.n_steps, model.n_climbs) == (True, 5, 1)
    np.testing.assert_allclose(np.diff(selector.objective_), [1.0, 1.0, 0.001, 0.02, 0.008, 1.0])
    # The factor of a feature that leaves first counts 1 + its explained share, which is one with two samples.
    scale = np.array([2.0, 2.5, 3.5, 4.2])
    np.testing.assert_allclose(left_at, (np.array([1, 6, 6, 3]) + scale / (1.0 + scale)) / 7.0)
    short = zeronorm.JCFO(tol=1e-3, max_iter=2)
    model = LosingFeatures([1.0, 1.0], {1: 0})
    left_at, converged = short._iterate(model, problem_of([0, 1], noise(2, 4)))
    assert (converged, model.n_climbs, len(short.objective_)) == (False, 0, 3)
    scale = np.array([2.0, 2.1, 3.1, 4.1])
    np.testing.assert_allclose(left_at, (np.array([1, 2, 2, 2]) + scale / (1.0 + scale)) / 3.0)


def test_a_maximisation_that_does_not_converge_is_reported(monkeypatch):
    X = noise(20, 4)
    design = as_design(X)
    y = np.where(X[:, 1] > 0.0, 1.0, -1.0)
    kernel = make_kernel("linear", design=design)
    model = jcfo.SparseProbit(design, y, kernel, np.full(4, 0.5), (0.1, 1.0), 5)
    before = model.objective
    monkeypatch.setattr(jcfo, "_CLIMB_RESTARTS", 0)
    assert model.climb(1e-3) is False
    assert model.objective == before
    monkeypatch.setattr(jcfo, "_CLIMB_RESTARTS", 50)
    assert model.climb(1e-3) is True
    assert model.objective > before
