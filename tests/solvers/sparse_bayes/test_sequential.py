"""Sparse Bayesian learning step by step: statistics of columns, additions, re-estimates and the fixed point."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from solvers.problems import regression
from solvers.sparse_bayes.data import WEIGHT, N, P, counts, state_of
from zeronorm.design import as_design
from zeronorm.solvers._status import Status
from zeronorm.solvers.sparse_bayes import _sequential as sequential
from zeronorm.solvers.sparse_bayes._posterior import GaussianLikelihood
from zeronorm.solvers.sparse_bayes._sequential import _State, best_variance, solve_sparse_bayes


def projected(X, state, c):
    """The inverse covariance of the linearised model of one output, with the flat bias projected out."""
    C = np.diag(1.0 / state.posterior.curvature[c])
    for k, precision in zip(state.active, state.precision[1:], strict=True):
        C += np.outer(X[:, k], X[:, k]) / precision
    inverse = np.linalg.inv(C)
    border = inverse.sum(axis=1)
    return inverse - np.outer(border, border) / border.sum()


@pytest.mark.parametrize("kind", ["target", "labels", "classes"])
@pytest.mark.parametrize("make", [np.asarray, sparse.csc_array])
def test_statistics_of_columns_by_the_covariance(kind, make):
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
    assert np.isinf(found.precision[np.delete(np.arange(P), [4, 0])]).all()
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
            # The inverse of C + v x x' by the Sherman-Morrison formula.
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


def test_a_re_estimate_says_how_much_it_changed():
    X, _, state = state_of("target", active=(0, 1, 2), precision=(0.5, 0.5, 0.5))
    state.likelihood.n_passes = 1
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


def test_columns_in_use_are_no_candidates(monkeypatch):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(50, 12))
    y = X[:, :4] @ [3.0, -2.0, 1.0, 0.5] + 0.3 * rng.normal(size=50)
    seen, work_on = [], _State._work_on

    def noted(state, candidates):
        seen.append(set(candidates.tolist()) & set(state.active.tolist()))
        work_on(state, candidates)

    monkeypatch.setattr(_State, "_work_on", noted)
    monkeypatch.setattr(sequential, "_PASSES", 1)  # so that those in use have not settled yet
    solve_sparse_bayes(as_design(X), GaussianLikelihood(y, np.ones(50)), tol=1e-9)
    assert len(seen) > 1
    assert not set().union(*seen)


@pytest.mark.parametrize("seed", [2, 12, 14, 18])
def test_columns_that_depend_on_each_other_do_not_change_together(seed, monkeypatch):
    """Each of ten nearly equal columns could be removed alone; without all of them the signal is lost."""
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


def test_half_of_a_step_that_reverses_is_taken(monkeypatch):
    monkeypatch.setattr(sequential, "_MANY_SAMPLES", 1)
    _, design = counts()
    state = _State(design, GaussianLikelihood(np.arange(150.0), np.ones(150)), 1e-3, 10)
    state.active, state.precision = np.array([2, 5, 7]), np.array([0.0, 1.0, 1.0, 1.0])
    state.last_step[[2, 5]] = 1.0, -0.1
    found = state._without_swings(np.array([0.0, np.exp(-2.0), np.exp(-2.0), np.inf]))
    np.testing.assert_allclose(found, [0.0, np.exp(-1.0), np.exp(-2.0), np.inf])
    np.testing.assert_allclose(state.last_step[[2, 5, 7]], [-1.0, -2.0, 0.0])
