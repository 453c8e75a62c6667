"""Cox's partial likelihood against all risk sets one by one, finite differences and lifelines."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from oracles.risk_sets import gradient_and_hessian, negative_log_likelihood
from solvers.linear.fits import fit
from zeronorm.solvers.linear import CoxLoss, Way
from zeronorm.solvers.linear._cox import RiskSets

CASES = [(ties, stratified) for ties in ("efron", "breslow") for stratified in (False, True)]


def observed(n=40, seed=0, tied=True):
    rng = np.random.default_rng(seed)
    time = rng.integers(0, 12, n).astype(float) if tied else rng.exponential(size=n)
    event = rng.random(n) < 0.6
    strata = rng.integers(3, size=n)
    return np.where(event, time, -time), event, time, rng.uniform(0.2, 3.0, n), strata, rng.normal(size=n)


@pytest.mark.parametrize(("ties", "stratified"), CASES)
@pytest.mark.parametrize("tied", [False, True])
def test_value_and_derivatives_equal_those_of_all_risk_sets(ties, stratified, tied):
    y, event, time, weight, strata, f = observed(tied=tied)
    strata = strata if stratified else None
    loss, given = CoxLoss(ties, strata), (f, event, time, weight, ties, strata)
    gradient, hessian = gradient_and_hessian(*given)
    shift = loss.total(np.zeros(len(f)), y, weight) - negative_log_likelihood(0.0 * f, *given[1:])
    assert loss.total(f, y, weight) - shift == pytest.approx(negative_log_likelihood(*given), rel=1e-12)
    np.testing.assert_allclose(loss.gradient(f, y, weight), gradient, atol=1e-12)
    np.testing.assert_allclose(loss.hessian(f, y, weight), hessian, atol=1e-12)
    columns = np.random.default_rng(1).normal(size=(len(f), 4))
    np.testing.assert_allclose(
        loss.sandwich(f, y, weight, columns), columns.T @ hessian @ columns, atol=1e-10
    )
    if not stratified:
        here = RiskSets(time, event, weight, ties).at(f)
        np.testing.assert_allclose(here.product(columns), hessian @ columns, atol=1e-11)
        np.testing.assert_allclose(here.curvature(), np.diag(hessian), atol=1e-12)


def test_without_weights_the_value_is_the_usual_one():
    y, event, time, _, _, f = observed()
    expected = negative_log_likelihood(f, event, time, np.ones(len(f)))
    assert CoxLoss().total(f, y, np.ones(len(f))) == pytest.approx(expected, rel=1e-13)
    assert CoxLoss().total(f, y, np.full(len(f), 7.0)) == pytest.approx(7.0 * expected, rel=1e-13)


@pytest.mark.parametrize("ties", ["efron", "breslow"])
def test_gradients_are_slopes(ties):
    y, _, _, weight, strata, f = observed()
    loss, h = CoxLoss(ties, strata), 1e-6
    ends = [[loss.total(f + s * step, y, weight) for s in (1, -1)] for step in h * np.eye(len(f))]
    np.testing.assert_allclose(loss.gradient(f, y, weight), np.diff(ends)[:, 0] / (-2 * h), atol=1e-6)


@pytest.mark.parametrize("ties", ["efron", "breslow"])
def test_no_prediction_is_too_large(ties):
    y, _, _, weight, _, f = observed()
    loss, huge = CoxLoss(ties), 1e4 * f
    assert np.isfinite(loss.total(huge, y, weight))
    for values in (
        loss.gradient(huge, y, weight),
        loss.hessian(huge, y, weight),
    ):
        assert np.isfinite(values).all()
    columns = np.eye(len(f))[:, :3]
    np.testing.assert_allclose(
        loss.sandwich(huge, y, weight, columns), loss.hessian(huge, y, weight)[:3, :3], atol=1e-9
    )
    for constant in (0.0, 3e5):  # which changes nothing
        assert loss.total(f + constant, y, weight) == pytest.approx(loss.total(f, y, weight), rel=1e-9)


def test_a_weight_of_two_is_a_sample_twice_with_breslow_ties():
    y, *_, f = observed()
    weight = np.arange(len(f)) % 3
    twice, loss = np.repeat(np.arange(len(f)), weight), CoxLoss("breslow")
    differences = [
        loss.total(a[0], a[1], a[2]) - loss.total(0 * a[0], a[1], a[2])
        for a in ((f, y, weight.astype(float)), (f[twice], y[twice], np.ones(twice.size)))
    ]
    assert differences[0] == pytest.approx(differences[1], rel=1e-12)


@pytest.mark.parametrize("way", [Way.GRAM, Way.PRIMAL])
def test_a_ridge_model_is_that_of_lifelines(way):
    lifelines = pytest.importorskip("lifelines")
    import pandas as pd

    y, event, time, _, strata, _ = observed(60, tied=True)
    X = np.random.default_rng(2).normal(size=(60, 4))
    X /= X.std(axis=0, ddof=1)  # as lifelines penalises
    C = 0.3
    found = fit(X, y, C=C, loss=CoxLoss("efron", strata), way=way, tol=1e-10)
    frame = pd.DataFrame(X).assign(t=time + 1.0, e=event, s=strata)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = lifelines.CoxPHFitter(penalizer=1.0 / (C * 60)).fit(frame, "t", "e", strata=["s"])
    np.testing.assert_allclose(found.weights[:, 0], model.params_, atol=1e-5)


@pytest.mark.parametrize("stratified", [False, True])
def test_both_ways_find_the_same_model(stratified):
    y, _, _, _, strata, _ = observed(80)
    X = np.random.default_rng(2).normal(size=(80, 5))
    loss = CoxLoss("efron", strata if stratified else None)
    found = [fit(X, y, C=2.0, loss=loss, way=way, tol=1e-11).weights for way in (Way.GRAM, Way.PRIMAL)]
    np.testing.assert_allclose(found[0], found[1], atol=1e-9)
    gradient = found[0][:, 0] + X.T @ loss.gradient(X @ found[0][:, 0], y, np.full(80, 2.0))
    assert np.abs(gradient).max() < 1e-8
