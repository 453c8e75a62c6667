"""Strata in a target of times to an event: only samples of one stratum are compared."""

from __future__ import annotations

import numpy as np
import pytest

from oracles.risk_sets import gradient_and_hessian
from small_problems import problem_of
from zeronorm import (
    AROM,
    RFE,
    ConcordanceScore,
    Consensus,
    CoxLasso,
    CoxScore,
    DummySelector,
    Grafting,
    LogRankScore,
    SVMWeights,
    ZeroNormLogistic,
    ZeroNormSVM,
)
from zeronorm.engines._cox_scores import score_tests
from zeronorm.evaluation import concordance
from zeronorm.models import CoxRegression
from zeronorm.selection.target import TimeToEvent
from zeronorm.solvers.l1_smooth._cox import CoupledCox
from zeronorm.solvers.linear._cox import risk_sets

SELECTORS = [
    CoxScore(),
    CoxScore(adjust=[0]),
    LogRankScore(),
    CoxLasso(n_alphas=5),
    ConcordanceScore(),
    SVMWeights(task="survival", C=0.5),
    SVMWeights(task="survival", loss="ranking", C=0.5),
    RFE(task="survival", C=0.5, step=0.5),
    AROM(task="survival", C=0.5),
    ZeroNormSVM(task="survival", C=0.5),
    ZeroNormLogistic(3, task="survival"),
    Grafting(task="survival"),
    Consensus(task="survival"),
]


def in_hospitals(n=90, p=12, seed=0):
    """The second and the fifth feature act; times differ by a factor of ten between hospitals."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    hospital = rng.integers(3, size=n)
    time = rng.exponential(np.exp(-1.5 * (X[:, 1] - X[:, 4]))) * 10.0**hospital
    y = {"event": rng.random(n) < 0.75, "time": time, "strata": np.array(["a", "b", "c"])[hospital]}
    return (X - X.mean(axis=0)) / X.std(axis=0), TimeToEvent.prepared(y)


def in_other_units(y):
    """The same with the times of one stratum in another unit, which changes no comparison within strata."""
    changed = y.copy()
    changed["time"][y["stratum"] == 1] *= 1e-4
    return changed


@pytest.mark.parametrize("selector", SELECTORS, ids=repr)
def test_samples_of_different_strata_are_not_compared(selector):
    X, y = in_hospitals()
    first = selector.fit(X, y).path_
    order, scores = first.order.tolist(), first.feature_scores().copy()
    again = selector.fit(X, in_other_units(y)).path_
    assert again.order.tolist() == order
    np.testing.assert_allclose(again.feature_scores(), scores, rtol=1e-6, atol=1e-9)
    assert {1, 4} == set(order[:2]) or isinstance(selector, (LogRankScore, ConcordanceScore))


def test_dummies_compete_for_the_martingale_residuals():
    X, y = in_hospitals(200)
    found = [DummySelector(task="survival", random_state=0).fit(X, t) for t in (y, in_other_units(y))]
    residuals = -risk_sets(y, np.ones(200)).at(np.zeros(200)).gradient()
    found.append(DummySelector(task="regression", random_state=0).fit(X, residuals))
    assert [one.get_support(indices=True).tolist() for one in found] == 3 * [[1, 4]]


def test_models_and_concordance_compare_within_strata():
    X, y = in_hospitals()
    models = [CoxRegression(0.5).fit(X, target) for target in (y, in_other_units(y))]
    np.testing.assert_allclose(models[0].coef_, models[1].coef_, rtol=1e-9)
    risk = models[0].predict(X)
    parts = [y["stratum"] == code for code in range(3)]
    pairs = [sum((t < y["time"][part]).sum() for t in y["time"][part & y["event"]]) for part in parts]
    within = [concordance(y[part][["event", "time"]], risk[part]) for part in parts]
    assert concordance(y, risk) == pytest.approx(np.average(within, weights=pairs), rel=1e-12)


def test_solutions_are_those_of_all_risk_sets_of_the_strata():
    X, y = in_hospitals(60)
    given = y["event"], y["time"], np.ones(60), "efron", y["stratum"]
    gradient, hessian = gradient_and_hessian(np.zeros(60), *given)
    slope, variance, _ = score_tests(problem_of(y, X, "survival").design, risk_sets(y, np.ones(60)))
    np.testing.assert_allclose(slope, -X.T @ gradient, atol=1e-10)
    np.testing.assert_allclose(variance, np.einsum("ik,ij,jk->k", X, hessian, X), atol=1e-10)
    models = CoupledCox(problem_of(y, X, "survival"), "efron", 1e-9)
    models.solve(np.full(12, 0.2 * models.largest_penalty))
    w = models.weights()[0]
    gradient = X.T @ gradient_and_hessian(X @ w, *given)[0] / 60.0
    np.testing.assert_allclose(
        gradient[w != 0.0], -0.2 * models.largest_penalty * np.sign(w[w != 0.0]), atol=1e-8
    )


def test_times_are_exchanged_within_strata():
    _, y = in_hospitals(30)
    exchange = TimeToEvent(y).exchange()
    order = exchange.draw(np.random.default_rng(0))
    assert y["stratum"][order].tolist() == y["stratum"].tolist()
    assert order.tolist() != list(range(30))


def test_strata_come_from_a_column_of_that_name():
    import pandas as pd

    frame = pd.DataFrame({"months": [1.0, 2.0, 3.0], "died": [1, 0, 1], "stratum": ["x", "y", "x"]})
    assert TimeToEvent.prepared(frame)["stratum"].tolist() == [0, 1, 0]
    assert TimeToEvent.prepared(frame.to_records(index=False)[["died", "months", "stratum"]]).tolist() == [
        (True, 1.0, 0),
        (False, 2.0, 1),
        (True, 3.0, 0),
    ]
    with pytest.raises(ValueError, match="missing value among the strata 'stratum': first found in row 1"):
        TimeToEvent.prepared(frame.assign(stratum=["x", None, "x"]))
