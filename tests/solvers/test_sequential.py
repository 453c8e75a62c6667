"""Sparse Bayesian learning step by step: statistics of columns, additions, re-estimates and the fixed point."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit

from solvers.problems import classification, plain, regression
from zeronorm.design import as_design
from zeronorm.solvers.sparse_bayes import posterior, sequential
from zeronorm.solvers.sparse_bayes.posterior import BernoulliLikelihood, GaussianLikelihood
from zeronorm.solvers.sparse_bayes.sequential import _State, best_variance
from zeronorm.solvers.status import Status

N, P = 25, 7
WEIGHT = np.linspace(0.5, 1.5, N)


def state_of(kind, make=np.asarray, active=(), precision=(), tol=1e-3):
    X, y = regression(N, P) if kind == "target" else classification(N, P, noise=2.0)
    if kind == "target":
        likelihood = GaussianLikelihood(y, WEIGHT, noise_variance=0.4)
    else:
        codes = np.arange(N) % 3 if kind == "classes" else (y > 0).astype(int)
        targets = np.eye(3)[codes] if kind == "classes" else codes[:, None].astype(float)
        likelihood = BernoulliLikelihood(targets, WEIGHT)
    state = _State(as_design(make(X)), likelihood, tol, 100)
    if len(active):
        state._hold(np.array(active))
        state.precision = np.array([0.0, *precision])
        state.posterior = state._posterior(np.zeros((likelihood.n_outputs, len(active) + 1)))
    return X, y, state


def projected(X, state, c):
    """The inverse of the covariance of the linearised model of one output, a flat bias left out."""
    C = np.diag(1.0 / state.posterior.curvature[c])
    for k, precision in zip(state.active, state.precision[1:], strict=True):
        C += np.outer(X[:, k], X[:, k]) / precision
    inverse = np.linalg.inv(C)
    border = inverse.sum(axis=1)
    return inverse - np.outer(border, border) / border.sum()


@pytest.mark.parametrize("kind", ["target", "labels", "classes"])
@pytest.mark.parametrize("make", [np.asarray, sparse.csc_array])
def test_statistics_of_columns_by_the_covariance(kind, make, monkeypatch):
    monkeypatch.setattr(sequential, "_TOGETHER", 2)
    X, y, state = state_of(kind, make, (4, 0), (0.7, 2.0))
    s, q, gain = state._statistics()
    for c in range(state.likelihood.n_outputs):
        P_c = projected(X, state, c)
        np.testing.assert_allclose(s[:, c], np.einsum("ij,ij->j", X, P_c @ X), rtol=1e-8)
        np.testing.assert_allclose(q[:, c], X.T @ state.posterior.residual[c], atol=1e-9)
        if kind == "target":
            np.testing.assert_allclose(q[:, c], X.T @ (P_c @ y), atol=1e-8)
    np.testing.assert_allclose(gain, best_variance(s, q)[1])
    inner, own_q = state._inner_products(X[:, [5, 2]])
    for c in range(state.likelihood.n_outputs):
        np.testing.assert_allclose(
            inner[c], X[:, [5, 2]].T @ projected(X, state, c) @ X[:, [5, 2]], rtol=1e-8
        )
    np.testing.assert_allclose(own_q, q[[5, 2]], atol=1e-9)
    found = state.result()
    ratio = np.mean(q**2 / s, axis=1)
    ratio[[4, 0]] = 0.0
    np.testing.assert_allclose(found.relevance, ratio)
    assert found.precision[[4, 0]].tolist() == [0.7, 2.0]
    assert np.isinf(found.precision[[1, 2, 3, 5, 6]]).all()
    np.testing.assert_allclose(found.weights[[4, 0]], state.posterior.mean[:, 1:].T)
    np.testing.assert_allclose(found.bias, state.posterior.mean[:, 0])
    assert found.status is Status.ITERATION_LIMIT


@pytest.mark.parametrize("kind", ["target", "labels"])
def test_squares_are_kept_only_where_the_curvature_keeps_its_shape(kind):
    X, _, state = state_of(kind)
    for _ in range(2):
        state.posterior.curvature[0][:] *= 2.0 if kind == "target" else np.linspace(1.0, 3.0, N)
        own = state._own_squares(X, slice(0, P), 0)
        np.testing.assert_allclose(own, state.posterior.curvature[0] @ X**2)
    assert len(state._kept_squares) == (1 if kind == "target" else 0)


@pytest.mark.parametrize("kind", ["target", "classes"])
def test_columns_are_added_one_after_the_other(kind):
    X, _, state = state_of(kind, tol=1e-6)
    inner, q = state._inner_products(X)
    wanted = {}
    while True:
        s = np.stack([np.diagonal(inner[c]) for c in range(len(inner))], axis=1)
        variance, gain = best_variance(np.ascontiguousarray(s), np.ascontiguousarray(q))
        gain[list(wanted)] = 0.0
        if gain.max() <= 1e-5 or len(wanted) == P:
            break
        best = int(np.argmax(gain))
        wanted[best] = 1.0 / variance[best]
        for c in range(len(inner)):
            # The inverse of C + v x x', as Sherman and Morrison have it.
            column = inner[c][:, best].copy()
            factor = variance[best] / (1.0 + variance[best] * column[best])
            inner[c] -= factor * np.outer(column, column)
            q[:, c] -= factor * q[best, c] * column
    found = state._additions(X)
    assert list(found) == list(wanted)
    np.testing.assert_allclose(list(found.values()), list(wanted.values()), rtol=1e-8)
    n_added = state._add_from(X, np.arange(P))
    assert n_added == len(wanted)
    assert state.active.tolist() == list(wanted)
    np.testing.assert_allclose(state.precision[1:], list(wanted.values()), rtol=1e-8)
    np.testing.assert_array_equal(state.columns[:, 1:], X[:, state.active])
    assert state.n_entries.tolist() == [int(k in wanted) for k in range(P)]
    assert len(state.history) == 1
    assert state._add_from(X[:, state.active], state.active) == 0
    state.n_entries[:] = sequential._MOST_ENTRIES
    assert state._add_from(X, np.arange(P)) == 0


def test_no_more_columns_are_added_than_asked_for(monkeypatch):
    monkeypatch.setattr(sequential, "_ADDITIONS", 2)
    X, _, state = state_of("target", tol=1e-9)
    assert len(state._additions(X)) == 2


@pytest.mark.parametrize("kind", ["target", "classes"])
def test_a_sweep_takes_each_precision_to_its_best(kind):
    _, _, state = state_of(kind, active=(4, 0, 2, 6), precision=(0.7, 2.0, 5.0, 0.1))
    mean, covariance = state.posterior.mean.copy(), state.posterior.covariance.copy()
    precision = state.precision.copy()
    plain(posterior.sweep_precisions)(mean, covariance, precision, 0.0)
    # By hand, with the inverse anew for each column; the curvature and the residuals stay those of the start.
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
            place = int(np.sum(kept[:j]))
            mu = sigma @ target[kept]
            s.append(1.0 / sigma[place, place] - exact[j])
            q.append(mu[place] / sigma[place, place])
        variance = best_variance(np.array([s]), np.array([q]))[0][0]
        exact[j] = 1.0 / variance if variance > 0.0 else np.inf
    np.testing.assert_allclose(precision, exact, rtol=1e-6)
    kept = np.isfinite(exact)
    for c, (system, target) in enumerate(zip(systems, targets, strict=True)):
        sigma = np.linalg.inv((system + np.diag(np.where(kept, exact, 0.0)))[np.ix_(kept, kept)])
        np.testing.assert_allclose(covariance[c][np.ix_(kept, kept)], sigma, atol=1e-7)
        np.testing.assert_allclose(mean[c][kept], sigma @ target[kept], atol=1e-6)
    again, before = state.precision.copy(), state.precision.copy()
    plain(posterior.sweep_precisions)(
        state.posterior.mean.copy(), state.posterior.covariance.copy(), again, np.inf
    )
    np.testing.assert_array_equal(
        again[np.isfinite(again)], before[np.isfinite(again)]
    )  # no change is large enough
    gone = state.precision.copy()
    gone[2] = np.inf
    plain(posterior.sweep_precisions)(
        state.posterior.mean.copy(), state.posterior.covariance.copy(), gone, 0.0
    )
    assert np.isinf(gone[2])


def test_a_re_estimate_says_how_much_it_changed():
    X, _, state = state_of("target", active=(0, 1, 2), precision=(0.5, 0.5, 0.5))
    state.likelihood.sweeps = 1
    before = state.precision.copy()
    change = state._re_estimate()
    assert state.active.tolist() == [0, 1, 2]
    assert change == pytest.approx(np.abs(np.log(state.precision[1:] / before[1:])).max())
    np.testing.assert_array_equal(state.columns[:, 1:], X[:, [0, 1, 2]])
    X, _, state = state_of("target", active=(0, 1, 5), precision=(0.5, 0.5, 0.5))
    while state.active.size == 3:
        change = state._re_estimate()
        assert state.n_iter == 0
    assert change == np.inf  # a column has left
    assert state.columns.shape == (N, state.active.size + 1)


def test_the_fixed_point_goes_from_one_precision_to_the_next():
    X, _, state = state_of("target", tol=1e-12)
    state.max_iter = 1
    state.iterate_fixed_point()
    F = np.column_stack([np.ones(N), X])
    system = (F.T * WEIGHT) @ F / 0.4
    first = np.linalg.inv(system + np.diag([0.0] + [1.0] * P))
    mu = first @ (F.T @ (WEIGHT * regression(N, P)[1])) / 0.4
    updated = (1.0 - np.diagonal(first)[1:]) / mu[1:] ** 2
    np.testing.assert_allclose(state.precision[1:], updated, rtol=1e-8)
    assert (state.precision[0], state.n_iter, state.settled) == (0.0, 1, False)
    assert len(state.history) == 2


def test_candidates_are_those_that_promise_most(monkeypatch):
    monkeypatch.setattr(sequential, "_CANDIDATES", 2)
    _, _, state = state_of("target", tol=1e-3)
    gain = state._statistics()[2]
    seen = []
    monkeypatch.setattr(
        state, "_work_on", lambda names: seen.append(names.tolist()) or setattr(state, "n_iter", 100)
    )
    state.ascend()
    assert seen == [sorted(np.argsort(-gain)[:2].tolist())]
    assert not state.settled
    state.n_iter, state.settled = 0, True
    state.n_entries[:] = sequential._MOST_ENTRIES  # no column may come again
    seen.clear()
    state.ascend()
    assert seen == []
    assert state.settled


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
    assert likelihood.noise_variance == pytest.approx(fast) or likelihood.noise_variance == pytest.approx(
        slow
    )
    constant = GaussianLikelihood(np.full(5, 3.0), np.ones(5))
    assert constant.noise_variance == 1.0
