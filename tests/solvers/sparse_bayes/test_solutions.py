"""Sparse Bayesian learning: evidence, stationarity, and the two algorithms against each other."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize_scalar
from scipy.stats import multivariate_normal

from oracles.sparse_bayes import gaussian_log_evidence
from solvers.problems import at_most, classification
from solvers.problems import regression as regression_problem
from solvers.sparse_bayes.data import counts, labels
from zeronorm.design import as_design
from zeronorm.solvers._status import Status
from zeronorm.solvers.sparse_bayes import _sequential as sequential
from zeronorm.solvers.sparse_bayes._posterior import BernoulliLikelihood, GaussianLikelihood
from zeronorm.solvers.sparse_bayes._sequential import solve_sparse_bayes


def regression(n=60, p=25, seed=0, noise=0.5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return X, 1.0 + 2.0 * X[:, 0] - X[:, 1] + noise * rng.normal(size=n)


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
        scale = np.diag(np.linalg.inv(F.T @ (F * curvature[:, None]) + np.diag(precision)))
        determined = determined + 1.0 - precision * scale
        squares = squares + weights**2
    return np.max(np.abs((determined / squares)[1:] / precision[1:] - 1.0))


def test_the_gaussian_evidence_is_a_normal_density():
    X, y = regression()
    likelihood = GaussianLikelihood(y, np.ones(len(y)), noise_variance=0.3)
    solution = solve(X, likelihood)
    expected = gaussian_log_evidence(X, y, solution.precision, 0.3)
    assert solution.log_evidence == pytest.approx(expected, abs=1e-8)


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
    """With ``n_classes`` zero the target is real; the columns are centred, so that no zero stays zero."""
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


@pytest.mark.parametrize("seed", [0, 17, 51])
def test_precisions_with_labels_do_not_oscillate(seed):
    """Columns with few values determine the curvature of few samples: full steps oscillated between two evidences."""
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
    # At convergence each precision is the best one for its column, given the others.
    scale, mean = np.diagonal(found.covariance[0])[1:], found.weights[found.active, 0]
    precision = found.precision[found.active]
    s, q = 1.0 / scale - precision, mean / scale
    np.testing.assert_allclose(np.log(s**2 / (q**2 - s) / precision), 0.0, atol=5e-3)


def test_a_hyperprior_leads_to_its_fixed_point():
    X, y = regression_problem(30, 5)
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


@pytest.mark.parametrize(
    ("kind", "method", "tol", "taken"),
    [
        ("labels", "sequential", 1e-3, 13),
        ("labels", "sequential", 1e-6, 22),
        ("labels", "fixed_point", 1e-3, 100),
        ("labels", "fixed_point", 1e-6, 110),
        ("target", "sequential", 1e-3, 9),
        ("target", "sequential", 1e-6, 11),
        ("target", "fixed_point", 1e-3, 42),
        ("target", "fixed_point", 1e-6, 48),
    ],
)
def test_relevance(kind, method, tol, taken):
    found = solve_sparse_bayes(as_design(data(kind)[0]), likelihood(kind), method=method, tol=tol)
    assert found.status.converged
    assert found.n_iter <= at_most(taken)


def test_relevance_with_a_prior_of_the_precisions():
    found = solve_sparse_bayes(
        as_design(data("labels")[0]), likelihood("labels"), hyperprior=(0.1, 0.1), tol=1e-4
    )
    assert found.n_iter <= at_most(38)
    exact = solve_sparse_bayes(
        as_design(data("labels")[0]), likelihood("labels"), hyperprior=(0.1, 0.1), tol=1e-8
    )
    assert found.log_evidence == pytest.approx(exact.log_evidence, rel=1e-4)


def data(kind):
    return classification(60, 20) if kind == "labels" else regression_problem(60, 20)


def likelihood(kind):
    y = data(kind)[1]
    if kind == "labels":
        return BernoulliLikelihood((y[:, None] > 0).astype(float), np.ones(60))
    return GaussianLikelihood(y, np.ones(60))
