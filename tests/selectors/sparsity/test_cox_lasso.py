"""The LASSO for times to an event: optimality conditions with all risk sets, scikit-survival, the bound."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from oracles.risk_sets import gradient_and_hessian
from small_problems import problem_of
from zeronorm import CoxLasso
from zeronorm.selection._covariates import Covariates
from zeronorm.selection.target import TimeToEvent
from zeronorm.solvers.l1_smooth._cox import CoupledCox, minimise_with_unit_penalty


def survival(n=60, p=100, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    X[:, 5:30] += 2.0 * rng.normal(size=(n, 1))  # correlated
    time = np.round(rng.exponential(np.exp(-(X[:, 0] - X[:, 1] + X[:, 5]))), 1)
    y = TimeToEvent.prepared({"event": rng.random(n) < 0.7, "time": time})
    return (X - X.mean(axis=0)) / X.std(axis=0), y


@pytest.mark.parametrize("ties", ["efron", "breslow"])
@pytest.mark.parametrize("weighted", [False, True])
def test_solutions_meet_the_optimality_conditions_of_all_risk_sets(ties, weighted):
    X, y = survival()
    weight = np.random.default_rng(1).uniform(0.5, 2.0, 60) if weighted else np.ones(60)
    weight /= weight.sum()
    problem = problem_of(y, X, "survival", sample_weight=None if not weighted else weight)
    models = CoupledCox(problem, ties, 1e-9)
    for penalty in models.largest_penalty * np.array([1.0, 0.5, 0.1, 0.03]):
        models.solve(np.full(100, penalty))
        w = models.weights()[0]
        gradient = X.T @ gradient_and_hessian(X @ w, y["event"], y["time"], weight, ties)[0]
        has_weight = w != 0.0
        np.testing.assert_allclose(gradient[has_weight], -penalty * np.sign(w[has_weight]), atol=1e-8)
        assert np.abs(gradient).max() <= penalty + 1e-8
    assert has_weight.sum() > 20
    assert models.all_converged


def test_solutions_equal_those_of_scikit_survival():
    linear_model = pytest.importorskip("sksurv.linear_model")
    X, y = survival()
    other = linear_model.CoxnetSurvivalAnalysis(l1_ratio=1.0, alpha_min_ratio=0.1, n_alphas=8, tol=1e-13).fit(
        X, y
    )
    models = CoupledCox(problem_of(y, X, "survival"), "breslow", 1e-9)
    assert models.largest_penalty == pytest.approx(other.alphas_[0])
    for penalty, expected in zip(other.alphas_, other.coef_.T, strict=True):
        models.solve(np.full(100, penalty))
        np.testing.assert_allclose(models.weights()[0], expected, atol=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_the_quadratic_problem_of_each_step(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(15, 30))
    Q, q, a = X.T @ X / 15 + 1e-9 * np.eye(30), X.T @ rng.normal(size=15), rng.normal(size=30)
    minimise_with_unit_penalty(Q, q, a, 1e-10)
    slope = q - Q @ a
    np.testing.assert_allclose(slope[a != 0.0], np.sign(a[a != 0.0]), atol=1e-6)
    assert np.abs(slope).max() <= 1.0 + 1e-6


def test_the_path_ends_at_the_bound():
    X, y = survival()
    selector = CoxLasso(norm_bound=0.8, tol=1e-9).fit(X, y)
    assert np.abs(selector.coef_).sum() == pytest.approx(0.8, abs=1e-5)
    assert selector.support_.tolist() == (selector.coef_ != 0.0).tolist()
    free = CoxLasso(norm_bound=2.0).fit(X, y)
    assert free.penalty_ < selector.penalty_


def test_a_weight_of_two_is_a_sample_twice_with_breslow_ties():
    X, y = survival()
    weight = np.arange(60) % 3
    twice = np.repeat(np.arange(60), weight)
    one = CoxLasso(ties="breslow", standardize=False, tol=1e-10).fit(X, y, sample_weight=weight)
    other = CoxLasso(ties="breslow", standardize=False, tol=1e-10).fit(X[twice], y[twice])
    np.testing.assert_allclose(one.coef_, other.coef_, atol=1e-7)


def test_features_with_an_effect_enter_first_also_from_sparse_data():
    X, y = survival(n=200)
    selector = CoxLasso(3).fit(X, y)
    assert {0, 1} < set(selector.get_support(indices=True).tolist())
    assert CoxLasso(3).fit(sp.csr_array(X), y).support_.tolist() == selector.support_.tolist()
    repeated = CoxLasso(3).fit(np.column_stack([X, -X[:, 0]]), y)
    assert repeated.get_support(indices=True).tolist() == selector.get_support(indices=True).tolist()


def test_covariates_are_in_every_model_without_penalty():
    X, y = survival()
    y["time"] = np.round(y["time"] * np.exp(-2.0 * X[:, 50]), 3)
    others = np.delete(X, 50, axis=1)
    problem = problem_of(y, others, "survival", adjust=Covariates(X[:, [50]]))
    models = CoupledCox(problem, "efron", 1e-9)
    models.solve(np.full(99, 0.5 * models.largest_penalty))
    residual = models.solutions[0].residual
    assert abs(X[:, 50] @ residual) < 1e-6
    assert np.abs(others.T @ residual).max() <= 0.5 * models.largest_penalty + 1e-6
    assert 0 < models.support.size < 40
    assert CoxLasso(adjust=[50], norm_bound=0.3).fit(X, y).coef_[50] == 0.0
