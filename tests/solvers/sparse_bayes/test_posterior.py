"""Posteriors and likelihoods of sparse Bayesian learning by their definitions, in the primal and in the dual."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from oracles.sparse_bayes import bernoulli_log_evidence_by_integration, laplace_mode
from solvers.problems import plain, regression
from solvers.sparse_bayes.data import WEIGHT, N, P, counts, labels, state_of
from zeronorm.solvers.sparse_bayes import _posterior as posterior
from zeronorm.solvers.sparse_bayes._posterior import (
    BernoulliLikelihood,
    GaussianLikelihood,
    StoredColumns,
    inverse_root,
    projected_inverse,
)
from zeronorm.solvers.sparse_bayes._sequential import best_variance


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


@pytest.mark.parametrize("kind", ["target", "classes"])
def test_a_pass_takes_each_precision_to_its_best(kind):
    _, _, state = state_of(kind, active=(4, 0, 2, 6), precision=(0.7, 2.0, 5.0, 0.1))
    mean, covariance = state.posterior.mean.copy(), state.posterior.covariance.copy()
    precision = state.precision.copy()
    plain(posterior.update_precisions)(mean, covariance, precision, 0.0)
    # Step by step, with a new inverse for each column; the curvature and the residuals stay those of the start.
    F = state.columns
    exact = state.precision.copy()
    systems = [(F.T * b) @ F for b in state.posterior.curvature]
    targets = [
        (system + np.diag(state.precision)) @ m
        for system, m in zip(systems, state.posterior.mean, strict=True)
    ]
    for j in range(1, 5):
        s, q = [], []
        kept = np.isfinite(exact)
        for system, target in zip(systems, targets, strict=True):
            sigma = np.linalg.inv((system + np.diag(np.where(kept, exact, 0.0)))[np.ix_(kept, kept)])
            position = int(np.sum(kept[:j]))
            mu = sigma @ target[kept]
            s.append(1.0 / sigma[position, position] - exact[j])
            q.append(mu[position] / sigma[position, position])
        variance = best_variance(np.array([s]), np.array([q]))[0][0]
        exact[j] = 1.0 / variance if variance > 0.0 else np.inf
    np.testing.assert_allclose(precision, exact, rtol=1e-6)
    kept = np.isfinite(exact)
    for c, (system, target) in enumerate(zip(systems, targets, strict=True)):
        sigma = np.linalg.inv((system + np.diag(np.where(kept, exact, 0.0)))[np.ix_(kept, kept)])
        np.testing.assert_allclose(covariance[c][np.ix_(kept, kept)], sigma, atol=1e-7)
        np.testing.assert_allclose(mean[c][kept], sigma @ target[kept], atol=1e-6)
    again, before = state.precision.copy(), state.precision.copy()
    plain(posterior.update_precisions)(
        state.posterior.mean.copy(), state.posterior.covariance.copy(), again, np.inf
    )
    np.testing.assert_array_equal(
        again[np.isfinite(again)], before[np.isfinite(again)]
    )  # no change is large enough
    gone = state.precision.copy()
    gone[2] = np.inf
    plain(posterior.update_precisions)(
        state.posterior.mean.copy(), state.posterior.covariance.copy(), gone, 0.0
    )
    assert np.isinf(gone[2])


@pytest.mark.parametrize("kind", ["labels", "classes"])
def test_the_laplace_posterior_by_its_conditions(kind):
    X, _, state = state_of(kind, active=(4, 0), precision=(0.7, 2.0))
    F = np.column_stack([np.ones(N), X[:, [4, 0]]])
    evidence = 0.0
    for c in range(state.likelihood.n_outputs):
        t, mu = state.likelihood.targets[:, c], state.posterior.mean[c]
        p = expit(F @ mu)
        np.testing.assert_allclose(F.T @ (WEIGHT * (t - p)), state.precision * mu, atol=1e-6)
        np.testing.assert_allclose(state.posterior.residual[c], WEIGHT * (t - p))
        np.testing.assert_allclose(state.posterior.curvature[c], WEIGHT * p * (1 - p))
        system = (F.T * (WEIGHT * p * (1 - p))) @ F + np.diag(state.precision)
        np.testing.assert_allclose(state.posterior.covariance[c], np.linalg.inv(system), atol=1e-9)
        likelihood = WEIGHT @ np.where(t > 0.5, np.log(p), np.log(1 - p))
        prior = 0.5 * np.log(state.precision[1:]).sum() - 0.5 * state.precision[1:] @ mu[1:] ** 2
        evidence += likelihood + prior + 0.5 * np.log(2 * np.pi) - 0.5 * np.linalg.slogdet(system)[1]
    assert state.posterior.log_evidence == pytest.approx(evidence)


def test_noise_is_re_estimated_by_mackay_or_not_at_all():
    X, y = regression(N, P)
    F, precision = np.column_stack([np.ones(N), X[:, :3]]), np.array([0.0, 1.0, 1.0, 1.0])
    likelihood = GaussianLikelihood(y, WEIGHT)
    assert likelihood.noise_variance == pytest.approx(
        np.average((y - np.average(y, weights=WEIGHT)) ** 2, weights=WEIGHT)
    )
    assert likelihood.noise_floor == pytest.approx(1e-3 * likelihood.noise_variance)
    old = likelihood.noise_variance
    first = likelihood.posterior(F, precision, np.zeros((1, 4)))
    error = y - F @ first.mean[0]
    determined = np.sum(1.0 - precision * np.diagonal(first.covariance[0]))
    found = likelihood.improved(F, precision, first)
    assert found.log_evidence >= first.log_evidence
    fast = WEIGHT @ error**2 / (WEIGHT.sum() - determined)
    slow = (WEIGHT @ error**2 + old * determined) / WEIGHT.sum()
    # MacKay's update unless it lowers the evidence, otherwise the EM update.
    trial = GaussianLikelihood(y, WEIGHT, noise_variance=fast).posterior(F, precision, np.zeros((1, 4)))
    expected = fast if trial.log_evidence >= first.log_evidence else slow
    assert likelihood.noise_variance == pytest.approx(expected)
    constant = GaussianLikelihood(np.full(5, 3.0), np.ones(5))
    assert constant.noise_variance == 1.0
