"""The score test of Cox's model against all risk sets one by one, finite differences, and the log-rank test."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from oracles.risk_sets import gradient_and_hessian, negative_log_likelihood
from zeronorm import CoxScore
from zeronorm.design import as_design
from zeronorm.engines._cox_scores import score_tests
from zeronorm.solvers.linear._cox import RiskSets
from zeronorm.solvers.linear._survival import Strata


def observed(n=50, p=6, seed=0, tied=True):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) + 5.0
    X[:, -1] = rng.random(n) < 0.4
    time = rng.exponential(np.exp(-0.5 * X[:, 0]))
    time = np.ceil(time / time.max() * 12) if tied else time
    return X, rng.random(n) < 0.7, time, rng.uniform(0.5, 2.0, n)


@pytest.mark.parametrize("ties", ["efron", "breslow"])
@pytest.mark.parametrize("tied", [False, True])
def test_scores_equal_those_of_all_risk_sets(ties, tied):
    X, event, time, weight = observed(tied=tied)
    gradient, hessian = gradient_and_hessian(np.zeros(50), event, time, weight, ties)
    expected = (X.T @ gradient) ** 2 / np.einsum("ij,ik,kj->j", X, hessian, X)
    selector = CoxScore(2, ties=ties).fit(X, {"event": event, "time": time}, sample_weight=weight)
    np.testing.assert_allclose(selector.scores_, expected, rtol=1e-10)
    sparse = CoxScore(2, ties=ties).fit(sp.csr_array(X), {"event": event, "time": time}, sample_weight=weight)
    np.testing.assert_allclose(sparse.scores_, expected, rtol=1e-10)


def test_scores_are_squared_slopes_over_curvatures():
    X, event, time, weight = observed()
    x, h = X[:, 0], 1e-4
    ends = [negative_log_likelihood(b * x, event, time, weight) for b in (-h, 0.0, h)]
    slope, curvature = (ends[2] - ends[0]) / (2 * h), (ends[2] - 2 * ends[1] + ends[0]) / h**2
    selector = CoxScore().fit(X, {"event": event, "time": time}, sample_weight=weight)
    assert selector.scores_[0] == pytest.approx(slope**2 / curvature, rel=1e-5)


def test_two_groups_without_ties_give_the_log_rank_test():
    statistics = pytest.importorskip("lifelines.statistics")
    X, event, time, _ = observed(tied=False)
    first = X[:, -1] == 1
    expected = statistics.logrank_test(time[first], time[~first], event[first], event[~first])
    selector = CoxScore().fit(X, {"event": event, "time": time})
    assert selector.scores_[-1] == pytest.approx(expected.test_statistic, rel=1e-10)


def test_scores_equal_those_of_statsmodels():
    duration = pytest.importorskip("statsmodels.duration.hazard_regression")
    X, event, time, _ = observed()
    selector = CoxScore().fit(X, {"event": event, "time": time})
    for k in range(3):
        model = duration.PHReg(time, X[:, [k]], event.astype(int), ties="efron")
        slope, curvature = model.score(np.zeros(1)), -model.hessian(np.zeros(1))
        assert selector.scores_[k] == pytest.approx(float(slope[0] ** 2 / curvature[0, 0]), rel=1e-8)


def test_scores_of_noise_have_the_distribution_of_chi_squared():
    rng = np.random.default_rng(0)
    X, time = rng.normal(size=(100, 4000)), rng.exponential(size=100)
    scores = CoxScore().fit(X, {"event": rng.random(100) < 0.6, "time": time}).scores_
    assert np.mean(scores > 3.841) == pytest.approx(0.05, abs=0.012)  # three and a half standard errors
    assert scores.mean() == pytest.approx(1.0, abs=0.08)


def test_units_and_large_means_change_nothing():
    X, event, time, weight = observed(tied=False)
    sets = Strata(((np.arange(len(time)), RiskSets(time, event, weight)),))
    slope, variance, _ = score_tests(as_design(X), sets)
    for scale, shift in ((1e-9, 0.0), (1e9, 1e6), (1.0, 1e6)):
        found = score_tests(as_design(scale * (X + shift)), sets)
        np.testing.assert_allclose(found[0] ** 2 / found[1], slope**2 / variance, rtol=1e-7)


def test_constant_columns_and_missing_values():
    X, event, time, _ = observed()
    X[:, 2] = 0.1
    y = {"event": event, "time": time}
    selector = CoxScore().fit(X, y)
    assert selector.scores_[2] == 0.0
    assert selector.path_.order[-1] == 2
    X[4, 3] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        CoxScore().fit(X, y)


@pytest.mark.parametrize("ties", ["efron", "breslow"])
def test_scores_beside_covariates_are_those_of_a_larger_model(ties):
    """The score test of x in a model of Z: slope over curvature along x with the weights of Z fitted."""
    X, event, time, weight = observed()
    selector = CoxScore(ties=ties, adjust=[1, 5]).fit(X, {"event": event, "time": time}, sample_weight=weight)
    Z, others = X[:, [1, 5]] - X[:, [1, 5]].mean(axis=0), [0, 2, 3, 4]

    def derivatives(v):
        gradient, hessian = gradient_and_hessian(Z @ v, event, time, weight, ties)
        return negative_log_likelihood(Z @ v, event, time, weight, ties), Z.T @ gradient, hessian, gradient

    v = np.zeros(2)
    for _ in range(20):
        _, slope, hessian, gradient = derivatives(v)
        v = v - np.linalg.solve(Z.T @ hessian @ Z, slope)
    x = X[:, others] - Z @ np.linalg.solve(Z.T @ hessian @ Z, Z.T @ hessian @ X[:, others])
    expected = (X[:, others].T @ gradient) ** 2 / np.einsum("ij,ik,kj->j", x, hessian, x)
    np.testing.assert_allclose(selector.scores_[others], expected, rtol=1e-6)
