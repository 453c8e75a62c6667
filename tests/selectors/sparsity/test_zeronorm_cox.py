"""Best subsets of Cox models by exchanges: all subsets tried, the oracle of all risk sets, and abess."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp

from oracles.risk_sets import gradient_and_hessian, negative_log_likelihood
from zeronorm import ZeroNormLogistic, as_design
from zeronorm.engines.logistic_exchanges import _candidates as candidates_module
from zeronorm.engines.logistic_exchanges import _splicing as splicing
from zeronorm.engines.logistic_exchanges._candidates import Candidates
from zeronorm.engines.logistic_exchanges._cox import CoxSubsets, expand_cox, joined
from zeronorm.engines.logistic_exchanges._exchanges import QuadraticModel
from zeronorm.selection.target import TimeToEvent
from zeronorm.solvers.linear._cox import RiskSets
from zeronorm.solvers.linear._survival import Strata

RIDGE = 0.3


def survival(n=40, p=8, seed=0, planted=(1, 4), tied=True):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) + 0.7 * rng.normal(size=(n, 1))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    time = rng.exponential(np.exp(-X[:, list(planted)] @ np.resize([1.5, -1.0], len(planted))))
    time = np.round(time, 1) if tied else time
    return X, TimeToEvent.prepared({"event": rng.random(n) < 0.7, "time": time})


def least(X, y, columns, weight=None):
    """The smallest objective on some columns, by Newton's method with all risk sets."""
    Z, w = X[:, list(columns)], np.zeros(len(columns))
    given = y["event"], y["time"], np.ones(len(y)) if weight is None else weight
    step = np.ones(1)
    while np.abs(step).max() > 1e-5:  # the next step would be about its square
        gradient, hessian = gradient_and_hessian(Z @ w, *given)
        step = np.linalg.solve(Z.T @ hessian @ Z + RIDGE * np.eye(w.size), Z.T @ gradient + RIDGE * w)
        w = w - step / max(1.0, np.abs(step).max())
    return negative_log_likelihood(Z @ w, *given) + 0.5 * RIDGE * w @ w


@pytest.mark.parametrize("seed", range(3))
def test_equals_exhaustive_search(seed):
    X, y = survival(n=25, p=6, seed=seed)
    path = ZeroNormLogistic(3, task="survival", ridge=RIDGE).fit(X, y).path_
    for k in (1, 2, 3):
        found = {c: least(X, y, c) for c in combinations(range(6), k)}
        best = min(found, key=lambda c: found[c])
        assert path.visited(k).tolist() == list(best)
        assert path.objective[path.sizes == k].min() == pytest.approx(found[best], rel=1e-6)


@pytest.mark.parametrize("ties", ["efron", "breslow"])
@pytest.mark.parametrize("scale", [1.0, 300.0])
def test_value_and_derivatives_are_those_of_all_risk_sets(ties, scale):
    X, y = survival(p=3, planted=(0, 1))
    rng = np.random.default_rng(1)
    w, weight = scale * rng.normal(size=3), rng.uniform(0.2, 3.0, len(y))
    sets, event = RiskSets(y["time"], y["event"], weight, ties), y["event"]
    H, gradient = np.empty((3, 3)), np.empty(3)
    known = weight[sets.order], *joined(Strata(((np.arange(len(y)), sets),)))
    value = expand_cox(np.ascontiguousarray(X[sets.order]), known, RIDGE, w, True, H, gradient)
    shift = X @ w - (X @ w).max()
    if scale == 1.0:
        given = event, y["time"], weight, ties
        own = weight[event] @ np.log(weight[event])
        expected = negative_log_likelihood(X @ w, *given) - own + 0.5 * RIDGE * w @ w
        assert value == pytest.approx(expected, rel=1e-12)
        slope, bend = gradient_and_hessian(X @ w, *given)
    else:  # the logarithms do not overflow
        assert np.exp(shift).min() == 0.0
        slope, bend = sets.at(X @ w).gradient(), sets.at(X @ w).hessian()
    np.testing.assert_allclose(-gradient, X.T @ slope + RIDGE * w, atol=1e-9)
    np.testing.assert_allclose(np.tril(H), np.tril(X.T @ bend @ X + RIDGE * np.eye(3)), atol=1e-9)


