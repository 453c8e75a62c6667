"""Sparse Bayesian learning: evidence, stationarity, and the two algorithms against each other."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize_scalar

from oracles.sparse_bayes import (
    bernoulli_log_evidence_by_integration,
    gaussian_log_evidence,
    laplace_mode,
)
from zeronorm.design import as_design
from zeronorm.solvers.sparse_bayes import sequential
from zeronorm.solvers.sparse_bayes.posterior import (
    BernoulliLikelihood,
    GaussianLikelihood,
    StoredColumns,
    inverse_root,
)
from zeronorm.solvers.sparse_bayes.sequential import _State, best_variance, solve_sparse_bayes
from zeronorm.solvers.status import Status


def regression(n=60, p=25, seed=0, noise=0.5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return X, 1.0 + 2.0 * X[:, 0] - X[:, 1] + noise * rng.normal(size=n)


def labels(n=120, p=20, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    signal = np.column_stack([2.0 * X[:, 0], -2.0 * X[:, 0] + X[:, 1], 2.0 * X[:, 2]])[:, :n_classes]
    y = np.argmax(signal + rng.gumbel(size=signal.shape), axis=1)
    targets = (y[:, None] == np.arange(n_classes)).astype(float)
    return X, targets[:, 1:] if n_classes == 2 else targets


def solve(X, likelihood, **settings):
    settings = {"tol": 1e-7, "max_iter": 5000} | settings
    return solve_sparse_bayes(as_design(X), likelihood, **settings)


def eq_22_residual(X, likelihood, solution):
    """Largest relative difference between β and Σ_c (1 - βΣ_kk) / Σ_c w_k², with Σ computed from scratch."""
    F = np.column_stack([np.ones(len(X)), X[:, solution.active]])
    precision = np.concatenate([[0.0], solution.precision[solution.active]])
    determined, squares = 0.0, 0.0
    for c in range(likelihood.n_outputs):
        weights = np.concatenate([[solution.bias[c]], solution.weights[solution.active, c]])
        if isinstance(likelihood, GaussianLikelihood):
            curvature = likelihood.sample_weight / likelihood.noise_variance
        else:
            p = 1.0 / (1.0 + np.exp(-F @ weights))
            curvature = likelihood.sample_weight * p * (1.0 - p)
        spread = np.diag(np.linalg.inv(F.T @ (F * curvature[:, None]) + np.diag(precision)))
        determined = determined + 1.0 - precision * spread
        squares = squares + weights**2
    return np.max(np.abs((determined / squares)[1:] / precision[1:] - 1.0))


# -- pieces -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_best_variance_is_the_maximum_of_the_evidence(n_outputs):
    rng = np.random.default_rng(n_outputs)
    s = rng.gamma(2.0, size=(40, n_outputs))
    q = rng.normal(scale=2.5, size=(40, n_outputs))
    variance, gain = best_variance(s, q)

    def value(v, k):
        return 0.5 * np.sum(v * q[k] ** 2 / (1.0 + v * s[k]) - np.log1p(v * s[k]))

    for k in range(40):
        grid = np.concatenate([[0.0], np.geomspace(1e-6, 1e4, 500)])
        values = np.array([value(v, k) for v in grid])
        assert gain[k] >= values.max() - 1e-9
        assert gain[k] == pytest.approx(value(variance[k], k), abs=1e-12)
    assert 5 < np.count_nonzero(variance) < 40


def test_the_gaussian_evidence_is_a_normal_density():
    X, y = regression()
    likelihood = GaussianLikelihood(y, np.ones(len(y)), noise_variance=0.3)
    solution = solve(X, likelihood)
    expected = gaussian_log_evidence(X, y, solution.precision, 0.3)
    assert solution.log_evidence == pytest.approx(expected, abs=1e-8)


def test_the_laplace_mode_and_evidence():
    X, targets = labels(n=60, p=4)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, size=60)
    likelihood = BernoulliLikelihood(targets, weight)
    F = np.column_stack([np.ones(60), X])
    precision = np.array([0.0, 0.5, 1.0, 2.0, 4.0])
    posterior = likelihood.posterior(F, precision, np.zeros((1, 5)))
    np.testing.assert_allclose(
        posterior.mean[0], laplace_mode(X, targets[:, 0], precision[1:], weight), atol=1e-6
    )
    plain = BernoulliLikelihood(targets, np.ones(60))
    one = plain.posterior(F[:, :2], np.array([0.0, 1.0]), np.zeros((1, 2)))
    exact = bernoulli_log_evidence_by_integration(X[:, 0], targets[:, 0], 1.0)
    assert one.log_evidence == pytest.approx(exact, abs=0.05)  # the approximation, not rounding


def test_a_weight_of_two_is_a_duplicated_sample():
    X, y = regression()
    repeats = np.where(np.arange(len(y)) < 15, 2, 1)
    twice = np.repeat(np.arange(len(y)), repeats)
    weighted = GaussianLikelihood(y, repeats.astype(float))
    repeated = GaussianLikelihood(y[twice], np.ones(twice.size))
    a, b = solve(X, weighted), solve(X[twice], repeated)
    np.testing.assert_allclose(a.precision, b.precision, rtol=1e-5)
    assert weighted.noise_variance == pytest.approx(repeated.noise_variance)
    assert a.log_evidence == pytest.approx(b.log_evidence)


# -- optimality ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("noise_variance", [0.25, None])
def test_gaussian_evidence_never_decreases(noise_variance):
    for seed in range(5):
        X, y = regression(n=40, p=100, seed=seed)
        solution = solve(X, GaussianLikelihood(y, np.ones(40), noise_variance), tol=1e-3)
        assert len(solution.history) > 3
        assert np.diff(solution.history).min() >= -1e-8 * abs(solution.log_evidence)


def test_no_precision_can_be_improved_on_alone():
    X, y = regression()
    likelihood = GaussianLikelihood(y, np.ones(len(y)), noise_variance=0.25)
    solution = solve(X, likelihood)
    assert solution.status is Status.CONVERGED
    assert {0, 1} <= set(solution.active.tolist())
    for k in range(X.shape[1]):

        def negative(log_precision, k=k):
            precision = solution.precision.copy()
            precision[k] = np.exp(log_precision)
            return -gaussian_log_evidence(X, y, precision, 0.25)

        best = minimize_scalar(negative, bounds=(-10.0, 25.0), method="bounded", options={"xatol": 1e-9})
        assert -best.fun <= solution.log_evidence + 1e-6


def test_the_noise_is_at_its_maximum_too():
    X, y = regression()
    likelihood = GaussianLikelihood(y, np.ones(len(y)))
    solution = solve(X, likelihood, tol=1e-9)
    values = [
        gaussian_log_evidence(X, y, solution.precision, f * likelihood.noise_variance)
        for f in (0.99, 1.0, 1.01)
    ]
    assert values[1] > max(values[0], values[2])


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("method", ["sequential", "fixed_point"])
def test_the_fixed_point_equation_holds_for_labels(n_classes, method):
    X, targets = labels(n_classes=n_classes)
    likelihood = BernoulliLikelihood(targets, np.ones(len(X)))
    solution = solve(X, likelihood, method=method)
    assert solution.status is Status.CONVERGED
    assert 0 in solution.active
    assert eq_22_residual(X, likelihood, solution) < 1e-5
    inside = np.isfinite(solution.precision)
    np.testing.assert_array_equal(np.flatnonzero(inside), np.sort(solution.active))
    assert np.all(solution.weights[~inside] == 0.0)


@pytest.mark.parametrize("noise_variance", [0.25, None])
def test_sequential_and_fixed_point_agree(noise_variance):
    X, y = regression(n=80, p=8, seed=3)
    found = []
    for method in ("sequential", "fixed_point"):
        likelihood = GaussianLikelihood(y, np.ones(80), noise_variance)
        solution = solve(X, likelihood, method=method)
        assert eq_22_residual(X, likelihood, solution) < 1e-5
        found.append(solution)
    sequential, fixed = found
    assert set(sequential.active) == set(fixed.active)
    np.testing.assert_allclose(sequential.weights, fixed.weights, atol=1e-4)
    assert sequential.log_evidence == pytest.approx(fixed.log_evidence, abs=1e-5)


def test_sequential_and_fixed_point_agree_on_labels():
    X, targets = labels(n=200, p=6, seed=2)
    found = [
        solve(X, BernoulliLikelihood(targets, np.ones(200)), method=m) for m in ("sequential", "fixed_point")
    ]
    assert set(found[0].active) == set(found[1].active)
    np.testing.assert_allclose(found[0].weights, found[1].weights, atol=1e-4)


def test_columns_that_are_out_would_lower_the_evidence():
    X, y = regression(n=50, p=300)
    solution = solve(X, GaussianLikelihood(y, np.ones(50), noise_variance=0.25))
    outside = np.setdiff1d(np.arange(300), solution.active)
    assert solution.relevance[outside].max() <= 1.0 + 1e-2
    assert np.all(solution.relevance[solution.active] == 0.0)


# -- hard cases ---------------------------------------------------------------------------------------------


def test_separable_labels_leave_weights_finite():
    rng = np.random.default_rng(0)
    y = np.repeat([0.0, 1.0], 25)
    X = rng.normal(size=(50, 200)) + 10.0 * (2 * y - 1)[:, None] * (np.arange(200) < 3)
    solution = solve(X, BernoulliLikelihood(y[:, None], np.ones(50)))
    assert solution.status is Status.CONVERGED
    assert solution.active.size >= 1
    assert np.abs(solution.weights).max() < 10.0
    assert np.isfinite(solution.log_evidence)


def test_a_constant_target_needs_no_column():
    X, _ = regression()
    solution = solve(X, GaussianLikelihood(np.full(60, 3.0), np.ones(60)))
    assert solution.active.size == 0
    assert solution.bias[0] == pytest.approx(3.0)


def test_a_target_without_noise_stops_at_the_floor():
    X, _ = regression()
    y = 2.0 * X[:, 0] - X[:, 1]
    likelihood = GaussianLikelihood(y, np.ones(60), min_noise=1e-6)
    solution = solve(X, likelihood, tol=1e-3)
    assert {0, 1} <= set(solution.active.tolist())
    np.testing.assert_allclose(solution.weights[:2, 0], [2.0, -1.0], atol=1e-3)
    assert likelihood.noise_variance == pytest.approx(1e-6 * y.var())


def test_copies_and_constants_stay_out():
    X, y = regression()
    X = np.column_stack([X, X[:, 0], np.full(60, 2.0), np.zeros(60)])
    solution = solve(X, GaussianLikelihood(y, np.ones(60)), tol=1e-4)
    assert 0 in solution.active
    assert not {25, 26, 27} & set(solution.active.tolist())
    assert np.all(np.isfinite(solution.relevance))


def test_the_iteration_limit_is_reported():
    X, y = regression(n=40, p=100)
    solution = solve(X, GaussianLikelihood(y, np.ones(40)), max_iter=1)
    assert solution.status is Status.ITERATION_LIMIT
    assert solution.n_iter == 1


@pytest.mark.parametrize("n_classes", [0, 2, 3])
def test_sparse_columns_give_the_evidence_of_dense_ones(n_classes):
    """Without a class the target is a number; the columns are centred, so that no zero stays one."""
    rng = np.random.default_rng(0)
    X = rng.poisson(0.3, size=(80, 60)).astype(float)
    signal = np.column_stack([2.0 * X[:, 0], 3.0 * X[:, 1], 2.0 * X[:, 2]])
    if n_classes:
        y = np.argmax(signal[:, :n_classes] + rng.gumbel(size=(80, n_classes)), axis=1)
        targets = (y[:, None] == np.arange(n_classes)).astype(float)
        kind, target = BernoulliLikelihood, targets[:, 1:] if n_classes == 2 else targets
    else:
        kind, target = GaussianLikelihood, signal.sum(axis=1) + 0.3 * rng.normal(size=80)
    found = [
        solve_sparse_bayes(as_design(data).standardized(), kind(target, np.ones(80)), tol=1e-7, max_iter=5000)
        for data in (X, sparse.csc_array(X))
    ]
    assert found[0].active.tolist() == found[1].active.tolist()
    np.testing.assert_allclose(found[1].weights, found[0].weights, atol=1e-6)
    np.testing.assert_allclose(found[1].relevance, found[0].relevance, atol=1e-6)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_mode_in_the_dual_has_the_likelihood_of_its_probabilities(n_classes):
    rng = np.random.default_rng(2)
    X, codes = rng.normal(size=(30, 5)), np.arange(30) % n_classes
    targets = np.eye(n_classes)[codes] if n_classes > 2 else codes[:, None].astype(float)
    weight = rng.uniform(0.5, 2.0, 30)
    K = X @ X.T
    mode = BernoulliLikelihood(targets, weight).dual_mode(K, None)
    probability = 1.0 / (1.0 + np.exp(-(K @ mode.residual.T + mode.bias)))
    of_target = np.where(targets > 0.5, probability, 1.0 - probability)
    assert mode.log_likelihood == pytest.approx(float(weight @ np.log(of_target).sum(axis=1)))
    np.testing.assert_allclose(mode.residual.T, weight[:, None] * (targets - probability), atol=1e-6)
    np.testing.assert_allclose(
        mode.curvature.T, weight[:, None] * probability * (1.0 - probability), rtol=1e-6
    )


@pytest.mark.parametrize("precision", [0.0, 1e-30, 2.0])
def test_a_system_of_dependent_columns_has_a_root_all_the_same(precision):
    system = np.outer([1.0, 2.0, -1.0], [1.0, 2.0, -1.0])
    root, log_determinant = inverse_root(system, np.full(3, precision))
    assert np.all(np.isfinite(root))
    if precision > 1.0:
        whole = system + precision * np.eye(3)
        np.testing.assert_allclose(root @ root.T, np.linalg.inv(whole))
        assert log_determinant == pytest.approx(np.linalg.slogdet(whole)[1])


def test_columns_in_use_are_no_candidates(monkeypatch):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(50, 12))
    y = X[:, :4] @ [3.0, -2.0, 1.0, 0.5] + 0.3 * rng.normal(size=50)
    seen, work_on = [], _State._work_on

    def noted(state, candidates):
        seen.append(set(candidates.tolist()) & set(state.active.tolist()))
        work_on(state, candidates)

    monkeypatch.setattr(_State, "_work_on", noted)
    monkeypatch.setattr(sequential, "_SWEEPS", 1)  # so that those in use have not settled yet
    solve_sparse_bayes(as_design(X), GaussianLikelihood(y, np.ones(50)), tol=1e-9)
    assert len(seen) > 1
    assert not set().union(*seen)


# -- sparse columns of many samples stay sparse ----------------------------------------------------------------


def counts(n=150, p=30, seed=1):
    X = np.random.default_rng(seed).poisson(0.4, size=(n, p)).astype(float)
    return as_design(X).standardized(), as_design(sparse.csc_array(X)).standardized()


def test_stored_columns_are_the_dense_ones():
    rng = np.random.default_rng(0)
    dense, design = counts()
    names, others, weight = np.array([3, 8, 1]), np.array([0, 8]), rng.uniform(0.1, 2.0, 150)
    F, G = (np.column_stack([np.ones(150), dense.block(columns)]) for columns in (names, others))
    stored, more = (StoredColumns(*design.stored_columns(columns)) for columns in (names, others))
    assert stored.shape == F.shape
    np.testing.assert_allclose(stored.dot(np.arange(4.0)), F @ np.arange(4.0), atol=1e-12)
    np.testing.assert_allclose(stored.transpose_dot(weight), F.T @ weight, atol=1e-11)
    np.testing.assert_allclose(stored.gram(weight), F.T @ (F * weight[:, None]), atol=1e-11)
    np.testing.assert_allclose(stored.gram(weight, more), F.T @ (G * weight[:, None]), atol=1e-11)
    kept = stored.joined(more).take([4, 0])
    np.testing.assert_allclose(kept.dot(np.arange(3.0)), G[:, 2] + 2.0 * F[:, 1], atol=1e-12)


@pytest.mark.parametrize("together", [0, 10**9])
@pytest.mark.parametrize("n_outputs", [0, 1, 3])
def test_sparse_columns_of_many_samples_have_the_same_evidence(n_outputs, together, monkeypatch):
    dense, design = counts()
    rng, X = np.random.default_rng(2), dense.block(range(30))
    signal = X[:, 0] - 0.7 * X[:, 4] + 0.5 * X[:, 9]
    if n_outputs == 0:
        target = signal + 0.3 * rng.normal(size=150)
        likelihoods = [GaussianLikelihood(target, np.ones(150)) for _ in range(2)]
    else:
        values = np.column_stack([np.zeros(150), 2.0 * signal, -2.0 * X[:, 12]])[:, : max(2, n_outputs)]
        y = np.argmax(values + rng.gumbel(size=values.shape), axis=1)
        targets = (y[:, None] == np.arange(values.shape[1])).astype(float)[:, -n_outputs:]
        likelihoods = [BernoulliLikelihood(targets, np.ones(150)) for _ in range(2)]
    settings = {"tol": 1e-6, "max_iter": 5000}
    expected = solve_sparse_bayes(dense, likelihoods[0], **settings)
    monkeypatch.setattr(sequential, "_MANY_SAMPLES", 1)
    monkeypatch.setattr(sequential, "_MANY_ACTIVE", together)
    monkeypatch.setattr(sequential, "_COLUMNS_AT_A_TIME", 7)
    monkeypatch.setattr(sequential, "_MANY_CANDIDATES", 4)
    found = solve_sparse_bayes(design, likelihoods[1], **settings)
    assert found.status is Status.CONVERGED
    np.testing.assert_array_equal(np.sort(found.active), np.sort(expected.active))
    assert found.log_evidence == pytest.approx(expected.log_evidence, abs=1e-4)
    np.testing.assert_allclose(found.weights, expected.weights, atol=1e-3)
    np.testing.assert_allclose(found.relevance, expected.relevance, atol=1e-2)
    assert eq_22_residual(X, likelihoods[1], found) < 1e-4


@pytest.mark.parametrize("seed", [2, 12, 14, 18])
def test_columns_that_depend_on_each_other_do_not_change_together(seed, monkeypatch):
    """Of ten nearly equal columns each one could leave; with all of them the signal would go."""
    monkeypatch.setattr(sequential, "_MANY_SAMPLES", 1)
    monkeypatch.setattr(sequential, "_MANY_ACTIVE", 0)
    rng = np.random.default_rng(seed)
    shared = rng.poisson(0.5, size=200).astype(float)
    X = shared[:, None] + (rng.random((200, 10)) < 0.004)
    design, y = as_design(sparse.csc_array(X)).standardized(), shared + 0.3 * rng.normal(size=200)
    state = _State(design, GaussianLikelihood(y, np.ones(200), noise_variance=0.09), 1e-6, 1000)
    state._hold(np.arange(10))
    state.precision = np.append(0.0, np.full(10, 10.0 ** rng.uniform(-4, 1)))
    state.posterior = state._posterior(np.zeros((1, 11)))
    evidence = [state.posterior.log_evidence]
    for _ in range(8):
        state._re_estimate()
        evidence.append(state.posterior.log_evidence)
    assert np.all(np.diff(evidence) > -2e-6)
    assert len(state.history) == 8
    assert state.active.size > 0


def test_half_of_a_step_that_turns_back_is_taken(monkeypatch):
    monkeypatch.setattr(sequential, "_MANY_SAMPLES", 1)
    _, design = counts()
    state = _State(design, GaussianLikelihood(np.arange(150.0), np.ones(150)), 1e-3, 10)
    state.active, state.precision = np.array([2, 5, 7]), np.array([0.0, 1.0, 1.0, 1.0])
    state.last_step[[2, 5]] = 1.0, -0.1
    found = state._without_swings(np.array([0.0, np.exp(-2.0), np.exp(-2.0), np.inf]))
    np.testing.assert_allclose(found, [0.0, np.exp(-1.0), np.exp(-2.0), np.inf])
    np.testing.assert_allclose(state.last_step[[2, 5, 7]], [-1.0, -2.0, 0.0])


@pytest.mark.parametrize("seed", [0, 17, 51])
def test_precisions_with_labels_do_not_swing(seed):
    """Columns with few values determine the curvature of few samples: whole steps swung between two evidences."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.choice([100, 200, 400, 800])), int(rng.choice([20, 40, 80]))
    y = np.arange(n) % 2
    informative = rng.poisson(0.5 + 1.5 * y[:, None], size=(n, 10)).astype(float)
    X = np.hstack([informative, rng.random((n, p)) * (rng.random((n, p)) < rng.choice([0.01, 0.03]))])
    X = X[:, X.std(axis=0) > 0.0]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    found = solve_sparse_bayes(
        as_design(X), BernoulliLikelihood(y[:, None].astype(float), np.ones(n)), max_iter=100
    )
    assert found.status.converged
    # At rest each precision is the best one for its column, given the others.
    spread, mean = np.diagonal(found.covariance[0])[1:], found.weights[found.active, 0]
    precision = found.precision[found.active]
    s, q = 1.0 / spread - precision, mean / spread
    np.testing.assert_allclose(np.log(s**2 / (q**2 - s) / precision), 0.0, atol=5e-3)
