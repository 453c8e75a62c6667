"""The ranking hinge of survival SVMs against all pairs, finite differences and scikit-survival."""

from __future__ import annotations

import numpy as np
import pytest

from solvers.linear.fits import fit
from zeronorm import SVMWeights
from zeronorm.solvers.linear import RankingLoss, Way


def observed(n=40, seed=0, tied=True):
    rng = np.random.default_rng(seed)
    time = rng.integers(1, 12, n).astype(float) if tied else rng.exponential(size=n)
    event = rng.random(n) < 0.6
    return np.where(event, time, -time), rng.uniform(0.2, 3.0, n), rng.integers(3, size=n), rng.normal(size=n)


def all_pairs(f, y, weight, strata):
    """Value, gradient and Hessian, pair by pair."""
    total, gradient, hessian = 0.0, np.zeros(f.size), np.zeros((f.size, f.size))
    for stratum in np.unique(strata):
        inside = np.flatnonzero(strata == stratum)
        for i in inside:
            for j in inside:
                short = 1.0 - f[i] + f[j]
                if y[i] > 0 and abs(y[j]) > y[i] and short > 0.0:
                    share = weight[i] * weight[j] / weight[inside].sum()
                    total += 0.5 * share * short**2
                    step = np.zeros(f.size)
                    step[[i, j]] = -1.0, 1.0
                    gradient += share * short * step
                    hessian += share * np.outer(step, step)
    return total, gradient, hessian


@pytest.mark.parametrize("stratified", [False, True])
@pytest.mark.parametrize("tied", [False, True])
def test_value_and_derivatives_equal_those_of_all_pairs(tied, stratified):
    y, weight, strata, f = observed(tied=tied)
    loss = RankingLoss(strata if stratified else None)
    total, gradient, hessian = all_pairs(f, y, weight, strata if stratified else 0 * strata)
    for shift in (0.0, 1e3):  # of all predictions changes nothing
        assert loss.total(f + shift, y, weight) == pytest.approx(total, rel=1e-10)
        np.testing.assert_allclose(loss.gradient(f + shift, y, weight), gradient, atol=1e-10)
    np.testing.assert_allclose(loss.hessian(f, y, weight), hessian, atol=1e-12)
    columns = np.random.default_rng(1).normal(size=(f.size, 4))
    np.testing.assert_allclose(
        loss.sandwich(f, y, weight, columns), columns.T @ hessian @ columns, atol=1e-11
    )
    at_zero = all_pairs(0.0 * f, y, weight, strata if stratified else 0 * strata)[2]
    assert loss.mean_curvature(y, weight) == pytest.approx(np.trace(at_zero) / weight.sum())


def test_gradients_are_slopes():
    y, weight, strata, f = observed()
    loss, h = RankingLoss(strata), 1e-6
    ends = [[loss.total(f + s * step, y, weight) for s in (1, -1)] for step in h * np.eye(len(f))]
    np.testing.assert_allclose(loss.gradient(f, y, weight), np.diff(ends)[:, 0] / (-2 * h), atol=1e-6)


def test_a_weight_of_two_is_a_sample_twice():
    y, _, _, f = observed()
    weight = np.arange(len(f)) % 3
    twice, loss = np.repeat(np.arange(len(f)), weight), RankingLoss()
    expected = loss.total(f[twice], y[twice], np.ones(twice.size))
    assert loss.total(f, y, weight.astype(float)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("p", [4, 100])
def test_both_ways_find_the_same_model(p):
    y, _, strata, _ = observed(60)
    X = np.random.default_rng(2).normal(size=(60, p))
    found = [
        fit(X, y, C=2.0, loss=RankingLoss(strata), way=way, tol=1e-11).weights
        for way in (Way.GRAM, Way.PRIMAL)
    ]
    np.testing.assert_allclose(found[0], found[1], atol=1e-8)


def test_the_model_is_that_of_scikit_survival():
    svm = pytest.importorskip("sksurv.svm")
    y, *_ = observed(70, tied=False)
    X = np.random.default_rng(2).normal(size=(70, 5))
    X -= X.mean(axis=0)
    target = np.empty(70, dtype=[("event", bool), ("time", float)])
    target["event"], target["time"] = y > 0, np.abs(y)
    C = 3.0
    peer = svm.FastSurvivalSVM(alpha=C / 70, rank_ratio=1.0, max_iter=200, tol=1e-12).fit(X, target)
    selector = SVMWeights(2, task="survival", loss="ranking", C=C, standardize=False).fit(X, target)
    np.testing.assert_allclose(selector.coef_[0], -peer.coef_, atol=1e-5)