def test_predicted_exchanges_are_exact_for_small_changes():
    X, y = survival(400, 7, planted=(0, 1, 2, 3, 4), tied=False)
    model = CoxSubsets(as_design(X), y, np.ones(400), 1e-6)
    fit = model.fit(np.arange(5))
    gain = QuadraticModel(model, fit).additions(Candidates.of(model, np.asarray([5, 6]))).gain
    first, second = (model.fit(np.asarray([0, 1, 2, 3, 4, j])) for j in (5, 6))
    for j, larger in enumerate((first, second)):
        assert fit.objective - larger.objective == pytest.approx(gain[j], rel=0.1)
    back = QuadraticModel(model, first)
    assert back.removals().loss[-1] == pytest.approx(gain[0], rel=0.1)
    swap_gains = back.swap_gains(Candidates.of(model, np.asarray([6])))
    assert swap_gains[0, -1] == pytest.approx(first.objective - second.objective, rel=0.1)


def test_sparse_candidates_have_the_predictions_of_dense_ones(monkeypatch):
    X, y = survival()
    X = np.where(X > 0.5, X, 0.0)
    found = []
    for data, n_bytes in ((X, 1 << 23), (sp.csc_array(X), 700)):
        monkeypatch.setattr(candidates_module, "DENSE_BYTES", n_bytes)
        model = CoxSubsets(as_design(data).standardized(), y, np.ones(len(y)), RIDGE)
        quadratic = QuadraticModel(model, model.fit(np.asarray([1])))
        found.append(quadratic.additions(Candidates.of(model, np.arange(8))).gain)
    np.testing.assert_allclose(*found, rtol=1e-9)


def test_weights_multiply_the_terms_of_the_loss():
    X, y = survival(n=30, p=6)
    weight = np.random.default_rng(0).uniform(0.2, 3.0, 30)
    selector = ZeroNormLogistic(2, task="survival", ridge=RIDGE, standardize=False)
    found = {c: least(X, y, c, weight) for c in combinations(range(6), 2)}
    best = min(found, key=lambda c: found[c])
    assert selector.fit(X, y, sample_weight=weight).get_support(indices=True).tolist() == list(best)


def test_planted_features_are_found_in_wide_data_and_their_number():
    X, y = survival(200, 1000, planted=(3, 50, 700), tied=False)
    selector = ZeroNormLogistic(task="survival").fit(X, y)
    assert selector.get_support(indices=True).tolist() == [3, 50, 700]


@pytest.mark.parametrize("penalty", ["log", "scad", "mcp", "l0.5"])
def test_concave_penalties_find_planted_features(penalty):
    X, y = survival(150, 40)
    selector = ZeroNormLogistic(2, task="survival", penalty=penalty, n_alphas=10).fit(X, y)
    assert selector.get_support(indices=True).tolist() == [1, 4]


def test_a_search_in_a_subsample_guides_one_in_all_samples(monkeypatch):
    X, y = survival(600, 30)
    everything = ZeroNormLogistic(3, task="survival").fit(X, y)
    monkeypatch.setattr(splicing, "MANY_SAMPLES", 500)
    monkeypatch.setattr(splicing, "PART_OF_SAMPLES", 200)
    guided = ZeroNormLogistic(3, task="survival").fit(X, y)
    assert guided.get_support(indices=True).tolist() == everything.get_support(indices=True).tolist()
    np.testing.assert_allclose(guided.path_.objective, everything.path_.objective)


def test_covariates_are_in_every_subset():
    X, y = survival(n=100)
    y["time"] = y["time"] * np.exp(-3.0 * X[:, 7]) + 0.01
    kept = ZeroNormLogistic(2, task="survival", always_keep=[7]).fit(X, y)
    adjusted = ZeroNormLogistic(1, task="survival", adjust=[7]).fit(X, y)
    assert [*adjusted.get_support(indices=True), 7] == kept.get_support(indices=True).tolist()
    assert adjusted.path_.objective[0] == pytest.approx(kept.path_.objective[-1], rel=1e-5)


def test_perfectly_ordered_times_have_finite_weights():
    X, _ = survival(30)
    y = TimeToEvent.prepared({"event": np.ones(30, dtype=bool), "time": np.exp(-X[:, 2])})
    selector = ZeroNormLogistic(2, task="survival").fit(X, y)
    assert 2 in selector.get_support(indices=True)
    assert np.isfinite(selector.path_.objective).all()


def test_no_worse_than_abess():
    abess = pytest.importorskip("abess")
    X, y = survival(100, 30, planted=(0, 5, 9, 20), tied=False)
    path = ZeroNormLogistic(6, task="survival", standardize=False).fit(X, y).path_
    given = y["event"], y["time"], np.ones(100)
    for k in range(1, 7):
        peer = abess.CoxPHSurvivalAnalysis(support_size=k)
        peer.fit(X, np.column_stack([y["time"], y["event"]]).astype(float))
        theirs = negative_log_likelihood(X @ peer.coef_, *given)
        assert path.objective[path.sizes == k].min() <= theirs * (1.0 + 1e-5)
